"""Graphs that OpenVINO would compute wrongly: mended, or refused with the place named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from support.onnx_graphs import BOOL, F32, I64, model, node

from mindspore_lite.engines.base import ModelSource, Options
from mindspore_lite.engines.openvino.engine import OpenVinoEngine
from mindspore_lite.errors import LiteError, UnsupportedOpError

ENGINE = OpenVinoEngine()
MakeSource = Callable[[onnx.ModelProto], ModelSource]


@pytest.mark.parametrize("op", ["Greater", "GreaterOrEqual", "Less", "LessOrEqual"])
def test_comparisons_with_nan_are_false(op: str, source_of: MakeSource) -> None:
    ends = [("a", F32, [4]), ("b", F32, [4])], [("y", BOOL, [4])]
    session = ENGINE.load(source_of(model([node(op, ["a", "b"], ["y"])], *ends)), Options())
    a = np.array([np.nan, 1, 2, 3], np.float32)
    b = np.array([1, np.nan, 3, 2], np.float32)
    less = op.startswith("Less")
    np.testing.assert_array_equal(session.run([a, b])[0], [False, False, less, not less])


def test_equal_values_keep_their_order(source_of: MakeSource) -> None:
    top = node("TopK", ["x", "k"], ["v", "i"], axis=0)
    made = model(
        [top], [("x", F32, [6])], [("v", F32, [6]), ("i", I64, [6])], k=np.array([6], np.int64)
    )
    session = ENGINE.load(source_of(made), Options())
    _, places = session.run([np.array([1, 2, 2, 1, 2, 1], np.float32)])
    np.testing.assert_array_equal(places, [1, 2, 4, 0, 3, 5])


def test_a_stored_lstm_computes_what_it_did(
    source_of: MakeSource, cache_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    weights = {
        "w": rng.random((1, 32, 4), np.float32), "r": rng.random((1, 32, 8), np.float32)
    }  # fmt: skip
    lstm = node("LSTM", ["x", "w", "r"], ["y"], hidden_size=8)
    made = source_of(model([lstm], [("x", F32, [3, 2, 4])], ["y"], **weights))
    x = rng.random((3, 2, 4), np.float32)
    monkeypatch.setenv("MSLITE_CACHE", "off")
    (wanted,) = ENGINE.load(made, Options()).run([x])
    monkeypatch.setenv("MSLITE_CACHE", "on")
    for _ in range(2):
        np.testing.assert_array_equal(ENGINE.load(made, Options()).run([x])[0], wanted)
    assert list(cache_place.glob("*/weights.bin"))


def average(**attributes: Any) -> onnx.ModelProto:
    pool = node("AveragePool", ["x"], ["y"], kernel_shape=[2], name="pool", **attributes)
    return model([pool], [("x", F32, [1, 1, 5])], ["y"])


def resize(**attributes: Any) -> onnx.ModelProto:
    made = node("Resize", ["x", "", "s"], ["y"], name="resize", mode="cubic", **attributes)
    return model([made], [("x", F32, [1, 1, 4, 4])], ["y"], s=np.array([1, 1, 2, 2], np.float32))


def tile() -> onnx.ModelProto:
    made = node("Tile", ["x", "n"], ["y"], name="tile")
    return model([made], [("x", F32, [2]), ("n", I64, [1])], ["y"])


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (average(ceil_mode=1, count_include_pad=1), r"AveragePool with ceil_mode .* \(at pool\)"),
        (resize(exclude_outside=1), r"Resize with exclude_outside \(at resize\)"),
        (tile(), r"Tile by numbers that are an input \(at tile\)"),
    ],
)
def test_what_would_be_wrong_is_refused(
    made: onnx.ModelProto, words: str, source_of: MakeSource
) -> None:
    with pytest.raises(UnsupportedOpError, match=f"{words}; use .* engine=onnxruntime"):
        ENGINE.load(source_of(made), Options())


@pytest.mark.parametrize("made", [average(ceil_mode=1), average(count_include_pad=1), resize()])
def test_what_is_right_is_not(made: onnx.ModelProto, source_of: MakeSource) -> None:
    ENGINE.load(source_of(made), Options())


@pytest.mark.parametrize("axes", [[0, 0], [1, -1], [0, -2]])
def test_a_slice_with_an_axis_that_comes_twice_is_refused(
    axes: list[int], source_of: MakeSource
) -> None:
    """It writes behind its memory, of which a later run dies."""
    numbers = {name: np.array([1, 1], np.int64) for name in ("starts", "ends", "steps")}
    cut = node("Slice", ["x", "starts", "ends", "axes", "steps"], ["y"], name="cut")
    made = model([cut], [("x", F32, [4, 4])], ["y"], axes=np.array(axes, np.int64), **numbers)
    with pytest.raises(UnsupportedOpError, match=r"Slice with an axis that comes twice \(at cut\)"):
        ENGINE.load(source_of(made), Options())


def test_a_domain_of_a_high_version_is_not_counted_up_to(source_of: MakeSource) -> None:
    made = model([node("Neg", ["x"], ["y"])], [("x", F32, [2])], [("y", F32, [2])])
    made.opset_import.add(domain="com.microsoft", version=2**31 - 1)  # it would take minutes
    (y,) = ENGINE.load(source_of(made), Options()).run([np.ones(2, np.float32)])
    np.testing.assert_array_equal(y, [-1, -1])


@pytest.mark.parametrize("limits", [[], ["", "c"], ["c"]])
def test_a_clip_behind_what_cannot_be_read_is_an_error(
    limits: list[str], source_of: MakeSource
) -> None:
    """OpenVINO ended the process of it."""
    turn = node("Transpose", ["x"], ["v"], perm=[0, 1, 2])
    made = model(
        [turn, node("Clip", ["v", *limits], ["y"])],
        [("x", F32, [2, 3])],
        ["y"],
        c=np.array(3, np.float32),
    )
    with pytest.raises(LiteError):
        ENGINE.load(source_of(made), Options())


@pytest.mark.parametrize("kind", [np.float32, np.int32, np.int8, np.uint8])
@pytest.mark.parametrize("limits", [[], ["", "c"], ["c"]])
def test_a_clip_may_leave_limits_out(limits: list[str], kind: Any, source_of: MakeSource) -> None:
    onnx_type = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    made = model(
        [node("Clip", ["x", *limits], ["y"])],
        [("x", onnx_type, [3])],
        [("y", onnx_type, [3])],
        **({"c": np.array(3, kind)} if limits else {}),
    )
    x = np.array([0, 3, 100], kind)
    (y,) = ENGINE.load(source_of(made), Options()).run([x])
    wanted = {0: x, 1: np.maximum(x, 3), 2: np.minimum(x, 3)}[len(limits)]
    np.testing.assert_array_equal(y, wanted.astype(kind))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_gather_of_nothing_is_refused(axis: int, source_of: MakeSource) -> None:
    """OpenVINO ended the process of it."""
    pick = node("Gather", ["x", "i"], ["y"], axis=axis, name="pick")
    made = model([pick], [("x", F32, [2, 0, 3])], ["y"], i=np.array([0, 0], np.int64))
    with pytest.raises(UnsupportedOpError, match=r"a Gather of an array of shape \[2, 0, 3\]"):
        ENGINE.load(source_of(made), Options())


def test_a_constant_without_elements_keeps_its_dims(source_of: MakeSource) -> None:
    ends = [("x", F32, [2])], [("y", F32, [2]), ("none", F32, [0, 3])]
    nodes = [node("Neg", ["x"], ["y"]), node("Identity", ["w"], ["none"])]
    made = model(nodes, *ends, w=np.zeros((0, 3), np.float32))
    session = ENGINE.load(source_of(made), Options())
    assert session.run([np.ones(2, np.float32)])[1].shape == (0, 3)
