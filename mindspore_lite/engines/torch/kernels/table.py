"""The table of ONNX operators as torch functions.

A function's own signature is the operator's: arguments before `*` are its inputs in order (None
where one is left out, lists of tensors for sequences), those after `*` its attributes. Four names
after `*` are no attributes, but given by the caller: `outputs`, how many results the node uses;
`device`, where new tensors go; `bodies`, the subgraphs of a node, by the attribute's name;
`tables`, what follows from attributes and sizes alone and is computed once, None where it is not.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Compute = Callable[..., Any]

# What float32 operands become where a model is computed in a half precision:
# narrow: halves, where the gain is; wide: float32, as results may be large or lose digits;
# alike: whatever they are, all float32 if one is
Half = Literal["narrow", "wide", "alike"]

# How a weight lies in memory where that matters to the speed of a card
Layout = Literal["", "channels_last", "transposed"]

TOLD = ("outputs", "device", "bodies", "tables")


@dataclass(frozen=True, eq=False)
class Kernel:
    """One row of the table."""

    op_type: str
    domain: str
    compute: Compute
    inputs: tuple[str, ...]  # names of the inputs; a last one with a star takes all others
    attributes: frozenset[str]
    told: frozenset[str]  # which of TOLD the function wants to know
    numbers: frozenset[str] = frozenset()  # inputs that decide sizes: Python numbers, no tensors
    scalars: bool = False  # constants of one element may be Python numbers
    place: str = ""  # an input that is a Python number, or a list of one, where it is known
    half: Half = "alike"
    random: bool = False  # never computed beforehand
    tables: Compute | None = None  # makes `tables`, tensors of the host, of the kernel's arguments
    layouts: Mapping[str, Layout | Callable[[Mapping[str, Any]], Layout]] = field(
        default_factory=dict
    )
    family: str = ""  # the file that registered it

    def input_name(self, at: int) -> str:
        """The name of the input at a place."""
        if at < len(self.inputs) and not self.inputs[at].startswith("*"):
            return self.inputs[at]
        return self.inputs[-1].lstrip("*") if self.inputs else ""

    def layout(self, name: str, attributes: Mapping[str, Any]) -> Layout:
        """How a weight that is given for an input should lie in memory."""
        found = self.layouts.get(name, "")
        return found(attributes) if callable(found) else found


KERNELS: dict[tuple[str, str], Kernel] = {}  # (domain, operator) -> row


def kernel(
    *op_types: str,
    domain: str = "",
    numbers: tuple[str, ...] = (),
    scalars: bool = False,
    place: str = "",
    half: Half = "alike",
    random: bool = False,
    tables: Compute | None = None,
    layouts: Mapping[str, Layout | Callable[[Mapping[str, Any]], Layout]] | None = None,
) -> Callable[[Compute], Compute]:
    """Register one function as what the named operators compute."""
    family = sys._getframe(1).f_globals["__name__"].rpartition(".")[2]

    def add(compute: Compute) -> Compute:
        params = inspect.signature(compute).parameters.values()
        named = {p.name for p in params if p.kind is inspect.Parameter.KEYWORD_ONLY}
        inputs = tuple(
            f"*{p.name}" if p.kind is inspect.Parameter.VAR_POSITIONAL else p.name
            for p in params
            if p.name not in named
        )
        for op_type in op_types:
            if (domain, op_type) in KERNELS:
                raise ValueError(f"operator {op_type!r} is registered twice")
            KERNELS[domain, op_type] = Kernel(
                op_type,
                domain,
                compute,
                inputs,
                frozenset(named.difference(TOLD)),
                frozenset(named.intersection(TOLD)),
                frozenset(numbers),
                scalars,
                place,
                half,
                random,
                tables,
                layouts or {},
                family,
            )
        return compute

    return add
