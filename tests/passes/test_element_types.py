"""element_types.py: types followed through a graph."""

from __future__ import annotations

from typing import Any

import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from mindspore_lite.errors import ModelFileError
from mindspore_lite.passes.element_types import element_types, named, signature, written

FLOAT, INT64, INT8, BOOL, HALF = (
    TensorProto.FLOAT,
    TensorProto.INT64,
    TensorProto.INT8,
    TensorProto.BOOL,
    TensorProto.FLOAT16,
)


def value(name: str, kind: int) -> Any:
    return helper.make_tensor_value_info(name, kind, None)


def types_of(nodes: list[Any], kinds: dict[str, int]) -> dict[str, str]:
    """The types found, by name; outputs of the graph are all nodes' outputs, undeclared."""
    inputs = [value(name, kind) for name, kind in kinds.items()]
    made = helper.make_graph(nodes, "g", inputs, [])
    model = ir.from_proto(helper.make_model(made, opset_imports=[helper.make_opsetid("", 23)]))
    return {str(v.name): dtype.name for v, dtype in element_types(model).items()}


@pytest.mark.parametrize(
    ("node", "kind"),
    [
        (helper.make_node("Add", ["x", "x"], ["y"]), "FLOAT16"),
        (helper.make_node("Shape", ["x"], ["y"]), "INT64"),
        (helper.make_node("Equal", ["x", "x"], ["y"]), "BOOL"),
        (helper.make_node("Cast", ["x"], ["y"], to=FLOAT), "FLOAT"),
        (helper.make_node("Where", ["b", "x", "x"], ["y"]), "FLOAT16"),
        (helper.make_node("Concat", ["x", "x", "x"], ["y"], axis=0), "FLOAT16"),
        (helper.make_node("CastLike", ["b", "x"], ["y"]), "FLOAT16"),
        (helper.make_node("Constant", [], ["y"], value_ints=[1]), "INT64"),
        (helper.make_node("Constant", [], ["y"], value_float=1.0), "FLOAT"),
        (helper.make_node("ConstantOfShape", ["n"], ["y"]), "FLOAT"),
        (
            helper.make_node(
                "ConstantOfShape", ["n"], ["y"], value=helper.make_tensor("v", BOOL, [1], [True])
            ),
            "BOOL",
        ),
        (helper.make_node("EyeLike", ["x"], ["y"]), "FLOAT16"),
        (helper.make_node("EyeLike", ["x"], ["y"], dtype=INT64), "INT64"),
        (helper.make_node("RandomNormal", [], ["y"], shape=[1]), "FLOAT"),
        (helper.make_node("RandomNormal", [], ["y"], shape=[1], dtype=HALF), "FLOAT16"),
        (helper.make_node("HannWindow", ["n"], ["y"]), "FLOAT"),
        (helper.make_node("Multinomial", ["x"], ["y"]), "INT32"),
        (helper.make_node("DequantizeLinear", ["q", "x", "q"], ["y"]), "FLOAT16"),
        (helper.make_node("DequantizeLinear", ["q", "x"], ["y"], output_dtype=0), "FLOAT16"),
        (helper.make_node("DequantizeLinear", ["q", "x"], ["y"], output_dtype=FLOAT), "FLOAT"),
        (helper.make_node("LayerNormalization", ["x", "x"], ["", "y"]), "FLOAT"),
    ],
)
def test_a_result_has_the_type_that_the_operator_says(node: Any, kind: str) -> None:
    assert types_of([node], {"x": HALF, "b": BOOL, "n": INT64, "q": INT8})["y"] == kind


def test_further_results_have_types_of_their_own() -> None:
    found = types_of([helper.make_node("TopK", ["x", "n"], ["v", "i"])], {"x": HALF, "n": INT64})
    assert (found["v"], found["i"]) == ("FLOAT16", "INT64")


def test_an_operator_that_nobody_knows_leaves_its_result_open() -> None:
    found = types_of([helper.make_node("Own", ["x"], ["y"], domain="mine")], {"x": HALF})
    assert "y" not in found


def test_a_choice_between_values_of_unknown_types_has_not_that_of_its_condition() -> None:
    """It had, and the engine computed with truths in uint8."""
    nodes = [
        helper.make_node("Own", ["x"], ["own"], domain="mine"),
        helper.make_node("Where", ["b", "own", "own"], ["y"]),
    ]
    assert "y" not in types_of(nodes, {"x": HALF, "b": BOOL})


def test_loops_and_branches_hand_types_in_and_out() -> None:
    body = helper.make_graph(
        [helper.make_node("Identity", ["c"], ["c2"]), helper.make_node("Abs", ["s"], ["s2"])],
        "body",
        [onnx.ValueInfoProto(name=name) for name in ("i", "c", "s")],
        [onnx.ValueInfoProto(name=name) for name in ("c2", "s2")],
    )
    then = helper.make_graph(
        [helper.make_node("Abs", ["y"], ["t"])], "then", [], [onnx.ValueInfoProto(name="t")]
    )
    found = types_of(
        [
            helper.make_node("Loop", ["n", "", "x"], ["y"], body=body),
            helper.make_node("If", ["b"], ["z"], then_branch=then, else_branch=then),
        ],
        {"x": HALF, "b": BOOL, "n": INT64},
    )
    assert (found["s"], found["y"], found["z"]) == ("FLOAT16",) * 3


@pytest.mark.parametrize(
    ("dtype", "text"), [("FLOAT", "tensor(float)"), ("DOUBLE", "tensor(double)"),
                        ("INT8", "tensor(int8)"), ("BFLOAT16", "tensor(bfloat16)")],
)  # fmt: skip
def test_types_are_spelled_as_operators_do(dtype: str, text: str) -> None:
    assert written(ir.DataType[dtype]) == text
    assert named(text) is ir.DataType[dtype]


def test_other_things_than_tensors_have_no_element_type() -> None:
    assert named("seq(tensor(float))") is None
    assert signature("", "NoSuchOp", 21) is None


def test_a_name_that_is_no_text_is_no_operator() -> None:
    assert signature("", b"\xff", 21) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("node", "words"),
    [
        (helper.make_node("Constant", [], ["y"], value=1.0), "'value' is FLOAT, wanted TENSOR"),
        (helper.make_node("Cast", ["x"], ["y"], to="float"), "'to' is STRING, wanted INT"),
    ],
)
def test_an_attribute_of_another_type_is_an_error_of_the_file(node: Any, words: str) -> None:
    with pytest.raises(ModelFileError, match=words):
        types_of([node], {"x": FLOAT})
