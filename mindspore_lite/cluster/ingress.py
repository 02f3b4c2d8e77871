"""The door of a cluster: the server of `mslite serve`, whose models run on the replicas.

It has the ports, handlers, limits, metrics and dashboard of server/, opened by each replica of the
ingress itself. So a request takes one hop of Ray instead of two: its HTTP proxy is not on the way.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from mindspore_lite.cluster.handle_service import HandleService
from mindspore_lite.cluster.replica import Description, Place
from mindspore_lite.errors import ClosedError, EngineError, LiteError
from mindspore_lite.server.allocator import limit_arenas
from mindspore_lite.server.server import Server

_LOOK_S = 1.0  # how often replicas are asked what they serve
_SILENT_S = 10.0  # within which one of them must answer; guess
_DRAIN_S = 15.0  # for requests under way at the end, within the 20 that Ray waits


class ClusterServer(Server):
    """A Server in front of deployments.

    Args:
        place: Where the models are, for what their files say of them.
        handles: Of the deployments, by model.
        retry: Whether lost requests are sent once more, by model.
        options: Arguments of Server.
    """

    def __init__(
        self,
        place: Place,
        handles: Mapping[str, Any],
        retry: Mapping[str, bool],
        options: Mapping[str, Any],
    ) -> None:
        super().__init__(list(place.models), **options)
        self.core.control = None  # a model is loaded by its replicas, never here
        self._place, self._handles, self._retries = place, handles, retry
        self._over = threading.Event()
        self._services: dict[str, HandleService] = {}
        self._watch = threading.Thread(target=self._look, name="mslite-replicas", daemon=True)

    def _load(self) -> None:
        self.core.models.expect(self._handles)
        for name in self._handles:
            self._follow(name, self._asked(name, None))
        self._watch.start()

    def stop_loading(self) -> None:
        """Watch the replicas no more."""
        self._over.set()
        super().stop_loading()

    def _asked(self, name: str, limit_s: float | None) -> Description:
        """What a replica says of itself; without a limit, once there is one."""
        while True:
            response = self._handles[name].describe.remote()
            try:
                found = response.result(timeout_s=_SILENT_S if limit_s is None else limit_s)
            except TimeoutError:
                response.cancel()
                if limit_s is not None:
                    raise
                if self._over.is_set():
                    raise ClosedError("the server was closed while it waited for models") from None
            else:
                if not isinstance(found, Description):
                    raise EngineError(f"a replica of {name!r} does not describe itself")
                return found

    def _follow(self, name: str, told: Description) -> None:
        """Serve the version that the replicas serve."""
        models, service = self.core.models, self._services.get(name)
        if service is not None and told.version == service.told.version:
            service.told, service.why_down = told, ""
            return
        service = HandleService(self._handles[name], told, retry=self._retries.get(name, True))
        entry, loading = self._place.entry(name), self._place.loading()
        started: HandleService = service
        models.load(name, told.version, lambda: started, loading.options(entry, told.version))
        self._services[name] = service
        for other in models.versions(name):
            if other != told.version:
                models.unload_soon(name, other)

    def _look(self) -> None:
        while not self._over.wait(_LOOK_S):
            for name in self._handles:
                try:
                    self._follow(name, self._asked(name, _SILENT_S))
                except Exception as exc:  # noqa: BLE001 - whatever it is, no replica answered
                    self._services[name].why_down = f"no replica answers: {type(exc).__name__}"


class Ingress:
    """The deployment around a ClusterServer; Ray makes one in each of its processes.

    Args:
        place: See ClusterServer.
        retry: Likewise.
        options: Likewise.
        handles: Of the deployments, by model.
    """

    def __init__(
        self,
        place: Place,
        retry: Mapping[str, bool],
        options: Mapping[str, Any],
        handles: Mapping[str, Any],
    ) -> None:
        limit_arenas()
        self._server = ClusterServer(place, handles, retry, options)
        failure: list[BaseException] = []

        def start() -> None:  # handles are waited for, which the constructor's own loop must not
            try:
                self._server.start()
            except BaseException as exc:  # noqa: BLE001 - raised below
                failure.append(exc)

        thread = threading.Thread(target=start, name="mslite-start")
        thread.start()
        thread.join()
        if failure:
            raise failure[0]

    def ports(self) -> dict[str, int]:
        """The numbers of its ports, 0 for those that are not there."""
        server = self._server
        return {"http": server.http_port, "grpc": server.grpc_port, "metrics": server.metrics_port}

    def check_health(self) -> None:
        """Ask whether the server gets something done.

        Raises:
            LiteError: It does not.
        """
        if not self._server.core.is_live:
            raise LiteError("the ports of the ingress have stalled")

    def __del__(self) -> None:
        server = self.__dict__.get("_server")
        if server is not None:
            server.drain(_DRAIN_S)
