"""ONNX models that name a file from a place where a tensor can stand, and targets to name."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SECRET = np.frombuffer(b"TOP-SECRET-BYTES" * 4, np.float32)  # 16 of them
COUNT = SECRET.size
Entries = dict[str, object]  # of external_data: location, offset, length
FLOAT = TensorProto.FLOAT


def named(entries: Entries, name: str = "w", kind: int = FLOAT) -> onnx.TensorProto:
    """A tensor whose bytes lie where the entries say."""
    tensor = TensorProto(name=name, data_type=kind, dims=[COUNT])
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def _info(name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, FLOAT, [COUNT])


def _add() -> onnx.NodeProto:
    return helper.make_node("Add", ["x", "w"], ["y"])


def _model(
    nodes: list[onnx.NodeProto],
    weights: list[onnx.TensorProto] | None = None,
    functions: list[onnx.FunctionProto] | None = None,
) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "g", [_info("x")], [_info("y")], weights or [])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("own", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10, functions=functions or [])


def _constant(entries: Entries, key: str = "value") -> onnx.NodeProto:
    node = helper.make_node("Constant", [], ["w"])
    attribute = node.attribute.add(name=key, type=onnx.AttributeProto.TENSOR)
    attribute.t.CopyFrom(named(entries))
    return node


def _branches(node: onnx.NodeProto | None, weight: onnx.TensorProto | None) -> onnx.NodeProto:
    """An If whose branches hold the tensor."""
    nodes = ([node] if node is not None else []) + [helper.make_node("Identity", ["w"], ["o"])]
    graph = helper.make_graph(nodes, "b", [], [_info("o")], [weight] if weight is not None else [])
    return helper.make_node("If", ["c"], ["w"], then_branch=graph, else_branch=graph)


def _truth() -> onnx.TensorProto:
    return numpy_helper.from_array(np.array(True), "c")


def _initializer(entries: Entries) -> onnx.ModelProto:
    return _model([_add()], [named(entries)])


def _attribute(entries: Entries) -> onnx.ModelProto:
    return _model([_constant(entries), _add()])


def _attribute_list(entries: Entries) -> onnx.ModelProto:
    model = _model([_add()], [numpy_helper.from_array(SECRET * 0, "w")])
    attribute = model.graph.node[0].attribute.add(name="more", type=onnx.AttributeProto.TENSORS)
    attribute.tensors.append(named(entries))
    return model


def _sub_graph_weight(entries: Entries) -> onnx.ModelProto:
    return _model([_branches(None, named(entries)), _add()], [_truth()])


def _sub_graph_attribute(entries: Entries) -> onnx.ModelProto:
    return _model([_branches(_constant(entries), None), _add()], [_truth()])


def _graph_list(entries: Entries) -> onnx.ModelProto:
    model = _model([_add()], [numpy_helper.from_array(SECRET * 0, "w")])
    attribute = model.graph.node[0].attribute.add(name="more", type=onnx.AttributeProto.GRAPHS)
    attribute.graphs.append(helper.make_graph([], "inner", [], [_info("w")], [named(entries)]))
    return model


def _sparse(entries: Entries) -> onnx.SparseTensorProto:
    indices = numpy_helper.from_array(np.arange(COUNT, dtype=np.int64), "i")
    return helper.make_sparse_tensor(named(entries), indices, [COUNT])


def _sparse_indices(entries: Entries) -> onnx.SparseTensorProto:
    made = onnx.SparseTensorProto(dims=[COUNT])
    made.values.CopyFrom(numpy_helper.from_array(SECRET * 0, "w"))
    made.indices.CopyFrom(named(entries, "i", TensorProto.INT64))
    return made


def _sparse_initializer(entries: Entries) -> onnx.ModelProto:
    model = _model([_add()])
    model.graph.sparse_initializer.append(_sparse(entries))
    return model


def _sparse_attribute(entries: Entries) -> onnx.ModelProto:
    node = helper.make_node("Constant", [], ["w"], sparse_value=_sparse_indices(entries))
    return _model([node, _add()])


def _sparse_attribute_list(entries: Entries) -> onnx.ModelProto:
    model = _model([_add()], [numpy_helper.from_array(SECRET * 0, "w")])
    kind = onnx.AttributeProto.SPARSE_TENSORS
    attribute = model.graph.node[0].attribute.add(name="more", type=kind)
    attribute.sparse_tensors.append(_sparse(entries))
    return model


def _function_body(entries: Entries) -> onnx.ModelProto:
    body = [_constant(entries), helper.make_node("Add", ["a", "w"], ["b"])]
    opsets = [helper.make_opsetid("", 21)]
    function = helper.make_function("own", "Leak", ["a"], ["b"], body, opsets)
    return _model([helper.make_node("Leak", ["x"], ["y"], domain="own")], functions=[function])


def _function_sub_graph(entries: Entries) -> onnx.ModelProto:
    truth = helper.make_node("Constant", [], ["c"], value=_truth())
    body = [truth, _branches(_constant(entries), None), helper.make_node("Add", ["a", "w"], ["b"])]
    opsets = [helper.make_opsetid("", 21)]
    function = helper.make_function("own", "Leak", ["a"], ["b"], body, opsets)
    return _model([helper.make_node("Leak", ["x"], ["y"], domain="own")], functions=[function])


def _function_default(entries: Entries) -> onnx.ModelProto:
    constant = helper.make_node("Constant", [], ["w"])
    constant.attribute.add(name="value", ref_attr_name="v", type=onnx.AttributeProto.TENSOR)
    body = [constant, helper.make_node("Add", ["a", "w"], ["b"])]
    default = onnx.AttributeProto(name="v", type=onnx.AttributeProto.TENSOR)
    default.t.CopyFrom(named(entries))
    function = helper.make_function(
        "own", "Leak", ["a"], ["b"], body, [helper.make_opsetid("", 21)], attribute_protos=[default]
    )
    return _model([helper.make_node("Leak", ["x"], ["y"], domain="own")], functions=[function])


def _function_argument(entries: Entries) -> onnx.ModelProto:
    model = _function_default({"location": "unused"})
    function, call = model.functions[0], model.graph.node[0]
    del function.attribute_proto[:]
    function.attribute.append("v")
    call.attribute.add(name="v", type=onnx.AttributeProto.TENSOR).t.CopyFrom(named(entries))
    return model


def _training(entries: Entries) -> onnx.ModelProto:
    model = _model([_add()], [numpy_helper.from_array(SECRET * 0, "w")])
    info = model.training_info.add()
    info.algorithm.CopyFrom(helper.make_graph([], "t", [], [_info("w")], [named(entries)]))
    return model


PLACES: dict[str, Callable[[Entries], onnx.ModelProto]] = {
    made.__name__.strip("_"): made
    for made in (
        _initializer, _attribute, _attribute_list, _sub_graph_weight, _sub_graph_attribute,
        _graph_list, _sparse_initializer, _sparse_attribute, _sparse_attribute_list,
        _function_body, _function_sub_graph, _function_default, _function_argument, _training,
    )
}  # fmt: skip


def targets(folder: Path, working: Path) -> dict[str, Entries]:
    """What a model in `folder` may name that it must not; what the names lead to is made."""
    outside = folder.parent / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(SECRET.tobytes())
    (working / "secret-of-cwd").write_bytes(SECRET.tobytes())
    (folder / "link").symlink_to(outside / "secret")
    (folder / "linked-folder").symlink_to(outside)
    os.link(outside / "secret", folder / "hard")
    os.mkfifo(folder / "pipe")
    (folder / "device").symlink_to("/dev/zero")
    (folder / "here").write_bytes(SECRET.tobytes())
    size = SECRET.nbytes
    return {
        "absolute": {"location": str(outside / "secret")},
        "upwards": {"location": "../outside/secret"},
        "working directory": {"location": "secret-of-cwd"},
        "link": {"location": "link"},
        "linked folder": {"location": "linked-folder/secret"},
        "hard link": {"location": "hard"},
        "pipe": {"location": "pipe"},
        "device": {"location": "device"},
        "missing": {"location": "gone"},
        "negative offset": {"location": "here", "offset": -4, "length": size},
        "overflowing offset": {"location": "here", "offset": 2**63 - 1, "length": size},
        "negative length": {"location": "here", "offset": 0, "length": -size},
        "overflowing length": {"location": "here", "offset": 0, "length": 2**64},
        "beyond the end": {"location": "here", "offset": 4, "length": size},
    }
