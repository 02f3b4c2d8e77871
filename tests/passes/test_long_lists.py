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


def _lists(**lists: list[int]) -> list[TensorProto]:
    return [helper.make_tensor(n, TensorProto.INT64, [len(v)], v) for n, v in lists.items()]


def _slice(x: list[int | str], **lists: list[int]) -> ModelProto:
    cut = helper.make_node("Slice", ["x", "starts", "ends", "axes", "steps"], ["y"])
    return _model(cut, x=x, more=_lists(**lists))


@pytest.mark.parametrize("dims", [[2, 0], [2, 3], ["n", 3]])
def test_an_axis_is_turned_round_whatever_its_size(dims: list[int | str]) -> None:
    """onnx ends the process on an axis without elements."""
    made = _slice(dims, starts=[-1], ends=[-(2**63)], axes=[1], steps=[-1])
    found = inferred(made)
    assert _y(found.graph) == dims
    assert found.graph.node[0] == made.graph.node[0]
    assert found.opset_import == made.opset_import


@pytest.mark.parametrize("steps", [[-1], [-2], None])
def test_what_other_slices_backwards_give_is_not_inferred(steps: list[int] | None) -> None:
    lists = {"starts": [-1], "ends": [1], "axes": [0], "steps": steps or [1]}
    made = _slice([0], **lists)
    if steps is None:  # of a value that only a run knows, which inference may follow
        made.graph.node.insert(0, helper.make_node("Shape", ["x"], ["size"]))
        made.graph.node.insert(1, helper.make_node("Sub", ["size", "one"], ["back"]))
        made.graph.initializer.extend(_lists(one=[1]))
        made.graph.node[2].input[4] = "back"
    found = inferred(made)
    assert not found.graph.output[0].type.tensor_type.HasField("shape")
    assert [n.op_type for n in found.graph.node][-1:] == ["Slice"]


def test_slices_forwards_are_inferred() -> None:
    made = _slice([8, 6], starts=[1], ends=[6], axes=[0], steps=[2])
    assert _y(inferred(made).graph) == [3, 6]
