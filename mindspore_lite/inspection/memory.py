"""Estimates what a run holds in memory: the weights, and the largest sum of tensors alive at once.

A walk over the nodes in order of computation: a result begins to live at its node and ends after
the last one that reads it; inputs and outputs belong to the caller and live throughout. Sizes come
from ONNX's shape inference. A runtime may need less (results written over operands) or more
(scratch space of kernels).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import onnx

from mindspore_lite.core.dtypes import BY_ONNX
from mindspore_lite.inspection.facts import Memory
from mindspore_lite.inspection.skeleton import Skeleton, inferred

_SAME_STORAGE = {"Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten"}
_ALWAYS = math.inf  # alive until the end

Sizes = dict[str, int]  # bytes of each value; those that depend on data are missing


def estimate(skeleton: Skeleton) -> Memory:
    """What one run needs; open dims of inputs count as 1."""
    proto = onnx.ModelProto()
    proto.CopyFrom(skeleton.proto)
    is_open = _close_dims(proto.graph, set(skeleton.inputs))
    declared = _sizes(proto.graph) if is_open else {}
    if is_open:  # what was inferred or declared for open dims says nothing about dims of 1
        del proto.graph.value_info[:]
        for value in proto.graph.output:
            value.type.tensor_type.ClearField("shape")
    walk = _Liveness(inferred(proto).graph, list(skeleton.inputs), declared)
    peak, place = walk.peak()
    return Memory(skeleton.weights_bytes, peak, place, is_open, walk.unknown)


def _close_dims(graph: onnx.GraphProto, names: set[str]) -> bool:
    """Set every open dim of the inputs to 1; returns whether there was one."""
    is_open = False
    for value in graph.input:
        if value.name not in names:
            continue
        for dim in value.type.tensor_type.shape.dim:
            if not dim.HasField("dim_value"):
                dim.dim_value = 1
                is_open = True
    return is_open


def _sizes(graph: onnx.GraphProto) -> Sizes:
    """Bytes of every value of a graph that has a type, open dims counting as 1."""
    found: Sizes = {}
    for value in (*graph.input, *graph.value_info, *graph.output):
        kind = value.type.tensor_type
        if kind.HasField("shape") and kind.elem_type:
            dims = [d.dim_value if d.HasField("dim_value") else 1 for d in kind.shape.dim]
            found[value.name] = math.prod(dims) * _item_bytes(kind.elem_type)
    return found


def _known_sizes(graph: onnx.GraphProto) -> Sizes:
    """Only the values whose every dim is a number."""
    open_ones = {
        value.name
        for value in (*graph.input, *graph.value_info, *graph.output)
        if any(not d.HasField("dim_value") for d in value.type.tensor_type.shape.dim)
    }
    return {name: size for name, size in _sizes(graph).items() if name not in open_ones}


def _item_bytes(elem_type: int) -> int:
    row = BY_ONNX.get(elem_type)
    return row.item_bytes if row is not None else 1  # the 8-bit floats, and texts as if


class _Liveness:
    """The walk over one graph; graphs inside its nodes are walked when their node is."""

    def __init__(
        self, graph: onnx.GraphProto, inputs: list[str], declared: Sizes | None = None
    ) -> None:
        self.graph, self.inputs = graph, inputs
        self.sizes = {**(declared or {}), **_known_sizes(graph)}
        self.unknown = 0
        self.storage: dict[str, str] = {}  # value -> the one whose memory it shares
        self.last_use: dict[str, float] = {}
        self._find_uses()

    def _find_uses(self) -> None:
        for number, node in enumerate(self.graph.node):
            if node.op_type in _SAME_STORAGE and node.input:
                self.storage[node.output[0]] = self.root(node.input[0])
            for name in _reads(node):
                self.last_use[self.root(name)] = number
        for name in (*self.inputs, *(value.name for value in self.graph.output)):
            self.last_use[self.root(name)] = _ALWAYS

    def root(self, name: str) -> str:
        return self.storage.get(name, name)

    def peak(self) -> tuple[int, str]:
        """The largest sum, and the node during which it is reached."""
        alive = {name: self.size(name) for name in self.inputs}
        now = most = sum(alive.values())
        place = ""
        for number, node in enumerate(self.graph.node):
            made = [name for name in node.output if name and name not in self.storage]
            for name in made:
                alive[name] = self.size(name)
                now += alive[name]
            total = now + max((self.inner(graph) for graph in _graphs(node)), default=0)
            if total > most:
                most, place = total, node.name or node.output[0]
            for name in {self.root(n) for n in (*_reads(node), *made)}:
                if self.last_use.get(name, number) <= number:
                    now -= alive.pop(name, 0)
        return most, place

    def size(self, name: str) -> int:
        found = self.sizes.get(name)
        if found is None:
            self.unknown += 1
        return found or 0

    def inner(self, graph: onnx.GraphProto) -> int:
        walk = _Liveness(graph, [value.name for value in graph.input])
        most, _ = walk.peak()
        self.unknown += walk.unknown
        return most


def _reads(node: onnx.NodeProto) -> Iterator[str]:
    """The values a node reads, those of graphs inside it included."""
    yield from (name for name in node.input if name)
    for graph in _graphs(node):
        for inner in graph.node:
            yield from _reads(inner)
        yield from (value.name for value in graph.output)


def _graphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs
