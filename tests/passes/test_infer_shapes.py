"""passes/infer_shapes.py: types and shapes of every value, whatever the size of the weights."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from support.onnx_graphs import BOOL, F32, I64, body, model, node

from mindspore_lite.passes.infer_shapes import forget_shapes, infer_shapes

X = ("x", F32, ("n", 3, 8, 8))


class Unreadable(ir.Tensor):
    """A weight that nobody may read."""

    def numpy(self) -> np.ndarray:
        raise AssertionError("a weight was read")

    tobytes = numpy


def inferred(proto: object) -> ir.Model:
    made = ir.from_proto(proto)
    infer_shapes(made)
    return made


def known(made: ir.Model) -> dict[str, tuple]:
    values = [v for graph in made.graphs() for n in graph for v in n.outputs]
    return {str(v.name): tuple(getattr(d, "value", d) for d in v.shape or "?") for v in values}


def test_every_value_gets_its_type_and_shape() -> None:
    nodes = [
        node("Conv", ["x", "w"], ["c"]),
        node("Relu", ["c"], ["r"]),
        node("GlobalAveragePool", ["r"], ["g"]),
        node("ArgMax", ["g"], ["y"], axis=1, keepdims=0),
    ]
    made = inferred(model(nodes, [X], [("y", I64, None)], w=np.ones((4, 3, 3, 3), np.float32)))
    assert known(made) == {
        "c": ("n", 4, 6, 6), "r": ("n", 4, 6, 6), "g": ("n", 4, 1, 1), "y": ("n", 1, 1),
    }  # fmt: skip
    assert [n.outputs[0].dtype.name for n in made.graph] == ["FLOAT"] * 3 + ["INT64"]


def test_values_inside_of_bodies_are_known() -> None:
    yes = body([node("Neg", ["x"], ["n"]), node("Relu", ["n"], ["t"])], [], [("t", F32, None)])
    no = body([node("Flatten", ["x"], ["f"])], [], [("f", F32, None)])
    nodes = [node("If", ["go"], ["y"], then_branch=yes, else_branch=no)]
    made = inferred(model(nodes, [X, ("go", BOOL, ())], ["y"]))
    assert known(made)["n"] == known(made)["t"] == ("n", 3, 8, 8)
    assert known(made)["f"] == ("n", 192)
    assert known(made)["y"] == ("?",)


def test_the_weights_are_not_read_and_stay_in_their_order() -> None:
    nodes = [node("MatMul", ["x", "a"], ["m"]), node("MatMul", ["m", "b"], ["y"])]
    weights = {name: np.ones((1, 1), np.float32) for name in ("b", "small", "a")}
    made = ir.from_proto(model(nodes, [("x", F32, (2, 1 << 16))], ["y"], **weights))
    large = np.broadcast_to(np.float32(1), (1 << 16, 1 << 16))  # 16 GiB
    for name in ("a", "b"):
        value = made.graph.initializers[name]
        value.const_value = Unreadable(large, name=name)
        value.shape = ir.Shape(large.shape)
    before = {name: value.const_value for name, value in made.graph.initializers.items()}
    infer_shapes(made)
    assert known(made) == {"m": (2, 1 << 16), "y": (2, 1 << 16)}
    after = {name: value.const_value for name, value in made.graph.initializers.items()}
    assert list(after) == list(before)
    assert all(after[name] is before[name] for name in before)


def test_a_large_constant_in_a_node_is_not_written() -> None:
    nodes = [node("Constant", [], ["c"], value_float=1.0), node("MatMul", ["x", "c"], ["y"])]
    made = ir.from_proto(model(nodes, [("x", F32, (2, 1 << 16))], ["y"]))
    large = Unreadable(np.broadcast_to(np.float32(1), (1 << 16, 1 << 16)))
    made.graph[0].attributes.clear()
    made.graph[0].attributes["value"] = ir.AttrTensor("value", large)
    infer_shapes(made)
    assert known(made)["y"] == (2, 1 << 16)
    assert made.graph[0].attributes["value"].value is large


def test_shapes_may_be_computed_from_shapes() -> None:
    nodes = [
        node("Shape", ["x"], ["s"], start=0, end=1),
        node("Concat", ["s", "rest"], ["target"], axis=0),
        node("Reshape", ["x", "target"], ["y"]),
    ]
    made = inferred(model(nodes, [("x", F32, (5, 3, 4))], ["y"], rest=np.array([6, 2])))
    assert known(made)["y"] == (5, 6, 2)


def test_small_tensors_in_files_are_read(tmp_path: object) -> None:
    made = ir.from_proto(
        model([node("Reshape", ["x", "s"], ["y"])], [("x", F32, (6,))], ["y"], s=np.array([2, 3]))
    )
    path = f"{tmp_path}/data"
    np.array([2, 3]).tofile(path)
    made.graph.initializers["s"].const_value = ir.ExternalTensor(
        "data", 0, 16, ir.DataType.INT64, shape=ir.Shape([2]), name="s", base_dir=str(tmp_path)
    )
    infer_shapes(made)
    assert known(made)["y"] == (2, 3)


@pytest.mark.parametrize("as_node", [True, False])
def test_scales_are_multiplied_as_engines_do(as_node: bool) -> None:
    """20 * float32(0.7) is 13.99..., which float32 rounds to 14."""
    scales = np.array([1, 1, 0.7, 1], np.float32)
    nodes = [node("Resize", ["x", "", "s"], ["y"])]
    made = ir.from_proto(model(nodes, [("x", F32, (1, 1, 20, 4))], ["y"], s=scales))
    if as_node:
        constant = ir.node("Constant", [], {"value": ir.Tensor(scales)})
        constant.outputs[0].name = "c"
        made.graph.insert_before(made.graph[0], constant)
        made.graph[1].replace_input_with(2, constant.outputs[0])
    infer_shapes(made)
    assert known(made)["y"] == (1, 1, 14, 4)
    assert made.graph.initializers["s"].const_value.numpy()[2] == np.float32(0.7)


def test_a_list_of_a_trillion_numbers_is_not_written_down() -> None:
    nodes = [
        node("Mul", ["million", "million"], ["end"]),
        node("Range", ["zero", "end", "one"], ["r"]),
        node("Add", ["r", "one"], ["more"]),
        node("Range", ["zero", "billion", "one"], ["many"]),
        node("Add", ["many", "many"], ["sum"]),
        node("Range", ["zero", "three", "one"], ["few"]),
        node("Cast", ["few"], ["y"], to=F32),
    ]
    numbers = {"million": 10**6, "zero": 0, "one": 1, "three": 3, "billion": 10**9}
    weights = {name: np.array(number) for name, number in numbers.items()}
    outputs = ["y", *((name, I64, None) for name in ("r", "more", "sum"))]
    made = inferred(model(nodes, [("x", F32, (1,))], outputs, **weights))
    for name in ("r", "more"):
        (length,) = known(made)[name]
        assert not isinstance(length, int)
    assert known(made)["sum"] == (10**9,)
    assert known(made)["y"] == (3,)
    assert {each.domain for each in made.graph} == {""}


def test_what_a_model_says_of_foreign_operators_is_kept() -> None:
    nodes = [node("Odd", ["x"], ["a"], domain="own"), node("Relu", ["a"], ["y"])]
    made = ir.from_proto(model(nodes, [X], ["y"], domains={"own": 1}))
    made.graph[0].outputs[0].shape = ir.Shape([4, 5])
    made.graph[0].outputs[0].dtype = ir.DataType.FLOAT
    infer_shapes(made)
    assert known(made) == {"a": (4, 5), "y": (4, 5)}


def test_a_model_that_contradicts_itself_keeps_what_it_says() -> None:
    nodes = [node("MatMul", ["x", "x"], ["a"]), node("Relu", ["a"], ["y"])]
    made = ir.from_proto(model(nodes, [("x", F32, (2, 3))], [("y", F32, (9, 9))]))
    infer_shapes(made)
    assert known(made)["y"] == (9, 9)


def test_what_a_model_says_wrongly_is_put_right() -> None:
    nodes = [node("Relu", ["x"], ["a"]), node("Neg", ["a"], ["y"])]
    made = ir.from_proto(model(nodes, [("x", F32, (2, 3))], [("y", F32, (9, 9, 9))]))
    made.graph[0].outputs[0].shape = ir.Shape([7])
    made.graph[0].outputs[0].dtype = ir.DataType.FLOAT
    infer_shapes(made)
    assert known(made) == {"a": (2, 3), "y": (2, 3)}


def test_forgetting_leaves_types_inputs_and_weights() -> None:
    nodes = [node("MatMul", ["x", "w"], ["a"]), node("Relu", ["a"], ["y"])]
    made = inferred(model(nodes, [("x", F32, (2, 3))], ["y"], w=np.ones((3, 4), np.float32)))
    forget_shapes(made)
    assert known(made) == {"a": ("?",), "y": ("?",)}
    assert made.graph[0].outputs[0].dtype == ir.DataType.FLOAT
    assert made.graph.inputs[0].shape == (2, 3)
    assert made.graph.initializers["w"].shape == (3, 4)
