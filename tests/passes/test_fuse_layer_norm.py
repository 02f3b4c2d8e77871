"""passes/fuse_layer_norm.py: normalisations spelt out, and what only looks like one."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from support.onnx_graphs import F32, assert_same, feeds_for, model, node, ops

from mindspore_lite.passes.fuse_layer_norm import fuse_layer_norm
from mindspore_lite.passes.infer_shapes import infer_shapes
from mindspore_lite.passes.remove_dead import remove_dead

F16 = onnx.TensorProto.FLOAT16
RANDOM = np.random.default_rng(3)
WEIGHTS: dict[str, Any] = {
    "last": np.array([-1]), "first": np.array([0]), "two": np.array([1, 2]),
    "epsilon": np.float32(1e-2), "square": np.float32(2), "root": np.float32(0.5),
    "minus": np.float32(-0.5), "one": np.float32(1),
    "scale": RANDOM.normal(size=4).astype(np.float32),
    "bias": RANDOM.normal(size=4).astype(np.float32),
    "wide": RANDOM.normal(size=(3, 4)).astype(np.float32),
    "row": RANDOM.normal(size=(1, 4)).astype(np.float32),
}  # fmt: skip


def norm(
    steps: str, outputs: tuple[str, ...] = ("y",), kind: int = F32, axes: str = "last", opset=21
) -> onnx.ModelProto:
    """A model of lines like 'd = Sub x m'; means are taken over axes."""
    nodes = []
    for line in steps.split(";"):
        result, _, op, *inputs = line.split()
        more = {"keepdims": 1} if op == "ReduceMean" else {}
        if op.startswith("Cast"):
            op, more = "Cast", {"to": F16 if op == "Cast16" else F32}
        inputs += [axes] if op == "ReduceMean" and len(inputs) == 1 else []
        nodes.append(node(op, inputs, [result], **more))
    used = {name for made in nodes for name in made.input}
    dtype = np.float16 if kind == F16 else np.float32
    weights = {
        name: array.astype(dtype) if name in ("scale", "bias") else array
        for name, array in WEIGHTS.items()
        if name in used
    }
    ports = [(name, kind, None) for name in outputs]
    return model(nodes, [("x", kind, ("n", 3, 4))], ports, opset, **weights)


def fused(proto: onnx.ModelProto) -> ir.Model:
    made = ir.from_proto(proto)
    infer_shapes(made)
    fuse_layer_norm(made)
    remove_dead(made)
    return made


APART = "m = ReduceMean x; d = Sub x m; "
ROOT = "q = Pow d square; v = ReduceMean q; e = Add v epsilon; r = Sqrt e; "
AFFINE = "; s = Mul n scale; y = Add s bias"
LAYER = {
    "scale and bias": APART + ROOT + "n = Div d r" + AFFINE,
    "the other way round": APART + ROOT + "n = Div d r; s = Mul scale n; y = Add bias s",
    "scale only": APART + ROOT + "n = Div d r; y = Mul n scale",
    "neither": APART + ROOT + "y = Div d r",
    "a product for the square": APART
    + "q = Mul d d; v = ReduceMean q; e = Add epsilon v; r = Sqrt e; n = Div d r" + AFFINE,
    "two differences": APART + "b = Sub x m; q = Mul b b; v = ReduceMean q; e = Add v epsilon; "
    "r = Sqrt e; n = Div d r" + AFFINE,
    "a reciprocal": APART + ROOT + "i = Reciprocal r; n = Mul d i" + AFFINE,
    "one by the root": APART + ROOT + "i = Div one r; n = Mul i d" + AFFINE,
    "powers": APART + "q = Pow d square; v = ReduceMean q; e = Add v epsilon; r = Pow e root; "
    "n = Div d r" + AFFINE,
    "a negative power": APART + "q = Pow d square; v = ReduceMean q; e = Add v epsilon; "
    "i = Pow e minus; n = Mul d i" + AFFINE,
}  # fmt: skip
RMS_ROOT = "q = Mul x x; v = ReduceMean q; e = Add v epsilon; r = Sqrt e; "
RMS = {
    "scaled": RMS_ROOT + "n = Div x r; y = Mul n scale",
    "by a reciprocal": RMS_ROOT + "i = Reciprocal r; n = Mul x i; y = Mul scale n",
    "plain": "q = Pow x square; v = ReduceMean q; e = Add v epsilon; r = Sqrt e; y = Div x r",
}
STAYS = {
    "the mean of other axes": "m = ReduceMean x first; d = Sub x m; q = Pow d square; "
    "v = ReduceMean q first; e = Add v epsilon; r = Sqrt e; y = Div d r",
    "a cube": APART + "q = Pow d one; v = ReduceMean q; e = Add v epsilon; r = Sqrt e; y = Div d r",
    "no epsilon": APART + "q = Pow d square; v = ReduceMean q; r = Sqrt v; y = Div d r",
    "no root": APART + "q = Pow d square; v = ReduceMean q; e = Add v epsilon; y = Div d e",
}


@pytest.mark.parametrize("name", LAYER)
def test_a_layer_norm_becomes_one_operator(name: str) -> None:
    old = norm(LAYER[name])
    new = fused(old)
    assert [op for op in ops(new) if op != "Constant"] == ["LayerNormalization"]
    assert len(new.graph[-1].inputs) == (3 if "bias" in LAYER[name] else 2)
    assert new.opset_imports[""] == 21
    assert_same(new, old, feeds_for(old))


@pytest.mark.parametrize("name", RMS)
def test_a_norm_without_a_mean_becomes_one_of_a_newer_opset(name: str) -> None:
    old = norm(RMS[name])
    new = fused(old)
    assert [op for op in ops(new) if op != "Constant"] == ["RMSNormalization"]
    assert new.opset_imports[""] == 23
    assert_same(new, old, feeds_for(old))


@pytest.mark.parametrize("name", STAYS)
def test_what_is_another_function_stays(name: str) -> None:
    old = norm(STAYS[name])
    assert ops(fused(old)) == [n.op_type for n in old.graph.node]


def test_the_distance_to_another_mean_is_no_layer_norm() -> None:
    old = norm("w = Neg x; m = ReduceMean w; d = Sub x m; " + ROOT + "n = Div d r; y = Mul n scale")
    new = fused(old)
    assert ops(new) == ["Neg", "ReduceMean", "Sub", "RMSNormalization"]
    assert_same(new, old, feeds_for(old))


def test_several_axes_are_normalised_at_once() -> None:
    steps = APART + ROOT + "n = Div d r; y = Mul n wide"
    old = norm(steps, axes="two")
    new = fused(old)
    assert ops(new) == ["LayerNormalization"]
    assert new.graph[0].attributes["axis"].as_int() == -2
    assert_same(new, old, feeds_for(old))


@pytest.mark.parametrize("factor", ["row", "epsilon"])
def test_a_scale_of_other_sizes_stays_behind(factor: str) -> None:
    old = norm(APART + ROOT + f"n = Div d r; y = Mul n {factor}")
    new = fused(old)
    assert [op for op in ops(new) if op != "Constant"] == ["LayerNormalization", "Mul"]
    assert_same(new, old, feeds_for(old))


@pytest.mark.parametrize("also", ["m", "v", "r", "d"])
def test_statistics_that_are_used_elsewhere_are_computed_once(also: str) -> None:
    old = norm(LAYER["scale and bias"], outputs=("y", also))
    assert "LayerNormalization" not in ops(fused(old))


def test_a_result_that_is_an_output_keeps_its_factors_apart() -> None:
    old = norm(LAYER["scale and bias"], outputs=("n", "y"))
    new = fused(old)
    assert [op for op in ops(new) if op != "Constant"] == ["LayerNormalization", "Mul", "Add"]
    assert_same(new, old, feeds_for(old))


@pytest.mark.parametrize("wanted", ["LayerNormalization", "RMSNormalization"])
def test_halves_that_were_widened_are_not_any_more(wanted: str) -> None:
    if wanted == "LayerNormalization":
        steps = APART + ROOT + "n = Div d r; h = Cast16 n; s = Mul h scale; y = Add s bias"
    else:
        steps = RMS_ROOT + "n = Div x r; h = Cast16 n; y = Mul h scale"
    old = norm("w = Cast32 x; " + steps.replace(" x", " w"), kind=F16)
    new = fused(old)
    assert ops(new) == [wanted]
    assert new.graph[0].inputs[0] is new.graph.inputs[0]
    assert_same(new, old, feeds_for(old))


def test_double_precision_keeps_its_epsilon() -> None:
    old = norm(LAYER["neither"])
    for value in (*old.graph.input, *old.graph.output):
        value.type.tensor_type.elem_type = onnx.TensorProto.DOUBLE
    for weight in old.graph.initializer:
        if weight.data_type == F32:
            array = onnx.numpy_helper.to_array(weight).astype(np.float64)
            weight.CopyFrom(onnx.numpy_helper.from_array(array, weight.name))
    assert "LayerNormalization" not in ops(fused(old))
