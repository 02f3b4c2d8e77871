"""ModelGroup: what it refuses, and that grouped models compute what others do."""

from __future__ import annotations

import gc
import shutil
import threading
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.encryption import encrypt
from support.mindir_builder import Net, encode
from support.models import DYN_BATCH, MINDIR, MOBILENET, arrays, built, built_runner, written
from support.pages import weight_pages

import mindspore_lite as mslite
from mindspore_lite import ModelGroup, ModelGroupFlag
from mindspore_lite.engines.base import ModelSource, Options, Session
from mindspore_lite.engines.onnxruntime.engine import OnnxRuntimeEngine

WEIGHT = ModelGroupFlag.SHARE_WEIGHT
WORKSPACE = ModelGroupFlag.SHARE_WORKSPACE
BOTH = ModelGroupFlag.SHARE_WEIGHT_WORKSPACE
SIDE = 256  # 256 KiB a weight, and as much packed
PAGES = SIDE * SIDE * 4 // 4096


def context() -> mslite.Context:
    made = mslite.Context()
    made.cpu.thread_num = 1
    return made


def net(rows: int, seeds: tuple[int, ...] = (1, 2)) -> bytes:
    """x @ w0 @ w1 ... for x of so many rows, each weight as its seed says."""
    made = Net()
    value = made.input("x", (rows, SIDE))
    for at, seed in enumerate(seeds):
        weight = np.random.default_rng(seed).random((SIDE, SIDE), np.float32) - 0.5
        value = made.call("MatMulExt", value, made.weight(f"w{at}", weight))
    return encode(made.model(value))


def x_of(rows: int) -> np.ndarray:
    return np.random.default_rng(rows).random((rows, SIDE), np.float32)


def answer(model: mslite.Model, rows: int) -> np.ndarray:
    (found,) = arrays(model.predict([x_of(rows)]))
    return found


@pytest.fixture
def own_cache(own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The compile cache of this test alone: its files are counted."""
    monkeypatch.setenv("MSLITE_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def nets(tmp_path: Path) -> dict[int, Path]:
    """Model files by their number of rows."""
    return {rows: written(tmp_path / f"{rows}.mindir", net(rows)) for rows in (3, 4)}


def grouped(
    flags: ModelGroupFlag, nets: dict[int, Path], by: type = mslite.Model
) -> tuple[ModelGroup, list[mslite.Model]]:
    """A group and its models, which were added as Models or by their paths."""
    group = ModelGroup(flags)
    models = [mslite.Model() for _ in nets]
    group.add_model(models if by is mslite.Model else [str(path) for path in nets.values()])
    for model, path in zip(models, nets.values(), strict=True):
        model.build_from_file(str(path), MINDIR, context())
    return group, models


def test_the_flags_have_the_documented_numbers() -> None:
    assert {flag.name: flag.value for flag in ModelGroupFlag} == {
        "SHARE_WEIGHT": 1,
        "SHARE_WORKSPACE": 2,
        "SHARE_WEIGHT_WORKSPACE": 3,
    }


@pytest.mark.parametrize("flags", [1001, 1, None, "SHARE_WEIGHT"])
def test_other_flags_are_refused(flags: Any) -> None:
    wanted = "Parameter flags should be ModelGroupFlag.SHARE_WORKSPACE or .* but got"
    with pytest.raises(RuntimeError, match=wanted):
        ModelGroup(flags)


@pytest.mark.parametrize(
    ("models", "error", "words"),
    [
        ("path", TypeError, "models must be list/tuple, but got <class 'str'>"),
        (None, TypeError, "models must be list/tuple, but got"),
        ([], RuntimeError, "models cannot be empty"),
        ((), RuntimeError, "models cannot be empty"),
        (["path", mslite.Model()], TypeError, "all str or Model, but got .*Model'> at index 1"),
        ([mslite.Model(), "path"], TypeError, "models element must be all str or Model, but got .*"
                                              "str'> at index 1"),
        ([1], TypeError, "models element must be all str or Model, but got .*int'> at index 0"),
        ([b"a"], TypeError, "models element must be all str or Model"),
        ([mslite.ModelParallelRunner()], TypeError, "must be all str or Model, but got .*Runner"),
        ([mslite.MultiDeviceRunner()], TypeError, "must be all str or Model, but got .*Runner"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("flags", [WEIGHT, WORKSPACE, BOTH])
def test_what_is_no_list_of_one_kind_is_refused(
    flags: ModelGroupFlag, models: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        ModelGroup(flags).add_model(models)


def test_by_default_scratch_memory_is_shared_and_models_come_as_paths() -> None:
    with pytest.raises(RuntimeError, match=r"^ModelGroup's add model failed\. SHARE_WORKSPACE"):
        ModelGroup().add_model([mslite.Model()])
    with pytest.raises(RuntimeError, match=r"^ModelGroup's add model failed\. SHARE_WEIGHT takes"):
        ModelGroup(WEIGHT).add_model(["a.mindir"])
    ModelGroup().add_model(["a.mindir"])  # may not exist yet


def test_a_model_is_added_once_and_before_it_is_built() -> None:
    ready = built(MOBILENET)
    model = mslite.Model()
    with pytest.raises(RuntimeError, match="the Model at index 1 is built already"):
        ModelGroup(WEIGHT).add_model([model, ready])
    first = ModelGroup(WEIGHT)
    first.add_model([model])  # the refusal above has added nothing
    for group in (first, ModelGroup(WEIGHT)):
        with pytest.raises(RuntimeError, match="the Model at index 0 is in a group alr"):
            group.add_model([model])


@pytest.mark.parametrize(
    ("flags", "by"), [(WEIGHT, mslite.Model), (WORKSPACE, str), (BOTH, mslite.Model), (BOTH, str)]
)
def test_grouped_models_compute_the_same_to_the_last_bit(
    flags: ModelGroupFlag, by: type, nets: dict[int, Path], own_cache: Path
) -> None:
    wanted = {rows: answer(built(path), rows) for rows, path in nets.items()}
    group, models = grouped(flags, nets, by)
    for model, (rows, want) in zip(models, wanted.items(), strict=True):
        for _ in range(3):
            np.testing.assert_array_equal(answer(model, rows), want)
    gc.collect()
    assert len(set(weight_pages(own_cache))) == (4 if flags is WORKSPACE else 2) * PAGES
    assert group.workspace_size == 0


def test_a_model_runs_on_when_the_others_and_the_group_are_gone(nets: dict[int, Path]) -> None:
    group, (first, second) = grouped(BOTH, nets)
    want = answer(second, 4)
    stop = threading.Event()
    wrong: list[np.ndarray] = []

    def work() -> None:
        while not stop.is_set():
            found = answer(second, 4)
            if not np.array_equal(found, want):
                wrong.append(found)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    first.close()
    del group, first
    gc.collect()
    np.testing.assert_array_equal(answer(second, 4), want)
    stop.set()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_closed_model_comes_back_into_its_group(nets: dict[int, Path], own_cache: Path) -> None:
    _, (first, second) = grouped(WEIGHT, nets)
    want = answer(first, 3)
    first.close()
    first.build_from_file(str(nets[3]), MINDIR, context())
    np.testing.assert_array_equal(answer(first, 3), want)
    answer(second, 4)
    gc.collect()
    assert len(set(weight_pages(own_cache))) == 2 * PAGES


def test_a_grouped_model_is_resized_within_its_group(
    nets: dict[int, Path], own_cache: Path
) -> None:
    _, (first, second) = grouped(BOTH, nets)
    first.resize(first.get_inputs(), [[7, SIDE]])
    alone = built(nets[3])
    alone.resize(alone.get_inputs(), [[7, SIDE]])
    want = answer(alone, 7)
    alone.close()
    np.testing.assert_array_equal(answer(first, 7), want)
    answer(second, 4)
    gc.collect()
    assert len(set(weight_pages(own_cache))) == 2 * PAGES


def changeable(paths: Collection[Path], group: ModelGroup | None = None) -> list[mslite.Model]:
    """Models whose first weight may change, of a group or not."""
    found = [mslite.Model() for _ in paths]
    if group is not None:
        group.add_model(found)
    for model, path in zip(found, paths, strict=True):
        listed = {"common_context": {"variable_weights_list": "w0"}}
        model.build_from_file(str(path), MINDIR, context(), config_dict=listed)
    return found


def test_grouped_models_change_after_all_that_was_stored_is_gone(
    nets: dict[int, Path], own_cache: Path
) -> None:
    new = mslite.Tensor(np.eye(SIDE, dtype=np.float32))
    (alone,) = changeable([nets[3]])
    alone.update_weights([[new]])
    first, _ = changeable(nets.values(), ModelGroup(WEIGHT))
    shutil.rmtree(own_cache)
    first.update_weights([[new]])
    np.testing.assert_array_equal(answer(first, 3), answer(alone, 3))


def test_grouped_models_with_variable_weights_share_the_others(
    nets: dict[int, Path], own_cache: Path
) -> None:
    def answers(first: mslite.Model, second: mslite.Model) -> tuple[list[np.ndarray], int]:
        new = mslite.Tensor(np.eye(SIDE, dtype=np.float32))
        first.update_weights([[new]])
        found = [answer(first, 3), answer(second, 4)]
        gc.collect()
        pages = len(set(weight_pages(own_cache)))
        for model in (first, second):
            model.close()
        return found, pages

    want, apart = answers(*changeable(nets.values()))
    found, together = answers(*changeable(nets.values(), ModelGroup(WEIGHT)))
    for array, wanted in zip(found, want, strict=True):
        np.testing.assert_array_equal(array, wanted)
    assert apart - together >= PAGES


def test_models_from_memory_belong_to_a_group_too(nets: dict[int, Path], own_cache: Path) -> None:
    group = ModelGroup(WEIGHT)
    models = {rows: mslite.Model() for rows in nets}
    group.add_model(list(models.values()))
    for rows, model in models.items():
        model.build_from_buffer(nets[rows].read_bytes(), MINDIR, context())
        np.testing.assert_array_equal(answer(model, rows), answer(built(nets[rows]), rows))
    gc.collect()
    assert len(set(weight_pages(own_cache))) == 2 * PAGES


def test_encrypted_models_run_and_it_is_said_that_they_share_nothing(
    nets: dict[int, Path], tmp_path: Path
) -> None:
    key = b"0123456789abcdef"
    path = written(tmp_path / "secret.mindir", encrypt(nets[3].read_bytes(), key, "AES-GCM"))
    model = mslite.Model()
    ModelGroup(WEIGHT).add_model([model])
    with pytest.warns(RuntimeWarning, match="encrypted models are never stored"):
        model.build_from_file(str(path), MINDIR, context(), dec_key=key)
    np.testing.assert_array_equal(answer(model, 3), answer(built(nets[3]), 3))


def test_a_runner_is_in_no_group(nets: dict[int, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    group = ModelGroup(BOTH)
    group.add_model([str(nets[3])])
    seen = []
    genuine = OnnxRuntimeEngine.load

    def load(self: OnnxRuntimeEngine, source: ModelSource, options: Options) -> Session:
        seen.append(options.group)
        return genuine(self, source, options)

    monkeypatch.setattr(OnnxRuntimeEngine, "load", load)
    with built_runner(nets[3], workers_num=1):
        assert seen == [None]
    with built(nets[3]):
        assert seen == [None, group._group]


# --- the size of the workspace ---


def test_the_most_demanding_file_decides(nets: dict[int, Path]) -> None:
    group = ModelGroup()
    group.add_model([str(path) for path in nets.values()])
    group.add_model([str(nets[3])])
    assert group.cal_max_size_of_workspace(MINDIR, context()) is None
    assert group.workspace_size == 2 * 4 * SIDE * 4  # both results of the model of 4 rows


def test_models_that_are_built_afterwards_are_compiled_already(
    nets: dict[int, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    group = ModelGroup(BOTH)
    group.add_model([str(path) for path in nets.values()])
    group.cal_max_size_of_workspace(MINDIR, context())

    def compiled(*_: object) -> None:
        raise AssertionError("compiled again")

    monkeypatch.setattr("mindspore_lite.engines.onnxruntime.engine._compile", compiled)
    for rows, path in nets.items():
        assert answer(built(path), rows).shape == (rows, SIDE)


def test_a_model_with_open_sizes_has_a_workspace_too() -> None:
    group = ModelGroup()
    group.add_model([str(DYN_BATCH)])
    group.cal_max_size_of_workspace(MINDIR, context())
    assert group.workspace_size > 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((1, 1), "context must be Context"),
        ((MINDIR, None), "context must be Context"),
        ((1, mslite.Context()), "model_type must be ModelType"),
    ],
)
def test_arguments_are_checked_the_context_first(arguments: tuple[Any, Any], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        ModelGroup().cal_max_size_of_workspace(*arguments)


@pytest.mark.parametrize(
    ("prepare", "kind", "words"),
    [
        (lambda _: [], MINDIR, "no paths of model files were added"),
        (lambda folder: [folder / "none.mindir"], MINDIR, "model_path does not exist: '.*none"),
        (lambda folder: [written(folder / "bad", b"bad")], MINDIR, "cannot be loaded as MindIR"),
        (lambda _: [MOBILENET], mslite.ModelType.MINDIR_LITE, "MINDIR_LITE"),
    ],
)
def test_a_file_that_cannot_be_built_fails_with_its_reason(
    prepare: Callable[[Path], list[Path]], kind: mslite.ModelType, words: str, tmp_path: Path
) -> None:
    group = ModelGroup()
    if paths := prepare(tmp_path):
        group.add_model([str(path) for path in paths])
    wanted = rf"^ModelGroup's cal max size of workspace failed\. .*{words}"
    with pytest.raises(RuntimeError, match=wanted):
        group.cal_max_size_of_workspace(kind, context())
    assert group.workspace_size == 0
