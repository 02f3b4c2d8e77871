"""Opens model files and the files they name as untrusted input: a path in, bytes out."""

from __future__ import annotations

import mmap
import os
import stat
from pathlib import Path, PurePosixPath
from typing import Self, overload

from mindspore_lite.errors import ModelFileError

_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def mapped(path: Path, access: int = mmap.ACCESS_READ) -> memoryview:
    """The bytes of a plain file, read-only, in pages that all processes share.

    With mmap.ACCESS_COPY they may be written to; those pages are copied, and the file stays.
    """
    descriptor, size = _opened(path)
    try:
        if size == 0:  # cannot be mapped
            return memoryview(b"")
        return memoryview(mmap.mmap(descriptor, 0, access=access))
    except OSError as exc:
        raise ModelFileError(f"cannot read {str(path)!r}: {_reason(exc)}") from exc
    finally:
        os.close(descriptor)


class Glimpses:
    """A plain file of which only a few places are looked at, read piece by piece.

    A mapping would count long stretches around each place as memory, where the file was just
    written, and would end the process if the file were cut off meanwhile.
    """

    _PIECE = 4096

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor, self._size = _opened(path)
        self._at, self._piece = 0, b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        os.close(self._descriptor)

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, key: int) -> int: ...

    @overload
    def __getitem__(self, key: slice) -> bytes: ...

    def __getitem__(self, key: int | slice) -> int | bytes:
        if isinstance(key, slice):
            start, stop, _ = key.indices(self._size)
            return self._read(start, stop - start)
        if not self._at <= key < self._at + len(self._piece):
            self._at, self._piece = key, self._read(key, self._PIECE)
        if not self._piece:
            raise ModelFileError(
                f"{str(self._path)!r} ends before byte {key}; is it being written?"
            )
        return self._piece[key - self._at]

    def _read(self, start: int, count: int) -> bytes:
        try:
            return os.pread(self._descriptor, count, start)
        except OSError as exc:
            raise ModelFileError(f"cannot read {str(self._path)!r}: {_reason(exc)}") from exc


def _opened(path: Path) -> tuple[int, int]:
    """The descriptor and size of a plain file."""
    try:
        # without O_NONBLOCK a pipe would keep us waiting for its writer
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as exc:  # ValueError: a zero byte in the name
        raise ModelFileError(f"cannot read {str(path)!r}: {_reason(exc)}") from exc
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        os.close(descriptor)
        raise ModelFileError(f"cannot read {str(path)!r}: {_not_plain(found)}")
    return descriptor, found.st_size


def contained(folder: Path, location: str) -> Path:
    """The file that a model names, which must be a plain file inside the model's folder.

    Symbolic links are followed as long as they stay inside; one that leads out could hand any file
    of the machine to whoever made the model. So could a file with several names, of which nobody
    can tell where the others lie: an archive may hold such hard links.
    """
    name = PurePosixPath(location)
    target = folder / name
    if not location or name.is_absolute() or ".." in name.parts:
        raise ModelFileError(f"external data {location[:200]!r} lies outside the model's folder")
    try:
        inside = target.resolve().is_relative_to(folder.resolve())
        found = os.stat(target) if inside else None
    except FileNotFoundError:
        raise ModelFileError(
            f"external data file {str(target)!r} is missing; put it beside the model"
        ) from None
    except (OSError, RuntimeError, ValueError) as exc:  # no name for a file, links in a circle
        raise ModelFileError(
            f"external data {location[:200]!r} cannot be opened: {_reason(exc)}"
        ) from exc
    if found is None:
        raise ModelFileError(f"external data {location!r} is a link out of the model's folder")
    if not stat.S_ISREG(found.st_mode):
        raise ModelFileError(f"external data {location!r} cannot be opened: {_not_plain(found)}")
    if found.st_nlink > 1:
        raise ModelFileError(
            f"external data {location!r} has {found.st_nlink} names (hard links), and others may "
            "lie outside the model's folder; copy the file and put the copy in its place"
        )
    return target


def _not_plain(found: os.stat_result) -> str:
    kind = _KINDS.get(stat.S_IFMT(found.st_mode), "something else")
    return f"it is {kind}, wanted a plain file"


def _reason(exc: BaseException) -> str:
    return str(getattr(exc, "strerror", None) or exc)
