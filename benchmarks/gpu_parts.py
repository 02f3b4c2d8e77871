"""The parts of gpu.py beside the table: each goes through one promise, and returns its figures."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gpu_models
import gpu_sides
import load
import networks
import numpy as np
import torch

import mindspore_lite as mslite

MIB = 2**20
FIXED = (16, 32, 64)  # fixed batches, the best of which counts
CLIENTS = 64
WORKERS = (0, 1, 4)  # 0 is the default
BUCKETS = "1,8,16,32,64"

_START = """
import sys, time
begin = time.perf_counter()
import numpy as np
import mindspore_lite as mslite
context = mslite.Context()
context.target = ["gpu"]
context.gpu.precision_mode = "preferred_fp16"
model = mslite.Model()
settings = {"gpu_context": {"batch_buckets": "1,8,64"}}
model.build_from_file(sys.argv[1], mslite.ModelType.MINDIR, context, config_dict=settings)
model.predict([np.zeros((1, 3, 224, 224), np.float32)])
print(time.perf_counter() - begin)
"""


def machine() -> dict[str, Any]:
    """Where the figures come from."""
    return {
        "card": torch.cuda.get_device_name(0),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
    }


def _context(workers: int, settings: dict[str, dict[str, str]]) -> mslite.Context:
    context = mslite.Context()
    context.target = ["gpu"]
    context.gpu.precision_mode = "preferred_fp16"
    context.parallel.workers_num = workers
    context.parallel.config_info = settings
    return context


def _runner(path: Path, workers: int, buckets: str) -> mslite.ModelParallelRunner:
    runner = mslite.ModelParallelRunner()
    runner.build_from_file(
        str(path), _context(workers, {"gpu_context": {"batch_buckets": buckets}})
    )
    return runner


def _host(batch: int) -> np.ndarray:
    return np.random.default_rng(batch).standard_normal((batch, *gpu_models.SHAPE), np.float32)


def one(folder: Path) -> dict[str, Any]:
    """The latency of one client, of a hand-written replay with the same copies, and of none."""
    path = gpu_models.mindir("ResNet-50", folder)
    runner, row = _runner(path, 0, "1"), [_host(1)]
    model = gpu_sides.built(path, "fp16", 1)
    times = load.interleaved(
        {
            "runner_ms": lambda: _median_ms(lambda: runner.predict(row)),
            "replay_and_copies_ms": lambda: _bare_ms(model, 1, copies=True),
            "replay_alone_ms": lambda: _bare_ms(model, 1, copies=False),
        },
        15,
    )
    runner.close()
    ratio = load.ratio(times["runner_ms"], times["replay_and_copies_ms"])
    found: dict[str, Any] = {side: statistics.median(one) for side, one in times.items()}
    print(f"one client / replay and copies: {ratio}, {json.dumps(found)}", flush=True)
    return found | {"ratio": vars(ratio)}


def clients(folder: Path) -> dict[str, Any]:
    """64 clients beside the best fixed batch."""
    path = gpu_models.mindir("ResNet-50", folder)
    direct = {batch: gpu_sides.built(path, "fp16", batch) for batch in FIXED}
    sides = {f"batch {batch}": _loop(model, batch) for batch, model in direct.items()}
    runners = {}
    rows = [_host(1) for _ in range(CLIENTS)]
    for workers in WORKERS:
        runner = _runner(path, workers, BUCKETS)
        name = f"{CLIENTS} clients, {workers or 'default'} workers"
        runners[name] = runner
        sides[name] = lambda runner=runner: _many(runner, rows)
    bursts = load.interleaved(sides, 4)
    images = {side: [b.per_second for b in one] for side, one in bursts.items()}
    for batch in FIXED:
        images[f"batch {batch}"] = [rate * batch for rate in images[f"batch {batch}"]]
    best = max((f"batch {b}" for b in FIXED), key=lambda side: statistics.median(images[side]))
    found: dict[str, Any] = {
        "images_per_second": {side: statistics.median(one) for side, one in images.items()},
        "bare_replays": max(FIXED) * 1e3 / _bare_ms(direct[max(FIXED)], max(FIXED), copies=False),
    }
    for name in runners:
        ratio = load.ratio(images[name], images[best])
        p99 = load.p99_ms(bursts[name])
        found[name] = {"ratio": vars(ratio), "p99_ms": p99}
        print(f"{name} / {best}: {ratio}, p99 {p99:.1f} ms", flush=True)
    print(json.dumps(found["images_per_second"]), flush=True)
    for runner in runners.values():
        runner.close()
    return found


def _loop(model: mslite.Model, batch: int) -> Callable[[], load.Burst]:
    """A plain loop of one thread over a fixed batch that lies on the host."""
    given = [_host(batch)]
    return lambda: load.closed_loop(lambda: model.predict(given), 1, 0.7)


def _many(runner: mslite.ModelParallelRunner, rows: list[np.ndarray]) -> load.Burst:
    """Each client sends an image of its own."""
    mine = threading.local()
    left = list(rows)

    def call() -> None:
        if not hasattr(mine, "row"):
            mine.row = [left.pop()]
        runner.predict(mine.row)

    return load.closed_loop(call, len(rows), 0.7)


def _median_ms(call: Callable[[], object], count: int = 200) -> float:
    times = []
    for _ in range(count):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return statistics.median(times) * 1e3


def _bare_ms(model: mslite.Model, batch: int, copies: bool) -> float:
    """One recorded run after the other, with nothing of ours around it but its buffers."""
    assert model._service is not None
    (replay,) = model._service.built.session._replays.values()  # type: ignore[attr-defined]
    given = _host(batch)
    pinned = torch.from_numpy(given).pin_memory()

    def call() -> None:
        with torch.cuda.stream(replay._stream):
            if copies:
                pinned.copy_(torch.from_numpy(given))
                replay._inputs[0].copy_(pinned, non_blocking=True)
            replay._replay.replay()
            if copies:
                replay._back[0].copy_(replay._outputs[0], non_blocking=True)
        replay._stream.synchronize()
        if copies:
            replay._back[0].numpy().copy()

    return _median_ms(call)


def start(folder: Path) -> dict[str, Any]:
    """From the import to the first answer, without and with a filled compile cache."""
    path = gpu_models.mindir("ResNet-50", folder)
    seconds: dict[str, list[float]] = {"first": [], "second": []}
    for _ in range(2):
        with tempfile.TemporaryDirectory() as cache:
            for which in seconds:
                seconds[which].append(_started_s(path, cache))
    ratio = load.ratio(seconds["second"], seconds["first"])
    print(f"second start / first: {ratio}, {seconds}", flush=True)
    return seconds | {"ratio": vars(ratio)}


def _started_s(path: Path, cache: str) -> float:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("TORCHINDUCTOR", "TRITON"))}
    done = subprocess.run(
        [sys.executable, "-c", _START, str(path)],
        env=kept | {"MSLITE_CACHE_DIR": cache},
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout)


def memory(folder: Path) -> dict[str, Any]:
    """What workers take on the card, as torch counts it."""
    path = gpu_models.mindir("ResNet-50", folder)
    taken = {}
    for workers in (1, 4):
        torch.cuda.empty_cache()
        before = torch.cuda.memory_reserved()
        runner = _runner(path, workers, "64")
        runner.predict([_host(64)])
        taken[workers] = torch.cuda.memory_reserved() - before
        runner.close()
        del runner
    weights = sum(p.numel() for p in gpu_models.module("ResNet-50").parameters()) * 2
    allowed = weights + 4 * (taken[1] - weights)
    print(
        f"weights {weights / MIB:.0f} MiB, 1 worker {taken[1] / MIB:.0f} MiB, 4 workers "
        f"{taken[4] / MIB:.0f} MiB, allowed {allowed / MIB:.0f} MiB",
        flush=True,
    )
    return {"weights": weights, "workers": taken, "allowed": allowed}


def update(folder: Path) -> dict[str, Any]:
    """Change 200 MB of weights while 8 threads send requests."""
    path = networks.bert(folder / "bert1024.mindir", hidden=1024, heads=16)
    names = [f"layer.{i}.{part}.weight" for i in range(12) for part in ("q", "k", "v", "mix")]
    runner = mslite.ModelParallelRunner()
    listed = {"ascend_context": {"variable_weights_list": ",".join(names)}}
    runner.build_from_file(str(path), _context(2, listed))
    ids = [np.arange(128, dtype=np.int32).reshape(1, -1)]
    rng = np.random.default_rng(0)
    weights = []
    for name in names:
        values = rng.standard_normal((1024, 1024), np.float32) * np.float32(1 / 32)
        weights.append(mslite.Tensor(values))
        weights[-1].name = name
    ended, failed, done = threading.Event(), [], []

    def client() -> None:
        while not ended.is_set():
            try:
                runner.predict(ids)
                done.append(1)
            except RuntimeError as exc:
                failed.append(exc)

    threads = [threading.Thread(target=client) for _ in range(8)]
    for thread in threads:
        thread.start()
    card_ms, call_ms = [], []
    for _ in range(5):
        begin = time.perf_counter()
        runner.update_weights([weights])
        call_ms.append((time.perf_counter() - begin) * 1e3)
        card_ms.append(_held_ms(runner))
    ended.set()
    for thread in threads:
        thread.join()
    size = sum(weight.data_size for weight in weights)
    print(
        f"update of {size / 1e6:.0f} MB: {statistics.median(card_ms):.2f} ms on the card, "
        f"update_weights() {statistics.median(call_ms):.0f} ms; {len(done)} requests meanwhile, "
        f"{len(failed)} failed{': ' + str(failed[0]) if failed else ''}",
        flush=True,
    )
    runner.close()
    return {"bytes": size, "card_ms": card_ms, "call_ms": call_ms, "done": len(done),
            "failed": len(failed)}  # fmt: skip


def _held_ms(runner: Any) -> float:
    session = runner._loaded._placed.built.session
    found: float = session._open_program().store.last_update_ms
    return found
