"""passes/follow_sizes.py: constants that hold sizes of inputs follow them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from support.onnx_graphs import F32, feeds_for, model, node, results

from mindspore_lite.errors import ShapeError
from mindspore_lite.passes import follow_sizes as module
from mindspore_lite.passes.fix_shapes import fix_shapes

W = np.linspace(-1, 1, 60, dtype=np.float32).reshape(12, 5)


def made(nodes: list[Any], shape: list[int | str], new: list[int], **weights: Any) -> list[Any]:
    """The outputs of a model after other sizes were set, on the data of support/onnx_graphs.py."""
    fixed = ir.from_proto(model(nodes, [("x", F32, shape)], ["y"], **weights))
    fix_shapes(fixed, {"x": new})
    proto = ir.to_proto(fixed)
    feeds = feeds_for(proto)
    return [feeds["x"], *results(proto, feeds).values()]


def test_targets_follow_one_after_the_other() -> None:
    nodes = [
        node("Reshape", ["x", "rows"], ["a"]),
        node("MatMul", ["a", "w"], ["b"]),
        node("Reshape", ["b", "back"], ["y"]),
    ]
    weights = {"rows": np.array([6, 12]), "back": np.array([2, 3, 5]), "w": W}
    x, y = made(nodes, [2, 3, 12], [7, 3, 12], **weights)
    np.testing.assert_allclose(y, x @ W, rtol=1e-5, atol=1e-5)


def test_a_constant_that_two_nodes_share_follows_in_one_alone() -> None:
    nodes = [
        node("Reshape", ["x", "s"], ["a"]),
        node("Reshape", ["w", "s"], ["b"]),
        node("Concat", ["a", "b"], ["y"], axis=0),
    ]
    _, y = made(nodes, [2, 3, 10], [5, 3, 10], s=np.array([2, 30]), w=W)
    assert y.shape == (7, 30)


def test_a_part_that_reached_the_end_still_does() -> None:
    ends = {"b": np.array([1, 0]), "e": np.array([3, 2])}
    x, y = made([node("Slice", ["x", "b", "e"], ["y"])], [3, 4], [9, 4], **ends)
    np.testing.assert_array_equal(y, x[1:, :2])


def test_a_part_of_named_axes_and_steps_follows() -> None:
    ends = {"b": np.array([0]), "e": np.array([4]), "a": np.array([-1]), "s": np.array([2])}
    x, y = made([node("Slice", ["x", "b", "e", "a", "s"], ["y"])], [3, 4], [3, 9], **ends)
    np.testing.assert_array_equal(y, x[:, ::2])


def test_an_expansion_follows_where_it_had_the_size() -> None:
    x, y = made([node("Expand", ["x", "s"], ["y"])], [2, 1], [5, 1], s=np.array([3, 2, 4]))
    assert y.shape == (3, 5, 4)
    np.testing.assert_array_equal(y[0, :, 0], x[:, 0])


def test_an_axis_that_was_not_resized_is_not_resized() -> None:
    nodes = [node("Resize", ["x", "", "", "s"], ["y"], mode="nearest")]
    _, y = made(nodes, [2, 1, 4, 4], [1, 1, 4, 4], s=np.array([2, 1, 8, 8]))
    assert y.shape == (1, 1, 8, 8)


def test_open_sizes_stay_open() -> None:
    nodes = [node("Mul", ["x", "z"], ["a"]), node("Reshape", ["a", "s"], ["y"])]
    ports = [("x", F32, (2, 1, 3)), ("z", F32, ("n", 3))]
    fixed = ir.from_proto(model(nodes, ports, ["y"], s=np.array([2, -1, 3, 1])))
    fix_shapes(fixed, {"x": [4, 1, 3]})
    assert [str(dim) for dim in fixed.graph.inputs[1].shape or ()] == ["n", "3"]
    feeds = {"x": np.ones((4, 1, 3), np.float32), "z": np.ones((6, 3), np.float32)}
    assert results(fixed, feeds)["y"].shape == (4, 6, 3, 1)


def test_a_node_whose_size_could_be_one_of_two_is_named() -> None:
    nodes = [
        node("Concat", ["x", "x"], ["a"], axis=0),
        node("Reshape", ["a", "s"], ["y"], name="heads"),
    ]
    with pytest.raises(ShapeError, match=r"node 'heads' \(Reshape\) makes \[2, 2, 3\] of \[4, 3\]"):
        made(nodes, [2, 3], [5, 3], s=np.array([2, 2, 3]))


def test_a_layer_that_cannot_follow_is_named() -> None:
    nodes = [node("MatMul", ["x", "w"], ["y"], name="dense")]
    with pytest.raises(ShapeError, match="dense"):
        made(nodes, [2, 12], [2, 13], w=W)


def test_chains_without_end_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ROUNDS", 1)
    nodes = [node("Reshape", ["x", "s"], ["a"]), node("Reshape", ["a", "t"], ["y"])]
    with pytest.raises(ShapeError, match="more than 1 layers that depend on each other"):
        made(nodes, [2, 6], [1, 6], s=np.array([2, 2, 3]), t=np.array([2, 6]))


def test_an_image_that_is_turned_is_no_silent_mistake() -> None:
    nodes = [
        node("Reshape", ["x", "flat"], ["a"]),
        node("Softmax", ["a"], ["b"], axis=-1),
        node("Reshape", ["b", "back"], ["y"]),
    ]
    weights = {"flat": np.array([1, 3, 24]), "back": np.array([1, 3, 4, 6])}
    with pytest.raises(ShapeError, match="more than one of its sizes could follow"):
        made(nodes, [1, 3, 4, 6], [1, 3, 6, 4], **weights)


def test_weights_of_the_turned_sizes_stay() -> None:
    nodes = [
        node("Reshape", ["w", "s"], ["a"]),
        node("Flatten", ["a"], ["b"], axis=0),
        node("Flatten", ["x"], ["c"], axis=0),
        node("Add", ["b", "c"], ["y"]),
    ]
    weights = {"w": W[:2, :5].copy().reshape(10), "s": np.array([2, 5])}
    x, y = made(nodes, [2, 5], [5, 2], **weights)
    np.testing.assert_allclose(y, W[:2, :5].reshape(1, 10) + x.reshape(1, 10))
