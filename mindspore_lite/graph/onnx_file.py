"""Loads ONNX files as untrusted input: external data must lie in the model's own folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mindspore_lite.errors import ModelFileError
from mindspore_lite.graph.onnx_scan import locations, split_tensors
from mindspore_lite.mindir.files import contained

if TYPE_CHECKING:
    import onnx
    import onnx_ir as ir

    from mindspore_lite.graph.source import Shapes

MAX_BYTES = 2**31 - 1  # of one protobuf message


def external_files(data: memoryview, folder: Path | None) -> tuple[Path, ...]:
    """The data files that a model's weights name, found without parsing the model."""
    if not len(data):
        raise ModelFileError("the file is empty")
    if len(data) > MAX_BYTES:
        raise ModelFileError(
            f"the file has {len(data)} bytes, and no ONNX file can have more than {MAX_BYTES}; "
            "a larger model keeps its weights in files beside it (external data)"
        )
    return tuple(_file(folder, name) for name in sorted(set(locations(data))))


def _file(folder: Path | None, location: str) -> Path:
    if folder is None:
        raise ModelFileError(
            f"weights lie in the file {location[:200]!r} beside the model; pass the path of the "
            "model file as mindir_path of section [model_file] in config_dict or the "
            "configuration file"
        )
    return contained(folder, location)


def load_onnx(
    data: memoryview, folder: Path | None, input_shapes: Shapes | None = None
) -> ir.Model:
    """The model with its weights mapped; `input_shapes` replaces the shapes of inputs."""
    import onnx
    import onnx_ir as ir

    from mindspore_lite.graph.onnx_tensors import check_tensors, put_back

    split = split_tensors(data)
    try:
        proto = onnx.ModelProto.FromString(split.skeleton)
        check_tensors(proto, split)
        model = ir.serde.deserialize_model(proto)
        put_back(model, proto, split, data)
        _keep_shapes(model, proto)
    except ModelFileError:
        raise
    except Exception as exc:  # the parser and onnx-ir raise many kinds on bad bytes
        raise ModelFileError(str(_first(exc))) from exc
    if not model.graph.outputs:
        raise ModelFileError("there is no graph inside")
    if folder is not None:
        ir.external_data.set_base_dir(model.graph, folder)
    _check_external(model, folder)
    _set_shapes(model.graph, input_shapes or {})
    return model


def _keep_shapes(model: ir.Model, proto: onnx.ModelProto) -> None:
    """An input or weight that is an output as well has its shape, though the output says none."""
    import onnx_ir as ir

    for value, info in zip(model.graph.inputs, proto.graph.input, strict=True):
        if value.shape is None:
            value.shape = ir.serde.deserialize_value_info_proto(info, None).shape
    for value in model.graph.initializers.values():
        if value.shape is None and value.const_value is not None:
            value.shape = ir.Shape(value.const_value.shape.numpy())


def _first(exc: BaseException) -> BaseException:
    """What went wrong; onnx-ir wraps it in where it went wrong, with all of the file around it."""
    while exc.__cause__ is not None:
        exc = exc.__cause__
    return exc


def _check_external(model: ir.Model, folder: Path | None) -> None:
    import onnx_ir as ir

    for graph in model.graphs():
        for value in graph.initializers.values():
            tensor = value.const_value
            if not isinstance(tensor, ir.ExternalTensor):
                continue
            if graph is not model.graph:
                raise ModelFileError(
                    f"{value.name!r}: external data inside a sub-graph is not supported"
                )
            size = _file(folder, str(tensor.location)).stat().st_size
            offset, length = tensor.offset or 0, tensor.length or tensor.nbytes
            if offset < 0 or length != tensor.nbytes or offset + length > size:
                raise ModelFileError(
                    f"{value.name!r} wants {tensor.nbytes} bytes at {offset} of a data file "
                    f"of {size} bytes"
                )
        for node in graph:
            for attr in node.attributes.values():
                if isinstance(attr, ir.Attr) and isinstance(attr.value, ir.ExternalTensor):
                    raise ModelFileError(
                        f"{node.name!r}: external data in an attribute is not supported"
                    )


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
