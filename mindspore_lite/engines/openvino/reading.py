"""From parts to OpenVINO: a graph without its large weights and those weights go in, a model out.

Weights become constants that lie where they lay: pages of a file stay pages of a file. The graph is
read with them as inputs, and constants then take the places of these.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import onnx_ir as ir
import openvino as ov

from mindspore_lite.engines import variable
from mindspore_lite.engines.base import ANY_RANK, TensorInfo
from mindspore_lite.engines.skeleton import Parts, take_apart
from mindspore_lite.engines.widen import Kernels, widen
from mindspore_lite.errors import EngineError
from mindspore_lite.graph.element_types import Signature
from mindspore_lite.graph.source import Source

INSTEAD = "use [common_context] engine=onnxruntime for this model"
_TYPES = {
    "boolean": "bool",
    "f16": "float16",
    "f32": "float32",
    "f64": "float64",
    **{f"{sign}{bits}": f"{kind}{bits}" for sign, kind in (("i", "int"), ("u", "uint"))
       for bits in (8, 16, 32, 64)},
}  # fmt: skip


class _Kernels(Kernels):
    """OpenVINO takes every type, and computes in another by itself."""

    def take(self, node: ir.Node, known: Signature, types: Mapping[str, ir.DataType]) -> bool:
        return True


def parts_of(source: Source) -> Parts:
    """The graph of a source as OpenVINO reads it, and its weights."""
    model = source.translate()
    names = variable.mark(model, source.variable) if source.variable else ()
    variable.hold_open(model, names)
    widen(model, lambda: _Kernels("OpenVINO", ()))  # which carries bfloat16 over the border
    variable.settle(model, names)
    return take_apart(model, names)


def read(core: Any, skeleton: bytes, weights: Mapping[str, np.ndarray]) -> Any:
    """An OpenVINO model on these weights, which it reads as long as it lives."""
    try:
        model = core.read_model(variable.opened(skeleton, list(weights)))
        for parameter in model.get_parameters():
            name = parameter.get_output_tensor(0).get_any_name()
            if name in weights:
                constant = _constant(weights[name])
                constant.set_friendly_name(parameter.get_friendly_name())
                parameter.output(0).replace(constant.output(0))
                model.remove_parameter(parameter)
        model.validate_nodes_and_infer_types()
    except Exception as exc:
        raise EngineError(
            f"OpenVINO could not read the model: {readable(exc)}; {INSTEAD}"
        ) from exc
    return model


def _constant(array: np.ndarray) -> Any:
    array = shown(array)
    if array.dtype.name == "bfloat16":
        tensor = ov.Tensor(array.view(np.uint16), array.shape, ov.Type.bf16)
        return ov.op.Constant(tensor, shared_memory=True)
    return ov.op.Constant(array, shared_memory=True)


def shown(array: np.ndarray) -> np.ndarray:
    """The array in the same memory as one that may be written to: OpenVINO takes no others.

    It does not write there. Whoever shows an array keeps it.
    """
    if array.flags.writeable:
        return array
    if not array.nbytes:
        return array.copy()
    raw = (ctypes.c_uint8 * array.nbytes).from_address(array.ctypes.data)
    return np.frombuffer(raw, np.uint8).view(array.dtype).reshape(array.shape)


def ports(model: Any, skeleton: bytes) -> tuple[list[TensorInfo], list[TensorInfo], dict[str, str]]:
    """Inputs, outputs and metadata of a model that was read from this skeleton."""
    import onnx

    proto = onnx.ModelProto.FromString(skeleton)
    inner = {tensor.name for tensor in proto.graph.initializer}
    inputs = [value.name for value in proto.graph.input if value.name not in inner]
    outputs = [value.name for value in proto.graph.output]
    metadata = {entry.key: entry.value for entry in proto.metadata_props}
    return (
        [_info("input", name, port) for name, port in zip(inputs, model.inputs, strict=True)],
        [_info("output", name, port) for name, port in zip(outputs, model.outputs, strict=True)],
        metadata,
    )


def _info(kind: str, name: str, port: Any) -> TensorInfo:
    found = port.get_element_type().get_type_name()
    if found not in _TYPES:
        raise EngineError(
            f"{kind} {name!r} is of type {found}, which the OpenVINO engine does not exchange; "
            f"{INSTEAD}"
        )
    info = TensorInfo(name, np.dtype(_TYPES[found]), ANY_RANK)
    shape = port.get_partial_shape()
    if shape.rank.is_dynamic:
        return info
    dims = tuple(-1 if dim.is_dynamic else dim.get_length() for dim in shape)
    return replace(info, shape=dims)


def readable(exc: BaseException) -> str:
    """An error of OpenVINO without its source paths, checks and line breaks."""
    text = re.sub(r"(Exception from|Check '.*?' failed at) \S+?:\d+:", " ", str(exc))
    text = re.sub(r"\bsrc/\S+:\d+:?", " ", text)
    return " ".join(text.split())[:1000] or type(exc).__name__
