"""Parses shapes written as text, such as `name:1,3,224,224;name2:1`."""

from __future__ import annotations

import re

_WHOLE = re.compile(r"[+-]?[0-9]+")  # int() would also take 1_0 and digits of other scripts
MAX_DIM = 2**31 - 1

Sizes = dict[str, tuple[int, ...]]


def parse_shapes(text: str, label: str, *, open_dims: bool = False) -> Sizes:
    """Sizes by input name; a name may hold colons, and sizes may stand in brackets.

    With `open_dims` a size may be -1, which leaves it open.

    Raises:
        ValueError: Everything that is wrong, one line each; `label` says whose text it is.
    """
    shapes: Sizes = {}
    problems = []
    for entry in text.split(";"):
        if not entry.strip():
            continue
        name, colon, sizes = (part.strip() for part in entry.rpartition(":"))
        if not colon or not name:
            problems.append(f"{label} has {entry.strip()!r}, wanted name:1,3,224,224")
            continue
        if name in shapes:
            problems.append(f"{label} names input {name!r} twice")
            continue
        dims, wrong = _dims(sizes, least=-1 if open_dims else 1)
        shapes[name] = dims
        problems += [f"{label} of {name!r} {what}" for what in wrong]
    if problems:
        raise ValueError("\n".join(problems))
    return shapes


def shape_problems(shapes: Sizes, label: str) -> list[str]:
    """What is wrong with sizes that came as numbers."""
    return [
        f"{label} of {name!r} {_wrong_size(dim)}"
        for name, dims in shapes.items()
        for dim in dims
        if not 1 <= dim <= MAX_DIM
    ]


def shapes_text(shapes: Sizes) -> str:
    """The shapes as users write them."""
    return ";".join(f"{name}:{','.join(map(str, dims))}" for name, dims in shapes.items())


def _dims(text: str, least: int) -> tuple[tuple[int, ...], list[str]]:
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1]
    dims, wrong = [], []
    for part in (part.strip() for part in text.split(",")):
        if not _WHOLE.fullmatch(part):
            wrong.append(f"has the size {part!r}, wanted a whole number")
        elif int(part) == 0 or not least <= int(part) <= MAX_DIM:
            wrong.append(_wrong_size(int(part)))
        else:
            dims.append(int(part))
    return tuple(dims), wrong


def _wrong_size(dim: int) -> str:
    if dim < 0:
        return f"has the size {dim}. Unsupported dim < 0; leave the input out to keep its shape"
    return f"has the size {dim}, wanted 1 to {MAX_DIM}"
