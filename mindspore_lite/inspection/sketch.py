"""A graph as it is drawn: boxes with operands, the same for every file format.

What only moves values about (Load, tuples, the order of effects), weights and constants are no
boxes: they appear among the operands of the boxes that use them.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mindspore_lite.core.dtypes import DType
from mindspore_lite.mindir.records import SequenceType, Tensor, TensorType, Type

MAX_OPERANDS = 256  # of one box; a damaged file can make tuples of any size
_SHOWN_ELEMENTS = 16

_short = reprlib.Repr()
_short.maxlevel, _short.maxstring, _short.maxother = 4, 200, 200
_short.maxtuple = _short.maxlist = _short.maxdict = 32


@dataclass(frozen=True)
class Operand:
    """One value that a box takes."""

    kind: str  # box, weight, constant, graph, or outer: a value of the graph around this one
    text: str  # its type or its value
    name: str = ""  # of the box, weight or graph
    argument: str = ""  # what the operator calls it


@dataclass(frozen=True)
class Box:
    """One node, input or output."""

    name: str
    op: str
    family: str
    label: str  # where in the network it stands
    result: str  # the type of its result
    operands: tuple[Operand, ...] = ()
    attributes: tuple[tuple[str, str], ...] = ()
    problem: str = ""  # why it cannot be translated


@dataclass(frozen=True)
class Sketch:
    """One graph; boxes come in the order of computation."""

    name: str
    role: str
    boxes: tuple[Box, ...]


def shape_text(dtype: str, shape: tuple[int, ...] | None) -> str:
    """`float32 [1, 3, 224, 224]`; an open dim is -1."""
    return f"{dtype} {'of any rank' if shape is None else list(shape)}"


def type_text(kind: Type | None) -> str:
    """The type of a value."""
    if isinstance(kind, TensorType):
        return kind.dtype.name if kind.is_scalar else shape_text(kind.dtype.name, kind.shape)
    if isinstance(kind, SequenceType):
        shown = ", ".join(type_text(item) for item in kind.items[:8])
        return f"({shown}{', ...' if len(kind.items) > 8 else ''})"
    return "" if kind is None else kind.kind


def value_text(value: Any) -> str:
    """A constant or attribute in a few words, however large it is."""
    if isinstance(value, Tensor):
        text = shape_text(value.dtype.name, value.shape)
        if math.prod(value.shape) > _SHOWN_ELEMENTS:
            return text
        return f"{text} = {value.numpy().tolist()}"
    if isinstance(value, DType):
        return value.name
    if isinstance(value, tuple | list):
        shown = ", ".join(value_text(v) for v in value[:32])
        return f"({shown}{', ...' if len(value) > 32 else ''})"[:400]
    return _short.repr(value)


def attribute_texts(attributes: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """All attributes, sorted by name; a name that is no UTF-8 in the file comes as bytes."""
    named = {k if isinstance(k, str) else repr(k): v for k, v in attributes.items()}
    return tuple((name, value_text(named[name])) for name in sorted(named))
