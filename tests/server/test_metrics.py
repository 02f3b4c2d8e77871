"""metrics.py: the exposition, as prometheus_client reads it in both formats."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_open
from prometheus_client.parser import text_string_to_metric_families as read_text
from support.fake_engine import Gate, wait_for
from support.grpc_served import fails
from support.served import FakeService, Wire, get, identity, port_of, post

import mindspore_lite as mslite
from mindspore_lite.server.access import Gate as AccessGate
from mindspore_lite.server.core import Core
from mindspore_lite.server.families import ALL, COUNTER
from mindspore_lite.server.http.port import HttpPort
from mindspore_lite.server.limits import Limits
from mindspore_lite.server.metrics import metrics_parts, wants_openmetrics
from mindspore_lite.server.models import ModelOptions, Models
from mindspore_lite.server.numbers import numbers
from mindspore_lite.server.server import Server

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]
TOKEN = "0123456789abcdef"
BODY = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [3, 2], "data": [1] * 6}]}


def text(core: Core, openmetrics: bool = False) -> str:
    return b"".join(metrics_parts(core, openmetrics=openmetrics)).decode()


def samples(families: Any) -> Samples:
    found = {}
    for family in families:
        for sample in family.samples:
            # prometheus_client adds the ending to every counter of the plain format
            is_theirs = sample.name.startswith("nv_")
            name = sample.name.removesuffix("_total") if is_theirs else sample.name
            key = name, frozenset(sample.labels.items())
            assert key not in found, f"{key} is there twice"
            found[key] = sample.value
    return found


def of(found: Samples, name: str, **labels: str) -> float:
    return found[name, frozenset(labels.items())]


REASON = 'a "reason", 100 % of it \\ behind'


@pytest.fixture
def models() -> Iterator[Models]:
    found = Models()
    found.load("good", "1", FakeService, ModelOptions(max_batch_size=4))
    found.load("good", "2", FakeService, ModelOptions(max_batch_size=4))
    found.load("bad", "1", lambda: FakeService(fails))
    yield found
    found.close(0.0)


@pytest.fixture
def port(models: Models) -> Iterator[HttpPort]:
    models.failed("good", "77", REASON)
    with port_of(models) as found:
        yield found


@pytest.mark.parametrize("read", [read_text, read_open])
def test_a_load_that_failed_says_why(port: HttpPort, read: Any) -> None:
    found = samples(read(text(port.core, read is read_open)))
    assert of(found, "mslite_load_failure", model="good", version="77", reason=REASON) == 1


@pytest.mark.parametrize("read", [read_text, read_open])
@pytest.mark.parametrize("name", ["a%s", "100%", 'q"', "b\\", 'x{y="z"}'])
def test_a_folder_of_any_name_may_fail(models: Models, name: str, read: Any) -> None:
    models.failed(name, "", REASON)
    found = samples(read(text(Core(models), read is read_open)))
    assert of(found, "mslite_load_failure", model=name, version="", reason=REASON) == 1


@pytest.mark.parametrize("read", [read_text, read_open])
def test_the_exposition_says_what_was_counted(port: HttpPort, read: Any) -> None:
    with Wire(port) as wire:
        for _ in range(3):
            assert wire.ask(post("/v2/models/good/infer", BODY)).status == 200
        assert wire.ask(post("/v2/models/bad/infer", BODY)).status == 500
        assert wire.ask(get("/v2/models/none")).status == 404
        found = samples(read(text(port.core, read is read_open)))
    model = {"model": "good", "version": "2"}
    assert of(found, "nv_inference_request_success", **model) == 3
    assert of(found, "nv_inference_count", **model) == 9
    assert of(found, "nv_inference_exec_count", **model) == 3
    assert of(found, "nv_inference_request_success", model="good", version="1") == 0
    bad = {"model": "bad", "version": "1"}
    assert of(found, "nv_inference_request_failure", reason="BACKEND", **bad) == 1
    assert of(found, "mslite_requests_failed_total", reason="error", **bad) == 1
    assert of(found, "mslite_refused_total", status="500") == 1
    assert of(found, "mslite_refused_total", status="404") == 1
    assert of(found, "mslite_batch_rows_sum", **model) == 9
    assert of(found, "mslite_batch_rows_bucket", le="2.0", **model) == 0
    assert of(found, "mslite_batch_rows_bucket", le="4.0", **model) == 3
    assert of(found, "mslite_ready") == 1
    assert of(found, "mslite_connections", protocol="http") == 1
    assert of(found, "process_resident_memory_bytes") > 1 << 20


@pytest.mark.parametrize("openmetrics", [False, True])
def test_every_family_is_there_with_its_type_and_labels(port: HttpPort, openmetrics: bool) -> None:
    read = read_open if openmetrics else read_text
    with Wire(port) as wire:
        wire.ask(get("/v2/models/none"))
    found = {family.name: family for family in read(text(port.core, openmetrics))}
    assert len(found) == len(ALL)
    for family in ALL:
        is_ours = family.name.endswith("_total")
        name = family.name.removesuffix("_total") if openmetrics or is_ours else family.name
        one = found[name]
        kind = "unknown" if openmetrics and family.kind == COUNTER and not is_ours else family.kind
        assert one.type == kind, family.name
        assert one.documentation == family.help
        assert one.samples
        if family.label and family.values:
            assert {s.labels[family.label] for s in one.samples} == set(family.values)


def test_histograms_are_cumulative_and_end_with_all(port: HttpPort) -> None:
    with Wire(port) as wire:
        for _ in range(5):
            wire.ask(post("/v2/models/good/infer", BODY))
    names = {"mslite_request_duration_seconds", "mslite_queue_wait_seconds", "mslite_batch_rows"}
    for family in read_text(text(port.core)):
        if family.name in names:
            names.discard(family.name)
            of_model = [s for s in family.samples if s.labels.get("version") == "2"]
            buckets = [s.value for s in of_model if s.name.endswith("_bucket")]
            assert buckets == sorted(buckets)
            (count,) = (s.value for s in of_model if s.name.endswith("_count"))
            assert buckets[-1] == count == 5
    assert not names


def test_it_agrees_with_the_numbers(port: HttpPort) -> None:
    with Wire(port) as wire:
        for _ in range(4):
            wire.ask(post("/v2/models/good/infer", BODY))
    found, told = samples(read_text(text(port.core))), numbers(port.core)
    for model in told["models"]:
        labels = {"model": model["name"], "version": model["version"]}
        assert of(found, "nv_inference_request_success", **labels) == model["success"]
        assert of(found, "mslite_queue_size", **labels) == model["queue_size"]
        for reason, count in model["rejected"].items():
            assert of(found, "mslite_requests_rejected_total", reason=reason, **labels) == count
        for phase, ns in model["phases_ns"].items():
            value = of(found, "mslite_phase_seconds_total", phase=phase, **labels)
            assert value == pytest.approx(ns / 1e9, abs=1e-9)
        seconds = of(found, "mslite_request_duration_seconds_sum", **labels)
        assert seconds == pytest.approx(model["latency"]["sum_ms"] / 1e3)


def test_requests_for_what_is_not_served_add_no_series(port: HttpPort) -> None:
    with Wire(port) as wire:
        wire.ask(get("/v2/models/none"))
        before = set(samples(read_text(text(port.core))))
        for name in ("none", "other", "good%22", "a" * 100):
            for path in (f"/v2/models/{name}", f"/v2/models/{name}/versions/99/ready"):
                assert wire.ask(get(path)).status == 404
            assert wire.ask(post(f"/v2/models/{name}/infer", BODY)).status == 404
        assert wire.ask(post("/v2/models/good/versions/9/infer", BODY)).status == 404
        assert set(samples(read_text(text(port.core)))) == before


def test_the_series_of_an_unloaded_version_end(port: HttpPort) -> None:
    assert ("good", "1") in versions(port)
    port.core.models.unload("good", "1")
    assert versions(port) == {("good", "2"), ("bad", "1")}


def versions(port: HttpPort) -> set[tuple[str, str]]:
    found = samples(read_text(text(port.core)))
    labels = [dict(labels) for name, labels in found if name == "nv_inference_count"]
    return {(one["model"], one["version"]) for one in labels}


def test_a_server_without_models_has_metrics() -> None:
    for openmetrics, read in ((False, read_text), (True, read_open)):
        assert of(samples(read(text(Core(), openmetrics))), "mslite_ready") == 1


def test_a_body_without_room_is_a_rejection_of_its_model(models: Models) -> None:
    with port_of(models, Limits(flight_bytes=50)) as port, Wire(port) as wire:
        for name in ("good", "none"):
            assert wire.ask(post(f"/v2/models/{name}/infer", BODY)).status == 503
        found = samples(read_text(text(port.core)))
        assert [mark["text"] for mark in port.core.marks.recent()] == ["memory"]
    labels = {"model": "good", "version": "2"}
    assert of(found, "mslite_requests_rejected_total", reason="memory", **labels) == 1
    assert of(found, "mslite_refused_total", status="503") == 2


def test_workers_are_shown_at_work() -> None:
    gate = Gate()
    service = FakeService(gate, workers=2)
    models = Models()
    models.load("m", "1", lambda: service)
    try:
        with port_of(models) as port, Wire(port) as wire:
            wire.send(post("/v2/models/m/infer", BODY))
            wait_for(lambda: service.statistics().running == 1)
            found = samples(read_text(text(port.core)))
            gate.open()
            wire.reply()
    finally:
        gate.open()
        models.close(None)
    labels = {"model": "m", "version": "1"}
    assert of(found, "mslite_slots", state="computing", **labels) == 1
    assert of(found, "mslite_slots", state="idle", **labels) == 1
    assert of(found, "mslite_running_requests", **labels) == 1
    assert of(found, "mslite_flight_bytes") > 0


PROMETHEUS = (
    b"application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    b"application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;q=0.4,*/*;q=0.3"
)


@pytest.mark.parametrize(
    ("accept", "is_open"),
    [
        (None, False),
        (b"", False),
        (b"*/*", False),
        (b"text/plain", False),
        (b"application/openmetrics-text", True),
        (PROMETHEUS, True),
        (b"text/plain;version=0.0.4, application/openmetrics-text;q=0.5", False),
        (b"application/openmetrics-text; version=2.0.0, text/plain;q=0.1", False),
        (b"application/openmetrics-text;q=0", False),
        (b"application/openmetrics-text;q=x;;=,,", False),
    ],
)
def test_the_format_is_what_the_client_prefers(accept: bytes | None, is_open: bool) -> None:
    assert wants_openmetrics(accept) is is_open


@given(st.binary(max_size=100) | st.text(alphabet="aq=;,/*.0 ", max_size=60).map(str.encode))
def test_no_header_of_a_client_is_too_odd(accept: bytes) -> None:
    assert wants_openmetrics(accept) in (True, False)


def test_it_is_served_in_both_formats(port: HttpPort) -> None:
    with Wire(port) as wire:
        plain = wire.ask(get("/metrics"))
        other = wire.ask(get("/metrics", "Accept: application/openmetrics-text"))
    assert plain.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert other.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    assert other.body.endswith(b"# EOF\n") and b"# EOF" not in plain.body


def test_on_the_port_of_http_it_takes_a_token(models: Models) -> None:
    with port_of(models, gate=AccessGate([TOKEN])) as port, Wire(port) as wire:
        assert wire.ask(get("/metrics")).status == 401
        assert wire.ask(get("/metrics", f"Authorization: Bearer {TOKEN}")).status == 200


def test_a_port_of_its_own_is_open_and_offers_nothing_else(tmp_path: Path) -> None:
    context = mslite.Context()
    context.parallel.workers_num = context.cpu.thread_num = 1
    files = {"id": identity(tmp_path / "id.onnx")}
    with (
        Server(files, http_port=0, metrics_port=0, tokens=[TOKEN], context=context) as server,
        Wire(server.metrics_port) as wire,
    ):
        assert wire.ask(get("/metrics")).status == 200
        assert wire.ask(get("/v2/models")).status == 401
        assert wire.ask(get("/v2/models", f"Authorization: Bearer {TOKEN}")).status == 404
        with Wire(server.http_port) as other:
            assert other.ask(get("/metrics")).status == 401
    assert server.metrics_port == 0


def test_the_table_of_the_documentation_is_true(port: HttpPort) -> None:
    """docs/operating.md has a row for every family, and no other."""
    page = (Path(__file__).parents[2] / "docs/operating.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| ([^|]*)\| ([^|]+) \|$", page, re.MULTILINE)
    with Wire(port) as wire:
        wire.ask(get("/none"))
    found = {}
    for family in read_text(text(port.core)):
        is_theirs = family.name.startswith("nv_")
        name = family.name if family.type != COUNTER or is_theirs else f"{family.name}_total"
        labels = {label for sample in family.samples for label in sample.labels} - {"le"}
        found[name] = family.type, labels, family.documentation
    told = {
        name: (kind, set(re.findall(r"\w+", labels)), meaning)
        for name, kind, labels, meaning in rows
    }
    assert told == found


def test_a_port_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="metrics_port"):
        Server({"id": identity(tmp_path / "id.onnx")}, metrics_port=70_000)
