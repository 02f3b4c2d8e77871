"""passes/inline.py: functions are counted before they are expanded, and expanded to the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import helper
from support.onnx_graphs import BOOL, F32, assert_same, body, feeds_for, model, node, results

from mindspore_lite.errors import ModelFileError
from mindspore_lite.passes.inline import inline_functions
from mindspore_lite.passes.node_count import MAX_NESTING

X = ("x", F32, (2,))
OPSETS = [helper.make_opsetid("", 17), helper.make_opsetid("f", 1)]


def function(name: str, nodes: list[Any], **options: Any) -> onnx.FunctionProto:
    given = {"inputs": ["a"], "outputs": ["b"], "attributes": [], **options}
    return helper.make_function(
        "f", name, given["inputs"], given["outputs"], nodes, OPSETS, given["attributes"]
    )


def call(name: str, inputs: list[str], outputs: list[str], **attributes: Any) -> Any:
    return node(name, inputs, outputs, domain="f", **attributes)


def chain(length: int) -> list[onnx.FunctionProto]:
    """Each calls the one before, the first is Neg."""
    made = [function("f0", [node("Neg", ["a"], ["b"])])]
    made += [function(f"f{i}", [call(f"f{i - 1}", ["a"], ["b"])]) for i in range(1, length)]
    return made


def doubling(length: int) -> list[onnx.FunctionProto]:
    """Each calls the one before twice."""
    made = [function("f0", [node("Neg", ["a"], ["b"])])]
    for i in range(1, length):
        inner = [call(f"f{i - 1}", ["a"], ["t"]), call(f"f{i - 1}", ["t"], ["b"])]
        made.append(function(f"f{i}", inner))
    return made


def calling(functions: list[onnx.FunctionProto], outputs: tuple[str, ...] = ("y",)) -> Any:
    nodes = [call(functions[-1].name, ["x"], list(outputs))]
    return model(nodes, [X], list(outputs), 17, {"f": 1}, functions)


def inlined(proto: onnx.ModelProto, max_nodes: int = 100_000) -> ir.Model:
    made = ir.from_proto(proto)
    inline_functions(made, max_nodes)
    assert not made.functions
    return made


def test_a_chain_of_thousands_leaves_its_last_node() -> None:
    made = inlined(calling(chain(3000)))
    assert [n.op_type for n in made.graph] == ["Neg"]
    assert [v.name for v in made.graph.outputs] == ["y"]


def test_functions_that_double_are_expanded_up_to_the_bound_and_not_beyond() -> None:
    assert len(inlined(calling(doubling(11))).graph) == 1024
    with pytest.raises(ModelFileError, match=r"more than 1000 nodes .*\[build\] max_nodes"):
        inlined(calling(doubling(11)), 1000)


def test_numbers_of_nodes_without_end_are_counted_at_once() -> None:
    with pytest.raises(ModelFileError, match="more than 100000 nodes once inlined"):
        inlined(calling(doubling(2000)))


def test_every_value_has_a_name_of_its_own() -> None:
    made = inlined(calling(doubling(6)))
    names = [value.name for n in made.graph for value in n.outputs]
    assert len(set(names)) == len(names) == 32
    assert_same(made, calling(doubling(6)), {"x": np.float32([1, 2])})


def test_a_function_that_calls_itself_is_refused() -> None:
    one = function("one", [call("two", ["a"], ["b"])])
    two = function("two", [call("one", ["a"], ["b"])])
    with pytest.raises(ModelFileError, match="call each other in a cycle"):
        inlined(calling([one, two]))


def test_nodes_of_bodies_count_and_calls_inside_of_them_too() -> None:
    def branch(name: str, called: str) -> Any:
        return body([call(called, ["a"], [name])], [], [(name, F32, None)])

    functions = chain(1)
    for i in range(1, 20):
        yes, no = branch(f"t{i}", f"f{i - 1}"), branch(f"e{i}", f"f{i - 1}")
        condition = helper.make_node("Constant", [], ["c"], value=onnx.numpy_helper.from_array(
            np.array(True)))  # fmt: skip
        functions.append(function(f"f{i}", [condition, node(
            "If", ["c"], ["b"], then_branch=yes, else_branch=no)]))  # fmt: skip
    with pytest.raises(ModelFileError, match="more than 5000 nodes"):
        inlined(calling(functions), 5000)
    assert_same(inlined(calling(functions[:5])), calling(functions[:1]), {"x": np.ones(2, "f")})


def nested(levels: int) -> onnx.ModelProto:
    """Functions whose branch calls the next: as many bodies in each other, but one in the file."""
    functions = chain(1)
    for i in range(1, levels + 1):
        yes = body([call(f"f{i - 1}", ["a", "c"][: min(i, 2)], ["t"])], [], [("t", F32, None)])
        no = body([node("Neg", ["a"], ["e"])], [], [("e", F32, None)])
        functions.append(function(f"f{i}", [node(
            "If", ["c"], ["b"], then_branch=yes, else_branch=no)], inputs=["a", "c"]))  # fmt: skip
    nodes = [call(f"f{levels}", ["x", "c"], ["y"])]
    return model(nodes, [X, ("c", BOOL, ())], ["y"], 17, {"f": 1}, functions)


def test_bodies_lie_as_deep_in_each_other_as_every_parser_reads() -> None:
    made = inlined(nested(MAX_NESTING))
    data = ir.to_proto(made).SerializeToString()
    assert onnx.ModelProto.FromString(data).graph.node[0].op_type == "If"
    found = results(made, {"x": np.float32([1, 2]), "c": np.array(True)})
    np.testing.assert_array_equal(found["y"], [-1, -2])


@pytest.mark.parametrize("levels", [MAX_NESTING + 1, 1000])
def test_bodies_that_lie_deeper_are_refused_before_they_are_made(levels: int) -> None:
    with pytest.raises(ModelFileError, match="more than 30 deep in each other"):
        inlined(nested(levels))


def test_attributes_go_down_the_calls_and_defaults_hold_where_none_are_given() -> None:
    def referring(op: str, inner: str, outer: str, domain: str = "") -> Any:
        made = helper.make_node(op, ["a"], ["b"], domain=domain)
        made.attribute.add(name=inner, type=onnx.AttributeProto.FLOAT, ref_attr_name=outer)
        return made

    leaf = function("leaf", [referring("LeakyRelu", "alpha", "slope")], attributes=["slope"])
    middle = function("middle", [referring("leaf", "slope", "s", "f")], attributes=["s"])
    usual = function("usual", [referring("LeakyRelu", "alpha", "slope")])
    usual.attribute_proto.add(name="slope", type=onnx.AttributeProto.FLOAT, f=0.5)
    nodes = [
        call("middle", ["x"], ["p"], s=0.25),
        call("usual", ["p"], ["q"]),
        call("usual", ["q"], ["r"], slope=2.0),
        call("middle", ["r"], ["y"]),  # nothing is said: the operator's own default
    ]
    made = inlined(model(nodes, [X], ["y"], 17, {"f": 1}, [leaf, middle, usual]))
    slopes = [n.attributes["alpha"].value if n.attributes else None for n in made.graph]
    assert slopes == [0.25, 0.5, 2.0, None]


def test_an_input_that_a_call_leaves_out_is_left_out_inside() -> None:
    clip = function(
        "clip", [node("Clip", ["a", "low", "high"], ["b"])], inputs=["a", "low", "high"]
    )
    nodes = [call("clip", ["x", "", "top"], ["y"])]
    made = inlined(model(nodes, [X], ["y"], 17, {"f": 1}, [clip], top=np.float32(1)))
    (only,) = made.graph
    assert [None if v is None else v.name for v in only.inputs] == ["x", None, "top"]


def test_what_a_function_hands_on_is_an_output_under_its_name() -> None:
    same = function("same", [], outputs=["a"])
    twice = function("twice", [node("Neg", ["a"], ["b"])], outputs=["b", "b"])
    nodes = [call("same", ["x"], ["y"]), call("twice", ["y"], ["p", "q"])]
    made = inlined(model(nodes, [X], ["y", "p", "q"], 17, {"f": 1}, [same, twice]))
    x = np.float32([1, 2])
    found = results(made, {"x": x})
    assert {name: array.tolist() for name, array in found.items()} == {
        "y": [1, 2], "p": [-1, -2], "q": [-1, -2],
    }  # fmt: skip


def test_calls_in_any_order_find_each_other() -> None:
    nodes = [call("f0", ["p"], ["y"]), call("f0", ["x"], ["p"])]
    made = inlined(model(nodes, [X], ["y"], 17, {"f": 1}, chain(1)))
    made.graph.sort()
    np.testing.assert_array_equal(results(made, {"x": np.float32([1, 2])})["y"], [1, 2])


def test_a_function_wins_over_the_operator_of_its_name() -> None:
    own = helper.make_function(
        "com.microsoft", "Gelu", ["a"], ["b"], [node("Neg", ["a"], ["b"])], OPSETS
    )
    proto = model(
        [node("Gelu", ["x"], ["y"], domain="com.microsoft")], [X], ["y"], 17,
        {"com.microsoft": 1}, [own],
    )  # fmt: skip
    assert [n.op_type for n in inlined(proto).graph] == ["Neg"]


@pytest.mark.parametrize(
    ("inputs", "outputs", "words"),
    [
        (["x", "x"], ["y"], "'f0' is called with 2 inputs, and has 1"),
        (["x"], ["y", "z"], "'f0' is called with 2 outputs, and has 1"),
    ],
)
def test_a_call_that_does_not_fit_is_refused(
    inputs: list[str], outputs: list[str], words: str
) -> None:
    proto = model([call("f0", inputs, outputs)], [X], ["y"], 17, {"f": 1}, chain(1))
    with pytest.raises(ModelFileError, match=words):
        inlined(proto)


def test_a_function_whose_nodes_are_not_in_order_is_refused() -> None:
    wrong = function("wrong", [node("Neg", ["t"], ["b"]), node("Abs", ["a"], ["t"])])
    with pytest.raises(ModelFileError, match="uses 't' before anything makes it"):
        inlined(calling([wrong]))


def test_versions_of_a_domain_that_contradict_each_other_are_refused() -> None:
    proto = calling(chain(1))
    proto.functions[0].opset_import[1].version = 7
    with pytest.raises(ModelFileError, match="wants version 7 of the domain 'f', the model has 1"):
        inlined(proto)


def test_a_model_without_functions_stays_as_it_is() -> None:
    proto = model([node("Neg", ["x"], ["y"])], [X], ["y"], 17)
    assert_same(inlined(proto), proto, feeds_for(proto))


def test_nodes_with_many_inputs_count_as_many() -> None:
    wide = function("f0", [node("Sum", ["a"] * 1600, ["b"])])
    functions = [wide, *doubling(8)[1:]]
    assert len(inlined(calling(functions), 15_000).graph) == 128
    with pytest.raises(ModelFileError, match="more than 10000 nodes"):
        inlined(calling(functions), 10_000)
