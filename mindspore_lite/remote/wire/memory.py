"""Blocks of shared memory: the worker makes them, the client opens them.

A block is a memfd: it has no name in any file system, so nothing can be left behind or found by
others, and the kernel takes it back when the last of both processes lets go, however they end. Its
size is sealed, so that neither side can make the other fault. A client opens it through /proc,
because Java cannot receive descriptors; the kernel grants that to processes of the same user only.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
from dataclasses import dataclass

from mindspore_lite.errors import ResourceError, WireError

ALIGNMENT = 64  # of whatever is placed in a block
MAX_BLOCK = 1 << 36

_ADD_SEALS, _GET_SEALS = 1033, 1034  # older releases of the fcntl module do not have them
_SEAL_SEAL, _SEAL_SHRINK, _SEAL_GROW = 1, 2, 4
_SEALS = _SEAL_SEAL | _SEAL_SHRINK | _SEAL_GROW


@dataclass(frozen=True)
class Made:
    """How a worker describes a block: its number, the descriptor that it has there, its size."""

    block: int
    descriptor: int
    size: int


class Block:
    """A mapped block; `view` is its memory. It is unmapped when nothing refers to it any more."""

    def __init__(self, number: int, view: mmap.mmap, descriptor: int = -1) -> None:
        self.number = number
        self.view = view
        self.size = len(view)
        self._descriptor = descriptor

    @classmethod
    def make(cls, number: int, size: int) -> Block:
        """The worker's side: new memory, full of zeros, every page of it there.

        Raises:
            ResourceError: There is no room, or there are too many descriptors.
            WireError: The size makes no sense.
        """
        if not 0 < size <= MAX_BLOCK:
            raise WireError(f"a block of {size} bytes was asked for, wanted 1 to {MAX_BLOCK}")
        descriptor = -1
        try:
            descriptor = os.memfd_create("mslite", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            # all pages now: one that is missing later would kill the process that touches it
            os.posix_fallocate(descriptor, 0, size)
            fcntl.fcntl(descriptor, _ADD_SEALS, _SEALS)
            return cls(number, mmap.mmap(descriptor, size), descriptor)
        except (OSError, ValueError) as exc:
            if descriptor >= 0:
                os.close(descriptor)
            raise ResourceError(
                f"{size} bytes of shared memory cannot be had: {exc}; {remedy(exc)}"
            ) from exc

    @classmethod
    def open(cls, pid: int, made: Made) -> Block:
        """The client's side: the same memory."""
        try:
            path = f"/proc/{pid}/fd/{made.descriptor}"
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOCTTY)
        except OSError as exc:
            raise ResourceError(
                f"shared memory of the worker cannot be opened: {exc.strerror}; {remedy(exc)}"
            ) from exc
        try:
            # the worker may have ended, and its process id be another's by now
            if not _is_sealed(descriptor) or os.fstat(descriptor).st_size != made.size:
                raise WireError("what the worker shared is not the memory that it told of")
            return cls(made.block, mmap.mmap(descriptor, made.size))
        except OSError as exc:
            raise ResourceError(f"shared memory of the worker cannot be mapped: {exc}") from exc
        finally:
            os.close(descriptor)

    @property
    def made(self) -> Made:
        """What to tell the other side; the worker's only."""
        return Made(self.number, self._descriptor, self.size)

    def part(self, offset: int, size: int) -> memoryview:
        """A piece of it, checked."""
        if offset % ALIGNMENT or offset > self.size or size > self.size - offset:
            raise WireError(
                f"{size} bytes at {offset} of block {self.number} were named, which has "
                f"{self.size} bytes; places begin at multiples of {ALIGNMENT}"
            )
        return memoryview(self.view)[offset : offset + size]

    def close(self) -> None:
        """The worker's side: it cannot be opened any more. Arrays over it stay valid."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def aligned(size: int) -> int:
    """The size, rounded up so that something else can follow."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def _is_sealed(descriptor: int) -> bool:
    try:
        return fcntl.fcntl(descriptor, _GET_SEALS) & _SEALS == _SEALS
    except OSError:  # nothing that can be sealed
        return False


def remedy(exc: BaseException) -> str:
    """What to do about an error of the system."""
    number = getattr(exc, "errno", None)
    if number in (errno.EMFILE, errno.ENFILE):
        return "close files, or allow more of them (ulimit -n)"
    if number in (errno.ENOENT, errno.ESRCH):
        return "the worker has ended, or runs in another container"
    if number in (errno.EACCES, errno.EPERM):
        return "the worker must run as the same user"
    return "free memory, send smaller requests, or fewer at once"
