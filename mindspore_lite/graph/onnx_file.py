"""Loads ONNX files as untrusted input; only here are the files they name opened and checked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from mindspore_lite.core.budget import DEFAULT, SECTION
from mindspore_lite.core.files import File, open_beneath
from mindspore_lite.errors import ModelFileError
from mindspore_lite.graph.bfloat16 import KEY as BORDER
from mindspore_lite.graph.onnx_scan import locations, split_tensors
from mindspore_lite.mindir.scan import Data

if TYPE_CHECKING:
    import onnx
    import onnx_ir as ir

    from mindspore_lite.graph.source import Shapes

MAX_BYTES = 2**31 - 1  # of one protobuf message


def external_files(data: Data, folder: Path | None) -> dict[str, File]:
    """The data files that a model's weights name, by these names; found without parsing it."""
    if not len(data):
        raise ModelFileError("the file is empty")
    if len(data) > MAX_BYTES:
        raise ModelFileError(
            f"the file has {len(data)} bytes, and no ONNX file can have more than {MAX_BYTES}; "
            "a larger model keeps its weights in files beside it (external data)"
        )
    return {name: _opened(folder, name) for name in sorted(set(locations(data)))}


def _opened(folder: Path | None, location: str) -> File:
    if folder is None:
        raise ModelFileError(
            f"weights lie in the file {location[:200]!r} beside the model; pass the path of the "
            "model file as mindir_path of section [model_file] in config_dict or the "
            "configuration file"
        )
    return open_beneath(folder, location)


def load_onnx(
    data: Data,
    side: Mapping[str, Data],
    input_shapes: Shapes | None = None,
    max_nodes: int = DEFAULT.max_nodes,
) -> ir.Model:
    """The model, none of whose tensors names a file; `input_shapes` replaces those of inputs.

    Args:
        data: The model file; big weights stay views of it, or in it where it is an open file.
        side: What lies in its data files, by the names that it gives them.
        input_shapes: Other shapes for inputs.
        max_nodes: How many there may be, counted before any object is made of one.
    """
    import onnx
    import onnx_ir as ir

    from mindspore_lite.graph.onnx_tensors import check_tensors, put_back

    split = split_tensors(data)
    try:
        proto = onnx.ModelProto.FromString(split.skeleton)
        _check_count(proto, max_nodes)
        outside = check_tensors(proto, split, side)
        model = ir.serde.deserialize_model(proto)
        put_back(model, proto, split, data, outside)
        _keep_shapes(model, proto)
        _check_dims(model)
    except ModelFileError:
        raise
    except Exception as exc:  # the parser and onnx-ir raise many kinds on bad bytes
        raise ModelFileError(str(_first(exc))) from exc
    if not model.graph.outputs:
        raise ModelFileError("there is no graph inside")
    model.metadata_props.pop(BORDER, None)  # a note of ours, which no file may make
    _set_shapes(model.graph, input_shapes or {})
    return model


def _check_count(proto: onnx.ModelProto, max_nodes: int) -> None:
    count = len(proto.graph.node) + sum(len(function.node) for function in proto.functions)
    if count > max_nodes:
        raise ModelFileError(
            f"it has {count} nodes, more than the {max_nodes} that [{SECTION}] max_nodes allows; "
            "if the file can be trusted, set a larger one"
        )


def _keep_shapes(model: ir.Model, proto: onnx.ModelProto) -> None:
    """An input or weight that is an output as well has its shape, though the output says none."""
    import onnx_ir as ir

    for value, info in zip(model.graph.inputs, proto.graph.input, strict=True):
        if value.shape is None:
            value.shape = ir.serde.deserialize_value_info_proto(info, None).shape
    for value in model.graph.initializers.values():
        if value.shape is None and value.const_value is not None:
            value.shape = ir.Shape(value.const_value.shape.numpy())


def _check_dims(model: ir.Model) -> None:
    """Leave dims of -1 open, as some exporters mean it, and refuse other negative ones.

    The onnx package's own shape inference ends the process on some of them.
    """
    graphs = [*model.graphs(), *(function.graph for function in model.functions.values())]
    for graph in graphs:
        values = (value for node in graph for value in node.outputs)
        for value in (*graph.inputs, *graph.initializers.values(), *values):
            shape = value.shape
            if shape is None or not any(isinstance(dim, int) and dim < 0 for dim in shape):
                continue
            if any(isinstance(dim, int) and dim < -1 for dim in shape):
                raise ModelFileError(
                    f"value {str(value.name)[:200]!r} has shape {shape}, wanted sizes of 0 or more"
                )
            value.shape = type(shape)(None if dim == -1 else dim for dim in shape)


def _first(exc: BaseException) -> BaseException:
    """What went wrong; onnx-ir wraps it in where it went wrong, with all of the file around it."""
    while exc.__cause__ is not None:
        exc = exc.__cause__
    return exc


def _set_shapes(graph: ir.Graph, shapes: Shapes) -> None:
    """Give inputs other shapes; everything inferred from the old ones is forgotten."""
    import onnx_ir as ir

    if not shapes:
        return
    for value in graph.inputs:
        if dims := shapes.get(str(value.name)):
            named = [f"{value.name}_{i}" if d is None else d for i, d in enumerate(dims)]
            value.shape = ir.Shape(named)
    for node in graph:
        for value in node.outputs:
            value.shape = None
