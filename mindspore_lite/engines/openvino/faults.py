"""Rewrites or refuses graphs that OpenVINO would compute wrongly.

1. Greater and GreaterOrEqual of NaN are true in OpenVINO (2026.4); Less and LessOrEqual are right.
2. What is refused was seen to give other numbers than ONNX asks for in the node tests of onnx.
3. A compiled LSTM that was stored is read with its gates in another order.
4. A Slice with an axis that comes twice writes behind its memory: a later run dies of that. Axes
   that are known only at run time could.
5. LSTM, GRU and RNN divide by the number of rows: a batch of none ends the process.
6. A Clip that lacks a limit ends the process behind a node that OpenVINO cannot read: it asks for
   the least number of a type that is not known then.
7. A constant without elements is read as a single number, whatever its dims are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir

from mindspore_lite.engines.prepare.quirks import guard_empty_batches
from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.passes.edit import constant, dims_of, given, ints_of, name_all, set_input

_TURNED = {"Greater": "Less", "GreaterOrEqual": "LessOrEqual"}


def mend(model: ir.Model) -> None:
    """Let comparisons with NaN be false; refuse what cannot be fixed."""
    guard_empty_batches(model, ("LSTM", "GRU", "RNN"))
    wrong: dict[str, list[str]] = {}
    _make_empty_constants(model)
    nodes = list(model.graph.all_nodes())
    for node in nodes:
        if node.domain:
            continue
        if node.op_type in _TURNED:
            first, second = node.inputs
            node.replace_input_with(0, second)
            node.replace_input_with(1, first)
            node.op_type = _TURNED[node.op_type]
        elif (is_wrong := _WRONG.get(node.op_type)) and (reason := is_wrong(node)):
            wrong.setdefault(f"{node.op_type} {reason}", []).append(str(node.name))
    if any(node.op_type == "Clip" for node in nodes):
        name_all(model)  # of limits that were written down
    if wrong:
        found = [f"{what} (at {', '.join(at[:5])})" for what, at in wrong.items()]
        raise UnsupportedOpError(
            f"OpenVINO computes wrongly: {'; '.join(found)}; use [common_context] "
            "engine=onnxruntime for this model"
        )


def _limit(node: ir.Node) -> str:
    """Write down the limits that a Clip leaves out: the least and the largest of its type."""
    x, lacking = given(node, 0), [at for at in (1, 2) if given(node, at) is None]
    if not lacking:
        return ""
    if x is None or x.dtype is None:
        return "without limits, of a type that nothing says"
    dtype = x.dtype.numpy()
    about = np.iinfo(dtype) if dtype.kind in "iu" else ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    for at in lacking:
        limit = np.array(about.min if at == 1 else about.max, dtype)
        set_input(node, at, constant(node, limit, f"limit{at}"))
    return ""


def _make_empty_constants(model: ir.Model) -> None:
    """Let constants without elements that are results be made by a node, which keeps their dims."""
    for node in list(model.graph):
        tensor = (
            node.inputs[0].const_value if node.op_type == "Identity" and node.inputs[0] else None
        )
        if node.domain or tensor is None or tensor.size:
            continue
        dims = ir.Value(
            name=f"{node.outputs[0].name}/dims",
            const_value=ir.tensor(np.asarray(tensor.shape.numpy(), np.int64)),
        )
        model.graph.register_initializer(dims)
        zero = ir.tensor(np.zeros(1, tensor.dtype.numpy()))
        node.op_type = "ConstantOfShape"
        node.replace_input_with(0, dims)
        node.attributes["value"] = ir.AttrTensor("value", zero)


def can_be_stored(compiled: Any, skeleton: bytes) -> bool:
    """Whether OpenVINO would read a compiled model back as it wrote it.

    It makes LSTMs of other operators, too; those in bodies of loops only the skeleton shows.
    """
    kinds = {op.get_rt_info()["layerType"].value for op in compiled.get_runtime_model().get_ops()}
    return kinds.isdisjoint({"RNNSeq", "RNNCell"}) and b"LSTM" not in skeleton


def _average_pool(node: ir.Node) -> str:
    number = node.attributes.get_int
    counts = number("ceil_mode", 0) and number("count_include_pad", 0)
    return "with ceil_mode and count_include_pad" if counts else ""


def _resize(node: ir.Node) -> str:
    said = [name for name in ("antialias", "exclude_outside") if node.attributes.get_int(name, 0)]
    policy = node.attributes.get("keep_aspect_ratio_policy")
    if policy is not None and policy.as_string() != "stretch":
        said.append("keep_aspect_ratio_policy")
    return f"with {' and '.join(said)}" if said else ""


def _lstm(node: ir.Node) -> str:
    return "with peepholes" if len(node.inputs) > 7 and node.inputs[7] is not None else ""


def _tile(node: ir.Node) -> str:
    repeats = node.inputs[1]
    return "by numbers that are an input" if repeats is not None and _is_given(repeats) else ""


def _slice(node: ir.Node) -> str:
    axes = given(node, 3)
    found = ints_of(axes)
    if found is None:
        return "" if axes is None else "along axes that are computed"
    dims = dims_of(node.inputs[0])  # one axis may be written in two ways
    places = {axis + len(dims) if axis < 0 and dims is not None else axis for axis in found}
    return "" if len(places) == len(found) else "with an axis that comes twice"


def _is_given(value: ir.Value) -> bool:
    return value.is_graph_input() and not value.is_initializer()


_WRONG: dict[str, Callable[[ir.Node], str]] = {
    "AveragePool": _average_pool,
    "Clip": _limit,
    "Resize": _resize,
    "Slice": _slice,
    "LSTM": _lstm,
    "Tile": _tile,
}
