"""Shared memory of clients on this machine: the extension system_shared_memory.

    memory = SharedMemory(owners={os.getuid()})
    memory.register("in", key="/my_inputs", offset=0, byte_size=4096)
    read = memory.reader("in", offset=0, byte_size=4096)     for an InferInput
    memory.unregister("in")

A client makes the memory, by shm_open, and may change or shrink it at any time. So nothing here is
mapped: reading a mapped page that is gone would end the process. The bytes are copied out by pread
before anything looks at them, and in by pwrite. Only plain files right in /dev/shm that belong to
an allowed user are opened, and no links are followed. Sizes are computed in Python's integers.
A region that is unregistered stays open for the requests that use it, and no longer.
"""

from __future__ import annotations

import math
import os
import stat
import threading
import weakref
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mindspore_lite.server.datatypes import Datatype
from mindspore_lite.server.errors import Kind, RequestError
from mindspore_lite.server.limits import MIB
from mindspore_lite.server.request import InferOutput, Read, Shape, Write, invalid, raw_reader

if TYPE_CHECKING:
    from mindspore_lite.server.core import Flight

EXTENSION = "system_shared_memory"
FOLDER = "/dev/shm"
_MOST_REGIONS = 1024  # each keeps a file open; guess
_MOST_NAME = 255  # bytes of a key or name; of a file name on Linux
_NOT_OURS = ("sem.", "triton_python_backend_shm_region_")  # semaphores; what Triton refuses


class _File:
    """An open file that closes when nothing refers to it any more."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __del__(self) -> None:
        with suppress(OSError):
            os.close(self.number)


@dataclass(frozen=True)
class Region:
    """A range of shared memory under a name.

    Attributes:
        name: By which requests use it.
        key: Of the memory, as the client gave it.
        offset: Where the range begins, in bytes.
        byte_size: How long it is.
    """

    name: str
    key: str
    offset: int
    byte_size: int


class SharedMemory:
    """The regions that clients registered. Safe from many threads."""

    def __init__(
        self,
        owners: Iterable[int] = (),
        most_bytes: int = 64 * MIB,
        folder: str = FOLDER,
        flight: Flight | None = None,
    ) -> None:
        """Take memory of these users, by number, and of the server's own.

        An input may have `most_bytes`. Its copy counts in `flight` for as long as it is there.
        """
        self._flight = flight
        self._owners = frozenset(owners) | {os.getuid()}
        self._most_bytes = most_bytes
        self._folder = folder
        self._lock = threading.Lock()  # guards who changes _regions; reading takes none
        self._regions: dict[str, tuple[Region, _File]] = {}

    def register(self, name: str, key: str, offset: int, byte_size: int) -> None:
        """Let requests use a range of a client's memory.

        Raises:
            RequestError: It is there already, is not a client's memory, or is too short.
        """
        if not 1 <= _bytes(name) <= _MOST_NAME:
            raise invalid(f"the name of a region must have 1 to {_MOST_NAME} bytes")
        region = Region(name, key, offset, byte_size)
        with self._lock:
            self._check_new(name)
        file = self._open(key)
        size = os.fstat(file.number).st_size
        if byte_size < 1 or offset < 0 or offset + byte_size > size:
            raise invalid(
                f"region {name!r} of {byte_size} bytes from {offset} on does not lie in shared "
                f"memory {key!r}, which has {size}"
            )
        with self._lock:
            self._check_new(name)
            self._regions = {**self._regions, name: (region, file)}

    def unregister(self, name: str = "") -> None:
        """Forget a region, or all without a name; harmless if there is none."""
        with self._lock:
            self._regions = {k: v for k, v in self._regions.items() if k != name} if name else {}

    def status(self, name: str = "") -> list[Region]:
        """All regions, or the one of this name.

        Raises:
            RequestError: There is none of this name.
        """
        return [self._find(name)[0]] if name else [one for one, _ in self._regions.values()]

    def reader(self, region: str, offset: int, byte_size: int) -> Read:
        """What reads an input from a region.

        Raises:
            RequestError: There is no such region, or the range is not in it.
        """
        file, at = self._range(region, offset, byte_size)
        if byte_size > self._most_bytes:
            raise RequestError(
                Kind.TOO_LARGE,
                f"an input in shared memory has {byte_size} bytes, at most {self._most_bytes} go",
            )

        def read(datatype: Datatype, shape: Shape) -> np.ndarray:
            expected = math.prod(shape) * datatype.item_bytes
            if byte_size != expected:  # before memory is taken for it
                raise invalid(
                    f"input byte size mismatch: got {byte_size} bytes, shape {list(shape)} of "
                    f"{datatype.name} takes {expected}"
                )
            room = self._room(byte_size)
            _read(file, region, at, room.data)
            return raw_reader(room.data)(datatype, shape)

        return read

    def writer(self, region: str, offset: int, byte_size: int) -> Write:
        """What writes an output to a region.

        Raises:
            RequestError: There is no such region, or the range is not in it.
        """
        file, at = self._range(region, offset, byte_size)

        def write(output: InferOutput) -> None:
            raw = output.raw()
            if raw.nbytes > byte_size:
                raise invalid(
                    f"output {output.name!r} has {raw.nbytes} bytes, its range in shared memory "
                    f"only {byte_size}"
                )
            _write(file, region, at, raw)

        return write

    def _room(self, count: int) -> np.ndarray:
        """Memory for a copy, counted until nothing refers to it any more."""
        if self._flight is None:
            return np.empty(count, np.uint8)
        self._flight.take(count)
        try:
            room = np.empty(count, np.uint8)
        except MemoryError:
            self._flight.give(count)
            raise
        weakref.finalize(room, self._flight.give, count).atexit = False
        return room

    def _range(self, name: str, offset: int, byte_size: int) -> tuple[_File, int]:
        region, file = self._find(name)
        if offset + byte_size > region.byte_size:
            raise invalid(
                f"{byte_size} bytes from {offset} on do not lie in the shared memory region "
                f"{name!r}, which has {region.byte_size}"
            )
        return file, region.offset + offset

    def _find(self, name: str) -> tuple[Region, _File]:
        found = self._regions.get(name)
        if found is None:
            raise RequestError(
                Kind.NOT_FOUND, f"Unable to find shared memory region {name[:_MOST_NAME]!r}"
            )
        return found

    def _check_new(self, name: str) -> None:
        if name in self._regions:
            raise RequestError(
                Kind.EXISTS, f"shared memory region {name!r} already in manager; unregister it"
            )
        if len(self._regions) >= _MOST_REGIONS:
            raise RequestError(
                Kind.UNAVAILABLE, f"there are {_MOST_REGIONS} regions, and no room for more"
            )

    def _open(self, key: str) -> _File:
        """The memory of a key, if a client may have it used."""
        name = key.lstrip("/")
        refused = invalid(f"shared memory {key[:_MOST_NAME]!r} cannot be opened")
        if (
            not 1 <= _bytes(name) <= _MOST_NAME
            or "/" in name
            or "\0" in name
            or name in (".", "..")
            or name.startswith(_NOT_OURS)
        ):
            raise refused
        try:  # without O_NONBLOCK, to open a pipe would wait
            flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
            file = _File(os.open(os.path.join(self._folder, name), flags))
        except (OSError, UnicodeError) as exc:
            raise refused from exc
        found = os.fstat(file.number)
        # the same words whatever is wrong: they shall not tell what other users have
        if not stat.S_ISREG(found.st_mode) or found.st_uid not in self._owners:
            raise refused
        return file


def _bytes(text: str) -> int:
    return len(text.encode(errors="surrogatepass"))


def _read(file: _File, region: str, at: int, view: memoryview) -> None:
    """Copy bytes of shared memory."""
    done = 0
    while done < view.nbytes:
        try:
            got = os.preadv(file.number, [view[done:]], at + done)
        except OSError as exc:
            raise _gone(region) from exc
        if not got:  # the client made it shorter
            raise _gone(region)
        done += got


def _write(file: _File, region: str, at: int, raw: memoryview) -> None:
    """Copy bytes into shared memory, which is not made longer by that."""
    done = 0
    try:
        if os.fstat(file.number).st_size < at + raw.nbytes:
            raise _gone(region)
        while done < raw.nbytes:
            done += os.pwrite(file.number, raw[done:], at + done)
    except OSError as exc:
        raise _gone(region) from exc


def _gone(region: str) -> RequestError:
    return invalid(f"the shared memory of region {region!r} is shorter than it was")
