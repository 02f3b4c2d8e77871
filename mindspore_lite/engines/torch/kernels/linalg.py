"""Linear algebra."""

from __future__ import annotations

import torch

from mindspore_lite.engines.torch.kernels.table import kernel


@kernel("Det", half="wide")
def det(x: torch.Tensor) -> torch.Tensor:
    """Determinants of matrices."""
    return torch.linalg.det(x)
