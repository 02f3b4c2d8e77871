"""serving/build.py: from a path and a Context to a session, and to other input shapes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.mindir_builder import Net, encode
from support.models import DYN_BATCH, MOBILENET, SWIN, dense_net, written
from support.settings import spec_of

from mindspore_lite.context import Context
from mindspore_lite.errors import (
    EngineError,
    EngineUnavailableError,
    LiteError,
    ModelFileError,
    ShapeError,
)
from mindspore_lite.graph.source import ModelInput, ModelSource
from mindspore_lite.serving import build as module
from mindspore_lite.serving.build import Built, any_shape, any_shape_updated, resized, updated


def build(given: ModelInput, context: Context, *variable: str) -> Built:
    return module.build(given, spec_of(context, None, *variable))


def context(**cpu: object) -> Context:
    made = Context()
    for name, value in {"thread_num": 1, **cpu}.items():
        setattr(made.cpu, name, value)
    return made


@pytest.fixture
def dense(tmp_path: Path) -> Path:
    return written(tmp_path / "dense.mindir", dense_net())


def counted(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Notes every translation: a resize that costs nothing makes none."""
    seen: list[object] = []
    original = module.source_of

    def source(given: ModelInput, shapes: Any = None) -> ModelSource:
        seen.append(shapes)
        return original(given, shapes)

    monkeypatch.setattr(module, "source_of", source)
    return seen


# --- building -------------------------------------------------------------------------------------


def test_a_built_model_tells_its_inputs_and_outputs(dense: Path) -> None:
    made = build(ModelInput("MINDIR", dense), context())
    assert [(i.name, i.shape, i.dtype) for i in made.inputs] == [("x", (2, 3), np.float32)]
    assert [o.shape for o in made.outputs] == [(2, 4)]


def test_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="is a directory, wanted a model file"):
        build(ModelInput("MINDIR", tmp_path), context())


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"cannot read .*gone.*No such file"):
        build(ModelInput("MINDIR", tmp_path / "gone.mindir"), context())


def test_files_of_the_edge_runtime_are_refused_with_a_way_out(dense: Path) -> None:
    with pytest.raises(ModelFileError, match=r"\.ms files .* pass ModelType\.MINDIR"):
        build(ModelInput("MINDIR_LITE", dense), context())


@pytest.fixture
def no_card(monkeypatch: pytest.MonkeyPatch) -> None:
    """No card, whatever the machine has."""

    def missing(device: str) -> None:
        raise EngineUnavailableError(f"target 'gpu' needs a card: there is no {device}")

    monkeypatch.setattr("mindspore_lite.engines.torch.cards.check", missing)


@pytest.mark.usefixtures("no_card")
@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("gpu", "there is no cuda:1"),
        ("GPU", "there is no cuda:1"),
        ("ascend", "'ascend'.* use target 'cpu'"),
        ("Ascend", "'ascend'.* use target 'cpu'"),
    ],
)
def test_targets_that_are_not_there_are_refused(dense: Path, target: str, words: str) -> None:
    wanted = context()
    wanted.target = [target]
    wanted.gpu.device_id = 1
    with pytest.raises(EngineUnavailableError, match=words):
        build(ModelInput("MINDIR", dense), wanted)


def test_the_first_target_decides_and_others_are_told_of(dense: Path) -> None:
    wanted = context()
    wanted.target = ["cpu", "ascend"]
    with pytest.warns(UserWarning, match=r"runs on 'cpu', \['ascend'\] is not used"):
        build(ModelInput("MINDIR", dense), wanted)


@pytest.mark.usefixtures("no_card")
def test_cpu_behind_another_target_is_no_reason_to_warn(dense: Path) -> None:
    wanted = context()
    wanted.target = ["gpu", "cpu"]
    with pytest.raises(EngineUnavailableError):
        build(ModelInput("MINDIR", dense), wanted)


def test_threads_are_taken_from_the_context(dense: Path) -> None:
    made = build(ModelInput("MINDIR", dense), context(thread_num=2, inter_op_parallel_num=2))
    assert (made.options.threads, made.options.inter_op_threads) == (2, 2)


def test_threads_left_open_are_chosen_here_and_not_written_back(dense: Path) -> None:
    automatic = Context()
    made = build(ModelInput("MINDIR", dense), automatic)
    assert made.options.threads >= 1
    assert made.options.cores == ()
    assert automatic.cpu.thread_num == automatic.cpu.inter_op_parallel_num == 0


def test_more_inter_op_threads_than_threads_are_refused(dense: Path) -> None:
    with pytest.raises(EngineError, match="inter_op_parallel_num is 3, wanted at most thread_num"):
        build(ModelInput("MINDIR", dense), context(thread_num=2, inter_op_parallel_num=3))


def test_inter_op_threads_alone_raise_the_threads(dense: Path) -> None:
    made = build(ModelInput("MINDIR", dense), context(thread_num=0, inter_op_parallel_num=2))
    assert made.options.threads >= 2


@pytest.mark.parametrize("mode", [1, 2])
def test_one_thread_can_be_bound_in_any_mode(dense: Path, mode: int) -> None:
    before = os.sched_getaffinity(0)
    made = build(ModelInput("MINDIR", dense), context(thread_affinity_mode=mode))
    assert len(made.options.cores) == 1
    (got,) = made.session.run([np.ones((2, 3), np.float32)])
    np.testing.assert_array_equal(got, np.full((2, 4), 4))
    assert os.sched_getaffinity(0) == before


def test_a_core_that_is_not_there_is_refused(dense: Path) -> None:
    with pytest.raises(EngineError, match="99999"):
        build(ModelInput("MINDIR", dense), context(thread_affinity_core_list=[99999]))


def test_a_bad_setting_of_the_environment_is_told(
    dense: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSLITE_CACHE", "maybe")
    with pytest.raises(EngineError, match="MSLITE_CACHE is 'maybe', wanted 'on' or 'off'"):
        build(ModelInput("MINDIR", dense), context())


# --- other shapes ---------------------------------------------------------------------------------


def test_free_dims_change_without_a_new_session(monkeypatch: pytest.MonkeyPatch) -> None:
    made = build(ModelInput("MINDIR", DYN_BATCH), context())
    seen = counted(monkeypatch)
    for batch in (3, 5):
        changed = resized(made, [(batch, 3, 224, 224)])
        assert changed.session is made.session
        assert changed.inputs[0].shape == (batch, 3, 224, 224)
        assert changed.outputs[0].shape == (batch, 10)
    assert seen == []


def test_fixed_dims_change_with_one_new_session_and_then_for_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = build(ModelInput("MINDIR", MOBILENET), context())
    seen = counted(monkeypatch)
    first = resized(made, [(2, 3, 96, 96)])
    assert first.session is not made.session
    assert seen == [{"x": [None, 3, None, None]}]
    second = resized(first, [(4, 3, 64, 64)])
    assert second.session is first.session
    assert second.outputs[0].shape == (4, 10)
    assert len(seen) == 1


def test_the_same_shape_again_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    made = build(ModelInput("MINDIR", MOBILENET), context())
    seen = counted(monkeypatch)
    assert resized(made, [(1, 3, 64, 64)]).session is made.session
    assert seen == []


def test_a_layer_that_needs_its_size_gets_a_session_for_just_that_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The weights of ResizeArea are constants, made for one size."""
    net = Net()
    y = net.call("ResizeArea", net.input("x", (1, 4, 4, 1)), net.constant((2, 2)))
    path = written(tmp_path / "area.mindir", encode(net.model(y)))
    made = build(ModelInput("MINDIR", path), context())
    seen = counted(monkeypatch)
    changed = resized(made, [(1, 6, 8, 1)])
    assert seen == [{"x": [1, None, None, 1]}, {"x": [1, 6, 8, 1]}]
    x = np.arange(48, dtype=np.float32).reshape(1, 6, 8, 1)
    (got,) = changed.session.run([x])
    np.testing.assert_allclose(got, x.reshape(1, 2, 3, 2, 4, 1).mean((2, 4)), rtol=1e-6)


@pytest.mark.parametrize(
    ("dims", "words"),
    [
        ((2, 3, 64), r"has 4 dims \[1, 3, 64, 64\], got \[2, 3, 64\]"),
        ((2, 3, 64, 64, 1), "has 4 dims"),
        ((), "has 4 dims"),
        ((-1, 3, 64, 64), r"got \[-1, 3, 64, 64\]; every dim must be 1 or more"),
        ((0, 3, 64, 64), "every dim must be 1 or more"),
        ((2**31, 3, 64, 64), "every dim must be"),
        ((1, 4, 64, 64), "cannot take the shapes"),
    ],
)
def test_shapes_that_the_model_cannot_take_are_refused(dims: tuple[int, ...], words: str) -> None:
    made = build(ModelInput("MINDIR", MOBILENET), context())
    with pytest.raises(LiteError, match=words) as caught:
        resized(made, [dims])
    assert isinstance(caught.value, ShapeError)


def test_sizes_fixed_inside_the_layers_are_refused_as_a_shape() -> None:
    made = build(ModelInput("MINDIR", SWIN), context())
    with pytest.raises(ShapeError, match="sizes that its layers fixed at export cannot change"):
        resized(made, [(2, 3, 64, 64)])


@pytest.mark.parametrize("change", ["replaced", "rewritten", "removed"])
def test_a_file_exchanged_after_the_build_is_noticed(dense: Path, change: str) -> None:
    made = build(ModelInput("MINDIR", dense), context())
    if change == "replaced":
        os.replace(written(dense.with_name("new"), dense_net(factor=2)), dense)
    elif change == "rewritten":
        dense.write_bytes(dense_net(rows=5))
    else:
        dense.unlink()
    words = "No such file" if change == "removed" else "changed since it was built; build it again"
    with pytest.raises(LiteError, match=words):
        resized(made, [(7, 3)])


def test_free_dims_still_change_when_the_file_is_gone(tmp_path: Path) -> None:
    path = written(tmp_path / "free.mindir", dense_net(rows=-1))
    made = build(ModelInput("MINDIR", path), context())
    path.unlink()
    assert resized(made, [(7, 3)]).outputs[0].shape == (7, 4)


def test_built_is_a_record_that_does_not_change(dense: Path) -> None:
    made = build(ModelInput("MINDIR", dense), context())
    with pytest.raises(AttributeError):
        made.given = ModelInput("ONNX")  # type: ignore[misc]
    assert isinstance(made, Built)


# --- other weights --------------------------------------------------------------------------------

W = ("w",)


def weight(factor: float) -> dict[str, np.ndarray]:
    return {"w": np.full((3, 4), factor, np.float32)}


def gives(session: Any, rows: int) -> float:
    (y,) = session.run([np.ones((rows, 3), np.float32)])
    assert y.shape == (rows, 4)
    (value,) = np.unique(y)
    return float(value)


def test_an_update_is_another_model_and_the_first_goes_on(dense: Path) -> None:
    first = build(ModelInput("MINDIR", dense), context(thread_num=2), *W)
    second = updated(first, weight(2))
    third = updated(second, {})
    assert [gives(one.session, 2) for one in (first, second, third)] == [4, 7, 4]
    assert [one.version for one in (first, second, third)] == [0, 1, 2]
    assert second.options is first.options
    assert second.inputs == first.inputs


def test_an_update_of_a_resized_model_keeps_its_sizes(dense: Path) -> None:
    first = resized(build(ModelInput("MINDIR", dense), context(), *W), [(5, 3)])
    second = updated(first, weight(2))
    assert gives(second.session, 5) == 7
    assert second.inputs[0].shape == (5, 3)
    assert second.outputs[0].shape == (5, 4)


def test_sizes_that_were_resized_to_once_stay_open_after_an_update(
    dense: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = resized(build(ModelInput("MINDIR", dense), context(), *W), [(5, 3)])
    second = updated(first, weight(2))
    seen = counted(monkeypatch)
    third = resized(second, [(7, 3)])
    assert third.session is second.session
    assert seen == []


def test_a_session_for_any_shape_has_the_weights_of_its_model(dense: Path) -> None:
    first = build(ModelInput("MINDIR", dense), context(), *W)
    old, new = any_shape(first), any_shape(updated(first, weight(2)))
    assert [gives(session, 5) for session in (old, new)] == [4, 7]


def test_an_update_is_of_the_model_that_was_built_whatever_the_file_is_now(dense: Path) -> None:
    first = build(ModelInput("MINDIR", dense), context(), *W)
    dense.write_bytes(dense_net(rows=3))
    second = updated(first, weight(2))
    assert gives(second.session, 2) == 7
    with pytest.raises(ShapeError, match="changed since it was built; build it again"):
        resized(second, [(5, 3)])


def test_sizes_that_were_met_before_an_update_need_no_file_after_it(dense: Path) -> None:
    first = build(ModelInput("MINDIR", dense), context(), *W)
    faces = [any_shape(first)]
    assert gives(faces[0], 5) == 4
    dense.unlink()
    for number in (2, 3):
        made = updated(first, weight(number))
        faces.append(any_shape_updated(faces[-1], made))
        assert gives(faces[-1], 2) == 3 * number + 1  # the first time, 5 rows are not asked for
    assert gives(faces[-1], 5) == 10
    assert gives(faces[0], 5) == 4
    with pytest.raises(ShapeError, match="gets 4 features and has weights for 3"):
        faces[-1].run([np.ones((1, 4), np.float32)])
