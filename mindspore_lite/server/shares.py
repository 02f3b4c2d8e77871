"""How the models of a server share its cores: a weight for each, compared with the others'.

    shares = Shares({"digits": 3})
    shares.of("digits")              3.0
    shares.of("other", 2.0)          what the model's own file says, if the server was told nothing
    shares.niceness(1.0)             of its process, if it has one

Models on threads of the server share by serving/arbiter.py, processes by what the kernel makes of
their nice values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

_LEAST, _MOST = 0.001, 1000.0
_NICE_STEP = 1.25  # by which the kernel's weights of two neighbouring nice values differ
_NICEST = 19


class Shares:
    """The shares that the server was told, by model."""

    def __init__(self, given: Mapping[str, float] | None = None) -> None:
        self._given = {name: checked_share(name, share) for name, share in (given or {}).items()}

    @property
    def names(self) -> list[str]:
        """Of models that it was told of."""
        return list(self._given)

    def of(self, name: str, own: float = 1.0) -> float:
        """The share of a model; `own` is what it says itself."""
        return self._given.get(name, own)

    def niceness(self, share: float) -> int:
        """How much a process of this share gives way, next to those of the largest."""
        largest = max(1.0, *self._given.values()) if self._given else 1.0
        return min(_NICEST, max(0, round(math.log(largest / share) / math.log(_NICE_STEP))))


def checked_share(name: str, share: object) -> float:
    """A share that makes sense."""
    if isinstance(share, bool) or not isinstance(share, int | float):
        raise TypeError(f"the share of model {name!r} must be a number, but got {share!r}")
    if not _LEAST <= share <= _MOST:
        raise ValueError(
            f"the share of model {name!r} must be {_LEAST:g} to {_MOST:g}, but got {share}; shares "
            "are compared with each other, and 1 is the usual one"
        )
    return float(share)
