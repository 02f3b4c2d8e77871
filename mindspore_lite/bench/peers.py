"""The other runtimes that `mslite bench --compare` measures with the same graph.

onnxruntime   one InferenceSession that all callers share. In a closed loop each client has its
              share of the cores as threads, in an open loop a request may use all of them
openvino      one compiled model in float32, an infer request for each calling thread; compiled for
              LATENCY for a lone client, else for THROUGHPUT
torch         no PyTorch program of the model is known: this is mslite's own engine `torch` on the
              CPU, and what is compared are the engines

What a MindIR file holds is translated to ONNX for the first two; the graph is the one that our own
side gets. Workers and threads that the user asked for hold for the peers too.
"""

from __future__ import annotations

import importlib
import importlib.util
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from mindspore_lite.bench.burst import Load
from mindspore_lite.bench.sides import Desk, Feed, Ours, Side, Wish, threaded
from mindspore_lite.core import cores
from mindspore_lite.engines.select import engine_for
from mindspore_lite.errors import EngineError, EngineUnavailableError
from mindspore_lite.graph.source import ModelInput, source_of

INSTALL = {  # name of a peer: what brings it
    "onnxruntime": "pip install onnxruntime",
    "openvino": "pip install openvino",
    "torch": "pip install 'mslite[gpu]'",
}
NOTES = {"torch": "torch: mslite's own engine 'torch' on the CPU, for the model is no PyTorch one"}


def missing(names: tuple[str, ...]) -> dict[str, str]:
    """Those that are not installed, with the command that installs them."""
    return {name: INSTALL[name] for name in names if importlib.util.find_spec(name) is None}


def import_library(name: str) -> None:
    """Load a peer's library, which is no memory of the peer.

    Raises:
        EngineUnavailableError: It is damaged, or does not fit this machine.
    """
    try:
        importlib.import_module(name)
    except (ImportError, OSError) as exc:
        raise EngineUnavailableError(f"{name} cannot be imported ({exc}): {INSTALL[name]}") from exc


def onnx_of(model: Path, kind: str, folder: Path) -> Path:
    """The graph as an ONNX file: the model itself, or its translation, in the folder.

    Raises:
        LiteError: It cannot be translated.
    """
    if kind == "ONNX":
        return model
    import onnx_ir as ir

    path = folder / "model.onnx"
    ir.save(source_of(ModelInput(kind, model)).translate(), path, external_data="model.onnx.data")
    return path


@dataclass(frozen=True)
class Graph:
    """What a peer is made of."""

    model: Path  # as the user gave it
    onnx: Path
    wish: Wish

    def side(self, name: str) -> Side:
        """One of INSTALL, whose package is there."""
        return _SIDES[name](self)


class OnnxRuntime:
    """The usual shared session, used well."""

    name = "onnxruntime"

    def __init__(self, graph: Graph) -> None:
        engine_for("cpu")  # it keeps ONNX Runtime from reporting to its maker
        self._graph = graph
        self._sessions: dict[int, Any] = {}  # by their threads

    @contextmanager
    def desk(self, load: Load, feed: Feed) -> Iterator[Desk]:
        """A session of as many threads as a client has cores."""
        usable, wish = cores.usable(), self._graph.wish
        widest = cores.default_threads(usable)
        threads = wish.threads or max(1, widest // (load.clients or 1))
        session = self._session(threads)

        def call() -> list[np.ndarray]:
            found: list[np.ndarray] = session.run(None, feed)
            return found

        with threaded(_named(self.name, call), wish.workers or usable.limit) as desk:
            yield desk

    def _session(self, threads: int) -> Any:
        import onnxruntime as ort

        if threads not in self._sessions:
            options = ort.SessionOptions()
            options.intra_op_num_threads = threads
            options.log_severity_level = 4  # what is wrong comes as an exception
            with _naming(self.name, "load"):
                self._sessions[threads] = ort.InferenceSession(
                    str(self._graph.onnx), options, providers=["CPUExecutionProvider"]
                )
        return self._sessions[threads]

    def close(self) -> None:
        """Free the sessions."""
        self._sessions.clear()


class OpenVino:
    """A compiled model, used well."""

    name = "openvino"

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._compiled: dict[str, Any] = {}  # by the hint

    @contextmanager
    def desk(self, load: Load, feed: Feed) -> Iterator[Desk]:
        """Compiled for many at once, or for a lone client; requests are of one thread each."""
        compiled = self._model("LATENCY" if load.clients == 1 else "THROUGHPUT")
        own = threading.local()
        inputs = dict(feed)

        def call() -> list[np.ndarray]:
            request = getattr(own, "request", None)
            if request is None:
                request = own.request = compiled.create_infer_request()
            found = request.infer(inputs, share_inputs=True)  # outputs are copied
            return [found[output] for output in compiled.outputs]

        best = int(compiled.get_property("OPTIMAL_NUMBER_OF_INFER_REQUESTS"))
        with threaded(_named(self.name, call), self._graph.wish.workers or best) as desk:
            yield desk

    def _model(self, hint: str) -> Any:
        import openvino

        if hint not in self._compiled:
            wish = self._graph.wish
            # left to itself it computes in bfloat16 where the CPU can; the others in float32
            properties = {"PERFORMANCE_HINT": hint, "INFERENCE_PRECISION_HINT": "f32"}
            if wish.workers:
                properties["NUM_STREAMS"] = str(wish.workers)
            if wish.threads:
                workers = wish.workers or max(1, cores.usable().limit // wish.threads)
                properties["INFERENCE_NUM_THREADS"] = str(wish.threads * workers)
            with _naming(self.name, "load"):
                self._compiled[hint] = openvino.Core().compile_model(
                    str(self._graph.onnx), "CPU", properties
                )
        return self._compiled[hint]

    def close(self) -> None:
        """Free the models."""
        self._compiled.clear()


def _torch(graph: Graph) -> Side:
    return Ours(graph.model, replace(graph.wish, engine="torch", batch=0), "torch")


_SIDES: dict[str, Callable[[Graph], Side]] = {
    "onnxruntime": OnnxRuntime,
    "openvino": OpenVino,
    "torch": _torch,
}


def _named(name: str, call: Callable[[], list[np.ndarray]]) -> Callable[[], list[np.ndarray]]:
    """The same call; errors say whose they are."""

    def named() -> list[np.ndarray]:
        with _naming(name, "run"):
            return call()

    return named


@contextmanager
def _naming(name: str, doing: str) -> Iterator[None]:
    try:
        yield
    except Exception as exc:
        raise EngineError(
            f"{name} cannot {doing} this model; leave it out of --compare ({_first_line(exc)})"
        ) from exc


def _first_line(exc: Exception) -> str:
    lines = [line.strip() for line in str(exc).splitlines() if line.strip()]
    return lines[0][:200] if lines else type(exc).__name__
