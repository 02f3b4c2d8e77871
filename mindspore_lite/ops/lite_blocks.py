"""Blocks of pixels moved to the batch axis, channels last, as TensorFlow and converter_lite do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.mindir.records import Type
from mindspore_lite.ops.arguments import ints, layout
from mindspore_lite.ops.lite_forms import form, is_converted
from mindspore_lite.ops.lite_shape import cut
from mindspore_lite.ops.table import Val
from mindspore_lite.ops.tape import Tape


def _may_be_channels_last(
    values: Sequence[Val], attributes: Mapping[str, Any], declared: Type | None
) -> bool:
    return is_converted(values, attributes, declared) and attributes.get("format") != 0


def _block(t: Tape, block_shape: Val, block_size: Val, data_format: Val) -> tuple[int, int]:
    if layout(data_format) != "NHWC":
        raise UnsupportedOpError(f"{t.primitive} in a converted file that does not name its layout")
    height, width = ints(block_size if block_shape is None else block_shape, "block")[-2:]
    return height, width


def _pairs(value: Val, what: str) -> list[tuple[int, ...]]:
    return [ints(pair, what) for pair in value]


def _sizes(t: Tape, x: Val) -> list[Val]:
    """The sizes of all axes, as run-time numbers where they are not known."""
    whole = t.op("Shape", [x])
    return [
        t.op("Gather", [whole, np.asarray(i)]) if d is None else d for i, d in enumerate(t.shape(x))
    ]


def _times(t: Tape, name: str, size: Val, factor: int) -> Val:
    """A size multiplied or divided."""
    if isinstance(size, ir.Value):
        return t.op(name, [size, np.asarray(factor)])
    return size * factor if name == "Mul" else size // factor


@form("SpaceToBatchND", "SpaceToBatch", when=_may_be_channels_last)
def space_to_batch(
    t: Tape,
    x: Val,
    *,
    paddings: Val,
    block_shape: Val = None,
    block_size: Val = None,
    data_format: Val = "NCHW",
) -> Val:
    """Every pixel of a block becomes an image of its own."""
    height, width = _block(t, block_shape, block_size, data_format)
    before, after = zip(*_pairs(paddings, "paddings"), strict=True)
    x = t.op("Pad", [x, np.asarray([0, *before, 0, 0, *after, 0])])
    n, h, w, c = _sizes(t, x)
    small = [_times(t, "Div", h, height), _times(t, "Div", w, width)]
    apart = t.op("Reshape", [x, t.int64s([n, small[0], height, small[1], width, c])])
    first = t.op("Transpose", [apart], perm=[2, 4, 0, 1, 3, 5])
    return t.op("Reshape", [first, t.int64s([-1, *small, c])])


@form("BatchToSpaceND", "BatchToSpace", when=_may_be_channels_last)
def batch_to_space(
    t: Tape,
    x: Val,
    *,
    crops: Val,
    block_shape: Val = None,
    block_size: Val = None,
    data_format: Val = "NCHW",
) -> Val:
    """Images become the pixels of blocks, less what is cropped."""
    height, width = _block(t, block_shape, block_size, data_format)
    _, h, w, c = _sizes(t, x)
    apart = t.op("Reshape", [x, t.int64s([height, width, -1, h, w, c])])
    mixed = t.op("Transpose", [apart], perm=[2, 3, 0, 4, 1, 5])
    large = [_times(t, "Mul", h, height), _times(t, "Mul", w, width)]
    whole = t.op("Reshape", [mixed, t.int64s([-1, *large, c])])
    (top, bottom), (left, right) = _pairs(crops, "crops")
    ends = [-bottom or np.iinfo(np.int64).max, -right or np.iinfo(np.int64).max]
    return cut(t, whole, [1, 2], [top, left], ends, [1, 1])
