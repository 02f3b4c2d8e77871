"""ONNX nodes inside of Custom primitives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper
from support.mindir_builder import Net, tensor
from support.running import assert_close, run, run_graph

from mindspore_lite.errors import LiteError, ModelFileError, UnsupportedOpError
from mindspore_lite.graph.from_mindir import from_mindir
from mindspore_lite.graph.to_mindir import to_mindir
from mindspore_lite.mindir import records as r
from mindspore_lite.mindir.read import read_file
from mindspore_lite.mindir.write import write_file
from mindspore_lite.passes.infer_shapes import infer_shapes

_X = np.random.default_rng(0).standard_normal((2, 3)).astype(np.float32)


def _through_file(model: onnx.ModelProto, folder: Path) -> ir.Model:
    source = ir.from_proto(model)
    infer_shapes(source)
    written = to_mindir(source)
    assert written.custom
    (path,) = write_file(written.model, folder / "net.mindir")
    return from_mindir(read_file(path))


def _custom(node: onnx.NodeProto, *names: str, **more: object) -> r.Model:
    net = Net("main")
    inputs = [net.input(name, (2, 3)) for name in names]
    blob = np.frombuffer(node.SerializeToString(), np.uint8)
    given = {"reg_op_name": "ONNX", "onnx_node": blob, "onnx_inputs": names, "opset": 21, **more}
    return net.model(net.call("Custom", *inputs, **given))


def test_a_node_is_restored_with_its_attributes() -> None:
    model = _custom(helper.make_node("ThresholdedRelu", ["x"], ["y"], alpha=0.5), "x")
    (found,) = run(model, _X)
    np.testing.assert_array_equal(found, np.where(_X > 0.5, _X, 0))


def test_an_input_may_be_used_twice_and_one_left_out(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Add", ["x", "x"], ["twice"]),
        helper.make_node("Resize", ["twice", "", "", "sizes"], ["y"], mode="cubic",
                         exclude_outside=1),
    ]  # fmt: skip
    sizes = onnx.numpy_helper.from_array(np.asarray([1, 1, 4, 6], np.int64), "sizes")
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 2, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1, 4, 6])],
        [sizes],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    x = _X.reshape(1, 1, 2, 3)
    (want,) = run_graph(ir.from_proto(model), x)
    (found,) = run_graph(_through_file(model, tmp_path), x)
    assert_close(found, want)


def test_a_body_keeps_the_outer_values_it_uses(tmp_path: Path) -> None:
    """Scan has no equivalent: its body uses a weight, a computed value, and names of its own."""
    body = helper.make_graph(
        [
            helper.make_node("Add", ["state", "row"], ["sum"]),
            helper.make_node("Mul", ["sum", "half"], ["scaled"]),
            helper.make_node("Sub", ["scaled", "bias"], ["y"]),
            helper.make_node("Identity", ["y"], ["out"]),
        ],
        "body",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, [3]) for n in ("state", "row")],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, [3]) for n in ("y", "out")],
    )
    weights = [
        onnx.numpy_helper.from_array(np.asarray([1, 2, 3], np.float32), "bias"),
        onnx.numpy_helper.from_array(np.zeros(3, np.float32), "zero"),
        onnx.numpy_helper.from_array(np.asarray(0.5, np.float32), "h"),
    ]
    graph = helper.make_graph(
        [
            helper.make_node("Identity", ["h"], ["half"]),
            helper.make_node("Scan", ["zero", "x"], ["last", "all"], body=body, num_scan_inputs=1),
        ],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])],
        [
            helper.make_tensor_value_info("last", TensorProto.FLOAT, [3]),
            helper.make_tensor_value_info("all", TensorProto.FLOAT, [2, 3]),
        ],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    back = _through_file(model, tmp_path)
    for found, want in zip(run_graph(back, _X), run_graph(ir.from_proto(model), _X), strict=True):
        assert_close(found, want)
    assert "bias" in back.graph.initializers


def test_a_newer_operator_raises_the_opset_of_the_graph(tmp_path: Path) -> None:
    graph = helper.make_graph(
        [helper.make_node("AveragePool", ["x"], ["y"], kernel_shape=[2], dilations=[2])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 3, 6])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)])
    back = _through_file(model, tmp_path)
    assert back.opset_imports[""] == 24
    assert back.graph.inputs[0].shape == ir.Shape(["n", 3, 8])


def test_an_operator_of_another_domain_is_restored(tmp_path: Path) -> None:
    graph = helper.make_graph(
        [helper.make_node("FastGelu", ["x"], ["y"], domain="com.microsoft")],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3])],
    )
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=imports)
    back = _through_file(model, tmp_path)
    assert back.opset_imports["com.microsoft"] == 1
    (found,) = run_graph(back, _X)
    assert_close(found, 0.5 * _X * (1 + np.tanh(_X * (0.035677408136300125 * _X**2 + 0.7978846))))


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"reg_op_name": "ACL"}, "compiled for Ascend"),
        ({"onnx_node": None}, "of its own"),
        ({"onnx_inputs": ("x", "y")}, "of its own"),
    ],
)
def test_any_other_custom_operator_is_refused(more: dict[str, object], words: str) -> None:
    with pytest.raises(UnsupportedOpError, match=words):
        run(_custom(helper.make_node("Neg", ["x"], ["y"]), "x", **more), _X)


def test_the_domains_of_a_body_are_those_of_the_graph(tmp_path: Path) -> None:
    port = helper.make_tensor_value_info
    body = helper.make_graph(
        [
            helper.make_node("Add", ["state", "row"], ["sum"]),
            helper.make_node("FastGelu", ["sum"], ["out"], domain="com.microsoft"),
        ],
        "body",
        [port(n, TensorProto.FLOAT, [3]) for n in ("state", "row")],
        [port(n, TensorProto.FLOAT, [3]) for n in ("sum", "out")],
    )
    scan = helper.make_node("Scan", ["first", "x"], ["last", "all"], body=body, num_scan_inputs=1)
    graph = helper.make_graph(
        [scan],
        "g",
        [port("first", TensorProto.FLOAT, [3]), port("x", TensorProto.FLOAT, [2, 3])],
        [port("last", TensorProto.FLOAT, [3]), port("all", TensorProto.FLOAT, [2, 3])],
    )
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    back = _through_file(helper.make_model(graph, opset_imports=imports), tmp_path)
    assert back.opset_imports["com.microsoft"] == 1
    assert run_graph(back, _X[0], _X)[1].shape == (2, 3)


@pytest.mark.parametrize("blob", [b"\xff\xff", b""])
def test_bytes_that_are_no_node_are_refused(blob: bytes) -> None:
    model = _custom(helper.make_node("Neg", ["x"], ["y"]), "x")
    node = model.graph.nodes[0]
    assert isinstance(node, r.Call) and isinstance(node.target, r.Primitive)
    attributes = {**node.target.attributes, "onnx_node": tensor("", np.frombuffer(blob, np.uint8))}
    broken = r.Call(node.name, r.Primitive("Custom", attributes), node.inputs)
    graph = r.Graph("main", model.graph.inputs, (broken,), model.graph.outputs)
    with pytest.raises(LiteError):
        run(r.Model(graph), _X)


def test_external_data_inside_of_a_node_is_refused() -> None:
    held = onnx.TensorProto(
        name="v",
        data_type=TensorProto.FLOAT,
        dims=[1],
        data_location=TensorProto.EXTERNAL,
        external_data=[onnx.StringStringEntryProto(key="location", value="/etc/passwd")],
    )
    with pytest.raises(ModelFileError, match="external"):
        run(_custom(helper.make_node("Constant", [], ["y"], value=held)))
