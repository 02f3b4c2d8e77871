"""Loads ONNX files as untrusted input: external data must lie in the model's own folder."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from mindspore_lite.errors import ModelFileError
from mindspore_lite.mindir.scan import fields

if TYPE_CHECKING:
    import onnx_ir as ir

    from mindspore_lite.graph.source import Shapes

# ModelProto.graph, GraphProto.initializer, TensorProto.external_data, StringStringEntry.{key,value}
_GRAPH, _INITIALIZER, _EXTERNAL_DATA, _KEY, _VALUE = 7, 5, 13, 1, 2


def external_files(path: Path) -> tuple[Path, ...]:
    """The data files that a model's weights name, found without parsing the model."""
    try:
        with open(path, "rb") as file:
            if file.seek(0, 2) == 0:
                raise ModelFileError(f"{str(path)!r} is empty")
            data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except OSError as exc:
        raise ModelFileError(f"cannot read {str(path)!r}: {exc.strerror or exc}") from exc
    try:
        names = sorted(set(_locations(data)))
    except ModelFileError as exc:
        raise exc.prefixed(f"{str(path)!r} cannot be loaded as ONNX: ") from None
    return tuple(contained(path.parent, name) for name in names)


def _locations(data: memoryview) -> Iterator[str]:
    for start, end in _payloads(data, 0, len(data), _GRAPH):
        for first, last in _payloads(data, start, end, _INITIALIZER):
            for at, stop in _payloads(data, first, last, _EXTERNAL_DATA):
                entry = {f.number: bytes(data[f.start : f.end]) for f in fields(data, at, stop)}
                if entry.get(_KEY) == b"location":
                    yield entry.get(_VALUE, b"").decode("utf-8", "replace")


def _payloads(data: memoryview, start: int, end: int, number: int) -> Iterator[tuple[int, int]]:
    return ((f.start, f.end) for f in fields(data, start, end) if f.number == number and f.is_bytes)


def contained(folder: Path, location: str) -> Path:
    """The file that external data names, which must be a plain file inside the folder."""
    name = PurePosixPath(location)
    target = folder / name
    if not location or name.is_absolute() or ".." in name.parts:
        raise ModelFileError(f"external data {location!r} lies outside the model's folder")
    try:
        inside = target.resolve().is_relative_to(folder.resolve())
        is_file = target.is_file()
    except (OSError, RuntimeError, ValueError) as exc:  # no name for a file, links in a circle
        raise ModelFileError(f"external data {location[:200]!r} cannot be opened: {exc}") from exc
    if not inside:
        raise ModelFileError(f"external data {location!r} is a link out of the model's folder")
    if not is_file:
        raise ModelFileError(
            f"external data file {str(target)!r} is missing; put it beside the model"
        )
    return target


def load_onnx(path: Path, input_shapes: Shapes | None = None) -> ir.Model:
    """The model with its weights mapped; `input_shapes` replaces the shapes of inputs."""
    import onnx_ir as ir

    try:
        model = ir.load(path)
    except Exception as exc:  # the parser and onnx-ir raise many kinds on bad bytes
        raise ModelFileError(f"{str(path)!r} cannot be loaded as ONNX: {exc}") from exc
    if not model.graph.outputs:
        raise ModelFileError(f"{str(path)!r} cannot be loaded as ONNX: there is no graph inside")
    _check_external(model, path)
    _set_shapes(model.graph, input_shapes or {})
    return model


def _check_external(model: ir.Model, path: Path) -> None:
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
            size = contained(path.parent, str(tensor.location)).stat().st_size
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
