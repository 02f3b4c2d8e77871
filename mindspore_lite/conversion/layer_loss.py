"""Measures how much each quantised layer loses by itself.

A copy of the model computes every layer twice: as it was, and with the rounded weight, and rounded
inputs and outputs where the result rounds them. Both get the exact values of the layers before, so
that a layer is not blamed for what others lost. A bias that was corrected for the rounding counts
as it was before, so the loss is rather too large than too small.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import onnx_ir as ir

from mindspore_lite.conversion.int8 import QuantisedPlace, place_of
from mindspore_lite.conversion.quant_report import Change, LayerLoss, Rounding
from mindspore_lite.conversion.ranges import watching

_LAYERS = ("Conv", "ConvTranspose", "Gemm", "MatMul")
_SAMPLES = 8  # guess: a mean over all numbers of a layer needs few


@dataclass
class _Sums:
    """Over all samples: squared errors, and squares of what should be."""

    error: float = 0.0
    signal: float = 0.0

    @property
    def loss(self) -> float:
        return math.sqrt(self.error / self.signal) if self.signal else 0.0


def layer_losses(
    model: ir.Model,
    changes: Sequence[Change],
    roundings: Mapping[str, Rounding],
    samples: Iterable[list[np.ndarray]],
) -> tuple[LayerLoss, ...]:
    """The loss of each layer, the largest first.

    Args:
        model: The model before; it is changed.
        changes: What was done to weights.
        roundings: How values are rounded that lie in eight bits, by name.
        samples: Inputs.
    """
    restored = {change.tensor_name: change.after for change in changes if change.kind == "Weight"}
    found: dict[str, tuple[QuantisedPlace, _Sums]] = {}
    for node in list(model.graph):
        place = place_of(node) if node.op_type in _LAYERS else None
        if place is None or place.name not in restored:
            continue
        key = f"layer-loss-{len(found)}"
        _add_twin(model.graph, place, restored[place.name](), roundings, key)
        found[key] = (place, _Sums())
    if not found:
        return ()
    names = [f"{key}:{word}" for key in found for word in ("error", "signal")]
    run = watching(model, names)
    for arrays in map(run, islice(samples, _SAMPLES)):
        for key, (_, sums) in found.items():
            sums.error += float(arrays[f"{key}:error"])
            sums.signal += float(arrays[f"{key}:signal"])
    losses = [
        LayerLoss(str(place.node.name or place.name), place.node.op_type, sums.loss)
        for place, sums in found.values()
    ]
    return tuple(sorted(losses, key=lambda one: -one.loss))


def _add_twin(
    graph: ir.Graph,
    place: QuantisedPlace,
    weight: np.ndarray,
    roundings: Mapping[str, Rounding],
    key: str,
) -> None:
    """Nodes behind a layer that compute it once more, and add up how far both lie apart."""
    node, made = place.node, list[ir.Node]()

    def add(operator: str, inputs: Sequence[ir.Value | None], word: str) -> ir.Value:
        new = ir.node(operator, inputs, name=f"{key}:{word}")
        new.outputs[0].name = f"{key}:{word}"
        new.outputs[0].type = ir.TensorType(ir.DataType.FLOAT)
        made.append(new)
        return new.outputs[0]

    def constant(array: np.ndarray, word: str) -> ir.Value:
        value = ir.Value(name=f"{key}:{word}", const_value=ir.Tensor(array, name=f"{key}:{word}"))
        graph.initializers.add(value)
        return value

    def rounded(value: ir.Value, name: str, word: str) -> ir.Value:
        """As numbers of eight bits tell it; ONNX Runtime cannot undo Round as it does casts."""
        how = roundings.get(name)
        if how is None:
            return value
        step, low, high = (
            constant(np.array(number, np.float32), f"{word}-{part}")
            for part, number in zip(
                ("step", "low", "high"), (how.step, -how.zero, 255 - how.zero), strict=True
            )
        )
        whole = add("Round", [add("Div", [value, step], f"{word}-divided")], f"{word}-whole")
        return add("Mul", [add("Clip", [whole, low, high], f"{word}-cut"), step], f"{word}-again")

    inputs = list(node.inputs)
    data = 1 - place.input
    if (given := inputs[data]) is not None:
        inputs[data] = rounded(given, str(given.name), "input")
    inputs[place.input] = constant(weight.astype(np.float32), "weight")
    twin = ir.node(node.op_type, inputs, dict(node.attributes), name=f"{key}:twin")
    twin.outputs[0].name = f"{key}:twin"
    made.append(twin)
    output = node.outputs[0]
    apart = add("Sub", [rounded(twin.outputs[0], str(output.name), "output"), output], "apart")
    for word, value in (("error", apart), ("signal", output)):
        squares = ir.node("ReduceSumSquare", [value], {"keepdims": 0}, name=f"{key}:{word}")
        squares.outputs[0].name = f"{key}:{word}"
        squares.outputs[0].type = ir.TensorType(ir.DataType.FLOAT)
        made.append(squares)
    graph.insert_after(node, made)
