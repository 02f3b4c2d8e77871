"""Padding with constants or with elements of the tensor."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.ops.arguments import MAX_SPREAD, elements, ints, number
from mindspore_lite.ops.slice import FIRST, LAST, sliced
from mindspore_lite.ops.table import Val, op
from mindspore_lite.ops.tape import Tape, bounded

Pairs = Sequence[tuple[Val, Val]]  # (before, after) of each axis, the first axis first
_MODES = {"constant": "constant", "reflect": "reflect", "edge": "edge", "circular": "wrap"}


def padded(t: Tape, x: Val, pairs: Pairs, mode: str = "constant", value: Val = None) -> Val:
    """One ONNX Pad; negative pads cut off first, which a Pad could end in a negative size."""
    x, pairs = cropped(t, x, pairs)
    known = [n for pair in pairs for n in pair if isinstance(n, int)]
    if not any(known) and len(known) == 2 * len(pairs):
        return x
    bounded(max(known, default=0), "elements of padding", MAX_SPREAD)
    pads = t.int64s([p[0] for p in pairs] + [p[1] for p in pairs])
    filler = None if value is None else t.cast(value, t.dtype(x))
    if filler is not None and t.rank(filler) != 0:
        filler = t.op("Reshape", [filler, np.asarray([], np.int64)])
    return t.op("Pad", [x, pads] if filler is None else [x, pads, filler], mode=mode)


def cropped(t: Tape, x: Val, pairs: Pairs) -> tuple[Val, Pairs]:
    """What negative pads cut off, and the pads that remain."""
    cuts = {}
    for axis, (before, after) in enumerate(pairs):
        cut = [-n if isinstance(n, int) and n < 0 else 0 for n in (before, after)]
        if any(cut):
            cuts[axis] = (cut[0], -cut[1] if cut[1] else LAST, 1)
    kept = [(at_least_zero(before), at_least_zero(after)) for before, after in pairs]
    return sliced(t, x, cuts), kept


def at_least_zero(pad: Val) -> Val:
    """A pad without what it cuts off; those of the run time are taken as they are."""
    return max(pad, 0) if isinstance(pad, int) else pad


def from_last(t: Tape, x: Val, pads: Sequence[Val], contiguous: bool = True) -> Pairs:
    """(left, right, top, bottom, ...), or all begins and then all ends, from the last axis on."""
    half = len(pads) // 2
    if len(pads) % 2 or half > t.rank(x):
        raise UnsupportedOpError(f"{len(pads)} pads for a tensor of {t.rank(x)} dims")
    if contiguous:
        pairs = list(zip(pads[0::2], pads[1::2], strict=True))
    else:
        pairs = list(zip(pads[:half], pads[half:], strict=True))
    return [(0, 0)] * (t.rank(x) - half) + pairs[::-1]


def table(value: Val, what: str) -> list[tuple[int, int]]:
    """(before, after) of each axis, from nested tuples or a constant tensor."""
    if isinstance(value, tuple | list):
        return [(before, after) for before, after in (ints(row, what) for row in value)]
    numbers = ints(value, what)
    return list(zip(numbers[0::2], numbers[1::2], strict=True))


@op("Pad")
def pad(t: Tape, x: Val, *, paddings: Val) -> Val:
    """Zeros around; paddings are (before, after) per axis."""
    return padded(t, x, table(paddings, "paddings"))


@op("PadV3")
def pad_v3(
    t: Tape,
    x: Val,
    paddings: Val,
    value: Val = None,
    *,
    mode: str = "constant",
    paddings_contiguous: bool = True,
) -> Val:
    """Pads run from the last axis backwards."""
    if mode not in _MODES:
        raise UnsupportedOpError(f"padding mode {mode!r} is not supported")
    pairs = from_last(t, x, elements(t, paddings), bool(paddings_contiguous))
    return padded(t, x, pairs, _MODES[mode], value if mode == "constant" else None)


@op("ConstantPadND")
def constant_pad_nd(t: Tape, x: Val, padding: Val, value: Val = 0.0) -> Val:
    """Pads run from the last axis backwards."""
    return padded(t, x, from_last(t, x, elements(t, padding)), value=value)


@op(*[f"{kind}Pad{n}D" for kind in ("Reflection", "Replication") for n in (1, 2, 3)])
def border_pad(t: Tape, x: Val, padding: Val) -> Val:
    """The border mirrored or repeated outwards."""
    mode = "reflect" if t.primitive.startswith("Reflection") else "edge"
    return padded(t, x, from_last(t, x, elements(t, padding)), mode)


@op("MirrorPad")
def mirror_pad(t: Tape, x: Val, paddings: Val, *, mode: str = "REFLECT") -> Val:
    """REFLECT leaves the border out of the mirror, SYMMETRIC takes it in."""
    pairs = table(paddings, "paddings")
    if mode.upper() == "REFLECT":
        return padded(t, x, pairs, "reflect")
    if mode.upper() != "SYMMETRIC":
        raise UnsupportedOpError(f"padding mode {mode!r} is not supported")
    for axis, (before, after) in enumerate(pairs):
        x = symmetric(t, x, axis, before, after)
    return x


def symmetric(t: Tape, x: Val, axis: int, before: int, after: int) -> Val:
    """One axis with its ends mirrored: ONNX has no such mode."""
    joined = [x]
    if before:
        joined.insert(0, sliced(t, x, {axis: (before - 1, FIRST, -1)}))
    if after:
        joined.append(sliced(t, x, {axis: (LAST, -after - 1, -1)}))
    return x if len(joined) == 1 else t.op("Concat", joined, axis=axis)


@op("Padding")
def padding_to(t: Tape, x: Val, *, pad_dim_size: Val = 8) -> Val:
    """Zeros after the single element of the last axis, up to a size."""
    more = int(number(pad_dim_size, "pad_dim_size")) - 1
    return padded(t, x, [(0, 0)] * (t.rank(x) - 1) + [(0, more)])
