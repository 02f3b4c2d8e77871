"""Finds every field of an ONNX model that can hold a tensor, from the schema itself.

Nothing is listed by hand: whatever message can contain a tensor, in the installed release of onnx
or in a later one, is walked through. So is what onnx-ir, an engine or this package never looks at.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import onnx
from google.protobuf.descriptor import Descriptor

from mindspore_lite.graph.onnx_scan import Split
from mindspore_lite.mindir.scan import Span

_TENSOR = onnx.TensorProto.DESCRIPTOR
_WANTED = (_TENSOR, onnx.GraphProto.DESCRIPTOR, onnx.AttributeProto.DESCRIPTOR)
# of a tensor: whether it is a weight of the main graph, and where in the file its bytes lie
Place = tuple[onnx.TensorProto, bool, Span | None]


def tensors(model: onnx.ModelProto, split: Split) -> Iterator[Place]:
    """All tensors of a model whose big ones were cut out."""
    graph = model.graph
    for number, weight in enumerate(graph.initializer):
        yield weight, True, split.weights.get(number)
    for number, node in enumerate(graph.node):
        for index, attribute in enumerate(node.attribute):
            if attribute.HasField("t"):
                yield attribute.t, False, split.constants.get((number, index))
            yield from _plain(attribute, without=("t",))
        yield from _plain(node, without=("attribute",))
    yield from _plain(graph, without=("initializer", "node"))
    yield from _plain(model, without=("graph",))


def all_tensors(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """The same without their places."""
    return (found for found in _inside(model) if found.DESCRIPTOR is _TENSOR)


def structure(model: onnx.ModelProto) -> Iterator[onnx.GraphProto | onnx.AttributeProto]:
    """All graphs and attributes, those inside nodes and functions included."""
    return (found for found in _inside(model) if found.DESCRIPTOR is not _TENSOR)


def _plain(message: Any, without: Sequence[str]) -> Iterator[Place]:
    for found in _inside(message, without):
        if found.DESCRIPTOR is _TENSOR:
            yield found, False, None


def _inside(message: Any, without: Sequence[str] = ()) -> Iterator[Any]:
    """The tensors, graphs and attributes in a message, at any depth."""
    todo = [(message, without)]
    while todo:
        held, skipped = todo.pop()
        for name, is_list in _ways(held.DESCRIPTOR):
            if name in skipped or not (is_list or held.HasField(name)):
                continue
            value = getattr(held, name)
            for one in value if is_list else (value,):
                if one.DESCRIPTOR in _WANTED:
                    yield one
                todo.append((one, ()))


@cache
def _ways(kind: Descriptor) -> tuple[tuple[str, bool], ...]:
    """The fields of a message through which a tensor can be reached, and which are lists."""
    return tuple(
        (field.name, field.is_repeated)
        for field in kind.fields
        if field.message_type is not None and _leads_to_tensor(field.message_type, frozenset())
    )


def _leads_to_tensor(kind: Descriptor, above: frozenset[str]) -> bool:
    if kind is _TENSOR:
        return True
    above |= {kind.full_name}
    inner = (field.message_type for field in kind.fields if field.message_type is not None)
    return any(_leads_to_tensor(one, above) for one in inner if one.full_name not in above)
