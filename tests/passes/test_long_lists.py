"""Shape inference tells what it told, and takes no longer for lists of any length."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper

from mindspore_lite.passes.long_lists import BUDGET, inferred


def _model(*nodes: NodeProto, x: list[int | str], more: Sequence[TensorProto] = ()) -> ModelProto:
    graph = helper.make_graph(
        list(nodes),
        "g",
        [helper.make_tensor_value_info("x", TensorProto.INT64, x)],
        [helper.make_tensor_value_info("y", TensorProto.INT64, None)],
        list(more),
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])


def _dims(value: ValueInfoProto) -> list[int | str]:
    return [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim]


def _y(graph: GraphProto) -> list[int | str]:
    return _dims(graph.output[0])


def test_numbers_are_followed_from_a_shape_to_a_target() -> None:
    made = _model(
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Concat", ["shape", "one"], ["target"], axis=0),
        helper.make_node("Reshape", ["x", "target"], ["y"]),
        x=["n", 7],
        more=[helper.make_tensor("one", TensorProto.INT64, [1], [1])],
    )
    assert _y(inferred(made).graph) == ["n", 7, 1]


def test_a_list_that_doubles_without_end_is_not_written_down() -> None:
    names = ["a", *(f"k{i}" for i in range(29)), "y"]
    nodes = [helper.make_node("Concat", [a, a], [b], axis=0) for a, b in pairwise(names)]
    made = _model(*nodes, x=[1], more=[helper.make_tensor("a", TensorProto.INT64, [1], [3])])
    assert _y(inferred(made).graph) == [2**30]


@pytest.mark.parametrize("op_type", ["Add", "Concat"])
def test_an_input_of_a_billion_numbers_is_not_written_down(op_type: str) -> None:
    made = _model(
        helper.make_node(
            op_type, ["x", "x"], ["y"], **({"axis": 0} if op_type == "Concat" else {})
        ),
        x=[10**9],
    )
    assert _y(inferred(made).graph) == [10**9 * (2 if op_type == "Concat" else 1)]


def test_many_lists_of_some_length_are_not_all_written_down() -> None:
    names = ["x", *(f"v{i}" for i in range(200)), "y"]
    nodes = [helper.make_node("Add", [a, "x"], [b]) for a, b in pairwise(names)]
    assert _y(inferred(_model(*nodes, x=[BUDGET - 1])).graph) == [BUDGET - 1]


def test_nothing_is_hidden_in_the_result_nor_in_the_model() -> None:
    given = _model(helper.make_node("Add", ["x", "x"], ["y"]), x=["n"])
    before, made = given.SerializeToString(), inferred(given)
    assert given.SerializeToString() == before
    assert [node.domain for node in made.graph.node] == [""]
    assert [opset.domain for opset in made.opset_import] == [""]
    assert _y(made.graph) == ["n"]


def test_lists_in_a_branch_are_hidden_too() -> None:
    def branch(name: str) -> GraphProto:
        out = [helper.make_tensor_value_info(name, TensorProto.INT64, None)]
        node = helper.make_node("Concat", ["x", "x"], [name], axis=0)
        return helper.make_graph([node], name, [], out)

    made = _model(
        helper.make_node("If", ["c"], ["y"], then_branch=branch("a"), else_branch=branch("b")),
        x=[10**9],
    )
    made.graph.input.append(helper.make_tensor_value_info("c", TensorProto.BOOL, []))
    assert _y(inferred(made).graph) == [2 * 10**9]
