"""The scheduler as a state machine: whatever happens in whatever order, its promises hold.

The rules are what threads of a pool do under its lock, one after the other, in any order that the
pool's own rules allow; the invariants are the promises of scheduler.py and request.py.
"""

from __future__ import annotations

from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from support.fake_engine import FakeSession

from mindspore_lite.errors import ClosedError, QueueFullError, RequestTimeoutError
from mindspore_lite.serving.call import Call
from mindspore_lite.serving.layout import Layout
from mindspore_lite.serving.queue import AGEING_NS
from mindspore_lite.serving.request import Request, State
from mindspore_lite.serving.scheduler import (
    _IN_PASSING,
    _PATIENCE,
    Batching,
    Scheduler,
    Slot,
    WorkerPlace,
)
from mindspore_lite.serving.statistics import summary
from mindspore_lite.serving.thread_widths import WidthOption

SESSION = FakeSession()
PRIORITIES = st.sampled_from([0, 0, 0, 1, 5, -2])
ENDS = (State.DONE, State.FAILED, State.TIMED_OUT, State.CANCELLED, State.CLOSED, State.REJECTED)


def _half_priorities(count: int) -> int:
    return count * AGEING_NS // 2


class FakeCores:
    """Cores as the story says: there are some, or there are none."""

    def __init__(self) -> None:
        self.are_there = True

    def take(self, slot: Slot, now_ns: int, *, must: bool = False) -> bool:
        slot.cores = int(self.are_there or must)
        return bool(slot.cores)

    def give(self, slot: Slot, now_ns: int) -> None:
        slot.cores = 0

    def widen(self, slot: Slot, now_ns: int) -> None:
        assert slot.cores, "it runs without a core"

    def forgo(self, now_ns: int) -> None:
        pass

    def others(self, now_ns: int) -> int:
        return 1


class DeskMachine(RuleBasedStateMachine):
    """Threads that call a scheduler, played by hypothesis."""

    @initialize(
        workers=st.integers(1, 3),
        queue_size=st.integers(1, 8),
        max_rows=st.sampled_from([0, 1, 4, 4, 6]),
        wait_ns=st.sampled_from([0, 10, 40]),
        buckets=st.sampled_from([(), (), (1, 2, 4), (2, 6)]),
        cards=st.sampled_from([("",), ("",), ("a",), ("a", "b")]),
        ahead=st.integers(0, 2),
        shared=st.booleans(),
    )
    def build(
        self,
        workers: int,
        queue_size: int,
        max_rows: int,
        wait_ns: int,
        buckets: tuple[int, ...],
        cards: tuple[str, ...],
        ahead: int,
        shared: bool,
    ) -> None:
        batching = Batching(max_rows, wait_ns, buckets) if max_rows else None
        lanes = (WidthOption(workers, SESSION),)
        places = [WorkerPlace(at, lanes, card=cards[at % len(cards)]) for at in range(workers)]
        if batching is None:
            places += [WorkerPlace(workers + at, lanes, ahead=True) for at in range(ahead)]
        self.scheduler = Scheduler(places, queue_size, batching)
        self.cores = FakeCores() if shared else None
        self.scheduler.cores = self.cores  # type: ignore[assignment]
        self.layout = Layout(workers, 1, (1,), ((),) * workers, (-1,) * workers, 2, "the test")
        self.now_ns = 1000
        self.requests: list[Request] = []  # in the order in which they came
        self.ended: dict[Request, State] = {}
        self.theirs: set[Slot] = set()  # slots that callers compute in
        self.callbacks: set[Slot] = set()  # slots whose thread runs a callback
        self.lost: list[Slot] = []
        self.retried: set[Request] = set()  # members of batches that failed
        self.again: list[Request] = []  # the same, in the order in which they are to start
        self.due_ns = 0  # until when a slot gathers
        self.rows_run = self.runs = 0

    # --- what threads see ---

    def busy(self) -> list[Slot]:
        """Slots whose own threads compute."""
        elsewhere = self.theirs | self.callbacks
        return [s for s in [*self.scheduler.slots, *self.lost] if s.batch and s not in elsewhere]

    def called(self) -> list[Slot]:
        return [s for s in self.scheduler.slots if s.awake and s not in self.callbacks]

    def note_end(self, request: Request, state: State) -> None:
        assert request not in self.ended
        self.ended[request] = state

    def note_start(self, slot: Slot) -> None:
        assert not slot.stop.fired, "a fired Stop would end the new run, too"
        self.rows_run += sum(request.rows for request in slot.batch)
        self.runs += len(slot.batch)

    # --- callers ---

    @rule(
        direct=st.booleans(),
        key=st.sampled_from([None, "a", "b"]),
        rows=st.integers(0, 6),
        priority=PRIORITIES,
    )
    def admit(self, direct: bool, key: str | None, rows: int, priority: int) -> None:
        self.send(direct, key, rows, priority)

    @precondition(lambda self: self.scheduler.batching is not None)
    @rule(count=st.integers(2, 5), key=st.sampled_from(["a", "b"]), rows=st.integers(1, 2))
    def admit_many_of_one_kind(self, count: int, key: str, rows: int) -> None:
        for _ in range(count):
            self.send(False, key, rows)

    @rule(priorities=st.lists(PRIORITIES, min_size=2, max_size=5))
    def admit_many_of_other_priorities(self, priorities: list[int]) -> None:
        for priority in priorities:
            self.send(False, "a", 1, priority)

    def send(self, direct: bool, key: str | None, rows: int, priority: int = 0) -> None:
        if self.scheduler.batching is None:
            rows, key = 1, None
        request = Request(Call((), priority=priority), self.now_ns, rows=rows, key=key)
        self.requests.append(request)
        waiting = len(self.scheduler.queue)
        free = sum(not slot.batch for slot in self.scheduler.slots)
        try:
            slot = self.scheduler.admit(request, self.now_ns, direct=direct)
        except ClosedError:
            assert self.scheduler.closing
            self.note_end(request, State.CLOSED)
        except QueueFullError:
            if self.scheduler.starving is not None:  # nobody can take it
                free = len(self.called())
            assert waiting >= self.scheduler.queue_size + free, "there was room"
            self.note_end(request, State.REJECTED)
        else:
            assert not self.scheduler.closing
            if slot is not None:
                assert direct
                assert not waiting
                assert slot.batch == [request]
                self.theirs.add(slot)
                self.note_start(slot)
            else:
                self.wake()

    def wake(self) -> None:
        woken = self.scheduler.to_wake()
        if woken is not None:
            assert not self.scheduler.closing, "its thread may have ended"
            assert woken.awake
            assert woken not in self.theirs
            assert not woken.batch

    @precondition(lambda self: self.theirs)
    @rule(data=st.data(), fails=st.booleans())
    def a_caller_ends_his_own_run(self, data: st.DataObject, fails: bool) -> None:
        slot = data.draw(st.sampled_from(sorted(self.theirs, key=lambda s: s.place.index)))
        (request,) = slot.batch
        self.finish(slot, request, fails)
        waiting = bool(self.scheduler.queue)
        assert self.scheduler.leave(slot, self.now_ns) == waiting
        self.theirs.remove(slot)

    # --- the slots' own threads ---

    @precondition(lambda self: self.called())
    @rule(data=st.data())
    def a_called_thread_looks(self, data: st.DataObject) -> None:
        self.look(data.draw(st.sampled_from(self.called())))

    @precondition(lambda self: self.scheduler.gathering is not None)
    @rule(waits_on=st.booleans())
    def a_gathering_thread_looks_again(self, waits_on: bool) -> None:
        if waits_on:
            self.now_ns = max(self.now_ns, self.due_ns)
        assert self.scheduler.gathering is not None
        self.look(self.scheduler.gathering)

    @precondition(lambda self: self.cores is not None)
    @rule(are_there=st.booleans())
    def cores_come_and_go(self, are_there: bool) -> None:
        assert self.cores is not None
        self.cores.are_there = are_there

    @precondition(lambda self: self.scheduler.starving is not None)
    @rule()
    def a_starving_thread_looks_again(self) -> None:
        assert self.scheduler.starving is not None
        self.look(self.scheduler.starving)

    def look(self, slot: Slot) -> None:
        queue = list(self.scheduler.queue)
        head = queue[0] if queue else None
        waiting = self.waiting_rows()
        due_ns = self.scheduler.claim(slot, self.now_ns)
        if self.scheduler.starving is slot:
            assert due_ns is not None and head is not None and not self.scheduler.closing
            assert self.cores is not None and not self.cores.are_there
        elif due_ns is not None:
            assert self.scheduler.batching is not None
            assert self.now_ns < due_ns <= self.now_ns + self.longest_wait_ns()
            self.due_ns = due_ns
        elif not slot.batch:
            assert slot in self.scheduler.idle_slots()
            waits = self.scheduler.gathering or self.scheduler.starving
            assert head is None or waits is not None, "somebody is there for it"
        else:
            first = slot.batch[0]
            if first is not head:  # which waits for others, and a batch of another kind is full
                assert self.scheduler.batching is not None and head is not None
                assert self.now_ns < head.arrived_ns + self.longest_wait_ns()
                assert waiting[first.key] >= self.scheduler.batching.max_rows
            self.note_start(slot)
            if first.key is not None:
                alike = [q for q in queue if q.key == first.key]
                assert slot.batch == alike[: len(slot.batch)], "first come, first served"
        self.wake()

    def longest_wait_ns(self) -> int:
        assert self.scheduler.batching is not None
        part = _IN_PASSING if self.scheduler.slots[0].place.card else _PATIENCE
        return self.scheduler.batching.wait_ns or self.scheduler.pace_ns // part

    @precondition(lambda self: self.busy())
    @rule(data=st.data(), fails=st.booleans())
    def a_run_ends(self, data: st.DataObject, fails: bool) -> None:
        slot = data.draw(st.sampled_from(self.busy()))
        for request in slot.batch:
            self.finish(slot, request, fails)
        self.let_go(slot)

    @precondition(lambda self: any(len(s.batch) > 1 for s in self.busy()))
    @rule(data=st.data())
    def a_batch_fails_and_is_run_one_by_one(self, data: st.DataObject) -> None:
        slot = data.draw(st.sampled_from([s for s in self.busy() if len(s.batch) > 1]))
        wanted = [r for r in slot.batch if r.state is State.RUNNING]
        self.scheduler.put_back(slot)
        self.retried.update(wanted)
        self.again[:0] = wanted
        assert list(self.scheduler.queue)[: len(wanted)] == wanted
        self.let_go(slot)

    def finish(self, slot: Slot, request: Request, fails: bool) -> None:
        wanted = request.state is State.RUNNING
        error = RuntimeError() if fails else None
        assert self.scheduler.finish(slot, request, self.now_ns, None, error) == wanted
        if wanted:
            self.note_end(request, State.FAILED if fails else State.DONE)

    def let_go(self, slot: Slot) -> None:
        slot.batch = []
        if slot.lost:
            self.scheduler.found_again(slot)
            self.lost.remove(slot)
        else:
            slot.awake = True

    @precondition(lambda self: self.called())
    @rule(data=st.data(), fails=st.booleans())
    def a_callback_predicts(self, data: st.DataObject, fails: bool) -> None:
        slot = data.draw(st.sampled_from(self.called()))
        request = Request(Call((), priority=1), self.now_ns)
        self.requests.append(request)
        self.scheduler.admit_into(slot, request, self.now_ns)
        self.note_start(slot)
        self.callbacks.add(slot)

    @precondition(lambda self: self.callbacks)
    @rule(data=st.data(), fails=st.booleans())
    def a_callback_is_done(self, data: st.DataObject, fails: bool) -> None:
        slot = data.draw(st.sampled_from(sorted(self.callbacks, key=lambda s: s.place.index)))
        self.finish(slot, slot.batch[0], fails)
        slot.batch = []
        self.callbacks.remove(slot)

    # --- from outside ---

    @precondition(lambda self: self.requests)
    @rule(data=st.data(), state=st.sampled_from([State.TIMED_OUT, State.CANCELLED]))
    def end_from_outside(self, data: st.DataObject, state: State) -> None:
        request = data.draw(st.sampled_from(self.requests))
        error = RequestTimeoutError("late")
        is_open = request not in self.ended
        assert self.scheduler.end(request, state, error) == is_open
        if is_open:
            assert request.error is error
            self.note_end(request, state)

    @precondition(lambda self: any(s.stop.fired for s in self.busy()))
    @rule(data=st.data())
    def a_slot_whose_engine_hangs_is_replaced(self, data: st.DataObject) -> None:
        slot = data.draw(st.sampled_from([s for s in self.busy() if s.stop.fired]))
        fresh = self.scheduler.replace(slot)
        if len(self.lost) >= len(self.scheduler.slots) or slot in self.lost:
            assert fresh is None
            return
        assert fresh is not None
        fresh.awake = True
        self.lost.append(slot)

    @rule(really=st.integers(0, 9))
    def close(self, really: int) -> None:
        if not really:  # else most stories would be over before they began
            self.scheduler.close()

    @precondition(lambda self: self.scheduler.closing)
    @rule()
    def abort(self) -> None:
        still = [r for r in self.requests if r not in self.ended]
        found = self.scheduler.abort("closed")
        assert sorted(map(id, found)) == sorted(map(id, still))
        for request in found:
            assert isinstance(request.error, ClosedError)
            self.note_end(request, State.CLOSED)

    @rule(ns=st.integers(1, 20) | st.integers(1000, 9000) | st.integers(1, 4).map(_half_priorities))
    def time_passes(self, ns: int) -> None:
        self.now_ns += ns

    def teardown(self) -> None:
        """Whatever the story was, all who still wait have their turn."""
        if not hasattr(self, "scheduler"):
            return
        for _ in range(10 * len(self.requests) + 10):
            if self.scheduler.drained:
                break
            for slot in list(self.theirs):
                self.finish(slot, slot.batch[0], False)
                self.scheduler.leave(slot, self.now_ns)
                self.theirs.remove(slot)
            for slot in list(self.callbacks):
                self.finish(slot, slot.batch[0], False)
                slot.batch = []
                self.callbacks.remove(slot)
            for slot in self.busy():
                for request in slot.batch:
                    self.finish(slot, request, False)
                self.let_go(slot)
            for slot in self.called():
                self.look(slot)
            if self.scheduler.gathering is not None:
                self.now_ns = max(self.now_ns, self.due_ns)
                self.look(self.scheduler.gathering)
            if self.cores is not None:
                self.cores.are_there = True
            if self.scheduler.starving is not None:
                self.look(self.scheduler.starving)
        assert len(self.ended) == len(self.requests), "some wait for ever"
        assert self.scheduler.drained
        self.the_books_of_the_priorities_add_up()

    # --- what always holds ---

    @invariant()
    def who_waits_is_in_order(self) -> None:
        """Put back, then by what 100 ms of waiting and a priority are worth, then as they came."""
        self.again = [r for r in self.again if r.state is State.QUEUED]
        others = [r for r in self.requests if r.state is State.QUEUED and r not in self.again]
        others.sort(key=lambda r: (r.arrived_ns - r.call.priority * AGEING_NS, r.arrived_ns))
        assert list(self.scheduler.queue) == self.again + others
        if self.scheduler.queue:
            assert self.scheduler.queue.head() is (self.again + others)[0]
            waiting = [r for r in self.requests if r.state is State.QUEUED]
            assert self.scheduler.queue.oldest_ns() <= min(r.arrived_ns for r in others or waiting)

    @rule()
    def the_books_of_the_priorities_add_up(self) -> None:
        found = summary(self.scheduler, self.layout, 0)
        assert set(found.priorities) == {r.call.priority for r in self.requests}
        for priority, own in found.priorities.items():
            states = Counter(r.state for r in self.requests if r.call.priority == priority)
            assert own.sent == sum(states.values())
            assert (own.queued, own.done) == (states[State.QUEUED], states[State.DONE])
        waits = [own.queue_wait for own in found.priorities.values()]
        assert sum(wait.count for wait in waits) == found.queue_wait.count
        assert all(wait.max_ms <= found.queue_wait.max_ms for wait in waits)

    @invariant()
    def everything_sent_is_accounted_for(self) -> None:
        scheduler, states = self.scheduler, Counter(r.state for r in self.requests)
        assert scheduler.sent == len(self.requests)
        assert scheduler.sent == len(scheduler.queue) + scheduler.running + sum(
            scheduler.ended.values()
        )
        assert (len(scheduler.queue), scheduler.running) == (
            states[State.QUEUED],
            states[State.RUNNING],
        )
        assert all(scheduler.ended[state] == states[state] for state in ENDS)

    @invariant()
    def rows_under_way_and_lost_slots_are_known(self) -> None:
        still = [r for r in self.requests if r not in self.ended]
        assert self.scheduler._open_rows == sum(request.rows for request in still)
        assert self.scheduler.stuck == len(self.lost)

    @invariant()
    def a_request_ends_once(self) -> None:
        assert all(request.state is state for request, state in self.ended.items())
        still = [r for r in self.requests if r not in self.ended]
        assert all(r.state in (State.QUEUED, State.RUNNING) for r in still)
        assert all(r.call.inputs == () for r in self.ended)

    @invariant()
    def a_request_is_in_one_place(self) -> None:
        held = Counter(id(r) for s in [*self.scheduler.slots, *self.lost] for r in s.batch)
        for request in self.requests:
            assert (request in self.scheduler.queue) == (request.state is State.QUEUED)
            if request.state is State.QUEUED:
                assert not held[id(request)]
            elif request.state is State.RUNNING:
                assert held[id(request)] == 1

    @invariant()
    def a_slot_is_idle_or_waiting_or_called_or_busy(self) -> None:
        idle = self.scheduler.idle_slots()
        assert len(set(idle)) == len(idle)
        for slot in self.scheduler.slots:
            called = slot.awake and slot not in self.callbacks
            waits = self.scheduler.is_waiting(slot)
            assert [slot in idle, waits, called, bool(slot.batch)].count(True) == 1
            if self.cores is not None:
                assert bool(slot.batch) <= bool(slot.cores), "it runs without a core"
                assert not (slot.cores and (slot in idle or waits)), "it keeps a core for nothing"
            assert not slot.lost

    @invariant()
    def who_waits_is_not_forgotten(self) -> None:
        if self.scheduler.queue:
            idle = self.scheduler.idle_slots()
            slots = self.scheduler.slots
            looking = [s for s in slots if s.awake or self.scheduler.is_waiting(s)]
            assert looking or (
                len(idle) < len(self.scheduler.slots) if self.scheduler.closing else not idle
            )

    @invariant()
    def the_queue_is_bounded(self) -> None:
        came = [request for request in self.scheduler.queue if request not in self.retried]
        assert len(came) <= self.scheduler.queue_size + len(self.scheduler.slots)

    @invariant()
    def batches_are_of_one_kind_and_not_too_large(self) -> None:
        for slot in self.scheduler.slots:
            if len(slot.batch) > 1:
                assert self.scheduler.batching is not None
                assert sum(r.rows for r in slot.batch) <= self.scheduler.batching.max_rows
                assert len({r.key for r in slot.batch}) == 1
                assert slot.batch[0].key is not None

    @invariant()
    def an_engine_is_told_to_stop_when_nobody_wants_its_work(self) -> None:
        for slot in self.scheduler.slots:
            if slot.batch:
                assert slot.stop.fired == all(r.state is not State.RUNNING for r in slot.batch)

    @invariant()
    def what_was_run_is_counted(self) -> None:
        assert sum(rows * runs for rows, runs in self.scheduler.batches.items()) == self.rows_run
        most = self.scheduler.batching.max_rows if self.scheduler.batching else 1
        assert all(rows <= most for rows in self.scheduler.batches)
        line = self.scheduler._line
        waiting = 0 if line is None else len(line._waiting)
        assert sum(tally.waits.count for _, tally in self.scheduler.workers) == self.runs - waiting
        if line is not None:
            inside = sum(bool(s.batch) for s in [*self.scheduler.slots, *self.lost])
            assert waiting == max(0, inside - len(self.scheduler.workers))

    @invariant()
    def drained_means_that_nothing_is_left(self) -> None:
        nothing = not self.scheduler.queue and len(self.scheduler.idle_slots()) == len(
            self.scheduler.slots
        )
        assert self.scheduler.drained == nothing
        if nothing:
            assert not any(r.state is State.RUNNING for r in self.requests)

    @invariant()
    def waiting_rows_are_known(self) -> None:
        if self.scheduler.batching is not None:
            rows = self.waiting_rows()
            assert +self.scheduler._rows == +rows
            full = {key for key, count in rows.items() if count >= self.scheduler.batching.max_rows}
            assert set(self.scheduler._full) == full

    def waiting_rows(self) -> Counter[object]:
        rows: Counter[object] = Counter()
        for request in self.scheduler.queue:
            if request.key is not None:
                rows[request.key] += request.rows
        return rows


TestDeskMachine = DeskMachine.TestCase
TestDeskMachine.settings = settings(max_examples=200, stateful_step_count=50, deadline=None)
