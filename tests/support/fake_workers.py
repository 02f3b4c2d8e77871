"""Worker processes that are none: they answer when the test says so, and die when it says so.

Calls have real descriptors, for the dispatcher waits for them as it does for those of real workers.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from support.fake_engine import LIMIT_S, rows, wait_for

from mindspore_lite.core.tensor_info import TensorInfo
from mindspore_lite.errors import RequestTimeoutError, WorkerDiedError
from mindspore_lite.remote.devices.dispatcher import Dispatcher
from mindspore_lite.remote.devices.request import SplitRequest
from mindspore_lite.remote.devices.supervisor import DevicePlace, State
from mindspore_lite.remote.wire.bodies import RUNNER, Build
from mindspore_lite.remote.wire.client import ENDED
from mindspore_lite.serving.call import Call

BUILD = Build(RUNNER, 0, "/no/such/model")


def place(device: int, cores: int = 1) -> DevicePlace:
    return DevicePlace(device, tuple(range(cores)), BUILD)


class FakeCall:
    """A request at a fake worker; the test answers it."""

    def __init__(self, model: FakeModel, call: Call):
        self.model = model
        self.arrays = list(call.inputs)
        self.priority = call.priority
        self.request = model.session.next_request()
        self.result: list[np.ndarray] | Exception = []
        self.answered = False
        self.ends: list[str] = []  # what the dispatcher did with it at last
        limit_s = call.timeout_s
        self._due_s = None if limit_s is None else time.monotonic() + limit_s
        self._ours, self._theirs = socket.socketpair()

    # the test's side

    def answer(self, result: list[np.ndarray] | Exception | None = None) -> None:
        factor = self.model.factor
        self.result = [array * factor for array in self.arrays] if result is None else result
        self._theirs.send(b"!")

    def break_off(self) -> None:
        self._theirs.close()

    # the dispatcher's side

    def fileno(self) -> int:
        return self._ours.fileno()

    def fetched(self) -> list[np.ndarray]:
        if self._due_s is not None:
            self._ours.settimeout(max(0.001, self._due_s - time.monotonic()))
        try:
            came = self._ours.recv(1)
        except TimeoutError as exc:
            raise RequestTimeoutError("the worker did not answer") from exc
        if not came:
            raise WorkerDiedError("the worker is gone")
        self.answered = True
        self.model.after_answer()
        if isinstance(self.result, Exception):
            raise self.result
        return self.result

    def interrupt(self) -> None:
        self._ours.shutdown(socket.SHUT_RDWR)
        self.ends.append("interrupted")

    def release(self) -> None:
        self._over("released")

    def abandon(self) -> None:
        self._over("abandoned")

    def _over(self, how: str) -> None:
        self.ends.append(how)
        self.model.calls.discard(self)
        self._ours.close()
        self._theirs.close()


class FakeModel:
    """A model in a fake process; 2 x, at once, unless it is held. Its weight is the 2."""

    inputs = (TensorInfo("x", np.dtype(np.float32), (-1, 2)),)
    outputs = (TensorInfo("y", np.dtype(np.float32), (-1, 2)),)
    notes: Sequence[str] = ()

    def __init__(self, process: FakeProcess) -> None:
        self.session = process
        self.calls: set[FakeCall] = set()  # under way
        self.began: list[FakeCall] = []
        self.before_start: Callable[[], object] = lambda: None
        self.after_answer: Callable[[], object] = lambda: None
        self.stuck = self.running = 0
        self.factor = 2.0
        self.updates: list[list[Any]] = []  # the groups of each
        self.closed = threading.Event()

    def derived(self, groups: Sequence[Any]) -> FakeModel:
        made = FakeModel(self.session)
        if groups:
            made.update_weights(groups)
        elif not self.session.alive:
            raise WorkerDiedError("the worker is gone")
        self.session.model = made
        self.session.models.append(made)
        return made

    def update_weights(self, groups: Sequence[Any]) -> None:
        if self.session.workers.updates:
            self.session.workers.updates.popleft()(self.session)
        if not self.session.alive:
            raise WorkerDiedError("the worker is gone")
        self.updates.append([[(name, float(array)) for name, array in g] for g in groups])
        self.factor = float(groups[-1][-1][1])

    def close(self, drain_s: float, timeout_s: float) -> None:
        self.session.asked()
        self.closed.set()

    def start(self, asked: Call) -> FakeCall:
        self.before_start()
        if not self.session.alive:
            raise WorkerDiedError("the worker is gone")
        call = FakeCall(self, asked)
        self.calls.add(call)
        self.began.append(call)
        if not (self.session.workers.holds or self.session.holds):
            call.answer()
        return call

    def statistics(self, timeout_s: float | None = None) -> str:
        self.session.asked()
        return json.dumps({"stuck": self.stuck, "running": self.running})


class FakeProcess:
    """A process, and the session with it."""

    def __init__(self, workers: FakeWorkers, device: int, on_end: Callable[[], None]) -> None:
        self.workers = workers
        self.device = device
        self.name = f"device {device}"
        self.pid = 1000 + len(workers.processes)
        self.model = FakeModel(self)  # the last one that was built
        self.models: list[FakeModel] = []
        self.cancelled: list[int] = []
        self.cancel_answer = ENDED
        self.holds = False  # its requests wait for the test
        self.silent = False  # it hangs
        self.why = ""
        self.closed = False
        self._on_end = on_end
        self._ended = threading.Event()
        self._requests = 0

    # the test's side

    def die(self, why: str = "died") -> None:
        self.why = self.why or why
        self._ended.set()
        for model in self.models:
            for call in list(model.calls):
                call.break_off()
        self._on_end()

    # WorkerProcess

    @property
    def alive(self) -> bool:
        return not self._ended.is_set()

    @property
    def session(self) -> FakeProcess:
        return self

    def died(self, patience_s: float = 0.0) -> WorkerDiedError:
        if not self._ended.wait(patience_s):
            self.kill("its connection broke")
        return WorkerDiedError(f"device {self.device}: {self.why}", device=self.device)

    def kill(self, why: str) -> None:
        if self.alive:
            self.die(f"killed, {why}")

    def stop(self, timeout_s: float) -> None:
        self.hang_up()
        if self.alive:
            self.die("stopped")

    def hang_up(self) -> None:
        self.closed = True

    # Session

    def build(self, build: Build) -> FakeModel:
        assert build is BUILD
        if self.workers.builds:
            self.workers.builds.popleft()(self)
        if not self.alive:
            raise WorkerDiedError("the worker is gone")
        if self.models:
            self.model = FakeModel(self)
        self.models.append(self.model)
        return self.model

    def next_request(self) -> int:
        self._requests += 1
        return self._requests

    def cancel(self, request: int, wait_s: float, timeout_s: float) -> int:
        self.asked()
        self.cancelled.append(request)
        return self.cancel_answer

    def info(self, key: str, timeout_s: float) -> str:
        self.asked()
        return ""

    def asked(self) -> None:
        if self.silent:
            raise RequestTimeoutError("the worker did not answer")


class FakeWorkers:
    """Starts fake processes; `starts`, `builds` and `updates` say what the next ones do instead."""

    def __init__(self) -> None:
        self.processes: list[FakeProcess] = []
        self.starts: deque[Exception] = deque()
        self.builds: deque[Callable[[FakeProcess], None]] = deque()
        self.updates: deque[Callable[[FakeProcess], None]] = deque()
        self.holds = False  # the requests of all wait for the test
        self._lock = threading.Lock()

    def start(self, device: int, cores: tuple[int, ...], on_end: Callable[[], None]) -> Any:
        with self._lock:
            if self.starts:
                raise self.starts.popleft()
            process = FakeProcess(self, device, on_end)
            self.processes.append(process)
            return process

    def of(self, device: int) -> FakeProcess:
        """The last process of a device."""
        return next(p for p in reversed(self.processes) if p.device == device)

    def call(self, device: int, number: int = 0) -> FakeCall:
        """The number-th request that the device's process gets; waits for it."""
        wait_for(lambda: len(self.of(device).model.began) > number)
        return self.of(device).model.began[number]


def wait_for_state(dispatcher: Dispatcher, device: int, state: State) -> None:
    wait_for(lambda: dispatcher.supervisors[device].state is state)


def begun(act: Callable[[], Any]) -> Callable[[], Any]:
    """Run something on another thread; what comes back waits for it, and returns or raises it."""
    found: list[Any] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            found.append(act())
        except BaseException as exc:  # noqa: BLE001 - the test wants to see it
            failed.append(exc)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()

    def result() -> Any:
        thread.join(LIMIT_S)
        assert not thread.is_alive(), "it does not end"
        if failed:
            raise failed[0]
        return found[0]

    return result


def request(
    dispatcher: Dispatcher, *values: float, timeout_s: float | None = None, **more: Any
) -> SplitRequest:
    """Of one part per value."""
    return dispatcher.request([rows(value=value) for value in values], Call((), timeout_s), **more)


def values(results: list[Any]) -> list[Any]:
    """Of each part what its output holds, or its error."""
    return [r if isinstance(r, Exception) else float(r[0][0, 0]) for r in results]


def run(dispatcher: Dispatcher, *given: float, timeout_s: float | None = None) -> list[Any]:
    dispatcher.take()
    return dispatcher.run(request(dispatcher, *given, timeout_s=timeout_s), values)


def each(dispatcher: Dispatcher, *given: float, timeout_s: float | None = None) -> list[Any]:
    dispatcher.take()
    return values(
        dispatcher.each(request(dispatcher, *given, timeout_s=timeout_s, keeps_going=True))
    )


def out(dispatcher: Dispatcher, workers: FakeWorkers, device: int) -> None:
    """Have a device taken out."""
    workers.builds.extend([lambda process: process.die("crashed")] * 4)
    workers.of(device).die("crashed")
    wait_for_state(dispatcher, device, State.OUT)


def assert_set(event: threading.Event) -> None:
    assert event.wait(LIMIT_S)


def began(workers: FakeWorkers, device: int) -> list[Any]:
    return workers.of(device).model.began
