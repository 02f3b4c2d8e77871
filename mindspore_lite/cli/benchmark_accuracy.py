"""Compares a model's outputs with a file of expected ones, for `benchmark`.

Such a file has two lines for each output: `name rank d0 d1 ...`, then the values. An element that
is within its tolerance of what is expected adds nothing to the bias, another one its relative
difference, or the difference itself where 0 is expected. The bias of an output is the mean over
all of its elements; the original divides by the number of those that are beyond the tolerance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mindspore_lite.cli.benchmark_asked import Limits
from mindspore_lite.cli.console import say
from mindspore_lite.errors import InputError, LiteError
from mindspore_lite.tensor import Tensor

SHOWN_INPUTS, SHOWN_OUTPUTS = 20, 50  # values of each that the original prints
_TINY = float(np.finfo(np.float32).eps)  # below, an expected value counts as 0
_TINY_DIFFERENCE = 1e-5  # from 0 that is forgiven
_SHOWN_AS_ZERO = 1e-7


class AccuracyError(LiteError):
    """Outputs are not what was expected."""


@dataclass(frozen=True)
class Tolerance:
    """Within absolute + relative * |expected| a value is as expected."""

    absolute: float = 1e-8
    relative: float = 1e-5


CLIENTS = Tolerance(1e-10, 1e-7)  # the original's for several clients at once


@dataclass(frozen=True)
class Compared:
    """How one output compares with what was expected."""

    name: str
    bias: float  # 0.01 is one percent
    cosine: float
    first: str  # values of it, as text


def read_expected(path: str) -> dict[str, np.ndarray]:
    """Expected outputs by name, in the widest floating type, which holds every integer exactly."""
    if not Path(path).is_file():  # a pipe or a device may never end
        raise InputError(f"benchmarkDataFile {path!r} is no file")
    found: dict[str, np.ndarray] = {}
    try:
        with open(path, encoding="utf-8") as file:
            lines = ((at, line) for at, line in enumerate(file, start=1) if line.strip())
            for number, line in lines:
                name, shape = _head(path, number, line)
                if name in found:
                    raise InputError(f"{path}:{number}: output {name!r} is there twice")
                number, line = (number + 1, "") if 0 in shape else next(lines, (number + 1, ""))
                found[name] = _values(path, number, line, shape)
    except (OSError, UnicodeDecodeError) as exc:
        why = getattr(exc, "strerror", None) or "it is no UTF-8 text"
        raise InputError(f"cannot read benchmarkDataFile {path!r}: {why}") from exc
    return found


def compare(
    expected: dict[str, np.ndarray], outputs: Sequence[Tensor], tolerance: Tolerance
) -> list[Compared]:
    """Compare all outputs by name.

    Raises:
        AccuracyError: Names or shapes differ, or an output holds NaN or Inf of its own.
    """
    names = [output.name for output in outputs]
    if set(names) != set(expected):
        raise AccuracyError(f"benchmarkDataFile is for outputs {list(expected)}, wanted {names}")
    return [_compared(expected[output.name], output, tolerance) for output in outputs]


def report(compared: Sequence[Compared], limits: Limits) -> None:
    """Print how outputs compare.

    Raises:
        AccuracyError: They differ by more than the limits allow.
    """
    with_cosine = limits.cosine >= -1
    say("================ Comparing Output data ================")
    for one in compared:
        say(f"Data of node {one.name} : {one.first}")
        say(f"Mean bias of node/tensor {one.name} : {_percent(one.bias)}")
        if with_cosine:
            say(f"Mean cosine distance of node/tensor {one.name} : {_percent(one.cosine)}")
    bias, cosine = mean_bias(compared), float(np.mean([one.cosine for one in compared]))
    say(f"Mean bias of all nodes/tensors: {_percent(bias)}")
    if with_cosine:
        say(f"Cosine distance of all nodes/tensors: {cosine:g}")
    say(f"{'=' * 55}\n")
    if bias * 100 > limits.percent:
        raise AccuracyError(
            f"Mean bias of all nodes/tensors is too big: {_percent(bias)}; "
            f"accuracyThreshold allows {limits.percent:g}%"
        )
    if with_cosine and cosine < limits.cosine:
        raise AccuracyError(
            f"Cosine distance of all nodes/tensors is too small: {cosine:g}; "
            f"cosineDistanceThreshold wants {limits.cosine:g}"
        )


def mean_bias(compared: Sequence[Compared]) -> float:
    """The bias of a run: the mean over its outputs."""
    return float(np.mean([one.bias for one in compared]))


def shown(array: np.ndarray, most: int) -> str:
    """The first values, as the original prints them."""
    values = array.reshape(-1)[:most]
    return " ".join(f"{v:g}" if values.dtype.kind in "fV" else f"{int(v)}" for v in values.tolist())


def _compared(want: np.ndarray, output: Tensor, tolerance: Tolerance) -> Compared:
    found = output.get_data_to_numpy()
    if found.dtype.kind not in "fiub" and found.dtype.name != "bfloat16":
        raise AccuracyError(f"output {output.name!r} is {found.dtype}, which cannot be compared")
    if _core(want.shape) != _core(found.shape):
        raise AccuracyError(
            f"output {output.name!r} has shape {list(found.shape)}, but benchmarkDataFile has "
            f"{list(want.shape)}"
        )
    if found.dtype.name == "bfloat16":
        found = found.astype(np.float32)
    first = shown(found, SHOWN_OUTPUTS)
    got, want = found.reshape(-1).astype(np.longdouble), want.reshape(-1)
    odd = ~(np.isfinite(got) & np.isfinite(want))
    strange = odd & ~((got == want) | (np.isnan(got) & np.isnan(want)))
    if strange.any():
        at = int(strange.argmax())
        raise AccuracyError(
            f"output {output.name!r} holds {got[at]:g} where {want[at]:g} is expected, at {at}"
        )
    got, want = got[~odd], want[~odd]  # what is left is finite
    return Compared(output.name, _bias(got, want, tolerance), _cosine(got, want), first)


def _bias(got: np.ndarray, want: np.ndarray, tolerance: Tolerance) -> float:
    apart, size = np.abs(got - want), np.abs(want)
    beyond = apart > tolerance.absolute + tolerance.relative * size
    zero = size < _TINY
    relative = apart / np.where(zero, 1, size)  # by 1: the difference itself
    counted = np.where(beyond & ~(zero & (apart <= _TINY_DIFFERENCE)), relative, 0)
    return float(counted.mean()) if counted.size else 0.0


def _cosine(got: np.ndarray, want: np.ndarray) -> float:
    """1 for the same direction, also of two that are all zeros."""
    lengths = np.sqrt(np.dot(got, got)) * np.sqrt(np.dot(want, want))
    if lengths == 0:
        return float(np.array_equal(got, want))
    return float(np.dot(got, want) / lengths)


def _percent(value: float) -> str:
    return "0%" if abs(value) < _SHOWN_AS_ZERO else f"{value * 100:g}%"


def _core(shape: Sequence[int]) -> list[int]:
    """A shape without the 1s at its end."""
    dims = list(shape)
    while dims and dims[-1] == 1:
        dims.pop()
    return dims


def _head(path: str, number: int, line: str) -> tuple[str, list[int]]:
    name, *sizes = line.split()
    if not sizes or not all(s.isdecimal() for s in sizes) or int(sizes[0]) != len(sizes) - 1:
        raise InputError(
            f"{path}:{number} is {line.strip()[:80]!r}, wanted an output as `name rank d0 d1 ...`"
        )
    return name, [int(size) for size in sizes[1:]]


def _values(path: str, number: int, line: str, shape: list[int]) -> np.ndarray:
    try:
        found = np.array(line.split(), str).astype(np.longdouble)
    except ValueError as exc:
        raise InputError(f"{path}:{number} holds something that is no number") from exc
    wanted = int(np.prod(shape, dtype=object))
    if found.size != wanted:
        raise InputError(f"{path}:{number} holds {found.size} values, wanted {wanted} for {shape}")
    return found.reshape(shape)
