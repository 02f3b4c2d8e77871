"""dispatcher.py: devices die, hang and cannot be had, and requests end all the same."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from support.fake_engine import LIMIT_S, growing, wait_for
from support.fake_workers import (
    FakeWorkers,
    assert_set,
    began,
    begun,
    each,
    out,
    run,
    wait_for_state,
)

from mindspore_lite.errors import (
    CancelledError,
    ClosedError,
    EngineError,
    RequestTimeoutError,
    ResourceError,
    WorkerDiedError,
)
from mindspore_lite.remote.devices import dispatcher as crew_module
from mindspore_lite.remote.devices.dispatcher import Dispatcher
from mindspore_lite.remote.devices.supervisor import ANSWER_S, State, Supervisor
from mindspore_lite.remote.wire.client import LATE_S

Make = Callable[..., Dispatcher]


# --- deaths ---------------------------------------------------------------------------------------


def test_a_death_fails_only_its_own_part(make: Make, workers: FakeWorkers) -> None:
    dispatcher = make(2)
    workers.holds = True
    result = begun(lambda: each(dispatcher, 1, 2))
    workers.call(1)
    workers.of(1).die("signal 9")
    workers.call(0).answer()
    first, second = result()
    assert first == 2
    assert isinstance(second, WorkerDiedError)
    assert (str(second), second.device) == ("device 1: signal 9", 1)
    wait_for_state(dispatcher, 1, State.READY)
    workers.holds = False
    assert run(dispatcher, 1, 2) == [2, 4]


def test_a_lost_part_is_tried_once_on_another_device(make: Make, workers: FakeWorkers) -> None:
    dispatcher = make(3, retries=1)
    workers.holds = True
    result = begun(lambda: run(dispatcher, 1, 2))
    workers.call(0).answer()
    workers.call(1)
    workers.of(1).die("signal 9")
    retried = workers.call(2)
    assert retried.arrays[0][0, 0] == 2
    retried.answer()
    assert result() == [2, 4]
    assert dispatcher.statistics().retried == 1


def test_a_lost_part_that_stays_waits_for_its_device(make: Make, workers: FakeWorkers) -> None:
    dispatcher = make(1, retries=1, stays=True)
    assert dispatcher.is_up
    workers.holds = True
    result = begun(lambda: run(dispatcher, 1))
    workers.call(0)
    workers.of(0).die("signal 9")
    wait_for(lambda: dispatcher.statistics().retried == 1)
    wait_for(lambda: dispatcher.statistics().devices[0].restarts == 1)
    workers.call(0).answer()
    assert result() == [2]
    assert dispatcher.is_up


def test_a_part_that_stays_and_is_lost_again_is_given_up(make: Make, workers: FakeWorkers) -> None:
    dispatcher = make(1, retries=1, stays=True)
    workers.holds = True
    result = begun(lambda: run(dispatcher, 1))
    for turn in range(2):
        wait_for_state(dispatcher, 0, State.READY)
        wait_for(lambda turn=turn: dispatcher.statistics().devices[0].restarts == turn)
        workers.call(0)
        workers.of(0).die(f"signal {turn}")
    with pytest.raises(WorkerDiedError, match="device 0: signal 1"):
        result()


def test_a_part_that_is_lost_again_is_given_up(make: Make, workers: FakeWorkers) -> None:
    dispatcher = make(2, retries=1)
    workers.holds = True
    result = begun(lambda: run(dispatcher, 1))
    workers.call(0)
    workers.of(0).die("signal 9")
    workers.call(1)
    workers.of(1).die("signal 11")
    with pytest.raises(WorkerDiedError, match="device 1: signal 11"):
        result()
    assert dispatcher.statistics().retried == 1


def test_without_another_device_a_death_is_told_as_it_was(make: Make, workers: FakeWorkers) -> None:
    dispatcher = make(2, retries=1)
    out(dispatcher, workers, 1)
    workers.holds = True
    result = begun(lambda: run(dispatcher, 1))
    workers.call(0)
    workers.of(0).die("signal 9")
    with pytest.raises(WorkerDiedError, match=r"^device 0: signal 9$"):
        result()
    assert dispatcher.statistics().retried == 0


def test_only_a_death_is_worth_another_try(make: Make, workers: FakeWorkers) -> None:
    dispatcher = make(2, retries=1)
    workers.holds = True
    result = begun(lambda: run(dispatcher, 1))
    workers.call(0).answer(EngineError("division by zero"))
    with pytest.raises(EngineError, match="division by zero"):
        result()
    assert workers.of(1).model.began == []


def test_a_worker_that_died_before_it_got_the_part_costs_nobody_anything(
    make: Make, workers: FakeWorkers
) -> None:
    dispatcher = make(2)
    first = workers.of(0)
    first.model.before_start = lambda: first.die("killed while idle")
    assert run(dispatcher, 1, 2) == [2, 4]
    assert dispatcher.statistics().failed == 0


@pytest.mark.parametrize("error", [ClosedError, CancelledError])
def test_a_worker_that_says_it_ends_has_died_for_its_callers(
    error: type[Exception], make: Make, workers: FakeWorkers
) -> None:
    """Nobody has closed the runner or cancelled the request."""
    dispatcher = make(2)
    workers.holds = True
    result = begun(lambda: each(dispatcher, 1, 2))
    workers.call(0).answer(error("the worker is ending"))
    workers.of(0).die("signal 15")
    workers.call(1).answer()
    first, second = result()
    assert (type(first), str(first), second) == (WorkerDiedError, "device 0: signal 15", 4)


@pytest.mark.parametrize("error", [ClosedError, CancelledError])
def test_what_a_worker_says_at_the_end_of_the_runner_is_that_it_was_closed(
    error: type[Exception], make: Make, workers: FakeWorkers
) -> None:
    dispatcher = make(1)
    workers.holds = True
    result = begun(lambda: run(dispatcher, 1))
    call = workers.call(0)
    dispatcher._ending = True
    call.answer(error("the client has left"))
    with pytest.raises(ClosedError, match="the runner was closed, and the request did not end"):
        result()


def test_a_worker_that_takes_no_more_requests_costs_nobody_anything(
    make: Make, workers: FakeWorkers
) -> None:
    dispatcher = make(2)
    first = workers.of(0)

    def refuse() -> None:
        first.die("signal 15")
        raise ClosedError("the worker is ending; it takes no new requests")

    first.model.before_start = refuse
    assert run(dispatcher, 1, 2) == [2, 4]
    assert dispatcher.statistics().failed == 0


def test_a_connection_that_broke_ends_the_process_that_goes_on_regardless(
    make: Make, workers: FakeWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crew_module, "REAP_S", 0.01)
    dispatcher = make(1)
    workers.holds = True
    result = begun(lambda: run(dispatcher, 1))
    workers.call(0).break_off()
    with pytest.raises(WorkerDiedError, match="killed, its connection broke"):
        result()


def test_a_request_waits_for_devices_that_are_being_started_again(
    make: Make, workers: FakeWorkers
) -> None:
    dispatcher = make(2)
    goes_on = threading.Event()
    workers.builds.extend([lambda process: assert_set(goes_on)] * 2)
    for device in range(2):
        workers.of(device).die()
    wait_for(lambda: len(workers.processes) == 4)
    assert dispatcher.usable() == 2
    result = begun(lambda: run(dispatcher, 1, 2))
    wait_for(lambda: dispatcher.statistics().running == 1)
    goes_on.set()
    assert result() == [2, 4]


def test_parts_go_to_the_devices_that_are_there(make: Make, workers: FakeWorkers) -> None:
    dispatcher = make(2)
    goes_on = threading.Event()
    workers.builds.append(lambda process: assert_set(goes_on))
    workers.of(0).die()
    wait_for(lambda: len(workers.processes) == 3)
    assert dispatcher.usable() == 1
    assert run(dispatcher, 1, 2) == [2, 4]
    assert len(workers.of(1).model.began) == 2
    goes_on.set()


def test_a_device_that_was_taken_out_gets_nothing_and_is_reported(
    make: Make, workers: FakeWorkers
) -> None:
    dispatcher = make(2)
    out(dispatcher, workers, 0)
    assert dispatcher.usable() == 1
    assert run(dispatcher, 1, 2, 3) == [2, 4, 6]
    taken_out, other = dispatcher.statistics().devices
    assert (taken_out.state, taken_out.pid, taken_out.done) == ("out", 0, 0)
    assert (taken_out.restarts, taken_out.error) == (4, "device 0: crashed")
    assert (other.state, other.done, other.error) == ("ready", 3, "")


def test_without_any_device_every_reason_is_told(make: Make, workers: FakeWorkers) -> None:
    dispatcher = make(2)
    out(dispatcher, workers, 0)
    out(dispatcher, workers, 1)
    assert dispatcher.usable() == 0
    text = "no device is left: device 0: crashed; device 1: crashed"
    with pytest.raises(WorkerDiedError, match=text):
        run(dispatcher, 1)
    first, second = each(dispatcher, 1, 2)
    assert isinstance(first, WorkerDiedError) and isinstance(second, WorkerDiedError)


def test_a_machine_without_room_is_told_at_once_and_left_behind_later(
    make: Make, workers: FakeWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    dispatcher = make(1)
    resting, goes_on = threading.Event(), threading.Event()

    def rest(self: Supervisor, limit_s: float | None) -> None:
        if isinstance(self.error, ResourceError):
            resting.set()
            assert_set(goes_on)

    monkeypatch.setattr(Supervisor, "_rest", rest)
    workers.starts.append(ResourceError("no worker process: too many open files"))
    workers.of(0).die()
    assert resting.wait(LIMIT_S)
    with pytest.raises(ResourceError, match=r"no device can be started now: .*too many open files"):
        run(dispatcher, 1)
    goes_on.set()
    wait_for_state(dispatcher, 0, State.READY)
    assert run(dispatcher, 1) == [2]


# --- deadlines ------------------------------------------------------------------------------------


def test_a_silent_device_ends_the_request_at_its_deadline(make: Make, workers: FakeWorkers) -> None:
    dispatcher = make(2)
    workers.holds = True
    text = r"no answer within timeout_s=0.01: devices \[0, 1\] are silent"
    with pytest.raises(RequestTimeoutError, match=text):
        run(dispatcher, 1, 2, timeout_s=0.01)
    with pytest.raises(RequestTimeoutError, match=r"device 0 is silent"):
        run(dispatcher, 1, timeout_s=0.01)  # alone, it is waited for in another way
    wait_for(lambda: workers.of(0).cancelled == [1, 2])
    assert dispatcher.statistics().timed_out == 2
    for device in range(2):
        assert all(call.ends[-1] in ("abandoned", "released") for call in began(workers, device))


def test_at_the_deadline_parts_that_are_done_have_their_results(
    make: Make, workers: FakeWorkers
) -> None:
    dispatcher = make(3)
    workers.of(0).holds = workers.of(2).holds = True
    for tries, timeout_s in enumerate(growing(0.01), 1):  # noqa: B007 - the last one counts
        first, second, third = each(dispatcher, 1, 2, 3, timeout_s=timeout_s)
        if not isinstance(second, RequestTimeoutError):
            break
    assert second == 4
    assert isinstance(first, RequestTimeoutError) and isinstance(third, RequestTimeoutError)
    statistics = dispatcher.statistics()
    assert (statistics.timed_out, statistics.done) == (tries, 0)


def test_a_worker_that_says_it_was_too_slow_is_looked_at_later(
    make: Make, workers: FakeWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    doubted: list[object] = []
    monkeypatch.setattr(Supervisor, "doubt", lambda self, life: doubted.append(life))
    dispatcher = make(1)
    workers.holds = True
    result = begun(lambda: run(dispatcher, 1, timeout_s=LIMIT_S))
    said = "predict failed! no answer within timeout_s=119.9987: it was told to stop"
    workers.call(0).answer(RequestTimeoutError(said))
    with pytest.raises(RequestTimeoutError) as error:
        result()
    assert str(error.value) == "no answer within timeout_s=120: device 0: it was told to stop"
    assert doubted == [dispatcher.supervisors[0].life]
    assert workers.of(0).cancelled == []


def test_a_worker_that_takes_no_request_in_time_is_suspected(
    make: Make, workers: FakeWorkers
) -> None:
    dispatcher = make(2)

    def fail() -> None:
        raise RequestTimeoutError("the worker did not answer within 0.2 s")

    workers.of(1).model.before_start = fail
    with pytest.raises(RequestTimeoutError, match=r"device 1 is silent"):
        run(dispatcher, 1, 2, timeout_s=LIMIT_S)
    wait_for(lambda: workers.of(1).cancelled == [0])
    assert [supervisor.load for supervisor in dispatcher.supervisors] == [0, 0]


def test_a_request_does_not_wait_for_restarts_beyond_its_deadline(
    make: Make, workers: FakeWorkers
) -> None:
    dispatcher = make(1)
    goes_on = threading.Event()
    workers.builds.append(lambda process: assert_set(goes_on))
    workers.of(0).die()
    wait_for(lambda: len(workers.processes) == 2)
    with pytest.raises(RequestTimeoutError, match="all devices are being started again"):
        run(dispatcher, 1, timeout_s=0.01)
    goes_on.set()


def test_a_hung_worker_is_replaced_after_a_deadline(make: Make, workers: FakeWorkers) -> None:
    dispatcher = make(2)
    for timeout_s in growing(0.01):
        hung = workers.of(1)
        hung.silent = hung.holds = True
        assert not dispatcher.is_ready(0.1)
        first, second = each(dispatcher, 1, 2, timeout_s=timeout_s)
        assert isinstance(second, RequestTimeoutError)
        wait_for(lambda hung=hung: workers.of(1) is not hung)
        wait_for_state(dispatcher, 1, State.READY)
        assert "it did not answer" in hung.why
        assert dispatcher.is_ready(LIMIT_S)
        if not isinstance(first, RequestTimeoutError):
            break
    assert first == 2


def test_devices_that_hang_have_one_time_together_to_tell_their_statistics(
    make: Make, workers: FakeWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    dispatcher = make(3)
    now_s = [0.0]
    given: list[float] = []

    def hang(timeout_s: float) -> str:
        given.append(timeout_s)
        now_s[0] += timeout_s
        raise RequestTimeoutError("the worker did not answer")

    monkeypatch.setattr(crew_module, "monotonic", lambda: now_s[0])
    for device in range(3):
        monkeypatch.setattr(workers.of(device).model, "statistics", hang)
    assert [device.runner for device in dispatcher.statistics().devices] == [{}, {}, {}]
    assert given == [ANSWER_S, LATE_S, LATE_S]
