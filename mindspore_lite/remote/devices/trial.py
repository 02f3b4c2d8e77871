"""Tests whether a batch may be split: do its rows depend on each other?

Made-up rows are computed apart and joined as the parts of a request are; that must give what the
same rows give together.
"""

from __future__ import annotations

from collections.abc import Sequence

from mindspore_lite.core.nearly_equal import nearly_equal
from mindspore_lite.core.tensor_info import TensorInfo
from mindspore_lite.errors import EngineError
from mindspore_lite.remote.devices import split
from mindspore_lite.serving.batching import row_trial

Cuts = tuple[bool, ...]  # for each input, whether it carries the rows


def usual_cuts(inputs: Sequence[TensorInfo]) -> list[Cuts]:
    """What is likely to carry the rows, the likeliest first; none where the model fixes them.

    Inputs with an open first dim do. An input of one open axis may also be one value for all rows,
    as a timestep is given.
    """
    open_first = tuple(info.shape[:1] == (-1,) for info in inputs)
    rows_alone = tuple(info.shape[:1] == (-1,) and len(info.shape) > 1 for info in inputs)
    return [cuts for cuts in dict.fromkeys([open_first, rows_alone]) if any(cuts)]


def difference(
    inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo], cuts: Cuts, run: row_trial.Run
) -> str:
    """Why the rows of a batch that is cut so cannot be computed apart; "" when they can.

    Raises:
        EngineError: No made-up input could be run, so it is unknown.
    """
    outcome = row_trial.tried(inputs, cuts, run)
    try:
        whole = split.joined(outputs, [outcome.first, outcome.second], (1, 1), fixed=False)
    except EngineError as exc:
        return str(exc)
    for info, joined, together in zip(outputs, whole, outcome.together, strict=True):
        if not nearly_equal(joined, together):
            return (
                f"output {info.name!r} has shape {list(together.shape)} for two rows and "
                f"{list(joined.shape)} when they are computed apart and joined"
                if joined.shape != together.shape
                else f"output {info.name!r} of a row depends on the other rows of its batch"
            )
    return ""
