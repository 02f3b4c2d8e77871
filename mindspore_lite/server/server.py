"""Server: models that clients use over a network, for programs and for `mslite serve`.

Who owns what. The Core holds what all ports share. Each port has threads of its own; the models run
on the threads of their services. `start` opens the ports before it loads the models, so that probes
are answered meanwhile; `drain` and `close` take it all down in the other order.

A further protocol is one more Port: a class with the methods below that takes the Core, and a line
in `_ports`. It asks `core.gate` before anything else, finds models by `core.models.usable`, makes
an InferRequest (request.py), and answers errors by the table of errors.py.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

from mindspore_lite.context import Context
from mindspore_lite.core import checks
from mindspore_lite.core.boundary import boundary
from mindspore_lite.errors import ClosedError, EngineUnavailableError

if TYPE_CHECKING:
    from mindspore_lite.server.control import Control
    from mindspore_lite.server.core import Core
    from mindspore_lite.server.dashboard.sampler import Sampler
    from mindspore_lite.server.eviction import Evictor
    from mindspore_lite.server.grpc.options import GrpcOptions
    from mindspore_lite.server.http.port import HttpOptions
    from mindspore_lite.server.loading import Loading
    from mindspore_lite.server.sources import Models, Sources

GRACE_S = 25.0  # to finish what is under way; Kubernetes kills after 30 s
_IDLE_S = 1.0  # for which an idle connection stays open at the end, for requests on their way
_MOST_PORT = 65_535
_FAILED = "the server cannot be started! "
_POLL_S = 15.0  # how often files are looked at, unless it is said; Triton's number


class Port(Protocol):
    """One protocol's door."""

    number: int

    def start(self) -> int:
        """Open it; returns the number of its port."""

    def stop_accepting(self, idle_s: float) -> None:
        """Take no new connections; close those that stay idle for so long."""

    def wait_idle(self, limit_s: float) -> bool:
        """Wait until all that was under way is answered; whether it was in time."""

    def close(self) -> None:
        """Close at once. Harmless when repeated."""


class Server:
    """Serves models over HTTP and gRPC with the Open Inference Protocol.

    The ports are open from start() to close(). Everything may be called from any thread.

    Args:
        models: Model files by the name to serve them under, or a list of files, each under the
            name of the file without its suffix. A folder is a repository of models, each under a
            name of its own; one that is given a name must hold one model.
        host: The address to listen on. Others than the loopback's are open to the network.
        http_port: 0 is any.
        grpc_port: 0 is any; None is the next after http_port, or any if that is any.
        grpc: Whether to serve gRPC at all.
        context: How the models run, as for ModelParallelRunner.
        tokens: Of clients, who send one as `Authorization: Bearer TOKEN`; none lets all in.
        admin_tokens: Of administrators; without one, nobody is.
        tls_cert: A PEM file with the certificate chain, for HTTPS.
        tls_key: Its key; "" if it is in the same file.
        tls_client_ca: A PEM file of authorities: clients need a certificate of one of them.
        allow_hosts: Names that requests may be for; None is any, or only localhost where the
            address is the loopback's. Addresses are always allowed.
        allow_origins: Of pages in browsers that may use the server.
        limits: Other values for the limits of mindspore_lite/server/limits.py, by name.
        access_log: Log each request as a line of JSON, to the logger of that name.
        grpc_reflection: Let clients ask which gRPC methods there are.
        allow_client_shm: Let clients on this machine pass tensors in shared memory.
        shm_owners: Users, by number, whose shared memory counts, beside the server's own.
        isolation: "thread" runs models on threads of this process, "process" each in a process of
            its own, which is started again when it ends; or one of these for some models, by name.
        retry: Whether requests that were lost with such a process are computed once more.
        metrics_port: A port of its own for /metrics, without a token; 0 is any, None is none. On
            the HTTP port /metrics needs a token like all else.
        control: "none" loads all models at the start, "explicit" those of `load_models` and what
            administrators ask for, "poll" follows changes of the files.
        load_models: Which models "explicit" loads at the start; "*" is all.
        poll_s: How often "poll" looks at the files; 0 is every 15 seconds.
        sandbox: Whether models are built in a jailed process; None is where they may be loaded
            later on, by "explicit" or "poll".
        cache: Bytes of a response cache, by the name of the model; 0 is none. Models of a
            repository may ask for one by themselves.
        memory_quota: Bytes of memory; beyond them, idle models that allow it are closed, and are
            started again by their next request. 0 is no quota.
        tracer_provider: From OpenTelemetry's SDK, for spans of requests; None makes one if the
            OTEL_ variables ask for it.
        shares: Of the cores, by model: how much it may use next to others that are busy, compared
            with their shares. 1 for those that are missing.

    Raises:
        TypeError: An argument is of the wrong type.
        ValueError: A name, limit or file makes no sense.
        RuntimeError: The extra `serve` is not installed.

    Examples:
        >>> import json, urllib.request
        >>> import mindspore_lite as mslite
        >>> from mindspore_lite.cli.demo import DIGITS_MODEL
        >>> with mslite.Server([DIGITS_MODEL], http_port=0) as server:
        ...     url = f"http://127.0.0.1:{server.http_port}/v2/models/digits"
        ...     json.load(urllib.request.urlopen(url))["inputs"]
        [{'name': 'x', 'datatype': 'FP32', 'shape': [-1, 1, 8, 8]}]
    """

    _sampler: Sampler | None = None

    def __init__(
        self,
        models: Models,
        *,
        host: str = "127.0.0.1",
        http_port: int = 8000,
        grpc_port: int | None = None,
        grpc: bool = True,
        context: Context | None = None,
        tokens: Sequence[str] = (),
        admin_tokens: Sequence[str] = (),
        tls_cert: str | os.PathLike[str] = "",
        tls_key: str | os.PathLike[str] = "",
        tls_client_ca: str | os.PathLike[str] = "",
        allow_hosts: Sequence[str] | None = None,
        allow_origins: Sequence[str] = (),
        limits: Mapping[str, float] | None = None,
        access_log: bool = False,
        grpc_reflection: bool = False,
        allow_client_shm: bool = False,
        shm_owners: Sequence[int] = (),
        isolation: str | Mapping[str, str] = "thread",
        retry: bool = False,
        metrics_port: int | None = None,
        control: str = "none",
        load_models: Sequence[str] = (),
        poll_s: float = 0.0,
        sandbox: bool | None = None,
        cache: Mapping[str, int] | None = None,
        memory_quota: int = 0,
        tracer_provider: Any = None,
        shares: Mapping[str, float] | None = None,
    ) -> None:
        _check_installed()
        from mindspore_lite.server.access import Gate
        from mindspore_lite.server.core import Core
        from mindspore_lite.server.grpc.options import GrpcOptions
        from mindspore_lite.server.limits import limits_of
        from mindspore_lite.server.sources import Sources

        self._core = Core(gate=Gate(tokens, admin_tokens), limits=limits_of(limits or {}))
        sandbox = control != "none" if sandbox is None else sandbox
        self._sources, self._loads = Sources(models), _loads(control, load_models)
        quota = self._core.quota_bytes = checks.non_negative("memory_quota", memory_quota)
        loading = _loading(context, isolation, retry, sandbox, shares, cache, evicts=quota > 0)
        self._evictor = _evictor(self._core, loading)
        self._control = _control(self._core, self._sources, loading, control, poll_s)
        tls = (os.fspath(tls_cert), os.fspath(tls_key), os.fspath(tls_client_ca))
        self._http = _http_options(host, http_port, tls, allow_hosts, allow_origins, access_log)
        self._grpc: GrpcOptions | None = None
        if grpc:
            number = _grpc_number(grpc_port, http_port)
            self._grpc = GrpcOptions(host, number, grpc_reflection, *tls, logs=access_log)
        self._metrics_port = None if metrics_port is None else _port("metrics_port", metrics_port)
        _allow_shm(self._core, shm_owners if allow_client_shm else None)
        self._lock = threading.Lock()
        self._open: dict[str, Port] = {}
        self._is_closed = False
        self._tracer_provider = tracer_provider

    @property
    def core(self) -> Core:
        """What its ports share."""
        return self._core

    @property
    def http_port(self) -> int:
        """The number of the HTTP port; 0 before start()."""
        return self._open["http"].number if "http" in self._open else 0

    @property
    def grpc_port(self) -> int:
        """The number of the gRPC port; 0 before start(), or without gRPC."""
        return self._open["grpc"].number if "grpc" in self._open else 0

    @property
    def metrics_port(self) -> int:
        """The number of the port for metrics; 0 before start(), or without one."""
        return self._open["metrics"].number if "metrics" in self._open else 0

    @property
    def is_ready(self) -> bool:
        """Whether all models are loaded and passed their probes, and it is not ending."""
        return bool(self._open) and self._core.is_ready

    @property
    def is_loading(self) -> bool:
        """Whether a model is being built, perhaps although it was closed."""
        return self._control.is_busy

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        from mindspore_lite.server.http.port import is_loopback

        return is_loopback(self._http.host)

    def start(self) -> Self:
        """Open the ports, then load the models; returns when they are ready.

        A start that fails leaves nothing open.

        Raises:
            RuntimeError: A port cannot be opened, or a model cannot be loaded.
        """
        with self._lock:
            if self._is_closed or self._open:
                raise ClosedError("a server is started once; make another")
            from mindspore_lite.server.tracing import tracing_of

            self._core.is_starting = True
            self._core.observer.tracing = tracing_of(self._tracer_provider)
            self._core.health.watch(self._core.models.all)
            try:
                for name, port in self._ports().items():
                    port.start()
                    self._open[name] = port
                self._sampler = _sampler(self._core)
            except BaseException:
                self._end(0.0)
                raise
        try:  # without the lock: it may be closed while models are loaded
            with boundary(_FAILED):
                self._load()
        except BaseException:
            self.close()
            raise
        self._core.is_starting = False
        if self._core.quota_bytes:
            self._evictor.start()
        return self

    def stop_loading(self) -> None:
        """Load no more models. A start() under way raises a ClosedError."""
        self._core.is_ending = True
        self._control.close()

    def drain(self, grace_s: float = GRACE_S) -> bool:
        """Stop being ready, take no new connections, and finish what is under way.

        Then everything is closed. Returns whether all requests were answered within grace_s.
        """
        due_s = time.monotonic() + checks.seconds("grace_s", grace_s)
        self.stop_loading()
        with self._lock:
            for port in self._open.values():
                port.stop_accepting(min(_IDLE_S, grace_s / 2))
            done = True
            for port in self._open.values():
                done &= port.wait_idle(max(0.0, due_s - time.monotonic()))
            self._end(max(0.0, due_s - time.monotonic()))
        return done

    def close(self) -> None:
        """End at once: requests under way are cut off. Harmless when repeated."""
        self.stop_loading()
        with self._lock:
            self._end(0.0)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _load(self) -> None:
        """Load the models of the start."""
        self._control.start(self._loads, needed=self._sources.files)

    def _ports(self) -> dict[str, Port]:
        """All ports, by name, not open yet."""
        from mindspore_lite.server.http.port import HttpPort

        ports: dict[str, Port] = {"http": HttpPort(self._core, self._http)}
        if self._grpc is not None:
            from mindspore_lite.server.grpc.port import GrpcPort

            ports["grpc"] = GrpcPort(self._core, self._grpc)
        if self._metrics_port is not None:
            from mindspore_lite.server.http import metrics

            options = replace(
                self._http, port=self._metrics_port, logs=False, argument="metrics_port"
            )
            ports["metrics"] = HttpPort(self._core, options, metrics.OPEN)
        return ports

    def _end(self, drain_s: float) -> None:
        self._is_closed = self._core.is_ending = self._core.refuses = True
        if self._sampler is not None:
            self._sampler.stop()
        self._core.health.stop()
        for port in self._open.values():
            port.close()
        self._open = {}
        self._evictor.close()
        self._core.models.close(drain_s)
        tracing, self._core.observer.tracing = self._core.observer.tracing, None
        if tracing is not None:
            tracing.close()


def _port(name: str, value: int) -> int:
    """The system would take 70000 as well, for 4464."""
    number = checks.non_negative(name, value)
    if number > _MOST_PORT:
        raise ValueError(f"{name} must be 0 to {_MOST_PORT}, but got {number}.")
    return number


def _http_options(
    host: str,
    port: int,
    tls: tuple[str, str, str],
    hosts: Sequence[str] | None,
    origins: Sequence[str],
    logs: bool,
) -> HttpOptions:
    from mindspore_lite.server.http.port import HttpOptions
    from mindspore_lite.server.tls import server_context

    return HttpOptions(
        host=checks.string("host", host),
        port=_port("http_port", port),
        tls=server_context(*tls),
        hosts=None if hosts is None else checks.instances("allow_hosts", hosts, str),
        origins=checks.instances("allow_origins", origins, str),
        logs=logs,
    )


def _grpc_number(grpc_port: int | None, http_port: int) -> int:
    """The port of gRPC; that after HTTP's if none is given, or any if that is any."""
    beside = http_port + 1 if http_port else 0
    return _port("grpc_port", beside if grpc_port is None else grpc_port)


def _allow_shm(core: Core, owners: Sequence[int] | None) -> None:
    if owners is not None:
        core.allow_shared_memory(checks.integers("shm_owners", owners))


def _loading(
    context: Context | None,
    isolation: str | Mapping[str, str],
    retry: bool,
    sandbox: bool,
    shares: Mapping[str, float] | None,
    cache: Mapping[str, int] | None,
    *,
    evicts: bool,
) -> Loading:
    from mindspore_lite.server.loading import Loading

    given = Context() if context is None else context
    checks.instance("context", given, Context)
    return Loading(
        given,
        isolation,
        retry=retry,
        sandbox=sandbox,
        shares=shares,
        cache=cache,
        evicts=evicts,
    )


def _evictor(core: Core, loading: Loading) -> Evictor:
    """What keeps the memory under the quota, once it is started."""
    from mindspore_lite.server.eviction import Evictor
    from mindspore_lite.server.numbers import process_ids
    from mindspore_lite.server.process_memory import memory_of

    return Evictor(
        lambda: [(*named, service) for service, named in list(loading.evictable.items())],
        lambda: memory_of(process_ids(core.models.all())).rss_bytes,
        core.quota_bytes,
        core.marks.add,
    )


def _loads(control: str, load_models: Sequence[str]) -> Sequence[str]:
    """Which models are loaded at the start."""
    names = checks.instances("load_models", load_models, str)
    if names and control != "explicit":
        raise ValueError("load_models goes with control='explicit'; otherwise all are loaded")
    return names if control == "explicit" else ("*",)


def _control(core: Core, sources: Sources, loading: Loading, mode: str, poll_s: float) -> Control:
    """What loads the models, once it is started."""
    from mindspore_lite.server.control import EXPLICIT, MODES, NONE, POLL, Control

    checks.one_of(*MODES)("control", mode)
    if checks.seconds("poll_s", poll_s) and mode != POLL:
        raise ValueError("poll_s goes with control='poll'")
    names = sources.checked() if mode == NONE else sources.read()
    asked = {
        "isolation": loading.isolated,
        "shares": loading.shares.names,
        "cache": loading.cached,
    }
    for what, given in asked.items():
        unknown = sorted(set(given) - set(names))
        if unknown and mode == NONE:
            raise ValueError(f"{what} names {unknown}, but the models are {sorted(names)}")
    poll_s, mark = poll_s or _POLL_S, core.marks.add
    control = Control(core.models, loading, sources.read, mode=mode, poll_s=poll_s, mark=mark)
    core.add_control(control)
    core.models.expect([] if mode == EXPLICIT else names)
    return control


def _sampler(core: Core) -> Sampler:
    from mindspore_lite.server.dashboard.sampler import Sampler

    found = Sampler(core)
    found.start()
    return found


def _check_installed() -> None:
    for package in ("httptools", "msgspec", "grpc"):
        try:
            __import__(package)
        except ImportError as exc:
            raise EngineUnavailableError(
                f"the server needs the package {package}: pip install 'mslite[serve]'"
            ) from exc
