"""Resizing of ONNX as MindSpore primitives.

MindSpore resizes to a size, by the ratio of the sizes; ONNX may resize by a factor that is not that
ratio. Which pixel is the nearest one differs between the two in many ways: where sizes are known,
the pixels are compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mindspore_lite.ops.resize import mindspore_places
from mindspore_lite.ops.to_mindir.spatial import Ints, joined, sizes, with_axis
from mindspore_lite.ops.to_mindir.table import NoEquivalentError, back
from mindspore_lite.ops.to_mindir.writer import Made, MindirWriter, Operand

_CENTRED = ("half_pixel", "pytorch_half_pixel", "half_pixel_symmetric")
# the first is tried first: ONNX Runtime has a kernel of its own for it
_FLAGS = {"asymmetric": (False, False), "align_corners": (True, False), "half_pixel": (False, True)}
_MAX_SIZE = 1 << 20  # of an axis whose pixels are compared one by one; no image is so wide


@dataclass(frozen=True)
class Axis:
    """One image axis: how long it is and becomes, and by which factor ONNX places its pixels."""

    length: int | None
    size: Any  # a number, or a scalar of the run time
    factor: float | None  # None: the ratio of the sizes

    @property
    def is_known(self) -> bool:
        """Whether all is known before the run."""
        return self.length is not None and isinstance(self.size, int)

    @property
    def whole_factor(self) -> bool:
        """Whether it becomes a whole number of times as long, whatever its length is."""
        return self.factor is not None and self.factor == int(self.factor)

    @property
    def by_ratio(self) -> bool:
        """Whether its factor is the ratio of its sizes."""
        if self.factor is None or self.whole_factor:
            return True
        if self.length is None or not isinstance(self.size, int):
            return False
        return bool(np.float32(self.factor) * np.float32(self.length) == self.size)

    @property
    def keeps_centre(self) -> bool:
        """Whether it surely is not made a single pixel of more."""
        if isinstance(self.size, int) and self.size > 1:
            return True
        return self.factor is not None and self.factor >= 1


@back("Resize")
def resize(
    p: MindirWriter,
    x: Operand,
    roi: Operand | None = None,
    scales: Operand | None = None,
    sizes: Operand | None = None,
    *,
    antialias: int = 0,
    axes: Ints = None,
    coordinate_transformation_mode: str = "half_pixel",
    cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0,
    extrapolation_value: float = 0.0,
    keep_aspect_ratio_policy: str = "stretch",
    mode: str = "nearest",
    nearest_mode: str = "round_prefer_floor",
) -> Made:
    """Of the image axes, without smoothing."""
    how = coordinate_transformation_mode
    p.require(not antialias, "antialias")
    p.require(keep_aspect_ratio_policy == "stretch", f"policy {keep_aspect_ratio_policy}")
    p.require(how in _CENTRED or how in _FLAGS, f"coordinates {how}")
    p.require(x.rank in (3, 4, 5), f"{x.rank} dims")
    image = _image(p, x, scales, sizes, axes)
    if mode == "nearest":
        return _nearest(p, x, image, how, nearest_mode)
    p.require(x.dtype.kind == "f", f"mode {mode} of integers")
    if how == "pytorch_half_pixel":  # a lone pixel lies at the edge
        p.require(all(axis.keeps_centre for axis in image), "a single pixel")
    if how == "half_pixel_symmetric":
        p.require(all(axis.by_ratio for axis in image), "a factor that is not the ratio of sizes")
    how = "half_pixel" if how in _CENTRED else how
    if mode == "linear":
        return _linear(p, x, image, how)
    p.require(np.float32(cubic_coeff_a) == np.float32(-0.75), f"cubic_coeff_a {cubic_coeff_a}")
    p.require(not exclude_outside, "exclude_outside")
    p.require(x.rank == 4 and how != "asymmetric", "a cubic form that MindSpore lacks")
    return _upsampled(p, "UpsampleBicubic2D", x, image, how)


# --- sizes ----------------------------------------------------------------------------------------


def _image(
    p: MindirWriter, x: Operand, scales: Operand | None, wanted: Operand | None, axes: Ints
) -> list[Axis]:
    """The axes after batch and channels, which must not change."""
    where = [a % x.rank for a in axes] if axes else list(range(x.rank))
    if wanted is not None and wanted.const is None:
        return _at_run_time(p, x, wanted, where)
    lengths = sizes(p, x)
    found = [Axis(n, lengths[i], 1.0) for i, n in enumerate(x.shape)]
    given = wanted if wanted is not None and wanted.const is not None else scales
    p.require(given is not None, "neither sizes nor scales")
    assert given is not None
    for axis, number in zip(where, given.numbers(), strict=True):
        length = x.shape[axis]
        if given is wanted:
            factor = 1.0 if length == number else None
            found[axis] = Axis(length, int(number), factor)
        else:
            found[axis] = Axis(length, _scaled(p, length, lengths[axis], number), number)
    p.require(all(a.factor == 1 for a in found[:2]), "another size of batch or channels")
    return found[2:]


def _scaled(p: MindirWriter, length: int | None, size: Any, factor: float) -> Any:
    if length is not None:
        return int(np.float32(factor) * np.float32(length))
    if factor == 1:
        return size
    p.require(factor == int(factor), "a broken factor of an open size")
    return p.call("ScalarMul", size, int(factor))


def _at_run_time(p: MindirWriter, x: Operand, wanted: Operand, where: list[int]) -> list[Axis]:
    """Sizes that are computed; those of batch and channels must be known not to change."""
    kept, result = (_dims(value) for value in (x, p.out))
    for axis in {0, 1} & set(where):
        same = kept[axis] is not None and kept[axis] == result[axis]
        p.require(same, "a size of batch or channels of the run time")
    lengths = sizes(p, x)
    numbers = p.call("TensorToTuple", wanted)
    return [
        Axis(x.shape[a], p.item(numbers, where.index(a)) if a in where else lengths[a], None)
        for a in range(2, x.rank)
    ]


def _dims(x: Operand) -> list[int | str | None]:
    """The dims of a value: numbers, or the names of those that are open."""
    dims = x.value.shape if x.value.shape is not None else [None, None]
    return [d if isinstance(d, int | None) else d.value for d in dims]


def _size(p: MindirWriter, image: Sequence[Axis]) -> Any:
    return joined(p, [axis.size for axis in image])


# --- forms ----------------------------------------------------------------------------------------


def _linear(p: MindirWriter, x: Operand, image: list[Axis], how: str) -> Made:
    if not all(axis.by_ratio for axis in image) and how != "align_corners":
        names = {3: "UpsampleLinear1D", 4: "UpsampleBilinear2D", 5: "UpsampleTrilinear3D"}
        p.require(how == "half_pixel", "a factor that is not the ratio of sizes")
        return _upsampled(p, names[x.rank], x, image, how)
    if x.rank == 4:
        return p.call("ResizeBilinearV2", x, _size(p, image), *_FLAGS[how])
    p.require(how != "asymmetric", "asymmetric coordinates of other than images")
    if x.rank == 3:
        return p.call("ResizeLinear1D", x, _size(p, image), 1 if how == "align_corners" else 2)
    return _upsampled(p, "UpsampleTrilinear3D", x, image, how)


def _upsampled(p: MindirWriter, primitive: str, x: Operand, image: list[Axis], how: str) -> Made:
    """By factors where they are not the ratio of sizes, else to a size."""
    align = how == "align_corners"
    if align or all(axis.by_ratio for axis in image):
        return p.call(primitive, x, _size(p, image), None, align)
    if any(axis.factor is None for axis in image):
        raise NoEquivalentError("factors of some axes alone")
    return p.call(primitive, x, None, tuple(axis.factor for axis in image), align)


def _nearest(p: MindirWriter, x: Operand, image: list[Axis], how: str, rounding: str) -> Made:
    if not all(axis.is_known for axis in image):
        whole = all(axis.whole_factor for axis in image)
        plain = (how, rounding) == ("asymmetric", "floor")
        near = how in _CENTRED and rounding.startswith("round") and whole  # no pixel lies between
        p.require((plain and all(a.by_ratio for a in image)) or near, f"{how} and {rounding}")
        return _by_places(p, x, image, "asymmetric")
    p.require(max(axis.size for axis in image) <= _MAX_SIZE, f"more than {_MAX_SIZE} pixels")
    wanted = [_places(axis, how, rounding) for axis in image]
    for flags in _FLAGS if x.rank < 5 else ("asymmetric",):
        found = [mindspore_places(axis.length or 0, axis.size, None, flags) for axis in image]
        if all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True)):
            return _by_places(p, x, image, flags)
    made: Any = x
    for axis, places in enumerate(wanted, 2):
        made = p.call("Gather", made, places, axis, 0)
    return made  # type: ignore[no-any-return]


def _by_places(p: MindirWriter, x: Operand, image: list[Axis], how: str) -> Made:
    size = [axis.size for axis in image]
    if x.rank == 4:
        return p.call("ResizeNearestNeighborV2", x, joined(p, size), *_FLAGS[how])
    if x.rank == 5:
        return p.call("UpsampleNearest3D", x, joined(p, size), None)
    made: Made = with_axis(
        p, lambda x: p.call("ResizeNearestNeighborV2", x, joined(p, [1, *size]), *_FLAGS[how]), x
    )
    return made


def _places(axis: Axis, how: str, rounding: str) -> np.ndarray:
    """The pixel that ONNX Runtime takes for each, in its order of operations in float32."""
    length, size = np.float32(axis.length), axis.size
    at, half = np.arange(size, dtype=np.float32), np.float32(0.5)
    scale = np.float32(axis.factor) if axis.factor else np.float32(size) / length
    if scale == 1:
        places = at
    elif how == "align_corners":
        places = at * (length - 1) / np.float32(size - 1) if size > 1 else at * 0
    elif how == "asymmetric":
        places = at / scale
    elif how == "pytorch_half_pixel" and size == 1:
        places = at * 0
    else:
        places = (at + half) / scale - half
        if how == "half_pixel_symmetric":
            adjusted = np.float32(size) / (scale * length)
            places = places + length / 2 * (1 - adjusted)
    rounded = {
        "round_prefer_floor": np.ceil(places - half),
        "round_prefer_ceil": np.floor(places + half),
        "floor": np.floor(places),
        "ceil": np.ceil(places),
    }.get(rounding)
    if rounded is None:
        raise NoEquivalentError(f"nearest_mode {rounding}")
    return np.clip(rounded, 0, length - 1).astype(np.int64)
