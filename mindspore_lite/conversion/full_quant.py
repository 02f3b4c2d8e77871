"""Full quantisation: makes an int8 model, with scales from calibration data.

Convolutions and products with constant weights compute in eight bits: activations are asymmetric
with ranges from calibration, weights symmetric with a scale for each channel. ONNX Runtime's
quantiser puts QuantizeLinear and DequantizeLinear around them, and its compiler makes kernels of
whole numbers of that. Activations are uint8, not int8 as with MindSpore Lite, which is the same but
for a zero point 128 higher: on x86 ONNX Runtime makes them uint8 anyway, and 1.31 fails at it where
a Slice stands in between.
It works in memory here: only the weights that it quantises are handed to it, whatever else the
model holds stays where it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

import numpy as np
import onnx_ir as ir

from mindspore_lite.conversion.int8 import Int8, QuantisedPlace, place_of, quantised, why_not
from mindspore_lite.conversion.quant_report import Change, Outcome, Rounding
from mindspore_lite.conversion.quant_settings import QuantSettings
from mindspore_lite.conversion.ranges import Range, observe, watching
from mindspore_lite.engines.onnxruntime.engine import quantiser
from mindspore_lite.errors import EngineError
from mindspore_lite.passes.element_types import Types, element_types

COMPUTED = ("Conv", "Gemm", "MatMul")
# these pass int8 on; the first two vanish, because the range of their result does their work
CARRIED = ("Relu", "Clip", "MaxPool", "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten")
_INFERRED = "onnx.infer"  # metadata by which the quantiser knows that values have types
_LARGE_BYTES = 1024


def quantise_fully(
    model: ir.Model,
    settings: QuantSettings,
    samples: Iterable[list[np.ndarray]],
    step: Callable[[str], None],
) -> Outcome:
    """Quantise a model of opset 21 or later, which is changed by it, and return the result."""
    if (opset := model.opset_imports.get("", 0)) < 21:
        raise ValueError(f"full quantisation is for opset 21 and later, the model has {opset}")
    types = element_types(model)
    for value, kind in types.items():
        value.type = value.type or ir.TensorType(kind)
    _name_nodes(model.graph)
    places, left = _places(model, types, settings)
    if not places:
        return Outcome(model, (), left)
    nodes = list(_reached(model.graph, places, settings.skip))
    step("calibrating")
    probe, shifts = model, dict[str, QuantisedPlace]()
    if settings.bias_correction:
        probe, shifts = _probe(model, places, settings.per_channel)
    names = dict.fromkeys(name for node in nodes for name in _activations(node, types))
    seen = observe(probe, list(names), list(shifts), samples, settings.method)
    arrays = {}
    if settings.debug_folder is not None:
        arrays = watching(model, list(names))(next(iter(samples)))
    step("quantising")
    for name, place in shifts.items():
        _correct_bias(place, seen.means[name])
    result = _with_int8(model, [str(node.name) for node in nodes], places, seen.ranges, settings)
    changes = (*_weights(result, places), *_activations_of(result, nodes, arrays))
    return Outcome(result, changes, left, _roundings(result, names))


def _name_nodes(graph: ir.Graph) -> None:
    """The quantiser knows nodes by their names."""
    taken: set[str] = set()
    for node in graph:
        name = node.name or f"{node.op_type}:{node.outputs[0].name}"
        while name in taken:
            name += "'"
        taken.add(name)
        node.name = name


def _places(
    model: ir.Model, types: Types, settings: QuantSettings
) -> tuple[list[QuantisedPlace], dict[str, int]]:
    found: list[QuantisedPlace] = []
    left: Counter[str] = Counter()
    for node in model.graph.all_nodes():
        place = place_of(node) if node.op_type in COMPUTED else None
        if place is None:
            continue
        if reason := why_not(place, settings.skip) or _unfit(place, model.graph, types):
            left[reason] += 1
        else:
            found.append(place)
    return found, dict(left)


def _unfit(place: QuantisedPlace, graph: ir.Graph, types: Types) -> str:
    node = place.node
    data = node.inputs[0]
    if node.graph is not graph:
        return "inside of a branch or a loop"
    if data is None or types.get(data) != ir.DataType.FLOAT or data.is_initializer():
        return "multiplied by something that is not a float32 activation"
    if node.op_type != "Conv" and len(place.shape) != 2:
        return "a stack of matrices"
    # ONNX Runtime 1.31 takes the scales of Gemm's weight for those of its rows, whatever they say
    others = (place_of(reader) for reader, _ in place.value.uses())
    if any(other is None or other.axis != place.axis for other in others):
        return "read in another way, too"
    # there is no int8 kernel for these, and the quantiser gets a beta wrong
    if any(node.attributes.get_float(name, 1.0) != 1 for name in ("alpha", "beta")):
        return "scaled by alpha or beta"
    bias = node.inputs[2] if len(node.inputs) > 2 else None
    if bias is not None and (bias.const_value is None or not bias.is_initializer()):
        return "its bias is computed"
    if bias is not None and _dims(bias) != (place.shape[place.axis],):
        return "its bias is not one number for each channel"
    return ""


def _dims(value: ir.Value) -> tuple[int, ...]:
    assert value.const_value is not None
    return tuple(value.const_value.shape.numpy())


def _reached(
    graph: ir.Graph, places: list[QuantisedPlace], skip: frozenset[str]
) -> Iterator[ir.Node]:
    """Nodes that compute in int8, and those that pass on what comes out of them."""
    computed = {place.node for place in places}
    whole: set[ir.Value] = set()
    for node in graph:
        if node in computed or (_is_carried(node, skip) and node.inputs[0] in whole):
            whole.add(node.outputs[0])
            yield node


def _is_carried(node: ir.Node, skip: frozenset[str]) -> bool:
    if node.op_type not in CARRIED or node.domain or node.name in skip:
        return False
    if node.op_type == "MaxPool" and len(node.outputs) > 1:
        return False
    if node.op_type != "Clip":
        return True
    # a range always has 0 in it: bounds that exclude 0 would be lost with the node
    bounds = [
        ir.convenience.get_const_tensor(v) if v is not None else None for v in node.inputs[1:]
    ]
    for given, bound, sign in zip(node.inputs[1:], bounds, (1, -1), strict=False):
        if given is not None and (bound is None or float(bound.numpy()) * sign > 0):
            return False
    return True


def _activations(node: ir.Node, types: Types) -> Iterator[str]:
    for value in (node.inputs[0], node.outputs[0]):
        if value is None or value.is_initializer():
            continue
        if types.get(value) == ir.DataType.FLOAT:
            yield str(value.name)


def _probe(
    model: ir.Model, places: list[QuantisedPlace], per_channel: bool
) -> tuple[ir.Model, dict[str, QuantisedPlace]]:
    """A copy that also computes what rounded weights add to the mean result of each channel.

    Products of MatMul have no bias that could be corrected by that.
    """
    probe, shifts = model.clone(), {}
    nodes = {node.name: node for node in probe.graph}
    for place in places:
        node = nodes[place.node.name]
        if node.op_type == "MatMul":
            continue
        name = f"{node.outputs[0].name}:shift"
        rounded = quantised(place.array, place.axis if per_channel else None).restored()
        others = [0, *range(2, len(place.shape))]  # all axes but that of the channels
        wrong, axes = (
            _constant(probe.graph, f"{name}:{word}", array)
            for word, array in (("error", rounded - place.array), ("axes", np.array(others)))
        )
        twin = ir.node(node.op_type, [node.inputs[0], wrong], dict(node.attributes), name=name)
        mean = ir.node("ReduceMean", [twin.outputs[0], axes], {"keepdims": 0}, name=f"{name}:mean")
        twin.outputs[0].name, mean.outputs[0].name = f"{name}:all", name
        mean.outputs[0].type = ir.TensorType(ir.DataType.FLOAT)
        probe.graph.insert_after(node, [twin, mean])
        shifts[name] = place
    return probe, shifts


def _correct_bias(place: QuantisedPlace, shift: np.ndarray) -> None:
    node = place.node
    bias = node.inputs[2] if len(node.inputs) > 2 else None
    before = bias.const_value.numpy() if bias is not None and bias.const_value is not None else 0
    assert node.graph is not None
    array = np.asarray(before - shift, np.float32)
    corrected = _constant(node.graph, f"{node.outputs[0].name}:bias", array)
    node.resize_inputs(3)
    node.replace_input_with(2, corrected)


def _constant(graph: ir.Graph, name: str, array: np.ndarray) -> ir.Value:
    value = ir.Value(name=name, const_value=ir.Tensor(array, name=name))
    graph.initializers.add(value)
    return value


def _with_int8(
    model: ir.Model,
    nodes: list[str],
    places: list[QuantisedPlace],
    ranges: Mapping[str, Range],
    settings: QuantSettings,
) -> ir.Model:
    """The model as the quantiser of ONNX Runtime writes it."""
    tools = quantiser()
    tensors = {name: value.const_value for name, value in model.graph.initializers.items()}
    _leave_out_others(model.graph, {id(v) for p in places for v in p.node.inputs})
    proto = ir.serde.serialize_model(model)
    proto.metadata_props.add(key=_INFERRED, value="onnxruntime.quant")
    data = {name: tuple(np.asarray(v, np.float32) for v in ends) for name, ends in ranges.items()}
    try:
        worker = tools.QDQQuantizer(
            proto,
            settings.per_channel,
            False,  # all eight bits of weights
            tools.QuantType.QInt8,
            tools.QuantType.QUInt8,
            tools.TensorsData(tools.CalibrationMethod.MinMax, data),
            nodes,
            [],
            [*COMPUTED, *CARRIED],
            {"ActivationSymmetric": False, "WeightSymmetric": True},
        )
        result = ir.serde.deserialize_model(worker.quantize_model())
    except Exception as exc:
        raise EngineError(f"ONNX Runtime could not quantise the model: {exc}") from exc
    result.graph.sort()  # new nodes were put last
    for name, value in result.graph.initializers.items():
        if name in tensors:
            value.const_value = tensors[name]
    del result.metadata_props[_INFERRED]
    result.producer_name, result.producer_version = model.producer_name, model.producer_version
    return result


def _leave_out_others(graph: ir.Graph, kept: set[int]) -> None:
    """What the quantiser does not look at is not copied: tensors that claim to lie elsewhere."""
    for name, value in graph.initializers.items():
        tensor = value.const_value
        if tensor is None:
            continue
        if id(value) in kept:  # its bytes, not its place in a file, are wanted
            value.const_value = ir.Tensor(tensor.numpy(), name=name)
        elif tensor.nbytes >= _LARGE_BYTES:
            value.const_value = ir.ExternalTensor(
                "left-out",
                0,
                tensor.nbytes,
                tensor.dtype,
                shape=ir.Shape(tensor.shape.numpy()),
                name=name,
            )


def _weights(result: ir.Model, places: list[QuantisedPlace]) -> Iterator[Change]:
    """Weights by the names that the quantiser gives."""
    for place in {place.name: place for place in places}.values():
        numbers, scale = (
            result.graph.initializers[f"{place.name}_{word}"].const_value.numpy()  # type: ignore[union-attr]
            for word in ("quantized", "scale")
        )
        across = [1] * numbers.ndim
        across[place.axis] = scale.size
        yield Change.of_weight(place, Int8(numbers, scale.reshape(across)))


def _roundings(result: ir.Model, names: Iterable[str]) -> dict[str, Rounding]:
    """How the result rounds its values; those that a Relu took the place of are not among them."""
    found = {}
    for name in names:
        scale, zero = (
            result.graph.initializers.get(f"{name}_{word}") for word in ("scale", "zero_point")
        )
        if scale is None or zero is None:
            continue
        assert scale.const_value is not None and zero.const_value is not None
        found[name] = Rounding(float(scale.const_value.numpy()), int(zero.const_value.numpy()))
    return found


def _activations_of(
    result: ir.Model, nodes: list[ir.Node], arrays: Mapping[str, np.ndarray]
) -> Iterator[Change]:
    """What was watched of the first sample, and what is left of it in eight bits."""
    for node in nodes:
        for side, value in (("Input", node.inputs[0]), ("Output", node.outputs[0])):
            name = "" if value is None else str(value.name)
            scale, zero = (
                result.graph.initializers.get(f"{name}_{word}") for word in ("scale", "zero_point")
            )
            if name not in arrays or scale is None or zero is None:
                continue  # a Relu took its place
            assert scale.const_value is not None and zero.const_value is not None
            step, at = float(scale.const_value.numpy()), int(zero.const_value.numpy())
            array = arrays[name]
            rounded = np.clip(np.rint(array / np.float32(step)) + at, 0, 255)
            yield Change(
                str(node.name),
                node.op_type,
                name,
                "Activation",
                side,
                (step,),
                (at,),
                partial(np.asarray, array),
                partial(np.asarray, (rounded - at).astype(np.float32) * np.float32(step)),
            )
