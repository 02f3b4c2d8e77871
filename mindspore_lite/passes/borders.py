"""Pass: changes the layout and types of a model's inputs and outputs.

The graph inside stays as it is: a Transpose or a Cast stands behind an input or before an output.
Names stay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import onnx_ir as ir

from mindspore_lite.core.dtypes import BY_NAME
from mindspore_lite.passes.edit import is_op, name_all

_LAYOUTS = ("NCHW", "NHWC")
_TYPES = sorted({*BY_NAME} - {"bool", "complex64", "complex128"})


def set_layouts(model: ir.Model, inputs: str = "", outputs: str = "", source: str = "NCHW") -> None:
    """Let 4-D inputs and outputs have the layout NCHW or NHWC; "" leaves them in the source's."""
    for name in (inputs or source, outputs or source, source):
        if name not in _LAYOUTS:
            raise ValueError(f"a layout must be NCHW or NHWC, but got {name!r}")
    if inputs not in ("", source):
        _each_input(model, lambda value: _turn_input(value, inputs, source))
    if outputs not in ("", source):
        _each_output(model, lambda value: _turn_output(value, source, outputs))
    name_all(model)


def set_types(model: ir.Model, inputs: str = "", outputs: str = "") -> None:
    """Let inputs and outputs have another element type, a name of core/dtypes.py; "" leaves them.

    A type is only exchanged for one of its kind: int32 and int64 for whole numbers of other widths
    (token ids), any other for floating point. Flags, and ids where a float is asked for, stay.

    A float input that is only quantised to the asked type, or an output that was dequantised from
    it, loses that node: callers hand over quantised numbers then. Elsewhere numbers are cast.
    """
    for name in (inputs, outputs):
        if name and name not in _TYPES:
            raise ValueError(f"a type must be one of {_TYPES}, not {name!r}")
    if inputs:
        _each_input(model, lambda value: _cast_input(value, ir.DataType(BY_NAME[inputs].onnx)))
    if outputs:
        _each_output(model, lambda value: _cast_output(value, ir.DataType(BY_NAME[outputs].onnx)))
    name_all(model)


Border = Callable[[ir.Value], "ir.Node | None"]  # the node that belongs at the border, if any


def _each_input(model: ir.Model, change: Border) -> None:
    graph = model.graph
    for value in graph.inputs:
        if value.is_initializer() or value.is_graph_output():
            continue
        users = value.uses()
        node = change(value)
        if node is None:
            continue
        for user, at in users:
            user.replace_input_with(at, node.outputs[0])
        if len(graph):
            graph.insert_before(graph[0], node)


def _each_output(model: ir.Model, change: Border) -> None:
    graph = model.graph
    for at, value in enumerate(graph.outputs):
        if value.producer() is None:  # an input or a weight is handed out as it is
            continue
        name = value.name
        node = change(value)
        if node is None:
            continue
        graph.append(node)
        value.name = f"{name}_inner"
        graph.outputs[at] = node.outputs[0]
        node.outputs[0].name = name


def _turn(value: ir.Value, order: Sequence[int]) -> ir.Shape | None:
    if value.shape is None or len(value.shape) != 4:
        return None
    return ir.Shape([value.shape[at] for at in order])


def _order(before: str, after: str) -> list[int]:
    """Which axis of one layout stands where in the other."""
    return [before.index(letter) for letter in after]


def _turn_input(value: ir.Value, seen: str, inside: str) -> ir.Node | None:
    turned = _turn(value, _order(inside, seen))
    if turned is None:
        return None
    inner = ir.Value(type=value.type, shape=value.shape)
    value.shape = turned
    return _node("Transpose", value, inner, perm=_order(seen, inside))


def _turn_output(value: ir.Value, inside: str, seen: str) -> ir.Node | None:
    turned = _turn(value, _order(inside, seen))
    if turned is None:
        return None
    return _node(
        "Transpose", value, ir.Value(type=value.type, shape=turned), perm=_order(inside, seen)
    )


def _cast_input(value: ir.Value, dtype: ir.DataType) -> ir.Node | None:
    own = value.dtype
    if own is None or not _exchangeable(own, dtype):
        return None
    quantisers = [user for user, _ in value.uses()]
    if quantisers and all(_quantises(node, dtype) for node in quantisers):
        value.type = ir.TensorType(dtype)  # the old one may be shared
        for node in quantisers:
            ir.convenience.replace_all_uses_with(node.outputs[0], value)
            node.graph.remove(node, safe=True)  # type: ignore[union-attr]
        return None
    inner = ir.Value(type=value.type, shape=value.shape)
    value.type = ir.TensorType(dtype)  # the old one may be shared
    return _node("Cast", value, inner, to=int(own))


def _cast_output(value: ir.Value, dtype: ir.DataType) -> ir.Node | None:
    if value.dtype is None or not _exchangeable(value.dtype, dtype):
        return None
    seen = ir.Value(type=ir.TensorType(dtype), shape=value.shape)
    producer = value.producer()
    if is_op(producer, "DequantizeLinear"):
        stored = producer.inputs[0]  # type: ignore[union-attr]
        if stored is not None and stored.dtype == dtype:
            return _node("Identity", stored, seen)
    return _node("Cast", value, seen, to=int(dtype))


def _quantises(node: ir.Node, dtype: ir.DataType) -> bool:
    return (
        is_op(node, "QuantizeLinear")
        and node.outputs[0].dtype == dtype
        and not node.outputs[0].is_graph_output()
    )


def _exchangeable(own: ir.DataType, asked: ir.DataType) -> bool:
    if own == asked or own == ir.DataType.BOOL:
        return False
    if asked in (ir.DataType.INT32, ir.DataType.INT64):
        return own.is_integer()
    return own.is_floating_point()


def _node(op_type: str, source: ir.Value, made: ir.Value, **attributes: object) -> ir.Node:
    name = f"{source.name}_{op_type.lower()}"
    if made.name is None:
        made.name = name
    return ir.node(op_type, [source], attributes, outputs=[made], name=name)  # type: ignore[arg-type]
