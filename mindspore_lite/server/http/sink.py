"""A large body on its way into a file, so that memory holds only a little of it.

    sink = FileSink(loop, writer, ready)
    sink += part        what was received; while it `is_full`, receive no more
    sink.finish()       all is received; `ready` is called when all is written

The file has no name: nothing is left of it, however the process ends. It is written by another
thread, for a disk may take its time; all else happens on the loop's thread. `ready` is called there
whenever something was written, or could not be.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import tempfile
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress
from typing import BinaryIO, Self, cast

from mindspore_lite.server.errors import Kind, RequestError

_LOG = logging.getLogger(__name__)
_MOST_BYTES = 1 << 20  # that may wait to be written; guess
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class FileSink:
    """Takes the parts of a body; see the module's text.

    Attributes:
        file: Where they are.
        error: Why they cannot be written; None if they can.
        is_written: All of them are.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, writer: Executor, ready: Callable[[FileSink], None]
    ) -> None:
        self.file: BinaryIO | None = None
        self.error: RequestError | None = None
        self.is_written = False
        self._loop, self._writer, self._ready = loop, writer, ready
        self._size = 0
        self._waiting: list[bytes] = []
        self._is_busy = self._is_closed = self._is_whole = False

    def __len__(self) -> int:
        """Bytes that were taken."""
        return self._size

    def __iadd__(self, part: bytes) -> Self:
        self._size += len(part)
        self._waiting.append(part)
        self._go_on()
        return self

    @property
    def is_full(self) -> bool:
        """Whether so much waits that no more should come."""
        return sum(map(len, self._waiting)) > _MOST_BYTES

    def finish(self) -> None:
        """All parts are here."""
        self._is_whole = True
        self._go_on()

    def close(self) -> None:
        """Nobody wants it any more. Harmless when repeated."""
        self._is_closed = True
        self._waiting.clear()
        if not self._is_busy and self.file is not None:
            self.file.close()

    def _go_on(self) -> None:
        """Have the other thread write what waits, unless it does so already."""
        if self._is_busy or self._is_closed or self.error is not None:
            return
        if self._waiting or self.file is None:
            parts, self._waiting = self._waiting, []
            self._is_busy = True
            self._writer.submit(self._write, parts)
        elif self._is_whole and not self.is_written:
            self.is_written = True
            self._loop.call_soon(self._ready, self)

    def _write(self, parts: list[bytes]) -> None:
        """On the other thread."""
        error: OSError | None = None
        try:
            if self.file is None:
                made = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - close() closes it
                self.file = cast(BinaryIO, made)
            for part in parts:
                _write_all(self.file, part)
        except OSError as exc:
            error = exc
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._wrote, error)

    def _wrote(self, error: OSError | None) -> None:
        self._is_busy = False
        if self._is_closed:
            self.close()
            return
        if error is not None:
            self.error = _refusal(error)
        self._go_on()
        if not self.is_written:
            self._ready(self)


def _write_all(file: BinaryIO, part: bytes) -> None:
    view = memoryview(part)
    while view:
        view = view[file.write(view) :]


def _refusal(error: OSError) -> RequestError:
    if error.errno in _FULL:
        text = "the server has no room on its disk for the body; free some, or set TMPDIR"
        return RequestError(Kind.NO_SPACE, text)
    _LOG.error("the body of a request cannot be written to a file: %s", error)
    return RequestError(Kind.FAILED, "the server cannot write the body to a file; see its log")
