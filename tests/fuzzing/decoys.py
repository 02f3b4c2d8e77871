"""Notices that files of a folder are opened, by Python or by any library: the kernel tells it."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Sequence
from pathlib import Path

_IN_OPEN, _IN_ISDIR = 0x20, 0x40000000
_EVENT = struct.Struct("iIII")  # watch, mask, cookie, length of the name


class Decoys:
    """Watches folders in which nothing may be opened."""

    def __init__(self, folders: Sequence[Path]) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._file = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        for folder in folders:
            if libc.inotify_add_watch(self._file, os.fsencode(folder), _IN_OPEN) < 0:
                raise OSError(ctypes.get_errno(), f"{folder} cannot be watched")

    def opened(self) -> list[str]:
        """The names of files that were opened since this was asked last."""
        found, at = [], 0
        try:
            data = os.read(self._file, 1 << 16)
        except BlockingIOError:
            return []
        while at < len(data):
            _, mask, _, length = _EVENT.unpack_from(data, at)
            name = data[at + _EVENT.size : at + _EVENT.size + length].rstrip(b"\0")
            if name and not mask & _IN_ISDIR:
                found.append(os.fsdecode(name))
            at += _EVENT.size + length
        return found

    def __del__(self) -> None:
        os.close(self._file)
