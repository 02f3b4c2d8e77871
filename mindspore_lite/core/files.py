"""Opens every file that a user or a model names; nothing else in the package does.

A file is opened once, without waiting, and kept open: size, content and identity come from its
descriptor, never from its name again. What a *user* names may lie anywhere. What a *model* names
must be a regular file inside the model's folder, whatever links or folders lie on the way; the
kernel itself sees to that while it resolves the name (openat2), so that no process can exchange a
folder between a check and its use.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Self, overload

from mindspore_lite.errors import ModelFileError

Stamp = tuple[int, ...]  # device, inode, size, times of the last change of content and of inode

_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC  # a pipe must not keep us waiting
_PIECE_BYTES = 4096  # of what is read for a glimpse
_CHUNK_BYTES = 8 << 20  # of what is read as a whole
_COMPARED_BYTES = 1 << 20  # of what is compared at once; it shall stay in the processor's cache
_HUGE_BYTES = 4 << 20  # from which on memory is asked for in huge pages; guess
# A file of this size, of which so small a part is written, holds next to nothing but a claim; no
# honest model is nearly all zeros, nor written as a hole
_HOLLOW_BYTES, _HOLLOW_PART = 256 << 20, 64
_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class File:
    """A regular file that is open for reading; it is closed with its last reference.

    Indexing reads a few bytes, piece by piece. There is no mapping: the process would die of one
    when somebody cuts the file off.
    """

    def __init__(self, path: Path, reopen: Callable[[], int]) -> None:
        self.path = path
        self._reopen = reopen
        self._descriptor = -1
        self._descriptor = reopen()
        found = os.fstat(self._descriptor)
        if not stat.S_ISREG(found.st_mode):
            self.close()
            kind = _KINDS.get(stat.S_IFMT(found.st_mode), "something else")
            raise ModelFileError(f"cannot read {str(path)!r}: it is {kind}, wanted a plain file")
        self.opened_ns = time.time_ns()
        self.stamp = _stamp(found)
        self.size = found.st_size
        self.links = found.st_nlink
        self._at, self._piece = 0, b""

    def __len__(self) -> int:
        return self.size

    @overload
    def __getitem__(self, key: int) -> int: ...

    @overload
    def __getitem__(self, key: slice) -> bytes: ...

    def __getitem__(self, key: int | slice) -> int | bytes:
        if isinstance(key, slice):
            start, stop, _ = key.indices(self.size)
            return self._read(start, stop - start)
        if not self._at <= key < self._at + len(self._piece):
            self._at, self._piece = key, self._read(key, min(_PIECE_BYTES, self.size - key))
        return self._piece[key - self._at]

    def load(self) -> memoryview:
        """All bytes, read into memory that nobody else can change, and which may be written to."""
        if not self.size:
            return memoryview(b"")
        self.refuse_hollow()
        try:
            memory = mmap.mmap(-1, self.size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            if self.size >= _HUGE_BYTES:
                memory.madvise(mmap.MADV_HUGEPAGE)
        except (OSError, OverflowError) as exc:
            raise self._failed(exc) from exc
        view = memoryview(memory)
        self.read_into(view)
        return view

    def stream(self) -> BinaryIO:
        """A stream of its own, from the beginning, for readers that want one."""
        self.refuse_hollow()
        descriptor = os.open(self.proc_path, _FLAGS)
        return open(descriptor, "rb")

    def holds(self, content: memoryview) -> bool:
        """Whether the file holds these bytes now; it is read again, in pieces."""
        if len(content) != self.size:
            return False
        for at in range(0, self.size, _COMPARED_BYTES):
            # a bytearray is compared as a block; two memoryviews would be byte by byte
            piece = bytearray(min(_COMPARED_BYTES, self.size - at))
            self.read_into(memoryview(piece), at)
            if piece != content[at : at + len(piece)]:
                return False
        return True

    def refuse_hollow(self) -> None:
        """Refuse a large file that is a hole nearly all over: it would be read as zeros.

        Raises:
            ModelFileError: It is.
        """
        if self.size <= _HOLLOW_BYTES:
            return
        held = _held_bytes(self._descriptor, self.size // _HOLLOW_PART)
        if held < self.size // _HOLLOW_PART:
            raise ModelFileError(
                f"{str(self.path)!r} has {self.size} bytes, of which {held} are written and the "
                "rest is a hole, as in a copy that was cut off; if it shall be zeros, write them "
                "out: cp --sparse=never"
            )

    def stamp_now(self) -> Stamp:
        """As `stamp`, of this moment."""
        return _stamp(os.fstat(self._descriptor))

    def is_in_place(self) -> bool:
        """Whether the name still leads to this very file."""
        try:
            return File(self.path, self._reopen).stamp[:2] == self.stamp[:2]
        except ModelFileError:
            return False

    def real_path(self) -> str:
        """Where the file lies, links resolved; only to remember it by."""
        try:
            return os.readlink(self.proc_path)
        except OSError:  # no /proc
            return os.path.realpath(self.path)

    @property
    def proc_path(self) -> str:
        """A name of the open file for libraries that want one; good while this object lives."""
        return f"/proc/self/fd/{self._descriptor}"

    def close(self) -> None:
        """Close the descriptor; harmless when repeated."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def _read(self, start: int, count: int) -> bytes:
        piece = bytearray(count)
        self.read_into(memoryview(piece), start)
        return bytes(piece)

    def read_into(self, view: memoryview, start: int = 0) -> None:
        """Fill a view with the bytes from `start` on; all of them, or an error."""
        done = 0
        while done < len(view):
            try:
                chunk = view[done : done + _CHUNK_BYTES]
                count = os.preadv(self._descriptor, [chunk], start + done)
            except OSError as exc:
                raise self._failed(exc) from exc
            if not count:
                raise ModelFileError(
                    f"{str(self.path)!r} ends before byte {start + done}; is it being written?"
                )
            done += count

    def _failed(self, exc: Exception) -> ModelFileError:
        return ModelFileError(f"cannot read {str(self.path)!r}: {_reason(exc)}")


def open_file(path: Path) -> File:
    """A file that the user has named, wherever it lies.

    Raises:
        ModelFileError: It is missing, cannot be read, or is no regular file.
    """

    def reopen() -> int:
        try:
            return os.open(path, _FLAGS)
        except (OSError, ValueError) as exc:  # ValueError: a zero byte in the name
            raise ModelFileError(f"cannot read {str(path)!r}: {_reason(exc)}") from exc

    return File(path, reopen)


def open_beneath(folder: Path, location: str, what: str = "external data") -> File:
    """A file that a model names, which must be a regular file inside the model's folder.

    Links are followed as long as they stay inside; one that leads out could hand any file of the
    machine to the author of the model. So could a file with several names, of which nobody can tell
    where the others lie: an archive may hold such hard links.

    Raises:
        ModelFileError: It is missing, lies elsewhere, or cannot be read.
    """
    name = PurePosixPath(location)
    if not location or name.is_absolute() or ".." in name.parts:
        raise ModelFileError(f"{what} {location[:200]!r} lies outside the model's folder")

    def reopen() -> int:
        try:
            return _descriptor_beneath(folder, name)
        except FileNotFoundError:
            raise ModelFileError(
                f"{what} {str(folder / name)!r} is missing; put it beside the model"
            ) from None
        except (OSError, ValueError) as exc:
            if getattr(exc, "errno", 0) == errno.EXDEV:
                raise ModelFileError(
                    f"{what} {location[:200]!r} is a link out of the model's folder"
                ) from None
            raise ModelFileError(
                f"{what} {location[:200]!r} cannot be opened: {_reason(exc)}"
            ) from exc

    found = File(folder / name, reopen)
    if found.links > 1:
        found.close()
        raise ModelFileError(
            f"{what} {location[:200]!r} has {found.links} names (hard links), and others "
            "may lie outside the model's folder; copy the file and put the copy in its place"
        )
    return found


def _descriptor_beneath(folder: Path, name: PurePosixPath) -> int:
    above = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for _ in range(_TRIES):
            try:
                return _openat2(above, os.fsencode(name))
            except (InterruptedError, BlockingIOError):  # a folder was renamed just now
                continue
            except OSError as exc:
                # no such call in this kernel, or a container's filter that does not know it
                if exc.errno not in (errno.ENOSYS, errno.EPERM):
                    raise
                return _step_by_step(above, name)
        raise OSError(errno.EAGAIN, "the folder is being renamed")
    finally:
        os.close(above)


# --- openat2: see its manual page; the number is the same on every architecture that Linux has

_OPENAT2 = 437
_RESOLVE_NO_MAGICLINKS, _RESOLVE_BENEATH = 0x02, 0x08
_TRIES = 128  # as often as the manual page's own example, about
_libc = ctypes.CDLL(None, use_errno=True)


class _How(ctypes.Structure):
    """struct open_how"""

    _fields_ = [(name, ctypes.c_uint64) for name in ("flags", "mode", "resolve")]


def _openat2(above: int, name: bytes) -> int:
    if b"\0" in name:
        raise ValueError("embedded null byte")
    how = _How(_FLAGS, 0, _RESOLVE_BENEATH | _RESOLVE_NO_MAGICLINKS)
    number = ctypes.c_long(_OPENAT2)
    size = ctypes.c_size_t(ctypes.sizeof(how))
    found = _libc.syscall(number, ctypes.c_int(above), name, ctypes.byref(how), size)
    if found < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return int(found)


def _step_by_step(above: int, name: PurePosixPath) -> int:
    """The same where the kernel has no such call; no link is followed, wherever it leads."""
    held = above
    try:
        for part in name.parts[:-1]:
            flags = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            deeper = os.open(part, flags, dir_fd=held)
            if held != above:
                os.close(held)
            held = deeper
        return os.open(name.parts[-1] if name.parts else ".", _FLAGS | os.O_NOFOLLOW, dir_fd=held)
    finally:
        if held != above:
            os.close(held)


def _held_bytes(descriptor: int, enough: int) -> int:
    """Bytes of a file outside of holes, counted until they are enough."""
    held = at = 0
    try:
        while held < enough:
            at = os.lseek(descriptor, at, os.SEEK_DATA)
            end = os.lseek(descriptor, at, os.SEEK_HOLE)
            held, at = held + end - at, end
    except OSError as exc:
        # ENXIO: there is nothing behind; else the file system cannot tell, and all of it counts
        return held if exc.errno == errno.ENXIO else enough
    return held


def _stamp(s: os.stat_result) -> Stamp:
    return (s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns)


def _reason(exc: BaseException) -> str:
    return str(getattr(exc, "strerror", None) or exc)
