"""Whether two outputs of a model are equal up to rounding."""

from __future__ import annotations

import numpy as np

_TOLERANCE = 1e-3  # of the largest value: kernels differ by far less, mixed-up rows by far more


def nearly_equal(wanted: np.ndarray, got: np.ndarray) -> bool:
    """Compare shapes and values; other numbers than floats must be equal."""
    if wanted.shape != got.shape:
        return False
    if wanted.dtype.kind not in "fc" and wanted.dtype.name != "bfloat16":
        return bool((wanted == got).all())
    kind = np.complex128 if wanted.dtype.kind == "c" else np.float64
    a, b = wanted.astype(kind), got.astype(kind)
    finite = np.isfinite(a)
    scale = float(np.abs(a[finite]).max(initial=0.0))
    if (finite != np.isfinite(b)).any():
        return False
    return bool((np.abs(a[finite] - b[finite]) <= _TOLERANCE * scale).all())
