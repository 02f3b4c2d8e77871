"""Callers in a crowd wait on one core, and are free again when they have their answers."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from support.fake_engine import Bench, Client, Gate, closing, rows

from mindspore_lite.serving import caller_core, pool, scheduler
from mindspore_lite.serving.call import Call

ALL = os.sched_getaffinity(0)
several = pytest.mark.skipif(len(ALL) < 2, reason="there is one core to wait on")


@pytest.fixture(autouse=True)
def own_affinity(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No core is drawn yet, and the test's thread is put back."""
    monkeypatch.setattr(caller_core, "_core", [])
    monkeypatch.setattr(caller_core, "_FEWEST", 2)
    yield
    os.sched_setaffinity(0, ALL)


@several
def test_a_caller_is_bound_until_it_leaves() -> None:
    allowed = caller_core.enter()
    assert allowed == ALL
    assert os.sched_getaffinity(0) == set(caller_core._core)
    caller_core.leave(allowed)
    assert os.sched_getaffinity(0) == ALL


@several
def test_all_callers_of_a_process_meet_on_the_same_core() -> None:
    found = []

    def call() -> None:
        caller_core.enter()
        found.append(os.sched_getaffinity(0))

    for _ in range(3):
        Client(call).ended()
    assert len({tuple(one) for one in found}) == 1
    assert os.sched_getaffinity(0) == ALL  # threads have affinities of their own


@several
def test_a_caller_that_may_not_run_there_stays_where_it_is() -> None:
    here, there, *_ = sorted(ALL)
    caller_core._core.append(there)
    os.sched_setaffinity(0, {here})
    assert caller_core.enter() is None
    assert os.sched_getaffinity(0) == {here}


@several
def test_a_core_that_was_taken_away_is_drawn_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise OSError("Invalid argument")

    with monkeypatch.context() as patch:
        patch.setattr(os, "sched_setaffinity", refused)
        assert caller_core.enter() is None
        caller_core.leave(ALL)  # no error either
    assert caller_core._core == []
    caller_core.leave(caller_core.enter())
    assert caller_core._core


def test_on_few_cores_nobody_is_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caller_core, "_FEWEST", len(ALL) + 1)
    assert caller_core.enter() is None
    assert os.sched_getaffinity(0) == ALL


def test_without_the_interpreters_lock_nobody_is_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caller_core, "_takes_turns", False)
    assert caller_core.enter() is None


@several
def test_a_crowd_waits_together_and_leaves_as_it_came(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler, "_CROWD", 2)
    bound: list[set[int]] = []
    real = caller_core.enter

    def enter() -> caller_core.Cores | None:
        found = real()
        bound.append(os.sched_getaffinity(0))
        return found

    monkeypatch.setattr(pool.caller_core, "enter", enter)
    gate = Gate()
    after: list[set[int]] = []
    with closing(Bench(gate, max_rows=8), gate) as bench:
        bench.pool._on_cards = True
        bench.submit()
        gate.entered()

        def call(value: float) -> np.ndarray:
            (found,) = bench.pool.run(Call(rows(1, value)))
            after.append(os.sched_getaffinity(0))
            return found

        clients = [Client(lambda value=value: call(value)) for value in (1.0, 2.0, 3.0)]
        bench.queued(3)
        gate.open()
        for client, value in zip(clients, (1.0, 2.0, 3.0), strict=True):
            np.testing.assert_array_equal(client.ended().result, rows(1, 2 * value)[0])
    assert bound == [set(caller_core._core)] * 3
    assert after == [ALL] * 3


@pytest.mark.parametrize("on_cards", [True, False])
def test_a_lone_caller_or_one_of_the_host_is_not_bound(
    on_cards: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool.caller_core, "enter", lambda: pytest.fail("it was bound"))
    monkeypatch.setattr(scheduler, "_CROWD", 2 if on_cards else 0)
    with closing(Bench(max_rows=8)) as bench:
        bench.pool._on_cards = on_cards
        bench.pool.run(Call(rows(), 60.0))  # with a deadline it waits, instead of computing itself


@pytest.mark.parametrize("callers", [1, 3, 4, 5, 9])
def test_everybody_in_a_batch_is_woken(callers: int) -> None:
    gate = Gate()
    with closing(Bench(gate, max_rows=16), gate) as bench:
        bench.submit()
        gate.entered()
        clients = [bench.predict(rows(1, float(at))) for at in range(callers)]
        bench.queued(callers)
        gate.open()
        for at, client in enumerate(clients):
            np.testing.assert_array_equal(client.ended().result[0], rows(1, 2.0 * at)[0])
        assert bench.statistics().batches[callers] >= 1


def test_an_interrupted_caller_wakes_the_next_of_its_batch() -> None:
    """Ctrl-C just when the answer is on its way: who comes after it must not wait for ever."""

    class Interrupted:
        """A lock whose wait is interrupted."""

        def acquire(self, timeout: float = -1) -> None:
            raise KeyboardInterrupt

    with closing(Bench()) as bench:
        first, second = (bench.submit() for _ in range(2))
        first.wait(), second.wait()
        waiting = threading.Lock()
        waiting.acquire()
        first.request.after, second.request.answered = second.request, waiting
        with pytest.raises(KeyboardInterrupt):
            bench.pool._wait(first.request, Interrupted(), None, False)  # type: ignore[arg-type]
        assert waiting.acquire(blocking=False)
        assert first.request.after is None
