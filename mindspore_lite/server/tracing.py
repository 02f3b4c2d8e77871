"""Spans of requests for OpenTelemetry: one of the server, and one for each phase below it.

    tracing = tracing_of(None)          as the OTEL_ variables say; None if they ask for nothing
    tracing.add(times, status, "http")  when a request is over
    tracing.close()

Nothing of OpenTelemetry is imported unless it is asked for. Spans are made afterwards, from the
times of a request, on a thread of our own: a request pays for one entry in a queue. The queue is
bounded, and so is that of the exporter: when the collector is slow or down, spans are dropped.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from mindspore_lite.core.environment import variables
from mindspore_lite.server.meter import RequestTimes
from mindspore_lite.version import __version__

_LOG = logging.getLogger(__name__)
_MOST_WAITING = 2048  # requests whose spans are not made yet; as many as the exporter's queue has
_CLOSE_S = 3.0  # to send what is left at the end; guess
_ERROR = 500  # the lowest status that is the server's fault
_NAMES = {
    "http": "POST /v2/models/{model}/infer",
    "grpc": "inference.GRPCInferenceService/ModelInfer",
}
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


class _Ended(NamedTuple):
    times: RequestTimes
    status: int
    protocol: str
    offset_ns: int  # of the wall clock against the monotonic one


class Tracing:
    """Makes spans. `add` may be called from any thread.

    Args:
        provider: Of tracers, from OpenTelemetry's SDK.
        owns: Whether to shut it down at the end.
    """

    def __init__(self, provider: Any, *, owns: bool = False) -> None:
        self._provider, self._owns = provider, owns
        self._tracer = provider.get_tracer("mslite", __version__)
        self._queue: queue.Queue[_Ended | None] = queue.Queue(_MOST_WAITING)
        self.dropped = 0
        self._thread = threading.Thread(target=self._work, name="mslite-traces", daemon=True)
        self._thread.start()

    def add(self, times: RequestTimes, status: int, protocol: str) -> None:
        """Make the spans of a request that is over, soon."""
        offset_ns = time.time_ns() - time.monotonic_ns()
        try:
            self._queue.put_nowait(_Ended(times, status, protocol, offset_ns))
        except queue.Full:
            self.dropped += 1

    def close(self) -> None:
        """Make and send what is left, within a few seconds."""
        try:
            self._queue.put(None, timeout=_CLOSE_S)
        except queue.Full:
            return
        self._thread.join(_CLOSE_S)

    def _work(self) -> None:
        while (ended := self._queue.get()) is not None:
            try:
                self._make(ended)
            except Exception:  # noqa: BLE001 - foreign code must not end the thread
                _LOG.warning("the spans of a request could not be made", exc_info=True)
        if self._owns:
            self._provider.shutdown()  # may wait for a collector; this is a daemon's thread

    def _make(self, ended: _Ended) -> None:
        from opentelemetry.trace import SpanKind, Status, StatusCode, set_span_in_context

        times, offset_ns = ended.times, ended.offset_ns
        span = self._tracer.start_span(
            _NAMES[ended.protocol],
            context=_parent(times),
            kind=SpanKind.SERVER,
            attributes=_attributes(ended),
            start_time=times.began_ns + offset_ns,
        )
        if span.is_recording():
            below = set_span_in_context(span)
            for name, start_ns, end_ns in spans_of(times):
                child = self._tracer.start_span(name, below, start_time=start_ns + offset_ns)
                child.end(end_ns + offset_ns)
            if ended.status >= _ERROR:
                span.set_status(Status(StatusCode.ERROR, times.reason))
        span.end((times.sent_ns or times.encoded_ns) + offset_ns)


def spans_of(times: RequestTimes) -> Iterator[tuple[str, int, int]]:
    """Name, start and end of each phase that a request came to, by time.monotonic_ns().

    `batch` is all of the time that a worker had it, with `run` inside.
    """
    yield "receive", times.began_ns, times.received_ns
    end_ns = times.encoded_ns
    run = times.run
    if not times.decoded_ns:
        yield "decode", times.received_ns, end_ns
    else:
        yield "decode", times.received_ns, times.decoded_ns
        if run is not None:
            yield "queue", times.decoded_ns, run.claimed_ns
            yield "batch", run.claimed_ns, run.ended_ns
            yield "run", run.began_ns, run.ran_ns
            yield "encode", run.ended_ns, end_ns
        elif times.hit_ns:
            yield "encode", times.decoded_ns, end_ns
        else:
            yield "queue", times.decoded_ns, end_ns
    if times.sent_ns:
        yield "send", end_ns, times.sent_ns


def tracing_of(provider: Any = None) -> Tracing | None:
    """Tracing by a provider, or by one that the OTEL_ variables describe; None if they do not."""
    if provider is not None:
        return Tracing(provider)
    if not is_wanted(variables):
        return None
    try:
        return Tracing(_provider(variables), owns=True)
    except ImportError:
        _LOG.warning(
            "the environment asks for traces (OTEL_...), and OpenTelemetry is not installed: "
            "pip install 'mslite[otel]'"
        )
        return None


def is_wanted(environment: Mapping[str, str]) -> bool:
    """Whether the OTEL_ variables ask for traces."""
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    exporter = environment.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    if exporter:
        if exporter not in ("otlp", "none"):
            _LOG.warning("OTEL_TRACES_EXPORTER is %r; only otlp is known here", exporter)
        return exporter == "otlp"
    return any(environment.get(name) for name in _ENDPOINTS)


def _provider(environment: Mapping[str, str]) -> Any:
    """A provider that sends to a collector; the SDK reads all other variables itself."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    told = environment.get("OTEL_RESOURCE_ATTRIBUTES", "")
    is_named = "OTEL_SERVICE_NAME" in environment or "service.name=" in told
    resource = Resource.create({} if is_named else {"service.name": "mslite"})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


def _parent(times: RequestTimes) -> Any:
    """The caller's span as the SDK wants it; an empty context without one."""
    from opentelemetry.context import Context
    from opentelemetry.trace import (
        NonRecordingSpan,
        SpanContext,
        TraceFlags,
        TraceState,
        set_span_in_context,
    )

    parent = times.parent
    if parent is None:
        return Context()
    state = TraceState.from_header([parent.state]) if parent.state else TraceState()
    caller = SpanContext(
        int(parent.trace_id, 16), int(parent.span_id, 16), True, TraceFlags(parent.flags), state
    )
    return set_span_in_context(NonRecordingSpan(caller), Context())


def _attributes(ended: _Ended) -> dict[str, str | int]:
    times = ended.times
    found: dict[str, str | int] = {}
    if ended.protocol == "http":
        found["http.request.method"] = "POST"
        found["http.response.status_code"] = ended.status
    else:
        found["rpc.system"] = "grpc"
        found["rpc.service"], _, found["rpc.method"] = _NAMES["grpc"].partition("/")
    if times.model is not None:
        found["mslite.model.name"] = times.model.name
        found["mslite.model.version"] = times.model.version
    if times.run is not None:
        found["mslite.batch.rows"] = times.run.rows
    if times.id:
        found["mslite.request.id"] = times.id
    if times.reason:
        found["error.type"] = times.reason
    return found
