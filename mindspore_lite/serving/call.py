"""One request as its caller makes it: the inputs, and everything that decides how they are run.

A new property of requests is a field here and a line where it counts, not one more parameter of
every function on the way. Making a Call is on the path of every request, so it stays a plain
record; the faces check what users give (`checked_priority`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mindspore_lite.core import checks
from mindspore_lite.serving.timing import Timing

Arrays = Sequence[np.ndarray]
Known = Callable[[Callable[[], object]], None]

USUAL = 0  # the priority of most requests
LOWEST, HIGHEST = -100, 100  # priorities; the wire has a signed byte for them


@dataclass(slots=True, eq=False)
class Call:
    """What one caller wants computed. It serves for one run: the pool drops the inputs at its end.

    Attributes:
        inputs: One array per input of the model.
        timeout_s: Within which there must be an answer; None waits for ever.
        priority: Higher ones start first; 0 is usual.
        known: Called before the run with a function that cancels it, for other threads to call.
        trace_id: By which the caller's own logs know the request; mslite does not interpret it.
        timing: Filled in with when it was computed; None if nobody asks.
        version: Of the model that must compute it, where several do; filled in with the one that
            did. "" where there is but one.
    """

    inputs: Arrays
    timeout_s: float | None = None
    priority: int = 0
    known: Known | None = None
    trace_id: str = ""
    timing: Timing | None = None
    version: str = ""

    def part(self, inputs: Arrays, timeout_s: float | None) -> Call:
        """A call like this one, for some of its rows, in the time that is left."""
        return Call(inputs, timeout_s, self.priority, trace_id=self.trace_id)


def checked_priority(value: object) -> int:
    """A priority that a user gave.

    Raises:
        TypeError: It is no integer.
        ValueError: It is out of range.
    """
    if value is USUAL:
        return USUAL
    number = checks.integer("priority", value)
    if not LOWEST <= number <= HIGHEST:
        raise ValueError(
            f"priority must be {LOWEST} to {HIGHEST}, but got {number}; 0 is usual, and higher "
            "ones start first."
        )
    return number
