"""Weight quantisation: stores weights as int8, in a quarter of the space.

A weight keeps its name. Where it enters the graph it is restored by plain nodes, Cast and Mul,
which every engine can run. ONNX Runtime does so once, while it compiles the model, and computes in
float32 as before. OpenVINO knows these two for a compressed weight, and computes products with it.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx_ir as ir

from mindspore_lite.conversion.int8 import Int8, QuantisedPlace, place_of, quantised, why_not
from mindspore_lite.conversion.quant_report import Change, Outcome
from mindspore_lite.conversion.quant_settings import QuantSettings


def quantise_weights(model: ir.Model, settings: QuantSettings) -> Outcome:
    """Exchange the weights of convolutions, products and tables of a model, in place."""
    places: dict[
        ir.Value, QuantisedPlace
    ] = {}  # of several readers, the first one says what a channel is
    for node in model.graph.all_nodes():
        if (place := place_of(node)) is not None:
            places.setdefault(place.value, place)
    left: Counter[str] = Counter()
    changes = []
    for place in places.values():
        if reason := _too_small(place, settings) or why_not(place, settings.skip):
            left[reason] += 1
            continue
        axis = place.axis if settings.per_channel else None
        stored = quantised(place.array, axis, settings.bias_correction)
        changes.append(Change.of_weight(place, stored))
        restore(place.value, stored)
    return Outcome(model, tuple(changes), dict(left))


def _too_small(place: QuantisedPlace, settings: QuantSettings) -> str:
    if int(np.prod(place.shape)) <= settings.min_weight_size:
        return "no more numbers than min_quant_weight_size"
    if place.shape[place.axis] <= settings.min_weight_channels:
        return "no more channels than min_quant_weight_channel"
    return ""


def restore(value: ir.Value, stored: Int8) -> None:
    """Store the whole numbers under the weight's name; readers get the restored weight."""
    graph = value.graph
    assert graph is not None
    name = f"{value.name}:scale"
    scale = ir.Value(name=name, const_value=ir.Tensor(stored.scale, name=name))
    graph.initializers.add(scale)
    nodes = [ir.node("Cast", [value], {"to": ir.DataType.FLOAT})]
    nodes.append(ir.node("Mul", [nodes[0].outputs[0], scale]))
    for node in nodes:
        (output,) = node.outputs
        output.name = node.name = f"{value.name}:{node.op_type.lower()}"
        output.shape, output.type = value.shape, ir.TensorType(ir.DataType.FLOAT)
    value.replace_all_uses_with(nodes[-1].outputs[0])
    nodes[0].replace_input_with(0, value)  # it was a use too
    graph.insert_before(graph[0], nodes)
    value.const_value = ir.Tensor(stored.numbers, name=value.name)
    value.type = ir.TensorType(ir.DataType.INT8)
