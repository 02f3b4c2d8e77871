"""Runs a model on two made-up rows, to see whether rows are independent.

Whether rows may be computed together, or apart, is not written in a model: it shows when two rows
give the same together as each gives alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from mindspore_lite.core import synthetic
from mindspore_lite.core.tensor_info import TensorInfo
from mindspore_lite.engines.base import Session
from mindspore_lite.engines.time_limit import run_within
from mindspore_lite.errors import EngineError, InputError, ShapeError

_TRIED_SIZES = (16, 1, 32, 64, 224)  # of open dims behind the batch axis, until one runs; guess
TRYING = "trying the model with made-up rows"  # for errors

Run = Callable[[Sequence[np.ndarray]], Sequence[np.ndarray]]


class Outcome(NamedTuple):
    """What the model gave."""

    first: Sequence[np.ndarray]  # of the first row alone
    second: Sequence[np.ndarray]
    together: Sequence[np.ndarray]


class Sizes(NamedTuple):
    """Rows of the runs; the last row of each is repeated until there are so many."""

    alone: int = 1
    together: int = 2


_ONE_AND_TWO = Sizes()


def limited(session: Session, limit_s: float) -> Run:
    """Runs of a session, each of which ends within so many seconds.

    Raises:
        RequestTimeoutError: It did not; the run was told to stop.
    """
    return partial(run_within, limit_s, TRYING, session)


def tried(
    inputs: Sequence[TensorInfo], carries: Sequence[bool], run: Run, sizes: Sizes = _ONE_AND_TWO
) -> Outcome:
    """Run two rows, each alone and both together; inputs that do not carry them stay the same.

    Raises:
        EngineError: The model took no made-up input.
    """
    refusal: Exception | None = None

    def filled(rows: Sequence[Sequence[np.ndarray]], size: int) -> list[np.ndarray]:
        return [
            np.concatenate([arrays[min(at, len(arrays) - 1)] for at in range(size)])
            if carried
            else arrays[0]
            for arrays, carried in zip(zip(*rows, strict=True), carries, strict=True)
        ]

    for size in _TRIED_SIZES:
        first, second = (_row(inputs, carries, size, seed) for seed in (1, 2))
        try:
            return Outcome(
                run(filled([first], sizes.alone)),
                run(filled([second], sizes.alone)),
                run(filled([first, second], sizes.together)),
            )
        except (EngineError, InputError, ShapeError) as exc:  # another size may be wanted
            refusal = exc
    raise EngineError(f"no made-up input could be run ({refusal})") from refusal


def _row(
    inputs: Sequence[TensorInfo], carries: Sequence[bool], size: int, seed: int
) -> list[np.ndarray]:
    """One row of each input that carries rows; of the others what belongs to every row."""
    return [
        synthetic.array(info.dtype, _one_row(info.shape, size), seed if carried else 1)
        for info, carried in zip(inputs, carries, strict=True)
    ]


def _one_row(shape: Sequence[int], size: int) -> list[int]:
    return [*synthetic.closed(shape[:1]), *synthetic.closed(shape[1:], size)]
