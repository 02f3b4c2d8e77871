"""How a worker process begins and ends: as a child with an inherited socket, or on a path."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress

from mindspore_lite.worker.guest import keep_notes
from mindspore_lite.worker.host import Host, abstract_listener, path_listener


def serve_descriptor(descriptor: int, cores: Sequence[int] = ()) -> None:
    """Serve the process at the other end of an inherited socket; never returns."""
    _prepare(cores)
    owner = socket.socket(fileno=descriptor)
    owner.set_inheritable(False)
    listener, address = abstract_listener()
    host = Host(listener, address)
    signal.signal(signal.SIGTERM, lambda *_: host.ask_to_end())
    host.run(owner)
    _leave()


def serve_path(path: str, cores: Sequence[int] = (), *, stays: bool = False) -> None:
    """Serve processes that connect to a path; never returns, except with an error."""
    _prepare(cores)
    path = os.path.abspath(path)
    listener = path_listener(path)
    mark = os.lstat(path)
    try:
        host = Host(listener, path, stays=stays)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: host.ask_to_end())
        print(f"mslite worker {os.getpid()} listens on {path}", flush=True)  # noqa: T201
        host.run()
    finally:
        with suppress(OSError):
            if os.lstat(path).st_ino == mark.st_ino:  # not one that took its place
                os.unlink(path)
    _leave()


def _prepare(cores: Sequence[int]) -> None:
    if cores:
        os.sched_setaffinity(0, cores)  # before any engine counts them
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    keep_notes()


def _leave() -> None:
    """End the process, whatever still computes: nobody is there to want it."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(0)
