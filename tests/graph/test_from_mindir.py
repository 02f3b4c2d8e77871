"""graph/from_mindir.py: the walk over a model, from names to outputs."""

from __future__ import annotations

import json

import numpy as np
import pytest
from support.mindir_builder import Net, tensor_type
from support.running import op_types, run

from mindspore_lite.core.budget import Budget
from mindspore_lite.errors import ModelFileError, UnsupportedOpError
from mindspore_lite.graph.from_mindir import from_mindir
from mindspore_lite.mindir import records as r

X = np.array([[1, -2, 3], [4, 5, -6]], np.float32)
W = np.array([10, 20, 30], np.float32)


def initializers(model: r.Model) -> list[str]:
    return list(from_mindir(model).graph.initializers)


# --- names and weights ----------------------------------------------------------------------------


def test_weights_keep_the_names_of_the_network() -> None:
    net = Net()
    y = net.call("Add", net.input("x", (2, 3)), net.weight("layer1.0.bias", W))
    assert initializers(net.model(y)) == ["layer1.0.bias"]


def test_unused_weights_are_dropped() -> None:
    net = Net()
    net.weight("unused", np.zeros(500, np.float32))
    y = net.call("Add", net.input("x", (2, 3)), net.weight("used", W))
    assert initializers(net.model(y)) == ["used"]


def test_nodes_without_effect_are_dropped() -> None:
    net = Net()
    x = net.input("x", (2, 3))
    net.call("Exp", x)
    assert op_types(from_mindir(net.model(net.call("Neg", x)))) == ["Neg"]


def test_a_cast_to_its_own_type_is_no_node() -> None:
    net = Net()
    x = net.input("x", (2, 3))
    y = net.call("Neg", net.call("Cast", x, net.constant(43)))
    assert op_types(from_mindir(net.model(y))) == ["Neg"]


def test_equal_small_constants_are_stored_once() -> None:
    net = Net()
    x = net.input("x", (2, 3))
    one = net.call("Add", x, net.constant(np.array(7, np.float32)))
    two = net.call("Add", one, net.constant(np.array(7, np.float32)))
    assert len(initializers(net.model(two))) == 1


def test_a_large_constant_is_named_after_its_node() -> None:
    net = Net()
    big = net.constant(np.ones((10, 10), np.float32))
    y = net.call("Add", net.input("x", (10, 10)), big)
    assert initializers(net.model(y)) == [big]


def test_nodes_are_named_after_their_place_in_the_network() -> None:
    net = Net()
    y = net.call("Neg", net.input("x", (2, 3)), scope="Default/layer1/Neg-op0")
    (node,) = from_mindir(net.model(y)).graph
    assert (node.name, node.outputs[0].name) == ("Default/layer1/Neg-op0",) * 2


def test_all_names_are_unique_whatever_the_file_says() -> None:
    """Inputs, weights and scopes that share a name, within a graph and across calls."""
    inner = Net("inner")
    v = inner.input("same", (2, 3))
    inner_y = inner.call("Add", v, v, scope="same")
    net = Net()
    x, z = net.input("a", (2, 3), given_name="same"), net.input("b", (2, 3), given_name="same")
    y = net.call("Add", x, net.weight("same", W), scope="same")
    for _ in range(2):
        y = net.call(r.GraphRef("inner"), y)
    model = from_mindir(net.model(net.call("Add", y, z), functions=[inner.graph(inner_y)]))
    names = [v.name for v in model.graph.inputs] + list(model.graph.initializers)
    names += [v.name for node in model.graph for v in node.outputs]
    assert len(names) == len(set(names))
    assert [v.name for v in model.graph.inputs] == ["same.1", "same.2"]


def test_the_model_tells_who_made_it() -> None:
    net = Net()
    model = net.model(net.call("Neg", net.input("x", (2,))), user_info={"version": "7"})
    found = from_mindir(model).metadata_props
    assert found["producer"] == "MindSpore 2.10.0"
    assert json.loads(found["user_info"]) == {"version": "7"}


# --- inputs ---------------------------------------------------------------------------------------


def test_inputs_keep_names_types_and_unknown_dims() -> None:
    net = Net()
    x = net.input("x", (-1, 3), given_name="image")
    y = net.input("y", (2,), np.int64)
    model = from_mindir(net.model(net.tuple(net.call("Neg", x), net.call("Neg", y))))
    first, second = model.graph.inputs
    assert (first.name, str(first.shape)) == ("image", "[image_0,3]")
    assert (second.name, second.dtype.numpy(), list(second.shape)) == ("y", np.int64, [2])  # type: ignore[union-attr,arg-type]


def test_an_unused_input_stays() -> None:
    net = Net()
    net.input("unused", (2,))
    model = from_mindir(net.model(net.call("Neg", net.input("x", (2,)))))
    assert [v.name for v in model.graph.inputs] == ["unused", "x"]


def test_effect_tokens_are_no_inputs() -> None:
    net = Net()
    u = net.input("u", type=r.OtherType("UMonadType"))
    model = net.model(net.call("Load", net.input("x", (2, 3)), u))
    (got,) = run(model, X)
    np.testing.assert_array_equal(got, X)


def test_a_tuple_as_input_is_one_input_per_element() -> None:
    net = Net()
    kinds = (tensor_type((2,)), r.SequenceType((tensor_type((), np.int64, is_scalar=True),)))
    pair = net.input("pair", type=r.SequenceType(kinds))
    model = net.model(net.call("TupleGetItem", pair, net.constant(1)), pair)
    assert [i.name for i in from_mindir(model).graph.inputs] == ["pair_0", "pair_1_0"]
    number, again, one = run(model, np.ones(2, np.float32), np.asarray(7))
    assert (number, again.tolist(), one) == (7, [1, 1], 7)


def test_a_tuple_of_any_length_as_input_is_refused() -> None:
    net = Net()
    many = net.input("many", type=r.SequenceType((tensor_type(()),), dynamic_length=True))
    with pytest.raises(UnsupportedOpError, match="input 'many' is a tuple of any length"):
        from_mindir(net.model(many))


def test_input_shapes_replace_those_of_the_file() -> None:
    net = Net()
    x = net.input("x", (2, 3))
    model = net.model(net.call("Neg", x, type=tensor_type((2, 3))))
    graph = from_mindir(model, {"x": (None, 5)}).graph
    assert str(graph.inputs[0].shape) == "[x_0,5]"
    assert graph.outputs[0].shape is None or not graph.outputs[0].shape.is_static()
    (got,) = run(model, np.ones((7, 5), np.float32), input_shapes={"x": (None, 5)})
    assert got.shape == (7, 5)


def test_input_shapes_go_by_the_name_that_callers_see() -> None:
    """A weight took the name of the input, which then is called x.1."""
    net = Net()
    x = net.input("a", (2, 3), given_name="x")
    model = net.model(net.call("Add", x, net.weight("x", W)))
    (found,) = from_mindir(model, {"x.1": (9, 3)}).graph.inputs
    assert (found.name, list(found.shape)) == ("x.1", [9, 3])  # type: ignore[arg-type]


def test_pads_of_same_are_computed_anew_for_other_shapes() -> None:
    """The pads in the file hold for the exported size alone."""
    net = Net()
    x, w = net.input("x", (1, 1, 5, 5)), net.weight("w", np.ones((1, 1, 3, 3), np.float32))
    y = net.call("Conv2D", x, w, pad_mode="same", stride=(1, 1, 2, 2), dilation=(1, 1, 1, 1),
                 pad_list=(1, 1, 1, 1), group=1, type=tensor_type((1, 1, 3, 3)))  # fmt: skip
    wide = np.ones((1, 1, 6, 6), np.float32)
    (got,) = run(net.model(y), wide, input_shapes={"x": (1, 1, 6, 6)})
    np.testing.assert_array_equal(got[0, 0], [[9, 9, 6], [9, 9, 6], [6, 6, 4]])


# --- outputs --------------------------------------------------------------------------------------


def test_nested_tuples_are_flattened_in_order() -> None:
    net = Net()
    x = net.input("x", (2, 3))
    neg, absolute, exp = (net.call(op, x) for op in ("Neg", "Abs", "Exp"))
    got = run(net.model(net.tuple(neg, net.tuple(net.tuple(absolute), exp))), X)
    for value, wanted in zip(got, (-X, np.abs(X), np.exp(X)), strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-6)


def test_several_outputs_of_the_graph_are_several_outputs() -> None:
    net = Net()
    x = net.input("x", (2, 3))
    first, second = run(net.model(net.call("Neg", x), net.call("Abs", x)), X)
    np.testing.assert_array_equal(first, -X)
    np.testing.assert_array_equal(second, np.abs(X))


def test_constants_among_the_outputs_are_given_and_words_are_not() -> None:
    net = Net()
    parts = [net.constant(v) for v in (3, 2.5, True, None, "text", np.array([1, 2], np.int32))]
    got = run(net.model(net.tuple(net.call("Neg", net.input("x", (2, 3))), *parts)), X)
    assert [(g.dtype.name, g.tolist()) for g in got[1:]] == [
        ("int64", 3), ("float32", 2.5), ("bool", True), ("int32", [1, 2]),
    ]  # fmt: skip


def test_a_weight_and_an_input_may_be_outputs() -> None:
    net = Net()
    x = net.input("x", (2, 3))
    got = run(net.model(net.tuple(net.weight("w", W), x)), X)
    np.testing.assert_array_equal(got[0], W)
    np.testing.assert_array_equal(got[1], X)


def test_a_value_returned_twice_is_two_outputs() -> None:
    net = Net()
    y = net.call("Neg", net.input("x", (2, 3)))
    model = net.model(net.tuple(y, y))
    first, second = run(model, X)
    np.testing.assert_array_equal(first, second)
    assert len({value.name for value in from_mindir(model).graph.outputs}) == 2


def test_outputs_that_are_handed_through_know_type_and_shape() -> None:
    net = Net()
    x = net.input("x", (2, 3))
    (value,) = from_mindir(net.model(x)).graph.outputs
    assert (value.dtype.numpy(), list(value.shape)) == (np.float32, [2, 3])  # type: ignore[union-attr,arg-type]


@pytest.mark.parametrize("value", [None, "text", (), (None, "a")], ids=repr)
def test_a_model_without_a_tensor_to_return_is_refused(value: object) -> None:
    net = Net()
    with pytest.raises(ModelFileError, match="the model returns no tensor"):
        from_mindir(net.model(net.constant(value)))


# --- what is missing ------------------------------------------------------------------------------


def test_one_error_lists_all_missing_primitives_with_their_nodes() -> None:
    net = Net()
    x = net.input("x", (2, 3))
    for i in range(7):
        x = net.call("FancyOp", net.call("Neg", net.input(f"i{i}", (2, 3))), scope=f"Default/f{i}")
    y = net.call("OtherOp", net.input("z", (2, 3)), scope="Default/other")
    bad = net.call("Softmax", net.input("v", (2, 3)), axis=(9,), scope="Default/soft")
    after = net.call("Add", x, bad, scope="Default/after")
    with pytest.raises(UnsupportedOpError) as caught:
        from_mindir(net.model(net.tuple(x, y, after)))
    text = str(caught.value)
    assert "the model needs 3 thing(s) that are not implemented:" in text
    first = "Default/f0, Default/f1, Default/f2, Default/f3, Default/f4 and 2 more"
    assert f"FancyOp (at {first})" in text
    assert "OtherOp (at Default/other)" in text
    assert "Softmax: axis 9 does not exist in a tensor of 2 dims (at Default/soft)" in text
    assert "Default/after" not in text  # it only follows from the others
    assert "CONTRIBUTING.md" in text


def test_a_node_without_a_place_is_named_by_its_own_name() -> None:
    net = Net()
    y = net.call("FancyOp", net.input("x", (2, 3)))
    with pytest.raises(UnsupportedOpError, match=r"FancyOp \(at node\)"):
        from_mindir(net.model(y))


def test_an_unknown_op_that_nothing_needs_is_still_refused() -> None:
    """It might have an effect."""
    net = Net()
    x = net.input("x", (2, 3))
    net.call("FancyOp", x)
    with pytest.raises(UnsupportedOpError, match="FancyOp"):
        from_mindir(net.model(net.call("Neg", x)))


@pytest.mark.parametrize(
    "call", [("Load",), ("TupleGetItem",), ("Depend",), ("TensorMove",)], ids=lambda c: c[0]
)
def test_a_structural_node_without_inputs_is_refused(call: tuple[str]) -> None:
    net = Net()
    net.input("x", (2, 3))
    with pytest.raises(UnsupportedOpError, match="Default/odd"):
        from_mindir(net.model(net.call(*call, scope="Default/odd")))


@pytest.mark.parametrize("index", ["text", None, {"a": 1}, (1, 2)], ids=repr)
def test_an_odd_index_into_a_tuple_is_refused(index: object) -> None:
    net = Net()
    pair = net.tuple(net.input("x", (2,)), net.input("y", (2,)))
    with pytest.raises(UnsupportedOpError, match="Default/odd"):
        from_mindir(
            net.model(net.call("TupleGetItem", pair, net.constant(index), scope="Default/odd"))
        )


def test_a_value_used_before_it_is_defined_is_refused() -> None:
    net = Net()
    later = "net:node:2"
    net.call("Neg", later)
    assert net.call("Neg", net.input("x", (2, 3))) == later
    with pytest.raises(ModelFileError, match="'net:node:2' is used before it is defined"):
        from_mindir(net.model(later))


# --- calls of graphs ------------------------------------------------------------------------------


def scaled(factor: int) -> r.Graph:
    inner = Net("inner")
    v = inner.input("v", (2, 3))
    return inner.graph(inner.call("Muls", v, inner.constant(factor), scope="Default/mul"))


def test_a_called_graph_is_inlined_at_each_call() -> None:
    net = Net()
    y = net.input("x", (2, 3))
    for _ in range(3):
        y = net.call(r.GraphRef("inner"), y)
    model = net.model(y, functions=[scaled(2)])
    assert op_types(from_mindir(model)) == ["Mul"] * 3
    (got,) = run(model, X)
    np.testing.assert_array_equal(got, X * 8)


def test_a_called_graph_may_return_several_values() -> None:
    inner = Net("inner")
    v = inner.input("v", (2, 3))
    pair = inner.graph(inner.call("Neg", v), inner.call("Abs", v))
    net = Net()
    both = net.call(r.GraphRef("inner"), net.input("x", (2, 3)))
    second = net.call("TupleGetItem", both, net.constant(1))
    (got,) = run(net.model(second, functions=[pair]), X)
    np.testing.assert_array_equal(got, np.abs(X))


def test_a_called_graph_may_use_values_of_the_main_graph_and_constants_of_others() -> None:
    inner = Net("inner")
    v = inner.input("v", (2, 3))
    net = Net()
    x, weight, two = net.input("x", (2, 3)), net.weight("w", W), net.constant(2)
    result = inner.call("Add", inner.call("Muls", v, two), inner.call("Add", x, weight))
    y = net.call(r.GraphRef("inner"), x)
    (got,) = run(net.model(y, functions=[inner.graph(result)]), X)
    np.testing.assert_array_equal(got, X * 2 + X + W)


def test_a_call_with_the_wrong_number_of_arguments_is_refused() -> None:
    net = Net()
    x = net.input("x", (2, 3))
    model = net.model(net.call(r.GraphRef("inner"), x, x), functions=[scaled(2)])
    with pytest.raises(UnsupportedOpError, match="'inner' cannot be called with 2 arguments"):
        from_mindir(model)


def test_graphs_that_multiply_when_inlined_are_refused() -> None:
    """Each graph calls the one before twice: 2**30 nodes from thirty graphs."""
    graphs = [scaled(2)]
    for i in range(30):
        net = Net(f"g{i}")
        y = net.input("v", (2, 3))
        for _ in range(2):
            y = net.call(r.GraphRef(graphs[-1].name), y)
        graphs.append(net.graph(y))
    main = Net()
    y = main.call(r.GraphRef(graphs[-1].name), main.input("x", (2, 3)))
    with pytest.raises(ModelFileError, match="more than 1000 nodes once inlined"):
        from_mindir(main.model(y, functions=graphs), budget=Budget(max_nodes=1000))


def test_a_long_chain_without_types_does_not_exhaust_the_stack() -> None:
    net = Net()
    y = net.input("x", (2, 3))
    for _ in range(3000):
        y = net.call("Neg", y)
    bias = net.call("BiasAdd", y, net.weight("b", W))  # asks for the rank, at the very end
    assert len(op_types(from_mindir(net.model(bias)))) == 3001


def test_an_output_that_makes_no_sense_is_refused() -> None:
    net = Net()
    x = net.input("x", (2,), np.uint16)
    with pytest.raises(UnsupportedOpError, match=r"output: .* the end of the graph"):
        from_mindir(net.model(net.call("Complex", x, x)))
