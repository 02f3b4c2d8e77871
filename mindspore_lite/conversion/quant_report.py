"""Records of what a quantisation changed, what it left, and how far outputs moved."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from mindspore_lite.conversion.int8 import Int8, QuantisedPlace


@dataclass(frozen=True)
class Change:
    """A tensor that was quantised; its numbers before and after are made when asked for."""

    node_name: str
    node_type: str
    tensor_name: str
    kind: str  # Weight or Activation
    side: str  # Input or Output: of the node
    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    before: Callable[[], np.ndarray] = field(repr=False)
    after: Callable[[], np.ndarray] = field(repr=False)

    @classmethod
    def of_weight(cls, place: QuantisedPlace, stored: Int8) -> Change:
        """A weight with symmetric scales."""
        scales = tuple(stored.scale.reshape(-1).tolist())
        zeros = (0,) * len(scales)
        tensor = place.value.const_value  # the graph will have another one
        assert tensor is not None
        return cls(
            str(place.node.name),
            place.node.op_type,
            place.name,
            "Weight",
            "Input",
            scales,
            zeros,
            tensor.numpy,
            stored.restored,
        )


@dataclass(frozen=True)
class Rounding:
    """How a value becomes eight bits: multiples of a step around a zero of 0 to 255."""

    step: float
    zero: int


@dataclass(frozen=True)
class LayerLoss:
    """How far the output of a layer moved, as a share of it; other layers are exact."""

    name: str
    operator: str
    loss: float


@dataclass(frozen=True)
class TopOne:
    """How often the largest number of a row stayed the largest, where rows look like classes."""

    output: str
    agreed: int
    rows: int


@dataclass(frozen=True)
class Outcome:
    """A quantised model, and what was done to it."""

    model: ir.Model
    changes: tuple[Change, ...]
    left: Mapping[str, int]  # why weights stayed as they were: how many
    roundings: Mapping[str, Rounding] = field(default_factory=dict)  # of values, by name


@dataclass(frozen=True)
class QuantReport:
    """What is reported to the user. Differences are those of the worst output."""

    kind: str  # WEIGHT_QUANT, DYNAMIC_QUANT or FULL_QUANT
    quantised: int  # weights
    skipped: Mapping[str, int]  # reason: how many weights
    bytes_before: int  # of all weights
    bytes_after: int
    largest_difference: float  # relative to the largest number of the output
    cosine: float  # between original and quantised output
    compared_on: str  # what was put in; or why nothing could be compared, and numbers are NaN
    top_one: TopOne | None = None  # None: no output looks like classes
    layers: tuple[LayerLoss, ...] = ()  # the largest loss first
