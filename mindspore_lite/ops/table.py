"""The table of MindIR primitives: one Python function each, and how it gets its arguments.

A function's own signature is the primitive's: arguments before `*` are its call arguments, those
after `*` its init arguments. A file may give init arguments as trailing constant inputs (MindIR 2
and newer) or as attributes (older files, converter_lite); `bind` accepts both.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mindspore_lite.errors import UnsupportedOpError

# What an op receives and returns: ir.Value for tensors, Python values for constants, tuples of them
Val = Any
Meaning = Callable[..., Val]

# An argument that files of some version store under another name.
_ALIASES = {
    "data_format": ("format", "OriginalFormat"),
    "transpose_a": ("transpose_x1",),
    "transpose_b": ("transpose_x2",),
    "is_global": ("global",),  # a word that Python keeps for itself
}


@dataclass(frozen=True)
class Op:
    """One row of the table."""

    primitive: str
    meaning: Meaning
    call_args: tuple[inspect.Parameter, ...]
    init_args: tuple[inspect.Parameter, ...]
    writes: bool = False  # the result is stored back into the first input
    is_view: bool = False  # the result shares the first input's storage in MindSpore
    family: str = ""  # the file that registered it

    @property
    def signature(self) -> str:
        """The primitive as people write it: `AvgPool(x, kernel_size!, strides!, ...)`."""
        args = [p.name for p in self.call_args] + [f"{p.name}!" for p in self.init_args]
        return f"{self.primitive}({', '.join(args)})"


OPS: dict[str, Op] = {}


def op(
    *primitives: str, writes: bool = False, is_view: bool = False
) -> Callable[[Meaning], Meaning]:
    """Register one function as the ONNX meaning of the named MindIR primitives."""
    # not the function's own module: families share helpers that make functions
    family = sys._getframe(1).f_globals["__name__"].rpartition(".")[2]

    def add(meaning: Meaning) -> Meaning:
        _, *params = inspect.signature(meaning).parameters.values()  # the first one is the tape
        call = tuple(p for p in params if p.kind is not inspect.Parameter.KEYWORD_ONLY)
        init = tuple(p for p in params if p.kind is inspect.Parameter.KEYWORD_ONLY)
        for name in primitives:
            if name in OPS:
                raise ValueError(f"primitive {name!r} is registered twice")
            OPS[name] = Op(name, meaning, call, init, writes, is_view, family)
        return meaning

    return add


def bind(row: Op, inputs: Sequence[Val], attributes: Mapping[str, Any]) -> dict[str, Val]:
    """Match a node's inputs (monads already dropped) and attributes with the op's arguments."""
    params = [*row.call_args, *row.init_args]
    if inputs and params and params[0].name == "values" and not isinstance(inputs[0], tuple | list):
        inputs = [tuple(inputs)]  # converters and old files leave out the MakeTuple
    if len(inputs) > len(params):
        raise UnsupportedOpError(
            f"{row.primitive} has {len(inputs)} inputs, wanted at most {len(params)}: "
            f"{row.signature}"
        )
    bound = {p.name: value for p, value in zip(params, inputs, strict=False)}
    for param in params[len(inputs) :]:
        name = param.name
        given = next((n for n in (name, *_ALIASES.get(name, ())) if n in attributes), None)
        if given is not None:
            bound[name] = attributes[given]
        elif param.default is inspect.Parameter.empty:
            raise UnsupportedOpError(
                f"{row.primitive} lacks its argument {name!r}: {row.signature}"
            )
    return bound
