"""Activations."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from mindspore_lite.engines.torch.kernels.elementwise import of_one
from mindspore_lite.engines.torch.kernels.table import kernel

for op_type, compute in {
    "HardSwish": F.hardswish,
    "Mish": F.mish,
    "Relu": torch.relu,
    "Sigmoid": torch.sigmoid,
    "Softsign": F.softsign,
}.items():
    kernel(op_type)(of_one(compute))


@kernel("Celu")
def celu(x: torch.Tensor, *, alpha: float = 1.0) -> torch.Tensor:
    """max(x, 0) + min(alpha * (exp(x / alpha) - 1), 0)."""
    return F.celu(x, alpha)


@kernel("Elu")
def elu(x: torch.Tensor, *, alpha: float = 1.0) -> torch.Tensor:
    """x where it is positive, else alpha * (exp(x) - 1)."""
    return F.elu(x, alpha)


@kernel("Gelu")
def gelu(x: torch.Tensor, *, approximate: str = "none") -> torch.Tensor:
    """x * P(X <= x) of a normal X, or its approximation by tanh."""
    return F.gelu(x, approximate=approximate)


@kernel("HardSigmoid")
def hard_sigmoid(x: torch.Tensor, *, alpha: float = 0.2, beta: float = 0.5) -> torch.Tensor:
    """alpha * x + beta, between 0 and 1."""
    return torch.clamp(alpha * x + beta, 0, 1)


@kernel("LeakyRelu")
def leaky_relu(x: torch.Tensor, *, alpha: float = 0.01) -> torch.Tensor:
    """x where it is positive, else alpha * x."""
    return F.leaky_relu(x, alpha)


@kernel("LogSoftmax")
def log_softmax(x: torch.Tensor, *, axis: int = -1) -> torch.Tensor:
    """The logarithm of softmax."""
    return torch.log_softmax(x, axis)


@kernel("PRelu")
def prelu(x: torch.Tensor, slope: torch.Tensor) -> torch.Tensor:
    """x where it is positive, else slope * x."""
    return torch.where(x < 0, x * slope, x)


@kernel("Selu")
def selu(
    x: torch.Tensor, *, alpha: float = 1.67326319217681884765625, gamma: float = 1.05070102214813232
) -> torch.Tensor:
    """gamma * elu(x, alpha)."""
    return gamma * F.elu(x, alpha)


@kernel("Shrink")
def shrink(x: torch.Tensor, *, bias: float = 0.0, lambd: float = 0.5) -> torch.Tensor:
    """x moved by bias towards zero, and zero where it is within lambd of it."""
    moved = torch.where(x > lambd, x - bias, torch.zeros_like(x))
    return torch.where(x < -lambd, x + bias, moved).to(x.dtype)


@kernel("Softmax")
def softmax(x: torch.Tensor, *, axis: int = -1) -> torch.Tensor:
    """exp(x), divided by its sum along the axis."""
    return torch.softmax(x, axis)


@kernel("Softplus")
def softplus(x: torch.Tensor) -> torch.Tensor:
    """log(exp(x) + 1)."""
    return F.softplus(x, threshold=40)  # beyond it, no digit of a float64 differs from x


@kernel("Swish")
def swish(x: torch.Tensor, *, alpha: float = 1.0) -> torch.Tensor:
    """x * sigmoid(alpha * x)."""
    return F.silu(x) if alpha == 1.0 else x * torch.sigmoid(alpha * x)


@kernel("SwiGLU")
def swiglu(gate: torch.Tensor, x: torch.Tensor, *, alpha: float = 1.0) -> torch.Tensor:
    """swish(gate) * x."""
    return swish(gate, alpha=alpha) * x


@kernel("ThresholdedRelu")
def thresholded_relu(x: torch.Tensor, *, alpha: float = 1.0) -> torch.Tensor:
    """x where it is larger than alpha, else 0."""
    return torch.where(x > alpha, x, torch.zeros_like(x))
