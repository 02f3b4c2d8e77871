"""Pass: a normalisation over the last axes, spelt out -> one operator.

    (x - mean(x)) / sqrt(mean((x - mean(x))**2) + epsilon) [* scale [+ bias]] -> LayerNormalization
    x / sqrt(mean(x**2) + epsilon) [* scale]                                  -> RMSNormalization

1. The square is a power or a product; the root a Sqrt or a power; the quotient a division, or a
   product with a reciprocal, with 1 / root, or with a power of -0.5.
2. 16-bit floats may be cast to float32 before and back behind, which both operators do inside.
3. Scale and bias have just the sizes of the axes. Others stay behind the operator, as does a bias
   without a scale; it gets a scale of ones then.

Only float32 and 16-bit floats: epsilon is a float32 there. Nothing in between has other users.
RMSNormalization came with opset 23: a model that gets one says that it is of that opset. What
operators of opset 21 mean did not change until then, there are only new attributes and types.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from mindspore_lite.passes.edit import (
    attribute,
    become,
    constant,
    dims_of,
    given,
    graph_nodes,
    ints_of,
    is_op,
    name_all,
    number_of,
    only_user,
)

FIRST_OPSET, RMS_OPSET = 18, 23  # ReduceMean with axes as input; RMSNormalization
_HALVES = (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)
_MOST_ONES = 1 << 16  # elements of a scale that is not there; guess


class _Norm(NamedTuple):
    x: ir.Value
    sizes: list[int]  # of the axes that are normalised
    epsilon: float
    centred: bool


def fuse_layer_norm(model: ir.Model) -> int:
    """Fuse in place; returns how many were fused. Shapes should be inferred before."""
    if model.opset_imports.get("", 0) < FIRST_OPSET:
        return 0
    count = 0
    for node in graph_nodes(model):
        norm = _standardised(node) if is_op(node, "Div", "Mul") else None
        if norm is None or not _is_closed(node, norm.x):
            continue
        _put(node, norm)
        count += 1
        if not norm.centred:
            model.opset_imports[""] = max(RMS_OPSET, model.opset_imports[""])
    if count:
        name_all(model)
    return count


# --- what is looked for ---


def _standardised(node: ir.Node) -> _Norm | None:
    for above, radicand in _quotients(node):
        found = _mean_of_squares(radicand)
        if found is None or not _same(above, found[0]):
            continue
        apart, axes, epsilon = found
        x = _centred(apart, axes)
        sizes = _last_sizes(x or apart, axes)
        if sizes is not None:
            return _Norm(x or apart, sizes, epsilon, x is not None)
    return None


def _quotients(node: ir.Node) -> Iterator[tuple[ir.Value, ir.Value]]:
    """(a, b) where the node is a / sqrt(b)."""
    a, b = node.inputs
    if a is None or b is None:
        return
    orders = [(a, b)] if node.op_type == "Div" else [(a, b), (b, a)]
    for above, below in orders:
        under = _radicand(below) if node.op_type == "Div" else _radicand_of_reciprocal(below)
        if under is not None:
            yield above, under


def _radicand(value: ir.Value | None) -> ir.Value | None:
    node = None if value is None else value.producer()
    if node is not None and (is_op(node, "Sqrt") or _is_power(node, 0.5)):
        return node.inputs[0]
    return None


def _radicand_of_reciprocal(value: ir.Value) -> ir.Value | None:
    node = value.producer()
    if node is None:
        return None
    if _is_power(node, -0.5):
        return node.inputs[0]
    if is_op(node, "Reciprocal"):
        return _radicand(node.inputs[0])
    if is_op(node, "Div") and number_of(node.inputs[0]) == 1:
        return _radicand(node.inputs[1])
    return None


def _mean_of_squares(value: ir.Value) -> tuple[ir.Value, list[int], float] | None:
    """(x, axes, epsilon) of mean(x**2) + epsilon."""
    total = value.producer()
    if total is None or not is_op(total, "Add"):
        return None
    for variance, constant_ in (total.inputs, total.inputs[::-1]):
        epsilon, mean = number_of(constant_), None if variance is None else variance.producer()
        axes = _mean_axes(mean)
        if epsilon is None or epsilon < 0 or axes is None:
            continue
        assert mean is not None and mean.inputs[0] is not None
        square = mean.inputs[0].producer()
        if square is None or square.inputs[0] is None:
            return None
        if _is_power(square, 2) or (is_op(square, "Mul") and _same(*square.inputs)):
            return square.inputs[0], axes, epsilon
    return None


def _centred(apart: ir.Value, axes: list[int]) -> ir.Value | None:
    """The x of x - mean(x)."""
    sub = apart.producer()
    if sub is None or not is_op(sub, "Sub"):
        return None
    x, mean = sub.inputs
    node = None if mean is None else mean.producer()
    own = _mean_axes(node)
    if own is None or node is None or node.inputs[0] is not x or x is None:
        return None
    return x if _last_sizes(x, own) == _last_sizes(x, axes) else None


def _mean_axes(node: ir.Node | None) -> list[int] | None:
    if node is None or not is_op(node, "ReduceMean") or not attribute(node, "keepdims", 1):
        return None
    return ints_of(given(node, 1)) or None


def _is_power(node: ir.Node, exponent: float) -> bool:
    return is_op(node, "Pow") and number_of(node.inputs[1]) == exponent


def _same(a: ir.Value | None, b: ir.Value | None) -> bool:
    """Whether two values are one, or the same difference taken twice."""
    if a is b:
        return True
    if a is None or b is None:
        return False
    first, second = a.producer(), b.producer()
    if first is None or second is None or not (is_op(first, "Sub") and is_op(second, "Sub")):
        return False
    return list(first.inputs) == list(second.inputs)


# --- when it holds ---


def _last_sizes(x: ir.Value, axes: list[int]) -> list[int] | None:
    """The sizes of axes, if they are the last ones and known, of an x that can be normalised."""
    dims = dims_of(x)
    if dims is None or x.dtype not in (ir.DataType.FLOAT, *_HALVES):
        return None
    places = sorted(axis + len(dims) if axis < 0 else axis for axis in axes)
    if places != list(range(len(dims) - len(axes), len(dims))):
        return None
    sizes = [size for size in dims[len(dims) - len(axes) :] if size is not None]
    is_known = len(sizes) == len(axes) and 0 < math.prod(sizes) <= _MOST_ONES
    return sizes if is_known else None


def _is_closed(end: ir.Node, x: ir.Value) -> bool:
    """Whether nothing else uses what is computed on the way from x, all of it in one graph."""
    inside, todo = {end}, [end]
    while todo:
        for value in todo.pop().inputs:
            node = None if value is None or value is x else value.producer()
            if node is not None and not is_op(node, "Constant") and node not in inside:
                inside.add(node)
                todo.append(node)
    return all(
        node.graph is end.graph
        and (node is end or not node.outputs[0].is_graph_output())
        and (node is end or all(use.node in inside for use in node.outputs[0].uses()))
        for node in inside
    )


# --- what it becomes ---


def _put(node: ir.Node, norm: _Norm) -> None:
    source, end = _without_casts(node, norm.x)
    assert source.dtype is not None
    scale = _factor(end, "Mul", norm.sizes, source.dtype)
    bias = None
    if scale is not None:
        end = scale[0]
        bias = _factor(end, "Add", norm.sizes, source.dtype) if norm.centred else None
    if bias is not None:
        end = bias[0]
    ones = np.ones(norm.sizes, source.dtype.numpy())
    inputs = [source, constant(end, ones, "ones") if scale is None else scale[1]]
    if bias is not None:
        inputs.append(bias[1])
    op_type = "LayerNormalization" if norm.centred else "RMSNormalization"
    become(end, op_type, inputs, {"axis": -len(norm.sizes), "epsilon": norm.epsilon})


def _without_casts(node: ir.Node, x: ir.Value) -> tuple[ir.Value, ir.Node]:
    """What goes in and what comes out, before and behind casts to float32 and back."""
    widening, back = x.producer(), only_user(node.outputs[0])
    if back is None or not is_op(back, "Cast") or not is_op(widening, "Cast"):
        return x, node
    assert widening is not None
    narrow = widening.inputs[0]
    if narrow is None or narrow.dtype not in _HALVES or narrow.dtype != attribute(back, "to"):
        return x, node
    return narrow, back


def _factor(
    node: ir.Node, op_type: str, sizes: list[int], dtype: ir.DataType
) -> tuple[ir.Node, ir.Value] | None:
    """The one node behind another, and its other operand, which has these sizes."""
    value = node.outputs[0]
    user = only_user(value)
    if user is None or not is_op(user, op_type):
        return None
    other = user.inputs[1] if user.inputs[0] is value else user.inputs[0]
    if other is None or dims_of(other) != sizes or other.dtype != dtype:
        return None
    return user, other
