"""passes/remove_dead.py: what nothing depends on."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
from support.onnx_graphs import BOOL, F32, assert_same, body, feeds_for, model, node, ops

from mindspore_lite.passes.remove_dead import remove_dead

X = ("x", F32, (2, 3))
W = np.ones(3, np.float32)


def test_nodes_and_weights_that_nobody_uses_go() -> None:
    nodes = [
        node("Add", ["x", "w"], ["y"]),
        node("Mul", ["x", "v"], ["a"]),
        node("Neg", ["a"], ["b"]),
    ]
    old = model(nodes, [X], ["y"], w=W, v=W)
    new = ir.from_proto(old)
    assert remove_dead(new) == 2
    assert ops(new) == ["Add"]
    assert list(new.graph.initializers) == ["w"]
    assert_same(new, old, feeds_for(old))


def test_inputs_stay_even_when_nobody_uses_them() -> None:
    new = ir.from_proto(model([node("Neg", ["x"], ["y"])], [X, ("z", F32, (1,))], ["y"]))
    remove_dead(new)
    assert [i.name for i in new.graph.inputs] == ["x", "z"]


def test_a_weight_that_is_an_output_stays() -> None:
    new = ir.from_proto(model([node("Neg", ["x"], ["y"])], [X], ["y", "w"], w=W))
    remove_dead(new)
    assert list(new.graph.initializers) == ["w"]


def test_bodies_are_cleaned_too() -> None:
    yes = body(
        [node("Neg", ["x"], ["t"]), node("Mul", ["x", "k"], ["d"])], [], [("t", F32, None)], k=W
    )
    no = body([node("Add", ["x", "w"], ["e"])], [], [("e", F32, None)])
    old = model(
        [node("If", ["go"], ["y"], then_branch=yes, else_branch=no)],
        [X, ("go", BOOL, ())],
        ["y"],
        w=W,
    )
    new = ir.from_proto(old)
    assert remove_dead(new) == 1
    assert not new.graph[0].attributes["then_branch"].as_graph().initializers
    assert list(new.graph.initializers) == ["w"]
    assert_same(new, old, feeds_for(old) | {"go": np.array(True)})


def test_outputs_of_nodes_that_nobody_uses_go() -> None:
    new = ir.from_proto(model([node("Dropout", ["x"], ["y", "mask"])], [X], ["y"]))
    remove_dead(new)
    assert len(new.graph[0].outputs) == 1


def test_training_stays_training() -> None:
    """Without its other outputs, an old BatchNormalization would compute something else."""
    weights = {name: W for name in ("s", "b", "m", "v")}
    nodes = [
        node("BatchNormalization", ["x", "s", "b", "m", "v"], ["y", "mean", "var"], training_mode=1)
    ]
    old = model(nodes, [X], ["y"], **weights)
    new = ir.from_proto(old)
    remove_dead(new)
    assert new.graph[0].attributes["training_mode"].value == 1
