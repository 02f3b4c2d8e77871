"""Normalisations."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.nn import functional as F

from mindspore_lite.engines.torch.kernels.table import kernel
from mindspore_lite.engines.torch.kernels.types import torch_type

_EPSILON = 1e-5  # ONNX's default


# wide: variances are not for halves, and x is widened where it is read
@kernel("BatchNormalization", half="wide")
def batch_norm(
    x: torch.Tensor,
    scale: torch.Tensor,
    bias: torch.Tensor,
    mean: torch.Tensor,
    var: torch.Tensor,
    *,
    epsilon: float = _EPSILON,
    momentum: float = 0.9,
    training_mode: int = 0,
) -> Any:
    """(x - mean) / sqrt(var + epsilon) * scale + bias by channel; training takes those of x."""
    if not training_mode:
        wide = mean.dtype  # may differ from the type of x, which is that of the result
        y = F.batch_norm(x.to(wide), mean, var, scale.to(wide), bias.to(wide), eps=epsilon)
        return y.to(x.dtype)
    axes = [axis for axis in range(x.dim()) if axis != 1]
    now_var, now_mean = torch.var_mean(x, axes, correction=0)
    y = F.batch_norm(x, now_mean, now_var, scale, bias, eps=epsilon)
    kept = (
        old * momentum + new * (1 - momentum) for old, new in ((mean, now_mean), (var, now_var))
    )
    return (y, *kept)


@kernel("LayerNormalization")
def layer_norm(
    x: torch.Tensor,
    scale: torch.Tensor,
    bias: torch.Tensor | None = None,
    *,
    axis: int = -1,
    epsilon: float = _EPSILON,
    stash_type: int = 1,
    outputs: int = 1,
) -> Any:
    """x of mean 0 and variance 1 over the last dims, times scale, plus bias; and what it was."""
    shape = x.shape[axis:]
    fits = scale.shape == shape and (bias is None or bias.shape == shape)
    if fits and outputs == 1:
        return F.layer_norm(x, shape, scale, bias, epsilon)
    stash = torch_type(stash_type)
    wide = x.to(stash) if x.dtype.itemsize < stash.itemsize else x
    y, mean, factor = torch.native_layer_norm(wide, shape, None, None, epsilon)
    y = y.to(x.dtype) * scale if bias is None else y.to(x.dtype) * scale + bias
    return y if outputs == 1 else (y, mean.to(stash), factor.to(stash))


@kernel("RMSNormalization")
def rms_norm(
    x: torch.Tensor,
    scale: torch.Tensor,
    *,
    axis: int = -1,
    epsilon: float = _EPSILON,
    stash_type: int = 1,
) -> torch.Tensor:
    """x divided by its root mean square over the last dims, times scale."""
    shape = x.shape[axis:]
    if scale.shape == shape:
        return F.rms_norm(x, shape, scale, epsilon)
    return F.rms_norm(x, shape, None, epsilon) * scale


@kernel("InstanceNormalization")
def instance_norm(
    x: torch.Tensor, scale: torch.Tensor, bias: torch.Tensor, *, epsilon: float = _EPSILON
) -> torch.Tensor:
    """Each plane of mean 0 and variance 1, times scale, plus bias: every channel is a group."""
    return torch.group_norm(x, x.shape[1], scale, bias, epsilon)


@kernel("GroupNormalization")
def group_norm(
    x: torch.Tensor,
    scale: torch.Tensor,
    bias: torch.Tensor,
    *,
    epsilon: float = _EPSILON,
    num_groups: int,
    stash_type: int = 1,
) -> torch.Tensor:
    """Each group of channels of mean 0 and variance 1, times scale, plus bias."""
    return torch.group_norm(x, num_groups, scale, bias, epsilon)


@kernel("LRN", half="wide")
def lrn(
    x: torch.Tensor, *, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0, size: int
) -> torch.Tensor:
    """x divided by the strength of the channels around it."""
    squares = torch.square(x).reshape(x.shape[0], 1, x.shape[1], math.prod(x.shape[2:]))
    # an even window reaches further up than down, other than torch's own
    squares = F.pad(squares, (0, 0, (size - 1) // 2, size // 2))
    mean = F.avg_pool2d(squares, (size, 1), stride=1).reshape(x.shape)
    return x / (bias + alpha * mean) ** beta


@kernel("LpNormalization", half="wide")
def lp_norm(x: torch.Tensor, *, axis: int = -1, p: int = 2) -> torch.Tensor:
    """x divided by its p-norm along an axis; 0 where that is 0."""
    norm = torch.linalg.vector_norm(x, p, axis, keepdim=True)
    return torch.where(norm == 0, torch.zeros_like(x), x / norm)


@kernel("MeanVarianceNormalization", half="wide")
def mean_variance_norm(x: torch.Tensor, *, axes: list[int] | None = None) -> torch.Tensor:
    """x of mean 0 and variance 1 over the axes."""
    axes = [0, 2, 3] if axes is None else axes
    variance, mean = torch.var_mean(x, axes, correction=0, keepdim=True)
    return (x - mean) / (torch.sqrt(variance) + 1e-9)
