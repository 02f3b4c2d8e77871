"""Made-up inputs, for runs whose results nobody reads: types and shapes go in, arrays come out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def array(dtype: np.dtype, shape: Sequence[int], seed: int = 0) -> np.ndarray:
    """Repeatable values: fractions for floats; 0 or 1 otherwise, which any index table has."""
    rng = np.random.default_rng(seed)
    if dtype.kind in "fc" or dtype.name == "bfloat16":
        return np.asarray(rng.random(shape), dtype)
    return np.asarray(rng.integers(0, 2, shape), dtype)


def closed(shape: Sequence[int], size: int = 1) -> list[int]:
    """The shape with a size for every open dim."""
    return [size if dim < 0 else dim for dim in shape]
