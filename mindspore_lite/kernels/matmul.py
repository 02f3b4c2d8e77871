"""Products of matrices."""

from __future__ import annotations

import torch

from mindspore_lite.kernels.table import kernel


@kernel("MatMul", half="narrow", layouts={"b": "transposed"})
def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a @ b."""
    return torch.matmul(a, b)
