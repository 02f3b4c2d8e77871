"""Pass: lets constants follow input sizes that were replaced.

Exporters write sizes down as numbers: the batch in the target of a Reshape, the end of a Slice.
When an input gets another size, a number that said the old one must say the new one, or the model
would fail or compute something else. A number is such a one if it is the size that a value had at
its place when the model was exported. Nodes of bodies are left as they are.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
import onnx
import onnx_ir as ir

from mindspore_lite.errors import ShapeError
from mindspore_lite.passes import long_lists
from mindspore_lite.passes.check_nodes import title
from mindspore_lite.passes.edit import array_of, attribute, constant, given, ints_of, set_input
from mindspore_lite.passes.fold_constants import folded_array
from mindspore_lite.passes.infer_shapes import LARGE_BYTES, forget_declared, light_proto
from mindspore_lite.passes.repeated_constants import Edit, joined_constants
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
    _fold_lists(model)
    proto = light_proto(model)
    forget_declared(proto.graph)
    round_scales_up(proto.graph)
    symbols: dict[str, int] = {}
    old = _inferred(proto, symbols)
    for port in proto.graph.input:
        if port.name in shapes:
            _set_dims(port, shapes[port.name])
    done: set[tuple[int, int]] = set()
    nodes = list(model.graph)
    places = {id(node): at for at, node in enumerate(nodes)}
    for _ in range(_ROUNDS):
        new = _inferred(proto, symbols)
        found = {
            (places[id(edit.node)], edit.place): edit
            for edit in _due(nodes, old, new, changes, shapes)
        }
        if found.keys() <= done:
            return len(done)
        for key in found.keys() - done:
            edit = found[key]
            done.add(key)
            _set_constant(proto.graph, *key, edit.array)
            set_input(edit.node, edit.place, constant(edit.node, edit.array, "sizes"))
    raise ShapeError(
        f"the input sizes cannot be replaced: more than {_ROUNDS} layers that depend on each other "
        "hold sizes as constants; export the model again with these sizes"
    )


def _fold_lists(model: ir.Model) -> None:
    """Compute short lists of whole numbers that are made of constants: they may be sizes."""
    version = model.opset_imports.get("", 0)
    for node in list(model.graph):
        if len(node.outputs) != 1 or node.outputs[0].is_graph_output() or not node.inputs:
            continue
        arrays = [array_of(value, long_lists.SHORT) for value in node.inputs]
        present = sum(value is not None for value in node.inputs)
        if sum(array is not None for array in arrays) != present:
            continue
        found = folded_array(node, version, arrays)
        if found is None or found.size > long_lists.SHORT or found.dtype.kind not in "iub":
            continue
        made = constant(node, found, "folded")
        ir.convenience.replace_all_uses_with(node.outputs[0], made)


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
    nodes: list[ir.Node], old: Known, new: Known, changes: Changes, inputs: Iterable[str]
) -> list[Edit]:
    """The constants to change of nodes whose inputs are settled."""
    unsettled: set[str] = set()
    derived = set(inputs)  # what is computed from inputs that get other sizes
    found: list[Edit] = []
    for node in nodes:
        names = [str(value.name) if value is not None else "" for value in node.inputs]
        depends = bool(derived.intersection(names))
        if depends:
            derived.update(str(value.name) for value in node.outputs)
        if unsettled.intersection(names):
            unsettled.update(str(value.name) for value in node.outputs)
            continue
        was, now = ([known.get(name) for name in names] for known in (old, new))
        if node.domain or (was == now and not depends):
            continue
        edits = [*_own_sizes(node, was[0], now[0], changes), *joined_constants(node, was, now)]
        for edit in edits:
            found.append(edit)
            unsettled.update(str(value.name) for value in (*edit.node.outputs, *node.outputs))
    return found


def _own_sizes(
    node: ir.Node, was: Dims | None, now: Dims | None, changes: Changes
) -> Iterator[Edit]:
    """What a node says in numbers about the sizes of its first input."""
    if node.op_type not in _RULES or was is None or now is None:
        return
    if len(was) != len(now):
        return
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
        yield Edit(node, place, np.asarray(sizes, np.int64))


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


def _set_constant(graph: onnx.GraphProto, at: int, place: int, array: np.ndarray) -> None:
    name = f"mslite.sizes.{at}.{place}"  # other nodes may use the constant that was there
    if array.nbytes <= LARGE_BYTES:
        tensor = onnx.numpy_helper.from_array(array, name)
    else:  # inference needs no more than its type and shape
        kind = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
        external = onnx.TensorProto.EXTERNAL
        tensor = onnx.TensorProto(
            name=name, data_type=kind, dims=array.shape, data_location=external
        )
    graph.initializer.append(tensor)
    graph.node[at].input[place] = name
