"""passes/remove_identities.py: what hands its input on goes, what only looks like it stays."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from support.onnx_graphs import BOOL, F32, I64, assert_same, body, feeds_for, model, node, ops

from mindspore_lite.passes.infer_shapes import infer_shapes
from mindspore_lite.passes.remove_identities import remove_identities

X = ("x", F32, (2, 3, 4))
OPEN = ("x", F32, ("n", 3, 4))
END = np.iinfo(np.int64).max


def between(op: str, *more: str, x: tuple = X, outputs: int = 1, **kept: object) -> object:
    """Neg(op(Neg(x)))."""
    weights = {k: v for k, v in kept.items() if isinstance(v, np.ndarray)}
    attributes = {k: v for k, v in kept.items() if k not in weights}
    nodes = [
        node("Neg", ["x"], ["a"]),
        node(op, ["a", *more], ["b", "b2", "b3"][:outputs], **attributes),
        node("Neg", ["b"], ["y"]),
    ]
    return model(nodes, [x], ["y"], **weights)


def cleaned(proto: object) -> ir.Model:
    made = ir.from_proto(proto)
    infer_shapes(made)
    remove_identities(made)
    return made


def f32(*shape: int, fill: float = 0) -> np.ndarray:
    return np.full(shape, fill, np.float32)


GONE = {
    "Identity": between("Identity"),
    "Dropout": between("Dropout"),
    "Dropout with a ratio": between("Dropout", "r", "t", r=f32(fill=0.5), t=np.array(False)),
    "Dropout with an unused mask": between("Dropout", outputs=2),
    "Cast": between("Cast", to=F32),
    "Resize": between("Resize", "", "s", s=f32(3, fill=1)),
    "Transpose": between("Transpose", perm=[0, 1, 2]),
    "Concat": between("Concat", axis=1),
    "Sum": between("Sum"),
    "Max": between("Max"),
    "Split": between("Split", "s", axis=2, s=np.array([4])),
    "Reshape": between("Reshape", "s", s=np.array([2, 3, 4])),
    "Reshape with an open dim": between("Reshape", "s", x=OPEN, s=np.array([-1, 3, 4])),
    "Reshape that takes over": between("Reshape", "s", x=OPEN, s=np.array([0, 3, -1])),
    "Expand": between("Expand", "s", s=np.array([1, 3, 1])),
    "Flatten": between("Flatten", x=("x", F32, ("n", 6)), axis=1),
    "Slice": between("Slice", "s", "e", s=np.array([0, 0]), e=np.array([2, 9])),
    "Slice of an open dim": between("Slice", "s", "e", x=OPEN, s=np.array([0]), e=np.array([END])),
    "Slice by axes": between(
        "Slice", "s", "e", "axes", "t", s=np.array([0]), e=np.array([4]), axes=np.array([-1]),
        t=np.array([1]),
    ),
    "Pad": between("Pad", "p", p=np.zeros(6, np.int64)),
    "Tile": between("Tile", "r", r=np.ones(3, np.int64)),
    "Add": between("Add", "c", c=f32()),
    "Sub": between("Sub", "c", c=f32(1)),
    "Mul": between("Mul", "c", c=f32(1, 1, fill=1)),
    "Div": between("Div", "c", c=f32(fill=1)),
}  # fmt: skip
STAYS = {
    "Dropout in training": between("Dropout", "r", "t", r=f32(fill=0.0), t=np.array(True)),
    "Transpose": between("Transpose", perm=[0, 2, 1]),
    "Transpose without perm": between("Transpose"),
    "Reshape": between("Reshape", "s", s=np.array([3, 2, 4])),
    "Reshape of two open dims": between(
        "Reshape", "s", x=("x", F32, ("n", "m", 4)), s=np.array([3, -1, 4])
    ),
    "Expand": between("Expand", "s", x=("x", F32, (1, 3)), s=np.array([2, 3])),
    "Slice from the second": between("Slice", "s", "e", s=np.array([1]), e=np.array([2])),
    "Slice up to the last": between("Slice", "s", "e", "axes", s=np.array([0]), e=np.array([-1]),
                                    axes=np.array([2])),
    "Slice backwards": between("Slice", "s", "e", "axes", "t", s=np.array([3]), e=np.array([-9]),
                               axes=np.array([2]), t=np.array([-1])),
    "Slice of an open dim": between("Slice", "s", "e", x=OPEN, s=np.array([0]), e=np.array([2])),
    "Pad": between("Pad", "p", p=np.array([0, 0, 0, 0, 0, 1])),
    "Tile": between("Tile", "r", r=np.array([1, 2, 1])),
    "Add of something": between("Add", "c", c=f32(fill=1)),
    "Add that widens": between("Add", "c", c=f32(1, 1, 1, 1)),
    "Add of more": between("Add", "c", c=f32(4)),
    "Mul by zero": between("Mul", "c", c=f32()),
}  # fmt: skip


@pytest.mark.parametrize("name", GONE)
def test_a_node_that_does_nothing_goes(name: str) -> None:
    new = cleaned(GONE[name])
    assert ops(new) == ["Neg", "Neg"]
    assert_same(new, GONE[name], feeds_for(GONE[name], open_dim=3))


@pytest.mark.parametrize("name", STAYS)
def test_a_node_that_does_something_stays(name: str) -> None:
    new = cleaned(STAYS[name])
    assert len(new.graph) == 3
    if "training" not in name:
        assert_same(new, STAYS[name], feeds_for(STAYS[name], open_dim=3))


def test_a_zero_taken_away_from_does_something() -> None:
    nodes = [node("Sub", ["c", "x"], ["y"]), node("Div", ["d", "x"], ["z"])]
    old = model(nodes, [X], ["y", "z"], c=f32(), d=f32(fill=1))
    new = cleaned(old)
    assert ops(new) == ["Sub", "Div"]


def test_a_neutral_number_may_stand_first() -> None:
    nodes = [node("Mul", ["c", "x"], ["a"]), node("Neg", ["a"], ["y"])]
    old = model(nodes, [X], ["y"], c=f32(fill=1))
    assert ops(cleaned(old)) == ["Neg"]


def test_a_second_reshape_makes_the_first_one_needless() -> None:
    nodes = [
        node("Reshape", ["x", "s"], ["a"]),
        node("Reshape", ["a", "t"], ["y"]),
    ]
    old = model(nodes, [X], ["y"], s=np.array([6, 4]), t=np.array([3, -1]))
    new = cleaned(old)
    assert new.graph[-1].inputs[0] is new.graph.inputs[0]
    assert_same(new, old, feeds_for(old))


def test_a_reshape_that_takes_dims_over_needs_what_was_before() -> None:
    nodes = [node("Reshape", ["x", "s"], ["a"]), node("Reshape", ["a", "t"], ["y"])]
    old = model(nodes, [X], ["y"], s=np.array([6, 4]), t=np.array([0, -1, 2]))
    assert_same(cleaned(old), old, feeds_for(old))


def test_the_names_of_inputs_and_outputs_stay() -> None:
    nodes = [
        node("Identity", ["x"], ["y"]),  # between input and output: must stay
        node("Neg", ["x"], ["a"]),
        node("Identity", ["a"], ["z"]),  # the Neg may take its name
        node("Identity", ["a"], ["z2"]),  # but not both
        node("Identity", ["w"], ["v"]),
    ]
    old = model(nodes, [X], ["y", "z", "z2", "v"], w=f32(3))
    new = cleaned(old)
    assert_same(new, old, feeds_for(old))
    assert list(new.graph.initializers) == ["w"]
    assert ops(new) == ["Identity", "Neg", "Identity", "Identity"]


def test_a_branch_that_hands_on_a_value_from_outside_keeps_its_identity() -> None:
    yes = body([node("Identity", ["a"], ["t"])], [], [("t", F32, None)])
    no = body([node("Neg", ["a"], ["n"]), node("Identity", ["n"], ["e"])], [], [("e", F32, None)])
    nodes = [node("Neg", ["x"], ["a"]), node("If", ["go"], ["y"], then_branch=yes, else_branch=no)]
    old = model(nodes, [X, ("go", BOOL, ())], ["y"])
    new = cleaned(old)
    for go in (True, False):
        assert_same(new, old, feeds_for(old) | {"go": np.array(go)})


def test_what_a_loop_carries_keeps_its_identity() -> None:
    loop = body(
        [node("Identity", ["go"], ["on"]), node("Identity", ["v"], ["w"]),
         node("Add", ["v", "one"], ["s"])],
        [("i", I64, ()), ("go", BOOL, ()), ("v", F32, (3,))],
        [("on", BOOL, ()), ("s", F32, (3,)), ("w", F32, (3,))],
    )  # fmt: skip
    old = model(
        [node("Loop", ["n", "c", "x"], ["y", "all"], body=loop)], [("x", F32, (3,))], ["y", "all"],
        n=np.array(3), c=np.array(True), one=f32(fill=1),
    )  # fmt: skip
    assert_same(cleaned(old), old, feeds_for(old))
