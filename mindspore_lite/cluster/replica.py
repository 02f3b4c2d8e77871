"""What runs in a Ray Serve replica: one model, and the methods that Ray and the ingress call.

Nothing here imports Ray. A replica reads the same model folder as `mslite serve`, which must be
there on every node, and serves one version of one model. Ray calls `reconfigure` at the start and
whenever the deployment's `user_config` changes: the version and the weights are then built beside
what is served, probed, and switched to, or the error is raised and what was served goes on.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from mindspore_lite.core.tensor_info import TensorInfo
from mindspore_lite.errors import ClosedError, EngineError, ModelFileError
from mindspore_lite.server.allocator import limit_arenas
from mindspore_lite.server.health import Examined
from mindspore_lite.server.loading import Loading
from mindspore_lite.server.models import Models, PoolLike
from mindspore_lite.server.repository.records import ModelEntry, chosen
from mindspore_lite.server.sources import Sources
from mindspore_lite.serving.call import Call
from mindspore_lite.serving.statistics import Statistics
from mindspore_lite.settings.spec import Spec
from mindspore_lite.settings.text import from_map
from mindspore_lite.weight_files import load_weights

_KEYS = ("version", "weights")
_DRAIN_S = 20.0  # for requests under way when a replica ends; Ray waits for as long


@dataclass(frozen=True)
class Place:
    """Where replicas find their models, and how they run them.

    Attributes:
        models: Names, or "", and paths of files and folders, as for Server.
        context: The Context, as text (settings/text.py).
        sandbox: Whether models are built in a jailed process.
    """

    models: tuple[tuple[str, str], ...]
    context: Mapping[str, str] = field(default_factory=dict)
    sandbox: bool = False

    def entry(self, name: str) -> ModelEntry:
        """A model as it lies on disk.

        Raises:
            ModelFileError: It is not there, or cannot be served.
        """
        entry = Sources(list(self.models)).read().get(name)
        if entry is None or entry.fault:
            raise ModelFileError(
                f"model {name!r} cannot be served: {entry.fault if entry else 'it is not there'}"
            )
        return entry

    def loading(self) -> Loading:
        """What builds them."""
        return Loading(from_map(self.context), sandbox=self.sandbox)


@dataclass(frozen=True)
class Description:
    """What a replica serves now."""

    version: str
    weights_version: int
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    spec: Spec
    statistics: Statistics


@dataclass(frozen=True)
class Answer:
    """What a replica computed, and which version did."""

    version: str
    outputs: list[np.ndarray]


class Replica:
    """One model in one process of a cluster.

    Args:
        place: Where the model is.
        name: Of the model.
    """

    def __init__(self, place: Place, name: str) -> None:
        limit_arenas()
        self._place, self._name = place, name
        self._models = Models()
        self._changes = threading.Lock()  # one switch at a time

    async def reconfigure(self, config: Mapping[str, str]) -> None:
        """Serve another version, or other weights: all of it, or nothing changes."""
        await asyncio.get_running_loop().run_in_executor(None, self.switch, config)

    def switch(self, config: Mapping[str, str]) -> None:
        """The same for a thread that may wait.

        Raises:
            ValueError: The configuration has other keys than version and weights.
            LiteError: The version or the weights cannot be served.
        """
        unknown = sorted(set(config) - set(_KEYS))
        if unknown:
            raise ValueError(f"user_config may have {', '.join(_KEYS)}; got {unknown}")
        with self._changes:
            entry = self._place.entry(self._name)
            version = config.get("version") or _newest(entry)
            loading = self._place.loading()
            start = partial(_started, loading, entry, version, config.get("weights") or "")
            self._models.load(self._name, version, start, loading.options(entry, version))
            for other in self._models.versions(self._name):
                if other != version:
                    self._models.unload_soon(self._name, other)

    async def infer(
        self,
        inputs: list[np.ndarray],
        version: str = "",
        timeout_s: float | None = None,
        priority: int = 0,
        trace_id: str = "",
    ) -> Answer | Exception:
        """Compute one request. What fails is returned, so that its words stay as they are."""
        try:
            while True:
                model = self._models.find(self._name, version)
                call = Call(inputs, timeout_s, priority, trace_id=trace_id)
                try:
                    return Answer(model.version, await _computed(model.service, call))
                except ClosedError:  # it was replaced a moment ago
                    if self._models.known(self._name, version) is model:
                        raise
        except Exception as exc:  # noqa: BLE001 - the caller raises it
            return exc

    async def predict(self, inputs: list[np.ndarray]) -> list[np.ndarray]:
        """Compute one request, for callers of the DeploymentHandle; what fails is raised."""
        found = await self.infer(inputs)
        if isinstance(found, Exception):
            raise found
        return found.outputs

    def describe(self) -> Description:
        """What it serves now."""
        model = self._models.find(self._name)
        service = model.service
        return Description(
            model.version, service.weights_version, service.inputs, service.outputs, service.spec,
            service.statistics(),
        )  # fmt: skip

    async def check_health(self) -> None:
        """Run the model once; Ray starts the replica again when this fails.

        Raises:
            EngineError: It does not compute.
        """
        await asyncio.get_running_loop().run_in_executor(None, self._check)

    def _check(self) -> None:
        model = self._models.known(self._name)
        if model is None:
            raise EngineError(f"model {self._name!r} is not loaded")
        service = model.service
        why = service.examine() if isinstance(service, Examined) else ""
        if why:
            raise EngineError(f"model {self._name!r} does not compute: {why}")
        shapes = service.warm_up_shapes()
        if shapes is not None and not service.occupancy().running:  # else it computes already
            service.warm_up(shapes)

    def close(self) -> None:
        """Finish what was taken, and end. Harmless when repeated."""
        self._models.close(_DRAIN_S)

    def __del__(self) -> None:
        if "_models" in self.__dict__:
            self.close()


def _newest(entry: ModelEntry) -> str:
    versions = chosen(entry)
    if not versions:
        raise ModelFileError(f"model {entry.name!r} has no version that its policy serves")
    return versions[-1]


def _started(loading: Loading, entry: ModelEntry, version: str, weights: str) -> PoolLike:
    """The service of a version, with its weights; nothing is left of one that fails."""
    service = loading.start(entry, version)
    try:
        if weights:
            service.update_weights([load_weights(weights)])
    except BaseException:
        service.close(0.0)
        raise
    return service


async def _computed(service: PoolLike, call: Call) -> list[Any]:
    """The outputs of a call; one whose caller is gone is cancelled."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[list[Any]] = loop.create_future()

    def settle(found: list[Any] | BaseException) -> None:
        if done.done():
            return
        if isinstance(found, BaseException):
            done.set_exception(found)
        else:
            done.set_result(found)

    def ended(found: list[Any] | BaseException) -> None:
        loop.call_soon_threadsafe(settle, found)

    cancel = service.submit_or_run(call, ended)
    try:
        return await done
    except asyncio.CancelledError:
        cancel()
        raise
