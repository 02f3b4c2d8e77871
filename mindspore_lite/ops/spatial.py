"""What ops over image axes share: layouts, pads, window sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.ops.arguments import interleaved, ints, layout, pad_mode
from mindspore_lite.ops.table import Val
from mindspore_lite.ops.tape import Tape, constant_of

F32 = np.dtype(np.float32)


def in_nchw(t: Tape, x: Val, data_format: Val, run: Callable[[Val], Val]) -> Val:
    """Run a channels-first op, turning the axes of a channels-last tensor there and back."""
    if layout(data_format) != "NHWC":
        return run(x)
    y = run(t.op("Transpose", [x], perm=[0, 3, 1, 2]))
    return t.op("Transpose", [y], perm=[0, 2, 3, 1])


def reals_only(t: Tape, x: Val) -> None:
    """Refuse integers: the kernels are of float32, which does not hold all of them."""
    if (dtype := t.dtype(x)).kind in "iub":
        raise UnsupportedOpError(f"{t.primitive} of {dtype.name} is not supported")


def batched(t: Tape, x: Val, dims: int, run: Callable[[Val], Val]) -> Val:
    """Run an op on [N, C, ...]; x may lack its batch axis, and then so do the results."""
    if t.rank(x) != dims + 1:
        return run(x)
    first = np.asarray([0])
    y = run(t.op("Unsqueeze", [x, first]))
    if isinstance(y, tuple):
        return tuple(t.op("Squeeze", [v, first]) for v in y)
    return t.op("Squeeze", [y, first])


def per_axis(value: Val, dims: int, what: str) -> tuple[int, ...]:
    """One number per spatial axis: a single one counts for all, leading batch and channel drop."""
    found = ints(value, what)
    if len(found) == 1:
        return found * dims
    if len(found) not in (dims, dims + 2):
        raise UnsupportedOpError(f"{what} has {len(found)} numbers, wanted {dims}: {found}")
    return found[-dims:]


def both_sides(value: Val, dims: int, what: str = "padding") -> list[int]:
    """The same pads at the begin and the end of each axis, in ONNX's order."""
    return [*per_axis(value, dims, what)] * 2


def padding(t: Tape, mode: Val, pad_list: Val, pad: Val = None) -> dict[str, Val]:
    """The ONNX attributes for MindSpore's pad mode; pads are (begin, end) per spatial axis.

    `pad_list` is what the exporter resolved; `pad`, what was asked for, counts in mode 'pad' only.
    """
    mode = pad_mode(mode)
    if mode == "valid":
        return {}
    if pad_list is None and mode == "pad":
        pad_list = pad
        if pad is None:
            raise UnsupportedOpError("pad_mode 'pad' without pads is not supported")
    resolved = ints(pad_list, "pad_list") if pad_list is not None else (-1,)
    # the pads stored for 'same' hold for the exported size alone
    if mode == "same" and (min(resolved) < 0 or not t.trust_dims):
        return {"auto_pad": "SAME_UPPER"}
    return {"pads": interleaved(resolved)}


def same_pads(
    t: Tape, x: Val, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> Val:
    """As many windows as ceil(size / stride), the odd zero at the end."""
    reach = np.asarray(dilations) * (np.asarray(kernel) - 1) + 1
    step, known = np.asarray(strides), t.shape(x)[2:]
    if None not in known:
        size = np.asarray(known, np.int64)
        need = np.maximum((-(-size // step) - 1) * step + reach - size, 0)
        return np.concatenate([need // 2, need - need // 2])
    size = t.op("Shape", [x], start=2)
    # the last window starts at (size - 1) // stride * stride
    last = t.op("Mul", [t.op("Div", [t.op("Sub", [size, np.asarray(1)]), step]), step])
    need = t.op("Max", [t.op("Sub", [t.op("Add", [last, reach]), size]), np.asarray(0)])
    begin = t.op("Div", [need, np.asarray(2)])
    return t.op("Concat", [begin, t.op("Sub", [need, begin])], axis=0)


def beyond_same(attributes: Mapping[str, Val], kernel: Sequence[int]) -> bool:
    """Whether ONNX Runtime's SAME_UPPER is not MindSpore's 'same'.

    It knows no dilation, and where a stride is larger than the window it pads by less than nothing.
    """
    strides, dilations = attributes["strides"], attributes.get("dilations", (1,))
    return "auto_pad" in attributes and (
        max(dilations) > 1 or any(s > k for s, k in zip(strides, kernel, strict=True))
    )


def padded(t: Tape, x: Val, pads: Val, dims: int) -> Val:
    """Zeros around the last axes; pads are all begins, then all ends."""
    known = constant_of(pads)
    if known is not None and not np.any(known):
        return x
    if known is not None and known.min() < 0:
        raise UnsupportedOpError(f"negative pads {known.tolist()} are not supported")
    return zeros_around(t, x, pads, t.rank(x) - dims)


def zeros_around(t: Tape, x: Val, pads: Val, first: int) -> Val:
    """Zeros around the axes from the first one on, as many as there are pads for.

    Pad has an input for its axes, but ONNX Runtime 1.31 forgets it where it moves a Transpose past.
    """
    dims, known = (t.shape(pads)[0] or 0) // 2, constant_of(pads)
    before, after = (np.zeros(n, np.int64) for n in (first, t.rank(x) - first - dims))
    if known is not None:
        begins, ends = known[:dims], known[dims:]
        return t.op("Pad", [x, np.concatenate([before, begins, after, before, ends, after])])
    begins, ends = t.op("Split", [pads, [dims, dims]], outputs=2)
    parts = [before, begins, after, before, ends, after]
    return t.op("Pad", [x, t.op("Concat", parts, axis=0)])


def numbers_of(t: Tape, x: Val, dims: int) -> list[Val]:
    """The sizes of the last axes, each a number or, where free, a run-time scalar."""
    known = t.shape(x)[-dims:]
    if None not in known:
        return list(known)
    shape = t.op("Shape", [x], start=-dims)
    return [
        t.op("Gather", [shape, np.asarray(i)], axis=0) if size is None else size
        for i, size in enumerate(known)
    ]
