"""Writes a Chrome trace of a session's runs with ONNX Runtime's profiler.

The trace is written when the session is closed. Until then the profiler has a file of its own
next to it, which stays behind if the process dies.
"""

from __future__ import annotations

import os
from typing import Any

from mindspore_lite.errors import EngineError


def check(path: str) -> None:
    """Fail where nothing can be written; the profiler itself would do so in silence."""
    if not path:
        return
    was_there = os.path.exists(path)
    if was_there and not os.path.isfile(path):  # a trace would take the place of a device
        raise EngineError(f"cannot write the profile {path!r}: it is no plain file")
    try:
        with open(path, "ab"):
            pass
        if not was_there:
            os.remove(path)
    except OSError as exc:
        raise EngineError(f"cannot write the profile {path!r}: {exc.strerror or exc}") from exc


def switch_on(settings: Any, path: str) -> None:
    """Let a session record what each operator takes."""
    settings.enable_profiling = True
    settings.profile_file_prefix = path


def write(session: Any, path: str) -> None:
    """End recording, and put the trace where it was asked for."""
    try:
        os.replace(session.end_profiling(), path)
    except OSError as exc:
        raise EngineError(f"cannot write the profile {path!r}: {exc.strerror or exc}") from exc
