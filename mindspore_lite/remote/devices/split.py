"""Splits a batch into parts, and joins their outputs into one result.

An input *carries the batch* when its first axis counts the batch's rows. It is cut along that axis;
every other input is sent whole with each part. Which is which, unless scatter says it:

    first dim declared    given                         the input
    none (a scalar)                                     is sent whole
    any rank                                            is sent whole: its axes are unknown
    -1                    the rows of the batch         carries the batch
                          1 row, and the batch has      is sent whole, as a timestep for all rows
                          another number of rows
    b                     b rows                        is sent whole
                          k * b rows, k > 1, the other  carries the batch
                          dims as declared
                          anything else                 is an error

An input declared with b rows that carries the batch makes k parts of exactly b rows, whatever the
number of devices: the model takes no others. The batch then has k * b rows (b the least, where
inputs differ in it), and inputs with an open first dim have that many, or 1. Where no such input
carries the batch, its size is what the inputs with an open first dim agree on, and the parts are
one per device, as even as can be, larger ones first. Inputs that disagree are an error, never a
guess. Fewer than two parts: nothing is split, and the arrays go out as they came.

An output carries the batch when its first dim is c * rows in every part, with one c. With an open
batch it must be declared open as well: a fixed number there does not grow with the rows. Shapes do
not prove it. With c > 1 and the same values in all parts it might be a table for all rows, and is
refused; with c = 1 it is taken for rows, which may well be equal. remote/devices/trial.py finds
models with an open batch for which that is wrong. Neither can see an output that follows only an
input of one row sent whole, while each part has one row as well: it comes back once per part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from mindspore_lite.core import checks
from mindspore_lite.core.tensor_info import ANY_RANK, TensorInfo
from mindspore_lite.errors import EngineError, InputError

# per input: True carries the batch, False is sent whole, None or absent is decided here
Scatter = Mapping[str, bool | None] | Sequence[bool | None] | None

_SHOWN = 4  # shapes in a message; there may be a thousand parts


@dataclass(frozen=True)
class SplitPlan:
    """The inputs of each part, and what is needed to join its outputs."""

    parts: list[list[np.ndarray]]  # C-contiguous views of what was given, in the model's order
    rows: tuple[int, ...]  # of the batch, per part; () when nothing was split: one part, whole
    fixed: bool = False  # the model declares how many rows a part has


@dataclass(frozen=True)
class _Input:
    info: TensorInfo
    array: np.ndarray
    wish: bool | None  # what scatter says

    @property
    def first(self) -> int:
        """The first dim as declared: -1 open, 0 or more fixed, -2 unknown or none."""
        return self.info.shape[0] if self.info.shape else -2


def plan(
    inputs: Sequence[TensorInfo],
    arrays: Sequence[np.ndarray],
    devices: int,
    scatter: Scatter = None,
) -> SplitPlan:
    """Cut a request for so many devices.

    Args:
        inputs: What the model says about its inputs.
        arrays: One C-contiguous array per input, of the declared rank.
        devices: How many parts may run at once.
        scatter: By input name, or in the order of the inputs.

    Raises:
        InputError: The arrays do not agree on a batch, or make none of the model's size.
        ValueError, TypeError: scatter does not fit the model's inputs.
    """
    wishes = _wishes(inputs, scatter)
    given = [_Input(*one) for one in zip(inputs, arrays, wishes, strict=True)]
    batches = [_batches(one) for one in given]
    least = min((one.first for one, k in zip(given, batches, strict=True) if k), default=0)
    size = _size(given, batches, least)
    rows = [least] * (size // least) if least else _even(size, devices)
    if len(rows) < 2:
        return SplitPlan([list(arrays)], ())
    columns = [
        _cut(one.array, [one.first] * k if k else rows)
        if k or _carries(one, size)
        else [one.array] * len(rows)
        for one, k in zip(given, batches, strict=True)
    ]
    return SplitPlan(
        [list(part) for part in zip(*columns, strict=True)], tuple(rows), fixed=least > 0
    )


def joined(
    outputs: Sequence[TensorInfo],
    parts: Sequence[Sequence[np.ndarray]],
    rows: Sequence[int],
    *,
    fixed: bool,
) -> list[np.ndarray]:
    """The outputs of all parts as those of the whole request.

    An output that carries the batch is put together in an array of its own; of any other, which
    must be the same in all parts, the first part's is returned, not a copy.

    Args:
        outputs: What the model says about its outputs.
        parts: The outputs of each part.
        rows: As in the SplitPlan.
        fixed: As in the SplitPlan; a wrong one would join what must not be, so there is no default.

    Raises:
        EngineError: An output neither carries the batch nor is the same in all parts.
    """
    if not rows:
        return list(parts[0])
    columns = zip(*parts, strict=True)
    return [_whole(info, found, rows, fixed) for info, found in zip(outputs, columns, strict=True)]


# --- inputs ---------------------------------------------------------------------------------------


def _wishes(inputs: Sequence[TensorInfo], scatter: Scatter) -> list[bool | None]:
    names = [info.name for info in inputs]
    wishes: list[bool | None]
    if scatter is None:
        return [None] * len(names)
    if isinstance(scatter, Mapping):
        unknown = [name for name in scatter if name not in names]
        if unknown:
            raise ValueError(f"scatter names {unknown}, but the model's inputs are {names}")
        wishes = [scatter.get(name) for name in names]
    else:
        wishes = list(checks.sequence("scatter", scatter, "dict by input name, list or tuple"))
        if len(wishes) != len(names):
            raise ValueError(
                f"scatter has {len(wishes)} elements, wanted one for each of the model's "
                f"{len(names)} inputs {names}; None leaves one to be decided"
            )
    for name, wish in zip(names, wishes, strict=True):
        if wish is not None and not isinstance(wish, bool):
            raise checks.wrong_type(f"scatter of input {name!r}", "bool or None", wish)
    return wishes


def _batches(one: _Input) -> int:
    """How many of the model's batches an input with a fixed first dim carries; 0: none, whole."""
    info, array = one.info, one.array
    if one.wish and not array.ndim:
        raise InputError(
            f"scatter is True for input {info.name!r}, but its shape is [], which has no axis to "
            "split; set it to False, or leave it out"
        )
    if one.first < 0 or one.wish is False or (one.wish is None and len(array) == one.first):
        return 0
    others = zip(info.shape[1:], array.shape[1:], strict=True)
    fits = all(want in (-1, have) for want, have in others)
    if not fits or not one.first or not len(array) or len(array) % one.first:
        raise InputError(
            f"input {info.name!r} has shape {list(array.shape)}, the model wants "
            f"{list(info.shape)}, or a multiple of its {one.first} rows to split; fill up the "
            f"batch, export the model with an open first dim, or set scatter={{{info.name!r}: "
            "False} to send it whole"
        )
    return len(array) // one.first


def _size(given: Sequence[_Input], batches: Sequence[int], least: int) -> int:
    """The rows of the batch, on which all inputs that carry it agree."""
    undecided = {len(one.array) for one in given if one.first == -1 and one.wish is None}
    sizes = undecided - {1}
    sizes |= {len(one.array) for one in given if one.first < 0 and one.wish}
    sizes |= {k * least for k in batches if k}
    if len(sizes) > 1:
        told = [
            f"{one.info.name!r} has {len(one.array)}"
            + (f" ({k} times the model's {one.first})" if k else "")
            for one, k in zip(given, batches, strict=True)
            if k or one.wish or (one.first == -1 and one.wish is None)
        ]
        raise InputError(
            f"inputs do not agree on the rows of the batch: {', '.join(told)}; give all that carry "
            "the batch the same number, and set scatter={name: False} for those to be sent whole"
        )
    return sizes.pop() if sizes else 1


def _carries(one: _Input, size: int) -> bool:
    """Whether an input without a fixed batch carries the batch."""
    if one.wish is None:
        return one.first == -1 and len(one.array) == size
    return one.wish


def _even(size: int, devices: int) -> list[int]:
    parts = min(devices, size)
    if parts < 2:
        return []
    each, more = divmod(size, parts)
    return [each + 1] * more + [each] * (parts - more)


def _cut(array: np.ndarray, rows: Sequence[int]) -> list[np.ndarray]:
    return [array[end - n : end] for n, end in zip(rows, accumulate(rows), strict=True)]


# --- outputs --------------------------------------------------------------------------------------


def _whole(
    info: TensorInfo, found: Sequence[np.ndarray], rows: Sequence[int], fixed: bool
) -> np.ndarray:
    may_carry = fixed or info.shape == ANY_RANK or info.shape[:1] == (-1,)
    times = _times(found, rows) if may_carry else 0
    if times == 1:
        return np.concatenate(found)
    same = all(_same(found[0], other) for other in found[1:])
    if times and not same:
        return np.concatenate(found)
    if same and not times:
        return found[0]
    why = "may be one for all rows as well as some for each, for all parts hold the same"
    raise EngineError(
        f"the parts of output {info.name!r} cannot be joined: its shapes are {_shapes(found)} for "
        f"parts of {' or '.join(str(n) for n in dict.fromkeys(rows))} rows, and it "
        f"{why if same else 'does not carry the batch, yet differs between parts'}; "
        "call predict_parts() and join them yourself, or set scatter= if an input was split that "
        "does not carry the batch"
    )


def _times(found: Sequence[np.ndarray], rows: Sequence[int]) -> int:
    """How often the rows of the part go into each first dim; 0 when an output does not follow."""
    like = found[0]
    if any(a.ndim == 0 or a.shape[1:] != like.shape[1:] or a.dtype != like.dtype for a in found):
        return 0
    times = len(like) // rows[0]
    follows = all(len(a) == times * n for a, n in zip(found, rows, strict=True))
    return times if follows else 0


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    """Bit for bit: a NaN equals itself then, and 0 is not -0."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    return bool((_bits(a) == _bits(b)).all())


def _bits(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _shapes(found: Sequence[np.ndarray]) -> str:
    texts = list(dict.fromkeys(str(list(array.shape)) for array in found))
    return ", ".join(texts[:_SHOWN]) + (", ..." if len(texts) > _SHOWN else "")
