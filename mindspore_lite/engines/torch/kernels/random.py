"""Random numbers, drawn by torch; the seeds of nodes are ignored and each run has new numbers."""

from __future__ import annotations

import torch

from mindspore_lite.engines.torch.kernels.numbers import Numbers, single
from mindspore_lite.engines.torch.kernels.table import kernel
from mindspore_lite.engines.torch.kernels.types import torch_type


@kernel("RandomNormal", random=True)
def random_normal(
    *,
    shape: list[int],
    mean: float = 0.0,
    scale: float = 1.0,
    dtype: int = 1,
    seed: float = 0.0,
    device: torch.device,
) -> torch.Tensor:
    """Numbers of a normal distribution."""
    return torch.randn(shape, dtype=torch_type(dtype), device=device) * scale + mean


@kernel("RandomNormalLike", random=True)
def random_normal_like(
    x: torch.Tensor,
    *,
    mean: float = 0.0,
    scale: float = 1.0,
    dtype: int | None = None,
    seed: float = 0.0,
) -> torch.Tensor:
    """Numbers of a normal distribution, as many as x has."""
    return torch.randn(x.shape, dtype=_type(x, dtype), device=x.device) * scale + mean


@kernel("RandomUniform", random=True)
def random_uniform(
    *,
    shape: list[int],
    low: float = 0.0,
    high: float = 1.0,
    dtype: int = 1,
    seed: float = 0.0,
    device: torch.device,
) -> torch.Tensor:
    """Numbers between two others."""
    return torch.rand(shape, dtype=torch_type(dtype), device=device) * (high - low) + low


@kernel("RandomUniformLike", random=True)
def random_uniform_like(
    x: torch.Tensor,
    *,
    low: float = 0.0,
    high: float = 1.0,
    dtype: int | None = None,
    seed: float = 0.0,
) -> torch.Tensor:
    """Numbers between two others, as many as x has."""
    return torch.rand(x.shape, dtype=_type(x, dtype), device=x.device) * (high - low) + low


def _type(x: torch.Tensor, dtype: int | None) -> torch.dtype:
    return x.dtype if dtype is None else torch_type(dtype)


@kernel("Bernoulli", random=True)
def bernoulli(x: torch.Tensor, *, dtype: int | None = None, seed: float = 0.0) -> torch.Tensor:
    """1 with the probabilities x, else 0."""
    return (torch.rand_like(x) < x).to(_type(x, dtype))


@kernel("Multinomial", random=True, half="wide")
def multinomial(
    x: torch.Tensor, *, sample_size: int = 1, dtype: int = 6, seed: float = 0.0
) -> torch.Tensor:
    """Classes drawn by their logarithmic weights, a row of them for each of x."""
    drawn = torch.multinomial(torch.softmax(x, 1), sample_size, replacement=True)
    return drawn.to(torch_type(dtype))


@kernel("Dropout", numbers=("ratio", "training_mode"), random=True)
def dropout(
    x: torch.Tensor,
    ratio: Numbers = None,
    training_mode: Numbers = None,
    *,
    seed: int = 0,
    outputs: int,
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """x, and that nothing of it was dropped; in training some of it is, and the rest scaled."""
    share = single(ratio, 0.5)
    if not single(training_mode) or share == 0:
        return (x, torch.ones_like(x, dtype=torch.bool)) if outputs > 1 else x
    kept = torch.rand_like(x) >= share
    found = torch.where(kept, x / (1 - share), 0)
    return (found, kept) if outputs > 1 else found
