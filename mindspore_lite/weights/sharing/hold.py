"""Keeps a folder of the cache in place while other processes use it.

The hold is a shared lock (flock) on the folder, respected by every process that removes such
folders, and a read-only descriptor of every file in it. The kernel drops both when the process
ends, however that happens. The files are the artefact of a compiled model, which is not written to
once it has a name.
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mindspore_lite.weights.sharing.exchange import MAX_FILES


class Hold:
    """A folder that stays until this is released or dropped."""

    def __init__(self, folder: Path, without: Collection[str] = ()) -> None:
        """Wait only for a process that removes the folder now.

        Args:
            folder: The folder, with plain files alone.
            without: Names of files that are not needed, and that may be replaced.

        Raises:
            OSError: It is gone, or not what it should be.
        """
        self.folder = folder
        self.files: dict[str, int] = {}  # name -> descriptor
        self._open: list[int] = []
        try:
            self._take(without)
        except BaseException:
            self.close()
            raise

    def _take(self, without: Collection[str]) -> None:
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
        lock = os.open(self.folder, flags | os.O_DIRECTORY)
        self._open.append(lock)
        fcntl.flock(lock, fcntl.LOCK_SH)
        if not os.path.samestat(os.fstat(lock), os.lstat(self.folder)):
            raise FileNotFoundError(f"{self.folder} was replaced just now")
        for name in sorted(set(os.listdir(lock)).difference(without)):
            self.files[name] = os.open(name, flags | os.O_NONBLOCK, dir_fd=lock)
            self._open.append(self.files[name])
            if not stat.S_ISREG(os.fstat(self.files[name]).st_mode) or len(self.files) > MAX_FILES:
                raise OSError(f"{self.folder} is no folder of a compiled model")

    def release(self) -> None:
        """Let the folder go, also for processes that were forked without any hook of Python.

        The descriptors stay for clients that are being answered; they go with this object.
        """
        with suppress(OSError, IndexError):
            fcntl.flock(self._open[0], fcntl.LOCK_UN)

    def close(self) -> None:
        """Close the descriptors; in a forked child, where the lock is the parent's."""
        while self._open:
            with suppress(OSError):
                os.close(self._open.pop())

    __del__ = close


@contextmanager
def unheld(folder: Path) -> Iterator[bool]:
    """Whether no process holds a folder; if so, none can begin to inside the block."""
    try:
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:  # nothing there that could be held
        yield True
        return
    try:
        yield not _is_locked(lock)
    finally:
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_UN)
        os.close(lock)


def _is_locked(folder: int) -> bool:
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # a file system without such locks, where nobody can hold anything either
        return False
    return False
