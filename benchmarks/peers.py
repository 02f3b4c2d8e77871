"""The peers of parallel.py: an ONNX file goes in, sides that take bursts of requests come out.

(a) default       one InferenceSession with default options, shared by the client threads
(b) the grid      what somebody would try who tunes ONNX Runtime by hand
(c) openvino      AsyncInferQueue with the THROUGHPUT hint, where the package can be imported
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import load
import numpy as np
import onnxruntime as ort

Feed = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Side:
    """A way to serve clients: one request alone, and a burst of many clients."""

    once: Callable[[], np.ndarray]
    burst: Callable[[int, float], load.Burst]  # clients, seconds


def threaded(call: Callable[[], np.ndarray]) -> Side:
    """A side that client threads call directly."""
    return Side(call, partial(load.closed_loop, call))


@dataclass(frozen=True)
class Setup:
    """One way of tuning ONNX Runtime by hand."""

    threads: int  # of a session
    spinning: bool  # whether they wait for work by burning a core
    sessions: int  # 1: shared by all callers at once; more: each serves one caller at a time

    def __str__(self) -> str:
        spinning = "" if self.threads == 1 else ", spinning" if self.spinning else ", not spinning"
        sessions = f"{self.sessions} sessions" if self.sessions > 1 else "shared session"
        return f"{sessions}, {self.threads} thread{'s'[: self.threads > 1]}{spinning}"


def grid(cores: int) -> list[Setup]:
    """The set-ups to try; a session with one thread has none that could spin."""
    if cores == 1:
        return [Setup(1, False, 1)]
    tried = [(1, False), (cores, True), (cores, False)]
    return [Setup(*how, sessions) for sessions in (1, cores) for how in tried]


def default_session(onnx: Path, feed: Feed) -> Side:
    """(a): what most people do."""
    session = ort.InferenceSession(onnx, providers=["CPUExecutionProvider"])
    return threaded(lambda: session.run(None, feed)[0])


def tuned(onnx: Path, feed: Feed, setup: Setup) -> Side:
    """(b): one candidate. Several sessions are handed out, so no more callers run at once."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = setup.threads
    options.add_session_config_entry(
        "session.intra_op.allow_spinning", "1" if setup.spinning else "0"
    )
    sessions = [
        ort.InferenceSession(onnx, options, providers=["CPUExecutionProvider"])
        for _ in range(setup.sessions)
    ]
    if setup.sessions == 1:
        return threaded(lambda: sessions[0].run(None, feed)[0])
    free: queue.Queue[ort.InferenceSession] = queue.LifoQueue()  # the one used last is warm
    for session in sessions:
        free.put(session)

    def call() -> np.ndarray:
        session = free.get()
        try:
            return session.run(None, feed)[0]  # type: ignore[no-any-return]
        finally:
            free.put(session)

    return threaded(call)


def openvino(onnx: Path, feed: Feed) -> Side | None:
    """(c), or None where the package is not there."""
    if find_spec("openvino") is None:
        return None
    import openvino as ov

    # left to itself it computes in bfloat16 where the CPU can; the others compute in float32
    hints = {"PERFORMANCE_HINT": "THROUGHPUT", "INFERENCE_PRECISION_HINT": "f32"}
    compiled = ov.Core().compile_model(str(onnx), "CPU", hints)
    best = int(compiled.get_property("OPTIMAL_NUMBER_OF_INFER_REQUESTS"))
    request = compiled.create_infer_request()

    def once() -> np.ndarray:
        return np.array(request.infer(dict(feed))[0])

    def burst(clients: int, seconds: float) -> load.Burst:
        jobs = ov.AsyncInferQueue(compiled, min(clients, best))
        return _fed_from_one_thread(jobs, dict(feed), clients, seconds)

    return Side(once, burst)


def _fed_from_one_thread(
    jobs: Any, feed: dict[str, np.ndarray], clients: int, seconds: float
) -> load.Burst:
    """A closed loop without client threads: an answer makes that client's next request."""
    arrived: queue.SimpleQueue[float] = queue.SimpleQueue()
    latencies: list[float] = []
    window = load.Window(clients, seconds)

    def answered(request: Any, start: float) -> None:
        np.array(request.get_output_tensor(0).data)  # the answer is the client's to keep
        now = time.perf_counter()
        latencies.append(now - start)
        arrived.put(now)

    jobs.set_callback(answered)
    for _ in range(clients):
        arrived.put(window.start)
    while window.is_open():
        jobs.start_async(feed, arrived.get(), share_inputs=True)
    jobs.wait_all()
    return load.Burst(latencies, time.perf_counter() - window.start)
