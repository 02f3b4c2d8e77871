"""Quantises a weight to integers from -127 to 127 with scales."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

_MOST = 127  # symmetric: 0 stays 0, and -128 is not used


@dataclass(frozen=True)
class Int8:
    """A weight as numbers * scale + offset; scale and offset broadcast against the numbers."""

    numbers: np.ndarray
    scale: np.ndarray
    offset: np.ndarray | None = None

    def restored(self) -> np.ndarray:
        """The weight as the model will see it."""
        real: np.ndarray = self.numbers.astype(np.float32)
        real *= self.scale
        if self.offset is not None:
            real += self.offset
        return real


def quantised(weight: np.ndarray, axis: int | None, corrected: bool = False) -> Int8:
    """The nearest whole numbers, with a scale for each channel of an axis; None: one for all.

    `corrected` then chooses the scale, and adds an offset, so that the sum of squared errors of a
    channel is least: errors of its weights cancel out instead of shifting its result.
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
    return Int8(numbers, *_nearest_line(weight, scaled, scale, others))


def _nearest_line(
    weight: np.ndarray, numbers: np.ndarray, scale: np.ndarray, others: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Slope and offset of the line through (numbers, weight) in each channel."""

    def mean(of: np.ndarray) -> np.ndarray:
        found: np.ndarray = of.mean(axis=others, keepdims=True, dtype=np.float64)
        return found

    mean_weight, mean_number = mean(weight), mean(numbers)
    spread = mean(numbers * numbers) - mean_number**2
    together = mean(numbers * weight) - mean_number * mean_weight
    slope = np.where(spread > 0, together / np.where(spread > 0, spread, 1), scale)
    return slope.astype(np.float32), (mean_weight - slope * mean_number).astype(np.float32)


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
