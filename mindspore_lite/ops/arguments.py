"""Readings of arguments that many ops share: integer tuples, axes, enumerations.

The same argument may come as a number, a tuple, a constant tensor or a word, as old as the file is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.ops.table import Val
from mindspore_lite.ops.tape import Tape, bounded, constant_of

# Elements of a tensor that the file asks for by its shape alone; guesses. ONNX Runtime makes what
# is constant when a model is loaded, 1 GiB of float32; what is not, when it runs.
MAX_FILL = 2**28
MAX_SPREAD = 2**30
_PAD_MODES = {0: "pad", 1: "same", 2: "valid", "calculated": "pad"}
_FORMATS = {0: "NCHW", 1: "NHWC", 14: "NCDHW"}


def ints(value: Val, what: str) -> tuple[int, ...]:
    """A constant argument as a tuple of ints; a single number counts as one."""
    array = constant_of(value) if not isinstance(value, tuple | list) else None
    if array is not None:
        return tuple(int(v) for v in array.reshape(-1))
    if isinstance(value, tuple | list) and all(isinstance(v, int) for v in value):
        return tuple(value)
    raise UnsupportedOpError(f"{what} must be constant, it is computed at run time here")


def number(value: Val, what: str) -> int | float:
    """A constant argument as one Python number."""
    array = None if isinstance(value, str) else constant_of(value)
    if array is None or array.size != 1:
        raise UnsupportedOpError(f"{what} must be one constant number")
    found: int | float = array.item()
    return found


def elements(t: Tape, value: Val) -> list[Val]:
    """A sequence argument taken apart: numbers, or run-time scalars."""
    if isinstance(value, tuple | list):
        return [int(known) if (known := constant_of(v)) is not None else v for v in value]
    if (known := constant_of(value)) is not None:
        return [int(v) for v in known.reshape(-1)]
    count = t.shape(value)[0] if t.rank(value) == 1 else 1
    if count is None:
        raise UnsupportedOpError("a sequence of unknown length is not supported")
    bounded(count, "numbers in one argument")
    if parts := _joined(t, value):
        return [item for part in parts for item in elements(t, part)]
    flat = t.op("Reshape", [value, np.asarray([-1])]) if t.rank(value) != 1 else value
    return [_element(t, flat, i) for i in range(count)]


def _joined(t: Tape, value: ir.Value) -> list[Val]:
    """The parts of a vector that was joined from others, some of which may be constants."""
    node = value.producer()
    if node is None or node.op_type != "Concat" or t.rank(value) != 1:
        return []
    return list(node.inputs)


def _element(t: Tape, vector: ir.Value, index: int) -> ir.Value:
    """One number of a vector; its type and shape help what follows."""
    found: ir.Value = t.op("Gather", [vector, np.asarray(index)], axis=0)
    found.type, found.shape = vector.type, ir.Shape([])
    return found


def shape_argument(t: Tape, value: Val, most: int = MAX_FILL) -> Val:
    """A shape as ONNX takes it: int64, one tensor; absurd ones are refused."""
    if isinstance(value, ir.Value) and value.const_value is None:
        flat = value if t.rank(value) == 1 else t.op("Reshape", [value, np.asarray([-1])])
        return t.cast(flat, np.dtype(np.int64))
    dims = elements(t, value)
    bounded(math.prod(d for d in dims if isinstance(d, int)), "elements of a tensor", most)
    return t.int64s(dims)


def axis_of(t: Tape, x: Val, axis: Val) -> int:
    """An axis counted from the front."""
    found, rank = int(number(axis, "axis")), t.rank(x)
    if not -max(rank, 1) <= found < max(rank, 1):
        raise UnsupportedOpError(f"axis {found} does not exist in a tensor of {rank} dims")
    return found % max(rank, 1)


def pad_mode(value: Val) -> str:
    """'pad', 'same' or 'valid', from an enum or a word in any case."""
    mode = value.lower() if isinstance(value, str) else value
    mode = _PAD_MODES.get(mode, mode)
    if mode not in ("pad", "same", "valid"):
        raise UnsupportedOpError(f"pad_mode {value!r} is not supported")
    return str(mode)


def layout(value: Val) -> str:
    """'NCHW', 'NHWC' or 'NCDHW'."""
    name = _FORMATS.get(value, value)
    if name not in _FORMATS.values():
        raise UnsupportedOpError(f"format {value!r} is not supported")
    return str(name)


def same_type(t: Tape, dtype: np.dtype, *operands: Val) -> list[Val]:
    """All operands as tensors of one type."""
    return [t.cast(v, dtype) for v in operands]


def swapped(rank: int, first: int, second: int) -> list[int]:
    """The permutation that exchanges two axes."""
    perm = list(range(rank))
    perm[first], perm[second] = perm[second], perm[first]
    return perm


def interleaved(pads: Sequence[int]) -> list[int]:
    """(top, bottom, left, right) as ONNX orders it: all begins, then all ends."""
    return [*pads[0::2], *pads[1::2]]
