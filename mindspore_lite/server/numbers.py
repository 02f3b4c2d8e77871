"""Everything that is counted, as one JSON-able record: what /metrics, statistics, the dashboard and
`mslite status` are made of. Counters only grow; whoever wants rates subtracts.

Names and versions are those of the index of models, and nothing that a client sent is a key.
"""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Any

from mindspore_lite.server.core import Core
from mindspore_lite.server.meter import BOUNDS_MS, FAILED, PHASES, REJECTED, Counts
from mindspore_lite.server.models import READY, UNAVAILABLE, ServedModel
from mindspore_lite.server.process_memory import memory_of
from mindspore_lite.version import __version__


def numbers(core: Core) -> dict[str, Any]:
    """The numbers of a server at this moment. Costs about 20 us for each version of a model."""
    models = core.models.all()
    is_ready = core.is_ready
    return {
        "time": round(time.time(), 3),
        "uptime_s": round(time.monotonic() - core.started_s, 3),
        "version": __version__,
        "ready": is_ready,
        "reason": "" if is_ready else _why_not(core, models),
        "memory": _memory(core, models),
        "connections": connections(core),
        "flight_bytes": core.flight.bytes,
        "refused": {str(k): v for k, v in core.observer.refused.counts().items()},
        "models": [_model(core, model) for model in models],
        "load_failures": [asdict(one) for one in core.models.failures()],
        "slowest": core.observer.slowest.recent(),
        "marks": core.marks.recent(),
    }


def connections(core: Core) -> dict[str, int]:
    """How many are open, by protocol; of gRPC, calls."""
    open_ones = {name: count() for name, count in list(core.connections.items())}
    return {"http": open_ones.get("http", 0), "grpc": open_ones.get("grpc", 0)}


def state_of(model: ServedModel) -> str:
    """In which state of its life a version is."""
    return UNAVAILABLE if model.state == READY and not model.is_ready else model.state


def weights_bytes(models: list[ServedModel]) -> int:
    """Of all model files that are loaded: what could be shared."""
    return sum(int(getattr(model.service, "file_bytes", 0)) for model in models)


def cache_bytes(model: ServedModel) -> int:
    """What its response cache holds."""
    return model.cache_bytes


def process_ids(models: list[ServedModel]) -> list[int | str]:
    """Of this process, and of those that models have of their own."""
    return ["self", *(pid for model in models for pid in getattr(model.service, "pids", ()))]


def _memory(core: Core, models: list[ServedModel]) -> dict[str, int]:
    memory = memory_of(process_ids(models))
    return {
        "rss_bytes": memory.rss_bytes,
        "private_bytes": memory.private_bytes,
        "shared_bytes": memory.shared_bytes,
        "weights_bytes": weights_bytes(models),
        "quota_bytes": core.quota_bytes,
    }


def _why_not(core: Core, models: list[ServedModel]) -> str:
    """Why the server is not ready."""
    if core.is_ending:
        return "it is ending"
    if core.is_starting:
        return "it is starting"
    stalled = core.health.stalled()
    if stalled:
        return f"stalled: {', '.join(stalled)}"
    unready = [f"{model.name} version {model.version}" for model in models if not model.is_ready]
    served = {model.name for model in models}
    failed = {one.name for one in core.models.failures()} - served
    unready += [f"{name}, which cannot be loaded" for name in sorted(failed)]
    return f"not ready: {', '.join(unready)}" if unready else "no model is ready"


def _model(core: Core, model: ServedModel) -> dict[str, Any]:
    counts, now = model.meter.counts(), model.service.occupancy()
    return {
        "name": model.name,
        "version": model.version,
        "state": state_of(model),
        "reason": model.why_not_ready or model.reason,
        "share": model.config.share,
        "weights_version": model.weights_version,
        "weights_updated": core.marks.weights_updated(model.name, model.version),
        "cache": {"hits": counts.hits, "misses": counts.misses, "bytes": cache_bytes(model)},
        "slots": list(now.slots),
        "queued": now.queued,
        "queue_size": now.queue_size,
        "running": now.running,
        **_counted(counts),
    }


def _counted(counts: Counts) -> dict[str, Any]:
    return {
        "success": counts.success,
        "rows": counts.rows,
        "executions": counts.executions,
        "last_inference": round(counts.last_s, 3),
        "failed": dict(zip(FAILED, counts.failed, strict=True)),
        "rejected": dict(zip(REJECTED, counts.rejected, strict=True)),
        "phases_ns": dict(zip(PHASES, counts.phases_ns, strict=True)),
        "latency": {
            "bounds_ms": list(BOUNDS_MS),
            "counts": list(counts.latency),
            "sum_ms": counts.success_ns / 1e6,
        },
        "batches": {str(rows): batch.runs for rows, batch in counts.batches.items()},
    }
