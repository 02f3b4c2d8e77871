"""Normalisations of ONNX as MindSpore primitives."""

from __future__ import annotations

from typing import Any

import numpy as np

from mindspore_lite.ops.backwards.pen import Made, Operand, Pen
from mindspore_lite.ops.backwards.spatial import joined, sizes
from mindspore_lite.ops.backwards.table import back

_NCHW = 0


@back("BatchNormalization")
def batch_norm(
    p: Pen,
    x: Operand,
    scale: Operand,
    bias: Operand,
    mean: Operand,
    variance: Operand,
    *,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    training_mode: int = 0,
) -> Made:
    """By given statistics; BatchNorm is for images and rows of features."""
    p.require(not training_mode, "training_mode")
    p.require(x.rank >= 2, "a vector")
    dims = sizes(p, x) if x.rank not in (2, 4) else []
    given: Any = x
    if dims:
        given = p.call("Reshape", x, joined(p, [*dims[:2], *(dims[2:] + [1])[:1], -1]))
    settings = (False, epsilon, 1.0 - momentum, _NCHW)  # momentum is of no use in inference
    y = p.item(p.call("BatchNorm", given, scale, bias, mean, variance, *settings), 0)
    return p.call("Reshape", y, joined(p, dims)) if dims else y


@back("LayerNormalization")
def layer_norm(
    p: Pen,
    x: Operand,
    scale: Operand,
    bias: Operand | None = None,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> Any:
    """-> (y, mean, 1 / deviation), over the axes from one on."""
    first = axis % x.rank
    p.require(scale.shape == x.shape[first:], "a scale that is repeated over axes")
    p.require(bias is None or bias.shape == scale.shape, "a bias that is repeated over axes")
    beta: Any = bias
    if bias is None:
        beta = np.zeros(scale.fixed, scale.dtype)
    made = p.call("LayerNorm", x, scale, beta, first, first, epsilon)
    y = p.item(made, 0)
    if not (p.used(1) or p.used(2)):
        return y
    p.require(stash_type == 1, "statistics of another type")
    wide = p.call("Add", p.item(made, 2), np.asarray(epsilon, np.float32))
    return y, p.item(made, 1), p.call("Rsqrt", wide)
