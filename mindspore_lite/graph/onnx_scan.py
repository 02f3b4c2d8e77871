"""Splits the bytes of an ONNX file into a small skeleton and the places of its large tensors.

As in mindir/scan.py: protobuf would copy them all, and here they stay where they are. Tensors
inside sub-graphs and functions are left to protobuf.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from mindspore_lite.mindir.scan import MAPPED_BYTES, Data, Span, fields, payloads, rewritten

# ModelProto.graph, GraphProto.{initializer,node}, NodeProto.attribute, AttributeProto.t
_GRAPH, _INITIALIZER, _NODE, _ATTRIBUTE, _TENSOR = 7, 5, 1, 5, 5
# TensorProto.{raw_data,external_data}, StringStringEntry.{key,value}
_RAW_DATA, _EXTERNAL_DATA, _KEY, _VALUE = 9, 13, 1, 2

_Place = TypeVar("_Place", int, tuple[int, int])


@dataclass(frozen=True)
class Split:
    """A model without the bytes of its big tensors, and where in the file those lie."""

    skeleton: bytes
    weights: dict[int, Span] = field(default_factory=dict)  # by number of the initializer
    constants: dict[tuple[int, int], Span] = field(default_factory=dict)  # node, its attribute


def split_tensors(data: Data) -> Split:
    """Cut the big tensors of the main graph out: its weights, and those in attributes of nodes."""
    weights: dict[int, Span] = {}
    constants: dict[tuple[int, int], Span] = {}
    weight_numbers, node_numbers = itertools.count(), itertools.count()  # a graph may be in pieces

    def graph(start: int, end: int) -> bytes:
        return rewritten(data, start, end, {_INITIALIZER: weight, _NODE: node})

    def weight(start: int, end: int) -> bytes | None:
        return _without_data(data, start, end, weights, next(weight_numbers))

    def node(start: int, end: int) -> bytes | None:
        number, attributes = next(node_numbers), itertools.count()

        def attribute(start: int, end: int) -> bytes:
            place = number, next(attributes)
            cut = {_TENSOR: lambda s, e: _without_data(data, s, e, constants, place)}
            return rewritten(data, start, end, cut)

        if end - start < MAPPED_BYTES:  # nearly all nodes
            return None
        return rewritten(data, start, end, {_ATTRIBUTE: attribute})

    return Split(rewritten(data, 0, len(data), {_GRAPH: graph}), weights, constants)


def _without_data(
    data: Data, start: int, end: int, spans: dict[_Place, Span], place: _Place
) -> bytes | None:
    """One tensor without its raw data, if that is big."""

    def raw(first: int, last: int) -> bytes | None:
        if last - first < MAPPED_BYTES:
            spans.pop(place, None)  # a field may come twice, and the last one counts
            return None
        spans[place] = (first, last)
        return b""

    if end - start < MAPPED_BYTES and place not in spans:
        return None
    return rewritten(data, start, end, {_RAW_DATA: raw})


def locations(data: Data) -> Iterator[str]:
    """The files in which weights of the main graph say that they lie."""
    for start, end in payloads(data, 0, len(data), _GRAPH):
        for first, last in payloads(data, start, end, _INITIALIZER):
            for at, stop in payloads(data, first, last, _EXTERNAL_DATA):
                entry = {f.number: bytes(data[f.start : f.end]) for f in fields(data, at, stop)}
                if entry.get(_KEY) == b"location":
                    yield entry.get(_VALUE, b"").decode("utf-8", "replace")
