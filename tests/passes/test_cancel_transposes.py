"""passes/cancel_transposes.py: transpositions that undo each other."""

from __future__ import annotations

import itertools

import numpy as np
import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.onnx_graphs import F32, assert_same, feeds_for, model, node, ops

from mindspore_lite.passes.cancel_transposes import cancel_transposes
from mindspore_lite.passes.infer_shapes import infer_shapes
from mindspore_lite.passes.optimise import optimise
from mindspore_lite.passes.remove_dead import remove_dead

X = ("x", F32, (2, 3, 4, 5))
TO, BACK = [0, 2, 3, 1], [0, 3, 1, 2]


def cancelled(proto: object) -> ir.Model:
    made = ir.from_proto(proto)
    infer_shapes(made)
    cancel_transposes(made)
    remove_dead(made)
    return made


def turn(source: str, target: str, perm: list[int]) -> object:
    return node("Transpose", [source], [target], perm=perm)


def test_two_that_undo_each_other_go_by_optimising() -> None:
    nodes = [node("Neg", ["x"], ["a"]), turn("a", "b", TO), turn("b", "c", BACK)]
    old = model([*nodes, node("Neg", ["c"], ["y"])], [X], ["y"])
    new = ir.from_proto(old)
    optimise(new, "general")
    assert ops(new) == ["Neg", "Neg"]
    assert_same(new, old, feeds_for(old))


@settings(max_examples=24, deadline=None)
@given(st.lists(st.sampled_from(list(itertools.permutations(range(4)))), min_size=2, max_size=4))
def test_any_row_of_them_becomes_one_or_none(perms: list[tuple[int, ...]]) -> None:
    names = ["x", "a", "b", "c", "d"][: len(perms)] + ["y"]
    nodes = [turn(names[at], names[at + 1], list(p)) for at, p in enumerate(perms)]
    old = model(nodes, [X], ["y"])
    new = ir.from_proto(old)
    optimise(new, "general")
    assert len(new.graph) == 1
    assert_same(new, old, feeds_for(old))


def test_one_without_perm_turns_all_axes_round() -> None:
    old = model([node("Transpose", ["x"], ["a"]), node("Transpose", ["a"], ["b"]),
                 node("Neg", ["b"], ["y"])], [X], ["y"])  # fmt: skip
    new = ir.from_proto(old)
    optimise(new, "general")
    assert ops(new) == ["Neg"]
    assert_same(new, old, feeds_for(old))


def test_elementwise_operators_between_are_no_hindrance() -> None:
    nodes = [
        turn("x", "a", TO), node("Relu", ["a"], ["b"]), node("Clip", ["b", "low", "high"], ["c"]),
        node("Mul", ["c", "half"], ["d"]), turn("d", "e", BACK), node("Neg", ["e"], ["y"]),
    ]  # fmt: skip
    weights = {
        "low": np.array(0.1, np.float32),
        "high": np.array(2, np.float32),
        "half": np.full((1, 1), 0.5, np.float32),
    }
    old = model(nodes, [X], ["y"], **weights)
    new = cancelled(old)
    assert ops(new) == ["Relu", "Clip", "Mul", "Neg"]
    assert_same(new, old, feeds_for(old))


def test_both_sides_of_a_sum_are_followed() -> None:
    nodes = [
        node("Neg", ["x"], ["n"]), turn("x", "a", TO), turn("n", "b", TO),
        node("Sigmoid", ["a"], ["s"]), node("Mul", ["s", "b"], ["c"]), turn("c", "y", BACK),
    ]  # fmt: skip
    old = model(nodes, [X], ["y"])
    new = cancelled(old)
    assert ops(new) == ["Neg", "Sigmoid", "Mul"]
    assert_same(new, old, feeds_for(old))


@pytest.mark.parametrize(
    "middle",
    [
        [node("Softmax", ["a"], ["b"], axis=-1)],
        [node("Add", ["a", "row"], ["b"])],
        [node("Add", ["a", "x"], ["b"])],
        [node("Add", ["a", "wide"], ["b"])],
        [turn("x", "o", [0, 2, 1, 3]), node("Add", ["a", "o"], ["b"])],
    ],
    ids=["one axis counts", "a row", "an operand as it was", "a fifth axis", "another order"],
)
def test_operators_that_look_at_axes_are_a_hindrance(middle: list) -> None:
    x = ("x", F32, (2, 3, 3, 3))
    back = [0, 3, 1, 2] if "wide" not in str(middle) else [0, 1, 4, 2, 3]
    nodes = [turn("x", "a", TO), *middle, turn("b", "y", back)]
    weights = {"row": np.arange(3, dtype=np.float32), "wide": np.ones((1, 1, 1, 1, 1), np.float32)}
    old = model(nodes, [x], ["y"], **weights)
    new = cancelled(old)
    assert ops(new).count("Transpose") == ops(ir.from_proto(old)).count("Transpose")
    assert_same(new, old, feeds_for(old))


def test_a_value_that_others_use_stays_transposed() -> None:
    nodes = [
        turn("x", "a", TO),
        node("Relu", ["a"], ["b"]),
        turn("b", "c", BACK),
        node("Neg", ["c"], ["y"]),
    ]
    for outputs in (["y", "b"], ["y", "a"]):
        old = model(nodes, [X], outputs)
        assert_same(cancelled(old), old, feeds_for(old))


def test_between_input_and_output_an_identity_remains() -> None:
    old = model([turn("x", "a", TO), turn("a", "y", BACK)], [X], ["y"])
    new = ir.from_proto(old)
    optimise(new, "general")
    assert len(new.graph) == 1
    assert_same(new, old, feeds_for(old))
    inner = model(
        [turn("x", "a", TO), node("Relu", ["a"], ["b"]), turn("b", "y", BACK)], [X], ["y"]
    )
    assert ops(cancelled(inner)) == ["Relu"]
    assert_same(cancelled(inner), inner, feeds_for(inner))


def test_the_shapes_in_between_are_the_new_ones() -> None:
    nodes = [
        turn("x", "a", TO),
        node("Relu", ["a"], ["b"]),
        node("Tanh", ["b"], ["c"]),
        turn("c", "y", BACK),
    ]
    new = ir.from_proto(model(nodes, [X], ["y"]))
    optimise(new, "general")
    assert [n.outputs[0].shape == (2, 3, 4, 5) for n in new.graph] == [True, True]
