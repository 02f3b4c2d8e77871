"""border.py: types that callers use and the graph carries in another form."""

from __future__ import annotations

import json
from collections.abc import Callable

import ml_dtypes
import numpy as np
import onnx
import pytest
from engines.conftest import model, tensor
from onnx import helper

from mindspore_lite.core.tensor_info import TensorInfo
from mindspore_lite.engines.base import ModelSource, Options
from mindspore_lite.engines.onnxruntime.engine import OnnxRuntimeEngine
from mindspore_lite.engines.sessions.io_types import (
    KEY,
    declared,
    inner_shape,
    inward,
    outer_shape,
    outward,
    seen,
)
from mindspore_lite.errors import EngineError

PAIR = TensorInfo("x", np.dtype("float32"), (-1, 3, 2))


@pytest.mark.parametrize("name", ["complex64", "complex128"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0, 2)])
def test_complex_numbers_are_carried_as_pairs_without_a_copy(
    name: str, shape: tuple[int, ...]
) -> None:
    rng = np.random.default_rng(0)
    given = np.asarray(rng.random(shape) + 1j * rng.random(shape), name)
    inside = inward(given, name)
    assert inside.shape == (*shape, 2)
    assert np.shares_memory(inside, given) or not given.size
    np.testing.assert_array_equal(inside[..., 1], given.imag)
    back = outward(inside, name)
    assert (back.shape, back.dtype, back.flags.c_contiguous) == (shape, np.dtype(name), True)
    np.testing.assert_array_equal(back, given)


def test_bfloat16_is_carried_as_float32_and_rounded_on_the_way_out() -> None:
    given = np.array([1.5, -2], ml_dtypes.bfloat16)
    assert inward(given, "bfloat16").dtype == np.float32
    back = outward(np.array([1.001, -2], np.float32), "bfloat16")
    assert (back.dtype, back.tolist()) == (ml_dtypes.bfloat16, [1.0, -2.0])


def test_metadata_says_what_differs() -> None:
    text = json.dumps({"inputs": {"x": "bfloat16"}, "outputs": {}})
    assert declared({KEY: text}, "inputs") == {"x": "bfloat16"}
    assert declared({KEY: text}, "outputs") == declared({}, "inputs") == {}


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"inputs": 1}', '{"inputs": {"x": "int8"}}', '{"inputs": {"x": []}}']
)
def test_metadata_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(EngineError, match="makes no sense"):
        declared({KEY: text}, "inputs")


def test_callers_see_complex_numbers_without_the_last_axis() -> None:
    info = seen(PAIR, {"x": "complex64"})
    assert (info.dtype, info.shape) == (np.complex64, (-1, 3))
    assert inner_shape(info, (4, 3)) == (4, 3, 2)
    assert outer_shape(info, (4, 3, 2)) == (4, 3)
    assert seen(PAIR, {"y": "complex64"}) is PAIR
    assert inner_shape(PAIR, (4, 3, 2)) == outer_shape(PAIR, (4, 3, 2)) == (4, 3, 2)


@pytest.mark.parametrize(
    ("info", "name"),
    [
        (PAIR, "complex128"),
        (TensorInfo("x", np.dtype("float32"), (3,)), "complex64"),
        (TensorInfo("x", np.dtype("float32"), ()), "complex64"),
        (TensorInfo("x", np.dtype("int32"), (3,)), "bfloat16"),
    ],
)
def test_a_graph_that_cannot_carry_the_type_is_refused(info: TensorInfo, name: str) -> None:
    with pytest.raises(EngineError, match="cannot carry"):
        seen(info, {"x": name})


def test_a_session_takes_and_gives_complex_numbers(
    source_of: Callable[[onnx.ModelProto], ModelSource],
) -> None:
    ends = [tensor("x", ["n", 3, 2])], [tensor("y", ["n", 3, 2])]
    made = model([helper.make_node("Neg", ["x"], ["y"])], *ends)
    kinds = {"inputs": {"x": "complex64", "gone": "bfloat16"}, "outputs": {"y": "complex64"}}
    made.metadata_props.add(key=KEY, value=json.dumps(kinds))
    source = source_of(made)
    for _ in range(2):  # compiled, then from the cache
        session = OnnxRuntimeEngine().load(source, Options())
        assert [(i.dtype, i.shape) for i in session.info.inputs] == [(np.complex64, (-1, 3))]
        given = np.array([[1 + 2j, 3, -1j]], np.complex64)
        (y,) = session.run([given])
        assert y.dtype == np.complex64
        np.testing.assert_array_equal(y, -given)
