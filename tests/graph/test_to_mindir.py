"""What a model is called and what it says about itself survives the way through a MindIR file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.running import assert_close, run_graph

from mindspore_lite.graph.from_mindir import from_mindir
from mindspore_lite.graph.to_mindir import Written, to_mindir
from mindspore_lite.mindir.read import read, read_file
from mindspore_lite.mindir.records import local_name
from mindspore_lite.mindir.write import pieces, write_file
from mindspore_lite.passes.infer_shapes import infer_shapes

FLOAT = ir.TensorType(ir.DataType.FLOAT)


def value(name: str, shape: Any = (2, 3), kind: ir.TypeProtocol = FLOAT) -> ir.Value:
    return ir.Value(name=name, type=kind, shape=None if shape is None else ir.Shape(shape))


def weight(name: str, array: np.ndarray) -> ir.Value:
    return ir.val(name, const_value=ir.Tensor(array, name=name))


def model(
    inputs: list[ir.Value], nodes: list[ir.Node], outputs: list[ir.Value], *weights: ir.Value,
    **more: Any,
) -> ir.Model:  # fmt: skip
    graph = ir.Graph(
        inputs, outputs, nodes=nodes, initializers=weights, opset_imports={"": 21}, name="g"
    )
    made = ir.Model(graph, ir_version=10, **more)
    infer_shapes(made)
    return made


def through(source: ir.Model) -> ir.Model:
    content = b"".join(bytes(piece) for piece in pieces(to_mindir(source).model))
    return from_mindir(read(memoryview(content)))


def dense(**names: str) -> ir.Model:
    """y = x @ w + b, everything named by the caller."""
    x = value(names.get("x", "x"), [names.get("dim", "batch"), 2])
    w = weight(names.get("w", "w"), np.asarray([[1, 2, 3], [4, 5, 6]], np.float32))
    b = weight(names.get("b", "b"), np.asarray([1, 1, 1], np.float32))
    node = ir.node("Gemm", [x, w, b], name=names.get("node", "fc"))
    node.outputs[0].name = names.get("y", "y")
    metadata = {"author": "me", "labels": '{"0": "cat"}'}
    return model([x], [node], list(node.outputs), w, b, metadata_props=metadata)


def test_names_of_inputs_outputs_and_weights_stay() -> None:
    back = through(dense(x="image:0", y="scores:0", w="fc/w:0", b="fc.bias", node="fc:1"))
    assert [v.name for v in back.graph.inputs] == ["image:0"]
    assert [v.name for v in back.graph.outputs] == ["scores:0"]
    assert sorted(back.graph.initializers) == ["fc.bias", "fc/w:0"]


_NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=12)


@settings(deadline=None, max_examples=30)
@given(st.lists(_NAMES, min_size=4, max_size=4, unique=True))
def test_any_names_stay(names: list[str]) -> None:
    x, y, w, b = names
    back = through(dense(x=x, y=y, w=w, b=b, node=x))
    assert [v.name for v in back.graph.inputs] == [x]
    assert [v.name for v in back.graph.outputs] == [y]
    assert set(back.graph.initializers) == {w, b}


def test_open_dims_keep_their_names_and_metadata_stays() -> None:
    back = through(dense(dim="batch"))
    assert back.graph.inputs[0].shape == ir.Shape(["batch", 2])
    assert json.loads(back.metadata_props["user_info"]) == {
        "author": "me",
        "labels": '{"0": "cat"}',
    }


def test_a_second_way_through_a_file_changes_nothing_any_more() -> None:
    once = through(dense())
    infer_shapes(once)
    twice = through(once)
    assert twice.metadata_props["user_info"] == once.metadata_props["user_info"]
    assert [n.op_type for n in twice.graph] == [n.op_type for n in once.graph]
    assert twice.graph.inputs[0].shape == once.graph.inputs[0].shape


@pytest.mark.parametrize("text", ["no JSON", "[]", '{"a": 1}'])
def test_metadata_that_only_looks_like_ours_stays_as_it_is(text: str) -> None:
    source = dense()
    source.producer_name, source.metadata_props["user_info"] = "mslite", text
    back = through(source)
    assert json.loads(back.metadata_props["user_info"])["user_info"] == text


@pytest.mark.parametrize(
    "dtype",
    [np.float16, np.float32, np.float64, np.int8, np.int32, np.int64, np.uint8, np.bool_],
)
def test_element_types_stay(dtype: type) -> None:
    kind = ir.TensorType(ir.DataType.from_numpy(np.dtype(dtype)))
    x, w = value("x", [3], kind), weight("w", np.ones(3, dtype))
    node = ir.node("Equal", [x, w])
    back = through(model([x], [node], list(node.outputs), w))
    assert back.graph.inputs[0].dtype == kind.dtype
    assert back.graph.initializers["w"].dtype == kind.dtype


def test_a_weight_of_a_type_that_mindir_lacks_travels_in_a_node() -> None:
    x = value("x", [2])
    w = weight("w", np.asarray([1.5, -2], ml_dtypes.float8_e4m3fn))
    cast = ir.node("Cast", [w], {"to": 1})
    add = ir.node("Add", [x, cast.outputs[0]])
    source = model([x], [cast, add], list(add.outputs), w)
    (found,) = run_graph(through(source), np.asarray([1, 1], np.float32))
    np.testing.assert_array_equal(found, np.asarray([2.5, -1], np.float32))


def test_an_input_of_unknown_rank_stays_so() -> None:
    x = value("x", None)
    node = ir.node("Relu", [x])
    records = to_mindir(model([x], [node], list(node.outputs))).model
    kind: Any = records.graph.inputs[0].type
    assert kind.shape is None


def test_an_input_that_is_an_output_is_both_under_its_name() -> None:
    x = value("x")
    node = ir.node("Relu", [x])
    node.outputs[0].name = "y"
    back = through(model([x], [node], [x, *node.outputs]))
    assert [v.name for v in back.graph.outputs] == ["x", "y"]
    given = -np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(run_graph(back, given)[0], given)


def test_a_target_of_zeros_that_is_an_output_too_still_copies_dims() -> None:
    x, target = value("x"), ir.tensor(np.asarray([0, -1]), name="target")
    constant = ir.node("Constant", [], {"value": target})
    constant.outputs[0].name = "target"
    node = ir.node("Reshape", [x, constant.outputs[0]])
    back = through(model([x], [constant, node], [constant.outputs[0], *node.outputs]))
    assert run_graph(back, np.ones((2, 3), np.float32))[1].shape == (2, 3)


def test_inner_values_keep_the_names_of_open_dims() -> None:
    """Else ONNX Runtime joins no Add to a layer normalisation behind a Reshape."""
    x, w = value("x", ["batch", 2, 3]), weight("w", np.asarray([-1, 2, 3]))
    flat = ir.node("Reshape", [x, w])
    flat.outputs[0].shape = ir.Shape(["batch", 2, 3])
    total = ir.node("Add", [x, flat.outputs[0]])
    back = through(model([x], [flat, total], list(total.outputs), w))
    shapes = {n.op_type: n.outputs[0].shape for n in back.graph}
    assert shapes["Reshape"] == ir.Shape(["batch", 2, 3])


def test_an_input_handed_through_and_a_repeated_output_are_outputs_of_their_own() -> None:
    x = value("x")
    node = ir.node("Identity", [x])
    node.outputs[0].name = "y"
    back = through(model([x], [node], list(node.outputs)))
    assert [v.name for v in back.graph.outputs] == ["y"]
    np.testing.assert_array_equal(
        run_graph(back, np.ones((2, 3), np.float32))[0], np.ones((2, 3), np.float32)
    )


def test_a_weight_that_is_also_an_output_is_written() -> None:
    x, w = value("x"), weight("w", np.ones(2, np.float32))
    node = ir.node("Relu", [x])
    back = through(model([x], [node], [node.outputs[0], w], w))
    assert [v.name for v in back.graph.outputs][1] == "w"
    np.testing.assert_array_equal(run_graph(back, np.ones((2, 3), np.float32))[1], [1, 1])


def test_what_became_custom_is_told_with_the_nodes() -> None:
    x = value("x", [1, 3])
    nodes = [ir.node("Multinomial", [x], {"sample_size": 2}, name=f"draw{i}") for i in range(2)]
    outputs = [node.outputs[0] for node in nodes]
    written = to_mindir(model([x], nodes, outputs))
    assert written.custom == {"Multinomial: MindSpore draws other numbers": ["draw0", "draw1"]}
    assert written.primitives["Custom"] == 2


def branches(written: Written) -> list[str]:
    return sorted(written.model.functions)


def conditional() -> ir.Model:
    """y = x @ w, then + b (a weight) or * y (computed outside) by the flag."""
    flag = value("flag", [], ir.TensorType(ir.DataType.BOOL))
    x, w, b = (
        value("x", [2, 3]),
        weight("w", np.eye(3, dtype=np.float32) * 2),
        weight("b", np.asarray([1, 2, 3], np.float32)),
    )
    product = ir.node("MatMul", [x, w])
    y = product.outputs[0]
    add, mul = ir.node("Add", [y, b]), ir.node("Mul", [y, y])
    y.name, add.outputs[0].name, mul.outputs[0].name = "y", "sum", "square"
    graphs = [
        ir.Graph([], list(n.outputs), nodes=[n], name=f"g{i}") for i, n in enumerate((add, mul))
    ]
    chosen = ir.node(
        "If", [flag], {"then_branch": graphs[0], "else_branch": graphs[1]}, name="choice"
    )
    chosen.outputs[0].name = "out"
    return model([flag, x], [product, chosen], list(chosen.outputs), w, b)


def test_a_choice_is_written_as_graphs_and_read_as_one(tmp_path: Path) -> None:
    source = conditional()
    want = {
        flag: run_graph(conditional(), np.asarray(flag), np.ones((2, 3), np.float32))[0]
        for flag in (True, False)
    }
    written = to_mindir(source)
    assert branches(written) == ["choice_else", "choice_then"]
    assert not written.custom
    (path,) = write_file(written.model, tmp_path / "if.mindir")
    for flag in (True, False):
        back = from_mindir(read_file(path))
        (found,) = run_graph(back, np.asarray(flag), np.ones((2, 3), np.float32))
        assert_close(found, want[flag])


def test_weights_are_parameters_of_the_main_graph_whoever_uses_them() -> None:
    records = to_mindir(conditional()).model
    assert sorted(local_name(w.name) for w in records.graph.parameters) == ["b", "w"]
