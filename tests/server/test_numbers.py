"""numbers.py: one record of everything that is counted."""

from __future__ import annotations

import json

from support.served import FakeService

from mindspore_lite.server.core import Core
from mindspore_lite.server.health import Health
from mindspore_lite.server.models import Models
from mindspore_lite.server.numbers import numbers

MODEL_KEYS = {
    "name", "version", "state", "reason", "share", "weights_version", "weights_updated", "cache",
    "slots", "queued", "queue_size", "running", "success", "rows", "executions", "last_inference",
    "failed", "rejected", "phases_ns", "latency", "batches",
}  # fmt: skip


def test_the_record_has_its_shape() -> None:
    models = Models()
    models.load("m", "1", FakeService)
    try:
        core = Core(models)
        core.marks.add("m", "1", "load")
        found = numbers(core)
    finally:
        models.close(None)
    assert set(found) == {
        "time", "uptime_s", "version", "ready", "reason", "memory", "connections",
        "flight_bytes", "refused", "models", "load_failures", "slowest", "marks",
    }  # fmt: skip
    assert set(found["memory"]) == {
        "rss_bytes", "private_bytes", "shared_bytes", "weights_bytes", "quota_bytes",
    }  # fmt: skip
    assert found["memory"]["rss_bytes"] > 1 << 20
    assert found["memory"]["private_bytes"] > 0
    assert found["connections"] == {"http": 0, "grpc": 0}
    assert found["ready"] is True and found["reason"] == ""
    (model,) = found["models"]
    assert set(model) == MODEL_KEYS
    assert model["slots"] == ["idle"] and model["queue_size"] == 100
    assert len(model["latency"]["counts"]) == len(model["latency"]["bounds_ms"]) + 1
    assert found["marks"][0]["what"] == "load"
    json.dumps(found)


def test_a_server_that_ends_or_starts_says_so() -> None:
    core = Core(is_ending=True)
    assert numbers(core)["reason"] == "it is ending"
    assert numbers(Core(is_starting=True))["reason"] == "it is starting"


def test_a_model_that_cannot_be_loaded_is_named() -> None:
    models = Models()
    models.load("m", "1", FakeService)
    models.failed("bad", "", "the file is broken")
    try:
        found = numbers(Core(models))
    finally:
        models.close(None)
    assert found["ready"] is False
    assert found["reason"] == "not ready: bad, which cannot be loaded"


def test_a_stalled_port_is_named() -> None:
    now_s = 0.0
    core = Core(health=Health(lambda: now_s))
    core.health.pulse("grpc")
    now_s = 5.0
    assert numbers(core)["reason"] == "stalled: grpc"
