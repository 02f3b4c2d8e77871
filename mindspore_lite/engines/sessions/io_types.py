"""Converts between the types that callers use and those that a graph carries inside.

The graph carries bfloat16 as float32, and complex numbers as real ones with a last axis of 2, which
is how they lie in memory anyway. A model names such inputs and outputs in its metadata, under KEY.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from mindspore_lite.core import dtypes
from mindspore_lite.core.json_text import read_json
from mindspore_lite.core.tensor_info import TensorInfo
from mindspore_lite.errors import EngineError
from mindspore_lite.graph.bfloat16 import KEY as KEY

# the type that callers see -> the one that the graph has
CARRIERS = {"bfloat16": "float32", "complex64": "float32", "complex128": "float64"}


def inward(array: np.ndarray, dtype_name: str) -> np.ndarray:
    """What a caller gives, as the graph wants it; complex numbers are not copied."""
    if dtype_name == "bfloat16":
        return array.astype(np.float32)
    return array.reshape(*array.shape, 1).view(CARRIERS[dtype_name])


def outward(array: np.ndarray, dtype_name: str) -> np.ndarray:
    """What the graph gives, as a caller wants it."""
    dtype = dtypes.BY_NAME[dtype_name].numpy
    if dtype_name == "bfloat16":
        return array.astype(dtype)
    return np.ascontiguousarray(array).view(dtype)[..., 0]


def inner_shape(info: TensorInfo, dims: tuple[int, ...]) -> tuple[int, ...]:
    """The dims that the graph has where a caller sees these."""
    return (*dims, 2) if info.dtype.kind == "c" else dims


def outer_shape(info: TensorInfo, dims: tuple[int, ...]) -> tuple[int, ...]:
    """The dims that a caller sees where the graph has these."""
    return dims[:-1] if info.dtype.kind == "c" else dims


def declared(metadata: Mapping[str, str], side: str) -> dict[str, str]:
    """The types of the inputs, or outputs, that differ, as the model's metadata says."""
    text = metadata.get(KEY)
    if text is None:
        return {}
    try:
        found = read_json(text)[side]
        if isinstance(found, dict) and all(kind in CARRIERS for kind in found.values()):
            return found
    except (ValueError, KeyError, TypeError):
        pass
    raise EngineError(f"the model's metadata {KEY!r} is {text[:200]!r}, which makes no sense")


def seen(info: TensorInfo, border: Mapping[str, str]) -> TensorInfo:
    """An input or output of the graph as callers see it."""
    name = border.get(info.name)
    if name is None:
        return info
    dtype = dtypes.BY_NAME[name].numpy
    pair = dtype.kind == "c"
    if info.dtype.name != CARRIERS[name] or (pair and info.shape[-1:] != (2,)):
        raise EngineError(
            f"{info.name!r} is {info.dtype}{list(info.shape)} in the graph, which cannot carry the "
            f"{name} that the model's metadata {KEY!r} promises"
        )
    return replace(info, dtype=dtype, shape=info.shape[:-1] if pair else info.shape)
