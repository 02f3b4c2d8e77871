"""Damages configuration lines and JSON texts so that they still look like such."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random
from typing import Any

from fuzzing.mutate_bytes import changed_bytes

_VALUES = (
    *(
        "",
        "0",
        "1",
        "-1",
        "2",
        "3.5",
        "1e400",
        "nan",
        "99999999999999999999",
        "true",
        "off",
        "auto",
    ),
    *("0x10", "1,2,3", ",", "a:b", ";", "[", "]", '"', "'", "\\", "\0", "=", "é", "٣", "x" * 5000),
    *("data", "link", "out/secret", "pipe", ".", "..", "missing/file"),
)
_SCALARS: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2**31, 2**63, -(2**63), 10**30, 0.5, 1e308, "", "x", "../x"),
    *([], {}, [[]], "s0", "torch.ops.aten.add.Tensor", "__import__", "\0", "é"),
)


def changed_lines(text: str, words: Sequence[str], rng: Random) -> bytes:
    """Sections, keys and values of `key=value` lines, moved, repeated, or replaced."""
    if rng.random() < 0.15:
        return changed_bytes(text.encode(), rng)
    lines = text.splitlines()
    for _ in range(rng.choice((1, 1, 2, 4, 8))):
        at, how = rng.randrange(len(lines) + 1), rng.randrange(6)
        line = lines[at % len(lines)] if lines else ""
        key, _, value = line.partition("=")
        if how == 0:
            lines.insert(at, rng.choice(lines) if lines else "")
        elif how == 1:
            del lines[at : at + 1]
        elif how == 2:
            lines.insert(at, f"{key}={rng.choice((*_VALUES, *words))}")
        elif how == 3:
            lines[at : at + 1] = [f"{rng.choice((*words, key))}={value}"]
        elif how == 4:
            lines[at : at + 1] = [f"{key}={rng.choice((*_VALUES, *words))}"]
        else:
            lines[at : at + 1] = [rng.choice((f"[{value}]", f"[{rng.choice(words)}]", line[1:]))]
    return rng.choice(("\n", "\n", "\n", "\r\n", "\r")).join(lines).encode("utf-8", "replace")


def changed_json(data: bytes, rng: Random) -> bytes:
    """Some values of a JSON text, dropped, repeated, replaced, or swapped with each other."""
    try:
        root = json.loads(data)
    except ValueError:
        return changed_bytes(data, rng)
    for _ in range(rng.choice((1, 1, 2, 4))):
        spots = _spots(root)
        if not spots:
            break
        held, key = rng.choice(spots)
        how = rng.randrange(5)
        if how == 0:
            del held[key]
        elif how == 1:
            held[key] = rng.choice(_SCALARS)
        elif how == 2:
            other, place = rng.choice(spots)
            # a copy: a value that holds itself has no text
            held[key] = json.loads(json.dumps(other[place]))
        elif how == 3 and isinstance(held, list):
            held.insert(key, json.loads(json.dumps(held[key])))
        elif isinstance(held, dict):
            held[rng.choice(("x", "", "__class__", key + "x"))] = held.pop(key)
        else:
            held[key] = [held[key]]
    return json.dumps(root).encode()


def _spots(root: Any) -> list[tuple[Any, Any]]:
    """Every place in lists and dicts: what holds it, and the index or key."""
    found: list[tuple[Any, Any]] = []
    queue = [root] if isinstance(root, list | dict) else []
    while queue and len(found) < 20_000:
        held = queue.pop()
        keys = range(len(held)) if isinstance(held, list) else list(held)
        found += [(held, key) for key in keys]
        queue += [held[key] for key in keys if isinstance(held[key], list | dict)]
    return found
