"""Cumulative sums and products."""

from __future__ import annotations

from collections.abc import Callable

import torch

from mindspore_lite.engines.torch.kernels.numbers import Numbers, single
from mindspore_lite.engines.torch.kernels.table import kernel


def _cumulative(compute: Callable[..., torch.Tensor], start: int) -> Callable[..., torch.Tensor]:
    def run(
        x: torch.Tensor, axis: Numbers, *, exclusive: int = 0, reverse: int = 0
    ) -> torch.Tensor:
        """What precedes each element, taken together, with or without it, from either end."""
        at = single(axis)
        if reverse:
            x = x.flip(at)
        if exclusive:
            first = torch.full_like(x.narrow(at, 0, min(1, x.shape[at])), start)
            x = torch.cat([first, x.narrow(at, 0, max(x.shape[at] - 1, 0))], at)
        found = compute(x, at, dtype=x.dtype)
        return found.flip(at) if reverse else found

    return run


kernel("CumSum", numbers=("axis",), half="wide")(_cumulative(torch.cumsum, 0))
kernel("CumProd", numbers=("axis",), half="wide")(_cumulative(torch.cumprod, 1))
