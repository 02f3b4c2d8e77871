"""The boundary of the public API: every error that leaves it is one of ours, with its cause.

Entry points check the caller's arguments first, outside the boundary: TypeError and ValueError
about these stay what they are. Behind it, an exception of any other class is either the machine's
limit, which becomes ResourceError, or a bug of ours, which says so and what to report.
"""

from __future__ import annotations

import errno
import platform
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import NoReturn

from mindspore_lite.core.capabilities import ENGINES
from mindspore_lite.errors import EngineError, LiteError, ModelFileError, ResourceError
from mindspore_lite.version import __version__

_PACKAGE = "mindspore_lite"
_LIBRARIES = ("numpy", "onnx", "onnx_ir", *(one.package for one in ENGINES.values()))
_MAX_TEXT = 300  # of a foreign error's own words, which may quote the file

# what ran out, and what to do
_LIMITS = {
    errno.ENOMEM: ("memory", "free some, raise the limit (ulimit -v), or use a smaller model"),
    errno.EMFILE: ("file descriptors of this process", "close some, or raise ulimit -n"),
    errno.ENFILE: ("file descriptors of the machine", "close some, or raise fs.file-max"),
    errno.ENOSPC: ("space on a disk", "free some, or point MSLITE_CACHE_DIR at another disk"),
    errno.EDQUOT: ("space that the user may have on a disk", "free some, or raise the quota"),
}
# how ONNX Runtime, OpenVINO and PyTorch say that there is no memory left
_NO_MEMORY = re.compile(
    r"bad_alloc|bad allocation|(failed to|can't|cannot) allocate|out of memory", re.IGNORECASE
)
_ASKED = re.compile(r"(?:buffer of size|allocate) (\d+)")  # bytes
_NODE = re.compile(r"running (\w+) node\. Name:'([^']*)'")  # as ONNX Runtime names it
_NO_THREADS = "can't start new thread"
_PATHS = re.compile(r"(?:/[^\s/'\":]+)+/(?=[^\s/'\":])")  # the folders in front of a file's name


@contextmanager
def boundary(doing: str) -> Iterator[None]:
    """Let only errors of ours out; `doing` stands in front of their words."""
    try:
        yield
    except Exception as exc:  # noqa: BLE001 - it always raises
        reraise(exc, doing)


def reraise(exc: Exception, doing: str) -> NoReturn:
    """Raise the error of ours that callers see; for paths on which a `with` costs too much."""
    if isinstance(exc, Warning):  # the program turned a warning into an error
        raise exc
    found = named(exc, doing)
    try:
        raise found from found.__cause__
    finally:
        del exc, found  # the error holds this frame: without a circle, all goes with it at once


def named(exc: Exception, doing: str) -> LiteError:
    """The error of ours that callers see; what was attempted stands in front."""
    found = ours(exc)
    # a worker process may have said it already
    return found if str(found).startswith(doing) else found.prefixed(doing)


def ours(exc: Exception) -> LiteError:
    """The error of ours that says the same: `exc` itself, or one whose cause it is."""
    found = _limited(exc) if isinstance(exc, LiteError) else resource_error(exc)
    if found is None and isinstance(exc, LiteError):
        return exc
    error: LiteError = found or _unexpected(exc)
    error.__cause__ = exc
    return error


def _unexpected(exc: Exception) -> LiteError:
    if isinstance(exc, OSError):
        name = f" {str(exc.filename)!r}" if exc.filename is not None else ""
        return ModelFileError(f"a file{name} cannot be used: {exc.strerror or exc}")
    return LiteError(
        f"this is a bug of mslite: {type(exc).__name__} at {_place(exc.__traceback__)}: "
        f"{_words(exc)}; please report this message ({_versions()}), with the model if you can"
    )


def _limited(exc: LiteError) -> ResourceError | None:
    """The error for a file or an engine that failed because of a limit; None for other reasons."""
    cause = exc.__cause__
    if cause is None or not isinstance(exc, ModelFileError | EngineError):
        return None
    found = resource_error(cause)
    return None if found is None else ResourceError(f"{exc}: {found}")


def resource_error(exc: BaseException) -> ResourceError | None:
    """The error for what the machine or a limit of the process refuses; None for other errors."""
    number = exc.errno if isinstance(exc, OSError) else None
    if isinstance(exc, MemoryError):
        number = errno.ENOMEM
    if number in _LIMITS:
        what, remedy = _LIMITS[number]
        return ResourceError(f"there is no more {what} ({_words(exc)}); {remedy}")
    if isinstance(exc, RuntimeError) and _NO_THREADS in str(exc):
        return ResourceError(
            f"no more threads can be started ({_words(exc)}); end some, or raise ulimit -u"
        )
    return None


def engine_failure(text: str, exc: BaseException) -> EngineError | ResourceError:
    """The error for a runtime that failed in its own words, which may be that memory ran out."""
    if not isinstance(exc, MemoryError) and not _NO_MEMORY.search(str(exc)):
        return EngineError(text)
    doing = text.partition(": ")[0]  # what follows are the runtime's own words, which `cause` keeps
    asked, node = _ASKED.search(str(exc)), _NODE.search(str(exc))
    wanted = f" for {int(asked[1]) / 2**20:,.1f} MiB more" if asked else ""
    where = f", at {node[1]} {node[2]!r}" if node else ""
    return ResourceError(
        f"{doing}: there is not enough memory{wanted}{where}; give fewer rows in a request, "
        f"{_LIMITS[errno.ENOMEM][1]}"
    )


def _words(exc: BaseException) -> str:
    """What an error says, without folders of this machine."""
    return " ".join(_PATHS.sub("", str(exc)).split())[:_MAX_TEXT] or type(exc).__name__


def _place(trace: TracebackType | None) -> str:
    """The innermost place in our own code, and where it went from there."""
    own = inner = ""
    while trace is not None:
        name = str(trace.tb_frame.f_globals.get("__name__"))
        inner = f"{name}:{trace.tb_lineno}"
        if name.partition(".")[0] == _PACKAGE:
            own = inner
        trace = trace.tb_next
    return own if inner == own else f"{own or 'an unknown place'}, in {inner}"


def _versions() -> str:
    """Of ourselves, Python, and those libraries that are in use."""
    loaded = [(name, sys.modules.get(name)) for name in _LIBRARIES]
    found = [f"{name} {getattr(module, '__version__', '?')}" for name, module in loaded if module]
    return ", ".join([f"mslite {__version__}", f"Python {platform.python_version()}", *found])
