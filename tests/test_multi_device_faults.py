"""multi_device.py: real worker processes die, hang and cannot be had, and the runner goes on."""

from __future__ import annotations

import os
import resource
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from support.devices import (
    context,
    device,
    has_ended,
    is_idle,
    loads_engine,
    on_devices,
    stop_process,
    wait_until_computing,
    wait_until_ready,
    worker_pids,
)
from support.fake_engine import LIMIT_S, growing, wait_for
from support.fake_workers import begun
from support.models import ENDLESS, arrays, dense_net, dense_values, looping, written

import mindspore_lite as mslite
from mindspore_lite.errors import (
    LiteError,
    RequestTimeoutError,
    ResourceError,
    WorkerDiedError,
)
from mindspore_lite.remote.devices import dispatcher, heartbeat, start_watch
from mindspore_lite.remote.devices import supervisor as supervisor
from mindspore_lite.remote.wire.client import Lane
from mindspore_lite.remote.wire.memory import Block, Made

X = np.array([3, 4], np.float32)
QUICK, NEVER = [np.array(3), X], [ENDLESS, X]
ROWS = np.arange(12, dtype=np.float32).reshape(4, 3)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is worth a long wait here."""
    monkeypatch.setattr(supervisor, "FIRST_BACK_OFF_S", 0.01)
    monkeypatch.setattr(supervisor, "STOP_S", 0.1)
    for module in (supervisor, dispatcher):
        monkeypatch.setattr(module, "ANSWER_S", 1.0)


@pytest.fixture
def loop(tmp_path: Path) -> Path:
    return looping(tmp_path / "loop.onnx")


@pytest.fixture
def dense(tmp_path: Path) -> Path:
    return written(tmp_path / "dense.mindir", dense_net(-1))


def kill(runner: mslite.MultiDeviceRunner, index: int, number: int = signal.SIGKILL) -> int:
    pid = device(runner, index).pid
    if number == signal.SIGSTOP:
        stop_process(pid)
    else:
        os.kill(pid, number)
    return pid


def hear_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have workers asked often whether they are there.

    SILENT_S stays long until a test needs it: a busy machine may keep a worker from answering.
    """
    monkeypatch.setattr(supervisor, "EVERY_S", 0.05)
    monkeypatch.setattr(heartbeat, "ASK_S", 0.1)


def answers(runner: mslite.MultiDeviceRunner) -> bool:
    return bool((arrays(runner.predict([ROWS]))[0] == dense_values(ROWS)).all())


# --- deaths ---------------------------------------------------------------------------------------


def test_a_death_while_idle_costs_no_request(dense: Path) -> None:
    with on_devices(dense) as runner:
        for turn in range(1, 4):
            pid = kill(runner, turn % 2)
            assert has_ended(pid)
            assert answers(runner)  # whether the runner has seen it already or not
            wait_until_ready(runner)
        found = runner.statistics()
        assert (found.done, found.failed) == (3, 0)
        assert sum(d.restarts for d in found.devices) == 3
        assert [d.error for d in found.devices] == ["", ""]


def test_a_death_while_computing_fails_only_its_own_part(loop: Path) -> None:
    with on_devices(loop) as runner:
        result = begun(lambda: runner.predict_parts([QUICK, NEVER], return_errors=True))
        wait_until_computing(runner, 1)
        pid = kill(runner, 1)
        quick, lost = result()
        np.testing.assert_array_equal(arrays(quick)[0], X)
        assert isinstance(lost, WorkerDiedError)
        assert (lost.device, lost.signal) == (1, signal.SIGKILL)
        assert f"of device 1 (pid {pid}) was ended by signal 9 (SIGKILL)" in str(lost)
        wait_until_ready(runner)
        assert device(runner, 1).pid != pid
        again = runner.predict_parts([QUICK, QUICK])
        assert [found[0].shape for found in again] == [[2], [2]]


def test_a_death_while_computing_is_raised_by_predict(loop: Path) -> None:
    with on_devices(loop) as runner:
        result = begun(lambda: runner.predict(NEVER))
        wait_until_computing(runner, 0)
        kill(runner, 0, signal.SIGSEGV)
        with pytest.raises(WorkerDiedError, match=r"^predict failed! the worker .*SIGSEGV") as e:
            result()
        assert (e.value.device, e.value.signal) == (0, signal.SIGSEGV)


def test_the_last_words_of_a_worker_are_told(loop: Path) -> None:
    with on_devices(loop, [0]) as runner:
        result = begun(lambda: runner.predict(NEVER))
        wait_until_computing(runner, 0)
        # as a library in it would
        with open(f"/proc/{device(runner, 0).pid}/fd/2", "w") as log:
            log.write("terminate called after throwing an instance of 'std::bad_alloc'\n")
        kill(runner, 0, signal.SIGABRT)
        with pytest.raises(WorkerDiedError, match=r"its last words: .*std::bad_alloc") as error:
            result()
        assert "std::bad_alloc" in error.value.last_words


def test_a_lost_part_is_computed_elsewhere_if_that_is_wanted(loop: Path, tmp_path: Path) -> None:
    """The run that is lost never ends; the other one is quick, for it is another device's turn."""
    with on_devices(loop, on_failure="retry") as runner:
        turns = [np.array(2**62), np.array(3)]
        result = begun(lambda: runner.predict_parts([[turns[0], X]]))
        wait_until_computing(runner, 0)
        kill(runner, 0)
        wait_until_computing(runner, 1)  # the same endless run, on the other device
        assert runner.statistics().retried == 1
        kill(runner, 1)
        with pytest.raises(WorkerDiedError, match="of device 1 "):
            result()
        wait_until_ready(runner)


@pytest.fixture
def dies_first(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The worker whose shared memory is to be opened first dies just before that."""
    victims: list[int] = []
    open_block = Block.open

    def late(pid: int, made: Made) -> Block:
        if not victims:
            victims.append(pid)
            os.kill(pid, signal.SIGKILL)
            assert has_ended(pid)
        return open_block(pid, made)

    monkeypatch.setattr(Block, "open", late)
    return victims


LARGE = np.ones((20_000, 3), np.float32)


def test_a_death_before_memory_for_inputs_is_opened_costs_no_request(
    dense: Path, dies_first: list[int]
) -> None:
    with on_devices(dense) as runner:
        np.testing.assert_array_equal(arrays(runner.predict([LARGE]))[0], dense_values(LARGE))
        assert len(dies_first) == 1
        assert runner.statistics().failed == 0


def test_a_death_before_memory_with_outputs_is_opened_is_a_death(
    dense: Path, dies_first: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And so the part is tried again, as that of any death."""
    monkeypatch.setattr(Lane, "bring", lambda self, arrays, **_: [None] * len(arrays))  # in frames
    with on_devices(dense, on_failure="retry") as runner:
        np.testing.assert_array_equal(arrays(runner.predict([LARGE]))[0], dense_values(LARGE))
        assert len(dies_first) == 1
        assert runner.statistics().retried == 1


def test_with_retry_callers_notice_nothing_of_a_death(tmp_path: Path) -> None:
    """One batch after the other, while the devices are killed in turn."""
    path = written(tmp_path / "m.mindir", dense_net(-1))
    with on_devices(path, on_failure="retry") as runner:
        over = threading.Event()

        def ask() -> int:
            count = 0
            while not over.is_set():
                assert answers(runner)
                count += 1
            return count

        asking = [begun(ask) for _ in range(3)]
        for turn in range(3):
            before = runner.statistics().done
            wait_for(lambda before=before: runner.statistics().done > before + 5)
            kill(runner, turn % 2)
            wait_for(lambda turn=turn: device(runner, turn % 2).restarts == turn // 2 + 1)
            wait_until_ready(runner)
        over.set()
        assert all(result() > 0 for result in asking)
        assert runner.statistics().failed == 0


def test_a_death_while_building_ends_the_build(tmp_path: Path) -> None:
    path = looping(tmp_path / "never.onnx", turns=2**62)  # which the build runs to warm up
    before = worker_pids()
    runner = mslite.MultiDeviceRunner()
    building = begun(lambda: runner.build_from_file(str(path), context()))
    wait_for(lambda: len(worker_pids()) == 2 + len(before))
    mine = [pid for pid in worker_pids() if pid not in before]
    wait_for(lambda: all(loads_engine(pid) for pid in mine))
    os.kill(mine[0], signal.SIGKILL)
    with pytest.raises(WorkerDiedError, match=r"MultiDeviceRunner's build .*SIGKILL") as error:
        building()
    assert error.value.signal == signal.SIGKILL
    assert worker_pids() == before


def test_a_worker_that_crashes_at_every_start_is_taken_out(
    dense: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with on_devices(dense) as runner:
        monkeypatch.setattr(sys, "executable", "/bin/false")
        kill(runner, 0)
        wait_for(lambda: device(runner, 0).state == "out")
        assert not runner.is_ready()
        out, other = runner.statistics().devices
        assert (out.pid, out.restarts, other.state) == (0, 4, "ready")
        assert "of device 0 (pid " in out.error and "ended with exit code 1" in out.error
        assert answers(runner)
        assert device(runner, 1).done == 1
        kill(runner, 1)
        wait_for(lambda: device(runner, 1).state == "out")
        text = "predict failed! no device is left: the worker process of device 0 .*device 1 "
        with pytest.raises(WorkerDiedError, match=text):
            runner.predict([ROWS])


def test_a_model_that_cannot_be_built_again_takes_its_device_out(dense: Path) -> None:
    with on_devices(dense) as runner:
        dense.write_bytes(b"no model")
        kill(runner, 0)
        wait_for(lambda: device(runner, 0).state == "out")
        assert device(runner, 0).error.startswith(f"device 0: {str(dense)!r}")
        assert answers(runner)


# --- hung workers ---------------------------------------------------------------------------------


def test_a_hung_worker_is_ended_after_the_deadline_and_replaced(dense: Path) -> None:
    with on_devices(dense) as runner:
        assert answers(runner)
        hung = kill(runner, 1, signal.SIGSTOP)
        assert not runner.is_ready(0.05)
        with pytest.raises(RequestTimeoutError, match=r"^predict failed! .*\b1\b.* silent"):
            runner.predict([ROWS], timeout_s=0.5)
        assert has_ended(hung)
        wait_until_ready(runner)
        assert answers(runner)
        assert runner.statistics().timed_out == 1


@pytest.mark.parametrize("rows", [4, 20_000])
def test_a_worker_that_hangs_before_it_takes_a_request_does_not_hold_it(
    dense: Path, rows: int
) -> None:
    """It needs a connection, or memory, that only the worker can give."""
    x = np.ones((rows, 3), np.float32)
    for timeout_s in growing(1.0):
        with on_devices(dense) as runner:
            hung = kill(runner, 1, signal.SIGSTOP)
            given = [[x], [x]]
            good, silent = runner.predict_parts(given, timeout_s=timeout_s, return_errors=True)
            assert isinstance(silent, RequestTimeoutError)
            assert has_ended(hung)
        if not isinstance(good, RequestTimeoutError):
            break
    assert good[0].shape == [rows, 4]


def test_memory_that_a_hung_worker_does_not_give_is_not_waited_for(dense: Path) -> None:
    with on_devices(dense, [0]) as runner:
        assert answers(runner)  # there is a connection now
        kill(runner, 0, signal.SIGSTOP)
        with pytest.raises(RequestTimeoutError, match=r"device 0 is silent"):
            runner.predict([np.ones((20_000, 3), np.float32)], timeout_s=0.1)
        wait_until_ready(runner)


def test_a_runner_whose_worker_hangs_can_be_closed(dense: Path) -> None:
    before = worker_pids()
    with on_devices(dense) as runner:
        kill(runner, 1, signal.SIGSTOP)
    assert worker_pids() == before


def test_a_worker_that_hangs_while_it_builds_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start_watch, "EVERY_S", 0.1)
    monkeypatch.setattr(heartbeat, "ASK_S", 0.1)
    path = looping(tmp_path / "never.onnx", turns=2**62)
    before = worker_pids()
    building = begun(lambda: mslite.MultiDeviceRunner().build_from_file(str(path), context([0])))
    wait_for(lambda: len(worker_pids()) > len(before))
    (pid,) = [pid for pid in worker_pids() if pid not in before]
    wait_for(lambda: loads_engine(pid))
    stop_process(pid)
    monkeypatch.setattr(start_watch, "SILENT_S", 0.5)  # before, a busy machine might be too slow
    with pytest.raises(WorkerDiedError, match=r"was ended: it did not answer for \d+\.\d s while"):
        building()
    assert has_ended(pid)


def test_a_worker_that_stops_answering_is_noticed_without_a_deadline(
    loop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request without timeout_s waited for a stopped process without end."""
    hear_often(monkeypatch)
    with on_devices(loop, [0]) as runner:
        waiting = begun(lambda: runner.predict(NEVER))
        wait_until_computing(runner, 0)
        hung = kill(runner, 0, signal.SIGSTOP)
        with monkeypatch.context() as impatient:
            impatient.setattr(supervisor, "SILENT_S", 0.3)
            with pytest.raises(
                WorkerDiedError, match=r"was ended: it did not answer for .* nor did it"
            ):
                waiting()
        assert has_ended(hung)
        wait_until_ready(runner)
        np.testing.assert_array_equal(arrays(runner.predict(QUICK))[0], X)


def test_a_worker_that_computes_for_long_is_not_taken_for_dead(
    loop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hear_often(monkeypatch)
    heard = threading.Semaphore(0)
    ask = heartbeat.Heartbeat.ask

    def counted(self: heartbeat.Heartbeat) -> float:
        found = ask(self)
        if found == 0:
            heard.release()
        return found

    monkeypatch.setattr(heartbeat.Heartbeat, "ask", counted)
    with on_devices(loop, [0]) as runner:
        future = runner.submit(NEVER)
        wait_until_computing(runner, 0)
        monkeypatch.setattr(supervisor, "SILENT_S", 1.0)
        assert all(heard.acquire(timeout=LIMIT_S) for _ in range(40))
        assert not future.done()
        assert device(runner, 0).restarts == 0
        future.cancel()


def test_statistics_do_not_wait_for_a_hung_worker(dense: Path) -> None:
    with on_devices(dense) as runner:
        kill(runner, 0, signal.SIGSTOP)
        hung, other = runner.statistics().devices
        assert (hung.runner, hung.state) == ({}, "ready")
        assert "done" in other.runner


# --- what this process lacks ----------------------------------------------------------------------


class Descriptors:
    """Takes all that this process may open, and gives them back."""

    def __init__(self) -> None:
        self._limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._taken: list[int] = []

    def exhaust(self) -> None:
        most = max(int(name) for name in os.listdir("/proc/self/fd"))
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, self._limits[1]))
        with suppress(OSError):
            while True:
                self._taken.append(os.open(os.devnull, os.O_RDONLY))

    def free(self) -> None:
        while self._taken:
            os.close(self._taken.pop())
        resource.setrlimit(resource.RLIMIT_NOFILE, self._limits)


@pytest.fixture
def descriptors() -> Iterator[Descriptors]:
    descriptors = Descriptors()
    yield descriptors
    descriptors.free()


def test_without_descriptors_requests_fail_clearly_and_then_work_again(
    dense: Path, descriptors: Descriptors
) -> None:
    with on_devices(dense) as runner:
        assert runner._loaded is not None
        sessions = [life.model.session for life in runner._loaded.dispatcher.lives]
        others = [session.lane() for session in sessions for _ in list(session._idle)]
        descriptors.exhaust()
        with pytest.raises(ResourceError, match=r"predict failed! no socket can be had: .*ulimit"):
            runner.predict([ROWS])
        for lane in others:  # whoever used them is done
            lane.give_back()
        assert answers(runner)
        descriptors.free()
        assert [d.restarts for d in runner.statistics().devices] == [0, 0]


def test_without_descriptors_no_shared_memory_can_be_had_until_there_are_some(
    dense: Path, descriptors: Descriptors
) -> None:
    large = np.ones((20_000, 3), np.float32)
    with on_devices(dense) as runner:
        descriptors.exhaust()
        assert answers(runner)  # what fits into a message needs none
        with pytest.raises(ResourceError, match=r"predict failed! shared memory .*ulimit"):
            runner.predict([large])
        descriptors.free()
        np.testing.assert_array_equal(arrays(runner.predict([large]))[0], dense_values(large))
        assert [d.restarts for d in runner.statistics().devices] == [0, 0]


def test_without_descriptors_a_dead_worker_is_replaced_later(
    dense: Path, descriptors: Descriptors
) -> None:
    with on_devices(dense, [0]) as runner:
        assert answers(runner)
        pid = device(runner, 0).pid
        descriptors.exhaust()
        os.kill(pid, signal.SIGKILL)
        assert runner._loaded is not None
        (supervisor,) = runner._loaded.dispatcher.supervisors
        wait_for(lambda: isinstance(supervisor.error, ResourceError))
        descriptors.exhaust()  # those that the dead one had
        text = "predict failed! no device can be started now: no worker process .*open files"
        with pytest.raises(ResourceError, match=text):
            runner.predict([ROWS])
        descriptors.free()
        wait_until_ready(runner)
        assert answers(runner)


def test_a_build_without_descriptors_fails_clearly(dense: Path, descriptors: Descriptors) -> None:
    runner = mslite.MultiDeviceRunner()
    descriptors.exhaust()
    with pytest.raises(ResourceError, match=r"MultiDeviceRunner's build .*Too many open files"):
        runner.build_from_file(str(dense), context())
    descriptors.free()
    runner.build_from_file(str(dense), context())
    assert answers(runner)
    runner.close()


def test_without_threads_no_future_can_be_had_and_nothing_else_is_lost(
    dense: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with on_devices(dense, queue_size=1) as runner:
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", refuse)
            for _ in range(2):
                with pytest.raises(ResourceError, match=r"^predict failed! no thread can be"):
                    runner.submit([ROWS])
        runner.submit([ROWS]).result(LIMIT_S)
        found = runner.statistics()
        assert (found.sent, found.failed, found.done, found.running) == (3, 2, 1, 0)
        runner.close(None)


def test_ctrl_c_leaves_a_runner_that_can_be_used(loop: Path) -> None:
    with on_devices(loop) as runner:
        main = threading.main_thread().ident
        assert main is not None

        def interrupt() -> None:
            wait_until_computing(runner, 0)
            wait_until_computing(runner, 1)
            signal.pthread_kill(main, signal.SIGINT)

        for call in (
            lambda: runner.predict_parts([NEVER, NEVER]),
            lambda: runner.predict_parts([NEVER, NEVER], return_errors=True),
        ):
            done = begun(interrupt)
            with pytest.raises(KeyboardInterrupt):
                call()
            done()
            wait_for(lambda: is_idle(runner))
            np.testing.assert_array_equal(arrays(runner.predict(QUICK))[0], X)
        found = runner.statistics()
        assert (found.failed, found.done, found.running) == (2, 2, 0)
        assert [d.restarts for d in found.devices] == [0, 0]


def test_deadlines_are_kept_while_all_devices_start_again(
    dense: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "FIRST_BACK_OFF_S", LIMIT_S)
    with on_devices(dense, [0]) as runner:
        kill(runner, 0)
        wait_for(lambda: device(runner, 0).state == "down")
        with pytest.raises(RequestTimeoutError, match="all devices are being started again"):
            runner.predict([ROWS], timeout_s=0.05)
        with pytest.raises(LiteError):
            runner.predict([ROWS], timeout_s=0.05)
