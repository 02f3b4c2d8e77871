"""How many bytes an engine would make by computing a model's constants ahead of time.

Engines compute every node that depends on constants alone when they compile, whatever size its
result has: 175 bytes of file can take gigabytes. So the constant part is followed here first, node
by node, by ONNX's own shape inference, which knows the numbers of small constants. No list of
operators decides: a node whose size inference cannot find counts as unknown, unless its result is
bounded by its inputs (_BOUNDS). ONNX Runtime gets a bound for each node, so that all unknown ones
together stay within what is left (Folding.most_each); engines without one refuse the model.

Memory and time of the computing itself are measured by fold_cost.py. Those measures are generous,
so that a model beyond them is not refused by ONNX Runtime, which is told to compute nothing ahead;
engines that cannot be told refuse it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import onnx
import onnx_ir as ir

from mindspore_lite.core.budget import SECTION, Budget, CpuClock
from mindspore_lite.errors import EngineError, ModelFileError
from mindspore_lite.passes.edit import attribute, given, graph_nodes, is_op, tensor_of
from mindspore_lite.passes.element_types import signature
from mindspore_lite.passes.fold_cost import SIMPLE, Cost, cost_of
from mindspore_lite.passes.fold_shapes import Dims, dims_of_type, known_shapes, name_apart
from mindspore_lite.passes.infer_shapes import FAILURES
from mindspore_lite.passes.node_count import bodies

_LARGEST = (1 << 63) - 1
_READ = 1 << 13  # bytes of a constant whose numbers are known; shapes, axes and sizes are smaller
_MOST_EACH = 1 << 30  # bytes of one node, whatever is left; what ONNX Runtime has by itself
# An operator that is defined by others makes their results too; AffineGrid was measured at 5
_STEPS_OF_FUNCTION = 8
# About 20 seconds of one core, and what an honest model spends on weights: adapters that are
# multiplied out take a few multiplications for each byte of theirs
_LEAST_STEPS, _STEPS_OF_WEIGHTS = 1 << 34, 16
_MOST_ROUNDS = 8  # guess: shapes that follow from constants that follow from shapes, and so on
_RANDOM = {
    "Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
    "RandomUniformLike",
}  # fmt: skip


@dataclass
class Folding:
    """What computing the constants of a model ahead of time makes."""

    limit: int
    known_bytes: int = 0
    unknown: list[str] = field(default_factory=list)  # nodes whose size cannot be told
    steps: int = 0
    most_steps: int = _LEAST_STEPS
    costly: str = ""  # what takes too much memory or time to compute, in words

    @property
    def most_each(self) -> int:
        """Bytes that each node may make if all are to stay within the limit."""
        left = (self.limit - self.known_bytes) // max(1, len(self.unknown))
        return max(1, min(left, _MOST_EACH)) if self.unknown else min(self.limit, _MOST_EACH)


def refuse_unknown(model: ir.Model, budget: Budget, engine: str) -> None:
    """check_folding() for an engine that has no bound of its own for what it computes ahead.

    Raises:
        ModelFileError: The constants would make more bytes than the budget allows.
        EngineError: The model has constants of unknown size.
    """
    found = check_folding(model, budget)
    if found.unknown:
        raise EngineError(
            f"{engine} would compute {found.unknown[0]} ahead of time, and how large its result is "
            "cannot be told; use [common_context] engine=onnxruntime, which has a bound for that"
        )
    if found.costly:
        raise EngineError(
            f"{engine} would compute constants ahead of time, and {found.costly}; use "
            "[common_context] engine=onnxruntime, which can leave that to the runs"
        )


def check_folding(model: ir.Model, budget: Budget) -> Folding:
    """Measure the constant part of a model that passes/limits.py has passed.

    Raises:
        ModelFileError: It would make more bytes than the budget allows.
    """
    weight_bytes = sum(
        max(tensor.nbytes, 4 * tensor.size)  # of 8 bits become 32 where they are dequantised
        for tensor in _different(model)
    )
    most_steps = _LEAST_STEPS + _STEPS_OF_WEIGHTS * weight_bytes
    name_apart(model)
    clock, rounds = CpuClock(budget), _Rounds(model)
    while True:
        folding = Folding(budget.fold_limit(weight_bytes), most_steps=most_steps)
        measuring = _Measuring(model, folding, clock, rounds)
        measuring.run()
        if not rounds.learned(measuring):
            return folding


def _different(model: ir.Model) -> Iterator[ir.TensorProtocol]:
    """The weights, those that share their bytes once: else a small file could claim any size."""
    seen: set[int] = set()
    for value in model.graph.initializers.values():
        tensor = tensor_of(value)
        if tensor is None:
            continue
        if isinstance(tensor, ir.Tensor) and isinstance(tensor.raw, np.ndarray):
            place = tensor.raw.__array_interface__["data"][0]
            if place in seen:
                continue
            seen.add(place)
        yield tensor


@dataclass(frozen=True)
class _Constant:
    """A value that is known at the build: its size, and its numbers where they are few."""

    dtype: ir.DataType | None = None
    dims: tuple[int, ...] | None = None  # None: not known
    array: np.ndarray | None = None
    is_computed: bool = True  # by a node; else it is in the file

    @property
    def is_unread(self) -> bool:
        """Whether it may be a shape whose numbers an engine knows, and we do not."""
        may_be = self.dtype in (None, ir.DataType.INT64, ir.DataType.INT32)
        small = self.dims is None or self.nbytes <= _READ
        return self.is_computed and self.array is None and may_be and small

    @property
    def elements(self) -> int:
        return 0 if self.dims is None else math.prod(self.dims)

    @property
    def nbytes(self) -> int:
        # no type, or strings: at least a pointer each
        bits = 64 if self.dtype in (None, ir.DataType.STRING) else self.dtype.bitwidth
        return self.elements * bits // 8

    def numbers(self) -> list[float]:
        """What the constant holds; empty where it is not known."""
        return [] if self.array is None else [float(v) for v in self.array.reshape(-1)]


class _Rounds:
    """What is known of shapes. Computed constants settle some, which make other constants."""

    def __init__(self, model: ir.Model) -> None:
        self._model, self._left = model, _MOST_ROUNDS
        self._computed: dict[str, np.ndarray] = {}
        self.murky: set[ir.Value] = set()

    @cached_property
    def shapes(self) -> dict[str, Dims] | None:
        """Dims by the names of values; None: nothing is known, and an engine may know all."""
        return known_shapes(self._model, self._computed) if self._left > 0 else None

    def learned(self, found: _Measuring) -> bool:
        """Whether another round, with what this one has found, may come to another result."""
        if not found.asked or self._left < 0:
            return False
        computed = {
            str(value.name): one.array
            for value, one in found.known.items()
            if one.array is not None and one.is_computed
        }
        if computed.keys() == self._computed.keys() and found.murky == self.murky:
            return False
        self._left -= 1
        self._computed, self.murky = computed, found.murky
        del self.shapes
        return True


class _Measuring:
    """One pass over the nodes in their order."""

    def __init__(self, model: ir.Model, folding: Folding, clock: CpuClock, rounds: _Rounds) -> None:
        self.model, self.folding, self.clock = model, folding, clock
        self.known: dict[ir.Value, _Constant] = {}
        self.version = model.opset_imports.get("", 1)
        self.rounds, self.murky = rounds, set(rounds.murky)
        self.asked = False  # whether a shape decides that is not known

    def run(self) -> None:
        for number, node in enumerate(graph_nodes(self.model)):
            if number % 256 == 0:
                self.clock.check()
            if is_op(node, "Constant"):
                continue  # its size is that of the file
            if is_op(node, "Shape", "Size"):
                self.of_shape(node)
            elif node.op_type not in _RANDOM and self.is_constant(node):
                self.measure(node)
            elif self.is_murky(node):
                self.murky.update(node.outputs)
                for body in bodies(node):
                    self.murky.update(body.inputs)

    def is_murky(self, node: ir.Node) -> bool:
        """Whether an engine may know more than we do of the shapes that a node makes."""
        inside = bodies(node)
        used = [value for value in (*node.inputs, *_captured(inside)) if value is not None]
        if node.domain != "" or not self.murky.isdisjoint(used):
            return True
        constants = [one for one in map(self.constant, used) if one is not None]
        scales = is_op(node, "Resize", "Upsample")
        if any(one.is_unread or (scales and one.array is None) for one in constants):
            return True
        if is_op(node, "If") and self.constant(node.inputs[0]) is not None:
            return True  # one of its branches takes its place
        return any(
            inner.domain != "" or not self.murky.isdisjoint(inner.outputs)
            for body in inside
            for inner in body.all_nodes()
        )

    def constant(self, value: ir.Value | None) -> _Constant | None:
        """What is known of a value; None for one that depends on inputs."""
        if value is None:
            return None
        if value in self.known:
            return self.known[value]
        tensor = tensor_of(value)
        if tensor is None:
            return None
        dims = tuple(int(d) for d in tensor.shape.numpy())
        is_read = tensor.nbytes <= _READ and tensor.dtype != ir.DataType.STRING
        found = _Constant(tensor.dtype, dims, tensor.numpy() if is_read else None, False)
        self.known[value] = found
        return found

    def is_constant(self, node: ir.Node) -> bool:
        """Whether a node depends on constants alone, those that its bodies use included."""
        used = [value for value in node.inputs if value is not None]
        inside = bodies(node)
        if not used and not inside:
            return False
        if not all(self.constant(value) is not None for value in used):
            return False
        return all(self.constant(value) is not None for value in _captured(inside))

    def of_shape(self, node: ir.Node) -> None:
        """The shape of a value is a constant where all of its dims are known."""
        value = given(node, 0)
        if value is None or not node.outputs:
            return
        known = self.constant(value)
        if known is not None:
            # a size that is only bounded has no type
            dims = None if known.dtype is None else known.dims
        else:
            shapes = self.rounds.shapes
            dims = None if shapes is None else shapes.get(str(value.name))
            self.asked = self.asked or dims is None
            if value in self.murky:
                dims = None
            elif dims is None and shapes is not None:
                return  # it is open, for every engine
        start, end = attribute(node, "start", 0), attribute(node, "end")
        if not isinstance(start, int) or not isinstance(end, int | type(None)):
            return
        if dims is None:
            self.known[node.outputs[0]] = _Constant(ir.DataType.INT64)
        elif node.op_type == "Size":
            self.put(node, np.asarray(min(math.prod(dims), _LARGEST)))
        else:
            self.put(node, np.asarray(dims[start:end], np.int64))

    def put(self, node: ir.Node, found: np.ndarray) -> None:
        self.known[node.outputs[0]] = _Constant(ir.DataType.INT64, found.shape, found)

    def measure(self, node: ir.Node) -> None:
        """Add what a constant node makes, and follow its results."""
        inputs = [self.constant(value) for value in node.inputs]
        made = self.results(node, inputs)
        self.weigh(node, inputs, made or ())
        if made is None:
            self.folding.unknown.append(_title(node))
            made = [_Constant() for _ in node.outputs]
        if any(one.dtype == ir.DataType.STRING for one in made):
            raise ModelFileError(
                f"{_title(node)} makes texts of constants, whose size nothing bounds; put its "
                "result into the model instead"
            )
        steps = _STEPS_OF_FUNCTION if self.is_function(node) else 1
        nbytes = steps * sum(one.nbytes for one in made)
        self.folding.known_bytes += nbytes
        if self.folding.known_bytes > self.folding.limit:
            raise ModelFileError(
                f"computing constants ahead of time would make {self.folding.known_bytes} bytes, "
                f"{nbytes} of them in {_title(node)}, more than the {self.folding.limit} that "
                f"[{SECTION}] max_fold_bytes allows; if the file can be trusted, set a larger one"
            )
        self.known.update(zip(node.outputs, made, strict=True))

    def weigh(
        self, node: ir.Node, inputs: Sequence[_Constant | None], made: Sequence[_Constant]
    ) -> None:
        """Add what it takes to compute a node."""
        if bodies(node):  # ONNX Runtime does not compute it ahead, others do not take it
            return
        folding, cost = self.folding, _cost(node, inputs, made)
        if cost is None:
            folding.costly = folding.costly or (
                f"what memory {_title(node)} takes for that cannot be told"
            )
            return
        folding.steps += cost.steps
        if folding.known_bytes + cost.scratch_bytes > folding.limit:
            folding.costly = folding.costly or (
                f"{_title(node)} may take {cost.scratch_bytes} bytes for that, with the constants "
                f"before it more than the {folding.limit} of [{SECTION}] max_fold_bytes"
            )
        elif folding.steps > folding.most_steps:
            folding.costly = folding.costly or (
                f"that may take {folding.steps} steps, {cost.steps} of them in {_title(node)}, "
                f"more than {folding.most_steps}"
            )

    def is_function(self, node: ir.Node) -> bool:
        known = signature(node.domain, node.op_type, self.version) if node.domain == "" else None
        return known is not None and known.has_function

    def results(self, node: ir.Node, inputs: Sequence[_Constant | None]) -> list[_Constant] | None:
        """The outputs of a node; None where the size of one is unknown."""
        if any(one is not None and one.dims is None for one in inputs) or bodies(node):
            return None
        bound = _BOUNDS.get(node.op_type) if node.domain == "" else None
        found = self.inferred(node, inputs)
        if found is None and bound is not None:
            most = bound(node, [one or _Constant() for one in inputs])
            if most is not None:
                found = [_Constant(None, (most,)) for _ in node.outputs]
        if found is not None and len(found) == 1 and found[0].nbytes <= _READ:
            arrays = [None if one is None else one.array for one in inputs]
            if all(one is None or one.array is not None for one in inputs):
                # it takes a tenth of a second to load, and many models need it not
                from mindspore_lite.passes.fold_constants import folded_array

                array = folded_array(node, self.version, arrays)
                if array is not None:
                    return [_Constant(found[0].dtype, array.shape, array)]
        return found

    def inferred(self, node: ir.Node, inputs: Sequence[_Constant | None]) -> list[_Constant] | None:
        """What ONNX's inference says of the outputs."""
        types, data = {}, {}
        for value, one in zip(node.inputs, inputs, strict=True):
            if value is None or one is None:
                continue
            if one.dtype is None:
                return None
            name = str(value.name)
            types[name] = onnx.helper.make_tensor_type_proto(int(one.dtype), one.dims)
            if one.array is not None and one.array.dtype.kind in "iufb":
                data[name] = ir.to_proto(ir.Tensor(one.array, dtype=one.dtype, name=name))
        try:
            opsets = self.model.opset_imports
            imports = [onnx.helper.make_opsetid(*item) for item in opsets.items()]
            schema = onnx.defs.get_schema(node.op_type, self.version_of(node), node.domain)
            proto = ir.to_proto(node)
            found = onnx.shape_inference.infer_node_outputs(
                schema, proto, types, data, opset_imports=imports
            )
        except (onnx.defs.SchemaError, onnx.checker.ValidationError, *FAILURES):
            return None
        made: list[_Constant] = []
        for value in node.outputs:
            one = _constant_of(found.get(value.name)) if value.name else _Constant(None, (0,))
            if one is None:
                return None
            made.append(one)
        return made

    def version_of(self, node: ir.Node) -> int:
        return self.model.opset_imports.get(node.domain, 1)


def _cost(
    node: ir.Node, inputs: Sequence[_Constant | None], made: Sequence[_Constant]
) -> Cost | None:
    if node.domain == "" and node.op_type in SIMPLE:
        return Cost()
    if any(one is not None and one.dims is None for one in (*inputs, *made)):
        return None
    dims = [None if one is None else one.dims for one in inputs]
    return cost_of(node, dims, [one.dims or () for one in made])


def _constant_of(found: onnx.TypeProto | None) -> _Constant | None:
    if found is None or not found.HasField("tensor_type"):
        return None
    dims = dims_of_type(found)
    return None if dims is None else _Constant(ir.DataType(found.tensor_type.elem_type), dims)


def _captured(inside: Sequence[ir.Graph]) -> Iterator[ir.Value]:
    """What bodies use from around them."""
    own = {graph for body in inside for graph in (body, *body.subgraphs())}
    for graph in own:
        for node in graph:
            yield from (v for v in node.inputs if v is not None and v.graph not in own)
        yield from (v for v in graph.outputs if v.graph not in own)


def _title(node: ir.Node) -> str:
    name = node.name or next((value.name for value in node.outputs if value.name), "")
    return f"node {str(name)[:200]!r} ({node.op_type[:200]})"


# --- results that no inference tells: the most elements that an output can have -------------------

_Bound = Callable[[ir.Node, Sequence[_Constant]], int | None]


def _as_many(node: ir.Node, inputs: Sequence[_Constant]) -> int:
    """No more than the first input has."""
    return inputs[0].elements


def _places(node: ir.Node, inputs: Sequence[_Constant]) -> int:
    """An index of each dim for every element."""
    return max(1, len(inputs[0].dims or ())) * inputs[0].elements


def _boxes(node: ir.Node, inputs: Sequence[_Constant]) -> int | None:
    return 3 * inputs[1].elements if len(inputs) > 1 else None


def _window(node: ir.Node, inputs: Sequence[_Constant]) -> int | None:
    return _product(inputs[0].numbers()[:1])


def _one_hot(node: ir.Node, inputs: Sequence[_Constant]) -> int | None:
    depth = _product(inputs[1].numbers()[:1]) if len(inputs) > 1 else None
    return None if depth is None else inputs[0].elements * depth


def _range(node: ir.Node, inputs: Sequence[_Constant]) -> int | None:
    numbers = [number for one in inputs for number in one.numbers()[:1]]
    if len(numbers) != 3 or not all(map(math.isfinite, numbers)) or numbers[2] == 0:
        return None
    return max(0, math.ceil((numbers[1] - numbers[0]) / numbers[2]))


def _mel(node: ir.Node, inputs: Sequence[_Constant]) -> int | None:
    return _product([number for one in inputs[:2] for number in one.numbers()[:1]], 2)


def _unpooled(node: ir.Node, inputs: Sequence[_Constant]) -> int | None:
    return _product(inputs[2].numbers(), 1) if len(inputs) > 2 else None


def _product(numbers: Sequence[float], least: int = 1) -> int | None:
    if len(numbers) < least or not all(map(math.isfinite, numbers)):
        return None
    return math.prod(max(0, math.ceil(number)) for number in numbers)


_BOUNDS: dict[str, _Bound] = {
    "BlackmanWindow": _window,
    "Compress": _as_many,
    "GroupNormalization": _as_many,
    "HammingWindow": _window,
    "HannWindow": _window,
    "MaxUnpool": _unpooled,
    "MeanVarianceNormalization": _as_many,
    "MelWeightMatrix": _mel,
    "NonMaxSuppression": _boxes,
    "NonZero": _places,
    "OneHot": _one_hot,
    "Range": _range,
    "Unique": _as_many,
}
