"""Pooling over windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mindspore_lite.core.dtypes import BY_TYPE_ID
from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.mindir.records import SequenceType, TensorType
from mindspore_lite.ops import arguments
from mindspore_lite.ops.arguments import ints, layout, number
from mindspore_lite.ops.shape import squeezed
from mindspore_lite.ops.spatial import (
    batched,
    beyond_same,
    both_sides,
    in_nchw,
    padding,
    per_axis,
    reals_only,
    same_pads,
    zeros_around,
)
from mindspore_lite.ops.table import Val, op
from mindspore_lite.ops.tape import Tape

I64 = np.dtype(np.int64)


def max_pool(t: Tape, x: Val, outputs: int = 1, **attributes: Val) -> Val:
    """ONNX MaxPool, with MindSpore's 'same'."""
    return t.op("MaxPool", [x], outputs=outputs, **with_same_pads(t, x, attributes))


def average_pool(t: Tape, x: Val, **attributes: Val) -> Val:
    """ONNX AveragePool, with MindSpore's 'same'."""
    reals_only(t, x)
    return t.op("AveragePool", [x], **with_same_pads(t, x, attributes))


def with_same_pads(t: Tape, x: Val, attributes: dict[str, Val]) -> dict[str, Val]:
    """Attributes with 'same' in numbers, where ONNX Runtime would get it wrong."""
    kernel, strides = attributes["kernel_shape"], attributes["strides"]
    if not beyond_same(attributes, kernel):
        return attributes
    pads = same_pads(t, x, kernel, strides, (1,) * len(kernel))
    if not isinstance(pads, np.ndarray):
        raise UnsupportedOpError("'same' with strides beyond the window needs fixed sizes")
    kept = {key: value for key, value in attributes.items() if key != "auto_pad"}
    return {**kept, "pads": pads.tolist()}


def flat_if_thin(t: Tape, x: Val, run: Callable[..., Val], **attributes: Val) -> Val:
    """A 3-D pooling that leaves a depth of 1 alone as a 2-D one, which is ten times as fast.

    nn's 2-D layers with explicit padding export 3-D pooling.
    """
    pads = attributes.get("pads", (0,) * 6)
    moves = {attributes["kernel_shape"][0], attributes["strides"][0]}
    if t.shape(x)[2] != 1 or moves != {1} or pads[0] or pads[3]:
        return run(x, **attributes)
    thin: dict[str, Val] = dict(attributes)
    for key in ("kernel_shape", "strides", "dilations"):
        if key in thin:
            thin[key] = thin[key][1:]
    if "pads" in thin:
        thin["pads"] = [*pads[1:3], *pads[4:6]]
    axis = [2]
    x = squeezed(t, x, axis)
    y = run(x, **thin)
    if isinstance(y, tuple):
        return tuple(t.op("Unsqueeze", [v, axis]) for v in y)
    return t.op("Unsqueeze", [y, axis])


# --- the classic ops, with MindSpore's pad modes --------------------------------------------------


@op("MaxPool", "MaxPoolV1")
def max_pool2d(
    t: Tape,
    x: Val,
    *,
    kernel_size: Val,
    strides: Val,
    pad_mode: Val = "VALID",
    data_format: Val = "NCHW",
) -> Val:
    """Window sizes are (1, 1, h, w)."""
    how = {**window(kernel_size, strides, data_format), **padding(t, pad_mode, None)}
    return in_nchw(t, x, data_format, lambda x: max_pool(t, x, **how))


@op("AvgPool", "AvgPoolV1")
def avg_pool2d(
    t: Tape,
    x: Val,
    *,
    kernel_size: Val,
    strides: Val,
    pad_mode: Val = "VALID",
    data_format: Val = "NCHW",
) -> Val:
    """The mean leaves padding out."""
    how = {**window(kernel_size, strides, data_format), **padding(t, pad_mode, None)}
    return in_nchw(t, x, data_format, lambda x: average_pool(t, x, count_include_pad=0, **how))


def window(kernel: Val, strides: Val, data_format: Val) -> dict[str, Val]:
    """Sizes that come as (h, w), or as four in the order of the layout."""
    found = {"kernel_shape": ints(kernel, "kernel_size"), "strides": ints(strides, "strides")}
    last = layout(data_format) == "NHWC"
    return {
        key: value[1:3] if last and len(value) == 4 else per_axis(value, 2, key)
        for key, value in found.items()
    }


@op("MaxPool3D")
def max_pool3d(
    t: Tape,
    x: Val,
    *,
    kernel_size: Val,
    strides: Val,
    pad_mode: Val = "VALID",
    pad_list: Val = (0,) * 6,
    ceil_mode: Val = False,
) -> Val:
    """Window sizes are (1, 1, d, h, w)."""
    return flat_if_thin(
        t,
        x,
        lambda x, **how: max_pool(t, x, **how),
        kernel_shape=per_axis(kernel_size, 3, "kernel_size"),
        strides=per_axis(strides, 3, "strides"),
        ceil_mode=int(ceil_mode or 0),
        **padding(t, pad_mode, resolved(pad_mode, pad_list)),
    )


@op("AvgPool3D")
def avg_pool3d(
    t: Tape,
    x: Val,
    *,
    kernel_size: Val,
    strides: Val,
    pad_mode: Val = "VALID",
    pad_list: Val = (0,) * 6,
    ceil_mode: Val = False,
    count_include_pad: Val = True,
    divisor_override: int = 0,
) -> Val:
    """nn.AvgPool2d with explicit padding exports it, too."""
    return flat_if_thin(
        t,
        x,
        lambda x, **how: averaged(t, x, divisor_override, **how),
        kernel_shape=per_axis(kernel_size, 3, "kernel_size"),
        strides=per_axis(strides, 3, "strides"),
        ceil_mode=int(ceil_mode or 0),
        count_include_pad=int(count_include_pad),
        **padding(t, pad_mode, resolved(pad_mode, pad_list)),
    )


def resolved(mode: Val, pad_list: Val) -> Val:
    """The 3-D pools store zeros for 'same', not the pads it stands for."""
    return None if arguments.pad_mode(mode) == "same" else pad_list


def averaged(t: Tape, x: Val, divisor: Val, **attributes: Val) -> Val:
    """The mean of each window, or its sum over a divisor of one's own."""
    divisor = number(divisor or 0, "divisor_override")
    if not divisor:
        return average_pool(t, x, **attributes)
    if attributes.pop("ceil_mode", 0):
        x, attributes = _zeros_below_the_last_windows(t, x, attributes)
    attributes["count_include_pad"] = 1  # so that each mean is a sum over the whole window's size
    scale = np.prod(attributes["kernel_shape"]) / divisor
    mean = average_pool(t, x, **attributes)
    return t.op("Mul", [mean, t.cast(scale, t.dtype(x))])


def _zeros_below_the_last_windows(
    t: Tape, x: Val, attributes: dict[str, Val]
) -> tuple[Val, dict[str, Val]]:
    """ceil_mode as zeros at the end; a window that would begin in them does not exist."""
    sizes, dims = t.shape(x)[2:], len(attributes["kernel_shape"])
    pads = attributes.get("pads", (0,) * 2 * dims)
    ends = []
    axes = zip(sizes, attributes["kernel_shape"], attributes["strides"], strict=True)
    for axis, (size, kernel, stride) in enumerate(axes):
        if size is None:
            raise UnsupportedOpError("divisor_override with ceil_mode needs fixed sizes")
        begin, end = pads[axis], pads[axis + dims]
        last = -(-(size + begin + end - kernel) // stride)
        last -= last * stride >= size + begin
        ends.append(max(last * stride + kernel - size - begin, end))
    kept = {key: value for key, value in attributes.items() if key not in ("pads", "ceil_mode")}
    return zeros_around(t, x, np.asarray([*pads[:dims], *ends]), 2), kept


# --- with the places of the largest ---------------------------------------------------------------


def with_index(t: Tape, x: Val, index_type: np.dtype, **attributes: Val) -> tuple[Val, Val]:
    """-> (largest, its flat place inside its channel); ONNX counts over the whole tensor."""
    y, index = max_pool(t, x, outputs=2, **attributes)
    plane = t.op("ReduceProd", [t.op("Shape", [x], start=2)], keepdims=0)
    return y, t.cast(t.op("Mod", [index, plane]), index_type)


def index_type(t: Tape, argument: Val = None) -> np.dtype:
    """Of the second result: as the file declares, else as the argument says, else int64."""
    declared = t.result
    if isinstance(declared, SequenceType) and len(declared.items) > 1:
        second = declared.items[1]
        if isinstance(second, TensorType):
            return second.dtype.numpy
    if argument in (3, "int32") or BY_TYPE_ID.get(argument) == BY_TYPE_ID[34]:
        return np.dtype(np.int32)
    return I64


@op("MaxPool3DWithArgmax")
def max_pool3d_argmax(
    t: Tape,
    x: Val,
    *,
    ksize: Val,
    strides: Val,
    pads: Val = (0, 0, 0),
    dilation: Val = (1, 1, 1),
    ceil_mode: Val = False,
    argmax_type: Val = "int64",
) -> Val:
    """-> (y, flat index inside one channel); nn.MaxPool2d with explicit padding exports it."""
    found = index_type(t, argmax_type)
    return flat_if_thin(
        t,
        x,
        lambda x, **how: with_index(t, x, found, **how),
        kernel_shape=per_axis(ksize, 3, "ksize"),
        strides=per_axis(strides, 3, "strides"),
        pads=both_sides(pads, 3, "pads"),
        dilations=per_axis(dilation, 3, "dilation"),
        ceil_mode=int(ceil_mode),
    )


@op("MaxPoolWithArgmaxV2", "MaxPoolWithIndices")
def max_pool_argmax(
    t: Tape,
    x: Val,
    *,
    kernel_size: Val,
    strides: Val = None,
    pads: Val = 0,
    dilation: Val = (1, 1),
    ceil_mode: Val = False,
    argmax_type: Val = None,
) -> Val:
    """-> (y, flat index inside one channel plane); sizes may be (h, w) or (1, 1, h, w)."""
    found = index_type(t, argmax_type)
    return batched(
        t,
        x,
        2,
        lambda x: with_index(
            t,
            x,
            found,
            kernel_shape=per_axis(kernel_size, 2, "kernel_size"),
            strides=per_axis(kernel_size if strides is None else strides, 2, "strides"),
            pads=both_sides(pads, 2, "pads"),
            dilations=per_axis(dilation, 2, "dilation"),
            ceil_mode=int(ceil_mode),
        ),
    )


@op("MaxPoolWithMask")
def max_pool_mask(
    t: Tape,
    x: Val,
    *,
    kernel_size: Val,
    strides: Val = None,
    pads: Val = 0,
    dilation: Val = (1, 1),
    ceil_mode: Val = False,
    argmax_type: Val = None,
) -> Val:
    """-> (y, mask); the mask, a secret of Ascend's gradient, cannot be used."""
    y, _ = max_pool_argmax(
        t,
        x,
        kernel_size=kernel_size,
        strides=strides,
        pads=pads,
        dilation=dilation,
        ceil_mode=ceil_mode,
    )
    return y, "the mask of MaxPoolWithMask"  # words, not a tensor: its users are refused


@op("MaxPoolWithArgmax")
def max_pool_argmax_old(
    t: Tape,
    x: Val,
    *,
    kernel_size: Val,
    strides: Val,
    pad_mode: Val = "VALID",
    data_format: Val = "NCHW",
) -> Val:
    """-> (y, flat index inside one channel plane, as int32)."""
    if layout(data_format) == "NHWC":
        raise UnsupportedOpError("MaxPoolWithArgmax in NHWC is not supported")
    how = {**window(kernel_size, strides, data_format), **padding(t, pad_mode, None)}
    return with_index(t, x, np.dtype(np.int32), **how)


# --- one, two or three axes with symmetric padding ------------------------------------------------


@op("AvgPool1D")
def avg_pool1d(
    t: Tape,
    x: Val,
    kernel_size: Val,
    stride: Val = None,
    padding: Val = 0,
    ceil_mode: Val = False,
    count_include_pad: Val = True,
) -> Val:
    """The batch axis may be missing."""
    return _avg_pool(t, x, 1, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


def _with_divisor(dims: int) -> Val:
    def avg_pool(
        t: Tape,
        x: Val,
        kernel_size: Val,
        stride: Val = None,
        padding: Val = 0,
        ceil_mode: Val = False,
        count_include_pad: Val = True,
        divisor_override: Val = None,
    ) -> Val:
        """The batch axis may be missing; a divisor of one's own replaces the window's size."""
        window = (kernel_size, stride, padding, ceil_mode, count_include_pad)
        return _avg_pool(t, x, dims, *window, divisor_override)

    return avg_pool


for _primitive, _dims in {"AvgPool2D": 2, "AvgPool3DExt": 3}.items():
    op(_primitive)(_with_divisor(_dims))


def _avg_pool(
    t: Tape, x: Val, dims: int, kernel: Val, stride: Val, pads: Val, ceil: Val, include: Val,
    divisor: Val,
) -> Val:  # fmt: skip
    asked = kernel if stride is None or stride == () else stride
    how = {
        "kernel_shape": per_axis(kernel, dims, "kernel_size"),
        "strides": per_axis(asked, dims, "stride"),
        "pads": both_sides(pads, dims),
        "ceil_mode": int(ceil),
        "count_include_pad": int(include),
    }
    return batched(t, x, dims, lambda x: averaged(t, x, divisor, **how))


# --- and back -------------------------------------------------------------------------------------


@op("MaxUnpool2D", "MaxUnpool3D")
def max_unpool(
    t: Tape,
    x: Val,
    argmax: Val,
    *,
    ksize: Val,
    strides: Val,
    pads: Val = 0,
    output_shape: Val = (),
    data_format: Val = "NCHW",
) -> Val:
    """Each number goes back to its flat place in its channel, zeros elsewhere."""
    if layout(data_format) == "NHWC":
        raise UnsupportedOpError(f"{t.primitive} in NHWC is not supported")
    dims = t.rank(x) - 2
    how = [per_axis(v, dims, "window") for v in (ksize, strides, pads)]
    sizes = ints(output_shape, "output_shape")[-dims:] if output_shape else ()
    return _unpooled(t, x, argmax, how, sizes)


@op("MaxUnpool2DExt")
def max_unpool_ext(
    t: Tape,
    x: Val,
    indices: Val,
    kernel_size: Val,
    stride: Val = None,
    padding: Val = 0,
    output_size: Val = None,
) -> Val:
    """Each number goes back to its flat place in its channel, zeros elsewhere."""
    asked = (kernel_size, kernel_size if stride is None or stride == () else stride, padding)
    how = [per_axis(v, 2, "window") for v in asked]
    sizes = ints(output_size, "output_size")[-2:] if output_size else ()
    if t.rank(x) == 3:
        x, indices = (t.op("Unsqueeze", [v, np.asarray([0])]) for v in (x, indices))
        return t.op("Squeeze", [_unpooled(t, x, indices, how, sizes), np.asarray([0])])
    return _unpooled(t, x, indices, how, sizes)


def _unpooled(
    t: Tape, x: Val, index: Val, how: Sequence[Sequence[int]], sizes: Sequence[int]
) -> Val:
    if sizes:
        places = np.asarray(sizes, np.int64)
    else:  # (n - 1) * stride - 2 * pad + kernel
        kernel, strides, pads = (np.asarray(v, np.int64) for v in how)
        inner = t.op("Mul", [t.op("Shape", [x], start=2), strides])
        places = t.op("Add", [inner, kernel - strides - 2 * pads])
    outer = t.op("Shape", [x], end=2)
    flat = np.asarray([0, 0, -1])
    numbers, index = (t.op("Reshape", [v, flat]) for v in (x, t.cast(index, I64)))
    plane = t.op("ReduceProd", [places], keepdims=1)
    room = t.op("Expand", [t.cast(0, t.dtype(x)), t.op("Concat", [outer, plane], axis=0)])
    full = t.op("ScatterElements", [room, index, numbers], axis=2)
    return t.op("Reshape", [full, t.op("Concat", [outer, places], axis=0)])
