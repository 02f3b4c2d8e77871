"""Finds the target of a Reshape whose input got other sizes than it was exported with.

The old sizes of input and output are matched in blocks of equal product, from the left: [2, 3, 4]
to [2, 12] is 2 to 2 and 3 * 4 to 12. What a block became follows: a size alone takes the new size,
several that are joined their new product. Where one size is split, the sizes of the inputs that
were changed decide which part follows; if that leaves more than one answer, there is none.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

MAX_RANK = 16  # of shapes that are looked at; guess, no exporter comes near it
Changes = Mapping[int, frozenset[int]]  # an old size of an input: what became of it
Block = tuple[list[int], list[int]]  # places in the input, places in the output


class AmbiguousError(Exception):
    """More than one target would fit."""


def followed(
    target: Sequence[int], old: Sequence[int], new: Sequence[int], changes: Changes
) -> list[int] | None:
    """The target for the new sizes; None where nothing is known to fit.

    Args:
        target: As the node has it: 0 copies a size, -1 takes what is left.
        old: The sizes of the input that it was exported with.
        new: Those that the input has now.
        changes: What became of the sizes of the model's inputs.

    Raises:
        AmbiguousError: Several targets would fit.
    """
    out = _resolved(target, old)
    if out is None or len(old) != len(new) or max(len(old), len(out)) > MAX_RANK:
        return None
    made = list(out)
    for ours, theirs in _blocks(old, out):
        want = math.prod(new[at] for at in ours)
        part = [out[at] for at in theirs]
        if math.prod(part) == want:
            continue
        rest = next((n for n, at in enumerate(theirs) if target[at] == -1), None)
        fitting = _part(part, want, rest, changes)
        if fitting is None:
            return None
        for at, size in zip(theirs, fitting, strict=True):
            made[at] = size
    return made


def _resolved(target: Sequence[int], old: Sequence[int]) -> list[int] | None:
    """The sizes that a target stood for; None where it did not fit at all."""
    if any(size == 0 and at >= len(old) for at, size in enumerate(target)):
        return None
    out = [old[at] if size == 0 else size for at, size in enumerate(target)]
    whole = math.prod(old)
    if -1 in out:
        rest = math.prod(size for size in out if size != -1)
        if rest <= 0 or whole % rest:
            return None
        out[out.index(-1)] = whole // rest
    return out if math.prod(out) == whole and min(out, default=1) > 0 else None


def _blocks(old: Sequence[int], out: Sequence[int]) -> Iterator[Block]:
    """Places of the input with the places of the output that hold the same elements."""
    i = j = 0
    found: list[Block] = []
    while i < len(old) and j < len(out):
        ours, theirs = [i], [j]
        have, want = old[i], out[j]
        i, j = i + 1, j + 1
        while have != want:
            if have < want:
                ours.append(i)
                have, i = have * old[i], i + 1
            else:
                theirs.append(j)
                want, j = want * out[j], j + 1
        found.append((ours, theirs))
    if found:  # what is left has the size 1
        found[-1][0].extend(range(i, len(old)))
        found[-1][1].extend(range(j, len(out)))
    yield from found


def _part(sizes: list[int], want: int, rest: int | None, changes: Changes) -> list[int] | None:
    """The sizes of a block, changed to have this product."""
    if len(sizes) == 1:
        return [want]
    options = [(size, *sorted(changes.get(size, ()))) for size in sizes]
    if math.prod(map(len, options)) > 1 << 10:  # guess; a crafted file could make it explode
        return None
    fitting = {found for found in itertools.product(*options) if math.prod(found) == want}
    if len(fitting) > 1:
        raise AmbiguousError
    if fitting:
        return list(fitting.pop())
    if rest is not None:
        others = math.prod(size for at, size in enumerate(sizes) if at != rest)
        if want % others == 0:
            return [want // others if at == rest else size for at, size in enumerate(sizes)]
    return None
