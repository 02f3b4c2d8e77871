"""Why a port cannot be opened, in words that say what to do."""

from __future__ import annotations

import errno
import os
import socket

from mindspore_lite.errors import EngineError


def cannot_open(argument: str, host: str, port: int, exc: OSError) -> EngineError:
    """The error for an address that the system refuses; `argument` names the port, as http_port."""
    if isinstance(exc, socket.gaierror):
        return EngineError(f"the host {host!r} is not known: {exc.strerror}; give an address")
    what = f"{argument} {port} of {host} cannot be opened"
    if exc.errno == errno.EADDRINUSE:
        return EngineError(
            f"{what}: another program listens there; end it, or choose another {argument} (0 takes "
            "any that is free)"
        )
    if exc.errno == errno.EADDRNOTAVAIL:
        return EngineError(f"{what}: this machine has no such address; choose another host")
    if exc.errno in (errno.EACCES, errno.EPERM):
        return EngineError(f"{what}: ports below 1024 take privileges; choose another {argument}")
    reason = os.strerror(exc.errno) if exc.errno else str(exc)
    return EngineError(f"{what}: {reason}; choose another {argument}")


def check_free(argument: str, host: str, port: int) -> None:
    """Find out what is wrong with an address where a library does not say it.

    Raises:
        EngineError: It cannot be opened.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, kind, protocol, _, address in found:
            with socket.socket(family, kind, protocol) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:  # as if IPv4 had a port of its own
                    probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                probe.bind(address)
    except OSError as exc:
        raise cannot_open(argument, host, port, exc) from exc
