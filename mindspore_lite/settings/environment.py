"""What the environment settles: whether the CPU stands in for Ascend devices."""

from __future__ import annotations

import re

from mindspore_lite.core.environment import variables
from mindspore_lite.errors import EngineError

ASCEND = "MSLITE_ASCEND"
_USUAL = 8  # devices of a server


def emulated() -> int:
    """How many Ascend devices are emulated; 0 when none are."""
    text = variables.get(ASCEND, "")
    if not text:
        return 0
    found = re.fullmatch(r"emulate(?::([1-9][0-9]{0,3}))?", text)
    if found is None:
        raise EngineError(
            f"{ASCEND} is {text!r}, wanted 'emulate' for {_USUAL} devices, or 'emulate:N' for N "
            "of them, 1 to 9999"
        )
    return int(found[1] or _USUAL)
