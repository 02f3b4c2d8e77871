"""Padding of ONNX as MindSpore primitives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mindspore_lite.ops.to_mindir.table import back
from mindspore_lite.ops.to_mindir.writer import Made, MindirWriter, Operand

_MODES = {"constant": "constant", "reflect": "reflect", "edge": "edge", "wrap": "circular"}
_END = 2**31 - 1  # beyond every axis, and within what MindSpore's slices take


@back("Pad")
def pad(
    p: MindirWriter,
    x: Operand,
    pads: Operand,
    value: Operand | None = None,
    axes: Operand | None = None,
    *,
    mode: str = "constant",
) -> Made:
    """Elements around, or with negative pads fewer of them."""
    p.require(mode in _MODES, f"mode {mode}")
    rank = x.rank
    where = [a % rank for a in axes.numbers()] if axes is not None else list(range(rank))
    filler: Any = np.zeros((), x.dtype) if value is None else value
    if pads.const is None:
        p.require(mode == "constant", f"mode {mode} with pads known only at run time")
        p.require(where == list(range(rank - len(where), rank)), "pads of axes before the last")
        return p.call("PadV3", x, _turned(p, pads, len(where)), filler, mode=mode,
                      paddings_contiguous=False)  # fmt: skip
    numbers, count = pads.numbers(), len(where)
    pairs = [(0, 0)] * rank
    for axis, before, after in zip(where, numbers[:count], numbers[count:], strict=True):
        pairs[axis] = (before, after)
    return padded(p, x, pairs, mode, filler)


def _turned(p: MindirWriter, pads: Operand, count: int) -> Made:
    """All begins, then all ends, each from the last axis on."""
    rows = p.call("ReverseV2", p.call("Reshape", pads, (2, count)), (1,))
    return p.call("Reshape", rows, (-1,))


def padded(
    p: MindirWriter,
    x: Any,
    pairs: Sequence[tuple[int, int]],
    mode: str = "constant",
    filler: Any = None,
) -> Made:
    """With (before, after) of each axis in numbers."""
    if min(n for pair in pairs for n in pair) < 0:
        p.require(mode == "constant", f"mode {mode} with negative pads")
        x = _cropped(p, x, pairs)
        pairs = [(max(before, 0), max(after, 0)) for before, after in pairs]
    first = next((i for i, pair in enumerate(pairs) if any(pair)), None)
    if first is None:
        return p.call("TensorMove", x)
    if mode == "reflect":
        return p.call("MirrorPad", x, np.asarray(pairs, np.int64), mode="REFLECT")
    if mode != "constant":
        return _by_border(p, x, pairs, first, _MODES[mode])
    return p.call("PadV3", x, _from_last(pairs[first:]), filler, mode=mode,
                  paddings_contiguous=True)  # fmt: skip


def _by_border(
    p: MindirWriter, x: Any, pairs: Sequence[tuple[int, int]], first: int, mode: str
) -> Made:
    """These modes of PadV3 know two axes that are left alone, and then one to three others."""
    rank = len(pairs)
    count = max(rank - first, rank - 2)
    p.require(count <= 3, f"mode {mode} over {count} axes")
    missing = range(count + 2 - rank)
    for _ in missing:
        x = p.call("ExpandDims", x, 0)
    made = p.call("PadV3", x, _from_last(pairs[rank - count :]), None, mode=mode,
                  paddings_contiguous=True)  # fmt: skip
    return p.call("Squeeze", made, tuple(missing)) if missing else made


def _from_last(pairs: Sequence[tuple[int, int]]) -> tuple[int, ...]:
    return tuple(n for pair in reversed(pairs) for n in pair)


def _cropped(p: MindirWriter, x: Any, pairs: Sequence[tuple[int, int]]) -> Made:
    begins = tuple(max(-before, 0) for before, _ in pairs)
    ends = tuple(after if after < 0 else _END for _, after in pairs)
    return p.call("StridedSlice", x, begins, ends, (1,) * len(pairs), 0, 0, 0, 0, 0)


@back("CenterCropPad")
def center_crop_pad(
    p: MindirWriter, x: Operand, shape: Operand, *, axes: Sequence[int] | None = None
) -> Made:
    """The middle of each axis, or zeros around it; an odd one is cut or put at the end."""
    where = [a % x.rank for a in axes] if axes else list(range(x.rank))
    pairs = [(0, 0)] * x.rank
    for axis, size in zip(where, shape.numbers(), strict=True):
        length = x.shape[axis]
        p.require(length is not None, "sizes known only at run time")
        missing = size - (length or 0)
        before = missing // 2 if missing > 0 else -(-missing // 2)
        pairs[axis] = (before, missing - before)
    return padded(p, x, pairs, filler=np.zeros((), x.dtype))
