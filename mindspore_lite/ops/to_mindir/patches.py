"""ONNX operators that move blocks of pixels, as MindSpore primitives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mindspore_lite.ops.to_mindir.spatial import Ints, joined, sizes, window
from mindspore_lite.ops.to_mindir.table import back
from mindspore_lite.ops.to_mindir.writer import Made, MindirWriter, Operand


@back("DepthToSpace")
def depth_to_space(p: MindirWriter, x: Operand, *, blocksize: int, mode: str = "DCR") -> Made:
    """Channels to blocks of pixels; CRD has the channel before the place in the block."""
    if mode == "DCR":
        return p.call("DepthToSpace", x, block_size=blocksize, format="NCHW")
    batch, channels, height, width = sizes(p, x)
    p.require(isinstance(channels, int), "a number of channels known only at run time")
    fewer = channels // blocksize**2
    apart = p.call("Reshape", x, joined(p, [batch, fewer, blocksize, blocksize, height, width]))
    turned = p.call("Transpose", apart, (0, 1, 4, 2, 5, 3))
    image = [_times(p, n, blocksize) for n in (height, width)]
    return p.call("Reshape", turned, joined(p, [batch, fewer, *image]))


def _times(p: MindirWriter, size: Any, factor: int) -> Any:
    return size * factor if isinstance(size, int) else p.call("ScalarMul", size, factor)


@back("SpaceToDepth")
def space_to_depth(p: MindirWriter, x: Operand, *, blocksize: int) -> Made:
    """Blocks of pixels to channels."""
    return p.call("SpaceToDepth", x, block_size=blocksize, format="NCHW")


@back("Col2Im")
def col2im(
    p: MindirWriter,
    x: Operand,
    image_shape: Operand,
    block_shape: Operand,
    *,
    dilations: Ints = None,
    pads: Ints = None,
    strides: Ints = None,
) -> Made:
    """Windows laid side by side, back in an image; what they share is added up."""
    how = window(block_shape.numbers(), strides, dilations, pads)
    p.require(how.dims == 2, f"windows over {how.dims} axes")
    p.require(how.is_even, "uneven pads")
    batch, rows, columns = sizes(p, x)
    places = math.prod(how.kernel)
    p.require(isinstance(rows, int), "a number of channels known only at run time")
    apart = p.call("Reshape", x, joined(p, [batch, rows // places, places, columns]))
    size = p.constant(_as_int32(image_shape))
    return p.call(
        "Col2Im",
        apart,
        size,
        kernel_size=list(how.kernel),
        dilation=list(how.dilations),
        padding=list(how.begins),
        stride=list(how.strides),
    )


def _as_int32(value: Operand) -> Any:
    return np.asarray(value.numbers(), np.int32)
