"""Plain frozen records of what a MindIR file says, independent of protobuf and ONNX.

Constants become Python values: bool, int, float, str, None, tuple, list, dict, or classes below.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mindspore_lite.core.dtypes import DType
from mindspore_lite.core.snapshot import Unread
from mindspore_lite.mindir.quant import Quant


class Monad(enum.Enum):
    """Order-of-effects tokens; they carry no data."""

    MEMORY = "UMonad"
    IO = "IOMonad"


@dataclass(frozen=True)
class Tensor:
    """A weight or constant: its bytes are a view, or still in a file that is being converted."""

    name: str
    dtype: DType
    shape: tuple[int, ...]
    data: memoryview | Unread
    quant: Quant | None = None  # what the numbers stand for, where it is not themselves

    def view(self) -> memoryview:
        """Its bytes, read now if they were not yet."""
        return self.data.read() if isinstance(self.data, Unread) else self.data

    def numpy(self) -> np.ndarray:
        """The tensor as a read-only array over the same bytes."""
        return np.frombuffer(self.view(), dtype=self.dtype.numpy).reshape(self.shape)


@dataclass(frozen=True)
class TensorType:
    """Type of a tensor; shape None is an unknown rank, -1 an unknown dim."""

    dtype: DType
    shape: tuple[int, ...] | None
    is_scalar: bool = False  # a Python number, not a 0-d tensor
    ref_key: str = ""  # values with the same key share one storage


@dataclass(frozen=True)
class SequenceType:
    """Type of a tuple or list."""

    items: tuple[Type, ...]
    dynamic_length: bool = False


@dataclass(frozen=True)
class OtherType:
    """Anything that is no tensor and no sequence: monads, functions, None, strings."""

    kind: str


Type = TensorType | SequenceType | OtherType


@dataclass(frozen=True)
class Primitive:
    """An operator with its attributes."""

    op: str
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class GraphRef:
    """A call of another graph of the file."""

    name: str


@dataclass(frozen=True)
class ValueRef:
    """A call of a function held by a value (control flow)."""

    name: str


@dataclass(frozen=True)
class Constant:
    """A node that only holds a value."""

    name: str
    value: Any


@dataclass(frozen=True)
class Call:
    """A node that computes: one operator or graph applied to named values."""

    name: str
    target: Primitive | GraphRef | ValueRef
    inputs: tuple[str, ...]
    type: Type | None = None
    scope: str = ""  # where in the network it stands, e.g. Default/layer1/conv1-Conv2d/Conv2D-op0


Node = Constant | Call


@dataclass(frozen=True)
class Input:
    """A graph input; `given_name` is the source model's own name where a converter kept it."""

    name: str
    type: Type
    given_name: str = ""


@dataclass(frozen=True)
class Graph:
    """One graph; weights belong to the main graph alone."""

    name: str
    inputs: tuple[Input, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[str, ...]
    parameters: tuple[Tensor, ...] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)
    given_outputs: tuple[str, ...] = ()  # the source model's own names, where a converter kept them


@dataclass(frozen=True)
class Model:
    """A whole file."""

    graph: Graph
    functions: Mapping[str, Graph] = field(default_factory=dict)
    producer: str = ""
    producer_version: str = ""
    ir_version: str = ""
    mind_ir_version: int = 0
    user_info: Mapping[str, str] = field(default_factory=dict)


def local_name(name: str) -> str:
    """`graph:layer.weight` -> `layer.weight`: the part that means something to a person."""
    return name.split(":", 1)[1] if ":" in name else name
