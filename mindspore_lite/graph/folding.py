"""What an engine would compute ahead of time: how many bytes the constant part of a model makes.

Engines compute every node that depends on constants alone when they compile, whatever size its
result has: 175 bytes of file can take gigabytes. So the constant part is followed here first, node
by node, by ONNX's own shape inference, which knows the numbers of small constants. No list of
operators decides: a node whose size inference cannot tell counts as unknown, unless its result is
bounded by its inputs (_BOUNDS). ONNX Runtime gets a bound for each node, so that all unknown ones
together stay within what is left (Folding.most_each); engines without one refuse the model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx
import onnx_ir as ir

from mindspore_lite.core.budget import SECTION, Budget, CpuClock
from mindspore_lite.errors import EngineError, ModelFileError
from mindspore_lite.graph.edit import attribute, dims_of, given, graph_nodes, tensor_of
from mindspore_lite.graph.element_types import signature
from mindspore_lite.graph.infer_shapes import light_proto
from mindspore_lite.graph.long_lists import inferred
from mindspore_lite.graph.node_count import bodies

_LARGEST = (1 << 63) - 1
_READ = 1 << 13  # bytes of a constant whose numbers are known; shapes, axes and sizes are smaller
_MOST_EACH = 1 << 30  # bytes of one node, whatever is left; what ONNX Runtime has by itself
# An operator that is defined by others makes their results too; AffineGrid was measured at 5
_STEPS_OF_FUNCTION = 8
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


def check_folding(model: ir.Model, budget: Budget) -> Folding:
    """Measure the constant part of a model that graph/limits.py has passed.

    Raises:
        ModelFileError: It would make more bytes than the budget allows.
    """
    weight_bytes = sum(
        max(tensor.nbytes, 4 * tensor.size)  # of 8 bits become 32 where they are dequantised
        for tensor in _different(model)
    )
    folding = Folding(budget.fold_limit(weight_bytes))
    _Measuring(model, folding, CpuClock(budget)).run()
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


class _Measuring:
    """One pass over the nodes in their order."""

    def __init__(self, model: ir.Model, folding: Folding, clock: CpuClock) -> None:
        self.model, self.folding, self.clock = model, folding, clock
        self.known: dict[ir.Value, _Constant] = {}
        self.version = model.opset_imports.get("", 1)
        self.shapes: dict[str, tuple[int, ...]] | None = None

    def run(self) -> None:
        for number, node in enumerate(graph_nodes(self.model)):
            if number % 256 == 0:
                self.clock.check()
            if node.op_type == "Constant" and node.domain == "":
                continue  # its size is that of the file
            if node.op_type in ("Shape", "Size") and node.domain == "":
                self.of_shape(node)
            elif node.op_type not in _RANDOM and self.is_constant(node):
                self.measure(node)

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
        found = _Constant(tensor.dtype, dims, tensor.numpy() if is_read else None)
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
        dims = self.dims(value) if value is not None else None
        if dims is None or not node.outputs:
            return
        if node.op_type == "Size":
            found = np.asarray(min(math.prod(dims), _LARGEST))
        else:
            start, end = attribute(node, "start", 0), attribute(node, "end")
            if not isinstance(start, int) or not isinstance(end, int | type(None)):
                return
            found = np.asarray(dims[start:end], np.int64)
        self.known[node.outputs[0]] = _Constant(ir.DataType.INT64, found.shape, found)

    def dims(self, value: ir.Value) -> tuple[int, ...] | None:
        known = self.constant(value)
        if known is not None:
            return known.dims
        if self.shapes is None:
            self.shapes = _shapes(self.model)
        declared = dims_of(value)
        if declared is not None and None not in declared:
            return tuple(d for d in declared if d is not None)
        return self.shapes.get(str(value.name))

    def measure(self, node: ir.Node) -> None:
        """Add what a constant node makes, and follow its results."""
        inputs = [self.constant(value) for value in node.inputs]
        made = self.results(node, inputs)
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

    def is_function(self, node: ir.Node) -> bool:
        known = signature(node.domain, node.op_type, self.version) if node.domain == "" else None
        return known is not None and known.has_function

    def results(self, node: ir.Node, inputs: Sequence[_Constant | None]) -> list[_Constant] | None:
        """The outputs of a node; None where the size of one cannot be told."""
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
                from mindspore_lite.graph.fold_constants import folded_array

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
        except (onnx.defs.SchemaError, onnx.checker.ValidationError, *_FAILURES):
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


# what inference raises on nodes that make no sense: the engine will say so
_FAILURES = (onnx.shape_inference.InferenceError, RuntimeError, TypeError, ValueError)


def _constant_of(found: onnx.TypeProto | None) -> _Constant | None:
    if found is None or not found.HasField("tensor_type"):
        return None
    tensor = found.tensor_type
    if not tensor.HasField("shape") or not all(d.HasField("dim_value") for d in tensor.shape.dim):
        return None
    dims = tuple(max(0, d.dim_value) for d in tensor.shape.dim)
    return _Constant(ir.DataType(tensor.elem_type), dims)


def _shapes(model: ir.Model) -> dict[str, tuple[int, ...]]:
    """The values of the main graph whose dims all follow from those of the inputs."""
    try:
        proto = inferred(light_proto(model))
    except _FAILURES:
        return {}
    found = {}
    for info in (*proto.graph.input, *proto.graph.value_info, *proto.graph.output):
        if (known := _constant_of(info.type)) is not None and known.dims is not None:
            found[info.name] = known.dims
    return found


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
