"""Ascend without a card: what MSLITE_ASCEND says goes in, the number of devices comes out.

With MSLITE_ASCEND=emulate the CPU engine serves target 'ascend', so that programs for Ascend can be
written and tested on any machine. Sessions, options and compiled models are those of target 'cpu'.
"""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress

from mindspore_lite.errors import EngineError, EngineUnavailableError

VARIABLE = "MSLITE_ASCEND"
QUIET = "MSLITE_ASCEND_QUIET"  # for a child process whose parent has told already
_USUAL = 8  # devices of a server

_untold = [True]  # popped by the one who tells: that is atomic, and needs no lock after a fork


def emulated() -> int:
    """How many devices are emulated; 0 when none are."""
    text = os.environ.get(VARIABLE, "")
    if not text:
        return 0
    found = re.fullmatch(r"emulate(?::([1-9][0-9]{0,3}))?", text)
    if found is None:
        raise EngineError(
            f"{VARIABLE} is {text!r}, wanted 'emulate' for {_USUAL} devices, or 'emulate:N' for N "
            "of them, 1 to 9999"
        )
    return int(found[1] or _USUAL)


def require(what: str = "target 'ascend'", instead: str = "use target 'cpu'") -> int:
    """The number of devices, or an error that says how to get some, and what else to do."""
    count = emulated()
    if not count:
        raise EngineUnavailableError(
            f"{what} needs Ascend hardware with torch_npu, for which an engine comes in a later "
            f"version; set {VARIABLE}=emulate to let the CPU stand in for it, or {instead}"
        )
    _tell(count)
    return count


def check_device(what: str, number: int) -> None:
    """Raise unless there is such a device; the original silently took device 0 instead."""
    count = require()
    if number >= count:
        devices = "device 0 alone" if count == 1 else f"devices 0 to {count - 1}"
        raise EngineUnavailableError(
            f"{what} asks for device {number}, but {VARIABLE} emulates {devices}; take one of "
            f"these, or set {VARIABLE}=emulate:N for N devices"
        )


def _tell(count: int) -> None:
    """Say it once per process. No warning: filters would hide it, or make an error of it."""
    if not _untold or os.environ.get(QUIET):
        return
    devices = "1 device" if count == 1 else f"{count} devices"
    # another thread may just have told, and stderr may be closed, or not be there at all
    with suppress(IndexError, AttributeError, OSError, ValueError):
        _untold.pop()
        sys.stderr.write(
            f"mslite: target 'ascend' is emulated on the CPU with {devices} ({VARIABLE})\n"
        )
