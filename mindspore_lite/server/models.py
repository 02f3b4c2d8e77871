"""Which models are served: by name and version, from a Registry, ready once a probe has passed.

    models = Models()
    models.load("digits", "1", start)     start() makes the service; others of that name keep going
    model = models.find("digits")         the newest version; RequestError if there is none
    models.close(drain_s)

Reading takes no lock: the table is replaced as a whole when it changes.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from mindspore_lite.core.tensor_info import TensorInfo
from mindspore_lite.errors import EngineError, LiteError
from mindspore_lite.server.datatypes import of_dtype
from mindspore_lite.server.errors import Kind, RequestError
from mindspore_lite.server.repository.records import PLAIN, ServeConfig
from mindspore_lite.server.meter import Meter
from mindspore_lite.serving.call import Call
from mindspore_lite.serving.registry import Lease, Registry
from mindspore_lite.serving.service import Ended
from mindspore_lite.serving.statistics import Occupancy, Statistics
from mindspore_lite.settings.spec import Spec

_LOG = logging.getLogger(__name__)
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}", re.ASCII)
_VERSION = re.compile(r"[1-9][0-9]{0,17}", re.ASCII)
_TAKEN = ("stats",)  # names that are paths of the protocol


class PoolLike(Protocol):
    """What the server needs of a service; PooledService is one."""

    spec: Spec
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]

    @property
    def is_up(self) -> bool:
        """Whether calls are computed now; otherwise they wait. Nothing is asked."""

    def run(self, call: Call) -> list[np.ndarray]:
        """Compute one call; the calling thread waits."""

    def submit_or_run(self, call: Call, ended: Ended) -> Callable[[], bool]:
        """Queue one call; the calling thread goes on."""

    def warm_up_shapes(self) -> list[list[int]] | None:
        """The shapes of a smallest request."""

    def warm_up(self, shapes: Sequence[Sequence[int]]) -> list[np.ndarray]:
        """Run every worker once."""

    def warm_up_with(self, arrays: list[np.ndarray]) -> None:
        """The same with these inputs."""

    def statistics(self) -> Statistics:
        """What was done so far."""

    def occupancy(self) -> Occupancy:
        """What goes on right now; costs microseconds, and asks no other process."""

    def close(self, drain_s: float | None) -> None:
        """Finish what was taken, release all."""


@dataclass(frozen=True)
class Port:
    """An input or output as clients see it; a dim of -1 is any size."""

    name: str
    datatype: str
    shape: tuple[int, ...]
    labels: tuple[str, ...] = ()  # of classes


@dataclass(frozen=True, eq=False)
class ServedModel:
    """One version of a model that is served.

    Attributes:
        name: Of the model.
        version: A number as text.
        service: Runs it.
        inputs: By name, in the model's order.
        outputs: By name, in the model's order.
        platform: What kind of model it is, in the protocol's form.
        max_batch_size: If it is not 0, the first dim of every input and output is the batch, and a
            request has 1 to so many rows.
        reason: Why it cannot be used; "" if it can.
        config: What its own configuration says.
        file: The name of its model file.
        workers: How many requests it computes at the same time.
        meter: Counts its requests.
    """

    name: str
    version: str
    service: PoolLike
    inputs: Mapping[str, Port]
    outputs: Mapping[str, Port]
    platform: str = "mslite_mindir"
    max_batch_size: int = 0
    reason: str = ""
    config: ServeConfig = PLAIN
    file: str = ""
    workers: int = 1
    meter: Meter = field(default_factory=Meter)

    @property
    def is_ready(self) -> bool:
        """Whether its probe passed, and its process is there, if it has one of its own."""
        return not self.reason and self.service.is_up

    def metadata(self, versions: Sequence[str]) -> dict[str, object]:
        """What the protocol tells of it."""
        return {
            "name": self.name,
            "versions": list(versions),
            "platform": self.platform,
            "inputs": [_described(port) for port in self.inputs.values()],
            "outputs": [_described(port) for port in self.outputs.values()],
        }


@dataclass(frozen=True)
class ModelOptions:
    """What is said of a model beyond its file."""

    platform: str = "mslite_mindir"
    max_batch_size: int = 0
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by output
    config: ServeConfig = PLAIN
    file: str = ""


class Models:
    """All models that are served. Safe from many threads."""

    def __init__(self, registry: Registry[PoolLike] | None = None) -> None:
        self._registry = Registry[PoolLike]() if registry is None else registry
        self._lock = threading.Lock()
        self._leases: dict[tuple[str, str], Lease[PoolLike]] = {}
        self._table: dict[str, dict[str, ServedModel]] = {}  # newest version first
        self._expected: frozenset[str] = frozenset()

    def expect(self, names: Sequence[str]) -> None:
        """Say which models will be loaded: until then they are not ready, rather than unknown."""
        self._expected = frozenset(names)

    def load(
        self,
        name: str,
        version: str,
        start: Callable[[], PoolLike],
        options: ModelOptions = ModelOptions(),
    ) -> ServedModel:
        """Start a model, probe it, and serve it.

        Raises:
            ValueError: The name or version cannot be served under.
            LiteError: It cannot be started.
        """
        check_name(name, version)
        lease = self._registry.join(name, version, origin=None, start=start)
        try:
            model = _served(name, version, lease.service, options)
        except BaseException:
            lease.release()
            raise
        with self._lock:
            self._leases[name, version] = lease
            versions = {**self._table.get(name, {}), version: model}
            newest = dict(sorted(versions.items(), key=lambda one: int(one[0]), reverse=True))
            self._table = {**self._table, name: newest}
        return model

    def unload(self, name: str, version: str, drain_s: float | None = None) -> None:
        """Serve a version no more; what it took is finished. Harmless if it is not served."""
        with self._lock:
            lease = self._leases.pop((name, version), None)
            left = {v: m for v, m in self._table.get(name, {}).items() if v != version}
            table = {other: versions for other, versions in self._table.items() if other != name}
            self._table = {**table, name: left} if left else table
        if lease is not None:
            lease.release(drain_s)

    def find(self, name: str, version: str = "") -> ServedModel:
        """The model of this name: the version that is asked for, or else the newest.

        Raises:
            RequestError: There is none.
        """
        versions = self._table.get(name)
        if versions is None and name in self._expected:
            raise RequestError(Kind.UNAVAILABLE, f"model {name!r} is being loaded", 1)
        if versions is None:
            raise RequestError(
                Kind.NOT_FOUND, f"unknown model {name!r}; served are {', '.join(self.names())}"
            )
        if not version:
            for newest in versions.values():
                if not newest.reason:
                    return newest
            return next(iter(versions.values()))
        found = versions.get(version)
        if found is None:
            raise RequestError(
                Kind.NOT_FOUND,
                f"unknown model {name!r} version {version!r}; it has versions {list(versions)}",
            )
        return found

    def ready(self, name: str, version: str = "") -> ServedModel:
        """The same, if it is ready.

        Raises:
            RequestError: There is none, or it is not ready.
        """
        found = self.usable(name, version)
        if not found.is_ready:
            raise RequestError(
                Kind.UNAVAILABLE, f"model {name!r} is not ready: its process is being started", 1
            )
        return found

    def usable(self, name: str, version: str = "") -> ServedModel:
        """The same, if requests may be sent there; those to a process that starts again wait.

        Raises:
            RequestError: There is none, or it failed its probe.
        """
        found = self.find(name, version)
        if found.reason:
            raise RequestError(
                Kind.UNAVAILABLE, f"model {name!r} is not ready: {found.reason}", retry_after_s=1
            )
        return found

    def known(self, name: str, version: str = "") -> ServedModel | None:
        """The same, whatever its state; None if there is none."""
        versions = self._table.get(name, {})
        return versions.get(version) if version else next(iter(versions.values()), None)

    def versions(self, name: str) -> list[str]:
        """Those of a model that can be used, as text in rising order."""
        ready = [v for v, model in self._table.get(name, {}).items() if not model.reason]
        return ready[::-1]

    def names(self) -> list[str]:
        """Of all models."""
        return sorted(self._table)

    def all(self) -> list[ServedModel]:
        """All versions of all models, by name and then from the newest on."""
        table = self._table
        return [model for name in sorted(table) for model in table[name].values()]

    def are_ready(self) -> bool:
        """Whether every version of every model is ready."""
        return all(model.is_ready for model in self.all())

    def close(self, drain_s: float | None) -> None:
        """Serve nothing any more; what was taken is finished within a time."""
        for model in self.all():
            self.unload(model.name, model.version, drain_s)


def check_name(name: str, version: str) -> None:
    """Refuse names and versions that a URL cannot hold as they are."""
    if not _NAME.fullmatch(name) or name in _TAKEN:
        raise ValueError(
            f"a model cannot be served as {name!r}; use letters, digits, '.', '_' and '-', at most "
            f"128, without a leading dot, and not {' or '.join(_TAKEN)}"
        )
    if not _VERSION.fullmatch(version):
        raise ValueError(f"the version {version!r} of model {name!r} must be a number from 1 on")


def _served(name: str, version: str, service: PoolLike, options: ModelOptions) -> ServedModel:
    return ServedModel(
        name,
        version,
        service,
        {info.name: _port(info, options) for info in service.inputs},
        {info.name: _port(info, options) for info in service.outputs},
        options.platform,
        options.max_batch_size,
        _probed(name, service),
        options.config,
        options.file,
        service.statistics().layout.workers,
    )


def _port(info: TensorInfo, options: ModelOptions) -> Port:
    found = of_dtype(info.dtype)
    if found is None:
        raise EngineError(f"{info.name!r} is {info.dtype}, which the protocol has no name for")
    return Port(info.name, found.name, info.shape, tuple(options.labels.get(info.name, ())))


def _probed(name: str, service: PoolLike) -> str:
    """Run every worker of a model once; why that failed, or "". Open sizes cannot be tried."""
    shapes = service.warm_up_shapes() if service.spec.warm_up else None
    if shapes is None:
        return ""
    try:
        service.warm_up(shapes)
    except LiteError as exc:
        _LOG.warning("model %s failed its probe: %s", name, exc)
        return "it failed its probe; the server's log says why"
    return ""


def _described(port: Port) -> dict[str, object]:
    return {"name": port.name, "datatype": port.datatype, "shape": list(port.shape)}
