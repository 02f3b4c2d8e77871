"""A weight that may change while a model runs."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True, eq=False)
class Variable:
    """What callers may call it, what fits in its place, and what the file had there."""

    name: str  # the initializer's
    aliases: tuple[str, ...]  # other names: that of the user's list, nodes that use it
    dtype: np.dtype
    shape: tuple[int, ...]
    first: np.ndarray = field(repr=False)  # read-only
