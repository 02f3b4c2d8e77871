"""Records ONNX nodes while ops describe themselves, and answers what is known about a value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from mindspore_lite.core.budget import DEFAULT, SECTION
from mindspore_lite.core.dtypes import BY_NAME, BY_TYPE_ID, DType
from mindspore_lite.core.snapshot import Unread
from mindspore_lite.errors import ModelFileError, UnsupportedOpError
from mindspore_lite.mindir.records import SequenceType, Tensor, TensorType, Type
from mindspore_lite.ops.table import Val
from mindspore_lite.ops.unread import UnreadTensor

OPSET = 21  # the newest one whose every op the engines' releases of the last two years take
IR_VERSION = 10
MAX_PARTS = 10_000  # guess: real models split into some hundred parts, a damaged one into 2**31
MAX_TABLE = 2**24  # elements of a table that an op makes itself; guess, 64 MiB of float32

# What a complex tensor is made of; ONNX Runtime has no kernels for complex numbers
PART_OF: dict[np.dtype, np.dtype] = {
    np.dtype(np.complex64): np.dtype(np.float32),
    np.dtype(np.complex128): np.dtype(np.float64),
}
_WHOLE_OF = {part: whole for whole, part in PART_OF.items()}

Operand = Val  # an ir.Value, an array (becomes a constant), or None for an input left out


@dataclass(frozen=True, eq=False)
class Complex:
    """A complex tensor as two real ones of the same shape; an op must know it to take it."""

    real: Val
    imag: Val


class Tape:
    """An ONNX graph in the making."""

    def __init__(self) -> None:
        self.nodes: list[ir.Node] = []
        self.initializers: list[ir.Value] = []
        self._names: set[str] = set()
        self._counts: Counter[str] = Counter()  # of each name's repeats: large models have many
        self._constants: dict[tuple[str, tuple[int, ...], bytes], ir.Value] = {}
        self._weights: set[ir.Value] = set()
        self._asked: set[ir.Node] = set()  # whose shapes were inferred as far as they can be
        self.opsets = {"": OPSET}  # the version of each domain's operators
        self.max_table_bytes = DEFAULT.fold_limit(0)  # of all constants that are none of the file
        self._table_bytes = 0
        self.trust_dims = True  # False when the inputs no longer have the exported sizes
        self.primitive = ""  # of the MindIR node being translated
        self.label = ""  # of the MindIR node being translated; ONNX names are made from it
        self.result: Type | None = None  # what the file says the current node returns

    # --- emitting -------------------------------------------------------------------------------

    def op(
        self, op_type: str, inputs: Sequence[Operand], outputs: int = 1, **attributes: Any
    ) -> Val:
        """Add one ONNX node; returns its value, or a tuple of them when outputs > 1."""
        bounded(outputs, "results of one operator")
        name = self.unique(self.label or op_type)
        values = [
            ir.Value(name=name if i == 0 else self.unique(f"{name}:{i}")) for i in range(outputs)
        ]
        kept = {key: value for key, value in attributes.items() if value is not None}
        node = ir.node(
            op_type, [self.value(v) for v in inputs], kept, outputs=values, name=name, version=OPSET
        )
        self.nodes.append(node)
        return values[0] if outputs == 1 else tuple(values)

    def add(self, node: ir.Node) -> Val:
        """Add a node that was made elsewhere; its results get names of this graph."""
        node.name = self.unique(self.label or node.op_type)
        for index, value in enumerate(node.outputs):
            if value.name:  # one that is left out has none
                value.name = self.unique(node.name if index == 0 else f"{node.name}:{index}")
        self.nodes.append(node)
        return node.outputs[0] if len(node.outputs) == 1 else tuple(node.outputs)

    def needs_opset(self, domain: str, version: int) -> None:
        """Note that a node was made for this version of a domain; newer ones take it as well."""
        self.opsets[domain] = max(self.opsets.get(domain, 1), version)

    @contextmanager
    def inner(self) -> Iterator[list[ir.Node]]:
        """Nodes recorded within the block go into a list of their own, for a sub-graph.

        Constants stay with the main graph, where every sub-graph sees them.
        """
        outer, self.nodes = self.nodes, []
        try:
            yield self.nodes
        finally:
            self.nodes = outer

    def unique(self, name: str) -> str:
        """`name`, or the first of name.1, name.2, ... that is free."""
        new = name
        while new in self._names:
            self._counts[name] += 1
            new = f"{name}.{self._counts[name]}"
        self._names.add(new)
        return new

    def value(self, operand: Operand) -> ir.Value | None:
        """An operand as ONNX sees it: arrays and plain numbers become constants."""
        if operand is None or isinstance(operand, ir.Value):
            return operand
        if isinstance(operand, np.ndarray | np.generic):
            return self.constant(np.asarray(operand))
        if isinstance(operand, bool | int | float):
            return self.constant(np.asarray(operand, _PYTHON_TYPES[type(operand)]))
        if isinstance(operand, tuple | list):
            return self.int64s(operand)
        what = "a complex" if isinstance(operand, Complex) else f"a {type(operand).__name__}"
        raise UnsupportedOpError(f"{what} value cannot be used as a tensor here")

    def constant(self, array: np.ndarray) -> ir.Value:
        """A constant; equal small ones are stored once."""
        array = np.ascontiguousarray(array).reshape(array.shape)
        key = (array.dtype.name, array.shape, array.tobytes()) if array.size <= 64 else None
        if key is not None and key in self._constants:
            return self._constants[key]
        self._count_table(array.nbytes)
        made = self.initializer("const", ir.Tensor(array))
        if key is not None:
            self._constants[key] = made
        return made

    def _count_table(self, nbytes: int) -> None:
        """Note a constant, which no operator may make too large, nor many of them together."""
        self._table_bytes += nbytes
        if self._table_bytes > self.max_table_bytes:
            raise ModelFileError(
                f"the model's operators make constants of {self._table_bytes} bytes, {nbytes} of "
                f"them in {self.label!r} ({self.primitive}), more than the {self.max_table_bytes} "
                f"that [{SECTION}] max_fold_bytes allows; if the file can be trusted, set a larger "
                "one"
            )

    def weight(self, name: str, tensor: Tensor) -> Val:
        """A weight of the file under its own name; its bytes stay where they are."""
        dtype = ir.DataType(tensor.dtype.onnx)
        if dtype.numpy() in PART_OF:
            array = tensor.numpy()
            parts = {"real": array.real, "imag": array.imag}
            return Complex(*[
                self.initializer(f"{name}.{part}", ir.Tensor(np.ascontiguousarray(numbers)))
                for part, numbers in parts.items()
            ])  # fmt: skip
        if isinstance(tensor.data, Unread):
            made = self.initializer(name, UnreadTensor(tensor.data, dtype, tensor.shape))
        else:
            made = self.initializer(name, ir.Tensor(tensor.numpy(), dtype=dtype))
        self._weights.add(made)
        return made

    def initializer(self, name: str, tensor: ir.Tensor | UnreadTensor) -> ir.Value:
        """A named constant of the graph."""
        tensor.name = self.unique(name)
        made = ir.Value(
            name=tensor.name,
            type=ir.TensorType(tensor.dtype),
            shape=tensor.shape,
            const_value=tensor,
        )
        self.initializers.append(made)
        return made

    # --- small helpers that many ops share ------------------------------------------------------

    def int64s(self, values: Sequence[Val]) -> ir.Value:
        """A 1-D int64 tensor from numbers, some of which may be known only at run time."""
        if all(isinstance(v, int | np.integer) for v in values):
            return self.constant(np.asarray(values, np.int64))
        parts = [
            part if isinstance(part, np.ndarray) else self._one_int64(part)
            for part in _gathered(values)
        ]
        if len(parts) == 1:
            found: ir.Value = self.cast(parts[0], np.dtype(np.int64))
            return found
        joined: ir.Value = self.op("Concat", parts, axis=0)
        return joined

    def _one_int64(self, value: Val) -> Val:
        number = self.cast(value, np.dtype(np.int64))
        if value.shape is not None and len(value.shape) == 1:
            return number
        if value.shape is not None and len(value.shape) == 0:
            # ONNX's shape inference follows numbers through Unsqueeze, not through Reshape
            return self.op("Unsqueeze", [number, np.asarray([0], np.int64)])
        return self.op("Reshape", [number, np.asarray([1], np.int64)])

    def cast(self, operand: Operand, dtype: np.dtype) -> Val:
        """The operand as this type; constants are converted at once."""
        if dtype in PART_OF or isinstance(operand, Complex):
            return self._cast_complex(operand, dtype)
        if not isinstance(operand, ir.Value):
            return self.constant(np.asarray(operand).astype(dtype))
        if self.dtype(operand) == dtype:
            return operand
        # a weight stays itself: the walk must see whether one that is written to is also read
        if operand.const_value and operand.const_value.size <= 64 and operand not in self._weights:
            return self.constant(operand.const_value.numpy().astype(dtype))
        made: ir.Value = self.op("Cast", [operand], to=int(ir.DataType.from_numpy(dtype)))
        made.type = ir.TensorType(ir.DataType.from_numpy(dtype))
        made.shape = operand.shape
        return made

    def rounded(self, x: ir.Value) -> ir.Value:
        """A float32 tensor with only as many digits as bfloat16 has."""
        kind = ir.DataType.BFLOAT16
        if x.const_value is not None and x.const_value.size <= 64:
            return self.constant(x.const_value.numpy().astype(kind.numpy()).astype(np.float32))
        made: ir.Value = self.op("Cast", [self.op("Cast", [x], to=int(kind))], to=1)
        made.type, made.shape = ir.TensorType(ir.DataType.FLOAT), x.shape
        return made

    @staticmethod
    def onnx_type(dtype: np.dtype) -> int:
        """ONNX's number of an element type, for attributes."""
        return int(ir.DataType.from_numpy(dtype))

    def _cast_complex(self, operand: Operand, dtype: np.dtype) -> Val:
        if isinstance(operand, Complex):
            if dtype not in PART_OF:
                return self.cast(operand.real, dtype)
            part = PART_OF[dtype]
            return Complex(self.cast(operand.real, part), self.cast(operand.imag, part))
        real = self.cast(operand, PART_OF[dtype])
        zero = ir.Tensor(np.zeros(1, PART_OF[dtype]))
        return Complex(real, self.op("ConstantOfShape", [self.op("Shape", [real])], value=zero))

    # --- what is known --------------------------------------------------------------------------

    def dtype(self, value: Val) -> np.dtype:
        """Element type of a tensor or number."""
        if isinstance(value, Complex):
            return _WHOLE_OF[self.dtype(value.real)]
        if not isinstance(value, ir.Value):
            return _PYTHON_TYPES.get(type(value)) or np.asarray(value).dtype
        if value.dtype is None:
            self._infer(value)
        if value.dtype is None:
            raise UnsupportedOpError(f"the element type of {value.name!r} is not known")
        return value.dtype.numpy()

    def rank(self, value: Val) -> int:
        """Number of dims, which must be known."""
        if isinstance(value, Complex):
            return self.rank(value.real)
        if not isinstance(value, ir.Value):
            return np.ndim(value)
        if value.shape is None:
            self._infer(value)
        if value.shape is None:
            raise UnsupportedOpError(
                f"the rank of {value.name!r} is not known; export with a fixed rank"
            )
        return len(value.shape)

    def shape(self, value: Val) -> tuple[int | None, ...]:
        """The dims, None where a dim is known only at run time."""
        if isinstance(value, Complex):
            return self.shape(value.real)
        self.rank(value)
        if not isinstance(value, ir.Value):
            return np.shape(value)
        assert value.shape is not None
        if not value.shape.is_static():
            self._infer(value)
        return tuple(d if isinstance(d, int) else None for d in value.shape)

    def result_dtype(self, *operands: Val) -> np.dtype:
        """Element type of the current node's result: as the file says, else as is usual."""
        declared = self.result
        if isinstance(declared, SequenceType) and declared.items:
            declared = declared.items[0]
        if isinstance(declared, TensorType):
            return declared.dtype.numpy
        return self.promoted(*operands)

    def promoted(self, *operands: Val) -> np.dtype:
        """The common type of operands as MindSpore sees it: tensors decide over Python numbers."""
        tensors = [self.dtype(v) for v in operands if isinstance(v, _TENSORS)]
        numbers = [self.dtype(v) for v in operands if not isinstance(v, _TENSORS)]
        found = tensors[0] if tensors else numbers[0]
        for dtype in tensors[1:]:
            found = _wider(found, dtype)
        for dtype in numbers:
            if _KINDS.index(dtype.kind) > _KINDS.index(found.kind):
                found = dtype
        return found

    def declare(self, value: ir.Value, declared: TensorType) -> None:
        """Note what the file says about a value, where nothing better is known yet."""
        if value.dtype is None:
            value.type = ir.TensorType(ir.DataType(declared.dtype.onnx))
        if value.shape is None and declared.shape is not None:
            value.shape = ir.Shape(
                [d if self.trust_dims and d >= 0 else None for d in declared.shape]
            )

    def _infer(self, value: ir.Value) -> None:
        """Ask ONNX's own shape inference about the node that makes a value, its sources first.

        Each node is asked once: where dims are open they stay so, and asking again about all that
        came before made models of some hundred nodes take many seconds.
        """
        pending = [value]
        seen: set[int] = set()
        while pending:  # not recursive: chains may be thousands of nodes long
            current = pending[-1]
            node = current.producer()
            missing = [
                v
                for v in (node.inputs if node else ())
                if v is not None and id(v) not in seen and self._is_open(v)
            ]
            if missing and id(current) not in seen:
                seen.add(id(current))
                pending.extend(missing)
                continue
            seen.add(id(current))
            pending.pop()
            if node is not None and self._is_open(current) and _infer_node(node):
                self._asked.add(node)

    def _is_open(self, value: ir.Value) -> bool:
        """Whether inference may still find out more about a value."""
        node = value.producer()
        return node is not None and node not in self._asked and not _known(value)


_TENSORS = ir.Value | np.ndarray | Complex
_PYTHON_TYPES = {bool: np.dtype(np.bool_), int: np.dtype(np.int64), float: np.dtype(np.float32)}
_KINDS = "buifc"  # bool, unsigned, signed, float, complex: later ones win
_SMALL = 1024  # elements of a constant that shape inference may want to look at


def _wider(a: np.dtype, b: np.dtype) -> np.dtype:
    kinds = {a.kind, b.kind}
    if "f" in kinds and kinds & set("biu"):  # NumPy would make int32 + float32 a float64
        return a if a.kind == "f" else b
    return np.result_type(a, b)


def _known(value: ir.Value) -> bool:
    return value.dtype is not None and value.shape is not None and value.shape.is_static()


def _infer_node(node: ir.Node) -> bool:
    """Fill in what is known of a node's outputs; returns False where nothing can be asked yet."""
    inputs = [v for v in node.inputs if v is not None]
    if node.op_type in ("If", "Loop") or any(v.dtype is None for v in inputs):
        return False  # sub-graphs see values of this one, which ONNX cannot know about here
    types = {str(v.name): ir.serde.serialize_value(v).type for v in inputs}
    data = {
        str(v.name): ir.serde.serialize_tensor(v.const_value)
        for v in inputs
        if v.const_value is not None and v.const_value.size <= _SMALL
    }
    schema = onnx.defs.get_schema(node.op_type, OPSET, node.domain)
    proto = ir.serde.serialize_node(node)
    opset = [onnx.helper.make_opsetid("", OPSET)]
    try:
        found = onnx.shape_inference.infer_node_outputs(
            schema, proto, types, data, None, opset, IR_VERSION
        )
    except (onnx.shape_inference.InferenceError, onnx.checker.ValidationError) as exc:
        raise UnsupportedOpError(
            f"shapes or types do not fit at {node.name!r} ({node.op_type}): {exc}"
        ) from exc
    for value in node.outputs:
        if (proto_type := found.get(str(value.name))) is not None:
            fresh = ir.serde.deserialize_type_proto_for_type(proto_type)
            if fresh is not None and value.dtype is None:
                value.type = fresh
            shape = ir.serde.deserialize_type_proto_for_shape(proto_type)
            if shape is not None:
                value.shape = _named(shape, value.shape)
    return True


def _named(found: ir.Shape, before: ir.Shape | None) -> ir.Shape:
    """An inferred shape, whose open dims keep the names that they had."""
    if before is None or len(before) != len(found):
        return found
    pairs = zip(found, before, strict=True)
    open_dim = ir.SymbolicDim(None)
    return ir.Shape([b if a == open_dim and not isinstance(b, int) else a for a, b in pairs])


def _gathered(values: Sequence[Val]) -> Iterator[Val]:
    """The parts that a vector of these numbers is joined from: arrays of those known now, single
    ones, and whole vectors where all their numbers stand in a row.
    """
    at = 0
    while at < len(values):
        known = at
        while known < len(values) and not isinstance(values[known], ir.Value):
            known += 1
        if known > at:
            yield np.asarray([int(v) for v in values[at:known]], np.int64)
            at = known
            continue
        source, count = _whole_vector(values[at:])
        yield source
        at += count


def _whole_vector(values: Sequence[Val]) -> tuple[ir.Value, int]:
    """The vector whose numbers a sequence begins with, and how many they are; or just the first."""
    source, count = _taken_from(values[0], 0), 0
    if source is None or source.shape is None or len(source.shape) != 1:
        return values[0], 1
    while count < len(values) and _taken_from(values[count], count) is source:
        count += 1
    return (source, count) if source.shape[0] == count else (values[0], 1)


def _taken_from(value: Val, index: int) -> ir.Value | None:
    """The vector that a value is the number `index` of."""
    node = value.producer() if isinstance(value, ir.Value) else None
    if node is None or node.op_type != "Gather":
        return None
    held = constant_of(node.inputs[1])
    return node.inputs[0] if held is not None and held.shape == () and held == index else None


def bounded(count: int, what: str, most: int = MAX_PARTS) -> int:
    """A number from the file that work or memory grows with, refused when it is absurd."""
    if count > most:
        raise UnsupportedOpError(f"{count} {what}, at most {most}")
    return count


def constant_of(value: Val) -> np.ndarray | None:
    """The array behind a constant operand, or None when it is computed at run time."""
    if isinstance(value, ir.Value):
        return None if value.const_value is None else value.const_value.numpy()
    return None if value is None else np.asarray(value)


def is_bfloat16(dtype: Val) -> bool:
    """Whether a dtype argument names bfloat16."""
    row = BY_NAME["bfloat16"]
    return dtype is row or (isinstance(dtype, int) and dtype == row.type_id)


def dtype_argument(value: Val) -> DType:
    """A dtype argument: a TypeId number, or a bare dtype in old files."""
    found = value if isinstance(value, DType) else None
    if isinstance(value, int):
        found = BY_TYPE_ID.get(value)
    if found is None:
        raise UnsupportedOpError(f"element type {value!r} cannot be used here")
    # bfloat16 is computed in float32, see graph/bfloat16.py
    return BY_NAME["float32"] if found.name == "bfloat16" else found
