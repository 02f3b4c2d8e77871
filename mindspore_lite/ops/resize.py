"""Resizing of images.

Where sizes are known, nearest and bicubic resizing follow MindSpore's own float32 arithmetic: a
pixel's rounding, and weights out of a table of 1024 steps. With free sizes ONNX's rule decides:
a bicubic result differs by up to 2e-3, and at a few ratios a nearest pixel is its neighbour.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.ops.arguments import elements, ints
from mindspore_lite.ops.spatial import F32, reals_only
from mindspore_lite.ops.table import Val, op
from mindspore_lite.ops.tape import MAX_TABLE, Tape, bounded

NEAREST_KERNELS = ("float16", "float32", "int32", "int8", "uint8")
_MODES = {0: "asymmetric", 1: "align_corners", 2: "half_pixel"}
_ROUNDING = {
    "asymmetric": "floor",
    "align_corners": "round_prefer_ceil",
    "half_pixel": "round_prefer_ceil",
}


def coordinates(align_corners: Val, half_pixel: Val) -> str:
    """How output pixels map to input pixels."""
    if align_corners:
        return "align_corners"
    return "half_pixel" if half_pixel else "asymmetric"


def resized(t: Tape, x: Val, sizes: Val = None, scales: Val = None, **attributes: Val) -> Val:
    """ONNX Resize of the spatial axes, to sizes or by factors."""
    if scales is not None:
        factors = np.asarray([1.0, 1.0, *(float(s) for s in scales)], np.float32)
        return t.op("Resize", [x, None, factors], **attributes)
    whole = _whole_factors(t, x, sizes)
    if whole is not None:
        return t.op("Resize", [x, None, whole], **attributes)
    batch_and_channels = t.op("Shape", [x], end=2)
    joined = t.op("Concat", [batch_and_channels, t.int64s(sizes)], axis=0)
    return t.op("Resize", [x, None, None, joined], **attributes)


def _whole_factors(t: Tape, x: Val, sizes: Val) -> np.ndarray | None:
    """Sizes as factors where these are whole; ONNX Runtime has more kernels for them."""
    image = t.shape(x)[2:]
    known = all(isinstance(n, int) and n > 0 for n in (*image, *sizes))
    if not known or any(size % n for size, n in zip(sizes, image, strict=True)):
        return None
    return np.asarray([1, 1, *(s // n for s, n in zip(sizes, image, strict=True))], np.float32)


def smooth(t: Tape, x: Val, size: Val, mode: str, how: str, scales: Val = None, **more: Val) -> Val:
    """Linear or cubic interpolation, without smoothing when shrinking."""
    sizes = None if size is None else elements(t, size)
    if sizes is None and unchanged(t, x, scales):
        return t.op("Identity", [x])
    attributes = {"mode": mode, "coordinate_transformation_mode": how, **more}
    reals_only(t, x)
    return resized(t, x, sizes, scales, **attributes)


def scaled(t: Tape, x: Val, scales: Val) -> list[int | None]:
    """The sizes that factors make; float32 decides, 10 times 0.7 is 7."""
    each = zip(t.shape(x)[2:], scales, strict=True)
    return [None if n is None else int(np.float32(n) * np.float32(s)) for n, s in each]


def unchanged(t: Tape, x: Val, scales: Val) -> bool:
    """Then MindSpore copies, whatever the factors say of places in between."""
    lengths = t.shape(x)[2:]
    return None not in lengths and scaled(t, x, scales) == list(lengths)


# --- linear ---------------------------------------------------------------------------------------


@op("ResizeBilinearV2", "ResizeBilinear")
def resize_bilinear(
    t: Tape, x: Val, size: Val, *, align_corners: Val = False, half_pixel_centers: Val = False
) -> Val:
    """No smoothing when shrinking."""
    return smooth(t, x, size, "linear", coordinates(align_corners, half_pixel_centers))


@op("ResizeLinear1D")
def resize_linear1d(
    t: Tape, x: Val, size: Val, *, coordinate_transformation_mode: Val = "align_corners"
) -> Val:
    """Over the last of three axes."""
    mode = coordinate_transformation_mode
    how = str(_MODES.get(mode, mode))
    return smooth(t, x, size, "linear", how)


@op("UpsampleLinear1D", "UpsampleBilinear2D", "UpsampleTrilinear3D")
def upsample_linear(
    t: Tape, x: Val, output_size: Val = None, scales: Val = None, align_corners: Val = False
) -> Val:
    """By a size or by factors."""
    return smooth(t, x, output_size, "linear", coordinates(align_corners, True), scales)


# --- nearest --------------------------------------------------------------------------------------


@op("ResizeNearestNeighbor", "ResizeNearestNeighborV2", "DynamicResizeNearestNeighbor")
def resize_nearest(
    t: Tape, x: Val, size: Val, *, align_corners: Val = False, half_pixel_centers: Val = False
) -> Val:
    """The plain form rounds down; ONNX's default does not."""
    return nearest(t, x, elements(t, size), None, coordinates(align_corners, half_pixel_centers))


@op("UpsampleNearest1D", "UpsampleNearest2D", "UpsampleNearest3D")
def upsample_nearest(t: Tape, x: Val, output_size: Val = None, scales: Val = None) -> Val:
    """By a size or by factors."""
    sizes = None if output_size is None else elements(t, output_size)
    return nearest(t, x, sizes, scales, "asymmetric")


def nearest(t: Tape, x: Val, sizes: list[Val] | None, scales: Val, how: str) -> Val:
    """One Resize where ONNX picks the pixels that MindSpore picks, else a Gather for each axis."""
    lengths = t.shape(x)[2:]
    attributes = {
        "mode": "nearest",
        "coordinate_transformation_mode": how,
        "nearest_mode": _ROUNDING[how],
    }
    known = sizes or scaled(t, x, scales)
    if sizes is None and unchanged(t, x, scales):
        return t.op("Identity", [x])
    if not all(isinstance(n, int) for n in (*lengths, *known)):
        if t.dtype(x).name in NEAREST_KERNELS:
            return resized(t, x, sizes, scales, **attributes)
        return _gathered(t, x, _places_at_run_time(t, x, sizes, scales, **attributes))
    factors = [None] * len(known) if sizes else scales
    each = list(zip(lengths, known, factors, strict=True))
    wanted = [mindspore_places(int(n or 0), m, s, how) for n, m, s in each]
    onnx = [_onnx_places(int(n or 0), m, s, how) for n, m, s in each]
    same = all(np.array_equal(a, b) for a, b in zip(wanted, onnx, strict=True))
    if same and t.dtype(x).name in NEAREST_KERNELS:
        return resized(t, x, sizes, scales, **attributes)
    return _gathered(t, x, wanted)


def _gathered(t: Tape, x: Val, places: Sequence[Val]) -> Val:
    for axis, at in enumerate(places, 2):
        x = t.op("Gather", [x, at], axis=axis)
    return x


def _places_at_run_time(
    t: Tape, x: Val, sizes: list[Val] | None, scales: Val, **attributes: Val
) -> list[Val]:
    """What a Resize of the numbers 0, 1, 2, ... picks; for types that Resize does not know."""
    places = []
    for i in range(t.rank(x) - 2):
        length = t.op("Squeeze", [t.op("Shape", [x], start=2 + i, end=3 + i)])
        line = t.op("Range", [np.asarray(0), length, np.asarray(1)])
        line = t.op("Unsqueeze", [t.cast(line, F32), np.asarray([0, 1])])
        one = resized(
            t, line, sizes and sizes[i : i + 1], scales and scales[i : i + 1], **attributes
        )
        places.append(t.cast(t.op("Squeeze", [one, np.asarray([0, 1])]), np.dtype(np.int64)))
    return places


def mindspore_places(length: int, size: int, factor: float | None, how: str) -> np.ndarray:
    """The pixel each output pixel takes, in the order of operations of MindSpore's kernels."""
    at = np.arange(bounded(size, "pixels of one axis", MAX_TABLE), dtype=np.float32)
    step = np.float32(1 / factor) if factor else np.float32(length) / np.float32(size)
    if how == "align_corners":
        if size > 1:
            step = np.float32(length - 1) / np.float32(size - 1)
        at = at * step + np.float32(0.5)
    else:
        at = (at + np.float32(0.5 if how == "half_pixel" else 0)) * step
    return np.minimum(np.floor(at), length - 1).astype(np.int64)


def _onnx_places(length: int, size: int, factor: float | None, how: str) -> np.ndarray:
    """The same as ONNX Runtime computes it; the tests compare the two."""
    at, half = np.arange(size, dtype=np.float32), np.float32(0.5)
    scale = np.float32(factor) if factor else np.float32(size) / np.float32(length)
    if how == "align_corners":
        at = at * np.float32(length - 1) / np.float32(max(size - 1, 1)) + half
    elif how == "half_pixel":
        at = (at + half) / scale - half + half
    else:
        at = at / scale
    return np.clip(np.floor(at), 0, length - 1).astype(np.int64)


# --- by a matrix for each axis --------------------------------------------------------------------


_SCRATCH = 64  # elements that making the weights of one new pixel takes, at most


def _weighed(t: Tape, x: Val, sizes: Sequence[int], weights: Callable[[int, int], Val]) -> Val:
    """rows @ x @ columns, with one matrix [length, size] made for each of the last two axes."""
    tables = []
    for length, size in zip(t.shape(x)[-2:], sizes, strict=True):
        assert length is not None
        bounded(max(length, _SCRATCH) * size, "weights of a resize", MAX_TABLE)
        tables.append(weights(length, size))
    rows, columns = tables
    x = t.cast(x, F32)
    return t.op("MatMul", [t.op("MatMul", [rows.T, x]), columns])


@op("ResizeBicubic")
def resize_bicubic(
    t: Tape, x: Val, size: Val, *, align_corners: Val = False, half_pixel_centers: Val = False
) -> Val:
    """Half-pixel centres leave out what lies beyond the edge; the other forms repeat the edge."""
    sizes, lengths = elements(t, size), t.shape(x)[2:]
    dtype = t.result_dtype(x)
    if all(isinstance(n, int) for n in (*sizes, *lengths)):
        table = _weighed(
            t, x, sizes, lambda n, m: _cubic(n, m, bool(align_corners), bool(half_pixel_centers))
        )
        return t.cast(table, dtype)
    if not t.trust_dims:  # the file fixed its sizes: better a session for each than other weights
        raise UnsupportedOpError("ResizeBicubic needs a fixed size of the image")
    how = {"cubic_coeff_a": -0.75, "exclude_outside": 0}
    if half_pixel_centers:
        how = {"cubic_coeff_a": -0.5, "exclude_outside": 1}
    return smooth(t, x, size, "cubic", coordinates(align_corners, half_pixel_centers), **how)


_STEPS = 1024  # MindSpore looks weights up in a table; computing them would differ by 2e-3


def _cubic(length: int, size: int, align: bool, half_pixel: bool) -> np.ndarray:
    """The weight of each of `length` pixels in each of `size`."""
    step = np.float32(length) / np.float32(size)
    if align and size > 1:
        step = np.float32(length - 1) / np.float32(size - 1)
    at = np.arange(size, dtype=np.float32)
    at = (at + np.float32(0.5)) * step - np.float32(0.5) if half_pixel else at * step
    first = np.floor(at).astype(np.int64)
    offset = np.rint((at - first.astype(np.float32)) * np.float32(_STEPS)).astype(np.int64)
    a = -0.5 if half_pixel else -0.75
    near, far = _cubic_table(a)
    taps = np.stack([far[offset], near[offset], near[_STEPS - offset], far[_STEPS - offset]])
    places = first + np.arange(-1, 3)[:, None]
    inside = np.clip(places, 0, length - 1)
    if half_pixel:
        taps = np.where(places == inside, taps, 0)
        taps = taps / taps.sum(0)
    weights = np.zeros((length, size), np.float32)
    np.add.at(weights, (inside, np.arange(size)), taps.astype(np.float32))
    return weights


def _cubic_table(a: float) -> tuple[np.ndarray, np.ndarray]:
    """Keys' kernel at distance x and x + 1, for x from 0 to 1."""
    x = np.arange(_STEPS + 1) / _STEPS
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    x = x + 1
    return near, ((a * x - 5 * a) * x + 8 * a) * x - 4 * a


@op("ResizeArea")
def resize_area(t: Tape, x: Val, size: Val, *, align_corners: Val = False) -> Val:
    """The mean over the area of each new pixel; x is [N, H, W, C], the result float32."""
    sizes = ints(size, "size")
    if None in t.shape(x)[1:3]:
        raise UnsupportedOpError("ResizeArea needs a fixed size of the image")
    x = t.op("Transpose", [x], perm=[0, 3, 1, 2])
    y = _weighed(t, x, sizes, lambda n, m: _area(n, m, bool(align_corners)))
    return t.op("Transpose", [y], perm=[0, 2, 3, 1])


def _area(length: int, size: int, align: bool) -> np.ndarray:
    """How much of each of `length` pixels lies in each of `size`; past the edge, the last one."""
    step = (length - 1) / (size - 1) if align and size > 1 else length / size
    starts = np.arange(size) * step
    ends = starts + step
    weights = np.zeros((length, size))
    for j in range(int(np.ceil(ends.max(initial=0) - 1e-9))):
        part = np.clip(np.minimum(ends, j + 1) - np.maximum(starts, j), 0, None)
        weights[min(j, length - 1)] += part
    return (weights / step).astype(np.float32)


# --- the rest -------------------------------------------------------------------------------------


@op("UpsampleBicubic2D")
def upsample_bicubic(
    t: Tape, x: Val, output_size: Val = None, scales: Val = None, align_corners: Val = False
) -> Val:
    """By a size or by factors; the edge is repeated."""
    how = coordinates(align_corners, True)
    return smooth(t, x, output_size, "cubic", how, scales, cubic_coeff_a=-0.75)


@op("ResizeV2")
def resize_v2(
    t: Tape,
    x: Val,
    roi: Val,
    scales: Val,
    sizes: Val,
    *,
    coordinate_transformation_mode: str = "half_pixel",
    mode: str = "nearest",
    cubic_coeff_a: float = -0.75,
) -> Val:
    """To `sizes`, which hold all four dims; roi, scales and the mode of 'nearest' do not count."""
    how, wanted = coordinate_transformation_mode, elements(t, sizes)[2:]
    if mode == "nearest":
        return nearest(t, x, wanted, None, "asymmetric")
    more = {"cubic_coeff_a": cubic_coeff_a} if mode == "cubic" else {}
    return smooth(t, x, wanted, mode, how, **more)
