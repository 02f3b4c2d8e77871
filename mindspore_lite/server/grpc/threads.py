"""Threads of the gRPC port, and how many of them are busy."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any


class Threads(ThreadPoolExecutor):
    """So many threads, made when they are needed. Each kind of call has its own, so that those
    that wait for a model never keep a probe waiting."""

    def __init__(self, size: int, name: str) -> None:
        super().__init__(size, f"mslite-grpc-{name}")
        self.size = size
        self._counting = threading.Lock()
        self._busy = 0

    @property
    def busy(self) -> int:
        """How many calls are under way."""
        return self._busy

    @property
    def is_full(self) -> bool:
        """Whether one more call would have to wait for a thread."""
        return self._busy >= self.size

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run it on a thread, and count it until it has ended."""
        future = super().submit(fn, *args, **kwargs)
        with self._counting:
            self._busy += 1
        future.add_done_callback(self._ended)
        return future

    def _ended(self, _: Future[Any]) -> None:
        with self._counting:
            self._busy -= 1
