"""A result of `mslite bench` as the page gets it: every part filled, by formulas, not measured."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

from mindspore_lite.bench.looks import OURS

PEERS = ("onnxruntime", "openvino", "torch")
SPEED = {OURS: 1.0, "onnxruntime": 0.9, "openvino": 0.97, "torch": 0.45}


def histogram(p50: float, p99: float, requests: int) -> dict[str, list[float]]:
    """60 bins by factors around p50, steep below it and with a tail above."""
    edges = [p50 / 3 * (p99 * 12 / p50) ** (i / 60) for i in range(61)]
    width = math.log(p99 / p50) / 2.3
    counts = []
    for low, high in pairwise(edges):
        away = math.log(math.sqrt(low * high) / p50)
        counts.append(round(requests / 8 * math.exp(-((away / (width if away > 0 else 0.2)) ** 2))))
    return {"edges_ms": edges, "counts": [float(count) for count in counts]}


def run(side: str, clients: int | None = None, rate: float | None = None) -> dict[str, Any]:
    """One side under one load, twenty moments long."""
    crowd = clients or (rate or 0) / 100
    throughput = min(400 * SPEED[side] * min(crowd, 3 + crowd / 16), rate or math.inf)
    p50 = crowd / throughput * 1e3 * 0.9
    p99 = p50 * (1.6 + crowd / 16) / SPEED[side]
    requests = round(throughput * 10)
    wave = [1 + 0.12 * math.sin(i * 1.3 + crowd) * math.cos(i * 0.7) for i in range(20)]
    return {
        "side": side,
        "clients": clients,
        "rate": rate,
        "throughput": throughput,
        "latency_ms": {
            "mean": p50 * 1.1, "p50": p50, "p90": p50 * 1.3, "p99": p99, "p99_9": p99 * 1.6,
            "max": p99 * 2.4,
        },
        "cpu_ms_per_request": 1.7 / SPEED[side],
        "memory_mib": 61.4 / SPEED[side],
        "requests": requests,
        "errors": 0,
        "first_error": "",
        "histogram": histogram(p50, p99, requests),
        "timeline": [
            {
                "at_s": i / 2 + 0.25, "throughput": throughput / part, "p50_ms": p50 * part,
                "p99_ms": p99 * part**3,
            }
            for i, part in enumerate(wave)
        ],
    }  # fmt: skip


def ratio(peer: str, clients: int | None = None, rate: float | None = None) -> dict[str, Any]:
    middle = 1 / SPEED[peer] * (1 + (clients or 4) / 400)
    of = "p99" if rate else "throughput"
    return {
        "clients": clients, "rate": rate, "peer": peer, "of": of, "low": middle * 0.96,
        "middle": middle, "high": middle * 1.03,
    }  # fmt: skip


def search() -> dict[str, Any]:
    """A search over two engines with a front of its own."""
    points = []
    for i, engine in enumerate(PEERS[:2]):
        for workers, threads in ((1, 2), (2, 1), (4, 1)):
            for batch in (0, 4, 16):
                points.append(
                    {
                        "engine": engine, "workers": workers, "threads": threads, "batch": batch,
                        "clients": 16, "throughput": 900 + 110 * workers + 28 * batch + 60 * i,
                        "p99_ms": 4.2 * 1.2**batch * workers**0.5 / threads + i,
                        "on_front": False, "chosen": False,
                    }
                )  # fmt: skip
    for point in points:
        point["on_front"] = not any(
            other["throughput"] > point["throughput"] and other["p99_ms"] < point["p99_ms"]
            for other in points
        )
    within = [point for point in points if point["p99_ms"] <= 20]
    max(within, key=lambda point: point["throughput"])["chosen"] = True
    python = (
        "context = mslite.Context()\ncontext.cpu.thread_num = 1\ncontext.parallel.workers_num = 4\n"
    )
    return {
        "p99_limit_ms": 20.0,
        "points": points,
        "python": python,
        "ini": "[common_context]\nengine=openvino\n",
    }


def result(
    clients: tuple[int, ...] = (1, 4, 16),
    rates: tuple[float, ...] = (100.0, 400.0, 1600.0),
    peers: tuple[str, ...] = PEERS,
    tune: bool = True,
) -> dict[str, Any]:
    """Everything that a run can find."""
    loads: list[dict[str, Any]] = [{"clients": n} for n in clients] + [{"rate": n} for n in rates]
    return {
        "model": {
            "file": "digits.mindir",
            "inputs": [{"name": "x", "dtype": "float32", "shape": [1, 1, 8, 8]}],
        },
        "machine": {
            "cpu": "AMD EPYC 7B13", "cores": 4, "python": "3.11.9",
            "versions": {"mslite": "0.9.0", "onnxruntime": "1.31.0", "openvino": "2026.4.0"},
        },
        "settings": {
            "target": "cpu", "engine": "onnxruntime", "workers": 0, "threads": 0, "batch": 0,
            "duration_s": 10.0, "warmup_s": 1.0, "rounds": 5,
        },
        "runs": [run(side, **load) for load in loads for side in (OURS, *peers)],
        "ratios": [ratio(peer, **load) for load in loads for peer in peers],
        "layout": [{"worker": i, "threads": 1, "cores": [i]} for i in range(4)],
        "tune": search() if tune else None,
    }  # fmt: skip
