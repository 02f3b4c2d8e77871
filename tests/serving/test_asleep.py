"""asleep.py: runs that wait for ever are told from those that compute, or would if they could."""

from __future__ import annotations

import threading

import pytest
from support.fake_engine import Bench, Gate, closing, wait_for

from mindspore_lite.serving import asleep, pool
from mindspore_lite.serving.asleep import ASLEEP_S, Run, Sleepers, Thread

OWN, ENGINE, OTHER = 10, 11, 12  # threads: the run's, an engine's, another of Python's
IDENT = 99
RUN = Run("run", IDENT)


class Machine:
    """Threads as the test says, and looks at them a second apart."""

    def __init__(self) -> None:
        self.threads = {OWN: Thread("S", 5), ENGINE: Thread("S", 7), OTHER: Thread("S", 0)}
        self.sleepers = Sleepers(lambda: self.threads, lambda: {IDENT: OWN, 98: OTHER})
        self.now_s = 1000.0

    def looks(self, count: int, *runs: Run) -> int:
        found = 0
        for _ in range(count):
            found = self.sleepers.look(runs, self.now_s)
            self.now_s += 1.0
        return found

    def works(self, number: int, ticks: int = 3) -> None:
        before = self.threads[number]
        self.threads[number] = before._replace(ticks=before.ticks + ticks)


LONG = round(ASLEEP_S) + 2


def test_a_run_that_sleeps_for_long_hangs() -> None:
    machine = Machine()
    assert machine.looks(round(ASLEEP_S), RUN) == 0
    assert machine.looks(2, RUN) == 1
    assert machine.looks(1) == 0
    assert machine.looks(1, RUN) == 0  # it is another one


@pytest.mark.parametrize("number", [OWN, ENGINE])
@pytest.mark.parametrize("state", ["R", "D"])
def test_one_that_would_run_if_it_could_does_not_hang(number: int, state: str) -> None:
    machine = Machine()
    machine.threads[number] = Thread(state, 0)
    assert machine.looks(LONG, RUN) == 0


@pytest.mark.parametrize(("number", "hangs"), [(OWN, 0), (ENGINE, 0), (OTHER, 1)])
def test_one_that_computes_between_looks_does_not_hang(number: int, hangs: int) -> None:
    machine = Machine()
    for _ in range(LONG):
        machine.looks(1, RUN)
        machine.works(number)
    assert machine.looks(1, RUN) == hangs


def test_a_few_looks_far_apart_are_not_enough() -> None:
    machine = Machine()
    machine.looks(1, RUN)
    machine.now_s += 1000
    assert machine.looks(1, RUN) == 0


def test_the_kernel_knows_this_thread() -> None:
    number = asleep.native_ids()[threading.get_ident()]
    assert number == threading.get_native_id()
    assert asleep.kernel_threads()[number].state == "R"


def test_a_pool_tells_of_a_run_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate()
    bench = Bench(gate)
    monkeypatch.setattr(bench.pool._sleepers, "_threads", quiet_engines)
    with closing(bench, gate):
        bench.submit()
        gate.entered()
        assert bench.pool.trouble() == ""

        def hangs() -> bool:
            bench.clock.advance(ASLEEP_S)
            return bench.pool.trouble() == "1 of 1 workers hang: they wait, and do nothing"

        wait_for(hangs)
        gate.open()
        wait_for(lambda: bench.pool.trouble() == "")


def quiet_engines() -> dict[int, Thread]:
    """Only Python's threads: those of libraries that other tests loaded are not asked."""
    ours = set(asleep.native_ids().values())
    return {number: one for number, one in asleep.kernel_threads().items() if number in ours}


def test_a_pool_tells_of_a_run_that_does_not_stop() -> None:
    gate = Gate(obeys=False)
    bench = Bench(gate, workers=2)
    with closing(bench, gate):
        bench.submit(timeout_s=0.1)
        gate.entered()
        bench.pass_time(0.2)
        assert bench.pool.trouble() == ""
        bench.pass_time(asleep.LATE_S)
        assert bench.pool.trouble() == "1 of 2 workers cannot end a run whose time is over"
        bench.pass_time(pool.GRACE_S)  # the worker goes on with another thread
        assert bench.pool.trouble() == ""


def test_a_run_has_as_long_to_stop_as_runs_usually_take() -> None:
    gate = Gate(obeys=False)
    bench = Bench(gate)
    with closing(bench, gate):
        usual = bench.submit()
        gate.entered()
        bench.clock.advance(1.5)
        gate.let(1)
        usual.wait()
        bench.submit(timeout_s=0.1)
        gate.entered()
        bench.pass_time(0.2)
        bench.pass_time(2.5)
        assert bench.pool.trouble() == ""
        bench.pass_time(1.0)
        assert "1 of 1" in bench.pool.trouble()
