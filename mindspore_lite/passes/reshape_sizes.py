"""Finds the target of a Reshape whose input got other sizes than it was exported with.

The old sizes of input and output are cut into the same factors: [2, 24] and [8, 6] are both
(2)(4)(6), once as 2 * (4 * 6) and once as (2 * 4) * 6. A size of the input that is one factor
gives it its new size, and the output follows: [1, 24] becomes [4, 6]. Where a size of the input is
several factors, the sizes of the model's inputs that were changed decide which of them follows; if
that leaves more than one answer, there is none. A size of 1 that the output leaves out belongs to
the size in front of it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

MAX_RANK = 16  # of shapes that are looked at; guess, no exporter comes near it
Changes = Mapping[int, frozenset[int]]  # an old size of an input: what became of it


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
    ends = _common_ends(old, out)
    if ends is None:
        return None
    factors = [end // start for start, end in itertools.pairwise([1, *ends])]
    theirs = _groups(out, ends)
    # factors of the size that takes what is left
    rest = {at for size, group in zip(target, theirs, strict=True) if size == -1 for at in group}
    for group, was, now in zip(_groups(old, ends), old, new, strict=True):
        # also where the product is the same: two sizes that changed places may be merged in it
        changed = _changed([factors[at] for at in group], now, changes)
        if changed is None and was == now:
            continue
        if changed is None:
            changed = _absorbed(group, factors, now, rest)
        if changed is None:
            return None
        for at, size in zip(group, changed, strict=True):
            factors[at] = size
    return [math.prod(factors[at] for at in group) for group in theirs]


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


def _ends(sizes: Sequence[int]) -> list[int]:
    return list(itertools.accumulate(sizes, lambda a, b: a * b))


def _common_ends(old: Sequence[int], out: Sequence[int]) -> list[int] | None:
    """Where factors end that both shapes are made of; None where there are no such factors.

    An end that comes again is a size of 1.
    """
    ours, theirs = _ends(old), _ends(out)
    found: list[int] = []
    for end in sorted({*ours, *theirs}):
        if found and end % found[-1]:
            return None
        found += [end] * max(ours.count(end), theirs.count(end))
    return found


def _groups(sizes: Sequence[int], ends: list[int]) -> list[list[int]]:
    """Which factors each size is the product of."""
    groups: list[list[int]] = []
    own = _ends(sizes)
    at = 0
    for place, done in enumerate(own):
        start = at
        # sizes of 1 behind this one have a factor of 1 each, and this one has those beyond
        behind = own[place + 1 :].count(done)
        at = len(ends) - ends[::-1].index(done) - behind
        groups.append(list(range(start, at)))
    return groups


def _changed(factors: list[int], want: int, changes: Changes) -> list[int] | None:
    """The factors of a size with another product."""
    if len(factors) == 1 or set(factors[1:]) == {1}:
        return [want, *factors[1:]]
    options = [(factor, *sorted(changes.get(factor, ()))) for factor in factors]
    if math.prod(map(len, options)) > 1 << 10:  # guess; a crafted file could make it explode
        return None
    fitting = {found for found in itertools.product(*options) if math.prod(found) == want}
    if len(fitting) > 1:
        raise AmbiguousError
    return list(fitting.pop()) if fitting else None


def _absorbed(group: list[int], factors: list[int], want: int, rest: set[int]) -> list[int] | None:
    """The factors of a size, one of which goes to the size that takes what is left."""
    (*free,) = (at for at in group if at in rest)
    others = math.prod(factors[at] for at in group if at not in rest)
    if len(free) != 1 or want % others:
        return None
    return [want // others if at == free[0] else factors[at] for at in group]
