"""What shapes a model's outputs have for given input shapes, by ONNX's shape inference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx

from mindspore_lite.errors import ShapeError


def output_shapes(skeleton: bytes, inputs: Mapping[str, Sequence[int]]) -> list[tuple[int, ...]]:
    """Infer the outputs' shapes, -1 where they depend on data; ShapeError where shapes do not fit.

    `skeleton` is the model without its large weights.
    """
    model = onnx.load_model_from_string(skeleton)
    for value in model.graph.input:
        if value.name in inputs:
            _set_dims(value, inputs[value.name])
    del model.graph.value_info[:]
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    try:
        inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    except onnx.shape_inference.InferenceError as exc:
        raise _refusal(inputs, str(exc)) from exc
    if problem := _wrong_channels(inferred.graph):
        raise _refusal(inputs, problem)
    return [_dims(value) for value in inferred.graph.output]


def _refusal(inputs: Mapping[str, Sequence[int]], why: str) -> ShapeError:
    shapes = {name: list(dims) for name, dims in inputs.items()}
    return ShapeError(
        f"the model cannot take the shapes {shapes}: {why}; "
        "sizes that its layers fixed at export cannot change"
    )


def _wrong_channels(graph: onnx.GraphProto) -> str:
    """The first Conv whose input has other channels than its weights: ONNX does not look at it."""
    known = {v.name: _dims(v) for v in (*graph.input, *graph.value_info)}
    weights = {w.name: tuple(w.dims) for w in graph.initializer}
    for node in graph.node:
        if node.op_type != "Conv" or not known.get(node.input[0]) or node.input[1] not in weights:
            continue
        group = next((a.i for a in node.attribute if a.name == "group"), 1)
        have, want = known[node.input[0]][1], weights[node.input[1]][1] * group
        if have not in (-1, want):
            return f"{node.name!r} gets {have} channels and has weights for {want}"
    return ""


def _set_dims(value: onnx.ValueInfoProto, dims: Sequence[int]) -> None:
    shape = value.type.tensor_type.shape
    del shape.dim[:]
    for dim in dims:
        shape.dim.add().dim_value = dim


def _dims(value: onnx.ValueInfoProto) -> tuple[int, ...]:
    return tuple(
        d.dim_value if d.HasField("dim_value") else -1 for d in value.type.tensor_type.shape.dim
    )
