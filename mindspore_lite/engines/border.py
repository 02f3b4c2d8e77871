"""Element types that the runtime does not exchange with NumPy: how they look inside and outside.

A graph says under BORDER which of its inputs and outputs callers see as another type than it has:
{"inputs": {name: type}, "outputs": {name: type}}. complex64 and complex128 are float32 and float64
with a last axis of 2 inside; the numbers lie in memory alike, so both ways are views.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from mindspore_lite import dtypes
from mindspore_lite.engines.base import TensorInfo
from mindspore_lite.graph.source import BORDER

_PARTS = {"complex64": np.float32, "complex128": np.float64}


def read(metadata: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """The types that callers see, by the names of inputs and of outputs."""
    found = json.loads(metadata.get(BORDER, "{}"))
    return found.get("inputs", {}), found.get("outputs", {})


def outer(info: TensorInfo, dtype_name: str | None) -> TensorInfo:
    """What callers are told about a tensor."""
    if dtype_name is None:
        return info
    shape = info.shape[:-1] if dtype_name in _PARTS else info.shape
    return replace(info, dtype=dtypes.BY_NAME[dtype_name].numpy, shape=shape)


def inward(array: np.ndarray, dtype_name: str | None) -> np.ndarray:
    """What the runtime takes, from what a caller gave."""
    if dtype_name in _PARTS:
        pairs: np.ndarray = array.reshape(*array.shape, 1).view(_PARTS[dtype_name])
        return pairs
    return array


def outward(array: np.ndarray, dtype_name: str | None) -> np.ndarray:
    """What a caller gets, from what the runtime made."""
    if dtype_name in _PARTS:
        return array.view(dtype_name).reshape(array.shape[:-1])
    return array
