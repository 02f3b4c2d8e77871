"""supervisor.py: a device is started, watched, restarted, and taken out if it fails too often."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from support.fake_engine import LIMIT_S, wait_for
from support.fake_workers import FakeProcess, FakeWorkers, place

from mindspore_lite.errors import (
    ClosedError,
    ModelFileError,
    ResourceError,
    WireError,
    WorkerDiedError,
)
from mindspore_lite.remote.devices import supervisor as module
from mindspore_lite.remote.devices.supervisor import State, Supervisor
from mindspore_lite.remote.wire.client import HANGS


class Watched(Supervisor):
    """A supervisor whose back-offs take no time, and are written down."""

    def __init__(self, workers: FakeWorkers, clock: Callable[[], float] = lambda: 0.0) -> None:
        self.rests: list[float | None] = []
        self.states: list[State] = []
        super().__init__(0, place(0), threading.Condition(), workers.start, clock)

    def _rest(self, limit_s: float | None) -> None:
        self.rests.append(limit_s)
        super()._rest(limit_s if limit_s is None else 0.0)

    def _set(self, state: State, **more: Any) -> None:
        super()._set(state, **more)
        self.states.append(state)

    def wait_for(self, state: State) -> None:
        wait_for(lambda: self.state is state)


@pytest.fixture
def workers() -> FakeWorkers:
    return FakeWorkers()


@pytest.fixture
def supervisor(workers: FakeWorkers) -> Iterator[Watched]:
    supervisor = Watched(workers)
    yield supervisor
    supervisor.stop()
    supervisor.join(LIMIT_S)
    if supervisor._thread.ident is not None:
        assert supervisor.state is State.CLOSED


def crash(process: FakeProcess) -> None:
    process.die("crashed")


def refuse(process: FakeProcess) -> None:
    raise ModelFileError("it is no model")


def ready(supervisor: Watched) -> module.Life:
    supervisor.start()
    supervisor.wait_for(State.READY)
    assert supervisor.life is not None
    return supervisor.life


def test_a_device_is_ready_when_its_model_is_built(
    supervisor: Watched, workers: FakeWorkers
) -> None:
    assert (supervisor.state, supervisor.life) == (State.STARTING, None)
    supervisor.start()
    supervisor.wait_for(State.READY)
    assert supervisor.life is not None
    assert (supervisor.life.process, supervisor.error, supervisor.restarts) == (
        workers.of(0),
        None,
        0,
    )


def test_a_process_that_dies_is_started_again(supervisor: Watched, workers: FakeWorkers) -> None:
    supervisor.start()
    supervisor.wait_for(State.READY)
    first = workers.of(0)
    first.die("segmentation fault")
    wait_for(lambda: len(workers.processes) == 2)
    supervisor.wait_for(State.READY)
    assert supervisor.states == [State.READY, State.DOWN, State.STARTING, State.READY]
    assert (supervisor.restarts, supervisor.rests) == (1, [0.1])
    assert supervisor.life is not None and supervisor.life.process is workers.of(0)
    assert first.closed
    assert supervisor.error is None


def test_why_a_device_is_not_ready_is_told_until_it_is(
    supervisor: Watched, workers: FakeWorkers
) -> None:
    supervisor.start()
    supervisor.wait_for(State.READY)
    goes_on = threading.Event()
    workers.builds.append(lambda process: assert_set(goes_on))
    workers.of(0).die("segmentation fault")
    wait_for(lambda: len(workers.processes) == 2)
    assert supervisor.state is State.STARTING
    assert str(supervisor.error) == "device 0: segmentation fault"
    goes_on.set()
    supervisor.wait_for(State.READY)
    assert supervisor.error is None


def assert_set(event: threading.Event) -> None:
    assert event.wait(LIMIT_S)


@pytest.mark.parametrize("fail", [crash, refuse])
def test_a_first_build_that_fails_is_not_tried_again(
    supervisor: Watched, workers: FakeWorkers, fail: Callable[[FakeProcess], None]
) -> None:
    """Else it might succeed before anybody has seen the error."""
    workers.builds.append(fail)
    supervisor.start()
    supervisor.wait_for(State.OUT)
    assert (supervisor.rests, supervisor.restarts, len(workers.processes)) == ([None], 0, 1)
    assert not workers.of(0).alive and workers.of(0).closed


def test_a_device_that_keeps_trying_is_out_only_for_a_while(
    supervisor: Watched, workers: FakeWorkers
) -> None:
    supervisor.place = replace(supervisor.place, keeps_trying=True)
    ready(supervisor)
    for turn in range(module.MOST_DEATHS + 1):
        crash(workers.of(0))
        wait_for(lambda turn=turn: supervisor.restarts == turn + 1)
        supervisor.wait_for(State.READY)
    assert State.OUT in supervisor.states
    assert supervisor.rests[-2:] == [module.LONGEST_BACK_OFF_S] * 2


@pytest.mark.parametrize("fail", [crash, refuse])
def test_a_device_that_does_not_get_ready_again_is_taken_out_after_longer_and_longer_waits(
    supervisor: Watched, workers: FakeWorkers, fail: Callable[[FakeProcess], None]
) -> None:
    ready(supervisor)
    workers.builds.extend([fail] * 10)
    workers.of(0).die()
    supervisor.wait_for(State.OUT)
    assert supervisor.rests == [0.1, 0.2, 0.4, 0.8, None]
    assert (len(workers.processes), supervisor.restarts) == (5, 4)
    assert not any(process.alive for process in workers.processes)
    assert all(process.closed for process in workers.processes)


def test_time_spent_on_building_does_not_make_failures_rare(workers: FakeWorkers) -> None:
    """Builds that take minutes, and fail every time, end as well."""
    now = [0.0]

    def slowly(process: FakeProcess) -> None:
        now[0] += 1000.0
        crash(process)

    supervisor = Watched(workers, lambda: now[0])
    ready(supervisor)
    workers.builds.extend([slowly] * 10)
    workers.of(0).die()
    supervisor.wait_for(State.OUT)
    assert len(workers.processes) == 5
    supervisor.stop()
    supervisor.join(LIMIT_S)


def test_deaths_that_are_far_apart_do_not_take_a_device_out(workers: FakeWorkers) -> None:
    now = [0.0]
    supervisor = Watched(workers, lambda: now[0])
    supervisor.start()
    for count in range(12):
        wait_for(
            lambda count=count: supervisor.restarts == count and supervisor.state is State.READY
        )
        now[0] += module.WINDOW_S + 1
        workers.of(0).die()
    wait_for(lambda: supervisor.restarts == 12 and supervisor.state is State.READY)
    assert supervisor.rests == [0.1] * 12
    supervisor.stop()
    supervisor.join(LIMIT_S)


def test_a_machine_without_room_is_no_fault_of_the_device(
    supervisor: Watched, workers: FakeWorkers
) -> None:
    supervisor.start()
    supervisor.wait_for(State.READY)
    workers.starts.extend(ResourceError("too many open files") for _ in range(30))
    workers.of(0).die()
    wait_for(lambda: supervisor.restarts == 31 and supervisor.state is State.READY)
    assert supervisor.rests[:9] == [0.1, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0]
    assert set(supervisor.rests[9:]) == {10.0}


def test_what_is_not_expected_of_a_build_is_an_error_of_the_device_too(
    supervisor: Watched, workers: FakeWorkers
) -> None:
    def fail(process: FakeProcess) -> None:
        raise ValueError("there is no setting 'x'")

    workers.builds.append(fail)
    supervisor.start()
    supervisor.wait_for(State.OUT)
    assert type(supervisor.error) is ValueError
    assert str(supervisor.error) == "device 0: there is no setting 'x'"


def test_the_error_of_a_build_names_the_device(supervisor: Watched, workers: FakeWorkers) -> None:
    workers.builds.append(refuse)
    supervisor.start()
    supervisor.wait_for(State.OUT)
    assert type(supervisor.error) is ModelFileError
    assert str(supervisor.error) == "device 0: it is no model"


# --- hung workers ---------------------------------------------------------------------------------


def test_a_request_that_nobody_wants_is_called_off(
    supervisor: Watched, workers: FakeWorkers
) -> None:
    supervisor.suspect(ready(supervisor), 7)
    wait_for(lambda: workers.of(0).cancelled == [7])
    assert (supervisor.state, len(workers.processes)) == (State.READY, 1)


def test_a_worker_that_does_not_answer_is_ended_and_replaced(
    supervisor: Watched, workers: FakeWorkers
) -> None:
    life, hung = ready(supervisor), workers.of(0)
    hung.silent = True
    supervisor.suspect(life, 7)
    wait_for(lambda: len(workers.processes) == 2)
    supervisor.wait_for(State.READY)
    assert hung.why == "killed, it did not answer (the worker did not answer)"
    assert supervisor.restarts == 1


def test_nothing_is_sent_to_a_worker_that_cannot_even_be_killed(
    supervisor: Watched, workers: FakeWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    life, hung = ready(supervisor), workers.of(0)
    hung.silent = True
    monkeypatch.setattr(hung, "kill", lambda why: None)
    supervisor.suspect(life, 7)
    supervisor.wait_for(State.DOWN)
    assert supervisor.life is None
    assert "is being ended: it did not answer" in str(supervisor.error)
    hung.die()


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ResourceError("no socket"), True),
        (WireError("refused"), True),
        (ClosedError("there is no model 1"), False),  # it went when the weights changed
    ],
)
def test_a_worker_that_cannot_be_asked_is_not_blamed_for_it(
    supervisor: Watched,
    workers: FakeWorkers,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
    said: bool,
) -> None:
    life, asked = ready(supervisor), threading.Semaphore(0)

    def fail() -> None:
        asked.release()
        raise error

    monkeypatch.setattr(workers.of(0), "asked", fail)
    supervisor.suspect(life, 7)
    supervisor._events.put(lambda: supervisor._end_if_stuck(life))
    assert asked.acquire(timeout=LIMIT_S) and asked.acquire(timeout=LIMIT_S)
    done = threading.Event()
    supervisor._events.put(done.set)
    assert done.wait(LIMIT_S)
    assert (supervisor.state, workers.of(0).alive) == (State.READY, True)
    assert ("cannot be asked" in caplog.text) == said


@pytest.mark.parametrize("stuck", [0, 1])
def test_a_run_that_does_not_stop_ends_its_worker_in_the_end(
    supervisor: Watched, workers: FakeWorkers, monkeypatch: pytest.MonkeyPatch, stuck: int
) -> None:
    """A run may need a while to notice that it shall stop: only a stuck one costs the process."""
    life, process = ready(supervisor), workers.of(0)
    looks: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
    monkeypatch.setattr(
        module, "WATCHDOG", SimpleNamespace(watch=lambda due_s, act: looks.put(act))
    )
    process.cancel_answer = HANGS
    process.model.stuck = stuck
    supervisor.suspect(life, 7)
    look = looks.get(timeout=LIMIT_S)
    assert (supervisor.state, process.alive) == (State.READY, True)
    look()
    done = threading.Event()
    supervisor._events.put(done.set)
    assert done.wait(LIMIT_S) if not stuck else True
    if stuck:
        wait_for(lambda: len(workers.processes) == 2)
        assert process.why == "killed, a run in it could not be stopped"
    else:
        assert (supervisor.state, process.alive) == (State.READY, True)


def test_what_was_said_of_an_earlier_process_does_not_hurt_its_successor(
    supervisor: Watched, workers: FakeWorkers
) -> None:
    old = ready(supervisor)
    workers.of(0).die()
    wait_for(lambda: supervisor.restarts == 1 and supervisor.state is State.READY)
    workers.of(0).silent = True
    supervisor.suspect(old, 7)
    supervisor._events.put(lambda: supervisor._end_if_stuck(old))
    done = threading.Event()
    supervisor._events.put(done.set)
    assert done.wait(LIMIT_S)
    assert (supervisor.state, workers.of(0).alive) == (State.READY, True)


def test_a_fault_in_looking_after_a_device_does_not_stop_that(
    supervisor: Watched, workers: FakeWorkers, caplog: pytest.LogCaptureFixture
) -> None:
    ready(supervisor)

    def fail() -> None:
        raise KeyError("a bug")

    with caplog.at_level(logging.ERROR):
        supervisor._events.put(fail)
        workers.of(0).die()
        wait_for(lambda: supervisor.restarts == 1 and supervisor.state is State.READY)
    assert "device 0 could not be looked after" in caplog.text


# --- the end --------------------------------------------------------------------------------------


def test_a_ready_process_is_asked_to_end(supervisor: Watched, workers: FakeWorkers) -> None:
    ready(supervisor)
    supervisor.stop()
    supervisor.join(LIMIT_S)
    assert (supervisor.state, workers.of(0).why) == (State.CLOSED, "stopped")
    assert (supervisor.life, supervisor.error) == (None, None)


def test_a_process_that_is_being_built_is_killed(supervisor: Watched, workers: FakeWorkers) -> None:
    building = threading.Event()

    def wait(process: FakeProcess) -> None:
        building.set()
        wait_for(lambda: not process.alive)

    workers.builds.append(wait)
    supervisor.start()
    assert building.wait(LIMIT_S)
    supervisor.stop()
    supervisor.join(LIMIT_S)
    assert (supervisor.state, workers.of(0).why) == (State.CLOSED, "killed, the runner was closed")


def test_a_process_that_starts_just_when_its_post_ends_is_killed(workers: FakeWorkers) -> None:
    def start(*given: Any) -> Any:
        supervisor.stop()  # which cannot see the process yet
        return workers.start(*given)

    supervisor = Supervisor(0, place(0), threading.Condition(), start)
    supervisor.start()
    supervisor.join(LIMIT_S)
    assert (supervisor.state, workers.of(0).why) == (State.CLOSED, "killed, the runner was closed")


def test_a_post_that_waits_to_start_again_ends_at_once(workers: FakeWorkers) -> None:
    supervisor = Supervisor(0, place(0), threading.Condition(), workers.start)
    resting = threading.Event()

    def rest(limit_s: float | None) -> None:
        resting.set()
        Supervisor._rest(supervisor, LIMIT_S * 100)

    supervisor._rest = rest  # type: ignore[method-assign]
    supervisor.start()
    wait_for(lambda: supervisor.state is State.READY)
    workers.of(0).die()
    assert resting.wait(LIMIT_S)
    supervisor.suspect(None, 1)  # type: ignore[arg-type] # events of a life that is over do not matter
    supervisor.stop()
    supervisor.join(LIMIT_S)
    assert (supervisor.state, supervisor.restarts) == (State.CLOSED, 0)


def test_a_device_that_was_taken_out_can_be_closed(
    supervisor: Watched, workers: FakeWorkers
) -> None:
    workers.builds.append(crash)
    supervisor.start()
    supervisor.wait_for(State.OUT)
    supervisor.stop()
    supervisor.join(LIMIT_S)
    assert supervisor.state is State.CLOSED


def test_a_life_of_its_own_tells_why_it_ended(supervisor: Watched, workers: FakeWorkers) -> None:
    """The runner tries a model out directly; a death then must not read as a broken pipe."""
    life = ready(supervisor)

    def fail(arrays: object, timeout_s: float | None) -> None:
        workers.of(0).die("bus error")
        raise WorkerDiedError("the worker is gone")

    workers.of(0).model.predict = fail  # type: ignore[attr-defined]
    with pytest.raises(WorkerDiedError, match="device 0: bus error"):
        life.predict([])
