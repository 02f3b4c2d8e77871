"""Sizes in bytes as users write them: 1000, 500K, 64M, 20G."""

from __future__ import annotations

import re

_SHIFTS = {"": 0, "K": 10, "M": 20, "G": 30}


def size_of(text: str) -> int:
    """The number of bytes.

    Raises:
        ValueError: It is no size.
    """
    match = re.fullmatch(r"([0-9]{1,18})([KMG]?)", text.strip().upper(), re.ASCII)
    if match is None:
        raise ValueError(f"{text!r}, wanted a number of bytes, or one with K, M or G")
    return int(match[1]) << _SHIFTS[match[2]]
