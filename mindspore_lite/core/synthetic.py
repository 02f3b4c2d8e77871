"""Makes up inputs for runs whose results are not read."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mindspore_lite.core.machine import total_bytes
from mindspore_lite.errors import ResourceError

_SHARE = 16  # an input that takes a larger part of the memory is not made up; guess


def array(dtype: np.dtype, shape: Sequence[int], seed: int = 0) -> np.ndarray:
    """Repeatable values: fractions for floats; 0 or 1 otherwise, which any index table has."""
    size_bytes = math.prod(shape) * dtype.itemsize
    if size_bytes > total_bytes() // _SHARE:
        raise ResourceError(
            f"an input of shape {list(shape)} takes {size_bytes >> 20} MiB, and this machine has "
            f"{total_bytes() >> 20} MiB of memory: none is made up; give the model smaller sizes, "
            "or leave warming up out (context.parallel.warm_up)"
        )
    rng = np.random.default_rng(seed)
    if dtype.kind in "fc" or dtype.name == "bfloat16":
        return np.asarray(rng.random(shape), dtype)
    return np.asarray(rng.integers(0, 2, shape), dtype)


def closed(shape: Sequence[int], size: int = 1) -> list[int]:
    """The shape with a size for every open dim."""
    return [size if dim < 0 else dim for dim in shape]
