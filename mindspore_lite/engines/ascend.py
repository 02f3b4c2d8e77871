"""Whether Ascend is available or emulated (MSLITE_ASCEND), and how many devices.

With MSLITE_ASCEND=emulate the CPU engine serves target 'ascend', so that programs for Ascend can be
written and tested on any machine. Sessions, options and compiled models are those of target 'cpu'.
Otherwise the PyTorch engine does, through torch_npu.
"""

from __future__ import annotations

import importlib.util
import sys
from contextlib import suppress

from mindspore_lite.core.environment import variables
from mindspore_lite.errors import EngineUnavailableError
from mindspore_lite.settings.environment import ASCEND as VARIABLE
from mindspore_lite.settings.environment import emulated as emulated

QUIET = "MSLITE_ASCEND_QUIET"  # for a child process whose parent has told already

_untold = [True]  # popped by the thread that says it: atomic, and needs no lock after a fork


def require(what: str = "target 'ascend'", instead: str = "use target 'cpu'") -> int:
    """The number of emulated devices, 0 where there may be real ones.

    Raises:
        EngineUnavailableError: Neither; the text says how to get some, and what else to do.
    """
    count = emulated()
    if not count:
        if importlib.util.find_spec("torch_npu") is None:
            raise EngineUnavailableError(
                f"{what} needs Ascend hardware and torch_npu (pip install torch_npu, in the "
                f"release that fits PyTorch); set {VARIABLE}=emulate to let the CPU stand in for "
                f"it, or {instead}"
            )
        return 0
    _tell(count)
    return count


def check_device(what: str, number: int) -> None:
    """Raise unless there is such a device; the original silently took device 0 instead."""
    count = require()
    if not count:
        from mindspore_lite.engines.torch import cards

        cards.check(f"npu:{number}")
    elif number >= count:
        devices = "device 0 alone" if count == 1 else f"devices 0 to {count - 1}"
        raise EngineUnavailableError(
            f"{what} asks for device {number}, but {VARIABLE} emulates {devices}; take one of "
            f"these, or set {VARIABLE}=emulate:N for N devices"
        )


def _tell(count: int) -> None:
    """Say it once per process. No warning: filters would hide it, or make an error of it."""
    if not _untold or variables.get(QUIET):
        return
    devices = "1 device" if count == 1 else f"{count} devices"
    # another thread may just have said it, and stderr may be closed, or not be there at all
    with suppress(IndexError, AttributeError, OSError, ValueError):
        _untold.pop()
        sys.stderr.write(
            f"mslite: target 'ascend' is emulated on the CPU with {devices} ({VARIABLE})\n"
        )
