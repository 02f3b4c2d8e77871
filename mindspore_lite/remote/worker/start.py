"""Starts and ends a worker process: as a child with an inherited socket, or on a path.

The process ends by os._exit: no client is left for what still computes. Nothing stays behind, since
blocks of shared memory have no names, and the kernel frees them.
"""

from __future__ import annotations

import logging
import os
import resource
import select
import signal
import socket
import sys
import threading
from collections.abc import Sequence
from contextlib import closing, suppress
from typing import NoReturn

from mindspore_lite.core.deadline import WATCHDOG
from mindspore_lite.errors import ResourceError
from mindspore_lite.remote.worker.client_session import keep_notes
from mindspore_lite.remote.worker.listener import (
    Listener,
    abstract_listener,
    path_listener,
    private_listener,
)
from mindspore_lite.remote.worker.server import WorkerServer, say

_MOST_FILES = 1 << 16  # descriptors that a worker asks for, where it may: for blocks and lanes
_LOG = logging.getLogger(__name__)


def serve_descriptor(descriptor: int, cores: Sequence[int] = ()) -> NoReturn:
    """Serve the process at the other end of an inherited socket; returns only by an error.

    Raises:
        ValueError: The descriptor is no such socket, or the cores cannot be used.
        ResourceError: The worker cannot begin.
    """
    client = _inherited(descriptor)
    _leave_ctrl_c_to_parent()
    with _prepare(cores) as signals:
        _serve(WorkerServer(abstract_listener()), signals, _parent(), client)


def serve_path(path: str, cores: Sequence[int] = (), *, stays: bool = False) -> NoReturn:
    """Serve processes that connect to a path; returns only by an error.

    Raises:
        ValueError: No socket can have such a path, or the cores cannot be used.
        ResourceError: The worker cannot begin, or not there.
    """
    with _prepare(cores) as signals, closing(path_listener(path)) as listener:
        host, parent = WorkerServer(listener, stays=stays), None if stays else _parent()
        _told(listener)
        _serve(host, signals, parent)


def serve_private(cores: Sequence[int] = ()) -> NoReturn:
    """Serve the process that started this one, on a path printed for it; see serve_path.

    Raises:
        ValueError: The cores cannot be used.
        ResourceError: The worker cannot begin, or the other process is gone.
    """
    _leave_ctrl_c_to_parent()
    with _prepare(cores) as signals, closing(private_listener()) as listener:
        host, parent = WorkerServer(listener), _parent()
        if not _told(listener):
            raise ResourceError("the process that started this worker has ended")
        _serve(host, signals, parent)


def _told(listener: Listener) -> bool:
    return say(f"mslite worker {os.getpid()} listens on {listener.address}")


def _serve(
    host: WorkerServer,
    signals: socket.socket,
    parent: int | None,
    client: socket.socket | None = None,
) -> NoReturn:
    """Serve until there is nothing left to do; the parent is watched, unless it is None."""

    def wait_for_signal() -> None:
        signals.recv(1)
        host.ask_to_end()

    try:
        WATCHDOG.start()  # now, rather than when no thread can be had
        threading.Thread(target=wait_for_signal, name="mslite-signals", daemon=True).start()
        if parent is not None:
            watch = threading.Thread(target=_watch, args=(parent, host), name="mslite-parent")
            watch.daemon = True
            watch.start()
    except RuntimeError as exc:
        raise ResourceError(f"the worker cannot begin: {exc}") from exc
    host.run(client)
    _leave()


def _leave_ctrl_c_to_parent() -> None:
    # which then decides when its workers go; in a terminal, both get it
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _prepare(cores: Sequence[int]) -> socket.socket:
    """Set the process up; returns the socket on which signals arrive."""
    _use(cores)
    for descriptor in range(3):  # else a socket becomes one of these, and lines are written to it
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    keep_notes()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return _caught_signals()


def _caught_signals() -> socket.socket:
    """Where a byte comes in for each signal that asks the process to end.

    A handler in Python would run inside whatever the main thread does, its locks held; and
    threads of libraries, which were there before us, would not keep to a mask of signals.
    """
    read, write = socket.socketpair()
    write.setblocking(False)
    signal.set_wakeup_fd(write.detach(), warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup has it
            signal.signal(number, lambda *_: None)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
    return read


def _use(cores: Sequence[int]) -> None:
    """Keep the process to these cores, before any engine counts them."""
    if not cores:
        return
    before = sorted(os.sched_getaffinity(0))
    try:
        for thread in os.listdir("/proc/self/task"):  # libraries have begun some already
            with suppress(ProcessLookupError):
                os.sched_setaffinity(int(thread), cores)
        missing = sorted(set(cores) - os.sched_getaffinity(0))  # which the kernel leaves out
    except (OSError, ValueError, OverflowError):
        missing = sorted(cores)
    if missing:
        raise ValueError(f"cores {missing} cannot be used; this process may use {before}")


def _inherited(descriptor: int) -> socket.socket:
    """The connected Unix stream socket that the parent left open for this process."""
    sock = None
    try:
        sock = socket.socket(fileno=descriptor)
        if (sock.family, sock.type) != (socket.AF_UNIX, socket.SOCK_STREAM):
            raise ValueError(f"it is {sock.family.name} {sock.type.name}")
        sock.getpeername()
        sock.set_inheritable(False)
        return sock
    except (OSError, ValueError, OverflowError) as exc:
        if sock is not None:
            sock.close()
        raise ValueError(
            f"--fd {descriptor} must be a connected Unix stream socket that was inherited: "
            f"{getattr(exc, 'strerror', None) or exc}"
        ) from exc


def _parent() -> int | None:
    """A descriptor of the process that started this one; None when it cannot be watched.

    To be asked for before that process is told of anything: if it ends later, its end is seen.
    """
    try:
        return os.pidfd_open(os.getppid())
    except OSError as exc:
        _LOG.info("the parent cannot be watched: %s", exc)
        return None


def _watch(parent: int, host: WorkerServer) -> None:
    """Wait for the end of the process that started this one; then end, too."""
    poll = select.poll()
    poll.register(parent, select.POLLIN)
    poll.poll()
    _LOG.info("the parent process ended")
    host.end()


def _leave() -> NoReturn:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # they may have been closed when the process began
            with suppress(OSError, ValueError):
                stream.flush()
    os._exit(0)
