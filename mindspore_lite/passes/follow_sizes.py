"""Pass: lets constants follow input sizes that were replaced.

Exporters write sizes down as numbers: the batch in the target of a Reshape, the end of a Slice.
When an input gets another size, a number that said the old one must say the new one, or the model
would fail or compute something else. A number is such a one if it is the size that a value had at
its place when the model was exported. Nodes of bodies are left as they are.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import onnx
import onnx_ir as ir

from mindspore_lite.errors import ShapeError
from mindspore_lite.passes import long_lists
from mindspore_lite.passes.check_nodes import title
from mindspore_lite.passes.edit import attribute, constant, given, ints_of, set_input
from mindspore_lite.passes.infer_shapes import forget_declared, light_proto
from mindspore_lite.passes.reshape_sizes import AmbiguousError, Changes, followed
from mindspore_lite.passes.shapes import round_scales_up

Dims = Sequence[int]
Known = Mapping[str, tuple[int, ...]]
_FIRST_SYMBOL = 1 << 31  # open sizes with a name are primes from here on, which no size is
_SYMBOLS = 100  # of them; others count as nameless
_ROUNDS = 1000  # nodes one behind the other; guess, no real network comes near it


def follow_sizes(model: ir.Model, shapes: Mapping[str, Dims]) -> int:
    """Change constants for other sizes of inputs, in place; returns how many.

    The inputs of the model still have their old sizes, and keep them.

    Raises:
        ShapeError: It cannot be told how a constant follows; the node is named.
    """
    changes = _changes(model, shapes)
    if not changes:
        return 0
    proto = light_proto(model)
    forget_declared(proto.graph)
    round_scales_up(proto.graph)
    symbols: dict[str, int] = {}
    old = _inferred(proto, symbols)
    for port in proto.graph.input:
        if port.name in shapes:
            _set_dims(port, shapes[port.name])
    done: set[int] = set()
    nodes = list(model.graph)
    for _ in range(_ROUNDS):
        new = _inferred(proto, symbols)
        found = _due(nodes, done, old, new, changes)
        if not found:
            return len(done)
        for at, (place, sizes) in found.items():
            done.add(at)
            _set_sizes(proto.graph, at, place, sizes)
            made = constant(nodes[at], np.asarray(sizes, np.int64), "sizes")
            set_input(nodes[at], place, made)
    raise ShapeError(
        f"the input sizes cannot be replaced: more than {_ROUNDS} layers that depend on each other "
        "hold sizes as constants; export the model again with these sizes"
    )


def _changes(model: ir.Model, shapes: Mapping[str, Dims]) -> Changes:
    """Every fixed size of an input that becomes another one."""
    found: dict[int, set[int]] = defaultdict(set)
    for value in model.graph.inputs:
        if value.shape is None or str(value.name) not in shapes:
            continue
        for was, size in zip(value.shape, shapes[str(value.name)], strict=True):
            if isinstance(was, int) and was != size:
                found[was].add(size)
    return {was: frozenset(sizes) for was, sizes in found.items()}


def _due(
    nodes: list[ir.Node], done: set[int], old: Known, new: Known, changes: Changes
) -> dict[int, tuple[int, list[int]]]:
    """The constants to change whose inputs are settled: by node, the place and its numbers."""
    unsettled: set[str] = set()
    found: dict[int, tuple[int, list[int]]] = {}
    for at, node in enumerate(nodes):
        names = {str(value.name) for value in node.outputs}
        if any(value is not None and value.name in unsettled for value in node.inputs):
            unsettled |= names
            continue
        if node.domain or node.op_type not in _RULES or at in done or not node.inputs:
            continue
        name = str(node.inputs[0].name) if node.inputs[0] is not None else ""
        was, now = old.get(name), new.get(name)
        if was is None or now is None or len(was) != len(now) or was == now:
            continue
        place, rule = _RULES[node.op_type]
        try:
            sizes = rule(node, was, now, changes)
        except AmbiguousError:
            raise ShapeError(
                f"the input sizes cannot be replaced: {title(node)} makes "
                f"{ints_of(given(node, place))} of {list(was)}, now {list(now)}, and more than one "
                "of its sizes could follow; export the model again with these sizes"
            ) from None
        if sizes is not None and sizes != ints_of(given(node, place)):
            found[at] = place, sizes
            unsettled |= names
    return found


def _reshape(node: ir.Node, was: Dims, now: Dims, changes: Changes) -> list[int] | None:
    target = ints_of(given(node, 1))
    if target is None or (0 in target and attribute(node, "allowzero", 0)):
        return None
    sizes = followed(target, was, now, changes)
    if sizes is None:
        return None
    # a copied size follows by itself, and so does the one that takes what is left
    pairs = enumerate(zip(target, sizes, strict=True))
    kept = [old if old == 0 and size == now[at] else size for at, (old, size) in pairs]
    if -1 in target:
        kept[target.index(-1)] = -1
    return kept if max(kept, default=0) < _FIRST_SYMBOL else None


def _expand(node: ir.Node, was: Dims, now: Dims, changes: Changes) -> list[int] | None:
    sizes = ints_of(given(node, 1))
    if sizes is None:
        return None
    made = list(sizes)
    for back in range(1, min(len(was), len(sizes)) + 1):
        if sizes[-back] == was[-back] != 1:
            made[-back] = now[-back]
    return made if max(made, default=0) < _FIRST_SYMBOL else None


def _resize(node: ir.Node, was: Dims, now: Dims, changes: Changes) -> list[int] | None:
    sizes = ints_of(given(node, 3))
    axes = attribute(node, "axes", range(len(was)))
    if sizes is None or len(axes) != len(sizes):
        return None
    pairs = list(zip(axes, sizes, strict=True))
    return [now[axis] if size == was[axis] else size for axis, size in pairs]


def _slice(node: ir.Node, was: Dims, now: Dims, changes: Changes) -> list[int] | None:
    """A part that reached to the end of its axis still does."""
    ends, axes, steps = (ints_of(given(node, at)) for at in (2, 3, 4))
    if ends is None or (given(node, 3) is not None and axes is None):
        return None
    axes = list(range(len(ends))) if axes is None else axes
    steps = [1] * len(ends) if given(node, 4) is None else steps
    if steps is None or not len(ends) == len(axes) == len(steps):
        return None
    if any(not -len(was) <= axis < len(was) for axis in axes):
        return None
    return [
        now[axis] if step > 0 and end == was[axis] else end
        for end, axis, step in zip(ends, axes, steps, strict=True)
    ]


_Rule = Callable[[ir.Node, Dims, Dims, Changes], list[int] | None]
# the place of the constant among the inputs, and what becomes of it
_RULES: dict[str, tuple[int, _Rule]] = {
    "Reshape": (1, _reshape),
    "Expand": (1, _expand),
    "Resize": (3, _resize),
    "Slice": (2, _slice),
}


def _inferred(proto: onnx.ModelProto, symbols: dict[str, int]) -> Known:
    """The sizes of the values of the main graph; those with a size of no name are left out."""
    try:
        graph = long_lists.inferred(proto).graph
    except (onnx.shape_inference.InferenceError, RuntimeError):
        return {}  # what does not fit is reported when the sizes are settled
    found = {}
    for value in (*graph.input, *graph.value_info, *graph.output):
        kind = value.type.tensor_type
        if not kind.HasField("shape"):
            continue
        sizes = [_size(dim, symbols) for dim in kind.shape.dim]
        if None not in sizes:
            found[value.name] = tuple(size for size in sizes if size is not None)
    for weight in graph.initializer:
        found[weight.name] = tuple(weight.dims)
    return found


def _size(dim: onnx.TensorShapeProto.Dimension, symbols: dict[str, int]) -> int | None:
    """A size, or a prime for an open one; None without a name, or with one that ONNX made up."""
    if dim.HasField("dim_value"):
        return dim.dim_value
    name = dim.dim_param
    if not name or name.startswith("unk__"):
        return None
    if name not in symbols and len(symbols) < _SYMBOLS:
        symbols[name] = _prime_above(max(symbols.values(), default=_FIRST_SYMBOL))
    return symbols.get(name)


def _prime_above(number: int) -> int:
    number += 1
    while any(number % factor == 0 for factor in range(2, math.isqrt(number) + 1)):
        number += 1
    return number


def _set_dims(port: onnx.ValueInfoProto, dims: Dims) -> None:
    shape = port.type.tensor_type.shape
    del shape.dim[:]
    for dim in dims:
        shape.dim.add().dim_value = dim


def _set_sizes(graph: onnx.GraphProto, at: int, place: int, sizes: list[int]) -> None:
    name = f"mslite.sizes.{at}"  # other nodes may use the constant that was there
    array = np.asarray(sizes, np.int64)
    graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    graph.node[at].input[place] = name
