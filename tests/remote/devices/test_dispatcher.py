"""dispatcher.py: parts of requests are computed by devices, from the beginning to the end."""

from __future__ import annotations

import gc
import os
import threading
import weakref
from collections.abc import Callable

import numpy as np
import pytest
from support.fake_engine import LIMIT_S, rows, wait_for
from support.fake_workers import (
    FakeProcess,
    FakeWorkers,
    assert_set,
    began,
    begun,
    each,
    request,
    run,
    values,
)

from mindspore_lite.errors import (
    CancelledError,
    ClosedError,
    EngineError,
    InputError,
    ModelFileError,
    RequestTimeoutError,
    ResourceError,
    WorkerDiedError,
)
from mindspore_lite.remote.devices.dispatcher import Dispatcher
from mindspore_lite.serving.call import Call

Make = Callable[..., Dispatcher]


# --- who computes what ----------------------------------------------------------------------------


def test_part_i_goes_to_device_i(make: Make, workers: FakeWorkers) -> None:
    dispatcher = make(3)
    assert run(dispatcher, 1, 2, 3) == [2, 4, 6]
    for device in range(3):
        (call,) = workers.of(device).model.began
        assert call.arrays[0][0, 0] == device + 1
        assert call.ends == ["released"]


@pytest.mark.parametrize("cores", [1, 3])
def test_more_parts_than_devices_take_turns(make: Make, workers: FakeWorkers, cores: int) -> None:
    dispatcher = make(2, cores=cores)
    workers.holds = True
    result = begun(lambda: run(dispatcher, *range(20)))
    done = 0
    while done < 20:
        under_way = {device: len(workers.of(device).model.calls) for device in range(2)}
        assert max(under_way.values()) <= cores
        for device in range(2):
            for call in list(workers.of(device).model.calls):
                call.answer()
                wait_for(lambda call=call: call.ends)
                done += 1
    assert result() == [2.0 * value for value in range(20)]


def test_a_request_goes_to_the_device_that_has_least_to_do(
    make: Make, workers: FakeWorkers
) -> None:
    dispatcher = make(2)
    workers.holds = True
    first = begun(lambda: run(dispatcher, 1))
    workers.call(0)
    second = begun(lambda: run(dispatcher, 2))
    workers.call(1).answer()
    assert second() == [4]
    workers.call(0).answer()
    assert first() == [2]
    assert [supervisor.load for supervisor in dispatcher.supervisors] == [0, 0]


def test_answers_are_taken_in_whatever_order_they_come(make: Make, workers: FakeWorkers) -> None:
    dispatcher = make(3)
    workers.holds = True
    result = begun(lambda: run(dispatcher, 1, 2, 3))
    for device in (2, 0, 1):
        workers.call(device).answer()
    assert result() == [2, 4, 6]


def test_a_request_of_no_parts_is_done_at_once(make: Make) -> None:
    assert run(make(2)) == []
    assert each(make(2)) == []


def test_outputs_of_more_parts_than_devices_are_copied_before_their_lanes_are_used_again(
    make: Make, workers: FakeWorkers
) -> None:
    dispatcher = make(1)
    memory = np.zeros((1, 2), np.float32)  # shared, as it were: each answer overwrites the last
    workers.holds = True
    result = begun(lambda: run(dispatcher, 1, 2))
    for number in range(2):
        call = workers.call(0, number)
        memory[:] = number + 5
        call.answer([memory[:]])
        wait_for(lambda call=call: call.ends)
    assert result() == [5, 6]


# --- errors ---------------------------------------------------------------------------------------


def test_the_first_error_ends_the_request_and_the_other_parts_are_called_off(
    make: Make, workers: FakeWorkers
) -> None:
    dispatcher = make(3)
    workers.holds = True
    result = begun(lambda: run(dispatcher, 1, 2, 3))
    calls = [workers.call(device) for device in range(3)]
    calls[1].answer(InputError("it does not fit"))
    with pytest.raises(InputError, match="it does not fit"):
        result()
    assert [call.ends for call in calls] == [["abandoned"], ["released"], ["abandoned"]]
    wait_for(lambda: workers.of(0).cancelled == [1] and workers.of(2).cancelled == [1])
    assert workers.of(1).cancelled == []
    assert [
        (supervisor.done, supervisor.failed, supervisor.load)
        for supervisor in dispatcher.supervisors
    ] == [(0, 1, 0)] * 3


def test_with_return_errors_the_other_parts_have_their_results(
    make: Make, workers: FakeWorkers
) -> None:
    dispatcher = make(3)
    workers.holds = True
    result = begun(lambda: each(dispatcher, 1, 2, 3))
    error = InputError("it does not fit")
    workers.call(1).answer(error)
    workers.call(0).answer()
    workers.call(2).answer()
    assert result() == [2, error, 6]


def test_what_a_part_cannot_be_sent_for_is_its_error(make: Make, workers: FakeWorkers) -> None:
    dispatcher = make(2)

    def fail() -> None:
        raise ResourceError("no socket")

    workers.of(1).model.before_start = fail
    first, second = each(dispatcher, 1, 2)
    assert (first, str(second)) == (2, "no socket")
    with pytest.raises(ResourceError, match="no socket"):
        run(dispatcher, 1, 2)
    wait_for(lambda: not workers.of(0).model.calls)
    assert [supervisor.load for supervisor in dispatcher.supervisors] == [0, 0]


def test_an_interrupt_leaves_a_crew_that_can_be_used(make: Make, workers: FakeWorkers) -> None:
    """Ctrl-C comes wherever the caller happens to be."""
    dispatcher = make(2)

    def interrupt() -> None:
        raise KeyboardInterrupt

    workers.holds = True
    workers.of(1).model.before_start = interrupt
    with pytest.raises(KeyboardInterrupt):
        run(dispatcher, 1, 2)
    (call,) = workers.of(0).model.began
    assert call.ends == ["abandoned"]
    workers.holds = False
    workers.of(1).model.before_start = lambda: None
    assert run(dispatcher, 1, 2) == [2, 4]
    assert [supervisor.load for supervisor in dispatcher.supervisors] == [0, 0]
    assert dispatcher.statistics().failed == 1


def test_an_error_does_not_hold_what_the_request_was_given(
    make: Make, workers: FakeWorkers
) -> None:
    """Without the garbage collector, which does not know how large the arrays are."""
    dispatcher = make(2)
    given = rows()
    gone = weakref.ref(given[0])
    workers.holds = True
    gc.collect()
    gc.disable()
    try:
        asked = [dispatcher.request([given, rows()], Call(()))]
        dispatcher.take()
        result = begun(lambda: dispatcher.run(asked.pop(), values))
        workers.call(0)
        workers.call(1).answer(InputError("no"))
        with pytest.raises(InputError) as error:
            result()
        del given, result
        workers.of(0).model.began.clear()
        wait_for(lambda: gone() is None)
        assert str(error.value) == "no"
    finally:
        gc.enable()


# --- cancelling -----------------------------------------------------------------------------------


def test_a_request_under_way_can_be_cancelled(make: Make, workers: FakeWorkers) -> None:
    dispatcher = make(2)
    workers.holds = True
    for parts in (1, 2):
        dispatcher.take()
        asked = request(dispatcher, *range(parts))
        result = begun(lambda asked=asked: dispatcher.run(asked, values))
        wait_for(lambda asked=asked, parts=parts: len(asked.flying) == parts)
        assert dispatcher.cancel(asked)
        with pytest.raises(CancelledError):
            result()
        assert not dispatcher.cancel(asked)
    wait_for(lambda: workers.of(0).cancelled == [1, 2])
    assert dispatcher.statistics().cancelled == 2
    for call in began(workers, 0) + began(workers, 1):
        assert call.ends == ["interrupted", "abandoned"]


def test_a_request_that_waits_for_a_device_can_be_cancelled(
    make: Make, workers: FakeWorkers
) -> None:
    dispatcher = make(1)
    goes_on = threading.Event()
    workers.builds.append(lambda process: assert_set(goes_on))
    workers.of(0).die()
    wait_for(lambda: len(workers.processes) == 2)
    dispatcher.take()
    asked = request(dispatcher, 1)
    result = begun(lambda: dispatcher.run(asked, values))
    assert dispatcher.cancel(asked)
    with pytest.raises(CancelledError):
        result()
    goes_on.set()


def test_a_request_that_is_cancelled_while_it_is_sent_does_not_wait(
    make: Make, workers: FakeWorkers
) -> None:
    dispatcher = make(1)
    workers.holds = True
    dispatcher.take()
    asked = request(dispatcher, 1)
    workers.of(0).model.before_start = lambda: dispatcher.cancel(asked)
    with pytest.raises(CancelledError):
        dispatcher.run(asked, values)


@pytest.mark.parametrize("answer", [None, InputError("no")])
def test_a_connection_that_was_woken_by_cancel_is_never_used_again(
    make: Make, workers: FakeWorkers, answer: Exception | None
) -> None:
    """The answer is there, and cancel comes before it is taken."""
    dispatcher = make(1)
    workers.holds = True
    dispatcher.take()
    asked = request(dispatcher, 1)
    workers.of(0).model.after_answer = lambda: dispatcher.cancel(asked)
    result = begun(lambda: dispatcher.run(asked, values))
    call = workers.call(0)
    call.answer(answer)
    with pytest.raises(CancelledError):
        result()
    assert call.ends == ["interrupted", "abandoned"]


def test_a_cancelled_request_ends_as_such_whatever_else_goes_wrong(
    make: Make, workers: FakeWorkers
) -> None:
    dispatcher = make(1)
    dispatcher.take()
    asked = request(dispatcher, 1)

    def fail() -> None:
        dispatcher.cancel(asked)
        raise ResourceError("no socket")

    workers.of(0).model.before_start = fail
    with pytest.raises(CancelledError):
        dispatcher.run(asked, values)
    assert dispatcher.statistics().cancelled == 1


def test_a_request_that_failed_cannot_be_cancelled(make: Make, workers: FakeWorkers) -> None:
    """Its Future is about to get the error, and must not be cancelled in between."""
    dispatcher = make(1)
    dispatcher.take()
    asked = request(dispatcher, 1, timeout_s=1e-9)
    with pytest.raises(RequestTimeoutError, match="it was not sent yet"):
        dispatcher.run(asked, values)
    assert not dispatcher.cancel(asked)


def test_a_request_that_is_done_cannot_be_cancelled(make: Make) -> None:
    dispatcher = make(1)
    dispatcher.take()
    asked = request(dispatcher, 1)
    assert dispatcher.run(asked, values) == [2]
    assert not dispatcher.cancel(asked)
    assert dispatcher.statistics().done == 1


# --- the beginning --------------------------------------------------------------------------------


def test_the_first_error_of_a_build_ends_all(make: Make, workers: FakeWorkers) -> None:
    """Also of devices that would build for long."""

    def build(process: FakeProcess) -> None:
        if process.device == 1:
            wait_for(lambda: len(workers.processes) == 3)
            raise ModelFileError("it is no model")
        wait_for(lambda: not process.alive)

    workers.builds.extend([build] * 3)
    with pytest.raises(ModelFileError, match=r"^device 1: it is no model$"):
        make(3)
    assert [process.alive for process in workers.processes] == [False] * 3


def test_an_error_that_nobody_expects_ends_a_build_as_well(
    make: Make, workers: FakeWorkers
) -> None:
    def build(process: FakeProcess) -> None:
        raise ValueError("there is no setting 'x'")

    workers.builds.append(build)
    with pytest.raises(ValueError, match=r"device .: there is no setting 'x'"):
        make(2)
    assert not any(process.alive for process in workers.processes)


def test_an_interrupted_build_leaves_nothing(
    make: Make, workers: FakeWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers.builds.extend([lambda process: wait_for(lambda: not process.alive)] * 2)

    def interrupt(self: Dispatcher) -> None:
        wait_for(lambda: len(workers.processes) == 2)
        raise KeyboardInterrupt

    monkeypatch.setattr(Dispatcher, "_wait_for_all", interrupt)
    with pytest.raises(KeyboardInterrupt):
        make(2)
    assert not any(process.alive for process in workers.processes)


def test_a_build_without_threads_leaves_nothing(
    make: Make, workers: FakeWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = threading.Thread.start

    def refuse(self: threading.Thread) -> None:
        if self.name == "mslite-device-1":
            raise RuntimeError("can't start new thread")
        start(self)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(ResourceError, match=r"no thread .*: can't start new thread"):
        make(3)
    assert not any(process.alive for process in workers.processes)


# --- the end --------------------------------------------------------------------------------------


def test_close_waits_for_what_was_taken(make: Make, workers: FakeWorkers) -> None:
    dispatcher = make(2)
    workers.holds = True
    running = begun(lambda: run(dispatcher, 1, 2))
    workers.call(1)
    dispatcher.take()  # and not begun yet
    closed = begun(lambda: dispatcher.close(None))
    wait_for(lambda: dispatcher._closed)
    with pytest.raises(ClosedError, match="the runner is closed; build it again to use it"):
        dispatcher.take()
    later = begun(lambda: dispatcher.run(request(dispatcher, 3), values))
    workers.call(0).answer()
    workers.call(1).answer()
    assert running() == [2, 4]
    wait_for(lambda: any(workers.of(device).model.calls for device in range(2)))
    for device in range(2):
        for call in list(workers.of(device).model.calls):
            call.answer()
    assert later() == [6]
    closed()
    assert [process.why for process in workers.processes] == ["stopped", "stopped"]
    assert not dispatcher.is_ready(0.1)


def test_close_gives_a_device_that_starts_again_its_time(make: Make, workers: FakeWorkers) -> None:
    """What was taken is finished, or fails for its own reasons, before the runner is closed."""
    dispatcher = make(1)
    goes_on = threading.Event()
    workers.builds.append(lambda process: assert_set(goes_on))
    workers.of(0).die()
    wait_for(lambda: len(workers.processes) == 2)
    waiting = begun(lambda: run(dispatcher, 1))
    wait_for(lambda: dispatcher.statistics().running == 1)
    closed = begun(lambda: dispatcher.close(None))
    wait_for(lambda: dispatcher._closed)
    workers.holds = True
    goes_on.set()
    workers.call(0).answer()
    assert waiting() == [2]
    closed()


def test_a_death_before_the_end_of_close_is_no_closing(make: Make, workers: FakeWorkers) -> None:
    dispatcher = make(1)
    workers.holds = True
    running = begun(lambda: run(dispatcher, 1))
    workers.call(0)
    closed = begun(lambda: dispatcher.close(None))
    wait_for(lambda: dispatcher._closed)
    workers.of(0).die("signal 9")
    with pytest.raises(WorkerDiedError, match="signal 9"):
        running()
    closed()


def test_what_does_not_end_before_close_is_ended_by_it(make: Make, workers: FakeWorkers) -> None:
    dispatcher = make(2)
    workers.holds = True
    running = begun(lambda: run(dispatcher, 1, 2))
    workers.call(1)
    dispatcher.close(0.0)
    with pytest.raises(ClosedError, match="the runner was closed, and the request did not end"):
        running()
    dispatcher.close(0.0)  # harmless


def test_a_request_that_waits_for_a_restart_learns_of_close(
    make: Make, workers: FakeWorkers
) -> None:
    dispatcher = make(1)
    workers.builds.append(lambda process: wait_for(lambda: not process.alive))
    workers.of(0).die()
    wait_for(lambda: len(workers.processes) == 2)
    waiting = begun(lambda: run(dispatcher, 1))
    wait_for(lambda: dispatcher.statistics().running == 1)
    dispatcher.close(0.0)
    with pytest.raises(ClosedError):
        waiting()
    assert not workers.of(0).alive


def test_an_abandoned_crew_ends_its_workers_without_a_lock(
    make: Make, workers: FakeWorkers
) -> None:
    """A garbage collection may come while this very thread holds one."""
    dispatcher = make(2)
    with dispatcher._changed, dispatcher.supervisors[0]._changed:
        done = begun(dispatcher.abandon)
        done()
    for supervisor in dispatcher.supervisors:
        supervisor.join(LIMIT_S)
    assert [process.alive for process in workers.processes] == [False, False]


# --- books ----------------------------------------------------------------------------------------


def test_statistics_add_up_at_every_moment(make: Make, workers: FakeWorkers) -> None:
    dispatcher = make(2)
    over = threading.Event()

    def ask() -> None:
        while not over.is_set():
            run(dispatcher, 1, 2)

    asking = [begun(ask) for _ in range(4)]
    seen = 0
    while seen < 200:
        found = dispatcher.statistics()
        ended = found.done + found.failed + found.timed_out + found.cancelled
        assert found.sent == found.running + ended
        assert 0 <= found.running <= 4
        seen = found.done
    over.set()
    for result in asking:
        result()
    found = dispatcher.statistics()
    assert (found.running, found.sent) == (0, found.done)
    assert sum(device.done for device in found.devices) == 2 * found.done


def test_statistics_tell_of_the_processes(make: Make, workers: FakeWorkers) -> None:
    dispatcher = make(2)
    workers.of(1).silent = True
    one, other = dispatcher.statistics().devices
    assert (one.device, one.state, one.pid, one.cores) == (0, "ready", workers.of(0).pid, (0,))
    assert (one.runner, other.runner) == ({"stuck": 0, "running": 0}, {})
    dispatcher.close(0.0)
    assert [device.state for device in dispatcher.statistics().devices] == ["closed", "closed"]


def test_a_forked_child_has_no_part_in_it(make: Make, workers: FakeWorkers) -> None:
    dispatcher = make(1)
    asked = request(dispatcher, 1)
    with dispatcher._changed, asked._lock:  # as another thread might at the very moment of the fork
        child = os.fork()
        if child == 0:
            status = 1
            try:
                with pytest.raises(EngineError, match="built before this process was forked"):
                    dispatcher.take()
                assert not dispatcher.cancel(asked)
                assert not dispatcher.is_ready(0.1)
                assert dispatcher.statistics().sent == 0
                dispatcher.abandon()
                dispatcher.close(None)
                status = 0
            finally:
                os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert run(dispatcher, 1) == [2]
