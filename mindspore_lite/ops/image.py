"""Sampling from images: grids, regions, crops, and the change of colour spaces."""

from __future__ import annotations

import math

import numpy as np

from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.ops.arguments import elements
from mindspore_lite.ops.spatial import F32, reals_only
from mindspore_lite.ops.table import Val, op
from mindspore_lite.ops.tape import MAX_TABLE, Tape, bounded

I64 = np.dtype(np.int64)
_GRID_MODES = {0: "linear", 1: "nearest", 2: "cubic", "bilinear": "linear", "bicubic": "cubic"}
_GRID_EDGES = {0: "zeros", 1: "border", 2: "reflection"}


def f32(value: float) -> np.ndarray:
    """A float32 constant."""
    return np.asarray(value, F32)


# --- grids ----------------------------------------------------------------------------------------


@op("GridSampler2D", "GridSampler3D")
def grid_sampler(
    t: Tape,
    x: Val,
    grid: Val,
    *,
    interpolation_mode: Val = "bilinear",
    padding_mode: Val = "zeros",
    align_corners: Val = False,
) -> Val:
    """The grid holds (x, y[, z]) between -1 and 1."""
    how: dict[str, Val] = {
        "mode": _GRID_MODES.get(interpolation_mode, interpolation_mode),
        "padding_mode": _GRID_EDGES.get(padding_mode, padding_mode),
        "align_corners": int(align_corners),
    }
    reals_only(t, x)
    if t.dtype(x) == np.float64 and t.rank(x) == 5:  # that kernel of ONNX Runtime is for images
        x, grid = t.cast(x, F32), t.cast(grid, F32)
        return t.cast(t.op("GridSample", [x, grid], **how), np.dtype(np.float64))
    return t.op("GridSample", [x, grid], **how)


@op("AffineGrid")
def affine_grid(t: Tape, theta: Val, output_size: Val, *, align_corners: Val = False) -> Val:
    """The grid that a matrix per image makes of N, C, [D,] H, W."""
    sizes = elements(t, output_size)
    if not all(isinstance(n, int) for n in sizes):
        how = {"align_corners": int(align_corners)}
        grid = t.op("AffineGrid", [t.cast(theta, F32), t.int64s(sizes)], **how)
        return t.cast(grid, t.dtype(theta))
    # a product of constants, not AffineGrid: that puts a lone aligned pixel at -1, not at 0
    spatial, dims = sizes[2:], len(sizes) - 2
    bounded(math.prod(spatial) * (dims + 1), "numbers in a grid", MAX_TABLE)
    lines = [_line(n, bool(align_corners)) for n in spatial]
    axes = np.meshgrid(*lines, indexing="ij")[::-1]  # x before y before z
    base = np.stack([*axes, np.ones(spatial)], -1).reshape(-1, dims + 1)
    turned = t.op("Transpose", [theta], perm=[0, 2, 1])
    grid = t.op("MatMul", [t.cast(base, t.dtype(theta)), turned])
    return t.op("Reshape", [grid, t.int64s([-1, *spatial, dims])])


def _line(count: int, align_corners: bool) -> np.ndarray:
    """Pixels from -1 to 1, by their centres or, aligned, up to the ends."""
    if align_corners:
        return np.linspace(-1, 1, count) if count > 1 else np.zeros(count)
    return (2 * np.arange(count) + 1) / count - 1


# --- regions --------------------------------------------------------------------------------------


@op("ROIAlign")
def roi_align(
    t: Tape,
    x: Val,
    rois: Val,
    *,
    pooled_height: int,
    pooled_width: int,
    spatial_scale: float,
    sample_num: int = 2,
    roi_end_mode: int = 1,
) -> Val:
    """Each roi is (image, x1, y1, x2, y2); roi_end_mode 1 counts the last pixel in."""
    if sample_num <= 0:  # MindSpore rounds the number of samples down, to 0 in small regions
        raise UnsupportedOpError(f"ROIAlign with sample_num {sample_num} is not supported")
    which, corners = t.op("Split", [rois, np.asarray([1, 4])], outputs=2, axis=1)
    mode = "output_half_pixel"
    if roi_end_mode:
        # then regions may be smaller than a pixel, as in ONNX's other mode, which moves by a half
        half, mode = 0.5 / spatial_scale, "half_pixel"
        moved = [half, half, half + 1, half + 1]
        corners = t.op("Add", [corners, t.cast(moved, t.dtype(rois))])
    image = t.cast(t.op("Squeeze", [which, np.asarray([1])]), I64)
    how: dict[str, Val] = {
        "output_height": pooled_height,
        "output_width": pooled_width,
        "spatial_scale": float(spatial_scale),
        "sampling_ratio": sample_num,
        "coordinate_transformation_mode": mode,
    }
    reals_only(t, x)
    return t.op("RoiAlign", [x, corners, image], **how)


@op("CropAndResize")
def crop_and_resize(
    t: Tape,
    x: Val,
    boxes: Val,
    box_index: Val,
    crop_size: Val,
    *,
    method: str = "bilinear",
    extrapolation_value: float = 0.0,
) -> Val:
    """Boxes (y1, x1, y2, x2) between 0 and 1, cut from [N, H, W, C] and scaled to one size."""
    if method not in ("bilinear", "nearest"):
        raise UnsupportedOpError(f"CropAndResize by {method!r} is not supported")
    x, boxes = t.cast(x, F32), t.cast(boxes, F32)
    corners = t.op("Split", [boxes], outputs=4, axis=1, num_outputs=4)
    height, width = elements(t, crop_size)
    bounded(max(n for n in (height, width, 0) if isinstance(n, int)), "pixels of a crop")
    rows, inside_y = _places(t, x, 1, corners[0], corners[2], height)
    columns, inside_x = _places(t, x, 2, corners[1], corners[3], width)
    rows, inside_y = (t.op("Unsqueeze", [v, np.asarray([2])]) for v in (rows, inside_y))
    columns, inside_x = (t.op("Unsqueeze", [v, np.asarray([1])]) for v in (columns, inside_x))
    image = t.op("Unsqueeze", [t.cast(box_index, I64), np.asarray([1, 2])])
    if method == "nearest":
        pick = [t.op("Floor", [t.op("Add", [v, f32(0.5)])]) for v in (rows, columns)]
        y = _pixels(t, x, image, *pick)
    else:
        y = _between(t, x, image, rows, columns)
    inside = t.op("Unsqueeze", [t.op("And", [inside_y, inside_x]), np.asarray([3])])
    return t.op("Where", [inside, y, f32(extrapolation_value)])


def _places(t: Tape, x: Val, axis: int, first: Val, last: Val, count: Val) -> tuple[Val, Val]:
    """Where one axis of each crop lies in pixels, [boxes, count], and which lie inside."""
    end = t.cast(t.op("Shape", [x], start=axis, end=axis + 1), F32)
    end = t.op("Sub", [end, f32(1)])
    first, last = t.op("Mul", [first, end]), t.op("Mul", [last, end])
    if count == 1:
        at = t.op("Mul", [t.op("Add", [first, last]), f32(0.5)])
    else:
        total = t.cast(count, F32)
        step = t.op("Div", [t.op("Sub", [last, first]), t.op("Sub", [total, f32(1)])])
        steps = t.op("Range", [f32(0), total, f32(1)])
        at = t.op("Add", [first, t.op("Mul", [step, steps])])
    after, before = t.op("GreaterOrEqual", [at, f32(0)]), t.op("LessOrEqual", [at, end])
    # places outside are not used, but they must exist
    kept = t.op("Min", [t.op("Max", [at, f32(0)]), end])
    return kept, t.op("And", [after, before])


def _pixels(t: Tape, x: Val, image: Val, rows: Val, columns: Val) -> Val:
    """x[image, rows, columns], the three broadcast."""
    rows, columns = t.cast(rows, I64), t.cast(columns, I64)
    parts = [image, rows, columns]
    whole = t.op("Add", [t.op("Add", parts[:2]), columns])
    shape = t.op("Shape", [whole])
    spread = [t.op("Unsqueeze", [t.op("Expand", [p, shape]), np.asarray([3])]) for p in parts]
    return t.op("GatherND", [x, t.op("Concat", spread, axis=3)])


def _between(t: Tape, x: Val, image: Val, rows: Val, columns: Val) -> Val:
    """Linear between the four pixels around each place."""
    top, left = t.op("Floor", [rows]), t.op("Floor", [columns])
    bottom, right = t.op("Ceil", [rows]), t.op("Ceil", [columns])
    last = np.asarray([3])
    down = t.op("Unsqueeze", [t.op("Sub", [rows, top]), last])
    along = t.op("Unsqueeze", [t.op("Sub", [columns, left]), last])

    def mixed(a: Val, b: Val, share: Val) -> Val:
        return t.op("Add", [a, t.op("Mul", [t.op("Sub", [b, a]), share])])

    upper = mixed(_pixels(t, x, image, top, left), _pixels(t, x, image, top, right), along)
    lower = mixed(_pixels(t, x, image, bottom, left), _pixels(t, x, image, bottom, right), along)
    return mixed(upper, lower, down)


# --- colours --------------------------------------------------------------------------------------


@op("HSVToRGB")
def hsv_to_rgb(t: Tape, x: Val) -> Val:
    """Channels last, all between 0 and 1."""
    dtype = t.dtype(x)
    hue, saturation, value = t.op("Split", [x], outputs=3, axis=-1, num_outputs=3)

    def number(v: Val) -> Val:
        return np.asarray(v, dtype)

    # red, green and blue are at full value while hue is near 0, 2 and 4 of six, and fall between
    sixths = t.op("Mul", [hue, number(6)])
    red = t.op("Sub", [t.op("Abs", [t.op("Sub", [sixths, number(3)])]), number(1)])
    far = [t.op("Abs", [t.op("Sub", [sixths, number(n)])]) for n in (2, 4)]
    rest = [t.op("Sub", [number(2), v]) for v in far]
    shares = t.op("Concat", [red, *rest], axis=-1)
    shares = t.op("Clip", [shares, number(0), number(1)])
    faded = t.op("Mul", [saturation, t.op("Sub", [shares, number(1)])])
    return t.op("Mul", [value, t.op("Add", [faded, number(1)])])


@op("RGBToHSV")
def rgb_to_hsv(t: Tape, x: Val) -> Val:
    """Channels last; grey has hue and saturation 0."""
    dtype = t.dtype(x)

    def number(v: Val) -> Val:
        return np.asarray(v, dtype)

    def over(a: Val, b: Val) -> Val:  # 0 where b is 0
        none = t.op("Equal", [b, number(0)])
        return t.op(
            "Where", [none, number(0), t.op("Div", [a, t.op("Where", [none, number(1), b])])]
        )

    red, green, blue = t.op("Split", [x], outputs=3, axis=-1, num_outputs=3)
    last = np.asarray([-1])
    most = t.op("ReduceMax", [x, last], keepdims=1)
    span = t.op("Sub", [most, t.op("ReduceMin", [x, last], keepdims=1)])

    def sector(a: Val, b: Val, start: int) -> Val:
        return t.op("Add", [over(t.op("Sub", [a, b]), span), number(start)])

    rest = [t.op("Equal", [most, green]), sector(blue, red, 2), sector(red, green, 4)]
    sixths = [t.op("Equal", [most, red]), sector(green, blue, 0), t.op("Where", rest)]
    hue = t.op("Div", [t.op("Where", sixths), number(6)])
    hue = t.op("Where", [t.op("Less", [hue, number(0)]), t.op("Add", [hue, number(1)]), hue])
    hue = t.op("Where", [t.op("Equal", [span, number(0)]), number(0), hue])
    return t.op("Concat", [hue, over(span, most), most], axis=-1)
