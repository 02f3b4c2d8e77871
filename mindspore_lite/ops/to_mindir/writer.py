"""Writes MindIR nodes while ONNX operators describe themselves as MindSpore primitives."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx_ir as ir

from mindspore_lite.core.dtypes import TABLE, DType, from_numpy
from mindspore_lite.mindir.records import (
    Call,
    Constant,
    GraphRef,
    Node,
    Primitive,
    Tensor,
    TensorType,
    Type,
    ValueRef,
)
from mindspore_lite.ops.to_mindir.table import NoEquivalentError

Dims = tuple[int | None, ...]
MAX_MADE_UP = 1 << 24  # elements of a constant that is made for a node: sizes are the file's
_BY_ONNX = {row.onnx: row for row in TABLE}  # ONNX's own numbers: MindIR's 17 is float8 there


@dataclass(frozen=True, eq=False)
class Operand:
    """An ONNX value as an operator sees it: what it is, and its numbers where they are known."""

    value: ir.Value

    @property
    def dtype(self) -> np.dtype:
        """Its element type; an operator that must know it has no equivalent without."""
        kind = self.value.type
        if kind is not None and not isinstance(kind, ir.TensorType):
            raise NoEquivalentError("no tensor")
        found = _BY_ONNX.get(int(kind.dtype)) if kind is not None else None
        if found is None:
            raise NoEquivalentError(f"element type {self.value.dtype}")
        return found.numpy

    @property
    def dims(self) -> Dims | None:
        """Its shape, None for what is known only at run time."""
        if self.value.shape is None:
            return None
        return tuple(d if isinstance(d, int) else None for d in self.value.shape)

    @property
    def shape(self) -> Dims:
        """Its shape, where the operator must know at least the rank."""
        dims = self.dims
        if dims is None:
            raise NoEquivalentError("unknown rank")
        return dims

    @property
    def fixed(self) -> tuple[int, ...]:
        """Its shape, where the operator must know every dim."""
        dims = self.shape
        if any(d is None for d in dims):
            raise NoEquivalentError("sizes known only at run time")
        return tuple(d for d in dims if d is not None)

    @property
    def rank(self) -> int:
        """Its number of dims."""
        return len(self.shape)

    @property
    def const(self) -> np.ndarray | None:
        """Its numbers, where they do not depend on the inputs."""
        held = ir.convenience.get_const_tensor(self.value)  # of a Constant that is an output, too
        return None if held is None else held.numpy()

    def numbers(self) -> list[Any]:
        """Its numbers as Python values, where the operator must know them."""
        found = self.const
        if found is None:
            raise NoEquivalentError("a setting known only at run time")
        return list(found.reshape(-1).tolist())

    def number(self) -> Any:
        """Its one number."""
        numbers = self.numbers()
        if len(numbers) != 1:
            raise NoEquivalentError(f"{len(numbers)} numbers where one is wanted")
        return numbers[0]


@dataclass(frozen=True)
class Made:
    """A MindIR value that was written."""

    name: str


class MindirWriter:
    """The nodes of one MindIR graph in the making."""

    def __init__(self, graph: str, name_of: Callable[[ir.Value], str], names: Names) -> None:
        self.graph = graph
        self.nodes: list[Node] = []
        self.label = ""  # of the ONNX node being written
        self.outputs: tuple[Operand, ...] = ()  # of the ONNX node being written
        self._name_of = name_of
        self._names = names
        self._constants: dict[Any, Made] = {}
        self._places: dict[str, int] = {}  # of each node in the list

    def call(
        self,
        target: str | GraphRef | ValueRef,
        *inputs: Any,
        type: Type | None = None,
        **attributes: Any,
    ) -> Made:
        """Write one node; a text as target is a primitive. Inputs that are no values become
        constants: numbers, flags, tuples, None, arrays (tensors).
        """
        name = self._names.node(f"{self.graph}:{self.label or target}")
        held = {key: _plain(value) for key, value in attributes.items()}
        called = Primitive(target, held) if isinstance(target, str) else target
        names = tuple(self.value(item).name for item in inputs)
        return self._add(Call(name, called, names, type, self.label))

    def value(self, item: Any) -> Made:
        """What stands for an operand or a constant in the file."""
        if isinstance(item, Made):
            return item
        if isinstance(item, Operand):
            return Made(self._name_of(item.value))
        return self.constant(item)

    def constant(self, item: Any) -> Made:
        """A constant; equal ones are stored once."""
        item = _plain(item)
        key = _key(item)
        if key not in self._constants:
            self._constants[key] = self._add(Constant(self._names.node("const"), item))
        return self._constants[key]

    def forget(self, count: int) -> None:
        """Take back all but the first `count` nodes."""
        for node in self.nodes[count:]:
            del self._places[node.name]
        del self.nodes[count:]
        self._constants = {
            k: made for k, made in self._constants.items() if made.name in self._places
        }

    def declare(self, made: Made, type: Type | None) -> None:
        """Note the type of a value, where nothing was said yet; MindSpore Lite relies on it."""
        node = self.nodes[self._places[made.name]] if made.name in self._places else None
        if isinstance(node, Call) and node.type is None:
            self.nodes[self._places[made.name]] = replace(node, type=type)

    def _add(self, node: Node) -> Made:
        self._places[node.name] = len(self.nodes)
        self.nodes.append(node)
        return Made(node.name)

    def tuple(self, items: Iterable[Any]) -> Made:
        """Several values as one."""
        return self.call("MakeTuple", *items)

    def item(self, of: Made, index: int) -> Made:
        """One value of a tuple."""
        return self.call("TupleGetItem", of, index)

    def cast(self, item: Any, dtype: np.dtype | type) -> Made:
        """A value as this element type."""
        return self.call("Cast", item, type_id(np.dtype(dtype)))

    @property
    def out(self) -> Operand:
        """The first output of the ONNX node: its type and shape."""
        return self.outputs[0]

    def used(self, index: int) -> bool:
        """Whether anybody wants that output of the ONNX node."""
        if index >= len(self.outputs):
            return False
        value = self.outputs[index].value
        return bool(value.name) and (bool(value.uses()) or value.is_graph_output())

    @staticmethod
    def require(condition: object, reason: str) -> None:
        """Give up on primitives for this node unless the condition holds."""
        if not condition:
            raise NoEquivalentError(reason)


class Names:
    """The one namespace of a file."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._counts: dict[str, int] = {}

    def take(self, name: str) -> str:
        """`name`, or the first of name.1, name.2, ... that is free."""
        new = name
        while new in self._taken:
            self._counts[name] = self._counts.get(name, 0) + 1
            new = f"{name}.{self._counts[name]}"
        self._taken.add(new)
        return new

    def node(self, stem: str) -> str:
        """A name for a node: `graph:label:number`, as MindSpore makes them."""
        self._counts[""] = self._counts.get("", 0) + 1
        return self.take(f"{stem}:{self._counts['']}")


def type_id(dtype: np.dtype) -> int:
    """MindSpore's number of an element type, for arguments."""
    found = from_numpy(dtype)
    if found is None:
        raise NoEquivalentError(f"element type {dtype}")
    return found.type_id


def tensor(name: str, array: np.ndarray, dtype: DType | None = None) -> Tensor:
    """An array as a weight or constant of a file, over the same memory where that is in order."""
    found = dtype or from_numpy(array.dtype)
    if found is None:
        raise NoEquivalentError(f"element type {array.dtype}")
    array = np.ascontiguousarray(array).reshape(array.shape)
    # bfloat16 and the like have no buffer of their own
    flat: Any = array.reshape(-1).view(np.uint8)
    return Tensor(name, found, array.shape, memoryview(flat))


def tensor_type(value: ir.Value) -> TensorType | None:
    """The type of an ONNX value, where it is a tensor of a type that MindIR knows."""
    if value.dtype is None or not isinstance(value.type, ir.TensorType):
        return None
    dtype = _BY_ONNX.get(int(value.dtype))
    if dtype is None:
        return None
    dims = None
    if value.shape is not None:
        dims = tuple(d if isinstance(d, int) and d >= 0 else -1 for d in value.shape)
    return TensorType(dtype, dims)


def _plain(item: Any) -> Any:
    if isinstance(item, np.ndarray):
        return tensor("value0", item)
    if isinstance(item, np.generic):
        return item.item()
    if isinstance(item, tuple | list):
        return type(item)(_plain(part) for part in item)
    return item


def _key(item: Any) -> Any:
    """Equal for constants that are the same in the file: 1, 1.0 and True are not."""
    if isinstance(item, tuple | list):
        return type(item), tuple(_key(part) for part in item)
    if isinstance(item, Tensor):
        return Tensor, item.dtype, item.shape, item.view().tobytes()
    if isinstance(item, float):
        return float, struct.pack("<d", item)
    return type(item), item
