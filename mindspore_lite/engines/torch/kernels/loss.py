"""Losses."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F

from mindspore_lite.engines.torch.kernels.table import kernel

_NONE = -100  # torch's own number for "ignore nothing"


@kernel("NegativeLogLikelihoodLoss", half="wide")
def nll_loss(
    x: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor | None = None,
    *,
    ignore_index: int = _NONE,
    reduction: str = "mean",
) -> torch.Tensor:
    """-x of the class that is the target, weighted."""
    wanted = target.to(torch.int64)
    return F.nll_loss(x, wanted, weight, ignore_index=ignore_index, reduction=reduction)


@kernel("SoftmaxCrossEntropyLoss", half="wide")
def cross_entropy_loss(
    scores: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor | None = None,
    *,
    ignore_index: int = _NONE,
    reduction: str = "mean",
    outputs: int = 1,
) -> Any:
    """The loss of log softmax, which is the second result."""
    found = torch.log_softmax(scores, 1)
    loss = nll_loss(found, target, weight, ignore_index=ignore_index, reduction=reduction)
    return loss if outputs == 1 else (loss, found)
