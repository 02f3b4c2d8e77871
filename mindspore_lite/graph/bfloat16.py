"""bfloat16 in a MindIR model: computed in float32, rounded by Casts and where values leave.

`[common_context] bfloat16=strict` rounds the result of each operator as well.

CPU runtimes have next to no kernels for bfloat16, and MindSpore's own round after every operator.
Keeping float32 in between is faster and nearer to the true result; it differs from MindSpore's by
the rounding of the type, some 1e-2. Callers see bfloat16: the border (see KEY) says which ones.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mindspore_lite.core.dtypes import BY_NAME, DType
from mindspore_lite.core.json_text import read_json
from mindspore_lite.errors import ModelFileError
from mindspore_lite.mindir.records import (
    Call,
    Constant,
    Graph,
    Model,
    Node,
    Primitive,
    SequenceType,
    Tensor,
    TensorType,
    Type,
)

if TYPE_CHECKING:
    import onnx_ir as ir

KEY = "mslite.border"  # metadata: {"inputs": {name: type}, "outputs": {name: type}}, as JSON
_NARROW, _WIDE = BY_NAME["bfloat16"], BY_NAME["float32"]


def has_bfloat16(model: Model) -> bool:
    """Whether a weight, an input or a result is of that type."""
    graphs = (model.graph, *model.functions.values())
    return any(dtype is _NARROW for graph in graphs for dtype in _types(graph))


def without_bfloat16(model: Model) -> Model:
    """The same records with float32 in its place; weights are converted, which doubles them."""
    functions = {name: _graph(graph) for name, graph in model.functions.items()}
    return replace(model, graph=_graph(model.graph), functions=functions)


def rounded_number(value: float) -> float:
    """The nearest number that bfloat16 has."""
    return float(np.asarray(value, np.float32).astype(_NARROW.numpy))


def bfloat16_results(model: Model) -> dict[str, Type]:
    """The types of all nodes that make bfloat16, by the names of the nodes."""
    graphs = (model.graph, *model.functions.values())
    calls = (node for graph in graphs for node in graph.nodes if isinstance(node, Call))
    return {
        node.name: node.type
        for node in calls
        if node.type is not None and any(one.dtype is _NARROW for one in _flat(node.type))
    }


def note_border(
    made: ir.Model, model: Model, seen: tuple[Sequence[ir.Value], Sequence[ir.Value]]
) -> None:
    """Write down which of the inputs and outputs that callers see are bfloat16 to them."""
    border = _noted(made.metadata_props.get(KEY, '{"inputs": {}, "outputs": {}}'))
    types = _declared(model.graph)
    inputs = [kind for i in model.graph.inputs for kind in _flat(i.type)]
    outputs = [kind for name in model.graph.outputs for kind in _flat(types.get(name))]
    for side, values, kinds in (
        ("inputs", seen[0], inputs),
        ("outputs", seen[1], outputs),
    ):
        if len(values) == len(kinds):  # else types are missing in the file: float32 is seen
            found = zip(values, kinds, strict=True)
            border[side] |= {str(v.name): k.dtype.name for v, k in found if k.dtype is _NARROW}
    made.metadata_props[KEY] = json.dumps(border)


def _noted(text: str) -> dict[str, dict[str, str]]:
    """What is written down already, which a file of ours may have said."""
    try:
        found = read_json(text)
    except ValueError as exc:
        raise ModelFileError(f"its note {KEY!r} is no JSON: {exc}") from exc
    sides = isinstance(found, dict) and [found.get("inputs"), found.get("outputs")]
    if not sides or not all(isinstance(side, dict) for side in sides):
        raise ModelFileError(f"its note {KEY!r} is {text[:200]!r}, which makes no sense")
    return {"inputs": found["inputs"], "outputs": found["outputs"]}


def _types(graph: Graph) -> Iterator[DType]:
    yield from (weight.dtype for weight in graph.parameters)
    for kind in (i.type for i in graph.inputs):
        yield from (found.dtype for found in _flat(kind))
    for node in graph.nodes:
        if isinstance(node, Call):
            yield from (found.dtype for found in _flat(node.type))
        elif isinstance(node.value, Tensor):
            yield node.value.dtype


def _flat(kind: Type | None) -> Iterator[TensorType]:
    """The tensors of a type, tuples taken apart."""
    if isinstance(kind, TensorType):
        yield kind
    elif isinstance(kind, SequenceType):
        for item in kind.items:
            yield from _flat(item)


def _declared(graph: Graph) -> dict[str, Type | None]:
    """The types of a graph's values; those of tuples and aliases follow where a file lacks them."""
    types: dict[str, Type | None] = {i.name: i.type for i in graph.inputs}
    types |= {w.name: TensorType(w.dtype, w.shape) for w in graph.parameters}
    numbers = {node.name: node.value for node in graph.nodes if isinstance(node, Constant)}
    for node in graph.nodes:
        if isinstance(node, Call):
            types[node.name] = node.type or _structural(node, types, numbers)
        elif isinstance(node.value, Tensor):
            types[node.name] = TensorType(node.value.dtype, node.value.shape)
    return types


def _structural(
    node: Call, types: Mapping[str, Type | None], constants: Mapping[str, Any]
) -> Type | None:
    op = getattr(node.target, "op", "")
    sources = [types.get(name) for name in node.inputs]
    if op == "MakeTuple":
        return SequenceType(tuple(kind for kind in sources if kind is not None))
    if op == "TupleGetItem" and isinstance(sources[0], SequenceType):
        index, items = constants.get(node.inputs[1]), sources[0].items
        if isinstance(index, int) and -len(items) <= index < len(items):
            return items[index]
    return sources[0] if op in ("Depend", "Load") else None


def _graph(graph: Graph) -> Graph:
    return replace(
        graph,
        inputs=tuple(replace(i, type=_type(i.type)) for i in graph.inputs),
        nodes=tuple(_node(node) for node in graph.nodes),
        parameters=tuple(_value(weight) for weight in graph.parameters),
    )


def _node(node: Node) -> Node:
    if isinstance(node, Constant):
        return replace(node, value=_value(node.value))
    target = node.target
    if isinstance(target, Primitive) and target.attributes:
        target = replace(target, attributes=_value(target.attributes))
    return replace(node, target=target, type=_type(node.type))


def _type(kind: Any) -> Any:
    if isinstance(kind, TensorType) and kind.dtype is _NARROW:
        return replace(kind, dtype=_WIDE)
    if isinstance(kind, SequenceType):
        return replace(kind, items=tuple(_type(item) for item in kind.items))
    return kind


def _value(value: Any) -> Any:
    """A weight, constant or attribute with its tensors exchanged; dtype arguments stay."""
    if isinstance(value, Tensor) and value.dtype is _NARROW:
        wide = value.numpy().astype(np.float32)
        return replace(value, dtype=_WIDE, data=wide.reshape(-1).view(np.uint8).data)
    if isinstance(value, tuple | list):
        return type(value)(_value(item) for item in value)
    if isinstance(value, Mapping):
        return {key: _value(item) for key, item in value.items()}
    return value
