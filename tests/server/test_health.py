"""health.py: a server that says how it is, whatever is killed, stopped, stuck or stalled."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.devices import has_ended, stop_process, worker_pids
from support.fake_engine import LIMIT_S, FakeClock, wait_for
from support.fake_engine import Gate as RunGate
from support.grpc_served import Caller
from support.models import ENDLESS, looping
from support.served import FakeService, Wire, get, identity, post

import mindspore_lite as mslite
from mindspore_lite.errors import EngineError
from mindspore_lite.remote.devices import process, supervisor, vitals
from mindspore_lite.server import health
from mindspore_lite.server.grpc import health_pb2, inference_pb2
from mindspore_lite.server.health import DEAD_S, STALLED_S, Health, ModelHealth
from mindspore_lite.server.models import Models
from mindspore_lite.server.server import Server
from mindspore_lite.serving import asleep
from mindspore_lite.serving.call import Call

# the process of a model: its interpreter hangs after a signal, its engine where n is HANGS
HANGS = 13
HOOKS = f"""
import ctypes, signal, threading
import mindspore_lite.engines.onnxruntime.session as session
import mindspore_lite.serving.asleep as asleep
asleep.ASLEEP_S, asleep.LONG_S = 0.5, 0.1
run = session.OrtSession.run
def runs(self, inputs, *more):
    return threading.Event().wait() if {HANGS} in inputs[0] else run(self, inputs, *more)
session.OrtSession.run = runs
signal.signal(signal.SIGUSR1, lambda *_: ctypes.PyDLL(None).pause())
"""


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is worth a long wait here."""
    monkeypatch.setattr(supervisor, "FIRST_BACK_OFF_S", 0.01)
    monkeypatch.setattr(supervisor, "LONGEST_BACK_OFF_S", 0.01)


# --- what is known of a model ---


class Patient:
    """A service whose faults the test makes."""

    def __init__(self) -> None:
        self.fault = ""
        self.fails: Exception | None = None
        self.probes = 0
        self.shapes: list[list[int]] | None = [[1]]
        self.may_end = threading.Event()
        self.may_end.set()

    def examine(self) -> str:
        return self.fault

    def warm_up_shapes(self) -> list[list[int]] | None:
        return self.shapes

    def warm_up(self, shapes: Sequence[Sequence[int]]) -> None:
        self.probes += 1
        assert self.may_end.wait(LIMIT_S)
        if self.fails is not None:
            raise self.fails


def looked(found: ModelHealth, reason: str) -> bool:
    found.look()
    return found.reason == reason


def test_a_model_is_ready_again_after_a_probe() -> None:
    patient = Patient()
    found = ModelHealth("net", patient)
    found.look()
    assert (found.reason, patient.probes) == ("", 0)
    patient.fault = "it is ill"
    found.look()
    assert found.reason == "it is ill"
    patient.fault = ""
    patient.may_end.clear()
    found.look()
    assert found.reason == "it is being probed again"
    patient.may_end.set()
    wait_for(lambda: looked(found, ""))
    assert patient.probes == 1


def test_a_probe_that_fails_is_made_again_later() -> None:
    patient = Patient()
    found = ModelHealth("net", patient)
    patient.fault, patient.fails = "it is ill", EngineError("no")
    found.look()
    patient.fault = ""
    wait_for(lambda: looked(found, "it failed its probe; the server's log says why"))
    for _ in range(5):
        found.look()
    assert patient.probes == 1
    patient.fails = None
    wait_for(lambda: looked(found, ""))
    assert patient.probes == 2


def test_a_fault_during_a_probe_counts() -> None:
    patient = Patient()
    found = ModelHealth("net", patient)
    patient.fault = "it is ill"
    found.look()
    patient.fault = ""
    patient.may_end.clear()
    found.look()
    patient.fault = "it is ill again"
    found.look()
    assert found.reason == "it is ill again"
    patient.fault = ""
    patient.may_end.set()
    wait_for(lambda: looked(found, ""))
    assert patient.probes == 2


def test_sizes_that_nobody_knows_are_not_probed() -> None:
    patient = Patient()
    patient.shapes = None
    found = ModelHealth("net", patient)
    patient.fault = "it is ill"
    found.look()
    patient.fault = ""
    wait_for(lambda: looked(found, ""))
    assert patient.probes == 0


# --- pulses ---


def test_what_does_not_beat_is_stalled_and_later_dead() -> None:
    clock = FakeClock()
    found = Health(clock.s)
    pulse, other = found.pulse("a"), found.pulse("b")
    clock.advance(STALLED_S + 0.1)
    other.beat()
    assert found.stalled() == ["a"] and found.is_live
    clock.advance(DEAD_S + 0.1)
    pulse.beat()
    assert found.stalled() == ["b"] and not found.is_live
    found.forget(other)
    assert not found.stalled() and found.is_live


def test_faults_are_found_within_a_second() -> None:
    """The promise of docs/operating.md, in the numbers that make it."""
    assert vitals.LOOK_S * (vitals.HANGS_AFTER + 1) <= 1.0
    assert asleep.LATE_S <= 1.0
    assert STALLED_S <= 3.0 < DEAD_S


# --- real servers ---


@contextmanager
def served(folder: Path, **more: Any) -> Iterator[Server]:
    """A model that runs as long as it is told, in a process of its own."""
    path = looping(folder / "loop.onnx")
    context = mslite.Context()
    context.parallel.workers_num = context.cpu.thread_num = 1
    more = {"isolation": "process", "http_port": 0, "context": context, **more}
    with Server({"loop": path}, **more) as server:
        yield server


def body(turns: int = 1) -> dict[str, Any]:
    n = {"name": "n", "datatype": "INT64", "shape": [], "data": [turns]}
    x = {"name": "x", "datatype": "FP32", "shape": [2], "data": [3, 3]}
    return {"inputs": [n, x]}


def reason(server: Server, name: str = "loop") -> str:
    return server.core.models.find(name).why_not_ready


def is_serving(caller: Caller) -> bool:
    """What grpc.health.v1 says."""
    found = caller.call("/grpc.health.v1.Health/Check")
    return bool(health_pb2.HealthCheckResponse.FromString(found).status == 1)


def is_live(caller: Caller) -> bool:
    return bool(inference_pb2.ServerLiveResponse.FromString(caller.call("ServerLive")).live)


def ready_status(server: Server) -> int:
    with Wire(server.http_port) as wire:
        return wire.ask(get("/v2/health/ready")).status


def recovers(server: Server, before: int) -> None:
    """Another process is there, and has passed its probe."""
    assert has_ended(before)
    wait_for(lambda: server.is_ready)
    assert worker_pids() != [before]
    assert ready_status(server) == 200


def test_a_killed_process_is_missed_until_the_next_has_passed_its_probe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[bool] = []
    told: list[str] = []
    with served(tmp_path) as server, Caller(server.grpc_port) as caller:
        server.core.health.told = lambda model, why: told.append(why)
        service = server.core.models.find("loop").service
        warm_up = service.warm_up
        monkeypatch.setattr(
            service, "warm_up", lambda shapes: seen.append(server.is_ready) or warm_up(shapes)
        )
        (pid,) = worker_pids()
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not server.is_ready)
        recovers(server, pid)
        assert seen == [False]  # one probe, before it was ready
        assert "its process is being started" in told and told[-1] == ""
        assert "model loop starts again" in caplog.text and "device 0" not in caplog.text
        assert is_serving(caller)


def test_a_stopped_process_makes_the_server_unready_until_it_goes_on(tmp_path: Path) -> None:
    with served(tmp_path) as server, Caller(server.grpc_port) as caller:
        (pid,) = worker_pids()
        stop_process(pid)
        wait_for(lambda: not server.is_ready)
        assert reason(server) == "its process is stopped"
        assert ready_status(server) == 503 and not is_serving(caller)
        with Wire(server.http_port) as wire:
            assert wire.ask(get("/v2/health/live")).status == 200
            reply = wire.ask(get("/v2/models/loop/ready"))
            assert reply.error == "model 'loop' is not ready: its process is stopped"
        os.kill(pid, signal.SIGCONT)
        wait_for(lambda: server.is_ready)
        assert worker_pids() == [pid]
        marks = [(one["what"], one["text"]) for one in server.core.marks.recent()]
        assert ("unready", "its process is stopped") in marks


def test_a_process_that_stays_stopped_is_ended_without_any_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vitals, "ENDED_AFTER", 2)
    with served(tmp_path) as server:
        (pid,) = worker_pids()
        stop_process(pid)
        recovers(server, pid)


@pytest.fixture
def hooked(monkeypatch: pytest.MonkeyPatch) -> None:
    program = process._PROGRAM.replace(
        "serve_descriptor(int", f"exec({HOOKS!r}); serve_descriptor(int"
    )
    monkeypatch.setattr(process, "_PROGRAM", program)


def test_a_process_whose_interpreter_hangs_is_noticed_and_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hooked: None
) -> None:
    with served(tmp_path) as server:
        (pid,) = worker_pids()
        os.kill(pid, signal.SIGUSR1)
        wait_for(lambda: not server.is_ready)
        assert "does not answer" in reason(server)
        watched = server.core.models.find("loop").service._vitals  # type: ignore[attr-defined]
        monkeypatch.setattr(vitals, "ENDED_AFTER", watched._asleep + 4)
        recovers(server, pid)


def test_an_engine_that_hangs_without_a_deadline_is_noticed_and_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hooked: None
) -> None:
    with served(tmp_path) as server, Wire(server.http_port) as wire:
        (pid,) = worker_pids()
        monkeypatch.setattr(vitals, "ENDED_AFTER", 4)
        reply = wire.ask(post("/v2/models/loop/infer", body(HANGS)))
        assert reply.status == 503
        recovers(server, pid)
        assert wire.ask(post("/v2/models/loop/infer", body())).status == 200


def test_a_busy_process_is_not_taken_for_one_that_hangs(tmp_path: Path) -> None:
    with served(tmp_path) as server, Wire(server.http_port) as wire:
        wire.send(post("/v2/models/loop/infer", body(int(ENDLESS))))
        service = server.core.models.find("loop").service
        wait_for(lambda: service.statistics().running == 1)
        looks = counted(server)
        wait_for(lambda: looks() > 4 * vitals.HANGS_AFTER)
        assert server.is_ready


def counted(server: Server, name: str = "loop") -> Callable[[], int]:
    """How often a model was looked at since."""
    found = server.core.models.find(name)
    look, count = found.health.look, []

    def counting() -> None:
        look()
        count.append(1)

    found.health.look = counting  # type: ignore[method-assign]
    return lambda: len(count)


def test_a_stalled_loop_is_told_by_the_other_port(tmp_path: Path) -> None:
    path = identity(tmp_path / "net.onnx")
    held = threading.Event()
    with mslite.Server([path], http_port=0) as server, Caller(server.grpc_port) as caller:
        assert is_serving(caller)
        loop = server._open["http"].loop  # type: ignore[attr-defined]
        loop.call_soon_threadsafe(held.wait)
        try:
            wait_for(lambda: not is_serving(caller))
            assert not server.is_ready
            assert server.core.health.stalled() == ["http"]
            assert is_live(caller)
        finally:
            held.set()
        wait_for(lambda: is_serving(caller))
        assert ready_status(server) == 200


def test_stalled_threads_of_grpc_are_told_over_http(tmp_path: Path) -> None:
    path = identity(tmp_path / "net.onnx")
    held = threading.Event()
    with mslite.Server([path], http_port=0) as server:
        probes = server._open["grpc"]._pools.probes  # type: ignore[attr-defined]
        try:
            for _ in range(probes.size):
                probes.submit(held.wait)
            wait_for(lambda: ready_status(server) == 503)
            assert server.core.health.stalled() == ["grpc"]
        finally:
            held.set()
        wait_for(lambda: ready_status(server) == 200)


def test_a_server_that_has_stalled_for_long_is_not_live(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = identity(tmp_path / "net.onnx")
    with (
        mslite.Server([path], http_port=0) as server,
        Caller(server.grpc_port) as caller,
        Wire(server.http_port) as wire,
    ):
        assert wire.ask(get("/v2/health/live")).status == 200
        monkeypatch.setattr(health, "DEAD_S", -1.0)
        reply = wire.ask(get("/v2/health/live"))
        assert (reply.status, reply.error) == (503, "the server has stalled; start it again")
        assert not is_live(caller)


def test_a_stuck_worker_makes_its_model_unready(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = RunGate(obeys=False)
    service = FakeService(gate)
    monkeypatch.setattr(service, "examine", service.pool.trouble, raising=False)
    models = Models()
    model = models.load("fake", "1", lambda: service)
    found = Health()
    found.watch(models.all)
    try:
        call = Call([np.zeros((1, 2), np.float32)], 0.01)
        service.submit_or_run(call, lambda found: None)
        gate.entered()
        wait_for(lambda: not model.is_ready)
        assert model.why_not_ready == "1 of 1 workers cannot end a run whose time is over"
        gate.open()
        wait_for(lambda: model.is_ready)
    finally:
        found.stop()
        gate.open()
        models.close(0.0)


def test_the_time_of_day_may_jump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(tmp_path) as server:
        looks = counted(server)
        now_s = time.time()
        for jump_s in (1e6, -1e6):
            monkeypatch.setattr(time, "time", lambda jump_s=jump_s: now_s + jump_s)
            seen = looks()
            wait_for(lambda seen=seen: looks() > seen + 3)
            assert server.is_ready and ready_status(server) == 200
        assert worker_pids()
