"""Makes an OpenVINO model from a skeleton and its weights.

Weights become constants that lie where they lay: pages of a file stay pages of a file. The graph is
read with them as inputs, and constants then take the places of these.
"""

from __future__ import annotations

import ctypes
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnx_ir as ir
import openvino as ov

from mindspore_lite.core.boundary import engine_failure
from mindspore_lite.core.dtypes import BY_ONNX, TABLE, no_strings
from mindspore_lite.core.tensor_info import ANY_RANK, TensorInfo
from mindspore_lite.engines.openvino.faults import mend
from mindspore_lite.engines.prepare import variable
from mindspore_lite.engines.prepare.skeleton import Parts, take_apart
from mindspore_lite.engines.prepare.widen import Kernels, widen
from mindspore_lite.errors import EngineError, UnsupportedOpError
from mindspore_lite.graph.source import ModelSource
from mindspore_lite.passes.check_nodes import check_nodes
from mindspore_lite.passes.element_types import Signature
from mindspore_lite.passes.folding import refuse_unknown
from mindspore_lite.passes.guard_division import guard_division
from mindspore_lite.passes.infer_shapes import refuse_negative_sizes
from mindspore_lite.passes.node_count import levels_of

_MOST_TEXT = 4000  # characters of an error that are looked at
_NEWEST = 1000  # guess: ONNX's own opsets have got to 25 in nine years
INSTEAD = "use [common_context] engine=onnxruntime for this model"
_MAX_LEVELS = 16  # of sub-graphs in each other; with each, compiling takes twice as long: 1 s
# OpenVINO's own names; it has no complex numbers, and bfloat16 goes over the border as another type
_TYPES = {"boolean": "bool"} | {d.short: d.name for d in TABLE if d.short[0] in "iuf"}


_T = ir.DataType
_SMALL = frozenset({_T.BOOL, _T.INT8, _T.INT16, _T.UINT8, _T.UINT16})


UNUSED = -1  # the place of an unused input


class Ports(NamedTuple):
    """What a compiled model says about its ends."""

    inputs: Sequence[TensorInfo]
    outputs: Sequence[TensorInfo]
    metadata: dict[str, str]
    places: Sequence[int]  # of each input among those of OpenVINO


class _Kernels(Kernels):
    """OpenVINO takes nearly every type, and computes in another by itself."""

    def take(self, node: ir.Node, known: Signature, types: Mapping[str, ir.DataType]) -> bool:
        picks = node.op_type in ("Max", "Min") or node.op_type.startswith("Reduce")
        return not picks or _SMALL.isdisjoint(types.values())


def _bound_opsets(model: ir.Model) -> None:
    """Lower the versions of other domains, for OpenVINO counts up to each when it reads a model."""
    for domain, version in model.opset_imports.items():
        if domain:
            model.opset_imports[domain] = min(version, _NEWEST)


def parts_of(source: ModelSource) -> Parts:
    """The graph of a source as OpenVINO reads it, and its weights."""
    model = source.translate()
    check_nodes(model)
    refuse_negative_sizes(model)
    _bound_opsets(model)
    refuse_unknown(model, source.budget, "OpenVINO")
    if (levels := levels_of(model)) > _MAX_LEVELS:
        raise EngineError(
            f"sub-graphs lie {levels} deep in each other, and OpenVINO compiles at most "
            f"{_MAX_LEVELS} in reasonable time; {INSTEAD}"
        )
    _warn_of_doubles(model)
    names = variable.mark(model, source.variable)
    variable.hold_open(model, names)
    widen(model, lambda: _Kernels("OpenVINO", ()))  # which carries bfloat16 over the border
    guard_division(model)
    mend(model)
    variable.settle(model, names)
    return take_apart(model, names)


def _warn_of_doubles(model: ir.Model) -> None:
    graph = model.graph
    if any(v.dtype == _T.DOUBLE for v in (*graph.inputs, *graph.outputs)):
        warnings.warn(
            "computed with less precision than the model asks for: OpenVINO computes float64 in "
            "float32; engine=onnxruntime has more exact kernels",
            RuntimeWarning,
            stacklevel=2,
        )


def read(core: Any, skeleton: bytes, weights: Mapping[str, np.ndarray]) -> Any:
    """An OpenVINO model on these weights, which it reads as long as it lives."""
    opened = variable.opened(skeleton, list(weights))
    proto = onnx.ModelProto.FromString(skeleton)
    try:
        model = core.read_model(opened)
        parameters = model.get_parameters()
        for name, at in _places(model, [*_inputs(proto), *weights]).items():
            if name in weights:
                constant = _constant(weights[name])
                constant.set_friendly_name(name)
                parameters[at].output(0).replace(constant.output(0))
                model.remove_parameter(parameters[at])
        for op in model.get_ops():
            if op.get_type_name() == "TopK" and op.get_attributes()["sort"] != "none":
                op.set_attribute("stable", True)  # ONNX wants the first of equal values first
        model.validate_nodes_and_infer_types()
    except Exception as exc:
        text = f"OpenVINO could not read the model: {readable(exc)}; {INSTEAD}"
        raise engine_failure(text, exc) from exc
    _refuse_empty(model)
    return model


def _refuse_empty(model: Any) -> None:
    """Refuse a Gather of nothing, which OpenVINO divides by when it compiles: the process ends."""
    for op in model.get_ops():
        shape = op.input(0).get_partial_shape() if op.get_type_name() == "Gather" else None
        if shape is not None and shape.is_static and 0 in shape.to_shape():
            raise UnsupportedOpError(
                f"OpenVINO cannot compile node {op.get_friendly_name()!r}, a Gather of an array of "
                f"shape {list(shape.to_shape())}, which has no elements; {INSTEAD}"
            )


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
    seen = np.ctypeslib.as_array(raw).view(array.dtype).reshape(array.shape)
    return np.asarray(seen)


def ports(model: Any, skeleton: bytes) -> Ports:
    """The ends of a model that was read from this skeleton."""
    proto = onnx.ModelProto.FromString(skeleton)
    inputs = _inputs(proto)
    places = _places(model, list(inputs))
    return Ports(
        [
            _info("input", name, model.inputs[places[name]]) if name in places else _declared(value)
            for name, value in inputs.items()
        ],
        [
            _info("output", value.name, port)
            for value, port in zip(proto.graph.output, model.outputs, strict=True)
        ],
        {entry.key: entry.value for entry in proto.metadata_props},
        [places.get(name, UNUSED) for name in inputs],
    )


def _inputs(proto: onnx.ModelProto) -> dict[str, onnx.ValueInfoProto]:
    """The inputs of a graph that are no weights, by name."""
    inner = {tensor.name for tensor in proto.graph.initializer}
    return {value.name: value for value in proto.graph.input if value.name not in inner}


def _places(model: Any, names: Sequence[str]) -> dict[str, int]:
    """Where OpenVINO has the inputs of these names: it drops unused ones.

    One that is an output, too, has the output's name; there the order decides.
    """
    found = {one.get_friendly_name(): at for at, one in enumerate(model.get_parameters())}
    known = {name: found.pop(name) for name in names if name in found}
    if found and len(names) != len(known) + len(found):
        raise EngineError(
            f"inputs {sorted(set(names) - set(known))} cannot be told apart in OpenVINO; {INSTEAD}"
        )
    unknown = [name for name in names if name not in known]
    return known | dict(zip(unknown, sorted(found.values()), strict=False))


def _declared(value: onnx.ValueInfoProto) -> TensorInfo:
    """An input that OpenVINO does not have, as the graph declares it."""
    kind = value.type.tensor_type
    if kind.elem_type not in BY_ONNX:
        raise EngineError(f"input {value.name!r} is no tensor of numbers; {INSTEAD}")
    dims = (dim.dim_value if dim.HasField("dim_value") else -1 for dim in kind.shape.dim)
    return TensorInfo(value.name, BY_ONNX[kind.elem_type].numpy, tuple(dims))


def _info(kind: str, name: str, port: Any) -> TensorInfo:
    found = port.get_element_type().get_type_name()
    if found == "string":
        raise EngineError(no_strings(kind, name))
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
    text = " ".join(str(exc)[:_MOST_TEXT].split())  # it may hold names of the file, of any length
    if missing := re.search(r"No conversion rule found for operations: (.*?) To facilitate", text):
        return f"it has no operators {missing[1]}"
    text = re.sub(r"(Exception from|Check '.*?' failed at) \S+?:\d+:", " ", text)
    text = re.sub(r"^.*Failed operations detailed log: -- |Summary: .*$|\bsrc/\S+:\d+:?", " ", text)
    text = re.sub(r"While validating node .*? with friendly_name '.*?':", " ", text)
    return " ".join(text.split())[:500] or type(exc).__name__
