"""Numbers of a server as `server/numbers.py` gives them, made up."""

from __future__ import annotations

from typing import Any

PHASES = ("receive", "decode", "queue", "batch", "run", "encode", "send")
BOUNDS_MS = [1.0, 2.0, 4.0, 8.0]


def model(name: str = "digits", version: str = "1", **more: Any) -> dict[str, Any]:
    """One model; `success`, `failed` and so on are counters since its load."""
    return {
        "name": name,
        "version": version,
        "state": "READY",
        "reason": "",
        "share": 1.0,
        "weights_version": 0,
        "weights_updated": 0.0,
        "cache": {"hits": 0, "misses": 0, "bytes": 0},
        "slots": ["idle", "computing"],
        "queued": 0,
        "queue_size": 64,
        "running": 0,
        "success": 0,
        "rows": 0,
        "executions": 0,
        "last_inference": 0.0,
        "failed": {"deadline": 0, "cancelled": 0, "error": 0, "crash": 0},
        "rejected": {"queue_full": 0, "timeout": 0, "memory": 0, "not_ready": 0},
        "phases_ns": dict.fromkeys(PHASES, 0),
        "latency": {"bounds_ms": BOUNDS_MS, "counts": [0, 0, 0, 0, 0], "sum_ms": 0.0},
        "batches": {},
        **more,
    }


def numbers(*models: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The whole server."""
    return {
        "time": 1_790_000_000.0,
        "uptime_s": 12.5,
        "version": "2.0.0",
        "ready": True,
        "reason": "",
        "memory": {
            "rss_bytes": 300 << 20,
            "private_bytes": 100 << 20,
            "shared_bytes": 200 << 20,
            "weights_bytes": 150 << 20,
            "quota_bytes": 0,
        },
        "connections": {"http": 3, "grpc": 1},
        "flight_bytes": 0,
        "refused": {},
        "models": list(models),
        "slowest": [],
        "marks": [],
        **more,
    }
