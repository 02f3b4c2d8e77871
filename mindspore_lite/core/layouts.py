"""The one rule for an array whose shape is not the one wanted, but holds as many elements.

It is taken as it lies in memory where that cannot change what its elements stand for: a flat array,
one without the batch axis, axes of size 1, neighbouring axes joined or split. An array of as many
dims as wanted, but of other sizes, is never taken so: pictures as NHWC where NCHW is wanted hold as
many numbers, and would give an answer that is wrong and looks right.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import accumulate
from operator import mul

_LETTERS = {4: ("NCHW", "NHWC"), 5: ("NCDHW", "NDHWC")}
_LEAST = 4  # dims for which layouts have names


def taken_as_it_lies(wanted: Sequence[int], got: Sequence[int]) -> bool:
    """Whether an array of shape `got` may be read as one of shape `wanted`, whose dims are known.

    Examples:
        >>> taken_as_it_lies((1, 3, 8, 8), (3, 8, 8)), taken_as_it_lies((1, 3, 8, 8), (192,))
        (True, True)
        >>> taken_as_it_lies((1, 3, 8, 8), (1, 8, 8, 3)), taken_as_it_lies((1, 3, 8, 8), (8, 8, 3))
        (False, False)
    """
    if tuple(wanted) == tuple(got):
        return True
    if len(wanted) == len(got) or math.prod(wanted) != math.prod(got):
        return False
    mine, others = _ends(wanted), _ends(got)
    return mine <= others or others <= mine


def exchanged(wanted: Sequence[int], got: Sequence[int]) -> str:
    """Names the layouts where `got` is NHWC and `wanted` NCHW, or the other way round; else "".

    -1 in `wanted` is any size.
    """
    rank = len(wanted)
    if rank != len(got) or rank not in _LETTERS or _fits(wanted, got):
        return ""
    first, last = _LETTERS[rank]
    to_last, to_first = (0, *range(2, rank), 1), (0, rank - 1, *range(1, rank - 1))
    for mine, other, moved, back in (
        (first, last, to_last, to_first),
        (last, first, to_first, to_last),
    ):
        channels = wanted[1 if mine == first else -1]
        if channels > 0 and _fits([wanted[at] for at in moved], got):
            return f"it looks like {other}, and {mine} is wanted: give array.transpose{back}"
    return ""


def remedy(wanted: Sequence[int], got: Sequence[int]) -> str:
    """What to do about an array that holds as many elements and is not taken as it lies."""
    hint = exchanged(wanted, got)
    if hint:
        return hint
    if len(got) == len(wanted) - 1 >= _LEAST - 1:  # a picture without the batch axis
        hint = exchanged(wanted, (wanted[0], *got))
        if hint:
            return hint.replace("array.", "array[None].")
    return (
        "it holds as many elements in another order of dims: give array.transpose(...) if the axes "
        "are exchanged, array.reshape(...) if it shall be taken as it lies"
    )


def _fits(wanted: Sequence[int], got: Sequence[int]) -> bool:
    return all(want in (-1, have) for want, have in zip(wanted, got, strict=True))


def _ends(shape: Sequence[int]) -> set[int]:
    """Where the steps of the axes end, in elements from the front; axes of size 1 add none."""
    return set(_products(dim for dim in shape if dim != 1))


def _products(dims: Iterator[int]) -> Iterator[int]:
    return accumulate(dims, mul)
