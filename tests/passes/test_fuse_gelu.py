"""passes/fuse_gelu.py: the forms of Gelu that exporters write, and what only looks like it."""

from __future__ import annotations

import itertools
import math

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from support.onnx_graphs import F32, assert_same, feeds_for, model, node, ops

from mindspore_lite.passes.fuse_gelu import fuse_gelu
from mindspore_lite.passes.infer_shapes import infer_shapes
from mindspore_lite.passes.remove_dead import remove_dead

F16 = onnx.TensorProto.FLOAT16
NUMBERS = {
    "half": 0.5, "one": 1.0, "two": 2.0, "three": 3.0, "root": math.sqrt(2),
    "part": math.sqrt(0.5), "outer": math.sqrt(2 / math.pi), "cubic": 0.044715,
    "other": 1.1,
}  # fmt: skip


def gelu(steps: str, kind: int = F32, outputs: tuple[str, ...] = ("y",)) -> onnx.ModelProto:
    """A model of lines like 'y = Mul a b'; numbers are known by name."""
    nodes = []
    for line in steps.split(";"):
        result, _, op, *inputs = line.split()
        nodes.append(node(op, inputs, [result]))
    dtype = np.float16 if kind == F16 else np.float32
    weights = {name: np.asarray(number, dtype) for name, number in NUMBERS.items()}
    ports = [(name, kind, None) for name in outputs]
    return model(nodes, [("x", kind, (2, 3))], ports, **weights)


def fused(proto: onnx.ModelProto) -> ir.Model:
    made = ir.from_proto(proto)
    infer_shapes(made)
    fuse_gelu(made)
    remove_dead(made)
    return made


ERF = "u = Div x root; e = Erf u; s = Add e one; "
TANH = "t = Tanh u; s = Add one t; p = Mul x s; y = Mul p half"
FORMS = {
    "x * (1 + erf) * 0.5": ERF + "p = Mul x s; y = Mul p half",
    "0.5 * (x * (1 + erf))": ERF + "p = Mul s x; y = Mul half p",
    "(0.5 * x) * (1 + erf)": ERF + "h = Mul half x; y = Mul h s",
    "x * (0.5 * (1 + erf))": ERF + "p = Mul s half; y = Mul x p",
    "x / 2 * (1 + erf)": ERF + "h = Div x two; y = Mul s h",
    "x * (1 + erf) / 2": ERF + "p = Mul x s; y = Div p two",
    "erf of a product": "u = Mul part x; e = Erf u; s = Add one e; p = Mul x s; y = Mul p half",
    "x * (0.5 + 0.5 erf)": "u = Div x root; e = Erf u; f = Mul e half; s = Add f half; y = Mul x s",
    "erf of a sum": "b = Add x other; u = Div b root; e = Erf u; s = Add e one; p = Mul b s; "
    "y = Mul p half",
    "tanh with a power": "c = Pow x three; d = Mul c cubic; i = Add x d; u = Mul outer i; " + TANH,
    "tanh with products": "q = Mul x x; c = Mul x q; d = Mul cubic c; i = Add d x; "
    "u = Mul i outer; " + TANH,
    "tanh factored": "q = Pow x two; d = Mul q cubic; i = Add one d; v = Mul x outer; "
    "u = Mul v i; " + TANH,
}
STAYS = {
    "another number inside": "u = Div x other; e = Erf u; s = Add e one; p = Mul x s; "
    "y = Mul p half",
    "another number outside": ERF + "p = Mul x s; y = Mul p other",
    "the half is missing": ERF + "y = Mul x s",
    "another cubic term": "c = Pow x three; d = Mul c part; i = Add x d; u = Mul outer i; " + TANH,
    "a square, no cube": "c = Pow x two; d = Mul c cubic; i = Add x d; u = Mul outer i; " + TANH,
    "times another value": "w = Neg x; " + ERF + "p = Mul w s; y = Mul p half",
    "minus": "u = Div x root; e = Erf u; s = Sub one e; p = Mul x s; y = Mul p half",
    "plain tanh": "y = Tanh x",
    "x * sigmoid(x)": "s = Sigmoid x; y = Mul x s",
}


@pytest.mark.parametrize("name", FORMS)
def test_every_form_becomes_one_operator(name: str) -> None:
    old = gelu(FORMS[name])
    new = fused(old)
    found = [n for n in new.graph if n.op_type == "Gelu"]
    assert [n.op_type for n in new.graph if n.op_type not in ("Gelu", "Add")] == []
    assert len(found) == 1
    assert found[0].attributes["approximate"].as_string() == ("tanh" if "tanh" in name else "none")
    assert_same(new, old, feeds_for(old))


@pytest.mark.parametrize("name", STAYS)
def test_what_is_another_function_stays(name: str) -> None:
    old = gelu(STAYS[name])
    new = fused(old)
    assert ops(new) == [n.op_type for n in old.graph.node]


def test_numbers_of_16_bits_are_near_enough() -> None:
    old = gelu(FORMS["x * (1 + erf) * 0.5"], F16)
    assert ops(fused(old)) == ["Gelu"]


def test_a_result_that_others_use_stays() -> None:
    old = gelu(FORMS["x * (1 + erf) * 0.5"], outputs=("y", "s"))
    assert "Gelu" not in ops(fused(old))


def test_a_constant_that_adds_an_axis_is_not_lost() -> None:
    old = gelu(FORMS["x * (1 + erf) * 0.5"])
    for weight in old.graph.initializer:
        if weight.name == "half":
            weight.dims.extend([1, 1, 1])
    assert "Gelu" not in ops(fused(old))


def test_an_opset_without_the_operator_gets_none() -> None:
    old = gelu(FORMS["x * (1 + erf) * 0.5"])
    old.opset_import[0].version = 19
    assert "Gelu" not in ops(fused(old))


def test_the_order_of_the_factors_is_free() -> None:
    for a, b, c in itertools.permutations(["half", "x", "s"]):
        for last in (f"y = Mul p {c}", f"y = Mul {c} p"):
            old = gelu(f"{ERF}p = Mul {a} {b}; {last}")
            assert ops(fused(old)) == ["Gelu"]
