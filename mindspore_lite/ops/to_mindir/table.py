"""The table of ONNX operators as MindSpore primitives: one Python function each.

A function's own signature is the operator's: arguments before `*` are its inputs (None where one is
left out), those after `*` its attributes, with ONNX's defaults. The table is of opset 21 and newer;
older models are upgraded before.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mindspore_lite.errors import LiteError


class NoEquivalentError(LiteError):
    """No MindSpore primitive computes just this: the node travels as it is (see Custom)."""


# inputs: Operand or None; the result: a Made for each output of the ONNX node
Writer = Callable[..., Any]


@dataclass(frozen=True)
class Row:
    """One operator of the table."""

    op_type: str
    write: Writer
    inputs: tuple[inspect.Parameter, ...]
    attributes: frozenset[str]

    @property
    def is_variadic(self) -> bool:
        """Whether it takes any number of inputs."""
        return any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in self.inputs)


BACKWARDS: dict[str, Row] = {}


def back(*op_types: str) -> Callable[[Writer], Writer]:
    """Register one function as the way to write the named ONNX operators."""

    def add(write: Writer) -> Writer:
        _, *params = inspect.signature(write).parameters.values()  # the first one is the writer
        named = [p for p in params if p.kind is inspect.Parameter.KEYWORD_ONLY]
        inputs = tuple(p for p in params if p.kind is not inspect.Parameter.KEYWORD_ONLY)
        for op_type in op_types:
            if op_type in BACKWARDS:
                raise ValueError(f"ONNX operator {op_type!r} is registered twice")
            BACKWARDS[op_type] = Row(op_type, write, inputs, frozenset(p.name for p in named))
        return write

    return add


def write(row: Row, writer: Any, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> Any:
    """Call a row's function; what its signature does not know has no equivalent."""
    if unknown := sorted(set(attributes) - row.attributes):
        raise NoEquivalentError(f"attribute {', '.join(unknown)}")
    for value in inputs:
        _ = value and value.dtype  # to be known: the reader must know what it computes with
    given = list(inputs)
    if not row.is_variadic:
        while len(given) > len(row.inputs):
            if given.pop() is not None:
                raise NoEquivalentError(f"{len(inputs)} inputs")
        given += [None] * (len(row.inputs) - len(given))
    return row.write(writer, *given, **attributes)
