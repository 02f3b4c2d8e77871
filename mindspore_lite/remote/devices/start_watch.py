"""A start_watched over a worker that builds: a process goes in, and is ended when it falls silent.

A build may take as long as it likes, so there is no deadline. But a worker answers questions while
it builds: one that does not, for much longer than a build may keep its interpreter busy, hangs.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from mindspore_lite.core.deadline import WATCHDOG
from mindspore_lite.errors import LiteError
from mindspore_lite.remote.devices.heartbeat import Heartbeat
from mindspore_lite.remote.devices.process import WorkerProcess

EVERY_S = 10.0  # how often it is asked; most builds are over by then
SILENT_S = 300.0  # guess: parsing a huge model may hold the interpreter's lock for minutes

_LOG = logging.getLogger(__name__)


@contextmanager
def start_watched(process: WorkerProcess) -> Iterator[None]:
    """Have a process, whose session is there, ended if it falls silent within the `with` block."""
    over = threading.Event()

    def begin() -> None:
        threading.Thread(
            target=_ask,
            args=(process, over),
            name=f"mslite-start_watched-{process.device}",
            daemon=True,
        ).start()

    entry = WATCHDOG.watch(time.monotonic() + EVERY_S, begin)
    try:
        yield
    finally:
        over.set()
        WATCHDOG.cancel(entry)


def _ask(process: WorkerProcess, over: threading.Event) -> None:
    heartbeat = Heartbeat(process)
    while not over.is_set() and process.alive:  # the building thread reports how a process died
        try:
            silent_s = heartbeat.ask()
        except LiteError as exc:  # there is no lane to ask over: that tells nothing about it
            _LOG.warning("%s cannot be asked: %s", process.name, exc)
            silent_s = 0.0
        if silent_s >= SILENT_S and not over.is_set():
            _LOG.error("the worker process of %s hangs while it builds", process.name)
            process.kill(f"it did not answer for {silent_s:.1f} s while it built the model")
            return
        over.wait(EVERY_S)
