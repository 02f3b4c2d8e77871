"""passes/repeated_constants.py: constants that were repeated to the size of an input."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from support.onnx_graphs import F32, feeds_for, model, node, results

from mindspore_lite.errors import ShapeError
from mindspore_lite.passes.fix_shapes import fix_shapes

TOKEN = np.arange(4, dtype=np.float32).reshape(1, 1, 4)
BIG = np.arange(3 * 200, dtype=np.float32).reshape(1, 3, 200)


def made(nodes: list[Any], shape: list[int], new: list[int], **weights: Any) -> Any:
    """The input and the output of a model after another size was set."""
    fixed = ir.from_proto(model(nodes, [("x", F32, shape)], ["y"], **weights))
    fix_shapes(fixed, {"x": new})
    feeds = feeds_for(ir.to_proto(fixed))
    return feeds["x"], results(fixed, feeds)["y"]


@pytest.mark.parametrize("batch", [1, 5])
def test_a_token_is_expanded_to_the_new_batch(batch: int) -> None:
    nodes = [
        node("Expand", ["token", "sizes"], ["tokens"]),
        node("Concat", ["tokens", "x"], ["y"], axis=1),
    ]
    x, y = made(nodes, [2, 3, 4], [batch, 3, 4], token=TOKEN, sizes=np.array([2, 1, 4]))
    np.testing.assert_array_equal(y, np.concatenate([TOKEN.repeat(batch, 0), x], 1))


@pytest.mark.parametrize("batch", [1, 5])
def test_a_token_that_was_stored_for_the_batch_is_repeated_anew(batch: int) -> None:
    nodes = [node("Concat", ["tokens", "x"], ["y"], axis=-2)]
    x, y = made(nodes, [2, 3, 4], [batch, 3, 4], tokens=TOKEN.repeat(2, 0))
    np.testing.assert_array_equal(y, np.concatenate([TOKEN.repeat(batch, 0), x], 1))


def test_sizes_that_are_computed_of_constants_follow_too() -> None:
    """As the first exporter of PyTorch writes an expansion to -1."""
    nodes = [
        node("ConstantOfShape", ["three"], ["ones"], value=ir.to_proto(ir.tensor([1]))),
        node("Equal", ["sizes", "minus"], ["open"]),
        node("Where", ["open", "ones", "sizes"], ["target"]),
        node("Expand", ["token", "target"], ["tokens"]),
        node("Concat", ["tokens", "x"], ["y"], axis=1),
    ]
    _, y = made(
        nodes, [2, 3, 4], [5, 3, 4], token=TOKEN, three=np.array([3]),
        sizes=np.array([2, -1, -1]), minus=np.array([-1, -1, -1]),
    )  # fmt: skip
    assert y.shape == (5, 4, 4)


@pytest.mark.parametrize("batch", [1, 5])
def test_a_summand_that_was_stored_for_the_batch_is_repeated_anew(batch: int) -> None:
    nodes = [node("Add", ["x", "places"], ["y"])]
    x, y = made(nodes, [2, 3, 200], [batch, 3, 200], places=BIG.repeat(2, 0))
    np.testing.assert_allclose(y, x + BIG, rtol=1e-6)


def test_a_summand_of_the_old_batch_whose_rows_differ_is_an_error() -> None:
    rows = np.arange(8, dtype=np.float32).reshape(2, 4)
    nodes = [node("Add", ["x", "rows"], ["y"], name="shift")]
    with pytest.raises(ShapeError, match=r"node 'shift' \(Add\) has a constant of \[2, 4\]"):
        made(nodes, [2, 4], [1, 4], rows=rows)  # ONNX would give two rows
    with pytest.raises(ShapeError, match="shift"):
        made(nodes, [2, 4], [5, 4], rows=rows)


def test_what_broadcasts_stays() -> None:
    x, y = made([node("Mul", ["x", "w"], ["y"])], [2, 4], [5, 4], w=TOKEN[0])
    np.testing.assert_allclose(y, x * TOKEN[0], rtol=1e-6)
