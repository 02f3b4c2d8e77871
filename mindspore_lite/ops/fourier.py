"""Fourier and cosine transforms.

A transform of a known length is a product with a constant matrix: up to a thousand points that is
faster than ONNX Runtime's DFT, and for lengths that are no power of two much more precise. The
matrices come from NumPy's own transforms, applied to the unit vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.ops.arguments import axis_of, ints, number, swapped
from mindspore_lite.ops.complex import complex_op, to_border, unstacked
from mindspore_lite.ops.table import Val, op
from mindspore_lite.ops.tape import MAX_TABLE, PART_OF, Complex, Tape, bounded, dtype_argument

_NORMS = {None: "backward", 0: "backward", 1: "forward", 2: "ortho"}
_FAST = 1024  # from here on a power of two is faster by ONNX's DFT (measured on one x86 core)
Transform = Callable[[np.ndarray], np.ndarray]


def _norm(value: Val) -> str:
    found = _NORMS.get(value, value)
    if found not in _NORMS.values():
        raise UnsupportedOpError(f"{value!r} is no way to scale a Fourier transform")
    return str(found)


def _part_type(t: Tape, x: Val) -> np.dtype:
    """What the numbers are computed in: float64 stays, everything else is float32."""
    dtype = t.dtype(x)
    is_wide = dtype.itemsize == (16 if dtype in PART_OF else 8) and dtype.kind in "fc"
    return np.dtype(np.float64 if is_wide else np.float32)


def along_axis(t: Tape, x: Val, axis: int, have: int, transform: Transform) -> Val:
    """A real-linear function of the vectors along an axis, as one product with a matrix."""
    dtype = _part_type(t, x)
    unit = np.eye(have)
    rows = [transform(unit), transform(1j * unit)] if isinstance(x, Complex) else [transform(unit)]
    columns = [np.concatenate([row.real, row.imag], 1) if row.dtype.kind == "c" else row
               for row in rows]  # fmt: skip
    matrix = np.concatenate(columns).astype(dtype)
    rank = t.rank(x)
    parts = [t.cast(p, dtype) for p in ([x.real, x.imag] if isinstance(x, Complex) else [x])]
    joined = t.op("Concat", parts, axis=axis) if len(parts) == 2 else parts[0]
    perm = swapped(rank, axis, rank - 1)
    if axis != rank - 1:
        joined = t.op("Transpose", [joined], perm=perm)
    y = t.op("MatMul", [joined, matrix])
    if axis != rank - 1:
        y = t.op("Transpose", [y], perm=perm)
    if rows[0].dtype.kind != "c":
        return y
    return Complex(*t.op("Split", [y], outputs=2, axis=axis, num_outputs=2))


def transformed(t: Tape, x: Val, kind: str, n: int | None, axis: int, norm: str) -> Val:
    """One axis through fft, ifft, rfft, irfft, hfft or ihfft."""
    if kind in ("rfft", "ihfft") and isinstance(x, Complex):
        raise UnsupportedOpError(f"{kind} of complex numbers")
    have = t.shape(x)[axis]
    if kind in ("irfft", "hfft") and not isinstance(x, Complex):
        x = t.cast(x, np.dtype(np.complex64 if _part_type(t, x).itemsize == 4 else np.complex128))
    length = n or have or 0
    factors = 4 * (have or 0) * length  # two parts in, two parts out
    quick = have is None or factors > MAX_TABLE or (length >= _FAST and _is_power_of_two(length))
    if quick and kind in ("fft", "ifft", "rfft"):
        return _by_dft(t, x, kind, n, axis, norm)
    if have is None:
        raise UnsupportedOpError(f"{t.primitive} needs a fixed size of axis {axis}")
    bounded(max(factors, have * have), "factors of a Fourier transform", MAX_TABLE)
    function = getattr(np.fft, kind)
    return along_axis(t, x, axis, have, lambda unit: function(unit, n, norm=norm))


def _is_power_of_two(n: int) -> bool:
    return n > 0 and n & (n - 1) == 0


def _by_dft(t: Tape, x: Val, kind: str, n: int | None, axis: int, norm: str) -> Val:
    dtype = _part_type(t, x)
    known = n or t.shape(x)[axis]
    # at other lengths ONNX Runtime 1.31 loses three digits
    inner = dtype if _is_power_of_two(known or 0) else np.dtype(np.float64)
    if isinstance(x, Complex):
        wide = to_border(t, Complex(t.cast(x.real, inner), t.cast(x.imag, inner)))
    else:
        wide = t.op("Unsqueeze", [t.cast(x, inner), np.asarray([-1])])
    y = t.op(
        "DFT",
        [wide, None if n is None else np.asarray(n), np.asarray(axis)],
        inverse=int(kind == "ifft"),
        onesided=int(kind == "rfft"),
    )
    if norm != "backward":  # ONNX divides the inverse by n, and nothing else
        count = np.asarray(known, inner) if known else t.cast(_size(t, x, axis), inner)
        factor = count if norm == "forward" else t.op("Sqrt", [count])
        y = t.op("Mul" if kind == "ifft" else "Div", [y, factor])
    return unstacked(t, t.cast(y, dtype))


def _size(t: Tape, x: Val, axis: int) -> Val:
    shape = t.op("Shape", [x.real if isinstance(x, Complex) else x])
    return t.op("Gather", [shape, np.asarray(axis)], axis=0)


def _known(value: Val, what: str) -> int | None:
    return None if value is None else int(number(value, what))


@complex_op("FFT", "IFFT", "IRFFT", "HFFT")
@op("FFT", "IFFT", "RFFT", "IRFFT", "HFFT", "IHFFT")
def along_one_axis(t: Tape, x: Val, n: Val = None, dim: Val = -1, norm: Val = None) -> Val:
    """n cuts the axis, or fills it up with zeros."""
    kind = t.primitive.lower()
    return transformed(t, x, kind, _known(n, "n"), axis_of(t, x, dim), _norm(norm))


def _axes(t: Tape, x: Val, s: Val, dim: Val) -> list[tuple[int | None, int]]:
    """(length, axis) of each axis of a transform; left out, all axes are meant."""
    lengths = None if s is None else ints(s, "s")
    rank = t.rank(x)
    if dim is not None:
        axes = [axis_of(t, x, d) for d in ints(dim, "dim")]
    else:
        axes = list(range(0 if lengths is None else rank - len(lengths), rank))
    if lengths is not None and len(lengths) != len(axes):
        raise UnsupportedOpError(f"{len(lengths)} lengths for {len(axes)} axes")
    return list(zip(lengths or [None] * len(axes), axes, strict=True))


# what the axes before the last go through, and whether the last one is the first to go
_OTHERS = {
    "fft": ("fft", True), "ifft": ("ifft", True), "rfft": ("fft", True), "irfft": ("ifft", False),
    "hfft": ("fft", False), "ihfft": ("ifft", True),
}  # fmt: skip


def along_axes(
    t: Tape, x: Val, kind: str, axes: Sequence[tuple[int | None, int]], norm: str
) -> Val:
    """Several axes; only the last one is cut in half by the transforms of real numbers."""
    others, last_first = _OTHERS[kind]
    steps = [(kind, *axes[-1]), *[(others, *a) for a in reversed(axes[:-1])]]
    for step, n, axis in steps if last_first else reversed(steps):
        x = transformed(t, x, step, n, axis, norm)
    return x


def along_two_axes(t: Tape, x: Val, s: Val = None, dim: Val = (-2, -1), norm: Val = None) -> Val:
    """Two axes, the last two unless said otherwise."""
    return along_axes(t, x, t.primitive[:-1].lower(), _axes(t, x, s, dim), _norm(norm))


def along_many_axes(t: Tape, x: Val, s: Val = None, dim: Val = None, norm: Val = None) -> Val:
    """All axes, the last ones for which a length is given, or those that are named."""
    return along_axes(t, x, t.primitive[:-1].lower(), _axes(t, x, s, dim), _norm(norm))


for name in ("FFT", "IFFT", "RFFT", "IRFFT", "HFFT", "IHFFT"):
    op(f"{name}2")(complex_op(f"{name}2")(along_two_axes))
    op(f"{name}N")(complex_op(f"{name}N")(along_many_axes))


@op("FFTWithSize")
def fft_with_size(
    t: Tape,
    x: Val,
    *,
    signal_ndim: int,
    inverse: bool,
    real: bool,
    norm: Val = "backward",
    onesided: bool = True,
    signal_sizes: Val = (),
) -> Val:
    """One op for all: over the last signal_ndim axes."""
    rank = t.rank(x)
    axes = list(range(rank - bounded(signal_ndim, "axes", rank), rank))
    sizes: Sequence[int | None] = ints(signal_sizes, "signal_sizes") or [None] * len(axes)
    kind = ("i" if inverse else "") + ("rfft" if real and onesided else "fft")
    y = along_axes(t, x, kind, list(zip(sizes, axes, strict=True)), _norm(norm))
    return y.real if real and inverse and isinstance(y, Complex) else y


complex_op("FFTWithSize")(fft_with_size)


def _cosine(t: Tape, x: Val, n: int | None, axis: int, inverse: bool) -> Val:
    """One axis through the orthonormal cosine transform of type 2, or back."""
    have = t.shape(x)[axis]
    if have is None:
        raise UnsupportedOpError(f"{t.primitive} needs a fixed size of axis {axis}")
    count = have if n is None else n
    bounded(max(have, count) ** 2, "factors of a cosine transform", MAX_TABLE)
    steps = np.arange(count)
    matrix = np.cos(np.pi * np.outer(2 * steps + 1, steps) / (2 * count)) * np.sqrt(2 / count)
    matrix[:, 0] /= np.sqrt(2)
    kept = min(have, count)

    def transform(unit: np.ndarray) -> np.ndarray:
        found: np.ndarray = unit[:, :kept] @ (matrix.T if inverse else matrix)[:kept]
        return found

    return along_axis(t, x, axis, have, transform)


def _check_cosine(type: Val, norm: Val) -> None:
    if number(type, "type") != 2 or norm not in (None, 2, "ortho"):
        raise UnsupportedOpError(f"a cosine transform of type {type} scaled as {norm!r}")


@op("DCT", "IDCT")
def cosine_transform(
    t: Tape, x: Val, type: Val = 2, n: Val = None, axis: Val = -1, norm: Val = None
) -> Val:
    """The orthonormal cosine transform of type 2; n cuts the axis or fills it up with zeros."""
    _check_cosine(type, norm)
    return _cosine(t, x, _known(n, "n"), axis_of(t, x, axis), t.primitive == "IDCT")


@op("DCTN", "IDCTN")
def cosine_transforms(
    t: Tape, x: Val, type: Val = 2, s: Val = None, axes: Val = None, norm: Val = None
) -> Val:
    """Several axes, all unless said otherwise."""
    _check_cosine(type, norm)
    for n, axis in _axes(t, x, s, axes):
        x = _cosine(t, x, n, axis, t.primitive == "IDCTN")
    return x


@op("FFTShift", "IFFTShift")
def shifted(t: Tape, x: Val, dim: Val = None) -> Val:
    """The two halves of each axis exchanged; of an odd size the middle goes one way or back."""
    axes = range(t.rank(x)) if dim is None else [axis_of(t, x, d) for d in ints(dim, "dim")]
    odd = np.asarray([1 if t.primitive == "FFTShift" else 0])
    for axis in axes:
        size = t.op("Shape", [x], start=axis, end=axis + 1)
        start, along = t.op("Div", [t.op("Add", [size, odd]), np.asarray([2])]), np.asarray([axis])
        head = t.op("Slice", [x, np.asarray([0]), start, along])
        x = t.op("Concat", [t.op("Slice", [x, start, size, along]), head], axis=axis)
    return x


@op("FFTFreq", "RFFTFreq")
def frequencies(t: Tape, n: Val, d: Val = 1.0, dtype: Val = None) -> Val:
    """The frequencies that the places of a transform stand for."""
    count = bounded(int(number(n, "n")), "frequencies", MAX_TABLE)
    function = np.fft.fftfreq if t.primitive == "FFTFreq" else np.fft.rfftfreq
    kind = np.dtype(np.float32) if dtype is None else dtype_argument(dtype).numpy
    return t.constant(function(count, float(number(d, "d"))).astype(kind))


@op("STFT")
def stft(
    t: Tape,
    x: Val,
    window: Val,
    *,
    n_fft: int,
    hop_length: int,
    win_length: int,
    normalized: bool,
    onesided: bool,
    return_complex: bool,
) -> Val:
    """Windows of a signal, each transformed: a convolution whose kernel is window times matrix."""
    bounded(n_fft * n_fft * 2, "factors of a Fourier transform", MAX_TABLE)
    if hop_length < 1 or not 1 <= win_length <= n_fft:
        raise UnsupportedOpError(f"STFT with hop_length {hop_length} and win_length {win_length}")
    matrix = (np.fft.rfft if onesided else np.fft.fft)(np.eye(n_fft)).T
    if normalized:
        matrix = matrix / np.sqrt(n_fft)
    dtype, count = t.dtype(x), len(matrix)
    left = (n_fft - win_length) // 2  # a shorter window stands in the middle
    pads = np.asarray([left, n_fft - win_length - left])
    window = t.op("Pad", [t.cast(window, dtype), pads])
    kernel = np.concatenate([matrix.real, matrix.imag])[:, None].astype(dtype)
    rows = t.op("Unsqueeze", [x, np.asarray([0, 1] if t.rank(x) == 1 else [1])])
    y = t.op("Conv", [rows, t.op("Mul", [kernel, window])], strides=[hop_length])
    if t.rank(x) == 1:
        y = t.op("Squeeze", [y, np.asarray([0])])
    parts = t.op("Split", [y, np.asarray([count, count])], outputs=2, axis=-2)
    found = Complex(*parts)
    return found if return_complex else to_border(t, found)
