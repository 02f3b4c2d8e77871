"""Pass: folds a BatchNormalization into the weights of the layer before it.

At inference it multiplies every channel by a and adds b:  a = scale / sqrt(var + epsilon),
b = bias - mean * a.

1. Conv and ConvTranspose: their weights times a, their bias times a plus b.
2. Gemm: the same along the columns of its second operand.
3. MatMul of a matrix by a constant one: the constant times a; b is added behind.

The layer feeds the normalisation alone, all weights are constants of float32 or float64 that nobody
else uses, and they keep their names: without a bias of its own, the layer takes the one of the
normalisation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from mindspore_lite.passes.edit import (
    attribute,
    bypass,
    constant,
    given,
    graph_nodes,
    is_op,
    name_all,
    set_attribute,
    set_input,
    set_tensor,
    single_user,
    tensor_of,
)

_WIDE = (ir.DataType.FLOAT, ir.DataType.DOUBLE)


class Affine(NamedTuple):
    """What a normalisation does to each channel, in float64."""

    factor: np.ndarray
    offset: np.ndarray


def fold_batchnorm(model: ir.Model) -> int:
    """Fold in place; returns how many were folded."""
    count = 0
    for node in graph_nodes(model):
        if not is_op(node, "BatchNormalization") or len(node.outputs) != 1:
            continue
        x = node.inputs[0]
        layer = x.producer() if x is not None and single_user(x) else None
        if layer is None or layer.graph is not node.graph or layer.domain != "":
            continue
        fold = {"Conv": _into_conv, "ConvTranspose": _into_conv, "Gemm": _into_gemm,
                "MatMul": _into_matmul}.get(layer.op_type)  # fmt: skip
        affine = _affine(node)
        if fold is not None and affine is not None:
            count += fold(node, layer, affine)
    if count:
        name_all(model)
    return count


def _affine(node: ir.Node) -> Affine | None:
    if attribute(node, "training_mode", 0):
        return None
    found = [_numbers(value) for value in node.inputs[1:5]]
    wide = [array.astype(np.float64) for array in found if array is not None]
    if len(wide) != 4 or len({array.shape for array in wide}) != 1 or wide[0].ndim != 1:
        return None
    scale, bias, mean, variance = wide
    with np.errstate(all="ignore"):
        factor = scale / np.sqrt(variance + attribute(node, "epsilon", 1e-5))
        offset = bias - mean * factor
    return Affine(factor, offset) if np.isfinite([factor, offset]).all() else None


def _numbers(value: ir.Value | None) -> np.ndarray | None:
    tensor = tensor_of(value)
    return tensor.numpy() if tensor is not None and tensor.dtype in _WIDE else None


def _own_weight(layer: ir.Node, channels: int) -> np.ndarray | None:
    """The weights of a layer of so many channels, where no other makes use of them."""
    value = layer.inputs[1]
    found = _numbers(value) if value is not None and single_user(value) else None
    if found is None or found.ndim < 2:
        return None
    match layer.op_type:
        case "Conv":
            own = found.shape[0]
        case "ConvTranspose":
            own = found.shape[1] * attribute(layer, "group", 1)
        case _:
            own = found.shape[0 if attribute(layer, "transB", 0) else 1]
    return found if own == channels else None


def _into_conv(norm: ir.Node, layer: ir.Node, affine: Affine) -> bool:
    weight = _own_weight(layer, len(affine.factor))
    bias = _bias(layer, 1.0, len(affine.factor))
    if weight is None or bias is None:
        return False
    spread = (1,) * (weight.ndim - 2)
    factor = affine.factor.astype(weight.dtype)
    if layer.op_type == "Conv":
        scaled = weight * factor.reshape(-1, 1, *spread)
    else:  # inputs of all groups first, then the outputs of one group
        groups = attribute(layer, "group", 1)
        parts = weight.reshape(groups, -1, *weight.shape[1:])
        scaled = (parts * factor.reshape(groups, 1, -1, *spread)).reshape(weight.shape)
    _finish(norm, layer, scaled, bias * affine.factor + affine.offset)
    return True


def _into_gemm(norm: ir.Node, layer: ir.Node, affine: Affine) -> bool:
    weight = _own_weight(layer, len(affine.factor))
    bias = _bias(layer, attribute(layer, "beta", 1.0), len(affine.factor))
    if weight is None or bias is None:
        return False
    factor = affine.factor.astype(weight.dtype)
    scaled = weight * (factor[:, None] if attribute(layer, "transB", 0) else factor)
    set_attribute(layer, "beta", 1.0)
    _finish(norm, layer, scaled, bias * affine.factor + affine.offset)
    return True


def _into_matmul(norm: ir.Node, layer: ir.Node, affine: Affine) -> bool:
    weight, product = _own_weight(layer, len(affine.factor)), layer.outputs[0]
    if weight is None or weight.ndim != 2 or product.shape is None or len(product.shape) != 2:
        return False
    set_tensor(layer.inputs[1], weight * affine.factor.astype(weight.dtype))  # type: ignore[arg-type]
    offset = _keep(norm, affine.offset.astype(weight.dtype))
    norm.op_type = "Add"
    norm.attributes.clear()
    norm.resize_inputs(2)
    norm.replace_input_with(1, offset)
    return True


def _keep(norm: ir.Node, offset: np.ndarray) -> ir.Value:
    """The bias of the normalisation with other numbers, or a constant where others use it too."""
    bias = norm.inputs[2]
    if bias is None or not single_user(bias):
        return constant(norm, offset, "bias")
    set_tensor(bias, offset)
    return bias


def _bias(layer: ir.Node, factor: float, channels: int) -> np.ndarray | None:
    """The bias of a layer per channel, zeros where it has none; None where it cannot be changed."""
    value = given(layer, 2)
    if value is None:
        return np.zeros(channels)
    own = _numbers(value)
    if own is None or not single_user(value) or own.size not in (1, channels):
        return None
    if own.ndim and own.size != own.shape[-1]:  # a column, which runs along the rows
        return None
    return np.broadcast_to(own.reshape(-1).astype(np.float64) * factor, (channels,))


def _finish(norm: ir.Node, layer: ir.Node, weight: np.ndarray, bias: np.ndarray) -> None:
    set_tensor(layer.inputs[1], weight)  # type: ignore[arg-type]
    own, bias = given(layer, 2), bias.astype(weight.dtype)
    if own is not None:
        set_tensor(own, bias)
    else:
        kept = _keep(norm, bias)
        producer = kept.producer()
        if producer is not None and layer.graph is not None and producer.graph is layer.graph:
            layer.graph.remove(producer)  # which may stand behind the layer
            layer.graph.insert_before(layer, producer)
        set_input(layer, 2, kept)
    bypass(norm, layer.outputs[0])
