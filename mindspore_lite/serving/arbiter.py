"""Shares the cores of the machine among the pools of this process, by weight.

Without it, each pool runs as many requests as it has workers, and the system decides: a model that
is flooded then takes its cores from one that gets a request now and then. With it, a run needs a
core (or as many as it has threads), and the arbiter says who may have one:

- A party that is alone may have all it wants. Others count for HISTORY_NS after their last run.
- Where there are others, all runs together have at most as many cores as the machine.
- A party that has used less than half of its share recently is light. It need not wait for the
  runs of others, which are not interrupted: up to a few cores more than there are are given out.
- Cores are kept free for light parties, as many as each had at once recently, if that is no more
  than its share. Any other party may always have its own share of the cores, at least one.
- Who waits is served by virtual time: the core time that a party has used, divided by its share.
  One that was away begins where the others are: nobody saves up time.

A core that is free is offered to the party that waits with the earliest virtual time: it is counted
for that party at once, whose pool is then woken. A run that ends goes on with the next request of
its pool, without a change of threads, unless another party comes before it.

Everything is bookkeeping under one lock, which is the last to be taken; times are arguments. What
the methods return are the parties to wake, without any lock held.
"""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Callable

from mindspore_lite.core.fork import after_fork_in_child

HISTORY_NS = 1_000_000_000  # for which a party counts after its last run
_USE_NS = 250_000_000.0  # over which the use of cores is averaged; guess
_LIGHT = 0.5  # of its share: who uses less need not wait; guess

Wake = Callable[[], None]


class Party:
    """One pool, as the arbiter sees it. All fields are the arbiter's."""

    __slots__ = (
        "__weakref__", "at_ns", "is_waiting", "offers", "peak", "peak_ns", "running", "seen_ns",
        "share", "use", "virtual", "wake", "wants",
    )  # fmt: skip

    def __init__(self, share: float, wants: int, wake: Wake) -> None:
        self.share = share
        self.wants = wants  # cores of a run, unless it turns out to be wider
        self.wake = wake  # called without locks, when cores were offered
        self.running = 0  # cores that it has, those on offer included
        self.offers = 0  # runs that it was offered cores for, and has not begun
        self.is_waiting = False
        self.virtual = 0.0  # ns
        self.use = 0.0  # cores, recently
        self.at_ns = 0  # when the last two were brought up to date
        self.seen_ns = 0  # when it last had something to do
        self.peak = self.peak_ns = 0  # most cores at once, recently


class Arbiter:
    """The cores, and who has them; see the module's text."""

    def __init__(self, cores: int) -> None:
        self.cores = cores
        self.beyond = max(1, cores // 4)  # cores that light parties may have beyond all; guess
        self.is_shared = False  # whether there is more than one party, at work or not
        self._lock = threading.Lock()
        self._parties: weakref.WeakSet[Party] = weakref.WeakSet()
        self._recent: dict[Party, None] = {}  # that have something to do, or had recently

    def join(self, party: Party) -> None:
        """There is one more."""
        with self._lock:
            self._parties.add(party)
            self.is_shared = len(self._parties) > 1

    def enter(self, party: Party, now_ns: int) -> tuple[bool, list[Party]]:
        """Ask for the cores of a run. If there are none, the party is woken when there are."""
        with self._lock:
            is_alone = self._is_alone(party, now_ns)
            if party.offers:
                party.offers -= 1
                return True, []
            if is_alone:
                self._grant(party, now_ns)
                return True, self._offered(now_ns)
            return self._asked(party, now_ns)

    def renew(self, party: Party, cores: int, now_ns: int) -> tuple[bool, list[Party]]:
        """Ask for the cores of another run, in place of those of one that has ended."""
        with self._lock:
            is_alone = self._is_alone(party, now_ns)
            if is_alone and cores == party.wants and not party.is_waiting:
                return True, []
            self._take_back(party, cores, now_ns)
            if is_alone:
                self._grant(party, now_ns)
                return True, self._offered(now_ns)
            return self._asked(party, now_ns)

    def force(self, party: Party, now_ns: int) -> None:
        """Take cores that must be had: the pool ends, or a callback computes."""
        with self._lock:
            self._is_alone(party, now_ns)
            if party.offers:
                party.offers -= 1
            else:
                self._grant(party, now_ns)

    def widen(self, party: Party, more: int, now_ns: int) -> None:
        """A run that was let in has so many more threads."""
        with self._lock:
            self._note(party, now_ns)
            party.running += more

    def leave(self, party: Party, cores: int, now_ns: int) -> list[Party]:
        """Give the cores of a run back; there is no other to run."""
        with self._lock:
            self._take_back(party, cores, now_ns)
            party.seen_ns = now_ns
            return self._offered(now_ns)

    def forgo(self, party: Party, now_ns: int) -> list[Party]:
        """Nothing waits any more: give back what was on offer."""
        with self._lock:
            if not party.is_waiting and not party.offers:
                return []
            party.is_waiting = False
            self._take_back(party, party.offers * party.wants, now_ns)
            party.offers = 0
            return self._offered(now_ns)

    def forget(self, party: Party, now_ns: int) -> list[Party]:
        """The pool is closed; runs of it that cannot be ended do not count any more."""
        with self._lock:
            party.is_waiting, party.offers, party.running = False, 0, 0
            self._recent.pop(party, None)
            self._parties.discard(party)
            self.is_shared = len(self._parties) > 1
            return self._offered(now_ns)

    def others(self, party: Party, now_ns: int) -> int:
        """How many cores others have, or have had recently and may want again."""
        with self._lock:
            if self._is_alone(party, now_ns):
                return 0
            return sum(max(q.running, q.peak) for q in self._recent if q is not party)

    def is_heavy(self, party: Party, now_ns: int) -> bool:
        """Whether a party has used more than its part, and there are others."""
        with self._lock:
            self._note(party, now_ns)
            return not self._is_alone(party, now_ns) and not self._is_light(party)

    def used(self, party: Party, run_ns: int, now_ns: int) -> bool:
        """Count runs of microseconds, which did not ask; whether they should have: is_heavy()."""
        with self._lock:
            is_alone = self._is_alone(party, now_ns)
            self._note(party, now_ns)
            party.use += run_ns / _USE_NS
            party.virtual += run_ns / party.share
            return not is_alone and not self._is_light(party)

    # --- inside, with the lock held ---

    def _asked(self, party: Party, now_ns: int) -> tuple[bool, list[Party]]:
        """Let a party wait with the others, and see who is served."""
        has_waited, party.is_waiting = party.is_waiting, True
        found = self._offered(now_ns, party)
        if party not in found:
            return False, found
        found.remove(party)
        party.offers -= 1
        party.is_waiting = has_waited  # a worker of it may still wait for another core
        return True, found

    def _offered(self, now_ns: int, first: Party | None = None) -> list[Party]:
        """Offer cores to those that wait, as far as they go; of two alike, to the first.

        Where one must wait for room, those behind it get no more than their own shares.
        """
        waiting = [p for p in self._recent if p.is_waiting and (p is first or not p.offers)]
        if not waiting:
            return []
        for party in self._recent:
            self._note(party, now_ns)
        waiting.sort(key=lambda party: (party.virtual, party is not first))
        found: list[Party] = []
        is_short = False
        for party in waiting:
            if self._fits(party, is_short=is_short):
                party.is_waiting = False
                party.offers += 1
                self._grant(party, now_ns)
                found.append(party)
            else:
                is_short = True
        return found

    def _fits(self, party: Party, *, is_short: bool) -> bool:
        """Whether a party may have the cores of one more run, if it is its turn."""
        if len(self._recent) == 1:
            return True
        fair = self._fair(party)
        own = max(1, math.floor(fair))
        cores = min(party.wants, own)  # a wider run is let in when there is room for its share
        total = sum(q.running for q in self._recent) + cores
        if total == cores:
            return True
        if self._is_light(party) and party.running + cores <= max(1, math.ceil(fair)):
            return total <= self.cores + self.beyond
        if total > self.cores:
            return False
        if party.running + cores <= own:
            return True
        kept = sum(self._kept(q) for q in self._recent if q is not party)
        return not is_short and total + kept <= self.cores

    def _kept(self, party: Party) -> int:
        """Cores that others leave to a party."""
        if not self._is_light(party):
            return 0
        return max(0, min(party.peak, max(1, math.floor(self._fair(party)))) - party.running)

    def _fair(self, party: Party) -> float:
        """The cores that are a party's share."""
        return self.cores * party.share / sum(q.share for q in self._recent)

    def _is_light(self, party: Party) -> bool:
        return party.use < _LIGHT * self._fair(party)

    def _is_alone(self, party: Party, now_ns: int) -> bool:
        """Note that a party has something to do; whether it is the only one."""
        recent = self._recent
        if party not in recent:
            if recent:  # it begins where the others are
                party.virtual = max(party.virtual, min(q.virtual for q in recent))
            recent[party] = None
        party.seen_ns = now_ns
        if len(recent) > 1:
            over_ns = now_ns - HISTORY_NS
            over = [q for q in recent if q.seen_ns < over_ns and not (q.running or q.is_waiting)]
            for other in over:
                del recent[other]
        return len(recent) == 1

    def _note(self, party: Party, now_ns: int) -> None:
        """Bring the books of a party up to date."""
        passed_ns = now_ns - party.at_ns
        if passed_ns > 0:
            running = party.running
            party.use = running + (party.use - running) * math.exp(-passed_ns / _USE_NS)
            party.virtual += running * passed_ns / party.share
            party.at_ns = now_ns

    def _grant(self, party: Party, now_ns: int) -> None:
        self._note(party, now_ns)
        party.running += party.wants
        if party.running >= party.peak or now_ns - party.peak_ns > HISTORY_NS:
            party.peak, party.peak_ns = party.running, now_ns

    def _take_back(self, party: Party, cores: int, now_ns: int) -> None:
        self._note(party, now_ns)
        party.running = max(0, party.running - cores)  # none of one that was forgotten


_arbiter: Arbiter | None = None
_making = threading.Lock()


def arbiter(cores: int) -> Arbiter:
    """The one of this process; its first pool says how many cores there are."""
    global _arbiter
    with _making:
        if _arbiter is None:
            _arbiter = Arbiter(cores)
        return _arbiter


def _start_over() -> None:
    """In a forked child: the pools stayed with the parent."""
    global _arbiter, _making
    _arbiter, _making = None, threading.Lock()


after_fork_in_child(_start_over)
