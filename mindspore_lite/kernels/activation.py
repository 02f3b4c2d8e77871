"""Activations."""

from __future__ import annotations

import torch

from mindspore_lite.kernels.table import kernel


@kernel("Relu")
def relu(x: torch.Tensor) -> torch.Tensor:
    """max(x, 0)."""
    return torch.relu(x)
