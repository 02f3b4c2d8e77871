"""Dynamic quantisation: matrix products are computed in int8, with scales found at run time.

Weights become int8 beforehand, with a scale for each column; what they are multiplied by becomes
uint8 while the model runs, with one scale for all of it, so that no calibration is needed:

    MatMul(x, w)  ->  Cast(MatMulInteger(q, w8, zero)) * (scale * w_scale),  q of x

The nodes are those of ONNX Runtime's own dynamic quantiser, which it fuses into one kernel. That
quantiser is not used: it copies the whole model through files several times, whatever its size,
and writes to the root logger. Tables of Gather become int8 too, with a scale for each row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir
import onnx_ir.passes.common as passes

from mindspore_lite.conversion.int8 import Int8, QuantisedPlace, place_of, quantised, why_not
from mindspore_lite.conversion.quant_report import Change, Outcome
from mindspore_lite.conversion.quant_settings import QuantSettings
from mindspore_lite.passes.element_types import Types, element_types

FLOAT = ir.DataType.FLOAT


def quantise_dynamically(model: ir.Model, settings: QuantSettings) -> Outcome:
    """Exchange products with constant weights, and tables, in place."""
    left: Counter[str] = Counter()
    changes: list[Change] = []
    types = element_types(model)
    for graph in list(model.graphs()):
        seen = _Seen()
        for node in list(graph):
            place = place_of(node)
            if place is None or node.op_type not in ("MatMul", "Gemm", "Gather"):
                continue
            if reason := why_not(place, settings.skip) or _unfit(place, types):
                left[reason] += 1
                continue
            stored = quantised(place.array, place.axis if settings.per_channel else None)
            changes.append(Change.of_weight(place, stored))
            _Site(graph, place, stored, str(node.outputs[0].name), seen).exchange()
    passes.RemoveUnusedNodesPass()(model)  # and the weights that nothing reads now
    return Outcome(model, tuple(changes), dict(left))


def _unfit(place: QuantisedPlace, types: Types) -> str:
    node = place.node
    if node.op_type == "Gather":
        return "" if node.attributes.get_int("axis", 0) == 0 else "a table along another axis"
    data = node.inputs[0]
    if data is None or (data.dtype or types.get(data)) != FLOAT:
        return "multiplied by something that is not float32"
    return "" if len(place.shape) == 2 else "a stack of matrices"


@dataclass
class _Seen:
    """What several nodes of a graph read is made once."""

    inputs: dict[ir.Value, Sequence[ir.Value]] = field(default_factory=dict)
    weights: dict[tuple[ir.Value, bool], tuple[ir.Value, ir.Value]] = field(default_factory=dict)


@dataclass(frozen=True)
class _Site:
    """A node that gives way to others, whose names begin with that of its result."""

    graph: ir.Graph
    place: QuantisedPlace
    stored: Int8
    base: str
    seen: _Seen

    def exchange(self) -> None:
        """Compute what the node computes with the stored numbers of its weight."""
        before = self.place.node.outputs[0]
        after = self._looked_up() if self.place.node.op_type == "Gather" else self._product()
        after.type, after.shape = ir.TensorType(FLOAT), before.shape
        before.name = None
        before.replace_all_uses_with(after, replace_graph_outputs=True)
        after.name = self.base
        self.graph.remove(self.place.node, safe=True)

    def _looked_up(self) -> ir.Value:
        numbers, scale = self._weight(turned=False)
        indices = self.place.node.inputs[1]
        rows = self._op("Cast", [self._op("Gather", [numbers, indices], "rows")], "cast", to=FLOAT)
        if self.stored.scale.size > 1:
            scale = self._op("Gather", [scale, indices], "scales")
        return self._op("Mul", [rows, scale], "scaled")

    def _product(self) -> ir.Value:
        node = self.place.node
        asked = node.attributes  # MatMul has none
        left, addend = node.inputs[0], node.inputs[2] if len(node.inputs) > 2 else None
        assert left is not None
        if asked.get_int("transA", 0):
            left = self._op("Transpose", [left], "turned", perm=[1, 0])
        whole, scale, zero = self._quantised(left)
        weight, weight_scale = self._weight(turned=bool(asked.get_int("transB", 0)))
        product = self._op("MatMulInteger", [whole, weight, zero], "product")
        product = self._op("Cast", [product], "cast", to=FLOAT)
        factor = self._op("Mul", [scale, weight_scale], "factor")
        result = self._op("Mul", [product, factor], "scaled")
        result = self._times(result, asked.get_float("alpha", 1.0), "alpha")
        if addend is None:
            return result
        addend = self._times(addend, asked.get_float("beta", 1.0), "beta")
        return self._op("Add", [result, addend], "sum")

    def _quantised(self, value: ir.Value) -> Sequence[ir.Value]:
        """uint8, scale and zero point of an activation."""
        if value not in self.seen.inputs:
            node = ir.node("DynamicQuantizeLinear", [value], num_outputs=3)
            node.name = f"{value.name}:quantised"
            for output, word in zip(node.outputs, ("uint8", "scale", "zero"), strict=True):
                output.name = f"{value.name}:{word}"
            self.graph.insert_before(self.place.node, node)
            self.seen.inputs[value] = node.outputs
        return self.seen.inputs[value]

    def _weight(self, turned: bool) -> tuple[ir.Value, ir.Value]:
        """Numbers and scale as constants; of a product, a row of scales."""
        key = (self.place.value, turned)
        if key not in self.seen.weights:
            numbers, scale = self.stored.numbers, self.stored.scale
            if turned:
                numbers = np.ascontiguousarray(numbers.T)
            if self.place.node.op_type != "Gather" or scale.size == 1:
                scale = scale.reshape(-1)
            name = f"{self.place.name}:turned" if turned else self.place.name
            self.seen.weights[key] = (
                self._constant(f"{name}:int8", numbers),
                self._constant(f"{name}:scale", scale),
            )
        return self.seen.weights[key]

    def _times(self, value: ir.Value, factor: float, word: str) -> ir.Value:
        if factor == 1:
            return value
        constant = self._constant(f"{self.base}:{word}", np.asarray(factor, np.float32))
        return self._op("Mul", [value, constant], f"times_{word}")

    def _constant(self, name: str, array: np.ndarray) -> ir.Value:
        value = ir.Value(name=name, const_value=ir.Tensor(array, name=name))
        self.graph.initializers.add(value)
        return value

    def _op(
        self, op_type: str, inputs: Sequence[ir.Value | None], word: str, **attributes: Any
    ) -> ir.Value:
        node = ir.node(op_type, inputs, attributes, name=f"{self.base}:{word}")
        node.outputs[0].name = node.name
        self.graph.insert_before(self.place.node, node)
        return node.outputs[0]
