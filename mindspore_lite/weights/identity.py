"""Identifies a compiled model across processes: its content and how it was compiled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Identity:
    """Two processes with equal identities may use the same compiled model."""

    model: str  # a digest over all its contents, wherever these come from
    settings: Mapping[str, str]  # what else decides how it is compiled, by names for people
