"""[build] sandbox=on: a child compiles, this process opens; the same model comes of it."""

from __future__ import annotations

import os
import resource
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from support.devices import on_devices
from support.encryption import encrypt
from support.mindir_builder import Net, encode
from support.models import (
    DIGITS,
    MINDIR,
    ONNX,
    arrays,
    built_runner,
    dense_net,
    dense_values,
    written,
)
from support.running import DATA
from support.split_builder import split
from support.workers import file_build

import mindspore_lite as mslite
from mindspore_lite.core import jail
from mindspore_lite.core.budget import Budget
from mindspore_lite.engines import sandbox
from mindspore_lite.engines.cache import store
from mindspore_lite.errors import (
    EngineError,
    LiteError,
    ModelFileError,
)
from mindspore_lite.graph import from_mindir
from mindspore_lite.remote.wire.bodies import RUNNER
from mindspore_lite.remote.worker.served_model import Running, built
from mindspore_lite.serving.call import Call

TASKS = Path(__file__).parents[1] / "support"
X = np.arange(6, dtype=np.float32).reshape(2, 3)
ON = {"build": {"sandbox": "on"}}


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """After each test there is no temporary folder, no process and no build under way."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    yield place
    assert list(place.iterdir()) == []
    assert list(tmp_path.glob("cache/build-*")) == []


@pytest.fixture
def dense(tmp_path: Path) -> Path:
    (tmp_path / "models").mkdir()
    return written(tmp_path / "models" / "dense.mindir", dense_net())


def sandboxed(
    path: Path | str, kind: mslite.ModelType = MINDIR, engine: str = "onnxruntime", **more: str
) -> mslite.Model:
    model = mslite.Model()
    entries = {"common_context": {"engine": engine}, "build": {"sandbox": "on", **more}}
    model.build_from_file(str(path), kind, config_dict=entries)
    return model


def plain(path: Path | str, kind: mslite.ModelType, engine: str) -> mslite.Model:
    model = mslite.Model()
    model.build_from_file(str(path), kind, config_dict={"common_context": {"engine": engine}})
    return model


def no_child(*arguments: object, **named: object) -> None:
    raise AssertionError("a child was started")


def task(monkeypatch: pytest.MonkeyPatch, name: str, **limits: float) -> None:
    """Let the child run a task of the tests in place of the compiler."""
    monkeypatch.setattr(sandbox, "TASK", f"jail_tasks:{name}")
    monkeypatch.setattr(jail, "run", partial(jail.run, path=[TASKS]))
    if limits:
        real = sandbox.limits
        monkeypatch.setattr(sandbox, "limits", lambda *given: replace(real(*given), **limits))


ENGINES = ["onnxruntime", "openvino"]


@pytest.mark.parametrize("engine", ENGINES)
def test_the_same_model_under_the_same_key(
    engine: str, cache_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images = np.random.default_rng(1).random((3, 1, 8, 8), np.float32)
    with sandboxed(DIGITS, engine=engine) as model:
        found = arrays(model.predict([images]))
    (kept,) = store.Cache(cache_place, 0).artefacts()
    monkeypatch.setattr(jail, "run", no_child)
    with sandboxed(DIGITS, engine=engine) as model:  # from the cache
        np.testing.assert_array_equal(arrays(model.predict([images])), found)
    with plain(DIGITS, MINDIR, engine) as model:
        np.testing.assert_array_equal(arrays(model.predict([images])), found)
    assert [key for _, _, key in store.Cache(cache_place, 0).artefacts()] == [kept[2]]


@pytest.mark.parametrize("engine", ENGINES)
def test_what_was_compiled_without_a_sandbox_serves_with_it(
    engine: str, dense: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain(dense, MINDIR, engine).close()
    monkeypatch.setattr(jail, "run", no_child)
    with sandboxed(dense, engine=engine) as model:
        np.testing.assert_allclose(arrays(model.predict([X]))[0], dense_values(X))


def test_this_process_never_translates(dense: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(from_mindir, "from_mindir", no_child)
    with sandboxed(dense) as model:
        np.testing.assert_allclose(arrays(model.predict([X]))[0], dense_values(X))


@pytest.mark.parametrize("engine", ENGINES)
def test_without_a_cache_nothing_stays(
    engine: str, dense: Path, cache_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSLITE_CACHE", "off")
    with sandboxed(dense, engine=engine) as model:
        np.testing.assert_allclose(arrays(model.predict([X]))[0], dense_values(X))
        assert not model._usable("").built.session.info.mapped
    assert not cache_place.exists()


@pytest.mark.filterwarnings("ignore:2 workers of 2 threads")
def test_without_a_cache_workers_share_one_session(
    dense: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSLITE_CACHE", "off")
    started = []
    real = jail.run
    monkeypatch.setattr(jail, "run", lambda *a, **k: started.append(a) or real(*a, **k))
    context = mslite.Context()
    context.cpu.thread_num, context.parallel.workers_num = 2, 2
    context.parallel.config_info = ON
    with mslite.ModelParallelRunner() as runner:
        runner.build_from_file(str(dense), context)
        np.testing.assert_allclose(arrays(runner.predict([X]))[0], dense_values(X))
    assert len(started) == 1


def test_a_model_in_memory_is_handed_over() -> None:
    with mslite.Model() as model:
        model.build_from_buffer(dense_net(), MINDIR, config_dict=ON)
        np.testing.assert_allclose(arrays(model.predict([X]))[0], dense_values(X))


def test_side_files_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = split(dense_net(), tmp_path / "split")
    monkeypatch.chdir(tmp_path)
    with sandboxed(path.relative_to(tmp_path)) as model:
        np.testing.assert_allclose(arrays(model.predict([X]))[0], dense_values(X))


def test_external_data_of_onnx_is_read(tmp_path: Path) -> None:
    weight = np.random.default_rng(2).random((300, 4), np.float32)
    proto = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["": 21]> g (float[2,300] x) => (float[2,4] y) '
        "{ y = MatMul(x, w) }"
    )
    proto.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    path = tmp_path / "net.onnx"
    onnx.save(proto, path, save_as_external_data=True, location="net.data", size_threshold=0)
    x = np.ones((2, 300), np.float32)
    with sandboxed(path, ONNX) as model:
        np.testing.assert_allclose(arrays(model.predict([x]))[0], x @ weight, rtol=1e-5)


def test_a_model_file_may_be_a_link(tmp_path: Path, dense: Path) -> None:
    link = tmp_path / "link" / "dense.mindir"
    link.parent.mkdir()
    link.symlink_to(dense)
    with sandboxed(link) as model:
        np.testing.assert_allclose(arrays(model.predict([X]))[0], dense_values(X))


def test_a_resize_is_compiled_in_a_child_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path / "dense.mindir", dense_net(2))
    with sandboxed(path) as model:
        monkeypatch.setattr(from_mindir, "from_mindir", no_child)
        model.resize(model.get_inputs(), [[5, 3]])
        x = np.ones((5, 3), np.float32)
        np.testing.assert_allclose(arrays(model.predict([x]))[0], dense_values(x))


def test_a_model_of_any_rank_is_compiled_in_a_child_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(from_mindir, "from_mindir", no_child)
    with sandboxed(DATA / "nets/dyn_rank.mindir") as model:
        assert model.get_inputs()[0].shape == [-2]
        x = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
        np.testing.assert_array_equal(arrays(model.predict([x]))[0], np.maximum(x, 0) + 1)


# --- all who build --------------------------------------------------------------------------------


def test_a_runner_builds_in_a_sandbox(dense: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(from_mindir, "from_mindir", no_child)
    with built_runner(dense, config_info=ON, workers_num=2) as runner:
        np.testing.assert_allclose(arrays(runner.predict([X]))[0], dense_values(X))


def test_a_group_builds_in_a_sandbox(dense: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(from_mindir, "from_mindir", no_child)
    model = mslite.Model()
    mslite.ModelGroup(mslite.ModelGroupFlag.SHARE_WEIGHT).add_model([model])
    model.build_from_file(str(dense), MINDIR, config_dict=ON)
    np.testing.assert_allclose(arrays(model.predict([X]))[0], dense_values(X))
    model.close()


def test_devices_build_in_a_sandbox(tmp_path: Path) -> None:
    path = written(tmp_path / "open.mindir", dense_net(-1))
    with on_devices(path, config_info=ON) as runner:
        np.testing.assert_allclose(arrays(runner.predict([X]))[0], dense_values(X))
    with pytest.raises(EngineError, match="sandbox is on, but engine 'torch'"):
        entries = {**ON, "common_context": {"engine": "torch"}}
        with on_devices(path, config_info=entries):
            pass


@pytest.mark.parametrize("kind", [0, RUNNER])
def test_a_worker_builds_in_a_sandbox(
    kind: int, dense: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(from_mindir, "from_mindir", no_child)

    asked = replace(file_build(dense, 0, kind), config=ON)
    hosted = built(asked, [])
    np.testing.assert_allclose(hosted.predict(Call([X]), Running())[0], dense_values(X))
    hosted.close(0.0)


# --- what is refused ------------------------------------------------------------------------------


def error_of(build: Any) -> LiteError:
    with pytest.raises(LiteError) as caught:
        build()
    return caught.value


def unknown_operator() -> bytes:
    net = Net()
    return encode(net.model(net.call("NoSuchThing", net.input("x", (2, 3)))))


@pytest.mark.parametrize("data", [b"", b"nonsense", dense_net()[:-40], unknown_operator()])
def test_a_bad_model_is_the_same_error_as_without(data: bytes, tmp_path: Path) -> None:
    path = written(tmp_path / "bad.mindir", data)
    inside = error_of(lambda: sandboxed(path))
    outside = error_of(lambda: plain(path, MINDIR, "onnxruntime"))
    assert type(inside) is type(outside)
    assert str(inside) == str(outside)
    assert getattr(inside, "problems", None) == getattr(outside, "problems", None)
    assert inside.code == outside.code


@pytest.mark.parametrize(
    ("name", "limits", "words"),
    [
        ("crash", {}, r"compiling it in the sandbox was ended by signal 11 \(SIGSEGV\)"),
        ("spin", {"cpu_s": 1}, "took more than 1 s of CPU time; .build. max_seconds"),
        ("hang", {"wall_s": 1}, "did not end within 1 s"),
        ("eat_at_once", {}, "needed more than [0-9]+ MiB of memory; .build. max_seconds"),
        ("raise_other", {}, "this is a bug"),
        ("write_nothing", {}, "refused: it holds .., wanted"),
        ("write_a_link", {}, "is no plain file of its own"),
        ("write_a_folder", {}, "is no plain file of its own"),
        ("write_a_stranger", {}, "refused: it holds .*stranger"),
        ("say_nonsense", {}, "gave no answer that makes sense"),
    ],
)
def test_what_goes_wrong_in_the_child_is_an_error_of_the_model(
    name: str, limits: dict[str, float], words: str, dense: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task(monkeypatch, name, **limits)
    before = set(os.listdir("/proc/self/fd"))
    with pytest.raises(ModelFileError, match=words):
        sandboxed(dense)
    assert len(os.listdir("/proc/self/fd")) <= len(before) + 1  # the package may keep a log open


def test_after_a_crash_the_model_can_be_built(dense: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        task(patch, "crash")
        with pytest.raises(ModelFileError):
            sandboxed(dense)
    with sandboxed(dense) as model:
        np.testing.assert_allclose(arrays(model.predict([X]))[0], dense_values(X))


def test_a_compiled_model_above_the_bound_of_the_cache_is_an_error(
    dense: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSLITE_CACHE_MAX_BYTES", "100")
    with pytest.raises(EngineError, match=r"takes [0-9]+ bytes, MSLITE_CACHE_MAX_BYTES allows 100"):
        sandboxed(dense)
    monkeypatch.setattr(sandbox, "_SLACK_BYTES", 0)
    with pytest.raises(ModelFileError, match=r"wrote a file of more than 0 MiB; .*MAX_BYTES"):
        sandboxed(dense)


def test_an_engine_that_compiles_when_it_opens_is_refused(dense: Path) -> None:
    pytest.importorskip("torch")
    with pytest.raises(EngineError, match=r"engine 'torch' compiles .* engine=onnxruntime"):
        sandboxed(dense, engine="torch")


def test_weights_that_may_change_are_refused(dense: Path) -> None:
    entries = {**ON, "ascend_context": {"variable_weights_list": "w"}}
    with pytest.raises(EngineError, match="leave out the list of variable weights"):
        mslite.Model().build_from_file(str(dense), MINDIR, config_dict=entries)


def test_an_encrypted_model_is_refused(tmp_path: Path) -> None:
    key = b"0123456789abcdef"
    path = written(tmp_path / "secret.mindir", encrypt(dense_net(), key))
    with pytest.raises(EngineError, match="the model is encrypted"):
        mslite.Model().build_from_file(
            str(path), MINDIR, config_dict=ON, dec_key=key, dec_mode="AES-GCM"
        )


def lstm(path: Path) -> Path:
    proto = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["": 21]> g (float[3,1,4] x) => (float[3,1,1,8] y) '
        "{ y = LSTM <hidden_size: int = 8> (x, w, r) }"
    )
    for name, shape in (("w", (1, 32, 4)), ("r", (1, 32, 8))):
        array = np.full(shape, 0.1, np.float32)
        proto.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    path.write_bytes(proto.SerializeToString())
    return path


@pytest.mark.parametrize("is_cached", [False, True])
def test_what_openvino_cannot_store_compiled_is_refused(is_cached: bool, tmp_path: Path) -> None:
    path = lstm(tmp_path / "lstm.onnx")
    if is_cached:
        plain(path, ONNX, "openvino").close()
    with pytest.raises(EngineError, match="OpenVINO cannot store this model compiled"):
        sandboxed(path, ONNX, "openvino")


def test_weights_are_not_shared_from_a_temporary_folder(
    dense: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSLITE_CACHE", "off")
    entries = {**ON, "common_context": {"shareable_weight_pid_list": str(os.getpid())}}
    with pytest.raises(EngineError, match="weights are shared from the compile cache"):
        mslite.Model().build_from_file(str(dense), MINDIR, config_dict=entries)


# --- hostile files --------------------------------------------------------------------------------


def test_the_child_refuses_a_file_that_is_not_the_one_that_was_hashed(tmp_path: Path) -> None:
    told = {"engine": "onnxruntime", "precision": "enforce_fp32", "folder": str(tmp_path),
            "kind": "MINDIR", "path": str(DIGITS), "beside": None, "has_weights": False,
            "strict_bfloat16": False,
            "budget": vars(Budget()), "shapes": None, "digests": ["0" * 64]}  # fmt: skip
    with pytest.raises(ModelFileError, match="changed while it was read"):
        sandbox.compile_task(told, [])


def grid_bomb(path: Path) -> Path:
    """A few bytes whose constants would be folded to gigabytes."""
    proto = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["": 21]> g (float[1] x) => (float[1] y) '
        "<float[1,2,3] theta = {1, 0, 0, 0, 1, 0}, int64[4] size = {1, 1, 20000, 20000}> "
        "{ grid = AffineGrid(theta, size) total = ReduceSum <keepdims: int = 0> (grid) "
        "y = Add(x, total) }"
    )
    path.write_bytes(proto.SerializeToString())
    return path


def test_a_file_that_eats_memory_takes_none_of_this_process(tmp_path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with suppress(LiteError):  # ONNX Runtime may as well leave alone what it cannot fold
        sandboxed(grid_bomb(tmp_path / "bomb.onnx"), ONNX, max_fold_bytes="64M")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 20  # KiB


# --- limits ---------------------------------------------------------------------------------------


def test_limits_grow_with_the_model_and_stay_below_the_machine() -> None:
    small = sandbox.limits(0, Budget(max_seconds=7, max_fold_bytes=1 << 20), 100)
    assert (small.cpu_s, small.wall_s, small.file_bytes) == (7, 74, 100)
    large = sandbox.limits(1 << 28, Budget(max_fold_bytes=1 << 20), 100)
    assert large.data_bytes - small.data_bytes == 1 << 30
    huge = sandbox.limits(1 << 50, Budget(), 100)
    assert huge.data_bytes == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def test_a_jailed_source_refuses_to_be_translated_here(dense: Path) -> None:
    given = sandbox.ModelInput("MINDIR", dense)
    source = sandbox.source_of(given)
    with sandbox.jailed(source, given, None) as jailed:
        with pytest.raises(EngineError, match="would have been compiled in this process"):
            jailed.translate()
        assert (jailed.files, jailed.recipe) == (source.files, source.recipe)
