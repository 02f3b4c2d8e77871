"""The scheduler of a pool: decides which slot computes which requests next.

Pure bookkeeping, without threads, locks or clocks: every method is called under the pool's lock,
and times come as arguments. That makes it the part that is tested as a state machine.

What always holds:
- a request is in the queue, or in the batch of one slot, or has ended; it ends once (request.py);
- a slot is idle, or gathering (waiting for more rows of a batch), or starving (waiting for a core,
  where pools share them; core_share.py), or busy;
- sent = queued + running + done + failed + timed_out + cancelled + rejected + closed;
- requests of equal keys start in the order of the queue: by priority, with ageing (queue.py).

A slot whose engine hangs is replaced by a new one in its place; the old one is `lost`, and whatever
its thread still brings is thrown away.

An engine with a queue of its own is given a few requests ahead, in slots beyond its streams
(prefetch.py). The time of such a request counts as waiting until one of the others has left; which
stream computes it is not known, so that workers are credited in turn.
"""

from __future__ import annotations

import heapq
import math
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle, pairwise

import numpy as np

from mindspore_lite.engines.base import Stop
from mindspore_lite.errors import ClosedError, QueueFullError
from mindspore_lite.serving.core_share import CoreShare
from mindspore_lite.serving.prefetch import Line
from mindspore_lite.serving.queue import Queue
from mindspore_lite.serving.request import Request, State
from mindspore_lite.serving.statistics import Histogram
from mindspore_lite.serving.thread_widths import WidthOption, Widths, averaged, remembered
from mindspore_lite.serving.timing import Run

_PATIENCE = 10  # a run is worth a tenth of its time in waiting for more rows; guess
_IN_PASSING = 1  # all of it while the card is busy for another slot, which costs little; guess
_WELL_FILLED = 0.75  # of a bucket: below, the rows of the next smaller one are taken; guess
_CROWD = 8  # rows; guess
_ASK_AGAIN_NS = 1_000_000_000  # for cores, although one is told of those that are free
_SCANNED = 256  # waiting requests that are looked through for the same key; guess


@dataclass(frozen=True)
class WorkerPlace:
    """Where a worker runs: its sessions, widest first, and its cores or its card."""

    index: int
    lanes: tuple[WidthOption, ...]
    cores: tuple[int, ...] = ()
    node: int = -1
    card: str = ""  # which workers with the same share; "" is none
    ahead: bool = False  # what is put there waits inside the engine; not with batching


@dataclass(frozen=True)
class Batching:
    """How requests are joined: at most so many rows, after waiting so long for them.

    Without a time to wait, rows are shared out: each slot waits, for a small part of what a run
    takes, until it has its share of the requests that were under way recently. So a lone request
    never waits, and callers that all come back after a batch are together again in the next. While
    the card of a slot computes for another one, it waits longer.

    A session that runs fewer rows than a bucket as if there were as many gets no batch that fills
    one badly.
    """

    max_rows: int
    wait_ns: int = 0
    buckets: tuple[int, ...] = ()  # smallest first

    def fitting(self) -> Sequence[int]:
        """For each number of rows that could be taken, how many are."""
        if not self.buckets:
            return range(self.max_rows + 1)  # takes no memory, whatever the number is
        found = list(range(self.max_rows + 1))
        for lower, upper in pairwise(self.buckets):
            for rows in range(lower, min(upper, self.max_rows + 1)):
                found[rows] = rows if rows >= _WELL_FILLED * upper else lower
        return found


class Tally:
    """What a worker did; it stays when the slot is replaced."""

    __slots__ = ("done", "failed", "runs", "waits")

    def __init__(self) -> None:
        self.done = self.failed = 0
        self.waits, self.runs = Histogram(), Histogram()


class PriorityTally:
    """What became of the requests of one priority."""

    __slots__ = ("done", "sent", "waits")

    def __init__(self) -> None:
        self.sent = self.done = 0
        self.waits = Histogram()


class Slot:
    """A worker: it computes one batch at a time. `signal` is what its thread sleeps on."""

    __slots__ = (
        "awake", "batch", "began_ns", "cores", "ident", "lane", "lost", "place", "ran_ns", "run",
        "signal", "started_ns", "stop", "tally", "thread", "told_ns",
    )  # fmt: skip

    def __init__(self, place: WorkerPlace, tally: Tally) -> None:
        self.place = place
        self.tally = tally
        self.lane = place.lanes[-1]
        self.stop = Stop()
        self.batch: list[Request] = []  # what the engine works on
        self.cores = 0  # that a CoreShare got for it
        self.started_ns = 0
        self.began_ns = self.ran_ns = 0  # of the engine, where a batch was joined; else 0
        self.run: Run | None = None  # of the batch that ended last, if a request asks for it
        self.ident = 0  # of the thread that computes, or did last
        self.told_ns = 0  # when its run was told to stop, if `stop` was fired
        self.lost = False
        self.awake = False  # its thread was called, and has not looked at the queue since
        self.thread: threading.Thread | None = None
        self.signal = threading.Lock()
        self.signal.acquire()


class Scheduler:
    """The queue, the slots, and the exact count of everything that was sent."""

    def __init__(
        self,
        places: Sequence[WorkerPlace],
        queue_size: int,
        batching: Batching | None = None,
        widths: Widths | None = None,
    ) -> None:
        self.workers = [(place, Tally()) for place in places if not place.ahead]
        tallies = [tally for _, tally in self.workers]
        self.slots = [Slot(place, tallies[place.index % len(tallies)]) for place in places]
        self._turns = cycle(tallies)
        self._line = Line[Slot](len(tallies)) if len(tallies) < len(places) else None
        self.queue = Queue()
        self.queue_size = queue_size
        self.batching = batching
        self.closing = False
        self.gathering: Slot | None = None
        self.starving: Slot | None = None  # one at most: it waits for all that could run
        self.cores: CoreShare | None = None  # None: there is no need to ask
        self.sent = self.running = self.stuck = 0
        self.ended = dict.fromkeys(State, 0)
        self.batches: Counter[int] = Counter()
        self.priorities: dict[int, PriorityTally] = {}  # but for 0, which has all the rest
        self._idle = list(range(len(self.slots)))  # a heap: the first lanes are the wide ones
        self._rows: Counter[object] = Counter()  # waiting rows of each key
        self._full: dict[object, None] = {}  # the keys whose rows make a batch
        self._widths = widths or Widths()
        self._flight = 0.0  # rows under way, recently
        self._open_rows = 0  # rows under way now
        self.pace_ns = 0  # how long a run takes, recently
        self._due_ns = 0  # until when the gathering slot waits
        self._fitting = batching.fitting() if batching is not None else []

    @property
    def drained(self) -> bool:
        """Nothing waits and nobody works."""
        return not self.queue.count and len(self._idle) == len(self.slots)

    @property
    def crowded(self) -> bool:
        """Whether so many rows were under way recently that their callers should meet."""
        return self._flight >= _CROWD

    def admit(self, request: Request, now_ns: int, *, direct: bool) -> Slot | None:
        """Take a request: with an idle slot to compute it in at once, if `direct`; else queue it.

        Raises:
            ClosedError: The pool takes no requests any more.
            QueueFullError: As many as allowed are waiting.
        """
        self.sent += 1
        if request.level:  # its priority
            self._tally(request.level).sent += 1
        if self.closing:
            self._refuse(request, State.CLOSED)
            raise ClosedError("the runner is closed; build it again to use it")
        self._open_rows += request.rows
        if self.batching is not None:
            self._flight = remembered(self._flight, self._open_rows)
            direct = direct and (request.key is None or request.rows >= self._goal())
        if direct and self._idle and not self.queue.count:
            slot = self.slots[self._idle[0]]
            if self._has_cores(slot, now_ns):
                heapq.heappop(self._idle)
                self._start(slot, [request], now_ns)
                return slot
        if self.queue.count >= self.queue_size and self._waiting() >= self.queue_size:
            self._open_rows -= request.rows
            self._refuse(request, State.REJECTED)
            raise QueueFullError(
                f"the queue is full: context.parallel.queue_size is {self.queue_size}, and as many "
                "requests are waiting; send fewer at once, or raise it"
            )
        request.state = State.QUEUED
        self.queue.add(request)
        if self.batching is not None and request.key is not None:
            self._rows[request.key] += request.rows
            if self._rows[request.key] >= self.batching.max_rows:
                self._full[request.key] = None
        return None

    def admit_into(self, slot: Slot, request: Request, now_ns: int) -> None:
        """Take a request that the slot's own thread makes, from within a callback."""
        self.sent += 1
        if request.level:  # its priority
            self._tally(request.level).sent += 1
        self._open_rows += request.rows
        if self.cores is not None:
            self.cores.take(slot, now_ns, must=True)
        self._start(slot, [request], now_ns)

    def book(self, state: State, durations_ns: Sequence[int], priority: int = 0) -> None:
        """Count requests that were computed without a slot, to the first worker."""
        count = len(durations_ns)
        self.sent += count
        self.ended[state] += count
        own = self._tally(priority) if priority else None
        if own is not None:
            own.sent += count
            own.done += count if state is State.DONE else 0
        if state in (State.CANCELLED, State.CLOSED):
            return
        _, tally = self.workers[0]
        if state is State.DONE:
            tally.done += count
        else:
            tally.failed += count
        self.batches[1] += count
        tally.waits.add(0, count)
        if own is not None:
            own.waits.add(0, count)
        tally.runs.add_many(durations_ns)

    def leave(self, slot: Slot, now_ns: int) -> bool:
        """A caller gives the slot back that it computed in; True: its thread must be called."""
        if self.queue.count:
            slot.batch = []
            slot.awake = True
            return True
        self.claim(slot, now_ns)
        return False

    def to_wake(self) -> Slot | None:
        """The slot whose thread should look at the queue now, if any; it is idle no longer.

        A closing scheduler wakes no idle one, whose thread may have ended; those that are awake or
        busy take what is left.
        """
        if not self.queue.count or self.closing or self.starving is not None:
            return None
        slot = self.gathering
        if slot is not None:
            head = self.queue.head()
            if not self._full and self._may_gather(head) and self._rows[head.key] < self._goal():
                return None
            self.gathering = None
        elif self._idle:
            slot = self.slots[heapq.heappop(self._idle)]
        else:
            return None
        slot.awake = True
        return slot

    def claim(self, slot: Slot, now_ns: int) -> int | None:
        """Give the slot its next batch, or make it idle; the batch is in `slot.batch`.

        Returns when to ask again, on the clock of `now_ns`, if a fuller batch is worth waiting for.
        """
        slot.awake = False
        slot.batch = []
        if self.gathering is slot:
            self.gathering = None
        was_starving = self.starving is slot
        if was_starving:
            self.starving = None
        if self.queue.count:
            head = self.queue.head()
            due_ns = self._waits_until(head, slot)
            if now_ns >= due_ns:
                return self._take(slot, head, now_ns)
            if self._full:  # a batch of another key need not wait for the head
                key = next(iter(self._full))
                first = next(request for request in self.queue if request.key == key)
                return self._take(slot, first, now_ns)
            self._rest(slot, now_ns, was_starving)
            if self.gathering is None or due_ns < self._due_ns:
                if self.gathering is not None:  # its card is busy no longer
                    heapq.heappush(self._idle, self.gathering.place.index)
                self.gathering, self._due_ns = slot, due_ns
                return due_ns
        else:
            self._rest(slot, now_ns, was_starving)
        heapq.heappush(self._idle, slot.place.index)
        return None

    def is_waiting(self, slot: Slot) -> bool:
        """Whether a slot waits for more rows, or for cores."""
        return slot is self.gathering or slot is self.starving

    def starved(self, now_ns: int) -> Slot | None:
        """The slot that waits for cores, of which there are some now."""
        if self.starving is None and self.cores is not None:  # others were faster, or gave up
            self.cores.forgo(now_ns)
        return self.starving

    def finish(
        self,
        slot: Slot,
        request: Request,
        now_ns: int,
        outputs: list[np.ndarray] | None,
        error: BaseException | None = None,
    ) -> bool:
        """End a request with what the engine made of it; False when it had ended before."""
        if self._line is not None:
            begun = self._line.leave(slot)
            if begun is not None:
                self._begin(begun, slot.started_ns if begun is slot else now_ns)
        if request.state is not State.RUNNING:
            return False
        request.outputs, request.error = outputs, error
        self._ended(request, State.DONE if error is None else State.FAILED)
        if request.call.timing is not None:
            self._note(slot, request, now_ns)
        tally = slot.tally
        duration_ns = now_ns - slot.started_ns
        tally.runs.add(duration_ns)
        if error is not None:  # which may come at once, and says nothing about the pace
            tally.failed += 1
            return True
        tally.done += 1
        if request.call.priority:
            self._tally(request.call.priority).done += 1
        self._widths.note(slot.place.lanes, slot.lane, duration_ns)
        self.pace_ns = averaged(self.pace_ns, duration_ns)
        return True

    def put_back(self, slot: Slot) -> None:
        """Queue the members of a batch that failed before all others, each to be computed alone."""
        for request in reversed(slot.batch):
            if request.state is State.RUNNING:
                request.state, request.key = State.QUEUED, None
                self.running -= 1
                self.queue.put_back(request)

    def end(self, request: Request, state: State, error: BaseException) -> bool:
        """End a request from outside; False when it had ended before.

        The engine is stopped once no request wants what it computes.
        """
        if request.state is State.QUEUED:
            self._leave(request)
        elif request.state is not State.RUNNING:
            return False
        else:
            self._unwanted(request)
        request.error = error
        self._ended(request, state)
        return True

    def close(self) -> None:
        """Take no more requests; those that were taken are still computed."""
        self.closing = True

    def abort(self, why: str) -> list[Request]:
        """End all that waits or runs; returns what was ended."""
        open_ones = [*self.queue, *(r for slot in self.slots for r in slot.batch)]
        return [r for r in open_ones if self.end(r, State.CLOSED, ClosedError(why))]

    def idle_slots(self) -> list[Slot]:
        """The slots in which nothing is computed."""
        return [self.slots[index] for index in self._idle]

    def replace(self, slot: Slot, now_ns: int = 0) -> Slot | None:
        """A new slot in the place of one whose engine hangs; None when too many hang already."""
        if slot.lost or self.stuck >= len(self.slots):
            return None
        slot.lost = True
        self.stuck += 1
        if self.cores is not None:
            self.cores.give(slot, now_ns)
        fresh = Slot(slot.place, slot.tally)
        self.slots[slot.place.index] = fresh
        return fresh

    def found_again(self, slot: Slot) -> None:
        """The engine of a lost slot let go after all."""
        self.stuck -= 1

    # --- inside ---

    def _waiting(self) -> int:
        """How many wait without a slot that is about to take them."""
        called = sum(slot.awake for slot in self.slots)
        if self.starving is not None:  # idle ones must wait for cores as well
            return self.queue.count - called
        return self.queue.count - len(self._idle) - called - (self.gathering is not None)

    def _tally(self, priority: int) -> PriorityTally:
        found = self.priorities.get(priority)
        if found is None:
            found = self.priorities[priority] = PriorityTally()
        return found

    def _refuse(self, request: Request, state: State) -> None:
        request.state = state
        self.ended[state] += 1

    def _ended(self, request: Request, state: State) -> None:
        if request.state is State.RUNNING:
            self.running -= 1
        self._open_rows -= request.rows
        request.state = state
        request.call.inputs = ()  # the caller may keep the request, but no longer its arrays
        self.ended[state] += 1

    def _note(self, slot: Slot, request: Request, now_ns: int) -> None:
        """Tell a caller when its request was computed; all of a batch share one record."""
        timing, run = request.call.timing, slot.run
        assert timing is not None
        if run is None:
            run = slot.run = Run(slot.started_ns, now_ns, slot.began_ns, slot.ran_ns)
            run.most = self.batching.max_rows if self.batching is not None else 0
        if request.error is None:
            run.rows += request.rows
        timing.arrived_ns, timing.run = request.arrived_ns, run

    def _unwanted(self, request: Request) -> None:
        for slot in self.slots:
            if request in slot.batch:
                others = (r for r in slot.batch if r is not request)
                if all(r.state is not State.RUNNING for r in others):
                    slot.stop.fire()

    def _has_cores(self, slot: Slot, now_ns: int) -> bool:
        return self.cores is None or self.cores.take(slot, now_ns, must=self.closing)

    def _take(self, slot: Slot, first: Request, now_ns: int) -> int | None:
        """Start a batch, if there are cores for it; returns when to ask again for them."""
        if self._has_cores(slot, now_ns):
            self._start(slot, self._taken(first), now_ns)
        elif self.starving is None:
            self.starving = slot
            return now_ns + _ASK_AGAIN_NS
        else:
            heapq.heappush(self._idle, slot.place.index)
        return None

    def _rest(self, slot: Slot, now_ns: int, was_starving: bool) -> None:
        """A slot has nothing to run now."""
        if self.cores is not None:
            self.cores.give(slot, now_ns)
            if was_starving:
                self.cores.forgo(now_ns)

    def _start(self, slot: Slot, batch: list[Request], now_ns: int) -> None:
        if slot.stop.fired:
            slot.stop = Stop()
        slot.batch = batch
        slot.started_ns = now_ns
        slot.began_ns = slot.ran_ns = 0
        slot.run = None
        if len(slot.place.lanes) > 1:
            others = 0 if self.cores is None else self.cores.others(now_ns)
            slot.lane = self._widths.choose(slot.place.lanes, self._runs() + others)
        if self.cores is not None:
            self.cores.widen(slot, now_ns)
        self.running += len(batch)
        for request in batch:
            request.state = State.RUNNING
        if self._line is None or self._line.enter(slot):
            self._begin(slot, now_ns)
        self._count_rows(batch[0].rows if len(batch) == 1 else sum(r.rows for r in batch))

    def _begin(self, slot: Slot, now_ns: int) -> None:
        """The engine works on what is in the slot."""
        slot.started_ns = now_ns
        if self._line is not None:
            slot.tally = next(self._turns)
        waits = slot.tally.waits
        for request in slot.batch:
            waits.add(now_ns - request.arrived_ns)
            if request.call.priority:
                self._tally(request.call.priority).waits.add(now_ns - request.arrived_ns)

    def _count_rows(self, rows: int) -> None:
        most = rows if self.batching is None else self.batching.max_rows
        while rows > most:  # a request with more rows than a batch may have is computed in parts
            self.batches[most] += 1
            rows -= most
        self.batches[rows] += 1

    def _runs(self) -> int:
        """Runs under way, this one included, and those to come of what waits."""
        waiting = self.queue.count
        if self.batching is not None:
            waiting = -(-waiting // self.batching.max_rows)
        return len(self.slots) - len(self._idle) + waiting

    def _taken(self, head: Request) -> list[Request]:
        batch, rows = [head], head.rows
        if self.batching is not None and head.key is not None:
            most = self._fitting[min(self._goal(), self._rows[head.key])]
            for number, request in enumerate(self.queue):
                if number == _SCANNED:
                    break
                if request is head or request.key != head.key:
                    continue
                if rows + request.rows > most:
                    break  # a smaller one behind it must not overtake
                batch.append(request)
                rows += request.rows
        for request in batch:
            self._leave(request)
        return batch

    def _leave(self, request: Request) -> None:
        self.queue.remove(request)
        if self.batching is not None and request.key is not None:
            self._rows[request.key] -= request.rows
            if self._rows[request.key] < self.batching.max_rows:
                self._full.pop(request.key, None)
            if not self._rows[request.key]:
                del self._rows[request.key]

    def _waits_until(self, head: Request, slot: Slot) -> int:
        """When the head of the queue has waited long enough for others to join it."""
        if self.batching is None or not self._may_gather(head):
            return 0
        if self._rows[head.key] >= self._goal():
            return 0
        part = _IN_PASSING if self._is_busy(slot) else _PATIENCE
        # from the oldest: a head that has overtaken others must not make them wait anew
        return self.queue.oldest_ns() + (self.batching.wait_ns or self.pace_ns // part)

    def _is_busy(self, slot: Slot) -> bool:
        """Whether the card of a slot computes for another one."""
        card = slot.place.card
        return bool(card) and any(s.batch and s.place.card == card for s in self.slots)

    def _goal(self) -> int:
        """How many rows a batch should have before it is worth starting."""
        assert self.batching is not None
        if self.batching.wait_ns:
            return self.batching.max_rows
        share = math.ceil(round(self._flight) / len(self.slots))
        return self._fitting[max(1, min(self.batching.max_rows, share))]

    def _may_gather(self, head: Request) -> bool:
        """Whether others may still join the head; when the queue is full, none can come."""
        joinable = head.key is not None and head.key not in self._full
        return joinable and not self.closing and self.queue.count < self.queue_size
