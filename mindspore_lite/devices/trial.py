"""Whether a batch may be cut: what a model declares and a way to run it go in, a reason comes out.

Made-up rows are computed apart and joined as the parts of a request are; that must give what the
same rows give together.
"""

from __future__ import annotations

from collections.abc import Sequence

from mindspore_lite.devices import split
from mindspore_lite.engines.base import TensorInfo
from mindspore_lite.errors import EngineError
from mindspore_lite.pool import two_rows


def difference(
    inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo], run: two_rows.Run
) -> str:
    """Why the rows of a batch cannot be computed apart; "" when they can.

    Inputs with an open first dim carry the rows. A model without one has nothing to try: it always
    computes as many rows as it declares. Where a model refuses two values in an input of one open
    axis, it is tried with one for both rows, as a timestep is given.

    Raises:
        EngineError: No made-up input could be run, so nobody knows.
    """
    carries = [info.shape[:1] == (-1,) for info in inputs]
    if not any(carries):
        return ""
    try:
        outcome = two_rows.tried(inputs, carries, run)
    except EngineError:
        fewer = [info.shape[:1] == (-1,) and len(info.shape) > 1 for info in inputs]
        if fewer == carries or not any(fewer):
            raise
        outcome = two_rows.tried(inputs, fewer, run)
    return _difference(outputs, outcome)


def _difference(outputs: Sequence[TensorInfo], outcome: two_rows.Outcome) -> str:
    try:
        whole = split.joined(outputs, [outcome.first, outcome.second], (1, 1), fixed=False)
    except EngineError as exc:
        return str(exc)
    for info, joined, together in zip(outputs, whole, outcome.together, strict=True):
        if not two_rows.close(joined, together):
            return (
                f"output {info.name!r} has shape {list(together.shape)} for two rows and "
                f"{list(joined.shape)} when they are computed apart and joined"
                if joined.shape != together.shape
                else f"output {info.name!r} of a row depends on the other rows of its batch"
            )
    return ""
