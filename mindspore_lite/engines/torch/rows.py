"""Which prepared number of rows a batch runs in, and whether padding is exact.

A request of 5 rows may run as 8, three of them padding, if a row's outputs do not depend on the
other rows, nor on how many there are. No model says so: it is tried, once, with made-up rows. On
the host, where an index out of range is a normal error; on a card it ends the process's work.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mindspore_lite.core.nearly_equal import nearly_equal
from mindspore_lite.core.tensor_info import TensorInfo

Arrays = Sequence[np.ndarray]
Compute = Callable[[Arrays], Arrays]


def count(request: Sequence[Any]) -> int:
    """How many rows a request has; 0 where its inputs do not agree on that, or it has none."""
    found: int = request[0].shape[0]
    for one in request:
        if one.shape[0] != found:
            return 0
    return found


def counts(requests: Sequence[Sequence[Any]]) -> list[int] | None:
    """How many rows each request has; None where they cannot run as one, or one has no rows.

    All dims but the first must be the same in all requests.
    """
    tails = [one.shape[1:] for one in requests[0]]
    if any([one.shape[1:] for one in request] != tails for request in requests):
        return None
    found = [count(request) for request in requests]
    return found if all(found) else None


def is_open(infos: Sequence[TensorInfo]) -> bool:
    """Whether all of them begin with an open axis."""
    return bool(infos) and all(info.shape[:1] == (-1,) for info in infos)


def fitting(batches: Sequence[int], rows: int) -> int:
    """The smallest number of rows that is prepared and large enough, else the largest."""
    return min((b for b in batches if b >= rows), default=max(batches))


def with_rows(shapes: Sequence[Sequence[int]], rows: int) -> tuple[tuple[int, ...], ...]:
    """The same shapes for another number of rows."""
    return tuple((rows, *dims[1:]) for dims in shapes)


def made_up(infos: Sequence[TensorInfo], shapes: Sequence[Sequence[int]], seed: int) -> Arrays:
    """Repeatable inputs: fractions for floats; 0 or 1 otherwise, which any index table has."""
    rng = np.random.default_rng(seed)
    return [
        np.asarray(
            rng.random(dims) if info.dtype.kind == "f" else rng.integers(0, 2, dims), info.dtype
        )
        for info, dims in zip(infos, shapes, strict=True)
    ]


def independent(
    inputs: Sequence[TensorInfo], shapes: Sequence[Sequence[int]], alone: Compute, three: Compute
) -> bool:
    """Whether two rows give the same each alone, and together with a third that is padding."""
    first, second = (made_up(inputs, with_rows(shapes, 1), seed) for seed in (1, 2))
    among = three([np.concatenate([a, b, a]) for a, b in zip(first, second, strict=True)])
    return all(
        a.shape[:1] == b.shape[:1] == (1,) and nearly_equal(np.concatenate([a, b, a]), c)
        for a, b, c in zip(alone(first), alone(second), among, strict=True)
    )
