"""What a worker hosts for its clients: a Model or a ModelParallelRunner behind one face.

A run can be ended from another thread: whoever starts it attaches to its Running what ends it.
"""

from __future__ import annotations

import json
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError as PoolCancelledError
from dataclasses import asdict
from pathlib import Path

import numpy as np

from mindspore_lite.context import Context
from mindspore_lite.core.deadline import WATCHDOG
from mindspore_lite.engines.base import Group, Stop
from mindspore_lite.errors import (
    CancelledError,
    ClosedError,
    EngineError,
    LiteError,
    ModelFileError,
    RequestTimeoutError,
    StoppedError,
)
from mindspore_lite.graph.source import ModelInput
from mindspore_lite.model import Model, ModelType
from mindspore_lite.remote.wire.bodies import MODEL, RUNNER, Build, Description
from mindspore_lite.remote.worker.groups import others
from mindspore_lite.runner import ModelParallelRunner
from mindspore_lite.serving import feeds
from mindspore_lite.serving.call import Call
from mindspore_lite.settings.text import from_map
from mindspore_lite.tensor import Tensor


class Running:
    """A request under way; `ended` is held as long as it lasts."""

    __slots__ = ("_stop", "cancelled", "ended", "number")

    def __init__(self, number: int = 0) -> None:
        self.number = number  # what the client calls it
        self.ended: threading.Lock = threading.Lock()
        self.ended.acquire()
        self.cancelled = False
        self._stop: Callable[[], object] | None = None

    def attach(self, stop: Callable[[], object]) -> None:
        """Say what ends it; called at once when that was wanted before."""
        self._stop = stop
        if self.cancelled:  # cancel() says so before it looks for the stop: one sees the other
            stop()

    def cancel(self) -> None:
        """End it; harmless when repeated."""
        self.cancelled = True
        if self._stop is not None:
            self._stop()

    def wait(self, limit_s: float) -> bool:
        """Wait for its end; whether it came."""
        if not self.ended.acquire(timeout=limit_s):
            return False
        self.ended.release()  # for others who wait
        return True


class Hosted(ABC):
    """A built model. Everything may be called from many threads at once."""

    output_names: list[str]

    @abstractmethod
    def description(self) -> Description:
        """Its inputs and outputs."""

    @abstractmethod
    def predict(self, call: Call, running: Running) -> list[np.ndarray]:
        """Run it once."""

    @abstractmethod
    def resize(self, shapes: list[tuple[int, ...]]) -> Description:
        """Give the inputs other shapes; what the model is then."""

    @abstractmethod
    def info(self, key: str) -> str:
        """One fact."""

    @abstractmethod
    def statistics(self) -> str:
        """What was done so far, as JSON."""

    @abstractmethod
    def update_weights(self, weights: list[list[Tensor]]) -> None:
        """Exchange weights."""

    @abstractmethod
    def close(self, drain_s: float | None) -> None:
        """Release it."""


class HostedModel(Hosted):
    """A Model; requests run at the same time, each in the thread of its lane.

    Changes of the model wait for each other; it sees to that itself. Runs wait for nothing: one
    that loses its session to a resize begins again, with the new one.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._resizing = threading.Lock()  # held until what a resize led to has been told
        built = model._usable("")
        self.output_names = [info.name for info in built.outputs]
        self._timeout_s = built.spec.timeout_s or None  # of a request that brings none

    def description(self) -> Description:
        """Its inputs and outputs, as they are after the last resize."""
        built = self._model._usable("describe failed! ")
        return Description(built.inputs, built.outputs)

    def predict(self, call: Call, running: Running) -> list[np.ndarray]:
        """Run it once, as Model.predict does; nothing waits, so priorities have no effect."""
        stop = Stop()
        timeout_s = call.timeout_s
        running.attach(stop.fire)
        entry = None
        timeout_s = self._timeout_s if timeout_s is None else timeout_s
        if timeout_s is not None:
            entry = WATCHDOG.watch(time.monotonic() + timeout_s, stop.fire)
        try:
            return self._run(call.inputs, stop)
        except StoppedError as exc:
            if running.cancelled:
                raise CancelledError("the request was cancelled") from exc
            raise RequestTimeoutError(
                f"predict failed! no answer within timeout_s={timeout_s:g}: it was running, and "
                "was told to stop"
            ) from exc
        except LiteError as exc:
            raise exc.prefixed("predict failed! ") from exc.__cause__
        finally:
            if entry is not None:
                WATCHDOG.cancel(entry)

    def _run(self, arrays: Sequence[np.ndarray], stop: Stop) -> list[np.ndarray]:
        while True:
            built = self._model._usable("")
            try:
                return built.session.run(feeds.arrays(built.inputs, list(arrays)), stop)
            except ClosedError:
                if self._model._built is built:
                    raise

    def resize(self, shapes: list[tuple[int, ...]]) -> Description:
        """Give the inputs other shapes."""
        with self._resizing:
            self._model._usable("resize failed! Error is ")
            self._model.resize(self._model.get_inputs(), shapes)
            return self.description()

    def info(self, key: str) -> str:
        """What Model.get_model_info says."""
        return self._model.get_model_info(key)

    def statistics(self) -> str:
        """Nothing: a Model does not count."""
        return "{}"

    def update_weights(self, weights: list[list[Tensor]]) -> None:
        """Exchange weights."""
        self._model.update_weights(weights)

    def close(self, drain_s: float | None) -> None:
        """Release it; runs under way finish."""
        with self._resizing:
            self._model.close()


class HostedRunner(Hosted):
    """A ModelParallelRunner."""

    def __init__(self, runner: ModelParallelRunner) -> None:
        self._runner = runner
        self.output_names = [info.name for info in runner._usable("").outputs]

    def description(self) -> Description:
        """Its inputs and outputs."""
        loaded = self._runner._usable("describe failed! ")
        return Description(loaded.inputs, loaded.outputs)

    def predict(self, call: Call, running: Running) -> list[np.ndarray]:
        """Run it once, as ModelParallelRunner.predict does."""
        loaded = self._runner._usable("predict failed! ")
        try:
            call.inputs = feeds.arrays(loaded.inputs, list(call.inputs), any_size=True)
            call.known = running.attach
            if call.timeout_s is None:
                call.timeout_s = loaded.timeout_s
            return loaded.pool.run(call)
        except PoolCancelledError as exc:
            raise CancelledError("the request was cancelled") from exc
        except LiteError as exc:
            raise exc.prefixed("predict failed! ") from exc.__cause__

    def resize(self, shapes: list[tuple[int, ...]]) -> Description:
        """A runner has no resize."""
        raise EngineError("a ModelParallelRunner has no resize; its requests may have any size")

    def info(self, key: str) -> str:
        """What ModelParallelRunner.get_model_info says."""
        return self._runner.get_model_info(key)

    def statistics(self) -> str:
        """What ModelParallelRunner.statistics says."""
        return json.dumps(asdict(self._runner.statistics()))

    def update_weights(self, weights: list[list[Tensor]]) -> None:
        """Exchange weights, for all workers at once."""
        self._runner.update_weights(weights)

    def close(self, drain_s: float | None) -> None:
        """Finish what was taken, then release it."""
        self._runner.close(drain_s)


def built(build: Build, contents: list[bytes], group: Group | None = None) -> Hosted:
    """Load what a client asks for, as one of a group."""
    context = from_map(others(build.settings))
    if build.kind == MODEL:
        return HostedModel(_model(build, contents, context, group))
    if build.kind == RUNNER:
        if group is not None:
            raise ValueError("a ModelParallelRunner cannot be in a group; its workers share all")
        return HostedRunner(_runner(build, contents, context))
    raise ValueError(f"there is no kind {build.kind} of model, wanted {MODEL} or {RUNNER}")


def _model(build: Build, contents: list[bytes], context: Context, group: Group | None) -> Model:
    kind = ModelType(build.model_type)
    model = Model()
    model._group = group
    key = build.key or None
    mode = build.key_mode or "AES-GCM"
    if not contents:
        model.build_from_file(build.path, kind, context, build.config_path, build.config, key, mode)
    else:
        weights = contents[1] if len(contents) > 1 else None
        model.build_from_buffer(
            contents[0], weights, kind, context, build.config_path, build.config, key, mode
        )
    return model


def _runner(build: Build, contents: list[bytes], context: Context) -> ModelParallelRunner:
    if build.key:
        raise ModelFileError("a ModelParallelRunner cannot load an encrypted model")
    context.parallel.config_path = build.config_path
    context.parallel.config_info = build.config
    runner = ModelParallelRunner()
    kind = ModelType(build.model_type).name  # the client says it, whatever the file is called
    if contents:
        weights = contents[1] if len(contents) > 1 else None
        given = ModelInput(kind, data=contents[0], weights=weights)
    else:
        runner._checked(build.path, context)
        given = ModelInput(kind, Path(build.path))
    runner._build(given, context)
    return runner
