"""What a worker's clients see of a service.

A run can be ended from another thread: the starting thread attaches what ends it to its Running.
"""

from __future__ import annotations

import json
import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent import futures
from dataclasses import asdict
from pathlib import Path

import numpy as np

from mindspore_lite.core.boundary import boundary
from mindspore_lite.engines.base import Group
from mindspore_lite.errors import CancelledError, EngineError, LiteError, ModelFileError
from mindspore_lite.graph.source import ModelInput
from mindspore_lite.mindir.decrypt import checked_key
from mindspore_lite.remote.wire.bodies import MODEL, RUNNER, Build, Description
from mindspore_lite.remote.wire.faults import RUNNER_FAILED
from mindspore_lite.remote.wire.fields import MAX_US
from mindspore_lite.remote.worker.groups import others
from mindspore_lite.serving import update
from mindspore_lite.serving.build import check_stateless
from mindspore_lite.serving.call import Call
from mindspore_lite.serving.pooled import PooledService
from mindspore_lite.serving.service import existing, fact
from mindspore_lite.serving.single import MODEL_INFO_KEYS, SingleService
from mindspore_lite.settings.formats import ModelType
from mindspore_lite.settings.read import read_layers
from mindspore_lite.settings.spec import settle
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
        self.ended.release()  # for other threads that wait
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

    def derived(self, weights: list[list[Tensor]]) -> Hosted:
        """The same model with other weights, next to this one."""
        raise EngineError("only a ModelParallelRunner can be derived; build the model again")

    @abstractmethod
    def close(self, drain_s: float | None) -> None:
        """Release it."""


class Served(Hosted):
    """A service, as a worker's clients see it."""

    def __init__(self, service: SingleService | PooledService) -> None:
        self._service = service
        self.output_names = [info.name for info in service.outputs]

    def description(self) -> Description:
        """Its inputs and outputs, as they are after the last resize."""
        return Description(self._service.inputs, self._service.outputs)

    def predict(self, call: Call, running: Running) -> list[np.ndarray]:
        """Run it once; other threads may end it by way of `running`."""
        call.known = running.attach
        try:
            return self._service.run(call)
        except futures.CancelledError as exc:
            raise CancelledError("the request was cancelled") from exc
        except LiteError as exc:
            raise exc.prefixed("predict failed! ") from exc.__cause__

    def resize(self, shapes: list[tuple[int, ...]]) -> Description:
        """Give the inputs other shapes, where they are not free anyway."""
        if not isinstance(self._service, SingleService):
            raise EngineError("a ModelParallelRunner has no resize; its requests may have any size")
        with boundary("resize failed! Error is "):
            return Description(*self._service.resize(shapes))

    def info(self, key: str) -> str:
        """One fact, as get_model_info() has it; or the time limit of requests, or a trouble."""
        if key == "timeout_us":  # clients watch their own deadlines, but do not read settings
            return str(math.ceil(min(self._service.spec.timeout_s * 1e6, MAX_US)))
        if key == "trouble":
            found = self._service
            return found.pool.trouble() if isinstance(found, PooledService) else ""
        more = MODEL_INFO_KEYS if isinstance(self._service, SingleService) else ()
        return fact(self._service, key, more)

    def statistics(self) -> str:
        """What was done so far, as JSON; nothing for a Model, which does not count."""
        found = self._service.statistics()
        return json.dumps({} if found is None else asdict(found))

    def update_weights(self, weights: list[list[Tensor]]) -> None:
        """Exchange weights."""
        with boundary(update.FAILED):
            self._service.update_weights(weights)

    def derived(self, weights: list[list[Tensor]]) -> Hosted:
        """The same model with other weights, next to this one."""
        if not isinstance(self._service, PooledService):
            return super().derived(weights)
        with boundary(update.FAILED):
            return Served(self._service.derived(weights))

    def close(self, drain_s: float | None) -> None:
        """Finish what was taken, then release it."""
        self._service.close(drain_s)


def built(build: Build, contents: list[bytes], group: Group | None = None) -> Hosted:
    """Load what a client asks for, as one of a group."""
    if build.kind not in (MODEL, RUNNER):
        raise ValueError(f"there is no kind {build.kind} of model, wanted {MODEL} or {RUNNER}")
    if build.kind == RUNNER and group is not None:
        raise ValueError("a ModelParallelRunner cannot be in a group; its workers share all")
    if build.kind == RUNNER and build.key:
        raise ModelFileError("a ModelParallelRunner cannot load an encrypted model")
    context = from_map(others(build.settings))
    given = _given(build, contents)
    doing = "build_from_buffer" if contents else "build_from_file"
    failed = f"{doing} failed! Error is "
    if build.kind == RUNNER:
        failed = RUNNER_FAILED
    layers = read_layers(doing, build.config_path, build.config)  # its errors say it all
    with boundary(failed):
        spec = settle(context, layers)
        if build.kind == RUNNER:
            return Served(PooledService(given, spec))
        service = SingleService(given, spec, group)
        if spec.name:
            check_stateless(service.built)
        return Served(service)


def _given(build: Build, contents: list[bytes]) -> ModelInput:
    """The model: its kind is what the client says, whatever the file is called."""
    kind = ModelType(build.model_type).name
    key = checked_key(build.key, build.key_mode or "AES-GCM", 0)
    if contents:
        weights = contents[1] if len(contents) > 1 else None
        return ModelInput(kind, data=contents[0], weights=weights, key=key)
    return ModelInput(kind, Path(existing(build.path)).absolute(), key=key)
