"""Normalisations of ONNX as MindSpore primitives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mindspore_lite.ops.to_mindir.spatial import joined, sizes
from mindspore_lite.ops.to_mindir.table import back
from mindspore_lite.ops.to_mindir.writer import Dims, Made, MindirWriter, Operand

_NCHW = 0


@back("BatchNormalization")
def batch_norm(
    p: MindirWriter,
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


def _covers(scale: Operand, dims: Dims) -> bool:
    """Whether it has a number for each element of dims; only a 1 fits to more than its own size."""
    if scale.rank != len(dims):
        return False
    pairs = zip(scale.shape, dims, strict=True)
    return all(n == dim or (dim is None and n not in (None, 1)) for n, dim in pairs)


@back("LayerNormalization")
def layer_norm(
    p: MindirWriter,
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
    p.require(_covers(scale, x.shape[first:]), "a scale that is repeated over axes")
    p.require(bias is None or bias.shape == scale.shape, "a bias that is repeated over axes")
    beta: Any = bias
    if bias is None:
        beta = np.zeros(scale.fixed, scale.dtype)
    made = p.call("LayerNorm", x, scale, beta, first, first, epsilon)
    y = p.item(made, 0)
    if not (p.used(1) or p.used(2)):
        return y
    p.require(stash_type == 1, "statistics of another type")
    double = x.dtype == np.float64  # whose statistics are float32 to ONNX alone
    kind = np.float64 if double else np.float32
    wide = p.call("Add", p.item(made, 2), np.asarray(epsilon, kind))
    found = p.item(made, 1), p.call("Rsqrt", wide)
    return y, *(p.cast(value, np.float32) if double else value for value in found)


@back("InstanceNormalization")
def instance_norm(
    p: MindirWriter, x: Operand, scale: Operand, bias: Operand, *, epsilon: float = 1e-5
) -> Made:
    """Every channel is a group; it is read as InstanceNormalization again."""
    channels = x.shape[1] or scale.shape[0]
    p.require(channels, "a number of channels known only at run time")
    return p.item(p.call("GroupNorm", x, channels, scale, bias, epsilon), 0)


@back("GroupNormalization")
def group_norm(
    p: MindirWriter,
    x: Operand,
    scale: Operand,
    bias: Operand,
    *,
    num_groups: int,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> Made:
    """Groups of channels by their own mean and variance."""
    return p.item(p.call("GroupNorm", x, num_groups, scale, bias, epsilon), 0)


@back("RMSNormalization", "SimplifiedLayerNormalization")
def rms_norm(
    p: MindirWriter,
    x: Operand,
    scale: Operand,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> Made:
    """In the order that ONNX Runtime takes for one operator; RmsNorm is for Ascend alone."""
    p.require(not p.used(1), "statistics")
    axes = tuple(range(axis % x.rank, x.rank))
    wide: Any = x if x.dtype.itemsize >= 4 else p.cast(x, np.float32)
    kind = np.float32 if x.dtype.itemsize < 4 else x.dtype
    # not so doubles, whose epsilon gets lost when ONNX Runtime 1.31 joins them
    is_double = kind == np.float64
    squares = p.call("Mul", wide, wide) if is_double else p.call("Pow", wide, np.asarray(2, kind))
    mean = p.call("ReduceMean", squares, axes, True)
    root = p.call("Sqrt", p.call("Add", mean, np.asarray(epsilon, kind)))
    y = p.call("Div", wide, root)
    return p.call("Mul", y if kind == x.dtype else p.cast(y, x.dtype), scale)


@back("LRN")
def lrn(
    p: MindirWriter,
    x: Operand,
    *,
    size: int,
    alpha: float = 1e-4,
    beta: float = 0.75,
    bias: float = 1.0,
) -> Made:
    """ONNX divides alpha by the size."""
    p.require(size % 2, "an even size")
    p.require(x.rank == 4, f"{x.rank} dims")
    return p.call(
        "LRN",
        x,
        depth_radius=size // 2,
        bias=bias,
        alpha=alpha / size,
        beta=beta,
        norm_region="ACROSS_CHANNELS",
    )


@back("LpNormalization")
def lp_normalization(writer: MindirWriter, x: Operand, *, axis: int = -1, p: int = 2) -> Made:
    """x over its norm along an axis; zeros stay."""
    writer.require(x.dtype.itemsize >= 4, "half floats, whose squares vanish")
    least = np.finfo(x.dtype).tiny
    if p == 2 and x.dtype == np.float32:  # the type of attributes
        return writer.call("L2Normalize", x, axis=[axis], epsilon=float(least))
    parts = writer.call("Abs", x) if p == 1 else writer.call("Mul", x, x)
    total = writer.call("ReduceSum", parts, (axis,), True, False)
    norm = total if p == 1 else writer.call("Sqrt", total)
    return writer.call("Div", x, writer.call("Maximum", norm, np.asarray(least, x.dtype)))


@back("MeanVarianceNormalization")
def mean_variance(p: MindirWriter, x: Operand, *, axes: Sequence[int] = (0, 2, 3)) -> Made:
    """By the mean and the root of the variance plus 1e-9.

    The variance is that of the centred numbers: the mean square less the squared mean, as ONNX
    spells it out, is lost in rounding where numbers lie close together.
    """
    over = tuple(axes)
    centred = p.call("Sub", x, p.call("ReduceMean", x, over, True))
    variance = p.call("ReduceMean", p.call("Mul", centred, centred), over, True)
    least = p.call("Add", p.call("Sqrt", variance), np.asarray(1e-9, x.dtype))
    return p.call("Div", centred, least)
