"""Which models are served: by name and version, in which state, ready once a probe has passed.

    models = Models()
    models.load("digits", "1", start)     start() makes the service; what is served goes on
    model = models.find("digits")         the newest version; RequestError if there is none
    models.close(drain_s)

A load of a version that is served already happens beside it: the new service takes its place in one
assignment, and the old one is closed when it has answered what it took. A request that found the
old one before that, and came too late for it, is made again for the new one (request.py, `moved`).

Reading takes no lock: the table is replaced as a whole when it changes. `_lock` guards the changes,
the statuses, and the services that are ending; it is never held while one is started or closed.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Protocol

import numpy as np

from mindspore_lite.core.tensor_info import TensorInfo
from mindspore_lite.errors import ClosedError, EngineError, LiteError
from mindspore_lite.server.datatypes import of_dtype
from mindspore_lite.server.errors import Kind, RequestError, cleaned
from mindspore_lite.server.health import ModelHealth
from mindspore_lite.server.meter import Meter
from mindspore_lite.server.repository.records import PLAIN, ServeConfig
from mindspore_lite.serving.call import Call
from mindspore_lite.serving.service import Ended
from mindspore_lite.serving.statistics import Occupancy, Statistics
from mindspore_lite.settings.spec import Spec
from mindspore_lite.tensor import Tensor

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

    @property
    def weights_version(self) -> int:
        """How many times the weights were changed."""

    def update_weights(self, groups: list[list[Tensor]]) -> None:
        """Change weights, all or none; no groups restore those of the file."""

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


LOADING, READY, UNLOADING, UNAVAILABLE = "LOADING", "READY", "UNLOADING", "UNAVAILABLE"
UNLOADED = "unloaded"  # the reason of a version that was unloaded on purpose


class ProbeError(EngineError):
    """A model was loaded, but failed its probe."""


@dataclass(frozen=True)
class Status:
    """What the index says of one version; of a model as a whole, `version` is ""."""

    name: str
    version: str
    state: str
    reason: str = ""

    @property
    def is_failure(self) -> bool:
        """Whether it should be served, and cannot."""
        return self.state == UNAVAILABLE and self.reason != UNLOADED


@dataclass(eq=False)
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
        state: READY, UNLOADING or UNAVAILABLE; Models changes it.
        reason: Why it cannot be used; of one that is READY, why its last reload failed.
        config: What its own configuration says.
        file: The name of its model file.
        workers: How many requests it computes at the same time.
        meter: Counts its requests; goes on counting when the version is loaded again.
    """

    name: str
    version: str
    service: PoolLike
    inputs: Mapping[str, Port]
    outputs: Mapping[str, Port]
    platform: str = "mslite_mindir"
    max_batch_size: int = 0
    state: str = READY
    reason: str = ""
    config: ServeConfig = PLAIN
    file: str = ""
    workers: int = 1
    meter: Meter = field(default_factory=Meter)

    @property
    def is_ready(self) -> bool:
        """Whether its probe passed, and nothing was found against it since; see health.py."""
        return not self.why_not_ready

    @property
    def cache_bytes(self) -> int:
        """What its response cache holds; 0 without one."""
        return int(getattr(getattr(self.service, "cache", None), "bytes", 0))

    @property
    def weights_version(self) -> int:
        """How many times its weights were changed since it was loaded."""
        return self.service.weights_version

    @property
    def why_not_ready(self) -> str:
        """What is against it; "" if it is ready."""
        if self.state != READY:  # of one that is, `reason` tells of its last reload
            return self.reason or "it is being unloaded"
        found = self.health.reason
        return found or ("" if self.service.is_up else "its process is being started")

    @cached_property
    def health(self) -> ModelHealth:
        """What was found against it while it was served."""
        return ModelHealth(self.name, self.service)

    def metadata(self, versions: Sequence[str]) -> dict[str, object]:
        """What the protocol tells of it."""
        found: dict[str, object] = {
            "name": self.name,
            "versions": list(versions),
            "platform": self.platform,
            "inputs": [_described(port) for port in self.inputs.values()],
            "outputs": [_described(port) for port in self.outputs.values()],
        }
        if self.service.spec.weights.variable:
            found["properties"] = {"weights_version": str(self.weights_version)}
        return found


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

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._table: dict[str, dict[str, ServedModel]] = {}  # newest version first
        self._statuses: dict[tuple[str, str], Status] = {}
        self._ending: set[ServedModel] = set()  # in the table no more, and not closed yet
        self._expected: frozenset[str] = frozenset()
        self._is_closed = False

    def expect(self, names: Iterable[str]) -> None:
        """Say which models will be loaded: until then they are not ready, rather than unknown."""
        self._expected = frozenset(names)

    # --- changes ---

    def load(
        self,
        name: str,
        version: str,
        start: Callable[[], PoolLike],
        options: ModelOptions = ModelOptions(),
    ) -> ServedModel:
        """Start a model, probe it, and serve it, in the place of the same version if there is one.

        Raises:
            ValueError: The name or version cannot be served under.
            ProbeError: It cannot be used.
            LiteError: It cannot be started.
        """
        check_name(name, version)
        self._began(name, version)
        try:
            model = _served(name, version, start(), options)
        except BaseException as exc:
            self.failed(name, version, cleaned(str(exc)) or type(exc).__name__)
            raise
        self._put(model)
        return model

    def failed(self, name: str, version: str, reason: str) -> None:
        """A load failed: what was served is served, and the index says why.

        The version is "" where the model as a whole is to blame.
        """
        with self._lock:
            self._expected -= {name}
            served = self._table.get(name, {})
            for model in served.values():
                if version in ("", model.version):
                    model.reason = reason
                    key = name, model.version
                    self._statuses[key] = Status(*key, READY, reason)
            if version not in served and (version or not served):
                self._statuses[name, version] = Status(name, version, UNAVAILABLE, reason)

    def is_fine(self, name: str, version: str) -> None:
        """What is served of a version is what should be: no reload failed."""
        with self._lock:
            model = self._table.get(name, {}).get(version)
            if model is not None and model.reason:
                model.reason = ""
                self._statuses[name, version] = Status(name, version, READY)

    def forget(self, name: str, version: str) -> None:
        """Let the index say nothing more of a version that is not served."""
        with self._lock:
            if version not in self._table.get(name, {}):
                self._statuses.pop((name, version), None)

    def unload(self, name: str, version: str, drain_s: float | None = None) -> None:
        """Serve a version no more; what it took is finished. Harmless if it is not served."""
        model = self._taken_out(name, version)
        if model is not None:
            self._close(model, drain_s)

    def unload_soon(self, name: str, version: str) -> None:
        """The same without waiting for what it took."""
        model = self._taken_out(name, version)
        if model is not None:
            self._close_soon(model)

    def close(self, drain_s: float | None) -> None:
        """Serve nothing any more; what was taken is finished within a time."""
        with self._lock:
            self._is_closed = True
        for model in self.all():
            self.unload(model.name, model.version, drain_s)
        with self._lock:
            ending = list(self._ending)
        for model in ending:  # whose threads wait for their last requests
            model.service.close(drain_s)

    def _began(self, name: str, version: str) -> None:
        with self._lock:
            if version not in self._table.get(name, {}):
                self._statuses[name, version] = Status(name, version, LOADING)

    def _put(self, model: ServedModel) -> None:
        """Serve it; the one that it takes the place of ends when its requests have."""
        name, version = model.name, model.version
        with self._lock:
            is_closed = self._is_closed
            if not is_closed:
                self._expected -= {name}
                versions = self._table.get(name, {})
                replaced = versions.get(version)
                if replaced is not None:
                    model.meter = replaced.meter
                versions = {**versions, version: model}
                newest = dict(sorted(versions.items(), key=lambda one: int(one[0]), reverse=True))
                self._table = {**self._table, name: newest}
                self._statuses[name, version] = Status(name, version, READY)
                self._statuses.pop((name, ""), None)
        if is_closed:
            model.service.close(0.0)
            raise ClosedError("the server was closed while the model was loaded")
        if replaced is not None:
            replaced.state = UNLOADING
            self._close_soon(replaced)

    def _taken_out(self, name: str, version: str) -> ServedModel | None:
        with self._lock:
            model = self._table.get(name, {}).get(version)
            if model is None:
                return None
            left = {v: m for v, m in self._table[name].items() if v != version}
            table = {other: versions for other, versions in self._table.items() if other != name}
            self._table = {**table, name: left} if left else table
            model.state = UNLOADING
            self._statuses[name, version] = Status(name, version, UNLOADING)
            return model

    def _close_soon(self, model: ServedModel) -> None:
        """Close it on a thread of its own: its last requests may take long."""
        with self._lock:
            self._ending.add(model)
        work = partial(self._close, model, None)
        threading.Thread(target=work, name=f"mslite-unload-{model.name}", daemon=True).start()

    def _close(self, model: ServedModel, drain_s: float | None) -> None:
        try:
            model.service.close(drain_s)
        except LiteError as exc:
            _LOG.warning("model %s version %s did not end well: %s", model.name, model.version, exc)
        with self._lock:
            self._ending.discard(model)
            model.state, model.reason = UNAVAILABLE, UNLOADED
            key = model.name, model.version
            status = self._statuses.get(key)
            if (
                status is not None and status.state == UNLOADING
            ):  # else it is loaded again meanwhile
                self._statuses[key] = Status(*key, UNAVAILABLE, UNLOADED)

    # --- questions ---

    def find(self, name: str, version: str = "") -> ServedModel:
        """The model of this name: the version that is asked for, or else the newest.

        Raises:
            RequestError: There is none.
        """
        versions = self._table.get(name)
        if versions is None or (version and version not in versions):
            raise self._missing(name, version)
        if version:
            return versions[version]
        return next(iter(versions.values()))

    def ready(self, name: str, version: str = "") -> ServedModel:
        """The same, if it is ready.

        Raises:
            RequestError: There is none, or it is not ready.
        """
        found = self.find(name, version)
        why = found.why_not_ready
        if why:
            raise RequestError(Kind.UNAVAILABLE, f"model {name!r} is not ready: {why}", 1)
        return found

    def usable(self, name: str, version: str = "") -> ServedModel:
        """The same, if requests may be sent there; those to a process that starts again wait.

        Raises:
            RequestError: There is none.
        """
        return self.find(name, version)

    def known(self, name: str, version: str = "") -> ServedModel | None:
        """The same; None if there is none."""
        versions = self._table.get(name, {})
        return versions.get(version) if version else next(iter(versions.values()), None)

    def versions(self, name: str) -> list[str]:
        """Those of a model that can be used, as text in rising order."""
        return list(self._table.get(name, {}))[::-1]

    def names(self) -> list[str]:
        """Of all models that are served."""
        return sorted(self._table)

    def all(self) -> list[ServedModel]:
        """All versions of all models that are served, by name and then from the newest on."""
        table = self._table
        return [model for name in sorted(table) for model in table[name].values()]

    def index(self) -> list[Status]:
        """What is known of all versions, served or not, by name and number."""
        with self._lock:
            found = list(self._statuses.values())
        return sorted(found, key=lambda one: (one.name, int(one.version or 0)))

    def failures(self) -> list[Status]:
        """Those whose last load failed, whether something of them is served or not."""
        return [one for one in self.index() if one.reason and one.reason != UNLOADED]

    def status(self, name: str, version: str = "") -> Status | None:
        """What the index says of one version."""
        with self._lock:
            return self._statuses.get((name, version))

    def are_ready(self) -> bool:
        """Whether every model is ready: all that is served, and of each model something.

        A version that failed to load does not count where another of its model serves: a bad file
        must not take a server out of use that does its work.
        """
        table = self._table
        if not all(model.is_ready for model in self.all()):
            return False
        with self._lock:
            failed = {one.name for one in self._statuses.values() if one.is_failure}
        return failed <= table.keys()

    def _missing(self, name: str, version: str) -> RequestError:
        """The error for what is not served."""
        with self._lock:
            known = [one for key, one in self._statuses.items() if key[0] == name]
            served = list(self._table.get(name, {}))
        if version:
            known = [one for one in known if one.version == version] or [
                one for one in known if not served and not one.version
            ]
        if name in self._expected or any(one.state == LOADING for one in known):
            return RequestError(Kind.UNAVAILABLE, f"model {name!r} is being loaded", 1)
        for one in known:
            if one.is_failure:
                text = f"model {name!r} is not ready: {one.reason}"
                return RequestError(Kind.UNAVAILABLE, text, retry_after_s=1)
        if served:
            text = f"unknown model {name!r} version {version!r}; it has versions {served}"
            return RequestError(Kind.NOT_FOUND, text)
        if known:
            text = f"model {name!r} has no available versions: it was unloaded"
            return RequestError(Kind.NOT_FOUND, text)
        text = f"unknown model {name!r}; served are {', '.join(self.names())}"
        return RequestError(Kind.NOT_FOUND, text)


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
    """The model of a service that passed its probe; one that did not is closed."""
    try:
        model = ServedModel(
            name,
            version,
            service,
            {info.name: _port(info, options) for info in service.inputs},
            {info.name: _port(info, options) for info in service.outputs},
            options.platform,
            options.max_batch_size,
            config=options.config,
            file=options.file,
            workers=service.statistics().layout.workers,
        )
        _probe(name, service)
    except BaseException:
        service.close(0.0)
        raise
    return model


def _port(info: TensorInfo, options: ModelOptions) -> Port:
    found = of_dtype(info.dtype)
    if found is None:
        raise EngineError(f"{info.name!r} is {info.dtype}, which the protocol has no name for")
    shape = options.config.shape_of(info.name, info.shape)
    return Port(info.name, found.name, shape, tuple(options.labels.get(info.name, ())))


def _probe(name: str, service: PoolLike) -> None:
    """Run every worker of a model once. Open sizes cannot be tried.

    Raises:
        ProbeError: That failed.
    """
    shapes = service.warm_up_shapes() if service.spec.warm_up else None
    try:
        if shapes is not None:
            service.warm_up(shapes)
    except LiteError as exc:
        _LOG.warning("model %s failed its probe: %s", name, exc)
        raise ProbeError(f"it failed its probe: {exc}") from exc


def _described(port: Port) -> dict[str, object]:
    return {"name": port.name, "datatype": port.datatype, "shape": list(port.shape)}
