"""Tests of passes/check_nodes.py: nodes that do not keep to their operator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx
import onnx_ir as ir
import pytest
from onnx.helper import make_function, make_graph, make_model, make_node, make_opsetid
from onnx.helper import make_tensor_value_info as info

from mindspore_lite import Context, Model, ModelType
from mindspore_lite.errors import ModelFileError
from mindspore_lite.passes.check_nodes import check_nodes

FLOAT = onnx.TensorProto.FLOAT


def model_of(
    nodes: Sequence[onnx.NodeProto], *, kind: int = FLOAT, opset: int = 21, **more: Any
) -> onnx.ModelProto:
    """A model that makes y of x by these nodes."""
    graph = make_graph(nodes, "g", [info("x", kind, [2, 3])], [info("y", FLOAT, None)])
    imports = [make_opsetid("", opset), make_opsetid("local", 1)]
    return make_model(graph, ir_version=10, opset_imports=imports, **more)


def reference(name: str, to: str) -> onnx.AttributeProto:
    return onnx.AttributeProto(name=name, ref_attr_name=to, type=onnx.AttributeProto.INT)


BODY = make_graph([make_node("Relu", [], ["z"])], "body", [], [info("z", FLOAT, None)])
INT16 = onnx.TensorProto.INT16
REFUSED = {
    "input missing": ([make_node("Cast", [], ["y"], to=1)], "0 inputs, wanted 1 to 1"),
    "inputs too many": ([make_node("Relu", ["x", "x"], ["y"])], "2 inputs, wanted 1 to 1"),
    "outputs none": ([make_node("MaxPool", ["x"], [], kernel_shape=[1])], "0 outputs"),
    "input left out": ([make_node("Add", ["", "x"], ["y"])], "its input 0 is left out"),
    "attribute missing": ([make_node("Cast", ["x"], ["y"])], "lacks the attribute 'to'"),
    "attribute of another type": (
        [make_node("Cast", ["x"], ["y"], to="float")],
        "its attribute 'to' is STRING, wanted INT",
    ),
    "value that is no tensor": (
        [make_node("Constant", [], ["c"], value=1.5), make_node("Add", ["x", "c"], ["y"])],
        "its attribute 'value' is FLOAT, wanted TENSOR",
    ),
    "branch that is no graph": (
        [make_node("If", ["x"], ["y"], then_branch=1.0, else_branch=BODY)],
        "its attribute 'then_branch' is FLOAT, wanted GRAPH",
    ),
    "attribute unknown": ([make_node("Relu", ["x"], ["y"], axes=[0])], "has no attribute 'axes'"),
    "inside of a body": (
        [make_node("If", ["x"], ["y"], then_branch=BODY, else_branch=BODY)],
        r"node 'z' \(Relu\): it has 0 inputs",
    ),
    "repeated input left out": ([make_node("Max", ["x", ""], ["y"])], "its input 1 is left out"),
    "circle": (
        [make_node("Relu", ["b"], ["y"]), make_node("Neg", ["y"], ["b"])],
        "need each other in a circle",
    ),
    "made by nothing": (
        [make_node("Add", ["x", "lost"], ["y"])],
        "uses 'lost', which nothing",
    ),
    "reference outside of a function": (
        [
            onnx.NodeProto(
                op_type="Cast", input=["x"], output=["y"], attribute=[reference("to", "kind")]
            )
        ],
        "refers to a function's",
    ),
}


@pytest.mark.parametrize("engine", ["onnxruntime", "openvino", "torch"])
@pytest.mark.parametrize("kind", [FLOAT, INT16], ids=["float", "int16"])
@pytest.mark.parametrize("case", REFUSED)
def test_a_node_that_does_not_keep_to_its_operator_is_refused(
    case: str, kind: int, engine: str
) -> None:
    pytest.importorskip(engine)
    nodes, words = REFUSED[case]
    data = model_of(nodes, kind=kind).SerializeToString()
    config = {"common_context": {"engine": engine}}
    with pytest.raises(ModelFileError, match=words):
        Model().build_from_buffer(
            data, model_type=ModelType.ONNX, context=Context(), config_dict=config
        )


def test_a_node_inside_of_a_function_is_refused() -> None:
    body = [make_node("Cast", ["a"], ["b"])]
    function = make_function("local", "F", ["a"], ["b"], body, [make_opsetid("", 21)])
    call = make_node("F", ["x"], ["y"], domain="local")
    with pytest.raises(ModelFileError, match=r"node 'b' \(Cast\): it lacks the attribute 'to'"):
        check_nodes(ir.serde.deserialize_model(model_of([call], functions=[function])))


@pytest.mark.parametrize("version", [0, -1, 2**31])
def test_an_opset_that_cannot_be_is_refused(version: int) -> None:
    model = model_of([make_node("Relu", ["x"], ["y"])], opset=version)
    with pytest.raises(ModelFileError, match=f"opset {version} of 'ai.onnx', wanted 1 or more"):
        check_nodes(ir.serde.deserialize_model(model))


@pytest.mark.parametrize("name", ["q_num_heads", "kv_num_heads"])
@pytest.mark.parametrize("number", [0, -1, 2**32, -(2**63)])
def test_a_number_of_heads_that_would_be_divided_by_as_zero_is_refused(
    name: str, number: int
) -> None:
    heads = {"q_num_heads": 1, "kv_num_heads": 1, name: number}
    node = make_node("Attention", ["x", "x", "x"], ["y"], **heads)
    with pytest.raises(ModelFileError, match=f"its attribute '{name}' has {number}, wanted 1 to"):
        check_nodes(ir.serde.deserialize_model(model_of([node], opset=23)))


@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "words"),
    [
        ("Col2Im", 3, {"strides": [0, 1]}, "'strides' has 0, wanted 1 to"),
        ("MaxPool", 1, {"kernel_shape": [2], "dilations": [-1]}, "'dilations' has -1, wanted 1"),
        ("Conv", 2, {"group": 0}, "'group' has 0, wanted 1 to"),
        ("CenterCropPad", 2, {"axes": [-(2**63)]}, "'axes' has -9223372036854775808, wanted -1000"),
        ("GatherND", 2, {"batch_dims": -16}, "'batch_dims' has -16, wanted 0 to 1000"),
        ("Transpose", 1, {"perm": [0, -1]}, "'perm' has -1, wanted 0 to 1000"),
        ("Transpose", 1, {"perm": [1, 0, 1]}, "'perm' is .1, 0, 1., in which an axis comes twice"),
        ("Einsum", 2, {"equation": "ij,kj-"}, "'equation' is 'ij,kj-', wanted one such as"),
        ("Einsum", 2, {"equation": "i..,j->ij"}, "'equation' is 'i..,j->ij', wanted one"),
        ("Softmax", 1, {"axis": 2**40}, "'axis' has 1099511627776, wanted -1000 to 1000"),
    ],
)
def test_a_number_that_an_engine_would_die_of_is_refused(
    op: str, inputs: int, attributes: dict[str, Any], words: str
) -> None:
    node = make_node(op, ["x"] * inputs, ["y"], **attributes)
    with pytest.raises(ModelFileError, match=words):
        check_nodes(ir.serde.deserialize_model(model_of([node])))


def test_what_keeps_to_its_operator_passes() -> None:
    body = make_node("Cast", ["a"], ["b"])
    body.attribute.append(reference("to", "kind"))
    function = make_function(
        "local", "Relu", ["a"], ["b"], [body], [make_opsetid("", 21)], ["kind"]
    )
    nodes = [
        make_node("Relu", ["x"], ["r"], domain="local", kind=1, anything="goes"),
        make_node("Clip", ["r", "", "r"], ["c"], __note="of a tool"),
        make_node("FusedMatMul", ["c"], ["d"], domain="com.microsoft", alpha="of a runtime"),
        make_node("Dropout", ["d"], ["y", "mask"]),
    ]
    check_nodes(ir.serde.deserialize_model(model_of(nodes, functions=[function])))


@pytest.mark.parametrize("name", ["", "lost"])
def test_an_output_that_nothing_makes_is_refused(name: str) -> None:
    model = model_of([make_node("Relu", ["x"], ["y"])])
    model.graph.output.append(info(name, FLOAT, None))
    with pytest.raises(ModelFileError, match=f"the output '{name}' of the graph 'g' is made by"):
        check_nodes(ir.serde.deserialize_model(model))


@pytest.mark.parametrize("equation", ["ij,kj", "ij , kj -> ik", "...i,ij->...j", "ii->", "ij->ji"])
def test_an_equation_of_einsum_is_taken(equation: str) -> None:
    count = equation.count(",") + 1
    node = make_node("Einsum", ["x"] * count, ["y"], equation=equation)
    check_nodes(ir.serde.deserialize_model(model_of([node])))


@pytest.mark.parametrize("outputs", [["y"], ["y", "b", "c"]])
@pytest.mark.parametrize("how", ["num_outputs", "sizes", "attribute"])
def test_a_split_has_as_many_outputs_as_parts(how: str, outputs: list[str]) -> None:
    """ONNX Runtime ended the process of another number of them."""
    said: dict[str, Any] = {"num_outputs": 2} if how == "num_outputs" else {}
    if how == "attribute":
        said = {"split": [1, 1]}
    node = make_node("Split", ["x", "sizes"] if how == "sizes" else ["x"], outputs, **said)
    model = model_of([node], opset=11 if how == "attribute" else 21)
    model.graph.initializer.append(onnx.helper.make_tensor("sizes", 7, [2], [1, 1]))
    with pytest.raises(ModelFileError, match=f"splits into 2 parts and has {len(outputs)} outputs"):
        check_nodes(ir.serde.deserialize_model(model))
    whole = make_node("Split", list(node.input), ["y", "b"], **said)
    model.graph.node[0].CopyFrom(whole)
    check_nodes(ir.serde.deserialize_model(model))
