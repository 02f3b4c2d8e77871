"""Decides how many threads a run gets, from how many runs there are at once.

A request that is alone may have all cores, one in a crowd gets its share. A crowd is noticed at
once and forgotten slowly. More threads do not always pay: on a machine whose cores others use as
well, threads that wait for each other were measured to take twice the time of one alone. So the
times of both are kept, and a width that lost is only tried again now and then.

Touched under the pool's lock only.
"""

from __future__ import annotations

from typing import NamedTuple

from mindspore_lite.engines.base import Session

_MEMORY = 16  # about as many runs a crowd, or a pace, is remembered; guess
_DOUBTED = 16  # runs between two trials of a width that lost; guess


class WidthOption(NamedTuple):
    """A session of some width, and how many runs may be as wide at the same time."""

    lanes: int
    session: Session


class Widths:
    """Chooses among the lanes of a worker, widest first."""

    def __init__(self, narrow_ns: int = 0) -> None:
        """narrow_ns: how long a run of the last width takes, if that is known; else 0."""
        self._crowd = 0.0
        self._narrow_ns = narrow_ns
        self._wide_ns: dict[int, int] = {}  # by lanes
        self._doubts = 0

    def choose(self, lanes: tuple[WidthOption, ...], runs: int) -> WidthOption:
        """The lane for a run when so many, itself included, run or wait."""
        if len(lanes) == 1:
            return lanes[0]
        self._crowd = remembered(self._crowd, runs)
        for lane in lanes[:-1]:
            if lane.lanes >= self._crowd - 0.5 and self._pays(lane):
                return lane
        return lanes[-1]

    def note(self, lanes: tuple[WidthOption, ...], lane: WidthOption, duration_ns: int) -> None:
        """Remember how long a run took."""
        if len(lanes) == 1:
            return
        if lane is lanes[-1]:
            self._narrow_ns = averaged(self._narrow_ns, duration_ns)
            return
        # until more is known, a wide run is taken to be worth it: the first may be slow by chance
        known = self._wide_ns.get(lane.lanes, self._narrow_ns // 2)
        if known > self._narrow_ns:  # it was a trial, and shows how things are now
            known = 0
        self._wide_ns[lane.lanes] = averaged(known, duration_ns)

    def _pays(self, lane: WidthOption) -> bool:
        wide_ns = self._wide_ns.get(lane.lanes, 0)
        if not self._narrow_ns or wide_ns <= self._narrow_ns:
            return True
        self._doubts += 1
        return self._doubts % _DOUBTED == 0


def remembered(level: float, now: float) -> float:
    """A level that rises at once and falls slowly."""
    return max(now, level + (now - level) / _MEMORY)


def averaged(known_ns: int, duration_ns: int) -> int:
    """A time that follows the last ones; 0 knows of none yet."""
    return known_ns + (duration_ns - known_ns) // _MEMORY if known_ns else duration_ns
