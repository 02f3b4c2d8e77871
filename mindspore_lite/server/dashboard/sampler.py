"""Takes a sample of the server's numbers every second, on a thread of its own."""

from __future__ import annotations

import logging
import threading
import time

from mindspore_lite.server.core import Core
from mindspore_lite.server.numbers import numbers

_LOG = logging.getLogger(__name__)
_EVERY_S = 1.0


class Sampler:
    """Fills the history of a server from start() to stop()."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mslite-history", daemon=True)

    def start(self) -> None:
        """Take the first sample now, and go on."""
        self._thread.start()

    def stop(self) -> None:
        """Take no more. Harmless when repeated, and before start()."""
        self._ending.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        due_s = time.monotonic()
        while not self._ending.wait(max(0.0, due_s - time.monotonic())):
            now_s = time.monotonic()
            try:
                self._core.history.add(numbers(self._core), now_s)
            except Exception:  # noqa: BLE001 - the dashboard must not go blind for one bad second
                _LOG.warning("a sample of the server's numbers failed", exc_info=True)
            due_s = max(due_s, now_s - _EVERY_S) + _EVERY_S  # what was missed is not made up for
