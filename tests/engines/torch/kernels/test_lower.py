"""kernels/lower.py: what is computed beforehand, what becomes a node, and what both are called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
import torch
from support.onnx_graphs import F32, I64, model, node
from support.torch_nodes import CPU, fill, run_lowered

from mindspore_lite.engines.torch.kernels import lower as lower_module
from mindspore_lite.engines.torch.kernels.lower import Lowered, Target, Weight, lower
from mindspore_lite.errors import EngineError, UnsupportedOpError

CARD = Target(torch.device("cuda:0"))  # lowering for a card needs none
HALF = Target(torch.device("cpu"), half=torch.float16)
X = ("x", F32, ("n", 3))


def lowered(proto: Any, shapes: Any = None, target: Target = CPU) -> Lowered:
    return lower(ir.from_proto(proto), shapes, target)


def calls(found: Lowered) -> list[str]:
    """The names of the functions that a graph calls."""
    return [n.target.__name__ for n in found.module.graph.nodes if n.op == "call_function"]


def flattening() -> Any:
    """x.reshape(x.shape[0], -1) + 1, as exporters write it."""
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "zero"], ["n"]),
        node("Concat", ["n", "rest"], ["target"], axis=0),
        node("Reshape", ["x", "target"], ["flat"]),
        node("Add", ["flat", "one"], ["y"]),
    ]
    weights = {"zero": np.array([0]), "rest": np.array([-1]), "one": np.float32(1)}
    return model(nodes, [("x", F32, ("n", 2, 2))], ["y"], **weights)


def test_with_shapes_only_computing_is_left() -> None:
    found = lowered(flattening(), [(5, 2, 2)])
    assert found.dynamic == []
    assert calls(found) == ["reshape", "add"]
    assert found.weights == {}  # numbers are in the code
    assert "[5, -1]" in found.module.code


def test_without_shapes_they_are_asked_for_at_run_time() -> None:
    found = lowered(flattening())
    assert found.dynamic == ["its sizes are open"]
    assert calls(found)[:2] == ["shape", "gather"]
    for size in (1, 4):
        x = np.ones((size, 2, 2), np.float32)
        (y,) = run_lowered(found, [x])
        np.testing.assert_array_equal(y, x.reshape(size, 4) + 1)


def test_what_depends_on_data_makes_a_graph_dynamic_and_says_so() -> None:
    proto = model([node("NonZero", ["x"], ["y"])], [X], [("y", I64, None)])
    found = lowered(proto, [(2, 3)])
    assert found.dynamic == ["NonZero 'y' has sizes that depend on data"]
    (y,) = run_lowered(found, [np.array([[0, 1, 0], [1, 0, 0]], np.float32)])
    assert y.tolist() == [[0, 1], [1, 0]]


def test_sizes_that_an_input_decides_are_asked_for() -> None:
    proto = model([node("Expand", ["x", "s"], ["y"])], [X, ("s", I64, (2,))], ["y"])
    found = lowered(proto, [(1, 3), (2,)])
    assert found.dynamic == ["Expand asks for 'shape', which depends on data"]
    (y,) = run_lowered(found, [np.ones((1, 3), np.float32), np.array([4, 3])])
    assert y.shape == (4, 3)


def test_weights_keep_their_names_and_computed_constants_tell_what_they_are() -> None:
    nodes = [
        node("Transpose", ["w.a"], ["t"]),
        node("MatMul", ["x", "w.a"], ["a"]),
        node("MatMul", ["a", "t"], ["y"]),
    ]
    weight = np.arange(6, dtype=np.float32).reshape(3, 2)
    found = lowered(model(nodes, [X], ["y"], **{"w.a": weight}), [(1, 3)])
    names = {attribute: weight.name for attribute, weight in found.weights.items()}
    assert names["w_a"] == "w.a"
    (computed,) = set(names.values()) - {"w.a"}
    assert computed.startswith("t#")
    np.testing.assert_array_equal(found.constants[computed], weight.T)


def positions(size: int) -> str:
    """The name of a constant that follows from a shape."""
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("ConstantOfShape", ["s"], ["zeros"]),
        node("Concat", ["x", "zeros"], ["y"], axis=0),
    ]
    found = lowered(model(nodes, [X], ["y"]), [(size, 3)])
    (weight,) = found.weights.values()
    return weight.name


def test_constants_of_other_shapes_have_other_names() -> None:
    assert positions(2) == positions(2)
    assert positions(2) != positions(3)


def test_equal_bytes_of_another_shape_have_another_name() -> None:
    one, other = (lower_module.Known(torch.zeros(shape), "z") for shape in ((2, 3), (3, 2)))
    assert one.unique_name != other.unique_name
    assert lower_module.Known(torch.zeros(1).expand(1), "z").unique_name.startswith("z#")


def test_a_weight_that_may_change_is_not_computed_with() -> None:
    nodes = [node("Transpose", ["w"], ["t"]), node("MatMul", ["x", "t"], ["y"])]
    proto = model(nodes, [X], ["y"], w=np.ones((2, 3), np.float32))
    found = lowered(proto, [(1, 3)], Target(torch.device("cpu"), variable=frozenset({"w"})))
    assert [weight.name for weight in found.weights.values()] == ["w"]
    assert found.constants == {}
    assert "transpose" in calls(found)


def test_what_would_grow_large_is_computed_at_run_time(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = [node("Expand", ["w", "shape"], ["wide"]), node("Add", ["x", "wide"], ["y"])]
    weights = {"w": np.ones((1, 1), np.float32), "shape": np.array([50, 3])}
    proto = model(nodes, [X], ["y"], **weights)
    assert calls(lowered(proto, [(50, 3)])) == ["add"]
    monkeypatch.setattr(lower_module, "_LARGE_BYTES", 100)
    assert calls(lowered(proto, [(50, 3)])) == ["expand", "add"]


def test_an_attribute_may_be_a_tensor() -> None:
    value = ir.to_proto(ir.Tensor(np.array([7], np.int64)))
    made = node("ConstantOfShape", ["s"], ["y"], value=value)
    found = lowered(model([made], [("s", I64, (2,))], [("y", I64, None)]))
    (y,) = run_lowered(found, [np.array([1, 2])])
    assert y.tolist() == [[7, 7]]


def test_outputs_that_nobody_names_are_left_out() -> None:
    nodes = [node("TopK", ["x", "k"], ["", "y"])]
    proto = model(nodes, [X], [("y", I64, None)], k=np.array([1]))
    for shapes in ([(1, 3)], None):
        (y,) = run_lowered(lowered(proto, shapes), [np.array([[1, 3, 2]], np.float32)])
        assert y.tolist() == [[1]]


@pytest.mark.parametrize("name", ["graph", "code", "meta", "recompile", "class", "self", "None"])
def test_weights_and_inputs_may_have_names_that_modules_and_python_have(name: str) -> None:
    x, w = np.ones((1, 3), np.float32), np.ones((3, 2), np.float32)
    weight = model([node("MatMul", ["x", name], ["y"])], [X], ["y"], **{name: w})
    given = model([node("MatMul", [name, "w"], ["y"])], [(name, F32, ("n", 3))], ["y"], w=w)
    for proto in (weight, given):
        np.testing.assert_array_equal(run_lowered(lowered(proto, [(1, 3)]), [x])[0], x @ w)


def test_an_input_that_is_an_output_is_passed_through() -> None:
    found = lowered(model([], [X], [("x", F32, ("n", 3))]), [(1, 3)])
    (y,) = run_lowered(found, [np.ones((1, 3), np.float32)])
    assert y.tolist() == [[1, 1, 1]]


# --- half precision and layouts ---


def product_and_exponent() -> Any:
    nodes = [
        node("MatMul", ["x", "w"], ["p"]),
        node("Relu", ["p"], ["r"]),
        node("Exp", ["r"], ["e"]),
        node("Add", ["e", "r"], ["y"]),
    ]
    return model(nodes, [X], [("y", F32, None)], w=np.eye(3, dtype=np.float32))


def test_products_are_computed_in_half_and_exponents_are_not() -> None:
    found = lowered(product_and_exponent(), [(1, 3)], HALF)
    assert calls(found) == ["narrow", "matmul", "relu", "widen", "exp", "widen", "add"]
    assert found.weights == {"w": Weight("w", torch.float16)}
    (y,) = run_lowered(found, [np.zeros((1, 3), np.float32)])
    assert y.dtype == torch.float32
    assert y.tolist() == [[1, 1, 1]]


def test_an_output_has_the_type_that_the_model_declares() -> None:
    nodes = [node("MatMul", ["x", "w"], ["y"])]
    proto = model(nodes, [X], [("y", F32, None)], w=np.eye(3, dtype=np.float32))
    (y,) = run_lowered(lowered(proto, [(1, 3)], HALF), [np.ones((1, 3), np.float32)])
    assert y.dtype == torch.float32


def test_a_dynamic_graph_stays_in_float32() -> None:
    nodes = [
        node("MatMul", ["x", "w"], ["p"]),
        node("NonZero", ["p"], ["places"]),
        node("Transpose", ["places"], ["rows"]),
        node("GatherND", ["p", "rows"], ["picked"]),
        node("Add", ["picked", "one"], ["y"]),
    ]
    weights = {"w": np.eye(3, dtype=np.float32), "one": np.ones(1, np.float32)}
    found = lowered(model(nodes, [X], ["y"], **weights), [(1, 3)], HALF)
    assert found.dynamic
    assert {weight.dtype for weight in found.weights.values()} == {torch.float32}
    (y,) = run_lowered(found, [np.array([[0, 5, 6]], np.float32)])
    assert y.tolist() == [6, 7]


def test_weights_are_laid_out_for_a_card_alone() -> None:
    proto = product_and_exponent()
    assert lowered(proto, [(1, 3)], CARD).weights["w"].layout == "transposed"
    assert lowered(proto, [(1, 3)]).weights["w"].layout == ""


def test_small_constants_of_a_dynamic_graph_for_a_card_stay_on_the_host() -> None:
    nodes = [node("Gather", ["x", "at"], ["y"], axis=1)]
    proto = model(nodes, [X], ["y"], at=np.array([0, 2]))
    assert lowered(proto, None, CARD).weights["at"].on_host
    assert not lowered(proto, [(1, 3)], CARD).weights["at"].on_host


# --- sequences ---


def sequence_nodes() -> Sequence[Any]:
    return [
        node("SequenceConstruct", ["x", "x"], ["pair"]),
        node("SequenceLength", ["pair"], ["count"]),
        node("SequenceInsert", ["pair", "w"], ["three"]),
        node("ConcatFromSequence", ["three"], ["joined"], axis=0),
        node("Cast", ["count"], ["number"], to=F32),
        node("Add", ["joined", "number"], ["y"]),
    ]


def test_sequences_are_static_where_their_lengths_are() -> None:
    proto = model(sequence_nodes(), [X], ["y"], w=np.ones((1, 3), np.float32))
    found = lowered(proto, [(1, 3)])
    assert found.dynamic == []
    for one in (found, lowered(proto)):
        (y,) = run_lowered(one, [np.zeros((1, 3), np.float32)])
        assert y.tolist() == [[2] * 3, [2] * 3, [3] * 3]


# --- errors ---


def test_all_operators_without_a_kernel_are_named_at_once() -> None:
    nodes = [
        node("StringConcat", ["x", "x"], ["a"], name="joins"),
        node("Nonsense", ["a"], ["y"], domain="some.where", name="does"),
    ]
    proto = model(nodes, [X], ["y"], domains={"some.where": 1})
    with pytest.raises(UnsupportedOpError) as caught:
        lowered(proto, [(1, 3)])
    for words in ("StringConcat (node 'joins')", "some.where::Nonsense (node 'does')", "engine="):
        assert words in str(caught.value)


def test_an_error_of_torch_names_the_node(caplog: pytest.LogCaptureFixture) -> None:
    nodes = [node("MatMul", ["x", "w"], ["y"], name="mul")]
    proto = model(nodes, [X], ["y"], w=np.ones((4, 2), np.float32))
    with pytest.raises(EngineError, match=r"node 'mul' \(MatMul\): torch cannot compute it: ."):
        lowered(proto, [(1, 3)])
    assert not caplog.records  # all is said


def test_an_attribute_that_no_kernel_knows_is_refused() -> None:
    proto = model([node("Relu", ["x"], ["y"], name="r", wild=1)], [X], ["y"])
    with pytest.raises(UnsupportedOpError, match=r"node 'r' \(Relu\): attribute 'wild' of Relu"):
        lowered(proto, [(1, 3)])


def test_strings_are_refused_in_words() -> None:
    proto = model([node("Identity", ["w"], ["y"], name="i")], [X], ["y"], w=np.array(["a"]))
    with pytest.raises(UnsupportedOpError, match="torch has no tensors of"):
        lowered(proto, [(1, 3)])


def test_filling_a_graph_puts_every_parameter_in() -> None:
    found = lowered(product_and_exponent(), [(1, 3)])
    assert found.module.w.numel() == 0
    fill(found)
    assert found.module.w.shape == (3, 3)
