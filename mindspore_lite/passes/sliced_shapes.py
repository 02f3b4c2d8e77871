"""Keeps from onnx's shape inference the Slices that it ends the process on.

It does so on an axis without elements that is sliced backwards, and on an axis of a negative size,
which a window that is larger than its image gives. So a Slice backwards is never shown to it: to
turn whole axes round changes no shape, and what any other one gives is not inferred. A Slice behind
a window is shown once inference has found the sizes behind that window, and none is negative.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping

import numpy as np
import onnx

_HIDDEN = "mslite.slice"  # a domain that inference passes over
_FAR = 2**31 - 1  # before the beginning, or behind the end, of any axis
_SHORT = 64  # numbers of a list that may be axes
_ROUNDS = 64  # of inference, each shows more Slices; what is left then stays unknown
_INTEGERS = (onnx.TensorProto.INT32, onnx.TensorProto.INT64)
WINDOWS = frozenset((
    "AveragePool", "CenterCropPad", "Col2Im", "Conv", "ConvInteger", "ConvTranspose", "DeformConv",
    "LpPool", "MaxPool", "MaxUnpool", "Pad", "QLinearConv", "STFT",
))  # fmt: skip

Infer = Callable[[onnx.ModelProto], onnx.ModelProto]


class NegativeSizeError(onnx.shape_inference.InferenceError):
    """A window is larger than what it moves over."""


def with_slices(proto: onnx.ModelProto, infer: Infer) -> onnx.ModelProto:
    """What `infer` finds of a model whose Slices it must not see before they are safe.

    Raises:
        NegativeSizeError: A value has a negative size.
        InferenceError, RuntimeError: Whatever `infer` raises.
    """
    numbers = _numbers(proto.graph)
    nodes = [node for graph in graphs(proto.graph) for node in graph.node]
    backwards = {node.output[0] for node in nodes if _may_go_back(node, numbers)}
    behind = _behind(proto.graph, lambda node: node.op_type in WINDOWS)
    hidden = {n.output[0] for n in nodes if _is_slice(n) and not behind.isdisjoint(n.input)}
    for _ in range(_ROUNDS if hidden else 0):
        found = _shown(proto, hidden, backwards, numbers, infer)
        _refuse_negative(found.graph)
        dark = _behind(proto.graph, lambda node: bool(node.output) and node.output[0] in hidden)  # noqa: B023
        left = _behind(
            proto.graph,
            lambda node: node.op_type in WINDOWS and not dark.isdisjoint(node.input),  # noqa: B023
        )
        hidden = {n.output[0] for n in nodes if _is_slice(n) and not left.isdisjoint(n.input)}
        if not hidden:
            break
    return _shown(proto, hidden, backwards, numbers, infer)


def _shown(
    proto: onnx.ModelProto,
    hidden: Collection[str],
    backwards: Collection[str],
    numbers: Mapping[str, np.ndarray],
    infer: Infer,
) -> onnx.ModelProto:
    """What is inferred of a model without some Slices, which are in the result again."""
    if not hidden and not backwards:
        return infer(proto)
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    for graph in graphs(copy.graph):
        for node in graph.node:
            if _is_slice(node) and node.output[0] in hidden:
                node.domain, node.doc_string = _HIDDEN, _HIDDEN
            elif _is_slice(node) and node.output[0] in backwards:
                _replace(node, numbers)
    copy.opset_import.insert(0, onnx.helper.make_opsetid(_HIDDEN, 1))
    found = infer(copy)
    del found.opset_import[0]
    before = [n for g in graphs(proto.graph) for n in g.node if _is_slice(n)]
    back = iter([n for n in before if n.output[0] in hidden or n.output[0] in backwards])
    for graph in graphs(found.graph):
        for node in graph.node:
            if node.doc_string == _HIDDEN:
                node.CopyFrom(next(back))
    return found


def _is_slice(node: onnx.NodeProto) -> bool:
    return node.op_type == "Slice" and not node.domain and len(node.output) > 0


def _may_go_back(node: onnx.NodeProto, numbers: Mapping[str, np.ndarray]) -> bool:
    if not _is_slice(node) or len(node.input) < 5 or not node.input[4]:
        return False
    steps = numbers.get(node.input[4])
    return steps is None or not bool((steps > 0).all())


def _replace(node: onnx.NodeProto, numbers: Mapping[str, np.ndarray]) -> None:
    """Show a Slice that may go backwards as what changes no shape, or as nothing known."""
    starts, ends, steps = (numbers.get(node.input[at]) for at in (1, 2, 4))
    node.doc_string = _HIDDEN
    if starts is not None and ends is not None and steps is not None:
        last = (starts == -1) | (starts >= _FAR)
        if len({starts.size, ends.size, steps.size}) == 1 and bool(
            ((steps == -1) & last & (ends <= -_FAR)).all()
        ):
            node.op_type = "Identity"
            del node.input[1:]
            return
    node.domain = _HIDDEN


def _behind(graph: onnx.GraphProto, starts: Callable[[onnx.NodeProto], bool]) -> set[str]:
    """The values that depend on nodes, which `starts` picks; those of inner graphs as well."""
    found: set[str] = set()

    def walk(graph: onnx.GraphProto) -> None:
        for node in graph.node:
            inner = _inner(node)
            if not found.isdisjoint(node.input):
                found.update(value.name for body in inner for value in body.input)
            for body in inner:
                walk(body)
            made = (value.name for body in inner for value in body.output)
            if starts(node) or not found.isdisjoint(itertools.chain(node.input, made)):
                found.update(node.output)

    walk(graph)
    found.discard("")
    return found


def _refuse_negative(graph: onnx.GraphProto) -> None:
    for inner in graphs(graph):
        for value in (*inner.value_info, *inner.output):
            for dim in value.type.tensor_type.shape.dim:
                if dim.dim_value < 0:
                    raise NegativeSizeError(
                        f"{value.name[:200]!r} has a negative size, {dim.dim_value}: a window is "
                        "larger than what it moves over"
                    )


def _numbers(graph: onnx.GraphProto) -> dict[str, np.ndarray]:
    """The short constant lists of a graph and those inside it, by name; of two, neither."""
    found: dict[str, np.ndarray] = {}
    seen: set[str] = set()
    for inner in graphs(graph):
        made = [(tensor.name, tensor) for tensor in inner.initializer]
        for node in inner.node:
            if node.op_type == "Constant" and not node.domain and node.output:
                made += [(node.output[0], a.t) for a in node.attribute if a.name == "value"]
        for name, tensor in made:
            short = len(tensor.dims) == 1 and tensor.dims[0] <= _SHORT
            if name in seen or not short or tensor.data_type not in _INTEGERS:
                found.pop(name, None)
            elif not onnx.external_data_helper.uses_external_data(tensor):
                found[name] = onnx.numpy_helper.to_array(tensor)
            seen.add(name)
    return found


def graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """A graph and those inside it."""
    yield graph
    for node in graph.node:
        for inner in _inner(node):
            yield from graphs(inner)


def _inner(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    inside = ([a.g] if a.HasField("g") else [] for a in node.attribute)
    return [*itertools.chain(*inside), *(g for a in node.attribute for g in a.graphs)]
