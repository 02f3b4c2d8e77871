"""The shapes that [ascend_context] names, held against the inputs of a model.

The original compiles a model for them. Here nothing has to be compiled for a list of sizes, but a
configuration that does not fit its model is a mistake that should be seen before it is deployed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest

Shapes = tuple[tuple[str, tuple[int, ...]], ...]  # by input; -1 is open
Span = tuple[int, int]  # the least and the greatest size
Profile = tuple[Span, ...]  # a span for each open size of an input
Profiles = tuple[tuple[Profile, ...], ...]  # by input

MOST_PROFILES = 100  # as many as an Ascend compiler takes
_MOST = 2**31 - 1
_NUMBER = "[0-9]{1,10}"
_SIZES = re.compile(rf"\s*(?:-1|{_NUMBER})\s*(?:,\s*(?:-1|{_NUMBER})\s*)*")
_SPAN = rf"\s*{_NUMBER}\s*(?:~\s*{_NUMBER}\s*)?"
_PROFILE = re.compile(rf"\s*\[({_SPAN}(?:,{_SPAN})*)\]\s*")


def input_shape(text: str) -> Shapes:
    """`x:[1,-1,3];y:[4]`; the brackets may be left out.

    Raises:
        ValueError: It is no such text, or names an input twice.
    """
    found: dict[str, tuple[int, ...]] = {}
    for entry in filter(str.strip, text.split(";")):
        name, _, sizes = (part.strip() for part in entry.rpartition(":"))
        inner = sizes[1:-1] if sizes.startswith("[") and sizes.endswith("]") else sizes
        if not name or name in found or not _SIZES.fullmatch(inner):
            raise ValueError
        dims = tuple(int(size) for size in inner.split(","))
        if any(dim == 0 or dim > _MOST for dim in dims):
            raise ValueError
        found[name] = dims
    return tuple(found.items())


def dynamic_dims(text: str) -> Profiles:
    """`[1~4],[8];[2,16]`: for each input with open sizes the sizes that it may have.

    Raises:
        ValueError: It is no such text.
    """
    if not text.strip():
        return ()
    return tuple(tuple(_profiles(part)) for part in text.strip().rstrip(";").split(";"))


def _profiles(text: str) -> Iterator[Profile]:
    at = 0
    while True:
        match = _PROFILE.match(text, at)
        if match is None:
            raise ValueError
        yield tuple(_span(part) for part in match[1].split(","))
        at = match.end()
        if at == len(text):
            return
        if text[at] != ",":
            raise ValueError
        at += 1


def _span(text: str) -> Span:
    least, _, most = (part.strip() for part in text.partition("~"))
    span = int(least), int(most or least)
    if not 1 <= span[0] <= span[1] <= _MOST:
        raise ValueError
    return span


def problems(
    shapes: Shapes, profiles: Profiles, inputs: Mapping[str, Sequence[int] | None]
) -> list[str]:
    """What does not fit the inputs of a model, whose open sizes are -1; None is any rank."""
    found = []
    for name, dims in shapes:
        if name not in inputs:
            found.append(f"input_shape names {name!r}, which is no input")
            continue
        own = inputs[name]
        if own is None:
            continue
        if len(own) != len(dims):
            found.append(f"input_shape gives {name!r} {len(dims)} dims, the model has {len(own)}")
            continue
        found += [
            f"input_shape says {size} for dim {at} of {name!r}, which the model fixes to {fixed}"
            for at, (size, fixed) in enumerate(zip(dims, own, strict=True))
            if -1 not in (size, fixed) and size != fixed
        ]
    return found or _profile_problems(profiles, _open(shapes, inputs))


def _open(shapes: Shapes, inputs: Mapping[str, Sequence[int] | None]) -> dict[str, int]:
    """How many open sizes each input has that has any."""
    said = {**inputs, **dict(shapes)}
    counts = {name: list(dims or ()).count(-1) for name, dims in said.items()}
    return {name: count for name, count in counts.items() if count}


def _profile_problems(profiles: Profiles, open_sizes: Mapping[str, int]) -> list[str]:
    if not profiles:
        return []
    if len(profiles) != len(open_sizes):
        names = ", ".join(open_sizes) or "none"
        return [
            f"dynamic_dims has lists for {len(profiles)} inputs, wanted one for each input with "
            f"open sizes ({names}), with ; between them"
        ]
    found = []
    counts = {len(one) for one in profiles}
    if len(counts) > 1 or max(counts) > MOST_PROFILES:
        found.append(
            f"dynamic_dims has {' and '.join(map(str, sorted(counts)))} lists of sizes, wanted the "
            f"same number for every input, and at most {MOST_PROFILES}"
        )
    for (name, count), lists in zip(open_sizes.items(), profiles, strict=True):
        found += [
            f"dynamic_dims has {len(profile)} sizes for {name!r} in list {at}, wanted {count}: one "
            "for each -1"
            for at, profile in enumerate(lists)
            if len(profile) != count
        ]
    return found


def all_shapes(
    shapes: Shapes, profiles: Profiles, inputs: Mapping[str, Sequence[int] | None]
) -> list[dict[str, tuple[int, ...]]]:
    """The shapes of the inputs at both ends of every profile; [] without profiles.

    Only for what has no problems().
    """
    if not profiles or None in inputs.values():  # of any rank: there is no graph to ask yet
        return []
    said = {**inputs, **dict(shapes)}
    names = list(_open(shapes, inputs))
    found = []
    for row in zip_longest(*profiles):
        for end in (0, 1):
            sizes = {name: iter(profile) for name, profile in zip(names, row, strict=True)}
            made = {
                name: tuple(next(sizes[name])[end] if d == -1 else d for d in dims or ())
                for name, dims in said.items()
            }
            if made not in found:
                found.append(made)
    return found
