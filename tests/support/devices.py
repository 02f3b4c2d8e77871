"""Runners over several devices for tests, and the processes that they have."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from support.fake_engine import LIMIT_S, wait_for
from support.models import arrays

import mindspore_lite as mslite
from mindspore_lite.remote.devices.report import DeviceStatistics

DEVICES = [0, 1]


def context(devices: list[int] | None = None, **parallel: object) -> mslite.Context:
    """One thread per device; keyword arguments are settings of context.parallel."""
    context = mslite.Context()
    context.cpu.thread_num = 1
    context.parallel.workers_num = 1
    context.parallel.device_ids = DEVICES if devices is None else devices
    for name, value in parallel.items():
        assert hasattr(type(context.parallel), name), name
        setattr(context.parallel, name, value)
    return context


@contextmanager
def on_devices(
    path: Path | str,
    devices: list[int] | None = None,
    *,
    on_failure: Any = "raise",
    **parallel: object,
) -> Iterator[mslite.MultiDeviceRunner]:
    """A runner that is built, and closed afterwards, without patience."""
    runner = mslite.MultiDeviceRunner(on_failure)
    runner.build_from_file(str(path), context(devices, **parallel))
    try:
        yield runner
    finally:
        runner.close(0.0)


def unsplit(path: Path | str, *inputs: np.ndarray) -> list[np.ndarray]:
    """What one process computes for the whole batch."""
    plain = context([])
    with mslite.ModelParallelRunner() as runner:
        runner.build_from_file(str(path), plain)
        return arrays(runner.predict(list(inputs)))


def device(runner: mslite.MultiDeviceRunner, index: int) -> DeviceStatistics:
    return runner.statistics().devices[index]


def wait_until_ready(runner: mslite.MultiDeviceRunner) -> None:
    wait_for(runner.is_ready)


def wait_until_computing(runner: mslite.MultiDeviceRunner, index: int) -> None:
    """Until a run has begun in the process of a device."""
    wait_for(lambda: device(runner, index).runner.get("running", 0) > 0)


def is_idle(runner: mslite.MultiDeviceRunner) -> bool:
    """Whether no device computes; one that does not tell might."""
    return not any(d.runner.get("running", 1) for d in runner.statistics().devices)


def worker_pids(parent: int | str = "self") -> list[int]:
    """The worker processes that a process has started, in the order of their numbers."""
    children = []
    for task in Path(f"/proc/{parent}/task").iterdir():
        with suppress(OSError):  # it ended just now
            children += (task / "children").read_text().split()
    return sorted(int(pid) for pid in children if is_worker(pid))


def is_worker(pid: int | str) -> bool:
    """Whether a process is a worker, and no zombie."""
    try:
        return b"serve_descriptor" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def has_ended(pid: int, limit_s: float = LIMIT_S) -> bool:
    """Wait until a process has ended with all its threads, and holds no file any more."""
    try:
        watch = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([watch], [], [], limit_s)[0])
    finally:
        os.close(watch)


def loads_engine(pid: int) -> bool:
    """Whether a worker is so far that it builds."""
    try:
        return "onnxruntime" in Path(f"/proc/{pid}/maps").read_text()
    except OSError:
        return False


def shared_memory() -> set[str]:
    """What lies in the file system of shared memory."""
    # semaphores of multiprocessing and temporary folders come and go with tests beside this one
    return {name for name in os.listdir("/dev/shm") if not name.startswith(("sem.mp-", "tmp"))}


def stop_process(pid: int) -> None:
    """SIGSTOP, which takes effect some time after it was sent, thread by thread."""
    os.kill(pid, signal.SIGSTOP)
    wait_for(lambda: all(map(_is_stopped, Path(f"/proc/{pid}/task").iterdir())))


def _is_stopped(thread: Path) -> bool:
    try:
        return ") T " in (thread / "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):  # it has ended
        return True
