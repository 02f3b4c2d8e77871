"""Resize, axis by axis, by tables of source elements and their weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from torch.nn import functional as F

from mindspore_lite.engines.torch.kernels.quant import quantized
from mindspore_lite.engines.torch.kernels.table import kernel

Numbers = Sequence[float]
# of an axis: its place, elements [taps, new size], their weights if there are several taps
Table: TypeAlias = "tuple[int, torch.Tensor, torch.Tensor | None, torch.Tensor | None]"


@dataclass(frozen=True)
class Axis:
    """How one axis is resized."""

    at: int
    old: int
    new: int
    scale: float
    region: tuple[float, float] | None  # from where to where, of 0 to 1; None is all of it


def tables(
    x: torch.Tensor,
    roi: Numbers | None = None,
    scales: Numbers | None = None,
    sizes: Sequence[int] | None = None,
    **attributes: Any,
) -> list[Table] | None:
    """What Resize looks up, on the host; None where torch needs no table."""
    how = _How(**attributes)
    axes = list(_axes(x, roi, scales, sizes, how))
    return None if _of_torch(x, axes, how) else [_table(axis, x, how) for axis in axes]


@dataclass(frozen=True)
class _How:
    """The attributes of Resize."""

    antialias: int = 0
    axes: Sequence[int] | None = None
    coordinate_transformation_mode: str = "half_pixel"
    cubic_coeff_a: float = -0.75
    exclude_outside: int = 0
    extrapolation_value: float = 0.0
    keep_aspect_ratio_policy: str = "stretch"
    mode: str = "nearest"
    nearest_mode: str = "round_prefer_floor"

    @property
    def crops(self) -> bool:
        return self.coordinate_transformation_mode == "tf_crop_and_resize"


def _axes(
    x: torch.Tensor,
    roi: Numbers | None,
    scales: Numbers | None,
    sizes: Sequence[int] | None,
    how: _How,
) -> Iterator[Axis]:
    """The axes that change."""
    places = [at % x.dim() for at in how.axes or range(x.dim())]
    old = [x.shape[at] for at in places]
    if sizes:
        factors = [new / size if size else 1.0 for new, size in zip(sizes, old, strict=True)]
        if how.keep_aspect_ratio_policy != "stretch":
            choose = min if how.keep_aspect_ratio_policy == "not_larger" else max
            factors = [choose(factors)] * len(old)
            sizes = [int(factors[0] * size + 0.5) for size in old]
    else:
        factors = list(scales or ())
    for nth, at in enumerate(places):
        region = None
        if how.crops and roi:
            region = (roi[nth], roi[nth + len(places)])
        part = 1.0 if region is None else region[1] - region[0]
        new = sizes[nth] if sizes else int(np.float32(old[nth] * part) * np.float32(factors[nth]))
        if new != old[nth] or factors[nth] != 1 or region not in (None, (0, 1)):
            yield Axis(at, old[nth], new, factors[nth], region)


def _coordinates(axis: Axis, mode: str) -> np.ndarray:
    """Where each new element lies among the old ones; in float32, as other runtimes have it."""
    at = np.arange(axis.new, dtype=np.float32)
    scale, last = np.float32(axis.scale), np.float32(axis.old - 1)
    if mode == "asymmetric":
        return at / scale
    if mode == "align_corners":  # by the sizes; onnx's reference takes old * scale for the new one
        return at * last / np.float32(axis.new - 1) if axis.new > 1 else at * 0
    if mode == "tf_crop_and_resize":
        start, end = (np.float32(one) for one in axis.region or (0, 1))
        if axis.new == 1:
            return at + (start + end) * last / 2
        return start * last + at * ((end - start) * last / np.float32(axis.new - 1))
    if mode == "pytorch_half_pixel" and axis.new == 1:
        return at * 0
    found = (at + np.float32(0.5)) / scale
    if mode == "half_pixel_symmetric":
        covered = np.float32(axis.new) / (scale * np.float32(axis.old))
        found = np.float32(axis.old / 2) * (1 - covered) + found
    return found - np.float32(0.5)


_NEAREST: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "floor": np.floor,
    "ceil": np.ceil,
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
}


def _table(axis: Axis, x: torch.Tensor, how: _How) -> Table:
    where = _coordinates(axis, how.coordinate_transformation_mode)
    outside = None
    if how.crops:
        outside = torch.from_numpy((where < 0) | (where > axis.old - 1))
    if how.mode == "nearest":
        near = _NEAREST[how.nearest_mode](where).astype(np.int64).clip(0, axis.old - 1)
        return axis.at, torch.from_numpy(near[None]), None, outside
    first = np.floor(where).astype(np.int64)
    reach = 1 if how.mode == "linear" else 2
    squeeze = min(axis.scale, 1.0) if how.antialias else 1.0  # a filter widened, to see all
    taps = np.arange(1 - int(np.ceil(reach / squeeze)), int(np.ceil(reach / squeeze)) + 1)
    index = first + taps[:, None]
    distance = np.abs(index - where.astype(np.float64)) * squeeze
    weight = _linear(distance) if how.mode == "linear" else _cubic(distance, how.cubic_coeff_a)
    if how.exclude_outside:
        weight = weight * ((index >= 0) & (index < axis.old))
    total = weight.sum(0)
    weight = weight / np.where(total == 0, 1, total)
    dtype = torch.float64 if x.dtype is torch.float64 else torch.float32
    index = index.clip(0, axis.old - 1)
    return axis.at, torch.from_numpy(index), torch.from_numpy(weight).to(dtype), outside


def _linear(distance: np.ndarray) -> np.ndarray:
    return (1 - distance).clip(0)


def _cubic(distance: np.ndarray, a: float) -> np.ndarray:
    """Keys' cubic kernel."""
    near = ((a + 2) * distance - (a + 3)) * distance**2 + 1
    far = a * (((distance - 5) * distance + 8) * distance - 4)
    return np.where(distance <= 1, near, np.where(distance < 2, far, 0))


def _of_torch(x: torch.Tensor, axes: Sequence[Axis], how: _How) -> dict[str, Any] | None:
    """The arguments of torch's own function, where it computes the very same; it wants elements."""
    mode = how.coordinate_transformation_mode
    exact = all(math.isclose(axis.new, axis.old * axis.scale, rel_tol=1e-6) for axis in axes)
    whole = all(axis.new % axis.old == 0 for axis in axes)
    image = x.dim() == 4 and x.is_floating_point() and all(axis.at >= 2 for axis in axes)
    if not (image and exact and x.numel()) or how.antialias or how.exclude_outside:
        return None
    size = list(x.shape[2:])
    for axis in axes:
        size[axis.at - 2] = axis.new
    if how.mode == "nearest":
        halves = mode == "half_pixel" and how.nearest_mode.startswith("round")
        floors = mode == "asymmetric" and how.nearest_mode == "floor"
        return {"size": size, "mode": "nearest"} if whole and (halves or floors) else None
    if mode not in ("half_pixel", "align_corners") or min(size) == 1:
        return None
    if how.mode == "cubic" and how.cubic_coeff_a != -0.75:
        return None
    name = "bilinear" if how.mode == "linear" else "bicubic"
    return {"size": size, "mode": name, "align_corners": mode == "align_corners"}


@kernel("Resize", numbers=("roi", "scales", "sizes"), tables=tables)
def resize(
    x: torch.Tensor,
    roi: Numbers | None = None,
    scales: Numbers | None = None,
    sizes: Sequence[int] | None = None,
    *,
    antialias: int = 0,
    axes: Sequence[int] | None = None,
    coordinate_transformation_mode: str = "half_pixel",
    cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0,
    extrapolation_value: float = 0.0,
    keep_aspect_ratio_policy: str = "stretch",
    mode: str = "nearest",
    nearest_mode: str = "round_prefer_floor",
    tables: list[Table] | None = None,
) -> torch.Tensor:
    """x in another size, its elements taken or mixed from those nearby."""
    how = _How(
        antialias,
        axes,
        coordinate_transformation_mode,
        cubic_coeff_a,
        exclude_outside,
        extrapolation_value,
        keep_aspect_ratio_policy,
        mode,
        nearest_mode,
    )
    changes = list(_axes(x, roi, scales, sizes, how))
    own = _of_torch(x, changes, how)
    if own is not None:
        return F.interpolate(x, **own)
    return _looked_up(x, tables or [_table(axis, x, how) for axis in changes], how)


def _looked_up(x: torch.Tensor, tables: Sequence[Table], how: _How) -> torch.Tensor:
    """x along each axis as its table says."""
    y, barred = x, []
    for at, index, weight, outside in tables:
        index = index.to(x.device)
        along = [-1] + [1] * (x.dim() - 1 - at)
        if weight is None:
            y = y.index_select(at, index[0])
        else:
            taps = zip(weight.to(x.device), index, strict=True)
            y = sum(w.reshape(along) * y.index_select(at, i) for w, i in taps)
        if outside is not None:
            barred.append(outside.to(x.device).reshape(along))
    for places in barred:
        y = torch.where(places, how.extrapolation_value, y)
    if y.is_floating_point() and not x.is_floating_point():
        return quantized(y, None, x.dtype)
    return y.to(x.dtype)
