"""Records about a model's weights: which compiled model has them, and which of them may change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from mindspore_lite.graph.parameters import UNKNOWN, Parameter


@dataclass(frozen=True)
class Identity:
    """Two processes with equal identities may use the same compiled model."""

    model: str  # a digest over all its contents, wherever these come from
    settings: Mapping[str, str]  # what else decides how it is compiled, by names for people


@dataclass(frozen=True, eq=False)
class Variable:
    """What callers may call it, what fits in its place, and what the file had there."""

    name: str  # the initializer's
    aliases: tuple[str, ...]  # other names: that of the user's list, nodes that use it
    dtype: np.dtype
    shape: tuple[int, ...]
    first: np.ndarray = field(repr=False)  # read-only
    parameter: Parameter = UNKNOWN  # what it was in the training framework
    least: int = 1  # parts of the end of its module's name that no other weight's name ends with
