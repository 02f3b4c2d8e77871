"""Pass: computes nodes whose types an engine has no kernel for in a wider type.

1. A node is left alone if a kernel takes its types. ONNX Runtime lacks many for 8 and 16 bit
   integers, truth values, bfloat16 and float64; what it lacks for float16 it widens by itself.
2. Else the types of the node are replaced by wider ones that a kernel takes, those first that lose
   nothing. Integers wrap round when they are cast back, as they would have in their own type.
3. Constants are converted at once. A value that was made in the wider type is used as it is by the
   next node that wants it so: always for floats (more precise than rounding in between), for others
   only where it cannot have left the range of its own type.
4. bfloat16 inputs and outputs of the model become float32, and are named in the model's border.

An ordinary model is recognised by its types alone, before the engine's list of kernels is made.
"""

from __future__ import annotations

import itertools
import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import onnx_ir as ir
from onnx_ir.passes.common import RemoveUnusedNodesPass

from mindspore_lite.engines.sessions.io_types import KEY, declared
from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.passes.element_types import (
    Signature,
    element_types,
    signature,
    type_attribute,
    written,
)

Kernel = tuple[str, str, int, int, Mapping[str, Sequence[str]]]  # domain, op, versions, types

_T = ir.DataType
_OPEN_END = 2**31 - 1  # the last version of a kernel that was never superseded

# The types to try, in this order. Those behind None may lose something.
_WIDER: dict[ir.DataType, tuple[ir.DataType | None, ...]] = {
    _T.BOOL: (_T.INT32, _T.INT64, _T.UINT8, _T.FLOAT),
    _T.INT8: (_T.INT32, _T.INT64, _T.FLOAT, _T.DOUBLE),
    _T.INT16: (_T.INT32, _T.INT64, _T.FLOAT, _T.DOUBLE),
    _T.INT32: (_T.INT64, _T.DOUBLE, None, _T.FLOAT),
    _T.INT64: (None, _T.DOUBLE, _T.FLOAT),
    _T.UINT8: (_T.INT32, _T.INT64, _T.FLOAT, _T.DOUBLE),
    _T.UINT16: (_T.UINT32, _T.INT32, _T.INT64, _T.FLOAT, _T.DOUBLE),
    _T.UINT32: (_T.INT64, _T.UINT64, _T.DOUBLE, None, _T.FLOAT),
    _T.UINT64: (None, _T.INT64, _T.DOUBLE, _T.FLOAT),
    _T.FLOAT16: (_T.FLOAT, _T.DOUBLE),
    _T.BFLOAT16: (_T.FLOAT, _T.DOUBLE),
    _T.DOUBLE: (None, _T.FLOAT),
}
_FLOATS = frozenset({_T.FLOAT16, _T.BFLOAT16, _T.DOUBLE})

# Ops that only move elements about: nothing is lost in any type that has as many bits
_MOVES = frozenset({
    "Where", "Pad", "Tile", "Expand", "ScatterND", "ScatterElements", "GatherND", "Trilu",
    "DepthToSpace", "SpaceToDepth", "OneHot", "EyeLike", "Compress", "ReverseSequence",
})  # fmt: skip
# ... and ops whose results are among their operands, too
_PICKS = _MOVES | {"Max", "Min", "Clip", "ReduceMax", "ReduceMin", "TopK", "MaxPool", "Unique"}
# Ops whose results are right modulo 2**64 whether the numbers have a sign or not
_WRAPS = _MOVES | {"CumSum", "Sum", "Einsum", "Gemm", "Range"}  # ReduceSum goes through float64

# What makes a node ordinary: the types of most models, and ops known to take them
_REAL = frozenset({_T.FLOAT, _T.FLOAT16})
_NUMBERS = _REAL | {_T.INT32, _T.INT64}
_ORDINARY = _NUMBERS | {_T.BOOL}
TAKES_NUMBERS = frozenset({
    "Add", "Sub", "Mul", "Div", "Less", "Greater", "LessOrEqual", "GreaterOrEqual", "Max", "Min",
    "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceMean", "Abs", "Neg", "Sign", "Tile",
    "TopK", "ArgMax", "ArgMin", "Range", "CumSum", "Mod", "Clip", "NonZero",
})  # fmt: skip
TAKES_ORDINARY = frozenset({
    "Cast", "Concat", "Gather", "GatherElements", "GatherND", "Shape", "Size", "Reshape", "Squeeze",
    "Transpose", "Unsqueeze", "Flatten", "Slice", "Split", "Identity", "Expand", "ConstantOfShape",
    "Equal", "And", "Or", "Not", "Xor", "ScatterND", "ScatterElements", "Pad", "Compress",
})  # fmt: skip
# Ops of control flow and of sequences take whatever there is; constants are no nodes in the end
_SKIPPED = frozenset({
    "If", "Loop", "Scan", "Constant", "CastLike", "SequenceAt", "SequenceConstruct",
    "SequenceEmpty", "SequenceErase", "SequenceInsert", "SequenceLength", "SequenceMap",
    "SplitToSequence", "ConcatFromSequence", "Optional", "OptionalGetElement", "OptionalHasElement",
})  # fmt: skip

_warned: set[tuple[str, str]] = set()  # (engine, what)


class Kernels:
    """What an engine can compute, by operator and types; errors call it by its name."""

    def __init__(self, name: str, rows: Iterable[Kernel]) -> None:
        self.name = name
        self._rows: dict[tuple[str, str], list[tuple[int, int, Mapping[str, Sequence[str]]]]] = {}
        for domain, op_type, start, end, types in rows:
            self._rows.setdefault((domain, op_type), []).append((start, end, types))

    def take(self, node: ir.Node, known: Signature, types: Mapping[str, ir.DataType]) -> bool:
        """Whether the node could run with these types of its type variables."""
        rows = self._rows.get((node.domain, node.op_type), [])
        fitting = [constraints for start, end, constraints in rows if _covers(start, end, known)]
        if not fitting:  # it is replaced by its definition, if it has one
            return not known.has_function or _FLOATS.isdisjoint(types.values())
        spelled = {name: written(dtype) for name, dtype in types.items()}
        for formal in (*known.inputs, *known.outputs):  # some kernels name these instead
            if formal.type in types:
                spelled.setdefault(formal.name, written(types[formal.type]))
        return any(
            all(spelled.get(name, allowed[0]) in allowed for name, allowed in constraints.items())
            for constraints in fitting
        )


def _covers(start: int, end: int, known: Signature) -> bool:
    return start == known.since or (start < known.since <= end and end != _OPEN_END)


def widen(model: ir.Model, kernels: Callable[[], Kernels]) -> None:
    """Change the model in place so that every node has a kernel."""
    carried = _carry_bfloat16(model)
    types = element_types(model)
    unusual = [node for node in model.graph.all_nodes() if not _is_ordinary(node, types)]
    if not unusual:
        return
    work = _Work(model, types, kernels(), carried)
    for node in unusual:
        version = model.opset_imports.get(node.domain, 1)
        if (known := signature(node.domain, node.op_type, version)) is not None:
            work.visit(node, known)
    work.finish()


def _is_ordinary(node: ir.Node, types: Mapping[ir.Value, ir.DataType]) -> bool:
    op_type = node.op_type
    if op_type in _SKIPPED:
        return True
    found = {types.get(v, _T.FLOAT) for v in (*node.inputs, *node.outputs) if v is not None}
    if found <= _REAL:
        return True
    if op_type in TAKES_ORDINARY:
        return found <= _ORDINARY
    if op_type == "Where" and node.domain == "":
        return types.get(node.outputs[0]) in _NUMBERS
    return op_type in TAKES_NUMBERS and found - {_T.BOOL} <= _NUMBERS and _no_truths(node, types)


def _no_truths(node: ir.Node, types: Mapping[ir.Value, ir.DataType]) -> bool:
    return all(types.get(v) != _T.BOOL for v in node.inputs if v is not None)


def _carry_bfloat16(model: ir.Model) -> dict[tuple[ir.Value, ir.DataType], ir.Value]:
    """NumPy arrays of bfloat16 cannot be handed to the engine: the border converts them.

    Returns the inputs by what their users see now, which is them cast to bfloat16.
    """
    carried: dict[tuple[ir.Value, ir.DataType], ir.Value] = {}
    graph = model.graph
    inputs = [v for v in graph.inputs if v.dtype == _T.BFLOAT16 and not v.is_initializer()]
    outputs = [at for at, v in enumerate(graph.outputs) if v.dtype == _T.BFLOAT16]
    if not inputs and not outputs:
        return carried
    border = {side: declared(model.metadata_props, side) for side in ("inputs", "outputs")}
    for value in inputs:
        inside = _cast(value, _T.BFLOAT16, f"{value.name}/bfloat16")
        value.replace_all_uses_with(inside.outputs[0])
        inside.replace_input_with(0, value)
        value.type = ir.TensorType(_T.FLOAT)
        _insert_first(graph, inside)
        border["inputs"][str(value.name)] = "bfloat16"
        carried[inside.outputs[0], _T.FLOAT] = value
    for at in outputs:
        value = graph.outputs[at]
        name, value.name = value.name, f"{value.name}/bfloat16"
        outside = _cast(value, _T.FLOAT, str(name))
        graph.append(outside)
        graph.outputs[at] = outside.outputs[0]
        border["outputs"][str(name)] = "bfloat16"
    model.metadata_props[KEY] = json.dumps(border)
    return carried


def _cast(value: ir.Value, to: ir.DataType, name: str) -> ir.Node:
    made = ir.Value(name=name, type=ir.TensorType(to), shape=value.shape)
    return ir.node("Cast", [value], {"to": int(to)}, outputs=[made], name=f"{name}/cast")


def _insert_first(graph: ir.Graph, node: ir.Node) -> None:
    first = next(iter(graph), None)
    if first is None:
        graph.append(node)
    else:
        graph.insert_before(first, node)


@dataclass
class _Work:
    """The widening of one model."""

    model: ir.Model
    types: dict[ir.Value, ir.DataType]
    kernels: Kernels
    wide: dict[tuple[ir.Value, ir.DataType], ir.Value]  # values that exist in a wider type, too
    lossy: dict[str, None] = field(default_factory=dict)  # what to warn of, in order
    problems: dict[str, list[str]] = field(default_factory=dict)
    choices: dict[object, tuple[dict[str, ir.DataType], bool] | None] = field(default_factory=dict)
    changed: bool = False
    count: int = 0

    def visit(self, node: ir.Node, known: Signature) -> None:
        """Give a node other types if it needs them."""
        if node.op_type == "Cast":
            self.shorten(node)
            return
        now = {
            formal.type: self.types[value]
            for formal, value in reversed(list(known.pairs(node)))
            if value in self.types and not formal.type.startswith("tensor(")
        }
        if self.runs(node, known, now):
            return
        key = (node.domain, node.op_type, tuple(sorted(now.items())))
        if key not in self.choices:
            self.choices[key] = self.choose(node, known, now)
        choice = self.choices[key]
        spelled = ", ".join(written(t)[7:-1] for t in dict.fromkeys(now.values()))
        if choice is None:
            if not known.has_function:
                self.problems.setdefault(f"{node.op_type} of {spelled}", []).append(str(node.name))
            return
        wanted, lossy = choice
        if lossy:
            self.lossy[f"{node.op_type} of {spelled}"] = None
        self.change(node, known, now, wanted)

    def shorten(self, cast: ir.Node) -> None:
        """Let a Cast to a type in which its operand was made begin there: it then does nothing."""
        value = cast.inputs[0]
        if value is not None:
            found = self.wide.get((value, type_attribute(cast, "to")))
            if found is not None:
                cast.replace_input_with(0, found)
                self.changed = True

    def runs(self, node: ir.Node, known: Signature, types: Mapping[str, ir.DataType]) -> bool:
        """Whether a kernel exists, or ONNX Runtime will find one for float32 by itself."""
        if self.kernels.take(node, known, types):
            return True
        given = {formal.type for formal in known.inputs}
        half = {
            name: _T.FLOAT if dtype == _T.FLOAT16 and name in given else dtype
            for name, dtype in types.items()
        }
        return half != types and self.kernels.take(node, known, half)

    def choose(
        self, node: ir.Node, known: Signature, now: Mapping[str, ir.DataType]
    ) -> tuple[dict[str, ir.DataType], bool] | None:
        """The nearest types that a kernel takes, and whether they may lose something."""
        options = [[(0, dtype), *_candidates(node.op_type, dtype)] for dtype in now.values()]
        for combination in sorted(itertools.product(*options), key=lambda c: sum(x for x, _ in c)):
            tried = dict(zip(now, (dtype for _, dtype in combination), strict=True))
            if self.runs(node, known, tried):
                return tried, sum(cost for cost, _ in combination) >= _LOSS
        return None

    def change(
        self,
        node: ir.Node,
        known: Signature,
        now: Mapping[str, ir.DataType],
        wanted: Mapping[str, ir.DataType],
    ) -> None:
        """Cast inputs, and cast outputs back."""
        self.changed = True
        last = len(known.inputs) - 1
        for at, value in enumerate(node.inputs):
            kind = known.inputs[min(at, last)].type
            if value is not None and wanted.get(kind, _T.FLOAT) != now.get(kind, _T.FLOAT):
                node.replace_input_with(at, self.widened(value, wanted[kind]))
        if "dtype" in node.attributes and known.outputs[0].type in wanted:
            node.attributes["dtype"] = ir.AttrInt64("dtype", int(wanted[known.outputs[0].type]))
        last = len(known.outputs) - 1
        for at, value in enumerate(node.outputs):
            kind = known.outputs[min(at, last)].type
            if value.name and wanted.get(kind, _T.FLOAT) != now.get(kind, _T.FLOAT):
                self.narrow(node, value, wanted[kind])

    def widened(self, value: ir.Value, dtype: ir.DataType) -> ir.Value:
        """A value in a wider type: as it was made, as a constant, or cast where it was made."""
        found = self.wide.get((value, dtype))
        if found is not None:
            return found
        name = self.unique(f"{value.name}/{dtype.name.lower()}")
        graph, tensor, producer = value.graph, value.const_value, value.producer()
        assert graph is not None
        if tensor is not None and value.is_initializer() and not value.is_graph_input():
            made = ir.Value(
                name=name,
                type=ir.TensorType(dtype),
                shape=value.shape,
                const_value=ir.Tensor(tensor.numpy().astype(dtype.numpy()), name=name),
            )
            graph.register_initializer(made)
        else:
            cast = _cast(value, dtype, name)
            made = cast.outputs[0]
            if producer is not None:
                graph.insert_after(producer, cast)
            else:
                _insert_first(graph, cast)
        self.types[made] = dtype
        self.wide[value, dtype] = made
        return made

    def narrow(self, node: ir.Node, value: ir.Value, dtype: ir.DataType) -> None:
        """Let a node make a wider value; its users get it cast back."""
        back = _cast(value, self.types[value], str(value.name))
        made = back.outputs[0]
        value.replace_all_uses_with(made, replace_graph_outputs=True)
        back.replace_input_with(0, value)
        value.name = self.unique(f"{value.name}/{dtype.name.lower()}")
        assert node.graph is not None
        node.graph.insert_after(node, back)
        self.types[made], self.types[value] = self.types[value], dtype
        value.type = ir.TensorType(dtype)
        if self.types[made] in _FLOATS or node.op_type in _PICKS:
            self.wide[made, dtype] = value

    def unique(self, name: str) -> str:
        """A name that nothing in the model has: names of files hold no such number."""
        self.count += 1
        return f"{name}/{self.count}"

    def finish(self) -> None:
        """Tell what cannot be computed, or not as exactly, and drop what is no longer used."""
        if self.problems:
            found = [f"{what} (at {', '.join(at[:5])})" for what, at in self.problems.items()]
            raise UnsupportedOpError(f"{self.kernels.name} has no kernel for {'; '.join(found)}")
        if self.changed:
            RemoveUnusedNodesPass()(self.model)
        name = self.kernels.name
        if new := [what for what in self.lossy if (name, what) not in _warned]:
            _warned.update((name, what) for what in new)
            warnings.warn(
                f"computed with less precision than the model asks for, because {name} has no "
                f"exact kernel: {', '.join(new)}",
                RuntimeWarning,
                stacklevel=2,
            )


_LOSS = 1000  # added to the cost of a type that may lose something


def _candidates(op_type: str, dtype: ir.DataType) -> Iterator[tuple[int, ir.DataType]]:
    """(cost, type) of the types to try in place of one."""
    if dtype == _T.BOOL and op_type in _PICKS:
        yield 1, _T.UINT8  # no larger than what it stands for
    loss = 0
    for cost, wider in enumerate(_WIDER.get(dtype, ()), start=2):
        if wider is None:
            loss = _LOSS
        elif dtype == _T.UINT64 and wider == _T.INT64 and op_type in _WRAPS:
            yield cost, wider
        else:
            yield cost + loss, wider
