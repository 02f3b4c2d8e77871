"""The protocol's statistics of models, for HTTP and gRPC: what perf_analyzer reads before and after
a measurement, and subtracts.

Every key is always there. Counters only grow while a version is served, and the rules that hold
between them (see meter.Counts) hold in every answer.
"""

from __future__ import annotations

from typing import Any

from mindspore_lite.server.errors import Kind, RequestError
from mindspore_lite.server.meter import BatchCount, Counts
from mindspore_lite.server.models import Models, ServedModel
from mindspore_lite.server.request import invalid


def model_statistics(models: Models, name: str = "", version: str = "") -> list[dict[str, Any]]:
    """The statistics of all versions that can be used: of one model, or of all.

    Raises:
        RequestError: INVALID if there is no such model or version, as Triton has it.
    """
    if not name:
        if version:
            raise invalid("a version needs the name of its model")
        return [_described(model) for model in sorted(models.all(), key=_place)]
    try:
        asked = models.find(name, version)
    except RequestError as exc:
        if exc.kind is Kind.NOT_FOUND:
            raise invalid(str(exc)) from exc
        raise
    if version:
        return [_described(asked)]
    return [_described(models.find(name, one)) for one in models.versions(name)]


def _place(model: ServedModel) -> tuple[str, int]:
    return model.name, int(model.version)


def _described(model: ServedModel) -> dict[str, Any]:
    counts = model.meter.counts()
    file_bytes = int(getattr(model.service, "file_bytes", 0))
    return {
        "name": model.name,
        "version": model.version,
        "last_inference": int(counts.last_s * 1000),
        "inference_count": counts.rows,
        "execution_count": counts.executions,
        "inference_stats": _requests(counts),
        "response_stats": {},
        "batch_stats": [_batch(rows, one) for rows, one in counts.batches.items()],
        "memory_usage": [{"type": "CPU", "id": 0, "byte_size": file_bytes}],
    }


def _requests(counts: Counts) -> dict[str, Any]:
    ran = counts.success - counts.hits
    return {
        "success": _duration(counts.success, counts.success_ns),
        "fail": _duration(counts.fail, counts.fail_ns),
        "queue": _duration(counts.success, counts.queue_ns),
        "compute_input": _duration(ran, counts.input_ns),
        "compute_infer": _duration(ran, counts.infer_ns),
        "compute_output": _duration(ran, counts.output_ns),
        "cache_hit": _duration(counts.hits, counts.hit_ns),
        "cache_miss": _duration(counts.misses, counts.miss_ns),
    }


def _batch(rows: int, batch: BatchCount) -> dict[str, Any]:
    return {
        "batch_size": rows,
        "compute_input": _duration(batch.runs, batch.input_ns),
        "compute_infer": _duration(batch.runs, batch.infer_ns),
        "compute_output": _duration(batch.runs, batch.output_ns),
    }


def _duration(count: int, ns: int) -> dict[str, int]:
    return {"count": count, "ns": ns}
