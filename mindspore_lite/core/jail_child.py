"""The jailed child: binds itself, runs one task, writes one reply. Started by jail.py as a script.

    python -I -B jail_child.py REQUEST REPLY      two open descriptors

The request is a memory file, see jail.py for its form. First limits, Landlock and the seccomp
filter are applied, while there is one thread and nothing of the package is loaded; then the task,
a function `module:name`, is imported and called. Whatever comes of it is written as JSON.
"""

from __future__ import annotations

import ctypes
import errno
import importlib
import importlib.util
import json
import os
import resource
import signal
import struct
import sys
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

_SET_PDEATHSIG = 1
_CAPABILITY_VERSION = 0x20080522
# a superuser reads what the parent reads; Landlock says where
_KEPT_CAPABILITIES = (1 << 1) | (1 << 2)  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
_MOST_TEXT = 20_000  # characters of an error, or of all warnings
_MEMORY_WORDS = ("bad_alloc", "bad allocation", "Failed to allocate memory", "Cannot allocate")


def main(request: int, reply: int) -> None:
    """Read a request, do it in the jail, write the reply, and end without tidying up."""
    head, blobs = _read(request)
    _die_with(head["parent"])
    _limit(head["limits"])
    _drop_capabilities()
    landlock, seccomp = _beside("landlock"), _beside("seccomp")
    landlock.no_new_privileges()
    landlock.restrict(head["read"], head["write"], listed=head["listed"])
    seccomp.restrict()
    sys.path[:] = head["path"]
    told = _told(head, blobs)
    body = json.dumps(told).encode("utf-8", "backslashreplace")
    with open(reply, "wb") as out:
        out.write(struct.pack("<Q", len(body)) + body)
    os._exit(0)  # native threads and destructors could wait, or crash, for nothing


def _read(request: int) -> tuple[dict[str, Any], list[bytes]]:
    with open(request, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        head = json.loads(file.read(size))
        return head, [file.read(size) for size in head["blobs"]]


def _die_with(parent: int) -> None:
    """Be killed when the thread that waits for this process ends."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL))
    if os.getppid() != parent:  # it ended before the kernel knew about us
        os._exit(1)


def _limit(limits: dict[str, int]) -> None:
    kinds = {
        "cpu_s": resource.RLIMIT_CPU,
        "data_bytes": resource.RLIMIT_DATA,
        "address_bytes": resource.RLIMIT_AS,
        "file_bytes": resource.RLIMIT_FSIZE,
    }
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for name, kind in kinds.items():
        wanted = limits[name]
        hard = resource.getrlimit(kind)[1]
        # the soft limit of CPU time sends SIGXCPU, which can be distinguished from other kills
        more = 2 if kind == resource.RLIMIT_CPU else 0
        most = wanted + more if hard == resource.RLIM_INFINITY else min(wanted + more, hard)
        resource.setrlimit(kind, (min(wanted, most), most))


def _drop_capabilities() -> None:
    """A superuser's process keeps no right that could lift its limits; others have none."""
    head = struct.pack("=Ii", _CAPABILITY_VERSION, 0)
    libc = ctypes.CDLL(None, use_errno=True)
    now = ctypes.create_string_buffer(24)
    if libc.capget(head, now) < 0:
        raise OSError(ctypes.get_errno(), "the process cannot read its capabilities")
    permitted = struct.unpack("=6I", now.raw)[1] & _KEPT_CAPABILITIES
    if libc.capset(head, struct.pack("=6I", permitted, permitted, 0, 0, 0, 0)) < 0:
        raise OSError(ctypes.get_errno(), "the process cannot give up its capabilities")


def _beside(name: str) -> ModuleType:
    """A module in this folder, without the package around it."""
    path = Path(__file__).with_name(f"{name}.py")
    spec = importlib.util.spec_from_file_location(f"_jail_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _told(head: dict[str, Any], blobs: list[bytes]) -> dict[str, Any]:
    """What became of the task."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        try:
            module, _, name = head["task"].partition(":")
            task = getattr(importlib.import_module(module), name)
            told = {"result": task(head["arguments"], blobs)}
        except MemoryError:
            told = {"trouble": "memory"}
        except Exception as exc:  # noqa: BLE001 - it is raised again in the parent
            told = _failure(exc)
    said = [[type(w.message).__name__, str(w.message)[:_MOST_TEXT]] for w in caught]
    return {**told, "warnings": said[:20]}


def _failure(exc: Exception) -> dict[str, Any]:
    from mindspore_lite.errors import LiteError

    causes = [exc, *_causes(exc)]
    if any(isinstance(one, OSError) and one.errno == errno.EFBIG for one in causes):
        return {"trouble": "file"}
    if any(isinstance(one, MemoryError) for one in causes):
        return {"trouble": "memory"}
    if any(words in str(one) for one in causes for words in _MEMORY_WORDS):
        return {"trouble": "memory"}
    text = str(exc)[:_MOST_TEXT]
    if not isinstance(exc, LiteError):
        return {"trouble": "unexpected", "error": type(exc).__name__, "text": text}
    kind = next(k for k in type(exc).__mro__ if k.__module__ == LiteError.__module__)
    return {"error": kind.__name__, "text": text, "problems": getattr(exc, "problems", None)}


def _causes(exc: BaseException) -> list[BaseException]:
    found: list[BaseException] = []
    while exc.__cause__ is not None and len(found) < 20:
        exc = exc.__cause__
        found.append(exc)
    return found


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
