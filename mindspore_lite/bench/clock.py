"""The clock of the load loops, which tests replace by one that they move."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Seconds since any moment, and of work of the whole process."""

    def now(self) -> float:
        """The time."""

    def cpu(self) -> float:
        """Seconds that all threads of the process have computed."""

    def wait_until(self, moment: float) -> None:
        """Return at this time, or at once where it is past."""


class RealClock:
    """The machine's."""

    def now(self) -> float:
        """The time."""
        return time.perf_counter()

    def cpu(self) -> float:
        """Seconds that all threads of the process have computed."""
        return time.process_time()

    def wait_until(self, moment: float) -> None:
        """Return at this time, or at once where it is past."""
        left = moment - time.perf_counter()
        if left > 0:
            time.sleep(left)
