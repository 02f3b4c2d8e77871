"""tracing.py: spans of requests, as OpenTelemetry's SDK exports them."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from support.grpc_served import Caller, fails, grpc_port, request
from support.served import FakeService, Wire, floats, identity, port_of, post

import mindspore_lite as mslite
from mindspore_lite.server import tracing as module
from mindspore_lite.server.meter import RequestTimes
from mindspore_lite.server.models import Models
from mindspore_lite.server.server import Server
from mindspore_lite.server.tracing import Tracing, is_wanted, tracing_of
from mindspore_lite.serving.timing import Timing

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{SPAN}-01"
PHASES = ["receive", "decode", "queue", "batch", "run", "encode", "send"]
BODY = {"id": "7", "inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}]}


class Traced:
    """Spans of a model `m`, and of `bad`, which fails."""

    def __init__(self) -> None:
        self.models = Models()
        self.models.load("m", "1", FakeService)
        self.models.load("bad", "1", lambda: FakeService(fails))
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracing = Tracing(self.provider)

    def spans(self) -> list[ReadableSpan]:
        self.tracing.close()
        return list(self.exporter.get_finished_spans())

    def over_http(self, name: str, *headers: str) -> int:
        with port_of(self.models) as port, Wire(port) as wire:
            port.core.observer.tracing = self.tracing
            return wire.ask(post(f"/v2/models/{name}/infer", BODY, *headers)).status


@pytest.fixture
def traced() -> Iterator[Traced]:
    found = Traced()
    yield found
    found.models.close(0.0)
    found.provider.shutdown()


def parts(spans: list[ReadableSpan]) -> tuple[ReadableSpan, list[ReadableSpan]]:
    """The span of the server, and those below it by time."""
    (server,) = (span for span in spans if span.kind is SpanKind.SERVER)
    below = [span for span in spans if span is not server]
    assert server.context is not None
    for span in below:
        assert span.parent is not None and span.parent.span_id == server.context.span_id
        assert span.context is not None and span.context.trace_id == server.context.trace_id
    return server, below


def test_the_phases_are_children_of_one_server_span(traced: Traced) -> None:
    assert traced.over_http("m", f"traceparent: {PARENT}", "tracestate: a=1") == 200
    server, below = parts(traced.spans())
    assert server.context is not None and server.parent is not None
    assert f"{server.context.trace_id:032x}" == TRACE
    assert f"{server.parent.span_id:016x}" == SPAN and server.parent.is_remote
    assert server.context.trace_state.get("a") == "1"
    assert [span.name for span in below] == PHASES
    assert server.attributes is not None
    assert server.attributes["mslite.model.name"] == "m"
    assert server.attributes["mslite.request.id"] == "7"
    assert server.attributes["http.response.status_code"] == 200
    times = {span.name: (span.start_time or 0, span.end_time or 0) for span in below}
    assert all(start <= end for start, end in times.values())
    for before, after in (("receive", "decode"), ("decode", "queue"), ("queue", "batch")):
        assert times[before][1] == times[after][0]
    assert times["batch"][0] <= times["run"][0] <= times["run"][1] <= times["batch"][1]
    assert times["batch"][1] == times["encode"][0]
    assert (server.start_time, server.end_time) == (times["receive"][0], times["send"][1])


def test_the_same_over_grpc(traced: Traced) -> None:
    message = request("m", floats(1, 2), (1, 2), "x")
    with grpc_port(traced.models) as port, Caller(port) as caller:
        port._core.observer.tracing = traced.tracing
        caller.infer(message, metadata=(("traceparent", PARENT),))
    server, below = parts(traced.spans())
    assert server.context is not None and f"{server.context.trace_id:032x}" == TRACE
    assert [span.name for span in below] == PHASES
    assert server.attributes is not None and server.attributes["rpc.method"] == "ModelInfer"


def test_without_a_parent_a_trace_begins(traced: Traced) -> None:
    assert traced.over_http("m") == 200
    server, _ = parts(traced.spans())
    assert server.parent is None


def test_a_caller_that_does_not_sample_is_obeyed(traced: Traced) -> None:
    assert traced.over_http("m", f"traceparent: {PARENT[:-1]}0") == 200
    assert traced.spans() == []


def test_a_header_that_is_not_valid_begins_a_trace(traced: Traced) -> None:
    assert traced.over_http("m", "traceparent: 00-xyz") == 200
    server, _ = parts(traced.spans())
    assert server.parent is None


def test_a_run_that_fails_is_an_error(traced: Traced) -> None:
    assert traced.over_http("bad") == 500
    server, below = parts(traced.spans())
    assert server.status.status_code is StatusCode.ERROR
    assert server.attributes is not None and server.attributes["error.type"] == "error"
    assert "run" in [span.name for span in below]


def test_requests_that_were_wrong_have_the_phases_that_they_came_to(traced: Traced) -> None:
    with port_of(traced.models) as port, Wire(port) as wire:
        port.core.observer.tracing = traced.tracing
        assert wire.ask(post("/v2/models/m/infer", {"inputs": []})).status == 400
    server, below = parts(traced.spans())
    assert [span.name for span in below] == ["receive", "decode", "send"]
    assert server.status.status_code is StatusCode.UNSET


class Slow(InMemorySpanExporter):
    """A collector that does not answer until it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on = threading.Event()

    def export(self, spans: Any) -> Any:
        self.go_on.wait()
        return super().export(spans)


def test_a_collector_that_hangs_delays_no_request(
    traced: Traced, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST_WAITING", 4)
    monkeypatch.setattr(module, "_CLOSE_S", 0.01)
    slow, provider = Slow(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(slow))
    tracing = Tracing(provider)
    with port_of(traced.models) as port, Wire(port) as wire:
        port.core.observer.tracing = tracing
        for _ in range(20):
            assert wire.ask(post("/v2/models/m/infer", BODY)).status == 200
    assert tracing.dropped >= 15  # of 20: four wait, and one may be with the exporter
    tracing.close()
    slow.go_on.set()
    provider.shutdown()


def test_a_collector_that_is_down_costs_nothing_but_its_spans(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
        monkeypatch.setattr(module, "_CLOSE_S", 0.01)
        context = mslite.Context()
        context.parallel.workers_num = context.cpu.thread_num = 1
        body = {"inputs": [{"name": "IN", "datatype": "FP32", "shape": [1], "data": [1]}]}
        files = {"m": identity(tmp_path / "m.onnx")}
        with Server(files, http_port=0, context=context) as server, Wire(server.http_port) as wire:
            assert server.core.observer.tracing is not None
            assert wire.ask(post("/v2/models/m/infer", body)).status == 200
    assert server.core.observer.tracing is None


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/v1/traces"}, True),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, True),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c"}, False),
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, False),
        ({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_SDK_DISABLED": "TRUE"}, False),
    ],
)
def test_the_usual_variables_decide(environment: dict[str, str], wanted: bool) -> None:
    assert is_wanted(environment) is wanted


def test_without_the_extra_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "otlp")
    for name in ("opentelemetry.sdk.trace", "opentelemetry.sdk.resources"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http", None)
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    assert tracing_of(None) is None
    assert "pip install 'mslite[otel]'" in caplog.text


def test_without_tracing_nothing_of_it_is_imported() -> None:
    code = (
        "import sys\n"
        "from mindspore_lite.server.core import Core\n"
        "import mindspore_lite.server.http.port, mindspore_lite.server.grpc.port\n"
        "assert not [name for name in sys.modules if name.startswith('opentelemetry')]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_request_that_a_cache_answered_has_no_run() -> None:
    times = RequestTimes(1, 2)
    times.decoded_ns, times.encoded_ns, times.sent_ns = 3, 5, 6
    times.timing = Timing()
    times.timing.hit_ns = 1
    assert [name for name, _, _ in module.spans_of(times)] == [
        "receive", "decode", "encode", "send",
    ]  # fmt: skip
