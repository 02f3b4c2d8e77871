"""Records of what a load is and what one turn of a side measured."""

from __future__ import annotations

from array import array
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Load:
    """How requests come: so many clients, or so many a second."""

    clients: int | None = None
    rate: float | None = None

    def __str__(self) -> str:
        if self.clients is not None:
            return f"{self.clients} client{'s'[: self.clients > 1]}"
        return f"{self.rate:g} /s"


@dataclass(frozen=True)
class Burst:
    """One turn of a side: seconds are counted from the opening of its window."""

    starts_s: np.ndarray  # of the requests that count; in an open loop, when they were meant to be
    ends_s: np.ndarray
    answered: int  # requests whose answer came while the window was open
    window_s: float
    cpu_s: float  # of the process, within the window
    errors: int = 0
    first_error: str = ""
    late_ms: float = 0.0  # p99 of how much later than drawn requests were sent
    interrupted: bool = False
    refused: int = 0  # of the errors: those for which there was no room

    @property
    def latencies_ms(self) -> np.ndarray:
        """Of every request that counts and was answered."""
        return np.asarray((self.ends_s - self.starts_s) * 1e3)

    @property
    def throughput(self) -> float:
        """Answers per second."""
        return self.answered / self.window_s if self.window_s > 0 else 0.0


def columns(pairs: array[float], zero: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Starts and ends that were written down one after the other, by the order of the ends."""
    both = np.array(pairs, np.float64).reshape(-1, 2) - zero
    both = both[np.argsort(both[:, 1], kind="stable")]
    return both[:, 0], both[:, 1]
