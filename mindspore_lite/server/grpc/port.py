"""The gRPC port of a server: opens it, and takes it down."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import grpc

from mindspore_lite.core.files import open_file
from mindspore_lite.errors import EngineError
from mindspore_lite.server.address import check_free
from mindspore_lite.server.core import Core
from mindspore_lite.server.grpc.gate import GateInterceptor
from mindspore_lite.server.grpc.options import GrpcOptions
from mindspore_lite.server.grpc.service import Pools, Service

_FOREVER_S = 1e6  # more than any grace
_MOST_PEM = 1 << 20  # bytes of a file of certificates
_MORE_CALLS = 512  # beside those of models: probes, refusals; guess


class _Handlers(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Finds the handler of a call."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def service(self, handler_call_details: Any) -> Any:
        """None if there is none."""
        return self._service.handler(handler_call_details)


class GrpcPort:
    """The port, with its threads. Everything may be called from any thread."""

    def __init__(self, core: Core, options: GrpcOptions) -> None:
        self.number = 0
        self._core = core
        self._options = options
        self._idle_s = 0.0
        self._pools = Pools.of(core)
        self._service = Service(core, self._pools, options.logs)
        core.connections["grpc"] = self._pools.busy
        self._server: Any = None
        self._stopped: Any = None

    def start(self) -> int:
        """Open it; returns its number.

        Raises:
            EngineError: The address cannot be had.
            EngineUnavailableError: Reflection is asked for, and not installed.
        """
        options, service = self._options, self._service
        if options.reflection:
            service.add_reflection()
        gate = GateInterceptor(
            self._core, service.needs, service.limited, self._pools.probes, logs=options.logs
        )
        limits = self._core.limits
        server = grpc.server(
            self._pools.small,
            handlers=[_Handlers(service)],
            interceptors=[gate],
            options=_channel_options(limits.body_bytes, limits.grpc_calls, limits.head_bytes),
            maximum_concurrent_rpcs=limits.grpc_calls + limits.grpc_streams + _MORE_CALLS,
        )
        host = f"[{options.host}]" if ":" in options.host else options.host
        address = f"{host}:{options.port}"
        try:
            credentials = _credentials(options)
            if credentials is None:
                self.number = server.add_insecure_port(address)
            else:
                self.number = server.add_secure_port(address, credentials)
        except RuntimeError as exc:  # all that gRPC says
            check_free("grpc_port", options.host, options.port)
            raise EngineError(
                f"the gRPC port {address} cannot be opened; is another server there?"
            ) from exc
        server.start()
        self._server = server
        self._core.health.prompt("grpc", self._pools.probes.submit)
        return self.number

    def stop_accepting(self, idle_s: float) -> None:
        """Take no new calls; streams that stay idle for so long are ended."""
        if self._server is not None:
            self._idle_s = idle_s
            self._stopped = self._server.stop(_FOREVER_S)

    def wait_idle(self, limit_s: float) -> bool:
        """Wait until all that was under way is answered; whether it was in time."""
        if self._stopped is None:
            return True
        due_s = time.monotonic() + limit_s
        if self._stopped.wait(min(self._idle_s, limit_s)):
            return True
        self._service.end_when_idle()
        return bool(self._stopped.wait(max(0.0, due_s - time.monotonic())))

    def close(self) -> None:
        """Close at once: calls under way are cancelled. Harmless when repeated."""
        self._core.health.unprompt("grpc")
        server, self._server = self._server, None
        if server is not None:
            self._service.end_when_idle()
            server.stop(0).wait()
        self._pools.close()


def _channel_options(
    message_bytes: int, streams: int, head_bytes: int
) -> Sequence[tuple[str, int]]:
    return (
        ("grpc.max_receive_message_length", message_bytes),
        ("grpc.max_send_message_length", -1),  # what a model gives is sent
        ("grpc.max_metadata_size", head_bytes),
        ("grpc.absolute_max_metadata_size", head_bytes),
        ("grpc.max_concurrent_streams", streams),  # of a connection
        ("grpc.so_reuseport", 0),  # a port belongs to one server
        # clients that are gone without a word are noticed within about a minute
        ("grpc.keepalive_time_ms", 60_000),
        ("grpc.keepalive_timeout_ms", 20_000),
        ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
        ("grpc.http2.max_ping_strikes", 2),
    )


def _credentials(options: GrpcOptions) -> Any:
    if not options.tls_cert:
        return None
    cert = _pem(options.tls_cert)
    key = _pem(options.tls_key) if options.tls_key else cert
    authorities = _pem(options.tls_client_ca) if options.tls_client_ca else None
    return grpc.ssl_server_credentials(
        [(key, cert)], authorities, require_client_auth=authorities is not None
    )


def _pem(path: str) -> bytes:
    file = open_file(Path(path))
    if file.size > _MOST_PEM:
        raise ValueError(f"a PEM file has {file.size} bytes, at most {_MOST_PEM} go")
    return bytes(file.load())
