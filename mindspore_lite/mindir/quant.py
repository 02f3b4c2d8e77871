"""Quantised weights: their parameters in the file, and their real values.

Linear: real = scale * (stored - zero_point), one scale for all or one per channel, corrected by
`* var_corr + mean_corr`. Clustered: stored numbers, counted from the lowest, choose a centroid.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mindspore_lite.errors import ModelFileError

if TYPE_CHECKING:
    from mindspore_lite.mindir.records import Tensor

_MAX_VAR_CORR = 10  # beyond, MindSpore Lite takes the number for garbage and uses 1


@dataclass(frozen=True)
class Quant:
    """How stored numbers become real ones; several scales belong to the channels of one axis."""

    scales: tuple[float, ...] = ()
    zero_points: tuple[int, ...] = ()
    bits: int = 8
    channel_axis: int | None = None  # None: one scale for all numbers
    var_corrs: tuple[float, ...] = (1.0,)  # corrections are for channels
    mean_corrs: tuple[float, ...] = (0.0,)
    centroids: tuple[float, ...] = ()  # not empty: clustered, and none of the above counts


def quant_of(algorithm: str, attributes: Mapping[str, Any], shape: Sequence[int]) -> Quant:
    """The record of a weight of this shape, from the attributes its file has for it."""
    bits = (_numbers(attributes, "num_bit_list") or (8,))[0]
    if not 1 <= bits <= 16:
        raise ModelFileError(f"it is quantised to {bits} bits, wanted 1 to 16")
    if algorithm == "cluster_quant":
        centroids = _numbers(attributes, "cluster_centroid_list")
        if not centroids:
            raise ModelFileError("it is quantised by clusters, but the file holds no centroids")
        return Quant(centroids=centroids, bits=int(bits))
    if algorithm != "linear_quant":
        raise ModelFileError(
            f"it is quantised by {algorithm!r}, wanted linear_quant or cluster_quant"
        )
    scales = _numbers(attributes, "scale_list")
    if not scales:
        raise ModelFileError("it is quantised, but the file holds no scale for it")
    count = len(scales)
    zeros = _one_each(attributes, "zero_point_list", count, 0)
    if not all(isinstance(zero, int) for zero in zeros):
        raise ModelFileError("its quantisation has a zero point that is no integer")
    if count == 1:
        return Quant(scales, zeros, int(bits))
    return Quant(
        scales,
        zeros,
        int(bits),
        channel_axis=_axis(attributes.get("channel_axis"), count, shape),
        var_corrs=tuple(
            v if 0 <= v <= _MAX_VAR_CORR else 1.0
            for v in _one_each(attributes, "var_corr_list", count, 1.0)
        ),
        mean_corrs=_one_each(attributes, "mean_corr_list", count, 0.0),
    )


def dequantised(tensor: Tensor) -> np.ndarray:
    """The real numbers of a quantised weight as float32."""
    quant, stored = tensor.quant, tensor.numpy()
    if quant is None:
        raise ValueError(f"tensor {tensor.name!r} is not quantised")
    if quant.centroids:
        lowest = np.iinfo(stored.dtype).min
        places = stored.astype(np.int32) - lowest
        if places.max(initial=0) >= len(quant.centroids):
            raise ModelFileError(
                f"tensor {tensor.name!r} chooses centroid {places.max()}, the file holds "
                f"{len(quant.centroids)}"
            )
        return np.take(np.asarray(quant.centroids, np.float32), places)
    scale, zero, var, mean = (
        _along(numbers, quant.channel_axis, stored.ndim)
        for numbers in (quant.scales, quant.zero_points, quant.var_corrs, quant.mean_corrs)
    )
    real: np.ndarray = stored.astype(np.float32)
    with np.errstate(all="ignore"):  # numbers of a damaged file
        real -= zero
        real *= scale * var
        real += mean
    return real


def unpacked_int4(data: memoryview, shape: tuple[int, ...]) -> tuple[np.ndarray, tuple[int, ...]]:
    """Two signed 4-bit numbers per byte, the lower half first, as int8 with its shape.

    The dims of a file count bytes along the last axis, or numbers; its size says which.
    """
    count = math.prod(shape)
    packed = np.frombuffer(data, np.uint8)
    both = np.stack([packed & 15, packed >> 4], axis=-1).reshape(-1)
    numbers = (both ^ 8).astype(np.int8) - np.int8(8)
    if shape and count == len(data):
        return numbers, (*shape[:-1], 2 * shape[-1])
    return numbers[:count], shape


def _numbers(attributes: Mapping[str, Any], name: str) -> tuple[Any, ...]:
    found = attributes.get(name, ())
    if not isinstance(found, tuple | list) or not all(isinstance(v, int | float) for v in found):
        raise ModelFileError(f"its quantisation has a {name!r} that is no list of numbers")
    return tuple(found)


def _one_each(attributes: Mapping[str, Any], name: str, count: int, usual: Any) -> tuple[Any, ...]:
    found = _numbers(attributes, name) or (usual,) * count
    if len(found) != count:
        raise ModelFileError(f"its quantisation has {count} scales, but {len(found)} in {name!r}")
    return found


def _axis(given: Any, count: int, shape: Sequence[int]) -> int:
    """The axis of several scales: as the file says, else the first one that has as many channels.

    Kernels know theirs; of the weights of convolutions and full connections it is the first.
    """
    if isinstance(given, list | tuple) and given:
        given = given[0]
    fitting = [axis for axis, dim in enumerate(shape) if dim == count]
    if isinstance(given, int) and -len(shape) <= given < len(shape):
        fitting = [axis for axis in fitting if axis == given % len(shape)]
    if not fitting:
        raise ModelFileError(
            f"its quantisation has {count} scales, but its shape {list(shape)} has no axis of "
            "as many channels"
        )
    return fitting[0]


def _along(numbers: Sequence[float], axis: int | None, rank: int) -> np.ndarray:
    with np.errstate(all="ignore"):
        array = np.asarray(numbers, np.float64).astype(np.float32)
    if axis is None:
        return array.reshape(())
    return array.reshape([-1 if at == axis else 1 for at in range(rank)])
