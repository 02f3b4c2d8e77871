"""conversion/half_weights.py: half the room, the same numbers to eleven bits."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.running import op_types, run_graph

from mindspore_lite.conversion.half_weights import halve_weights

RNG = np.random.default_rng(5)
X = RNG.standard_normal((2, 32), np.float32)


def model_of(**weights: np.ndarray) -> ir.Model:
    """y = the sum of x @ w over all weights."""
    products = [helper.make_node("MatMul", ["x", name], [f"p_{name}"]) for name in weights]
    total = helper.make_node("Sum", [f"p_{name}" for name in weights], ["y"])
    graph = helper.make_graph(
        [*products, total],
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 32])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, None])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return ir.from_proto(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    )


def weight(scale: float = 1.0) -> np.ndarray:
    return np.float32(scale) * RNG.standard_normal((32, 32), np.float32)


def test_weights_keep_their_names_and_take_half_the_room() -> None:
    a, b = weight(), weight(100)
    model = model_of(a=a, b=b)
    done = halve_weights(model)
    assert (done.count, done.saved_bytes, done.left) == (2, 2 * 32 * 32 * 2, ())
    assert list(model.graph.initializers) == ["a", "b"]
    for name, array in {"a": a, "b": b}.items():
        tensor = model.graph.initializers[name].const_value
        assert tensor is not None
        assert tensor.dtype == ir.DataType.FLOAT16
        np.testing.assert_array_equal(tensor.numpy(), array.astype(np.float16))
    onnx.checker.check_model(ir.to_proto(model), full_check=True)
    (got,) = run_graph(model, X)
    want = X @ a.astype(np.float16).astype(np.float32) + X @ b.astype(np.float16).astype(np.float32)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-3)


def test_small_weights_stay() -> None:
    model = model_of(a=weight()[:, :7])
    assert halve_weights(model).count == 0
    assert "Cast" not in op_types(model)


def test_numbers_beyond_float16_stay_float32_and_are_told() -> None:
    big, tiny = weight(), weight(1e-12)
    big[3, 4] = 1e5
    model = model_of(big=big, tiny=tiny, good=weight())
    done = halve_weights(model)
    assert done.count == 1
    assert done.left == ("big", "tiny")
    for name in done.left:
        tensor = model.graph.initializers[name].const_value
        assert tensor is not None
        assert tensor.dtype == ir.DataType.FLOAT


def test_zeros_and_infinities_that_were_there_already_are_no_loss() -> None:
    mask = np.zeros((32, 32), np.float32)
    endless = np.full((32, 32), -np.inf, np.float32)
    assert halve_weights(model_of(mask=mask, endless=endless)).count == 2


def test_other_types_stay() -> None:
    model = model_of(a=weight())
    model.graph.initializers["a"].const_value = ir.Tensor(weight().astype(np.float64))
    assert halve_weights(model).count == 0


def test_a_weight_that_is_an_input_or_an_output_stays() -> None:
    model = model_of(a=weight(), b=weight())
    model.graph.inputs.append(model.graph.initializers["a"])
    model.graph.outputs.append(model.graph.initializers["b"])
    assert halve_weights(model).count == 0


def test_one_weight_of_two_readers_is_cast_once() -> None:
    model = model_of(a=weight())
    (first,) = [node for node in model.graph if node.op_type == "MatMul"]
    again = ir.node("MatMul", list(first.inputs))
    model.graph.insert_after(first, again)
    total = model.graph[-1]
    total.resize_inputs(2)
    total.replace_input_with(1, again.outputs[0])
    (want,) = run_graph(model.clone(), X)
    assert halve_weights(model).count == 1
    assert op_types(model) == ["Cast", "MatMul", "MatMul", "Sum"]
    np.testing.assert_allclose(run_graph(model, X)[0], want, rtol=1e-2, atol=2e-2)


@pytest.mark.parametrize("inside", [True, False], ids=["its own weight", "a weight from outside"])
def test_branches_read_halved_weights_too(inside: bool) -> None:
    w = numpy_helper.from_array(weight(), "w")

    def branch(name: str, op: str) -> onnx.GraphProto:
        return helper.make_graph(
            [helper.make_node(op, ["x", "w"], [name])],
            name,
            [],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, [32, 32])],
            [w] if inside else [],
        )

    choice = helper.make_node(
        "If", ["c"], ["y"], then_branch=branch("t", "MatMul"), else_branch=branch("e", "Add")
    )
    graph = helper.make_graph(
        [choice],
        "graph",
        [
            helper.make_tensor_value_info("c", TensorProto.BOOL, []),
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [32, 32]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [32, 32])],
        [] if inside else [w],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    model = ir.from_proto(proto)
    assert halve_weights(model).count == (2 if inside else 1)
    onnx.checker.check_model(ir.to_proto(model), full_check=True)
    x = weight()
    for chosen in (True, False):
        (want,) = run_graph(ir.from_proto(proto), np.array(chosen), x)
        (got,) = run_graph(model.clone(), np.array(chosen), x)
        np.testing.assert_allclose(got, want, rtol=1e-2, atol=2e-2)
