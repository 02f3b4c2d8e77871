"""core_share.py: pools that share cores, with their threads, deadlines and ends."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from support.fake_engine import Bench, Client, FakeSession, Gate, closing, rows, wait_for

from mindspore_lite.errors import ClosedError, RequestTimeoutError
from mindspore_lite.serving import arbiter, core_share
from mindspore_lite.serving.arbiter import HISTORY_NS, Arbiter
from mindspore_lite.serving.call import Call

CORES = 2


@pytest.fixture(autouse=True)
def cores(monkeypatch: pytest.MonkeyPatch) -> Arbiter:
    """Two cores, whatever other tests have left."""
    found = Arbiter(CORES)
    monkeypatch.setattr(core_share, "arbiter", lambda count: found)
    return found


class Two:
    """A pool that is flooded, and another one; what they compute waits at gates."""

    def __init__(self, stack: ExitStack, *, quick: bool = False, bound: bool = False) -> None:
        self.gates = Gate(), Gate()
        more = {"cores": (0,)} if bound else {}
        self.other = Bench(self.gates[1], workers=2, share=1.0, quick=quick)
        clock = self.other.clock
        self.flooded = Bench(self.gates[0], workers=2, share=1.0, clock=clock, **more)  # type: ignore[arg-type]
        for bench, gate in zip((self.flooded, self.other), self.gates, strict=True):
            stack.enter_context(closing(bench, gate))

    def flood(self, count: int = 6) -> None:
        """Both workers compute, and have for long; the rest waits."""
        for _ in range(count):
            self.flooded.submit()
        self.gates[0].entered(CORES)
        self.other.clock.advance(1.0)

    def running(self, bench: Bench) -> int:
        return int(bench.pool.statistics().running)


@pytest.fixture
def two() -> Iterator[Two]:
    with ExitStack() as stack:
        yield Two(stack)


def test_a_pool_without_a_share_asks_nobody(cores: Arbiter) -> None:
    gate = Gate()
    with closing(Bench(gate, workers=5), gate) as bench:
        for _ in range(5):
            bench.submit()
        gate.entered(5)
        assert not cores._recent


def test_the_only_pool_counts_nothing(cores: Arbiter) -> None:
    gate = Gate()
    with closing(Bench(gate, workers=5, share=1.0), gate) as bench:
        for _ in range(5):
            bench.submit()
        gate.entered(5)
        assert not cores._recent and not cores.is_shared
        with closing(Bench(share=1.0)) as other:  # of runs under way nothing is known
            assert cores.is_shared
            other.submit().wait()
            gate.let(5)
            wait_for(lambda: bench.pool.statistics().done == 5)
            bench.submit()
            gate.entered()
            assert sum(party.running for party in cores._recent) == 1
        gate.open()
        wait_for(lambda: bench.pool.statistics().done == 6)
        assert not cores.is_shared


@pytest.mark.parametrize("way", ["submit", "predict"])
def test_a_request_need_not_wait_for_a_flooded_pool(two: Two, way: str) -> None:
    two.flood()
    (two.other.submit if way == "submit" else two.other.predict)()
    two.gates[1].entered()
    two.gates[0].let(2)  # the runs of the flooded one end, and one of its workers waits now
    two.gates[0].entered()
    wait_for(lambda: two.flooded.pool._scheduler.starving is not None)
    assert two.running(two.flooded) == 1
    two.gates[1].let(1)
    wait_for(lambda: two.running(two.other) == 0)
    assert two.gates[0].nobody_entered()  # a core is kept free
    two.other.clock.advance(HISTORY_NS / 1e9 + 0.1)
    two.gates[0].let(1)  # the next run that ends brings the core back
    two.gates[0].entered(2)
    assert two.running(two.flooded) == 2


def starved(two: Two) -> None:
    """The flooded pool has one core, and its other worker waits for one."""
    two.flood()
    two.other.submit()
    two.gates[1].entered()
    two.gates[0].let(1)
    wait_for(lambda: two.flooded.pool._scheduler.starving is not None)


def test_who_waits_for_a_core_can_be_cancelled_and_has_its_deadline(two: Two) -> None:
    starved(two)
    late = two.flooded.submit(timeout_s=0.5)
    cancelled = two.flooded.submit()
    assert two.flooded.pool.cancel(cancelled.request)
    two.flooded.pass_time(1.0)
    with pytest.raises(RequestTimeoutError, match="still waited in the queue"):
        late.wait()
    found = two.flooded.statistics()
    assert (found.timed_out, found.cancelled) == (1, 1)


def test_a_pool_that_closes_computes_what_it_took(two: Two) -> None:
    starved(two)
    closed = Client(lambda: two.flooded.pool.close(None))
    two.gates[0].open()
    closed.ended()
    assert two.flooded.statistics().done == 6
    assert two.running(two.other) == 1


def test_a_pool_that_is_closed_ends_what_waits_for_cores(two: Two) -> None:
    starved(two)
    waiting = two.flooded.submit()
    closed = Client(lambda: two.flooded.pool.close(0.5))
    two.flooded.watched(1)
    two.flooded.pass_time(1.0)
    with pytest.raises(ClosedError):
        waiting.wait()
    two.gates[0].open()
    closed.ended()


def test_a_pool_that_is_idle_gives_its_cores_to_others(two: Two) -> None:
    starved(two)
    two.gates[0].let(1)  # of the flooded one only what must wait is left
    two.gates[1].open()
    wait_for(lambda: two.running(two.other) == 0)
    two.gates[0].open()
    wait_for(lambda: two.flooded.statistics().done == 6)


def test_a_core_on_offer_that_nobody_wants_any_more_goes_on(two: Two, cores: Arbiter) -> None:
    starved(two)
    request = next(iter(two.flooded.pool._scheduler.queue))
    for waiting in [request, *two.flooded.pool._scheduler.queue]:
        two.flooded.pool.cancel(waiting)
    two.gates[1].open()
    two.gates[0].open()
    wait_for(lambda: two.flooded.pool._scheduler.starving is None)
    wait_for(lambda: two.flooded.pool._scheduler.drained)
    assert all(party.running == 0 for party in cores._recent)


def test_a_callback_may_compute_without_a_core(two: Two) -> None:
    starved(two)
    found = []

    def deliver(request: object) -> None:
        found.append(two.other.pool.run(Call(rows())))

    two.other.pool.submit(Call(rows()), deliver)
    two.gates[1].open()
    wait_for(lambda: bool(found))


def test_short_runs_queue_where_their_pool_had_more_than_its_share() -> None:
    with ExitStack() as stack:
        two = Two(stack, quick=True)
        two.gates[1].open()
        two.other.pool.run(Call(rows()))
        assert two.other.pool._quick is not None
        assert two.other.pool._quick.takes(rows())
        two.flooded.submit()
        two.gates[0].entered()
        cores = two.other.pool._cores
        assert cores is not None
        cores.used(10**9, two.other.clock.ns())
        assert not two.other.pool._quick.takes(rows())
        two.other.pool.run(Call(rows()))
        assert two.other.statistics().done == 2


def test_bound_workers_ask_as_well() -> None:
    with ExitStack() as stack:
        two = Two(stack, bound=True)
        starved(two)
        assert two.running(two.flooded) == 1


def test_a_run_next_to_others_is_narrow() -> None:
    gate = Gate()
    wide, narrow = FakeSession(gate), FakeSession(gate)
    with ExitStack() as stack:
        other = stack.enter_context(closing(Bench(gate, share=1.0), gate))
        sessions = [(1, wide), (2, narrow)]
        bench = Bench(workers=2, sessions=sessions, share=1.0, widths=(2, 1))
        stack.enter_context(closing(bench, gate))
        other.submit()
        gate.entered()
        bench.submit()
        gate.entered()
        assert (len(wide.rows), len(narrow.rows)) == (0, 1)


def test_a_hung_run_that_was_replaced_holds_no_core(cores: Arbiter) -> None:
    gate = Gate(obeys=False)
    with closing(Bench(share=1.0)), closing(Bench(gate, share=1.0), gate) as bench:
        bench.submit(timeout_s=0.1)
        gate.entered()
        assert sum(party.running for party in cores._recent) == 1
        bench.pass_time(0.2)
        bench.pass_time(10.0)
        wait_for(lambda: sum(party.running for party in cores._recent) == 0)


def test_a_pool_that_is_gone_is_not_kept() -> None:
    bench = Bench(share=1.0)
    bench.submit().wait()
    pool = weakref.ref(bench.pool)
    bench.pool.close(None)
    del bench
    gc.collect()
    assert pool() is None


def test_there_is_one_arbiter_in_a_process() -> None:
    assert arbiter.arbiter(2) is arbiter.arbiter(3)


def test_two_flooded_pools_get_on_under_load() -> None:
    """Real threads: nothing is lost, whoever gets the cores."""
    with ExitStack() as stack:
        benches = [Bench(workers=2, share=share) for share in (1.0, 2.0, 0.5)]
        for bench in benches:
            stack.enter_context(closing(bench))
        begun = threading.Barrier(6)

        def load(bench: Bench) -> None:
            begun.wait()
            for number in range(200):
                if number % 2:
                    bench.pool.run(Call(rows()))
                else:
                    answer = bench.submit()
                    answer.wait()

        clients = [Client(lambda bench=bench: load(bench)) for bench in benches for _ in range(2)]
        for client in clients:
            assert client.ended().error is None
        assert [bench.statistics().done for bench in benches] == [400] * 3
