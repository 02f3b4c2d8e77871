"""statistics.py: what perf_analyzer subtracts, over HTTP and gRPC, and that it adds up."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.fake_engine import Gate, growing, wait_for
from support.grpc_served import Caller, fails, grpc_port, request
from support.served import FakeService, Wire, floats, get, identities, port_of, post

from mindspore_lite.server.core import Core
from mindspore_lite.server.grpc.inference_pb2 import (
    ModelStatisticsRequest,
    ModelStatisticsResponse,
)
from mindspore_lite.server.grpc.port import GrpcOptions, GrpcPort
from mindspore_lite.server.http.port import HttpOptions, HttpPort
from mindspore_lite.server.meter import FAILED, REJECTED
from mindspore_lite.server.models import ModelOptions, Models
from mindspore_lite.server.statistics import model_statistics
from mindspore_lite.serving.scheduler import Batching

DURATIONS = (
    "success", "fail", "queue", "compute_input", "compute_infer", "compute_output", "cache_hit",
    "cache_miss",
)  # fmt: skip
INFER, STATS = "/v2/models/m/infer", "/v2/models/m/stats"


@dataclass
class Served:
    """A model over both protocols."""

    models: Models
    http: HttpPort
    grpc: GrpcPort


@contextmanager
def served(service: FakeService, max_batch_size: int = 4) -> Iterator[Served]:
    """The fake as `m`, x float32 [-1, 2] becomes y."""
    models = Models()
    models.load("m", "1", lambda: service, ModelOptions(max_batch_size=max_batch_size))
    core = Core(models)
    http, rpc = HttpPort(core, HttpOptions(port=0)), GrpcPort(core, GrpcOptions())
    with ExitStack() as stack:
        stack.callback(models.close, 0.0)
        for port in (http, rpc):
            port.start()
            stack.callback(port.close)
        yield Served(models, http, rpc)


def body(rows: int) -> dict[str, Any]:
    data = [float(i) for i in range(rows * 2)]
    return {"inputs": [{"name": "x", "datatype": "FP32", "shape": [rows, 2], "data": data}]}


def message(rows: int) -> Any:
    return request("m", floats(*range(rows * 2)), (rows, 2), "x")


def stats(served: Served) -> dict[str, Any]:
    with Wire(served.http) as wire:
        (found,) = wire.ask(get(STATS)).json["model_stats"]
    return dict(found)


def count(found: dict[str, Any], name: str) -> int:
    return int(found["inference_stats"][name]["count"])


def ns(found: dict[str, Any], name: str) -> int:
    return int(found["inference_stats"][name]["ns"])


def check(found: dict[str, Any]) -> None:
    """The rules that every answer keeps."""
    assert set(found["inference_stats"]) == set(DURATIONS)
    batches = found["batch_stats"]
    for part in ("compute_input", "compute_infer", "compute_output"):
        assert sum(one[part]["count"] for one in batches) == found["execution_count"]
        assert ns(found, part) >= 0
        assert count(found, part) == count(found, "success") - count(found, "cache_hit")
    rows = sum(one["batch_size"] * one["compute_infer"]["count"] for one in batches)
    assert rows == found["inference_count"]
    assert count(found, "queue") == count(found, "success")
    parts = ("queue", "compute_input", "compute_infer", "compute_output")
    assert ns(found, "success") >= sum(ns(found, part) for part in parts)


def test_13_statistics_after_fourteen_requests() -> None:
    """14 requests, 39 rows, alone: sizes 1 (once), 2 (7 times), 4 (6 times)."""
    with served(FakeService()) as server, Wire(server.http) as wire, Caller(server.grpc) as caller:
        for number, rows in enumerate([1] + [2] * 7 + [4] * 6):
            if number % 2:
                assert wire.ask(post(INFER, body(rows))).status == 200
            else:
                caller.infer(message(rows))
        found = stats(server)
    check(found)
    assert (found["inference_count"], found["execution_count"]) == (39, 14)
    for name in ("success", "queue", "compute_input", "compute_infer", "compute_output"):
        assert count(found, name) == 14
    sizes = {one["batch_size"]: one["compute_infer"]["count"] for one in found["batch_stats"]}
    assert sizes == {1: 1, 2: 7, 4: 6}
    assert found["last_inference"] > 1_700_000_000_000


def test_14_requests_that_a_full_queue_refused_did_not_fail() -> None:
    gate = Gate()
    service = FakeService(gate, queue_size=2)
    with served(service) as server, ExitStack() as stack:
        wires = [stack.enter_context(Wire(server.http)) for _ in range(7)]
        for number, wire in enumerate(wires):
            wire.send(post(INFER, body(4)))
            if number < 3:  # one runs, two wait
                wait_for(lambda n=number: service.statistics().sent == n + 1)
        replies = [wire.reply() for wire in wires[3:]]
        assert [reply.status for reply in replies] == [503] * 4
        assert all("Exceeds maximum queue size" in reply.error for reply in replies)
        gate.open()
        assert [wire.reply().status for wire in wires[:3]] == [200] * 3
        found = stats(server)
        meter = server.models.find("m").meter.counts()
    check(found)
    assert (count(found, "success"), count(found, "fail")) == (3, 0)
    assert meter.rejected == (4, 0, 0, 0)


def test_every_key_is_there_before_the_first_request() -> None:
    with served(FakeService()) as server:
        found = stats(server)
        with Wire(server.http) as wire:
            assert "statistics" in wire.ask(get("/v2")).json["extensions"]
    check(found)
    assert set(found) == {
        "name", "version", "last_inference", "inference_count", "execution_count",
        "inference_stats", "response_stats", "batch_stats", "memory_usage",
    }  # fmt: skip
    assert found["last_inference"] == 0


def test_a_run_that_fails_counts_as_failed_and_a_bad_request_not() -> None:
    with served(FakeService(fails)) as server, Wire(server.http) as wire:
        assert wire.ask(post(INFER, body(1))).status == 500
        assert wire.ask(post(INFER, {"inputs": []})).status == 400
        assert wire.ask(post(INFER, body(5))).status == 400
        found = stats(server)
    assert count(found, "fail") == 1 and ns(found, "fail") > 0
    assert count(found, "success") == 0 and found["execution_count"] == 0


def test_deadlines_count_by_where_they_passed() -> None:
    """In the queue: rejected, which Triton counts as a failure. While it ran: failed."""
    gate = Gate()
    service = FakeService(gate)
    with served(service) as server, Wire(server.http) as wire, Wire(server.http) as other:
        meter = server.models.find("m").meter
        for limit_s in growing(0.02):  # until one has begun before its deadline
            short = {**body(1), "parameters": {"timeout": round(limit_s * 1e6)}}
            assert wire.ask(post(INFER, short)).status in (503, 504)
            if sum(meter.counts().failed):
                break
        late = meter.counts().rejected[REJECTED.index("timeout")]
        wire.send(post(INFER, body(1)))
        wait_for(lambda: service.statistics().running == 1)
        short = {**body(1), "parameters": {"timeout": 1000}}
        assert other.ask(post(INFER, short)).status in (503, 504)
        gate.open()
        assert wire.reply().status == 200
        found, counts = stats(server), meter.counts()
    check(found)
    assert dict(zip(FAILED, counts.failed, strict=True)) == {
        "deadline": 1, "cancelled": 0, "error": 0, "crash": 0,
    }  # fmt: skip
    assert counts.rejected[REJECTED.index("timeout")] == late + 1
    assert (count(found, "success"), count(found, "fail")) == (1, late + 2)
    marks = {mark["what"] for mark in server.http.core.marks.recent()}
    assert marks == {"deadline", "rejected"}


def test_a_client_that_hangs_up_cancelled_its_request() -> None:
    gate = Gate()
    with served(FakeService(gate)) as server:
        with Wire(server.http) as wire:
            wire.send(post(INFER, body(1)))
            wait_for(lambda: server.models.find("m").service.statistics().running == 1)
        meter = server.models.find("m").meter
        wait_for(lambda: meter.counts().failed[1] == 1)  # cancelled
        gate.open()
        check(stats(server))


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Models]:
    models = identities(tmp_path_factory.mktemp("models"))
    models.load("m", "2", FakeService)
    models.load("m", "10", FakeService)
    yield models
    models.close(None)


def names(found: Any) -> list[tuple[str, str]]:
    return [(one["name"], one["version"]) for one in found["model_stats"]]


def test_all_models_or_one_or_one_version(several: Models) -> None:
    every = [("id_batch", "1"), ("id_fp32", "3"), ("m", "2"), ("m", "10")]
    with port_of(several) as port, Wire(port) as wire:
        assert names(wire.ask(get("/v2/models/stats")).json) == every
        assert names(wire.ask(get("/v2/models/m/stats")).json) == [("m", "2"), ("m", "10")]
        assert names(wire.ask(get("/v2/models/m/versions/10/stats")).json) == [("m", "10")]


@pytest.mark.parametrize("path", ["/v2/models/none/stats", "/v2/models/m/versions/7/stats"])
def test_an_unknown_model_is_a_400(several: Models, path: str) -> None:
    with port_of(several) as port, Wire(port) as wire:
        reply = wire.ask(get(path))
    assert reply.status == 400 and "unknown model" in reply.error


def test_a_model_whose_reload_failed_is_counted_all_the_same(several: Models) -> None:
    before = model_statistics(several)
    for one in several.all():
        several.failed(one.name, one.version, "the new file is broken")
    assert model_statistics(several) == before != []
    for one in several.all():
        several.is_fine(one.name, one.version)


def test_the_same_over_grpc(several: Models) -> None:
    with grpc_port(several) as port, Caller(port) as caller:
        asked = ModelStatisticsRequest()
        all_ = ModelStatisticsResponse.FromString(caller.call("ModelStatistics", asked))
        assert [one.name for one in all_.model_stats] == ["id_batch", "id_fp32", "m", "m"]
        caller.infer(request())
        asked = ModelStatisticsRequest(name="id_fp32")
        (one,) = ModelStatisticsResponse.FromString(
            caller.call("ModelStatistics", asked)
        ).model_stats
        assert one.inference_stats.success.count == one.execution_count == 1
        assert one.batch_stats[0].compute_infer.ns == one.inference_stats.compute_infer.ns
        for bad in ({"name": "none"}, {"name": "m", "version": "7"}, {"version": "1"}):
            code, _ = caller.code("ModelStatistics", ModelStatisticsRequest(**bad))
            assert code == "INVALID_ARGUMENT"


# --- subtraction under load ---


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    loads=st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=12), min_size=1, max_size=6),
    most_rows=st.sampled_from([0, 2, 4, 8]),
    workers=st.integers(1, 2),
)
def test_any_two_snapshots_subtract(loads: list[list[int]], most_rows: int, workers: int) -> None:
    """Clients over both protocols at once, with batching; a reader takes snapshots meanwhile."""
    service = FakeService(workers=workers, batching=Batching(most_rows) if most_rows else None)
    with served(service) as server:
        snapshots: list[dict[str, Any]] = [stats(server)]
        ended = threading.Event()

        def read() -> None:
            while not ended.is_set():
                snapshots.extend(model_statistics(server.models))

        def send(number: int, sizes: list[int]) -> None:
            if number % 2:
                with Caller(server.grpc) as caller:
                    for rows in sizes:
                        caller.infer(message(rows))
                return
            with Wire(server.http) as wire:
                for rows in sizes:
                    assert wire.ask(post(INFER, body(rows))).status == 200

        reader = threading.Thread(target=read)
        senders = [threading.Thread(target=send, args=(i, sizes)) for i, sizes in enumerate(loads)]
        reader.start()
        for thread in senders:
            thread.start()
        for thread in senders:
            thread.join()
        last = stats(server)  # every client has its answers: they are all counted
        ended.set()
        reader.join()
        snapshots.append(last)
    assert count(last, "success") == sum(map(len, loads))
    assert last["inference_count"] == sum(map(sum, loads))
    assert last["execution_count"] == sum(service.statistics().batches.values())
    for before, after in pairwise(snapshots):
        check(after)
        assert after["inference_count"] >= before["inference_count"]
        assert after["execution_count"] >= before["execution_count"]
        for name in DURATIONS:
            assert count(after, name) >= count(before, name)
            assert ns(after, name) >= ns(before, name)
    json.dumps(last)
