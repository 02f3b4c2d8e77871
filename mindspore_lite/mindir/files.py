"""Opens model files and the files they name as untrusted input: a path in, mapped bytes out."""

from __future__ import annotations

import mmap
import os
import stat
from pathlib import Path, PurePosixPath

from mindspore_lite.errors import ModelFileError

_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def mapped(path: Path) -> memoryview:
    """The bytes of a plain file, read-only, in pages that all processes share."""
    try:
        # without O_NONBLOCK a pipe would keep us waiting for its writer
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as exc:  # ValueError: a zero byte in the name
        raise ModelFileError(f"cannot read {str(path)!r}: {_reason(exc)}") from exc
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise ModelFileError(f"cannot read {str(path)!r}: {_not_plain(found)}")
        if found.st_size == 0:  # cannot be mapped
            return memoryview(b"")
        return memoryview(mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ))
    except OSError as exc:
        raise ModelFileError(f"cannot read {str(path)!r}: {_reason(exc)}") from exc
    finally:
        os.close(descriptor)


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
