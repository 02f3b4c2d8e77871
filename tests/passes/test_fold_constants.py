"""passes/fold_constants.py: what is computed beforehand, and what is left alone."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.onnx_graphs import F32, I64, assert_same, feeds_for, model, node, ops

from mindspore_lite.passes.fold_constants import FOLDABLE, MAX_BYTES, fold_constants
from mindspore_lite.passes.infer_shapes import infer_shapes
from mindspore_lite.passes.remove_dead import remove_dead

ANY = ("y", F32, None)


def folded(proto: object) -> ir.Model:
    made = ir.from_proto(proto)
    infer_shapes(made)
    fold_constants(made)
    remove_dead(made)
    return made


def flattening(batch: int | str) -> object:
    """x.reshape(x.shape[0], -1), as exporters write it."""
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "zero"], ["n"], axis=0),
        node("Unsqueeze", ["n", "axes"], ["n1"]),
        node("Concat", ["n1", "rest"], ["target"], axis=0),
        node("Reshape", ["x", "target"], ["y"]),
    ]
    weights = {"zero": np.array(0), "axes": np.array([0]), "rest": np.array([-1])}
    return model(nodes, [("x", F32, (batch, 3, 4))], [ANY], **weights)


@pytest.mark.parametrize("batch", [5, "n"])
def test_the_shape_arithmetic_of_a_flattening_disappears(batch: int | str) -> None:
    old = flattening(batch)
    new = folded(old)
    assert [op for op in ops(new) if op != "Constant"] == ["Reshape"]
    for size in (1, 5) if batch == "n" else (5,):
        assert_same(new, old, feeds_for(old, open_dim=size))


def test_dims_that_a_reshape_takes_over_are_zero() -> None:
    """(n, s, 6) -> (n, s, 2, 3): neither n nor s is known, and both stay where they are."""
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Slice", ["s", "zero", "two"], ["front"]),
        node("Concat", ["front", "heads"], ["target"], axis=0),
        node("Reshape", ["x", "target"], ["y"]),
    ]
    weights = {"zero": np.array([0]), "two": np.array([2]), "heads": np.array([2, 3])}
    old = model(nodes, [("x", F32, ("n", "s", 6))], [ANY], **weights)
    new = folded(old)
    assert [op for op in ops(new) if op != "Constant"] == ["Reshape"]
    for sizes in ((2, 5), (1, 1), (0, 4)):
        assert_same(new, old, {"x": np.ones((*sizes, 6), np.float32)})


def test_dims_that_move_are_left_to_the_run() -> None:
    """(n, s, 6) -> (s, n, 6) by Reshape: two open dims, neither in its place."""
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "order"], ["target"], axis=0),
        node("Reshape", ["x", "target"], ["y"]),
    ]
    old = model(nodes, [("x", F32, ("n", "s", 6))], [ANY], order=np.array([1, 0, 2]))
    assert_same(folded(old), old, {"x": np.arange(36, dtype=np.float32).reshape(2, 3, 6)})


@pytest.mark.parametrize("allowzero", [0, 1])
def test_a_size_of_zero_stays_one(allowzero: int) -> None:
    """Reshape (0, n) -> (n, 0) by its shape: a 0 in the target may mean what the operand has."""
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "order"], ["target"], axis=0),
        node("Reshape", ["x", "target"], ["y"], allowzero=allowzero),
    ]
    for order, dims in (([0, 1], (0, "n")), ([0, 1], ("n", 0))):
        old = model(nodes, [("x", F32, dims)], [ANY], order=np.array(order))
        x = np.ones([2 if d == "n" else d for d in dims], np.float32)
        assert_same(folded(old), old, {"x": x})


def test_inputs_that_are_left_out_are_left_out() -> None:
    high = [node("Clip", ["c", "", "high"], ["k"]), node("Add", ["x", "k"], ["y"])]
    old = model(high, [("x", F32, (3,))], [ANY], c=A[1], high=np.array(4.5, np.float32))
    new = folded(old)
    assert ops(new) == ["Add"]
    assert_same(new, old, feeds_for(old))
    skip = [node("Slice", ["c", "s", "e", "", "t"], ["k"]), node("Add", ["x", "k"], ["y"])]
    bounds = {"s": np.array([0]), "e": np.array([3]), "t": np.array([2])}
    old = model(skip, [("x", F32, (2,))], [ANY], c=A[1], **bounds)
    assert_same(folded(old), old, feeds_for(old))


def test_known_dims_of_an_open_shape_are_numbers() -> None:
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "one"], ["channels"], axis=0),
        node("Cast", ["channels"], ["f"], to=F32),
        node("Sqrt", ["f"], ["root"]),
        node("Div", ["x", "root"], ["y"]),
    ]
    old = model(nodes, [("x", F32, ("n", 16))], [ANY], one=np.array(1))
    new = folded(old)
    assert [op for op in ops(new) if op != "Constant"] == ["Div"]
    assert_same(new, old, feeds_for(old))


@pytest.mark.parametrize(("start", "end"), [(0, None), (1, None), (-2, -1), (1, 3)])
def test_parts_of_a_shape(start: int, end: int | None) -> None:
    limits = {"start": start} | ({} if end is None else {"end": end})
    nodes = [node("Shape", ["x"], ["s"], **limits), node("Identity", ["s"], ["y"])]
    old = model(nodes, [("x", F32, (2, 3, 4))], [("y", I64, None)])
    new = folded(old)
    assert ops(new) == ["Constant"]
    assert_same(new, old, feeds_for(old))


def constants(op: str, *arrays: np.ndarray, **attributes: object) -> object:
    """y = x + op(arrays) with arrays that become float32."""
    names = [f"c{at}" for at in range(len(arrays))]
    nodes = [
        node(op, names, ["r"], **attributes),
        node("Cast", ["r"], ["f"], to=F32),
        node("Add", ["x", "f"], ["y"]),
    ]
    weights = dict(zip(names, arrays, strict=True))
    return model(nodes, [("x", F32, (1,))], [ANY], **weights)


A = np.array([[1, -2, 3], [4, 5, -6]], np.float32)
INTS = np.array([7, -7, 5, 0])
CASES = [
    ("Add", (A, A[0])),
    ("Sub", (A, A)),
    ("Mul", (A, A[:, :1])),
    ("Div", (A, A[0])),
    ("Pow", (A, A[0])),
    ("Div", (INTS, np.array([2, 2, -3, 4]))),
    ("Mod", (INTS, np.array([3, 3, -3, 2]))),
    ("Mod", (A, A[0] + 0.5), {"fmod": 1}),
    ("Neg", (A,)),
    ("Abs", (A,)),
    ("Exp", (A,)),
    ("Log", (abs(A),)),
    ("Sqrt", (abs(A),)),
    ("Floor", (A / 4,)),
    ("Ceil", (A / 4,)),
    ("Round", (A / 4,)),
    ("Sign", (A,)),
    ("Sin", (A,)),
    ("Cos", (A,)),
    ("Tanh", (A,)),
    ("Sigmoid", (A,)),
    ("Relu", (A,)),
    ("Reciprocal", (A,)),
    ("Clip", (A, np.float32(-1), np.float32(2))),
    ("Max", (A, A[0])),
    ("Min", (A, A[0])),
    ("Mean", (A, A)),
    ("Sum", (A, A[0], A)),
    ("Equal", (A, A[0])),
    ("Less", (A, A[0])),
    ("LessOrEqual", (A, A[0])),
    ("Greater", (A, A[0])),
    ("GreaterOrEqual", (A, A[0])),
    ("Not", (A > 0,)),
    ("And", (A > 0, A > 2)),
    ("Or", (A > 0, A > 2)),
    ("Xor", (A > 0, A > 2)),
    ("Where", (A > 0, A, A[0])),
    ("Cast", (A,), {"to": I64}),
    ("Cast", (A,), {"to": 10}),
    ("Reshape", (A, np.array([3, -1]))),
    ("Transpose", (A,)),
    ("Transpose", (A,), {"perm": [1, 0]}),
    ("Trilu", (A,)),
    ("Trilu", (A, np.array(-1)), {"upper": 0}),
    ("Flatten", (A,), {"axis": 0}),
    ("Squeeze", (A[None], np.array([0]))),
    ("Unsqueeze", (A, np.array([0, 3]))),
    ("Concat", (A, A), {"axis": 1}),
    ("Concat", (A, A), {"axis": -2}),
    ("Slice", (A, np.array([2]), np.array([-9]), np.array([1]), np.array([-1]))),
    ("Slice", (A, np.array([0, 1]), np.array([1, 9]))),
    ("Gather", (A, np.array([[1, -1]])), {"axis": 1}),
    ("GatherElements", (A, np.array([[0, 1, 0]]))),
    ("GatherND", (A, np.array([[0, 1], [1, 2]]))),
    ("Expand", (A[:, :1], np.array([2, 2, 4]))),
    ("Tile", (A, np.array([2, 1]))),
    ("ConstantOfShape", (np.array([2, 3]),)),
    ("Range", (np.array(7), np.array(0), np.array(-2))),
    ("Range", (np.float32(0), np.float32(1), np.float32(0.3))),
    ("Shape", (A,)),
    ("Size", (A,)),
    ("ReduceSum", (A, np.array([1]))),
    ("ReduceMean", (A, np.array([0])), {"keepdims": 0}),
    ("ReduceMax", (A,)),
    ("ReduceMin", (A, np.array([-1]))),
    ("ReduceProd", (A, np.array([0, 1]))),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_a_folded_operator_has_the_result_of_the_engine(case: tuple) -> None:
    op, arrays, attributes = (*case, {})[:3]
    old = constants(op, *arrays, **attributes)
    new = folded(old)
    assert [found for found in ops(new) if found != "Constant"] == ["Add"]
    assert_same(new, old, {"x": np.ones(1, np.float32)})


def test_every_operator_that_is_folded_has_a_case() -> None:
    assert {case[0] for case in CASES} == FOLDABLE


@pytest.mark.parametrize(
    ("op", "arrays"),
    [
        ("Expand", (np.ones(1, np.float32), np.array([1 << 14, 1 << 14]))),
        ("ConstantOfShape", (np.array([1 << 14, 1 << 14]),)),
        ("Tile", (np.ones((1, 1), np.float32), np.array([1 << 14, 1 << 14]))),
        ("Range", (np.array(0), np.array(1 << 40), np.array(1))),
        ("Add", (np.ones((1 << 14, 1), np.float32), np.ones((1, 1 << 14), np.float32))),
        ("Gather", (np.ones((1, 1 << 14), np.float32), np.zeros(1 << 14, np.int64))),
        ("GatherND", (np.ones((1, 1 << 14), np.float32), np.zeros((1 << 14, 1), np.int64))),
    ],
)
def test_what_would_grow_beyond_the_limit_is_not_made(op: str, arrays: tuple) -> None:
    assert op in ops(folded(constants(op, *arrays)))


def test_large_weights_are_not_read() -> None:
    old = constants("Neg", np.ones(MAX_BYTES // 4 + 1, np.float32))
    assert "Neg" in ops(folded(old))


def test_random_numbers_are_never_folded() -> None:
    nodes = [
        node("RandomNormal", [], ["r"], shape=[3]),
        node("RandomUniformLike", ["c"], ["u"]),
        node("Add", ["r", "u"], ["y"]),
    ]
    new = folded(model(nodes, [], [ANY], c=np.ones(3, np.float32)))
    assert ops(new) == ["RandomNormal", "RandomUniformLike", "Add"]


def test_quantisation_stays() -> None:
    nodes = [node("DequantizeLinear", ["w", "s"], ["f"]), node("MatMul", ["x", "f"], ["y"])]
    weights = {"w": np.ones((3, 3), np.int8), "s": np.array(0.5, np.float32)}
    old = model(nodes, [("x", F32, (2, 3))], [ANY], **weights)
    assert ops(folded(old)) == ["DequantizeLinear", "MatMul"]


def test_a_division_by_zero_is_left_to_the_engine() -> None:
    assert "Div" in ops(folded(constants("Div", np.array([1]), np.array([0]))))


def test_a_weight_keeps_its_name_through_a_folded_node() -> None:
    nodes = [node("Transpose", ["w"], ["t"]), node("MatMul", ["x", "t"], ["y"])]
    old = model(nodes, [("x", F32, (2, 3))], [ANY], w=np.arange(12, dtype=np.float32).reshape(4, 3))
    new = folded(old)
    assert ops(new) == ["MatMul"]
    assert list(new.graph.initializers) == ["w"]
    assert_same(new, old, feeds_for(old))


def test_a_weight_that_others_use_stays_as_it_is() -> None:
    nodes = [
        node("Transpose", ["w"], ["t"]),
        node("MatMul", ["x", "t"], ["a"]),
        node("MatMul", ["a", "w"], ["y"]),
    ]
    old = model(nodes, [("x", F32, (2, 3))], [ANY], w=np.arange(12, dtype=np.float32).reshape(4, 3))
    new = folded(old)
    assert new.graph.initializers["w"].shape == (4, 3)
    assert_same(new, old, feeds_for(old))


def test_an_output_that_is_constant_keeps_its_name() -> None:
    old = model([node("Neg", ["c"], ["y"])], [], [ANY], c=np.ones(3, np.float32))
    new = folded(old)
    assert ops(new) == ["Constant"]
    assert_same(new, old, {})


def test_nodes_of_bodies_are_folded() -> None:
    from support.onnx_graphs import BOOL, body

    inner = [node("Neg", ["c"], ["n"]), node("Add", ["x", "n"], ["t"])]
    yes = body(inner, [], [("t", F32, None)])
    no = body([node("Neg", ["x"], ["e"])], [], [("e", F32, None)])
    old = model(
        [node("If", ["go"], ["y"], then_branch=yes, else_branch=no)],
        [("x", F32, (3,)), ("go", BOOL, ())], [ANY], c=np.ones(3, np.float32),
    )  # fmt: skip
    new = folded(old)
    assert "Neg" not in [n.op_type for n in new.graph[0].attributes["then_branch"].as_graph()]
    for go in (True, False):
        assert_same(new, old, feeds_for(old) | {"go": np.array(go)})


def test_a_weight_that_callers_may_replace_is_no_constant() -> None:
    old = model([node("Neg", ["c"], ["y"])], [("c", F32, (3,))], [ANY], c=np.ones(3, np.float32))
    assert ops(folded(old)) == ["Neg"]


@settings(max_examples=60, deadline=None)
@given(
    dims=st.lists(
        st.one_of(st.integers(1, 4), st.sampled_from(["a", "b"])), min_size=1, max_size=4
    ),
    picks=st.lists(st.integers(0, 3), min_size=1, max_size=4),
    merged=st.booleans(),
)
def test_whatever_is_taken_from_a_shape_is_right(
    dims: list[int | str], picks: list[int], merged: bool
) -> None:
    """Reshape to dims of the operand in any order, the last one open or not."""
    picks = [at % len(dims) for at in picks]
    sizes = [{"a": 2, "b": 3}.get(d, d) for d in dims]  # type: ignore[call-overload]
    nodes = [node("Shape", ["x"], ["s"]), node("Gather", ["s", "at"], ["picked"], axis=0)]
    if merged:
        nodes.append(node("Concat", ["picked", "rest"], ["target"], axis=0))
    nodes.append(node("Expand", ["one", "target" if merged else "picked"], ["grown"]))
    nodes.append(node("Reshape", ["grown", "target" if merged else "picked"], ["y"]))
    weights = {"at": np.array(picks), "rest": np.array([2]), "one": np.ones(1, np.float32)}
    old = model(nodes, [("x", F32, dims)], [ANY, ("picked", I64, None)], **weights)
    assert_same(folded(old), old, {"x": np.ones(sizes, np.float32)})
