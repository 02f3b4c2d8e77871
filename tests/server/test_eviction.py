from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.fake_engine import Client, FakeClock, double, wait_for
from support.fake_engine import Gate as RunGate
from support.grpc_served import Caller, request
from support.served import FakeService, Wire, floats, get, identity, post

import mindspore_lite as mslite
from mindspore_lite.core.tensor_info import TensorInfo
from mindspore_lite.errors import (
    CancelledError,
    ClosedError,
    EngineError,
    LiteError,
    RequestTimeoutError,
)
from mindspore_lite.server.eviction import EvictableService, Evictor
from mindspore_lite.server.models import PoolLike
from mindspore_lite.serving.call import Call


class Closing(FakeService):
    """Says whether it was closed."""

    was_closed = False

    def close(self, drain_s: float | None) -> None:
        super().close(drain_s)
        self.was_closed = True


class Starts:
    """Makes services, which a test can keep waiting, or let fail."""

    def __init__(self) -> None:
        self.made: list[Closing] = []
        self.gate: RunGate | None = None  # that the next start waits at
        self.error: Exception | None = None
        self.compute: Any = double

    def __call__(self) -> PoolLike:
        if self.gate is not None:
            self.gate.wait(None)  # type: ignore[arg-type]
        if self.error is not None:
            raise self.error
        self.made.append(Closing(self.compute))
        return self.made[-1]  # type: ignore[return-value]


@pytest.fixture
def starts() -> Starts:
    return Starts()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def service(starts: Starts, clock: FakeClock) -> EvictableService:
    return EvictableService(starts, clock.s)


def call(timeout_s: float | None = None) -> Call:
    return Call([np.ones((1, 2), np.float32)], timeout_s)


def asked(service: EvictableService, timeout_s: float | None = None) -> list[list[float]]:
    (found,) = service.run(call(timeout_s))
    values: list[list[float]] = found.tolist()
    return values


def test_a_closed_model_is_started_by_the_next_request(
    service: EvictableService, starts: Starts
) -> None:
    assert asked(service) == [[2, 2]]
    for _ in range(3):
        assert service.evict()
        assert service.is_evicted and service.is_up
        assert not service.evict()
        assert service.statistics().done == 1
        assert service.occupancy().running == 0
        assert service.weights_version == 0 and service.pids == ()
        assert asked(service) == [[2, 2]]
        assert not service.is_evicted
    assert len(starts.made) == 4
    service.close(None)


def test_requests_that_come_meanwhile_wait_for_one_start(
    service: EvictableService, starts: Starts
) -> None:
    service.evict()
    starts.gate = RunGate(obeys=False)
    found: list[Any] = []
    for _ in range(20):
        service.submit_or_run(call(), found.append)
    clients = [Client(lambda: asked(service, 60.0)) for _ in range(5)]
    starts.gate.entered()
    wait_for(lambda: service.occupancy().queued == 25)
    starts.gate.open()
    assert [one.ended().result for one in clients] == [[[2, 2]]] * 5
    wait_for(lambda: len(found) == 20)
    assert len(starts.made) == 2
    wait_for(service.evict)  # nobody uses it any more
    service.close(None)


def test_a_deadline_passes_while_the_model_is_started(
    service: EvictableService, starts: Starts
) -> None:
    service.evict()
    starts.gate = RunGate(obeys=False)
    with pytest.raises(RequestTimeoutError, match="being started") as info:
        asked(service, 0.02)
    assert info.value.was_waiting
    starts.gate.open()
    assert asked(service, 60.0) == [[2, 2]]
    service.close(None)


def test_a_request_that_waits_can_be_cancelled(service: EvictableService, starts: Starts) -> None:
    service.evict()
    starts.gate = RunGate(obeys=False)
    found: list[Any] = []
    cancel = service.submit_or_run(call(), found.append)
    assert cancel() and not cancel()
    cancels: list[Any] = []
    waits = call()
    waits.known = cancels.append
    client = Client(lambda: service.run(waits))
    wait_for(lambda: len(cancels) == 1)
    cancels[0]()
    assert isinstance(client.ended().error, CancelledError)
    starts.gate.open()
    assert asked(service) == [[2, 2]]
    assert found == []
    service.close(None)


def test_a_start_that_fails_fails_the_requests_and_the_next_tries_again(
    service: EvictableService, starts: Starts
) -> None:
    service.evict()
    for error in (ValueError("a bug"), EngineError("no memory")):
        starts.error = error
        with pytest.raises(type(error), match=str(error)):
            asked(service)
    assert not service.is_up
    with pytest.raises(LiteError, match="cannot be started"):
        service.update_weights([])
    starts.error = None
    assert asked(service) == [[2, 2]]
    assert service.is_up
    service.close(None)


def test_another_model_in_the_same_file_is_refused(
    service: EvictableService, starts: Starts, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.evict()
    other = (TensorInfo("z", np.dtype(np.int8), (1,)),)
    monkeypatch.setattr(service, "inputs", other)
    with pytest.raises(LiteError, match="file has changed"):
        asked(service)
    service.close(None)


def test_it_is_not_closed_while_it_is_used(starts: Starts, clock: FakeClock) -> None:
    gate = RunGate()
    starts.compute = gate
    service = EvictableService(starts, clock.s)
    client = Client(lambda: asked(service))
    gate.entered()
    assert not service.evict()
    gate.open()
    client.ended()
    clock.advance(4)
    assert not service.evict(idle_s=5)
    clock.advance(1)
    assert service.evict(idle_s=5)
    service.close(None)


def test_new_weights_are_never_lost(service: EvictableService) -> None:
    service.evict()
    service.update_weights([])  # starts it
    assert service.weights_version == 1
    assert not service.evict()
    service.close(None)


def test_the_end_meets_a_start(service: EvictableService, starts: Starts) -> None:
    service.evict()
    starts.gate = RunGate(obeys=False)
    found: list[Any] = []
    service.submit_or_run(call(), found.append)
    starts.gate.entered()
    service.close(0.0)
    assert isinstance(found[0], ClosedError)
    starts.gate.open()
    wait_for(lambda: len(starts.made) == 2 and starts.made[1].was_closed)
    with pytest.raises(ClosedError):
        asked(service)
    assert not service.evict()


def test_the_model_that_was_used_least_recently_goes_first(clock: FakeClock) -> None:
    services = []
    for _ in range(4):
        services.append(EvictableService(Starts(), clock.s))
        clock.advance(1)
    asked(services[0])
    memory, marks = [900], []
    names = [(f"m{n}", "1", one) for n, one in enumerate(services)]

    def trimmed() -> None:
        memory[0] -= 200

    evictor = Evictor(
        lambda: names, lambda: memory[0], 600, lambda *mark: marks.append(mark), trimmed
    )
    clock.advance(10)
    assert evictor.look() == 2
    assert [one.is_evicted for one in services] == [False, True, True, False]
    assert [mark[:3] for mark in marks] == [("m1", "1", "unload"), ("m2", "1", "unload")]
    assert evictor.look() == 0
    memory[0] = 10_000
    asked(services[3])
    assert evictor.look() == 1  # the other is in use
    for one in services:
        one.close(None)


# --- served ---


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    for name in ("often", "seldom"):
        folder = tmp_path / name / "1"
        folder.mkdir(parents=True)
        identity(folder / "model.onnx")
        (tmp_path / name / "model.ini").write_text("[serve]\nevictable = true\n")
    return tmp_path


def test_models_of_a_server_come_back_over_http_and_grpc(repository: Path) -> None:
    tensor = {"name": "IN", "datatype": "FP32", "shape": [2], "data": [1, 2]}
    infer = post("/v2/models/seldom/infer", {"inputs": [tensor]})
    with (
        mslite.Server(repository, http_port=0, memory_quota=1, cache={"often": 1000}) as server,
        Wire(server.http_port) as wire,
        Caller(server.grpc_port) as caller,
    ):
        services = {name: one for one, (name, _) in server._control._loading.evictable.items()}
        for ask in range(2):
            wait_for(lambda: all(one.evict() or one.is_evicted for one in services.values()))
            assert server.is_ready and server.core.models.find("seldom").is_ready
            assert wire.ask(get("/v2/models/seldom/ready")).status == 200
            assert wire.ask(get("/v2/models/seldom")).json["inputs"][0]["name"] == "IN"
            if ask:
                assert wire.ask(infer).json["outputs"][0]["data"] == [1, 2]
            else:
                answer = caller.infer(request("seldom"))
                assert list(answer.raw_output_contents) == [floats(1, 2)]
            assert wire.ask(get("/v2/models/stats")).status == 200
            assert wire.ask(get("/metrics")).status == 200
            assert not services["seldom"].is_evicted
        assert "memory_quota_bytes 1\n" in wire.ask(get("/metrics")).body.decode()


def test_nothing_is_evicted_unless_it_is_asked_for(repository: Path) -> None:
    with mslite.Server(repository, http_port=0, grpc=False) as server:
        assert not server._control._loading.evictable
    with pytest.raises(ValueError, match="memory_quota"):
        mslite.Server(repository, memory_quota=-1)
