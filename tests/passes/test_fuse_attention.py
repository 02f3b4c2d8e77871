"""passes/fuse_attention.py: attention as models spell it out, and what only looks like it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.attention import evaluated
from support.onnx_graphs import BOOL, F32, body, feeds_for, model, node, ops, results
from support.running import assert_close

from mindspore_lite.passes.fuse_attention import fuse_attention
from mindspore_lite.passes.infer_shapes import infer_shapes
from mindspore_lite.passes.remove_dead import remove_dead

F16 = onnx.TensorProto.FLOAT16
SDPA = "ScaledDotProductAttention"
QUERIES, KEYS, SIZE = 3, 3, 4
LOWER = np.tri(QUERIES, KEYS, dtype=bool)
NUMBERS: dict[str, Any] = {
    "half": 0.5, "two": 2.0, "row": [0.5], "zero": 0.0, "minus": -0.5, "nothing": -np.inf,
    "lowest": -3e38, "low": -1e9, "lowish": -3e4, "shallow": -5.0,
}  # fmt: skip
MASKS: dict[str, Any] = {
    "hidden": ~LOWER, "shown": LOWER, "some": np.array([[True, False, False]] * 3),
    "all": np.ones((3, 3), bool), "causal": np.where(LOWER, 0, -np.inf),
    "biased": np.where(LOWER, 0.25, -np.inf), "numbers": np.arange(9).reshape(3, 3) / 9,
}  # fmt: skip


def attention(
    steps: str,
    extra: Sequence[tuple[str, int, tuple[int | str, ...]]] = (),
    outputs: tuple[str, ...] = ("y",),
    lead: tuple[int | str, ...] = ("n", 2),
    kind: int = F32,
) -> onnx.ModelProto:
    """A model of lines like 's = MatMul q t'; t is k transposed, constants are known by name."""
    dtype = np.float16 if kind == F16 else np.float32
    rank = len(lead) + 2
    swap = [*range(rank - 2), rank - 1, rank - 2]
    nodes = []
    for line in ("t = Turn k; " + steps).split(";"):
        result, _, op, *inputs = line.split()
        more: dict[str, Any] = {"Turn": {"perm": swap}, "Softmax": {"axis": -1},
                "Cast16": {"to": F16}, "Cast32": {"to": F32}}.get(op, {})  # fmt: skip
        op = {"Turn": "Transpose", "Cast16": "Cast", "Cast32": "Cast", "First": "Softmax"}.get(
            op, op
        )
        nodes.append(node(op, inputs, [result], **more))
    used = {name for made in nodes for name in made.input}
    weights = {n: np.asarray(a, dtype) for n, a in NUMBERS.items() if n in used}
    for name in used & MASKS.keys():
        array = MASKS[name]
        weights[name] = array if array.dtype == bool else array.astype(dtype)
    ports = [
        ("q", kind, (*lead, QUERIES, SIZE)), ("k", kind, (*lead, KEYS, SIZE)),
        ("v", kind, (*lead, KEYS, SIZE)), *extra,
    ]  # fmt: skip
    return model(nodes, ports, [(name, kind, None) for name in outputs], **weights)


def fused(proto: onnx.ModelProto) -> ir.Model:
    made = ir.from_proto(proto)
    infer_shapes(made)
    fuse_attention(made)
    remove_dead(made)
    return made


def check(old: onnx.ModelProto, new: ir.Model) -> None:
    feeds = feeds_for(old)
    got, want = evaluated(new, feeds), results(old, feeds)
    for name, array in want.items():
        assert_close(got[name], array, name)


def the_node(new: ir.Model) -> ir.Node:
    (found,) = [n for n in new.graph if n.op_type == SDPA]
    return found


END = "; p = Softmax s; y = MatMul p v"
PLAIN = "s = MatMul q t"
SCALES = {
    "none": (PLAIN + END, 1.0),
    "on the scores": ("r = MatMul q t; s = Mul r half" + END, 0.5),
    "in front": ("r = MatMul q t; s = Mul half r" + END, 0.5),
    "a quotient": ("r = MatMul q t; s = Div r two" + END, 0.5),
    "of one row": ("r = MatMul q t; s = Mul r row" + END, 0.5),
    "on q": ("a = Mul q half; s = MatMul a t" + END, 0.5),
    "on k": ("b = Div t two; s = MatMul q b" + END, 0.5),
    "on both": ("a = Mul q half; b = Mul t half; s = MatMul a b" + END, 0.25),
    "on k before it is turned": ("a = Mul k half; b = Turn a; s = MatMul q b" + END, 1.0),
    "everywhere": ("a = Mul q half; r = MatMul a t; s = Mul r two" + END, 1.0),
}


@pytest.mark.parametrize("lead", [("n", 2), (2,), (1, 2)])
@pytest.mark.parametrize("name", SCALES)
def test_a_scale_is_found_wherever_it_stands(name: str, lead: tuple[int | str, ...]) -> None:
    steps, scale = SCALES[name]
    old = attention(steps, lead=lead)
    new = fused(old)
    assert the_node(new).attributes["scale"].as_float() == pytest.approx(scale)
    assert len(the_node(new).inputs) == 3
    assert "MatMul" not in ops(new)
    check(old, new)


SCALED = "r = MatMul q t; a = Mul r half; "
MASKED = {
    "added": ("s = Add a mask", F32, ("n", 1, 1, 3)),
    "added in front": ("s = Add mask a", F32, (3, 3)),
    "per head": ("s = Add a mask", F32, (1, 2, 3, 3)),
    "taken off": ("s = Sub a mask", F32, (3,)),
    "twice": ("b = Add a mask; s = Add b causal", F32, (3, 3)),
    "hidden": ("s = Where mask nothing a", BOOL, ("n", 1, 1, 3)),
    "hidden by a number": ("s = Where mask low a", BOOL, (3, 3)),
    "shown": ("s = Where mask a low", BOOL, ("n", 2, 3, 3)),
    "hidden and added": ("b = Where mask lowest a; s = Add b numbers", BOOL, (3, 3)),
}


@pytest.mark.parametrize("name", MASKED)
def test_a_mask_is_found_in_every_form(name: str) -> None:
    steps, kind, dims = MASKED[name]
    old = attention(SCALED + steps + END, [("mask", kind, dims)])
    new = fused(old)
    assert len(the_node(new).inputs) == 4
    assert the_node(new).attributes["is_causal"].as_int() == 0
    feeds = feeds_for(old)
    if kind == BOOL and "nothing" in steps:  # a row of nothing has no meaning
        feeds["mask"][..., 0] = False
    assert_close(evaluated(new, feeds)["y"], results(old, feeds)["y"], name)


def test_a_mask_before_the_scale_is_scaled() -> None:
    old = attention("r = MatMul q t; a = Add r mask; s = Mul a half" + END, [("mask", F32, (3, 3))])
    new = fused(old)
    assert the_node(new).attributes["scale"].as_float() == 0.5
    check(old, new)


def test_a_number_that_a_scale_makes_infinite_is_so() -> None:
    old = attention("r = MatMul q t; a = Where some lowest r; s = Mul a two" + END)
    new = fused(old)
    check(old, new)


def test_rows_that_a_number_hides_whole_are_the_mean() -> None:
    old = attention(SCALED + "s = Where all low a" + END)
    new = fused(old)
    assert the_node(new).op_type == SDPA
    check(old, new)


@pytest.mark.parametrize(
    "step",
    ["s = Add a causal", "s = Where hidden nothing a", "s = Where shown a low",
     "s = Where hidden low a"],
)  # fmt: skip
def test_a_constant_triangle_is_causal(step: str) -> None:
    old = attention(SCALED + step + END)
    new = fused(old)
    assert the_node(new).attributes["is_causal"].as_int() == 1
    assert len(the_node(new).inputs) == 3
    check(old, new)


@pytest.mark.parametrize(
    "step", ["s = Add a biased", "s = Add a numbers", "s = Where shown nothing a",
             "b = Where hidden lowest a; s = Add b numbers", "s = Where some nothing a"],
)  # fmt: skip
def test_other_constants_are_masks(step: str) -> None:
    old = attention(SCALED + step + END)
    new = fused(old)
    assert the_node(new).attributes["is_causal"].as_int() == 0
    assert len(the_node(new).inputs) == 4
    if step != "s = Where shown nothing a":  # its last query sees nothing
        check(old, new)


def test_rows_without_a_key_that_are_zeroed_may_be_fused() -> None:
    guard = "; p = Softmax s; n = IsNaN p; z = Where n zero p; y = MatMul z v"
    old = attention(SCALED + "s = Where mask nothing a" + guard, [("mask", BOOL, (3, 3))])
    new = fused(old)
    assert the_node(new).op_type == SDPA
    check(old, new)


def test_a_softmax_of_halves_in_float32_is_fused() -> None:
    steps = "r = MatMul q t; a = Mul r half; b = Add a numbers; s = Cast32 b; p = Softmax s; "
    old = attention(steps + "h = Cast16 p; y = MatMul h v", kind=F16)
    new = fused(old)
    assert ops(new) == [SDPA]
    check(old, new)


def test_a_dropout_is_passed_over() -> None:
    new = fused(attention(PLAIN + "; p = Softmax s; o = Dropout p; y = MatMul o v"))
    assert ops(new) == [SDPA]


STAYS = {
    "a softmax over queries": "r = MatMul q t; t2 = Turn r; s = Softmax t2; p = Turn s; "
    "y = MatMul p v",
    "v in front": PLAIN + "; p = Softmax s; y = MatMul v p",
    "a low number that is not low": SCALED + "s = Where hidden shallow a" + END,
    "a low number beside another mask": SCALED + "b = Where hidden low a; s = Add b numbers" + END,
    "a negative scale": "r = MatMul q t; s = Mul r minus" + END,
    "a bend": "r = MatMul q t; s = Tanh r" + END,
    "no scores": "s = Add q q; p = Softmax s; y = MatMul p t",
    "a product with weights": PLAIN + "; p = Softmax s; w = Mul p half; y = MatMul w v",
}


@pytest.mark.parametrize("name", STAYS)
def test_what_is_no_attention_stays(name: str) -> None:
    old = attention(STAYS[name])
    assert ops(fused(old)) == [n.op_type for n in old.graph.node]


@pytest.mark.parametrize("also", ["p", "s", "r", "a"])
def test_what_a_model_returns_is_computed(also: str) -> None:
    old = attention(SCALED + "s = Add a numbers" + END, outputs=("y", also))
    assert SDPA not in ops(fused(old))


def test_a_softmax_over_another_axis_stays() -> None:
    old = attention(PLAIN + END)
    old.graph.node[2].attribute[0].i = 2
    assert SDPA not in ops(fused(old))


def test_a_mask_of_more_axes_stays() -> None:
    old = attention(PLAIN + "; m = Add s mask; p = Softmax m; y = MatMul p v",
                    [("mask", F32, (2, 1, 1, 3, 3))])  # fmt: skip
    assert SDPA not in ops(fused(old))


def test_halves_hidden_by_a_number_stay_unless_each_row_has_a_key() -> None:
    steps = SCALED + "s = Where {} lowish a" + END
    open_mask = attention(steps.format("mask"), [("mask", BOOL, (3, 3))], kind=F16)
    assert SDPA not in ops(fused(open_mask))
    assert SDPA in ops(fused(attention(steps.format("some"), kind=F16)))


def keys(*nodes: Any, k: tuple[int | str, ...], **weights: Any) -> onnx.ModelProto:
    """Attention whose transposed keys 't' are made by nodes from k."""
    tail = [node("MatMul", ["q", "t"], ["s"]), node("Softmax", ["s"], ["p"], axis=3),
            node("MatMul", ["p", "v"], ["y"])]  # fmt: skip
    ports = [("q", F32, ("n", 2, 5, 4)), ("k", F32, k), ("v", F32, ("n", 2, 5, 4))]
    return model([*nodes, *tail], ports, ["y"], **weights)


def test_a_transpose_of_other_axes_leaves_the_last_two() -> None:
    old = keys(node("Transpose", ["k"], ["t"], perm=[0, 2, 3, 1]), k=("n", 5, 2, 4))
    new = fused(old)
    assert ops(new) == ["Transpose", SDPA]
    assert list(new.graph[0].attributes["perm"].as_ints()) == [0, 2, 1, 3]
    check(old, new)


def test_a_transpose_before_a_reshape_is_found() -> None:
    old = keys(
        node("Transpose", ["k"], ["a"], perm=[1, 2, 0]),
        node("Reshape", ["a", "target"], ["t"]),
        k=(5, "m", 4), target=np.array([-1, 2, 4, 5]),
    )  # fmt: skip
    new = fused(old)
    assert [op for op in ops(new) if op != "Constant"] == ["Transpose", "Reshape", SDPA]
    assert list(new.graph[0].attributes["perm"].as_ints()) == [1, 0, 2]
    feeds = feeds_for(old) | {"k": np.random.default_rng(1).random((5, 4, 4), dtype=np.float32)}
    assert_close(evaluated(new, feeds)["y"], results(old, feeds)["y"])


def test_keys_that_are_not_transposed_are_turned() -> None:
    old = keys(node("Neg", ["k"], ["t"]), k=("n", 2, 4, 5))
    new = fused(old)
    assert ops(new) == ["Neg", "Transpose", SDPA]
    check(old, new)


def test_a_reshape_that_mixes_the_last_axes_is_kept() -> None:
    old = keys(node("Reshape", ["k", "target"], ["t"]), k=("n", 8, 5), target=[0, 2, 4, 5])
    new = fused(old)
    assert [op for op in ops(new) if op != "Constant"] == ["Reshape", "Transpose", SDPA]
    check(old, new)


STEPS = st.sampled_from(["Mul half", "Div two", "Add", "AddFront", "Sub", "Hide", "Show"])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(STEPS, max_size=4),
    st.sampled_from([(3, 3), (1, 3), ("n", 1, 1, 3), ("n", 2, 3, 3), (2, 1, 3)]),
    st.sampled_from(["", "a = Mul q half; ", "a = Div q two; "]),
    st.sampled_from([("n", 2), (2, 2)]),
)
def test_any_row_of_scales_and_masks_means_the_same(
    row: list[str], dims: tuple[int | str, ...], first: str, lead: tuple[int | str, ...]
) -> None:
    lines, value = [f"{first}s0 = MatMul {'a' if first else 'q'} t"], "s0"
    for at, step in enumerate(row, 1):
        new = f"s{at}"
        lines.append({
            "Mul half": f"{new} = Mul {value} half", "Div two": f"{new} = Div {value} two",
            "Add": f"{new} = Add {value} mask", "AddFront": f"{new} = Add mask {value}",
            "Sub": f"{new} = Sub {value} mask", "Hide": f"{new} = Where truth lowest {value}",
            "Show": f"{new} = Where other {value} lowest",
        }[step])  # fmt: skip
        value = new
    extra = [("mask", F32, dims), ("truth", BOOL, dims), ("other", BOOL, dims)]
    old = attention("; ".join(lines) + f"; p = Softmax {value}; y = MatMul p v", extra, lead=lead)
    made = fused(old)
    assert the_node(made).op_type == SDPA
    check(old, made)


def test_attention_inside_of_a_branch_is_fused() -> None:
    plain = attention(PLAIN + END)
    yes = body(plain.graph.node, [], [("y", F32, None)])
    no = body([node("Neg", ["v"], ["e"])], [], [("e", F32, None)])
    choose = node("If", ["go"], ["z"], then_branch=yes, else_branch=no)
    ports = [(name, F32, (2, 2, 3, 4)) for name in "qkv"]
    old = model([choose], [*ports, ("go", BOOL, ())], ["z"])
    new = fused(old)
    assert [n.op_type for n in new.graph[0].attributes["then_branch"].as_graph()] == [SDPA]
    for go in (True, False):
        feeds = feeds_for(old) | {"go": np.array(go)}
        assert_close(evaluated(new, feeds)["z"], results(old, feeds)["z"])
