"""Quantises a weight to integers from -127 to 127 with scales."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

_MOST = 127  # symmetric: 0 stays 0, and -128 is not used
_NEAR_MIDDLE = 0.25  # of a step from the nearest number; to round others up adds too much error


@dataclass(frozen=True)
class Int8:
    """A weight as numbers * scale; the scale broadcasts against the numbers."""

    numbers: np.ndarray
    scale: np.ndarray

    def restored(self) -> np.ndarray:
        """The weight as the model will see it."""
        real: np.ndarray = self.numbers.astype(np.float32)
        real *= self.scale
        return real


def quantised(weight: np.ndarray, axis: int | None, corrected: bool = False) -> Int8:
    """The nearest whole numbers, with a scale for each channel of an axis; None: one for all.

    `corrected` then chooses the scale for which the sum of squared errors of a channel is least,
    and rounds some of the numbers that lie near the middle to the other side: errors of a channel
    cancel out instead of shifting its result. An offset for each channel would do the same, but
    engines do not take what is added to for a weight in eight bits.
    """
    others = tuple(a for a in range(weight.ndim) if axis is None or a != axis % weight.ndim)
    most = np.abs(weight).max(axis=others, keepdims=True, initial=0)
    scale = np.where(most > 0, most / np.float32(_MOST), np.float32(1)).astype(np.float32)
    scaled = weight / scale
    np.rint(scaled, out=scaled)
    np.clip(scaled, -_MOST, _MOST, out=scaled)
    numbers = scaled.astype(np.int8)
    if not corrected:
        return Int8(numbers, scale)
    scale = _best_scale(weight, scaled, scale, others)
    return Int8(_balanced(weight, numbers, scale, axis), scale)


def _best_scale(
    weight: np.ndarray, numbers: np.ndarray, scale: np.ndarray, others: tuple[int, ...]
) -> np.ndarray:
    """The slope of the line from 0 through (numbers, weight) in each channel."""
    squares = (numbers * numbers).sum(axis=others, keepdims=True, dtype=np.float64)
    products = (numbers * weight).sum(axis=others, keepdims=True, dtype=np.float64)
    best: np.ndarray = np.where(squares > 0, products / np.where(squares > 0, squares, 1), scale)
    return best.astype(np.float32)


def _balanced(
    weight: np.ndarray, numbers: np.ndarray, scale: np.ndarray, axis: int | None
) -> np.ndarray:
    """The numbers, some of them one higher or lower, so that channels keep the sums they had."""
    rows = numbers if axis is None else np.moveaxis(numbers, axis, 0)
    rest = (weight / scale - numbers).astype(np.float32)  # what rounding took away, in steps
    rest = rest if axis is None else np.moveaxis(rest, axis, 0)
    count = 1 if axis is None else len(rows)
    flat, left = rows.reshape(count, -1).copy(), rest.reshape(count, -1)
    for row, own, lost in zip(flat, left, left.sum(axis=1, dtype=np.float64), strict=True):
        sign = -1 if lost < 0 else 1
        inside = np.flatnonzero((own * sign >= _NEAR_MIDDLE) & (np.abs(row) < _MOST))
        steps = min(round(abs(lost)), inside.size)
        if steps:
            nearest = np.argpartition(-sign * own[inside], steps - 1)[:steps]
            row[inside[nearest]] += sign
    moved = flat.reshape(rows.shape)
    return np.ascontiguousarray(moved if axis is None else np.moveaxis(moved, 0, axis))


# operator: which input is the weight, and the axis of its output channels
_WEIGHTS = {"Conv": (1, 0), "ConvTranspose": (1, 1), "MatMul": (1, -1), "Gather": (0, 0)}


@dataclass(frozen=True)
class QuantisedPlace:
    """A constant float32 weight where a node reads it."""

    node: ir.Node
    input: int
    axis: int  # of its channels

    @property
    def value(self) -> ir.Value:
        """The initializer."""
        value = self.node.inputs[self.input]
        assert value is not None
        return value

    @property
    def array(self) -> np.ndarray:
        """Its numbers, mapped where they lie in a file."""
        assert self.value.const_value is not None
        return self.value.const_value.numpy()

    @property
    def shape(self) -> tuple[int, ...]:
        """Its dims."""
        assert self.value.const_value is not None
        return tuple(self.value.const_value.shape.numpy())

    @property
    def name(self) -> str:
        """What it is called."""
        return str(self.value.name)


def place_of(node: ir.Node) -> QuantisedPlace | None:
    """Where a node has its weight; None for nodes that have none of at least two dims."""
    if node.domain not in ("", "ai.onnx"):
        return None
    if node.op_type == "Gemm":
        at, axis = 1, 0 if node.attributes.get_int("transB", 0) else 1
    elif node.op_type in _WEIGHTS:
        at, axis = _WEIGHTS[node.op_type]
    else:
        return None
    value = node.inputs[at] if len(node.inputs) > at else None
    if value is None or not value.is_initializer() or value.is_graph_input():
        return None
    tensor = value.const_value
    if tensor is None or tensor.dtype != ir.DataType.FLOAT or len(tensor.shape) < 2:
        return None
    return QuantisedPlace(node, at, axis % len(tensor.shape))


def why_not(place: QuantisedPlace, skip: frozenset[str]) -> str:
    """Why a weight cannot become whole numbers, or should not; "" if it can."""
    if any(node.name in skip for node, _ in place.value.uses()):
        return "named in skip_quant_node"
    if place.value.is_graph_output():
        return "is an output of the model"
    return "" if np.isfinite(place.array).all() else "holds numbers that are not finite"
