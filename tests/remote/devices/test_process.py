"""process.py: a worker process is started, spoken to, listened to, and collected when it ends."""

from __future__ import annotations

import errno
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from support.fake_engine import LIMIT_S, wait_for

from mindspore_lite.errors import EngineError, ResourceError, WireError, WorkerDiedError
from mindspore_lite.remote.devices import process as module
from mindspore_lite.remote.devices.process import WorkerProcess


@pytest.fixture
def ended() -> threading.Event:
    return threading.Event()


@pytest.fixture
def worker(ended: threading.Event) -> Iterator[WorkerProcess]:
    worker = WorkerProcess(3, (), ended.set)
    yield worker
    worker.stop(0.0)
    assert not worker.alive


def program(monkeypatch: pytest.MonkeyPatch, text: str) -> WorkerProcess:
    """A process that runs something else."""
    monkeypatch.setattr(module, "_PROGRAM", text)
    return WorkerProcess(3, ())


def is_gone(pid: int) -> bool:
    """Whether there is no such process, not even a zombie."""
    return not os.path.exists(f"/proc/{pid}")


def test_a_worker_answers_on_its_cores(ended: threading.Event) -> None:
    core = min(os.sched_getaffinity(0))
    worker = WorkerProcess(3, (core,), ended.set)
    try:
        assert worker.session.info("pid") == str(worker.pid)
        assert worker.session.info("cores") == str(core)
        assert worker.session is worker.session
        assert worker.alive and not ended.is_set()
    finally:
        worker.stop(LIMIT_S)
    assert ended.wait(LIMIT_S)
    assert not worker.alive
    assert is_gone(worker.pid)
    assert "ended with exit code 0" in str(worker.died())


def test_a_worker_that_was_never_spoken_to_ends_when_it_is_stopped(worker: WorkerProcess) -> None:
    worker.stop(LIMIT_S)
    assert is_gone(worker.pid)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_a_death_is_told_with_its_signal(
    worker: WorkerProcess, ended: threading.Event, number: signal.Signals
) -> None:
    worker.session.info("pid")
    os.kill(worker.pid, number)
    assert ended.wait(LIMIT_S)
    error = worker.died()
    assert (error.device, error.signal) == (3, number)
    told = f"the worker process of device 3 (pid {worker.pid}) was ended by signal {number:d}"
    assert str(error).startswith(f"{told} ({number.name})")
    assert is_gone(worker.pid)


def test_a_process_that_is_ended_says_why(worker: WorkerProcess) -> None:
    worker.kill("it did not answer")
    worker.kill("another reason")
    error = worker.died(LIMIT_S)
    assert (error.signal, error.last_words) == (signal.SIGKILL, "")
    assert str(error).endswith("was ended: it did not answer")


def test_a_process_that_goes_on_without_its_connection_is_ended(worker: WorkerProcess) -> None:
    assert "was ended: its connection broke" in str(worker.died())


def test_a_process_that_ends_by_itself_keeps_its_own_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    worker = program(monkeypatch, "import os; os._exit(7)")
    with pytest.raises(WorkerDiedError):
        worker.session  # noqa: B018 - it waits
    assert "ended with exit code 7" in str(worker.died(LIMIT_S))
    worker.kill("too late")
    assert "ended with exit code 7" in str(worker.died())


def test_a_process_that_cannot_be_killed_does_not_hold_anybody_up(
    worker: WorkerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_KILLED_S", 0.0)
    monkeypatch.setattr(worker._popen, "kill", lambda: None)
    assert "does not end, although it was killed: it hangs" in said_dead(worker)
    monkeypatch.undo()


def said_dead(worker: WorkerProcess) -> str:
    worker.kill("it hangs")
    return str(worker.died())


def test_last_words_are_the_end_of_what_was_said(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        "import sys\n"
        "for i in range(100): print('line', i, flush=True)\n"
        "print('x' * 100_000, file=sys.stderr)\n"
        "sys.stdout.write('no end of line'); sys.stdout.flush()\n"
        "sys.stdout.buffer.write(b'\\xff'); sys.stdout.flush()\n"
        "raise SystemExit(3)\n"
    )
    worker = program(monkeypatch, text)
    error = worker.died(LIMIT_S)
    words = error.last_words.split("\n")
    assert words[:2] == ["line 82", "line 83"]
    assert words[-2:] == ["x" * 500, "no end of line\ufffd"]
    assert f"ended with exit code 3; its last words: {words[0]}" in str(error)
    worker.hang_up()


def test_what_a_child_of_the_worker_still_writes_does_not_hide_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The pipe stays open as long as anybody holds it."""
    text = (
        "import os, subprocess, sys\n"
        "wait = f'import os; os.read({sys.argv[2]}, 1)'\n"
        "child = subprocess.Popen([sys.executable, '-c', wait], pass_fds=[int(sys.argv[2])])\n"
        "print('child', child.pid, flush=True)\n"
        "os._exit(5)"
    )
    worker = program(monkeypatch, text)
    error = worker.died(LIMIT_S)
    assert "exit code 5" in str(error)
    child = int(error.last_words.split()[1])
    assert os.path.exists(f"/proc/{child}/exe")
    worker.hang_up()
    wait_for(lambda: not os.path.exists(f"/proc/{child}/exe"))


def test_a_worker_that_says_nothing_useful_is_no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "import os, sys; os.write(int(sys.argv[2]), bytes(40)); os._exit(0)"
    worker = program(monkeypatch, text)
    with pytest.raises(WireError, match="it is no worker"):
        worker.session  # noqa: B018
    worker.stop(LIMIT_S)
    assert is_gone(worker.pid)


# --- what cannot be had ---------------------------------------------------------------------------


def too_many(*given: Any, **more: Any) -> Any:
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def no_thread(self: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


@pytest.mark.parametrize(
    ("owner", "name", "failure", "reason"),
    [
        (socket, "socketpair", too_many, "Too many open files"),
        (subprocess, "Popen", too_many, "Too many open files"),
        (os, "pidfd_open", too_many, "Too many open files"),
        (threading.Thread, "start", no_thread, "can't start new thread"),
    ],
)
def test_what_cannot_be_started_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, failure: Any, reason: str
) -> None:
    pids: list[int] = []
    popen = subprocess.Popen

    def remembered(*given: Any, **more: Any) -> subprocess.Popen[bytes]:
        process = popen(*given, **more)
        pids.append(process.pid)
        return process

    before = set(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(subprocess, "Popen", remembered)
    monkeypatch.setattr(owner, name, failure)
    with pytest.raises(ResourceError, match="no worker process .* for device 3: .*" + reason):
        WorkerProcess(3, ())
    monkeypatch.undo()
    assert all(is_gone(pid) for pid in pids)
    assert set(os.listdir("/proc/self/fd")) <= before


def test_a_program_that_is_not_there_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with pytest.raises(ResourceError, match="No such file or directory: '/no/such/python'"):
        WorkerProcess(0, ())
    monkeypatch.setattr(sys, "executable", None)
    with pytest.raises(EngineError, match="does not know its own program"):
        WorkerProcess(0, ())


def test_what_is_no_text_on_the_path_of_modules_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, b"/bytes", os])
    worker = WorkerProcess(0, ())
    assert worker.session.info("pid") == str(worker.pid)
    worker.stop(LIMIT_S)


def test_descriptors_are_given_back(worker: WorkerProcess, ended: threading.Event) -> None:
    worker.session.info("pid")
    worker.stop(LIMIT_S)
    assert ended.wait(LIMIT_S)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(2):
        another = WorkerProcess(0, ())
        another.session.info("pid")
        another.stop(LIMIT_S)
        wait_for(lambda: len(os.listdir("/proc/self/fd")) <= before)
