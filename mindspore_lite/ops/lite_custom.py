"""What converter_lite leaves that no other runtime can compute."""

from __future__ import annotations

from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.ops.table import Val, op
from mindspore_lite.ops.tape import Tape


@op("Custom")
def custom(t: Tape, values: Val = (), *, type: str = "") -> Val:
    """An operator outside of MindSpore's set, compiled for one device."""
    if type == "ACL":
        raise UnsupportedOpError(
            "the model was compiled for Ascend when it was converted; convert it again without "
            "optimize=ascend_oriented"
        )
    raise UnsupportedOpError(f"a custom operator of type {type!r} cannot be translated")
