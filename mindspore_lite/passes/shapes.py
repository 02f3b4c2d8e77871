"""Infers a model's output shapes for given input shapes."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import onnx

from mindspore_lite.errors import ShapeError
from mindspore_lite.passes import long_lists

# how onnx says that a node's inputs do not fit
_PROBLEM = re.compile(r"\(op_type:(\w+)(?:, node name: ([^)]*))?\): (?:\[\w+\] )?(.*)")
# operators whose results have sizes that a constant says, and which may be one of the file's own
_SIZED_BY_CONSTANTS = ("Reshape", "Expand", "Tile", "Resize", "Split", "ConstantOfShape", "Range")


def output_shapes(skeleton: bytes, inputs: Mapping[str, Sequence[int]]) -> list[tuple[int, ...]]:
    """Infer the outputs' shapes, -1 where they depend on data; ShapeError where shapes do not fit.

    `skeleton` is the model without its large weights.
    """
    model = onnx.load_model_from_string(skeleton)
    for value in model.graph.input:
        if value.name in inputs:
            _set_dims(value, inputs[value.name])
    del model.graph.value_info[:]
    ranks = [len(value.type.tensor_type.shape.dim) for value in model.graph.output]
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    round_scales_up(model.graph)
    try:
        found = long_lists.inferred(model, strict=True).graph
    except onnx.shape_inference.InferenceError as exc:
        raise _refusal(inputs, _readable(str(exc))) from exc
    if problem := _wrong_channels(found) or _wrong_reshape(found):
        raise _refusal(inputs, problem)
    return [
        # what comes out of a loop may change its shape in it: ONNX does not even give the rank
        _dims(value) if value.type.tensor_type.HasField("shape") else (-1,) * rank
        for value, rank in zip(found.output, ranks, strict=True)
    ]


def check_weights(skeleton: bytes, inputs: Mapping[str, Sequence[int]]) -> None:
    """Refuse shapes that the model's own weights rule out, before anything is compiled for them.

    Only what no other translation of the model can change counts: the channels and features that
    convolutions and products have weights for. Sizes that follow from constants, such as the
    target of a Reshape, are passed over; they may change with the inputs.

    Raises:
        ShapeError: The model cannot take these shapes, whatever it is compiled for.
    """
    model = onnx.load_model_from_string(skeleton)
    graph = model.graph
    for value in graph.input:
        if value.name in inputs:
            _set_dims(value, inputs[value.name])
    del graph.value_info[:]
    for value in graph.output:
        value.type.tensor_type.ClearField("shape")
    kept = [node for node in graph.node if node.op_type not in _SIZED_BY_CONSTANTS]
    del graph.node[:]
    graph.node.extend(kept)  # what others would have made is of unknown shape now
    try:
        found = onnx.shape_inference.infer_shapes(model).graph
    except (onnx.shape_inference.InferenceError, RuntimeError):  # of types: not about sizes
        return
    if problem := _wrong_channels(found) or _wrong_features(found):
        raise _refusal(inputs, problem)


def _refusal(inputs: Mapping[str, Sequence[int]], why: str) -> ShapeError:
    shapes = {name: list(dims) for name, dims in inputs.items()}
    return ShapeError(
        f"the model cannot take the shapes {shapes}: {why}; "
        "sizes that its layers fixed at export cannot change",
        input_name=next(iter(shapes)) if len(shapes) == 1 else "",
    )


def _readable(text: str) -> str:
    """The first of the problems that onnx lists; the others follow from it."""
    found = _PROBLEM.search(text)
    if found is None:
        return " ".join(text.split())
    name = f" {found[2]!r}" if found[2] else ""
    return f"{found[1]}{name}: {found[3]}"


def _wrong_channels(graph: onnx.GraphProto) -> str:
    """The first Conv whose input has other channels than its weights: ONNX does not look at it."""
    known = _known(graph)
    weights = {w.name: tuple(w.dims) for w in graph.initializer}
    for node in graph.node:
        if node.op_type != "Conv" or not known.get(node.input[0]) or node.input[1] not in weights:
            continue
        group = next((a.i for a in node.attribute if a.name == "group"), 1)
        have, want = known[node.input[0]][1], weights[node.input[1]][1] * group
        if have not in (-1, want):
            return f"{node.name!r} gets {have} channels and has weights for {want}"
    return ""


def _wrong_features(graph: onnx.GraphProto) -> str:
    """The first product with a weight of another number of rows than its input has columns."""
    known = _known(graph)
    weights = {w.name: tuple(w.dims) for w in graph.initializer}
    for node in graph.node:
        if node.op_type not in ("MatMul", "Gemm"):
            continue
        have, want = known.get(node.input[0], ()), weights.get(node.input[1], ())
        if len(have) < 1 or len(want) < 2:
            continue
        turned = {a.name: a.i for a in node.attribute if a.name in ("transA", "transB")}
        columns = have[0 if turned.get("transA") else -1]
        rows = want[-1 if turned.get("transB") else -2]
        if columns not in (-1, rows):
            return f"{node.name!r} gets {columns} features and has weights for {rows}"
    return ""


def _wrong_reshape(graph: onnx.GraphProto) -> str:
    """The first Reshape to a fixed shape of another size: ONNX does not count the elements."""
    known = _known(graph)
    shapes = {w.name: w for w in graph.initializer if w.data_type == onnx.TensorProto.INT64}
    for node in graph.node:
        if node.op_type != "Reshape" or node.input[1] not in shapes:
            continue
        have = known.get(node.input[0], (-1,))
        want = onnx.numpy_helper.to_array(shapes[node.input[1]]).tolist()
        all_known = min(have, default=0) >= 0 and min(want, default=1) > 0
        if all_known and math.prod(have) != math.prod(want):
            return f"{node.name!r} cannot make {want} of {list(have)}"
    return ""


def _known(graph: onnx.GraphProto) -> dict[str, tuple[int, ...]]:
    """The dims of values; one without even a rank is no number, though it has no dims."""
    values = (*graph.input, *graph.value_info)
    return {v.name: _dims(v) for v in values if v.type.tensor_type.HasField("shape")}


def round_scales_up(graph: onnx.GraphProto) -> None:
    """Let ONNX find the sizes that engines find: they multiply in float32, where 20 * 0.7 is 14."""
    graphs = list(_graphs(graph))
    nodes = [node for each in graphs for node in each.node]
    used = {n.input[2] for n in nodes if n.op_type == "Resize" and len(n.input) == 3}
    tensors = [w for each in graphs for w in each.initializer if w.name in used]
    constants = [n for n in nodes if n.op_type == "Constant" and n.output[0] in used]
    tensors += [a.t for n in constants for a in n.attribute if a.name == "value"]
    for tensor in tensors:
        if tensor.data_type == onnx.TensorProto.FLOAT:
            scales = onnx.numpy_helper.to_array(tensor)
            up = np.where(scales == 1, scales, np.nextafter(scales, np.float32(np.inf)))
            tensor.CopyFrom(onnx.numpy_helper.from_array(up, tensor.name))


def _graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                if inner.node:
                    yield from _graphs(inner)


def _set_dims(value: onnx.ValueInfoProto, dims: Sequence[int]) -> None:
    shape = value.type.tensor_type.shape
    del shape.dim[:]
    for dim in dims:
        shape.dim.add().dim_value = dim


def _dims(value: onnx.ValueInfoProto) -> tuple[int, ...]:
    return tuple(
        d.dim_value if d.HasField("dim_value") else -1 for d in value.type.tensor_type.shape.dim
    )
