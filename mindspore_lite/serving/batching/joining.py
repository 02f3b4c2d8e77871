"""Joins requests along the batch axis, and splits the outputs again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from mindspore_lite.core.budget import DEFAULT
from mindspore_lite.core.nearly_equal import nearly_equal
from mindspore_lite.engines.base import Session
from mindspore_lite.errors import EngineError
from mindspore_lite.serving.batching import row_trial
from mindspore_lite.serving.batching.row_trial import Sizes
from mindspore_lite.serving.call import Arrays


def rows_and_key(inputs: Arrays) -> tuple[int, object]:
    """How many rows a request has, and what must be equal for another to join it.

    The key is None where the inputs do not agree on the rows, or lie in different places: such a
    request is computed alone.
    """
    if len(inputs) == 1 and inputs[0].shape:  # the usual case; every request passes here
        rows, *tail = inputs[0].shape
        return rows, (type(inputs[0]), tuple(tail))
    shapes = [value.shape for value in inputs]
    kinds = {type(value) for value in inputs}  # arrays of the host, or tensors on a card
    if len(kinds) != 1 or not all(shapes) or len({shape[0] for shape in shapes}) != 1:
        return 1, None
    return shapes[0][0], (*kinds, *(shape[1:] for shape in shapes))


def joined(requests: Sequence[Arrays]) -> list[np.ndarray]:
    """The inputs of all, one after the other along the first axis."""
    return [np.concatenate(arrays) for arrays in zip(*requests, strict=True)]


def parted(outputs: Sequence[np.ndarray], rows: Sequence[int]) -> list[list[np.ndarray]]:
    """The outputs of each, in memory of their own: one caller's must not keep all others' alive."""
    _check_rows(outputs, sum(rows))
    ends = np.cumsum(rows)
    return [
        [output[end - count : end].copy() for output in outputs]
        for count, end in zip(rows, ends, strict=True)
    ]


def pieces(inputs: Arrays, most: int) -> Iterator[list[np.ndarray]]:
    """The inputs of one request, in parts of at most so many rows."""
    for start in range(0, len(inputs[0]), most):
        yield [array[start : start + most] for array in inputs]


def put_together(parts: Sequence[Sequence[np.ndarray]], rows: int) -> list[np.ndarray]:
    """The outputs of parts as those of the whole request."""
    outputs = [np.concatenate(arrays) for arrays in zip(*parts, strict=True)]
    _check_rows(outputs, rows)
    return outputs


def _check_rows(outputs: Sequence[np.ndarray], rows: int) -> None:
    for number, output in enumerate(outputs):
        if output.ndim == 0 or output.shape[0] != rows:
            raise EngineError(
                f"output {number} has shape {list(output.shape)} for {rows} rows: it does not "
                "carry the batch axis; switch batching off for this model"
            )


def check_model(
    session: Session, buckets: Sequence[int] = (), limit_s: float = DEFAULT.run_limit_s()
) -> None:
    """Refuse a model whose requests cannot be joined: by what it declares, and by trying.

    Args:
        session: The model.
        buckets: Numbers of rows that it is prepared for; others would cost a compilation.
        limit_s: Seconds that each run of the trial may take.

    Raises:
        EngineError: With the reason.
        RequestTimeoutError: A run of the trial did not end.
    """
    why = "batching (max_batch_rows) is not possible with this model: "
    for kind, infos in (("input", session.info.inputs), ("output", session.info.outputs)):
        for info in infos:
            if not info.shape or info.shape[0] != -1:
                raise EngineError(
                    f"{why}{kind} {info.name!r} has shape {list(info.shape)}, wanted an open batch "
                    "axis first ([-1, ...]); export the model with one, or leave max_batch_rows 0"
                )
    alone = min(buckets, default=1)
    together = min((rows for rows in buckets if rows > 1), default=2)
    try:
        reason = _difference(session, Sizes(alone, together), limit_s)
    except EngineError as exc:
        reason = str(exc)
    if reason:
        raise EngineError(f"{why}{reason}; leave max_batch_rows 0")


def _difference(session: Session, sizes: Sizes, limit_s: float) -> str:
    """What two rows give together and do not give alone; "" when nothing."""
    run = row_trial.limited(session, limit_s)
    outcome = row_trial.tried(session.info.inputs, [True] * len(session.info.inputs), run, sizes)
    wanted = (sizes.alone, sizes.alone, sizes.together)
    for info, *found in zip(session.info.outputs, *outcome, strict=True):
        if any(not got.ndim or len(got) != rows for got, rows in zip(found, wanted, strict=True)):
            shape = list(found[-1].shape)
            return f"output {info.name!r} has shape {shape} for {sizes.together} rows"
        a, b, both = found
        if not nearly_equal(np.concatenate([a[:1], b[:1]]), both[:2]):
            return f"output {info.name!r} of a row depends on the other rows of its batch"
    return ""
