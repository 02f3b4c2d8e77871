"""ONNX models built by code, and run as they are: nothing of the package is between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper
from support.running import assert_close

Port = tuple[str, int, Sequence[int | str | None] | None]
F32, I64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL

_PLAIN = ort.SessionOptions()
_PLAIN.log_severity_level = 4
_PLAIN.intra_op_num_threads = 1
_PLAIN.inter_op_num_threads = 1
# what ONNX Runtime would rewrite itself would hide what a pass did wrong, and cost time
_PLAIN.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL

_DTYPES = {F32: np.float32, I64: np.int64, BOOL: np.bool_, TensorProto.FLOAT16: np.float16}


def node(op: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> Any:
    """A node; its name is that of its first output."""
    name = attributes.pop("name", f"{op}_{outputs[0]}")
    return helper.make_node(op, list(inputs), list(outputs), name=name, **attributes)


def body(
    nodes: Sequence[Any], inputs: Sequence[Port], outputs: Sequence[Port], **weights: Any
) -> Any:
    """A graph."""
    return helper.make_graph(
        list(nodes),
        "graph",
        [helper.make_tensor_value_info(*port) for port in inputs],
        [helper.make_tensor_value_info(*port) for port in outputs],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items()],
    )


def model(
    nodes: Sequence[Any],
    inputs: Sequence[Port],
    outputs: Sequence[Port | str],
    opset: int = 21,
    domains: Mapping[str, int] | None = None,
    functions: Sequence[onnx.FunctionProto] = (),
    **weights: Any,
) -> onnx.ModelProto:
    """A model; an output that is only a name is a float32 tensor of any rank."""
    ports = [port if isinstance(port, tuple) else (port, F32, None) for port in outputs]
    imports = [helper.make_opsetid("", opset)]
    imports += [helper.make_opsetid(name, number) for name, number in (domains or {}).items()]
    return helper.make_model(
        body(nodes, inputs, ports, **weights),
        opset_imports=imports,
        ir_version=10 if opset > 20 else 8,
        functions=list(functions),
    )


def feeds_for(proto: onnx.ModelProto, seed: int = 0, open_dim: int = 2) -> dict[str, np.ndarray]:
    """Random arrays for every input that is no weight."""
    random = np.random.default_rng(seed)
    weights = {weight.name for weight in proto.graph.initializer}
    found = {}
    for port in proto.graph.input:
        kind = port.type.tensor_type
        dims = [d.dim_value if d.HasField("dim_value") else open_dim for d in kind.shape.dim]
        if port.name not in weights:
            dtype = _DTYPES[kind.elem_type]
            scale = 3 if dtype in (np.float32, np.float16) else 1
            found[port.name] = np.asarray(random.normal(0, scale, dims)).astype(dtype)
    return found


def results(made: onnx.ModelProto | ir.Model, feeds: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The outputs by name; inputs that the model lacks are an error."""
    proto = ir.to_proto(made) if isinstance(made, ir.Model) else made
    data = proto.SerializeToString()
    session = ort.InferenceSession(data, _PLAIN, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, dict(feeds)), strict=True))


def assert_same(
    got: onnx.ModelProto | ir.Model, want: onnx.ModelProto | ir.Model, feeds: Mapping[str, Any]
) -> None:
    """Both compute the same under the same names."""
    found, wanted = results(got, feeds), results(want, feeds)
    assert list(found) == list(wanted)
    for name, array in wanted.items():
        assert_close(found[name], array, name)


def ops(made: ir.Model) -> list[str]:
    """The operators of the main graph in order."""
    return [n.op_type for n in made.graph]
