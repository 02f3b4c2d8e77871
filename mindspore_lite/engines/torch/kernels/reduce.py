"""Reductions along axes, or along all."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from mindspore_lite.engines.torch.kernels.table import Compute, Half, kernel

Axes = list[int]
Reduce = Callable[[torch.Tensor, Axes], torch.Tensor]  # which keeps the dims


def reduction(reduce: Reduce, of_nothing: float, before: Any = None, after: Any = None) -> Compute:
    """A kernel: every element, the reduction, every result; `of_nothing` for no elements at all."""

    def compute(
        x: torch.Tensor,
        axes: Axes | None = None,
        *,
        keepdims: int = 1,
        noop_with_empty_axes: int = 0,
    ) -> torch.Tensor:
        axes = [axis % max(x.dim(), 1) for axis in axes or ()]
        if not axes and not noop_with_empty_axes:
            axes = list(range(x.dim()))
        y = x if before is None else before(x)
        if any(x.shape[axis] == 0 for axis in axes if x.dim()):
            kept = [1 if at in axes else size for at, size in enumerate(x.shape)]
            y = torch.full(kept, _limited(of_nothing, y.dtype), dtype=y.dtype, device=x.device)
        elif axes and x.dim():
            y = reduce(y, axes)
        y = y if after is None else after(y)
        if not keepdims and axes and x.dim():
            y = y.reshape([size for at, size in enumerate(y.shape) if at not in axes])
        return y.to(x.dtype)

    return compute


def _limited(value: float, dtype: torch.dtype) -> float:
    """Infinity as the type has it."""
    if math.isfinite(value) or dtype.is_floating_point:
        return value
    if dtype is torch.bool:
        return value > 0
    info = torch.iinfo(dtype)
    return int(info.max if value > 0 else info.min)


def _sum(x: torch.Tensor, axes: Axes) -> torch.Tensor:
    return torch.sum(x, axes, keepdim=True, dtype=x.dtype)


def _mean(x: torch.Tensor, axes: Axes) -> torch.Tensor:
    if x.is_floating_point():
        return torch.mean(x, axes, keepdim=True)
    count = math.prod(x.shape[axis] for axis in axes)
    return torch.div(torch.sum(x, axes, keepdim=True), count, rounding_mode="trunc")


def _prod(x: torch.Tensor, axes: Axes) -> torch.Tensor:
    for axis in axes:
        x = torch.prod(x, axis, keepdim=True, dtype=x.dtype)
    return x


def _log_sum_exp(x: torch.Tensor, axes: Axes) -> torch.Tensor:
    return torch.logsumexp(_real(x), axes, keepdim=True)


def _max(x: torch.Tensor, axes: Axes) -> torch.Tensor:
    return torch.amax(x, axes, keepdim=True)


def _min(x: torch.Tensor, axes: Axes) -> torch.Tensor:
    return torch.amin(x, axes, keepdim=True)


def _real(x: torch.Tensor) -> torch.Tensor:
    """Integers as floats that hold them."""
    return x if x.is_floating_point() else x.to(torch.float64)


def _log(x: torch.Tensor) -> torch.Tensor:
    return torch.log(_real(x))


def _root(x: torch.Tensor) -> torch.Tensor:
    return torch.sqrt(_real(x))


_REDUCTIONS: dict[Half, dict[str, Compute]] = {
    "alike": {
        "ReduceMax": reduction(_max, -math.inf),
        "ReduceMean": reduction(_mean, math.nan),
        "ReduceMin": reduction(_min, math.inf),
    },
    "wide": {  # whose sums may be too large for a half
        "ReduceL1": reduction(_sum, 0, torch.abs),
        "ReduceL2": reduction(_sum, 0, torch.square, _root),
        "ReduceLogSum": reduction(_sum, 0, None, _log),
        "ReduceLogSumExp": reduction(_log_sum_exp, -math.inf),
        "ReduceProd": reduction(_prod, 1),
        "ReduceSum": reduction(_sum, 0),
        "ReduceSumSquare": reduction(_sum, 0, torch.square),
    },
}

for half, reductions in _REDUCTIONS.items():
    for op_type, compute in reductions.items():
        kernel(op_type, numbers=("axes",), half=half)(compute)
