"""Reads JSON from files and peers; anything wrong with the text is a ValueError."""

from __future__ import annotations

import json
from typing import Any

MAX_DEPTH = 100  # guess: the deepest that we write, or that PyTorch writes, has about ten levels


def read_json(text: bytes | str) -> Any:
    """What a JSON text holds, nested so that it can be walked and written again.

    Raises:
        ValueError: It is no JSON, not UTF-8, or nested deeper than MAX_DEPTH.
    """
    try:
        found = json.loads(text)
    except RecursionError as exc:
        raise ValueError(f"the JSON text is nested deeper than {MAX_DEPTH} levels") from exc
    level = [found]
    for _ in range(MAX_DEPTH):
        level = [child for one in level for child in _children(one)]
        if not level:
            return found
    raise ValueError(f"the JSON text is nested deeper than {MAX_DEPTH} levels")


def _children(value: Any) -> list[Any]:
    """What is nested inside a value; plain values are left out."""
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list):
        return []
    return [child for child in value if isinstance(child, dict | list)]
