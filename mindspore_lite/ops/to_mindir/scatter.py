"""Scattering elements into tensors, as MindSpore primitives."""

from __future__ import annotations

from typing import Any

import numpy as np

from mindspore_lite.ops.to_mindir.index import from_front
from mindspore_lite.ops.to_mindir.table import back
from mindspore_lite.ops.to_mindir.writer import Made, MindirWriter, Operand

_BY_COORDINATES = {
    "none": "TensorScatterUpdate",
    "add": "TensorScatterAdd",
    "mul": "TensorScatterMul",
    "max": "TensorScatterMax",
    "min": "TensorScatterMin",
}
_ALONG_AXIS = {"none": 0, "add": 1}  # MindSpore's Reduce


@back("ScatterND")
def scatter_nd(
    p: MindirWriter, x: Operand, indices: Operand, updates: Operand, *, reduction: str = "none"
) -> Made:
    """By coordinates."""
    p.require(x.dtype != np.bool_ or reduction == "none", "truth values that are reduced")
    return p.call(_BY_COORDINATES[reduction], x, _from_front(x, indices), updates)


def _from_front(x: Operand, indices: Operand) -> Any:
    """Constant coordinates counted from the front, where the sizes are known."""
    held = indices.const
    if held is None or not (held < 0).any():
        return indices
    sizes = np.asarray(x.fixed[: held.shape[-1]])
    return np.where(held < 0, held + sizes, held).astype(held.dtype)


@back("ScatterElements")
def scatter_elements(
    p: MindirWriter,
    x: Operand,
    indices: Operand,
    updates: Operand,
    *,
    axis: int = 0,
    reduction: str = "none",
) -> Made:
    """One element of an axis per place."""
    p.require(reduction in _ALONG_AXIS, f"reduction {reduction}")
    along = axis % x.rank
    places = from_front(x, indices, along)
    return p.call("TensorScatterElements", x, places, updates, along, _ALONG_AXIS[reduction])
