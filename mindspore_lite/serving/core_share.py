"""A pool's share of the cores: what its scheduler asks, and whom it must wake.

Touched under the pool's lock, except for wake_others(), which is called without it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from mindspore_lite.serving.arbiter import Arbiter, Party, arbiter
from mindspore_lite.serving.layout import Layout

if TYPE_CHECKING:
    from mindspore_lite.serving.scheduler import Slot


_NOTED_NS = 1_000_000  # how often runs are counted that take microseconds


class CoreShare:
    """Gets cores for the slots of one pool; `Slot.cores` is what each has."""

    def __init__(
        self, share: float, layout: Layout, wake: Callable[[], None], shared: Arbiter | None = None
    ) -> None:
        method = weakref.WeakMethod(wake)  # the arbiter remembers pools for a while

        def wake_pool() -> None:
            found = method()
            if found is not None:
                found()

        self._arbiter = arbiter(layout.usable) if shared is None else shared
        self._party = Party(share, layout.threads, wake_pool)
        self._widths = layout.widths
        self._woken: list[Party] = []
        self._is_heavy = False  # as of the last time that runs were counted which did not ask
        self._inline_ns = self._noted_ns = 0
        self._arbiter.join(self._party)

    def take(self, slot: Slot, now_ns: int, *, must: bool = False) -> bool:
        """Get the cores of the next run of a slot; False when it must wait for them."""
        if not self._arbiter.is_shared and not slot.cores:
            return True  # as long as there is no other, nothing is counted
        woken: list[Party] = []
        if must:
            if not slot.cores:
                self._arbiter.force(self._party, now_ns)
            is_let = True
        elif slot.cores:
            is_let, woken = self._arbiter.renew(self._party, slot.cores, now_ns)
        else:
            is_let, woken = self._arbiter.enter(self._party, now_ns)
        self._woken += woken
        if not is_let:
            slot.cores = 0
        elif not (must and slot.cores):
            slot.cores = self._party.wants
        return is_let

    def widen(self, slot: Slot, now_ns: int) -> None:
        """Count the threads of the lane that was chosen for a slot."""
        if not slot.cores:
            return
        lanes = slot.place.lanes
        cores = self._widths[lanes.index(slot.lane) - len(lanes)]
        if cores != slot.cores:
            self._arbiter.widen(self._party, cores - slot.cores, now_ns)
            slot.cores = cores

    def give(self, slot: Slot, now_ns: int) -> None:
        """Give back what a slot has."""
        if slot.cores:
            cores, slot.cores = slot.cores, 0
            self._woken += self._arbiter.leave(self._party, cores, now_ns)

    def forgo(self, now_ns: int) -> None:
        """No slot waits for cores any more."""
        self._woken += self._arbiter.forgo(self._party, now_ns)

    def others(self, now_ns: int) -> int:
        """How many cores other pools use."""
        if not self._arbiter.is_shared:
            return 0
        return self._arbiter.others(self._party, now_ns)

    def forget(self, now_ns: int) -> None:
        """The pool is closed."""
        self._woken += self._arbiter.forget(self._party, now_ns)

    def wake_others(self) -> None:
        """Wake the pools that were offered cores; without a lock, which they may need."""
        while self._woken:
            with suppress(IndexError):  # another thread was faster
                self._woken.pop().wake()

    # --- the inline lane, without the pool's lock ---

    def is_heavy(self, now_ns: int) -> bool:
        """Whether runs should queue, since others come first."""
        if self._is_heavy:
            self._is_heavy = self._arbiter.is_heavy(self._party, now_ns)
        return self._is_heavy

    def used(self, run_ns: int, now_ns: int) -> None:
        """Count a run that did not ask. Some may be lost: many threads may be in here."""
        if not self._arbiter.is_shared:
            return
        self._inline_ns += run_ns
        if now_ns - self._noted_ns > _NOTED_NS:
            self._noted_ns = now_ns
            total_ns, self._inline_ns = self._inline_ns, 0
            self._is_heavy = self._arbiter.used(self._party, total_ns, now_ns)
