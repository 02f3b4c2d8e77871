"""Functions of one tensor, element by element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from mindspore_lite.engines.torch.kernels.table import Half, kernel


def of_one(compute: Callable[..., Any]) -> Callable[[torch.Tensor], torch.Tensor]:
    """A function of torch as a kernel; those of torch have no signature."""

    def kernel_of_one(x: torch.Tensor) -> torch.Tensor:
        return compute(x)

    kernel_of_one.__name__ = compute.__name__
    return kernel_of_one


# what grows fast or lies near zero is computed in float32 (see table.Half)
_FUNCTIONS: dict[Half, dict[str, Callable[..., Any]]] = {
    "alike": {
        "Abs": torch.abs,
        "Ceil": torch.ceil,
        "Cos": torch.cos,
        "Erf": torch.erf,
        "Floor": torch.floor,
        "IsNaN": torch.isnan,
        "Neg": torch.neg,
        "Round": torch.round,  # half to even
        "Sign": torch.sign,
        "Sin": torch.sin,
        "Sqrt": torch.sqrt,
        "Tanh": torch.tanh,
    },
    "wide": {
        "Acos": torch.acos,
        "Acosh": torch.acosh,
        "Asin": torch.asin,
        "Asinh": torch.asinh,
        "Atan": torch.atan,
        "Atanh": torch.atanh,
        "Cosh": torch.cosh,
        "Exp": torch.exp,
        "Log": torch.log,
        "Reciprocal": torch.reciprocal,
        "Sinh": torch.sinh,
        "Tan": torch.tan,
    },
}

for half, functions in _FUNCTIONS.items():
    for op_type, compute in functions.items():
        kernel(op_type, half=half)(of_one(compute))


@kernel("Clip", scalars=True)
def clip(
    x: torch.Tensor,
    low: torch.Tensor | float | None = None,
    high: torch.Tensor | float | None = None,
) -> torch.Tensor:
    """min(max(x, low), high); NaN stays."""
    if not isinstance(x, torch.Tensor):
        x = torch.full_like(low if isinstance(low, torch.Tensor) else high, x)
    if low is None and high is None:
        return x
    if isinstance(low, torch.Tensor) != isinstance(high, torch.Tensor):  # torch takes no mixture
        x = x if low is None else torch.clamp(x, min=low)
        return x if high is None else torch.clamp(x, max=high)
    return torch.clamp(x, low, high)


@kernel("IsInf")
def is_inf(x: torch.Tensor, *, detect_negative: int = 1, detect_positive: int = 1) -> torch.Tensor:
    """Where x is infinite, with the signs that are asked for."""
    if detect_negative and detect_positive:
        return torch.isinf(x)
    if detect_positive:
        return torch.isposinf(x)
    return torch.isneginf(x) if detect_negative else torch.zeros_like(x, dtype=torch.bool)
