"""What a jailed child has written, seen from outside: no limit of the kernel adds files up.

Files in its folders count, and files without a name that it holds open: removed ones and memory
files. It cannot hide a descriptor: sockets are refused to it, other processes too, and descriptors
of each of its threads are looked at. What it maps and has closed is bounded as memory is.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence

_MOST_FILES = 10_000  # guess: a compiled model has three, a conversion one for each GiB


class Written:
    """The files of one child."""

    def __init__(self, process: int, folders: Sequence[str], given: tuple[int, int]) -> None:
        """`given`: device and number of an open file that is not its own."""
        self._process, self._folders, self._given = process, folders, given

    def is_above(self, limit_bytes: int) -> bool:
        """Whether the files take more room than this, or are too many to look at."""
        seen = {self._given}
        total = 0
        for found in self._found():
            one = found.st_dev, found.st_ino
            if one in seen:
                continue
            seen.add(one)
            total += found.st_blocks * 512
            if total > limit_bytes or len(seen) > _MOST_FILES:
                return True
        return False

    def _found(self) -> Iterator[os.stat_result]:
        left = list(self._folders)
        while left:
            for name, found in _entries(left.pop()):
                yield found
                if stat.S_ISDIR(found.st_mode):
                    left.append(name)
        for task, _ in _entries(f"/proc/{self._process}/task"):
            for _, found in _entries(f"{task}/fd", follow=True):
                if stat.S_ISREG(found.st_mode) and found.st_nlink == 0:
                    yield found


def _entries(folder: str, *, follow: bool = False) -> Iterator[tuple[str, os.stat_result]]:
    """What is in a folder; what goes while it is looked at, or cannot be, is left out."""
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                try:
                    yield entry.path, entry.stat(follow_symlinks=follow)
                except OSError:
                    continue
    except OSError:
        return
