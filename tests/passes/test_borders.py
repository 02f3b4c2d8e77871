"""passes/borders.py: what callers see of inputs and outputs."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from support.onnx_graphs import BOOL, F32, I64, assert_close, feeds_for, model, node, ops, results

from mindspore_lite.passes.borders import set_layouts, set_types
from mindspore_lite.passes.infer_shapes import infer_shapes
from mindspore_lite.passes.optimise import optimise

F16, U8, I8, I32 = 10, 2, 3, 6


def image_net() -> object:
    """A 4-D input and a 2-D one, a 4-D output that is used inside and a 2-D one."""
    nodes = [
        node("Conv", ["x", "w"], ["c"]),
        node("GlobalAveragePool", ["c"], ["g"]),
        node("Flatten", ["g"], ["f"]),
        node("Add", ["f", "z"], ["y"]),
    ]
    w = np.random.default_rng(2).normal(size=(4, 3, 3, 3)).astype(np.float32)
    return model(nodes, [("x", F32, ("n", 3, 8, 9)), ("z", F32, ("n", 4))], ["c", "y"], w=w)


def dims(value: ir.Value) -> list:
    return [getattr(d, "value", d) for d in value.shape or ()]


def loaded(proto: object) -> ir.Model:
    made = ir.from_proto(proto)
    infer_shapes(made)
    return made


@pytest.mark.parametrize("inputs", ["", "NCHW", "NHWC"])
@pytest.mark.parametrize("outputs", ["", "NCHW", "NHWC"])
def test_layouts_of_inputs_and_outputs(inputs: str, outputs: str) -> None:
    old = image_net()
    new = loaded(old)
    set_layouts(new, inputs, outputs)
    feeds = feeds_for(old)
    wanted = results(old, feeds)
    if inputs == "NHWC":
        assert dims(new.graph.inputs[0]) == ["n", 8, 9, 3]
        feeds["x"] = feeds["x"].transpose(0, 2, 3, 1)
    if outputs == "NHWC":
        assert dims(new.graph.outputs[0]) == ["n", 6, 7, 4]
        wanted["c"] = wanted["c"].transpose(0, 2, 3, 1)
    if "NHWC" not in (inputs, outputs):
        assert "Transpose" not in ops(new)
    for made in (new, optimised(new)):
        found = results(made, feeds)
        assert list(found) == ["c", "y"]
        for name, array in wanted.items():
            assert_close(found[name], array)


def optimised(made: ir.Model) -> ir.Model:
    optimise(made, "general")
    return made


def test_a_source_in_nhwc_can_be_seen_as_nchw() -> None:
    old = model([node("Relu", ["x"], ["y"])], [("x", F32, (1, 4, 5, 3))], ["y"])
    new = loaded(old)
    set_layouts(new, "NCHW", "NCHW", source="NHWC")
    assert dims(new.graph.inputs[0]) == dims(new.graph.outputs[0]) == [1, 3, 4, 5]
    x = feeds_for(old)["x"].transpose(0, 3, 1, 2)
    assert_close(results(new, {"x": x})["y"], np.maximum(x, 0))


def test_both_borders_turned_cancel_where_nothing_looks_at_axes() -> None:
    new = loaded(model([node("Relu", ["x"], ["y"])], [("x", F32, (1, 3, 4, 5))], ["y"]))
    set_layouts(new, "NHWC", "NHWC")
    assert ops(optimised(new)) == ["Relu"]


def test_inputs_that_bodies_use_are_turned_too() -> None:
    from support.onnx_graphs import body

    yes = body([node("Conv", ["x", "w"], ["t"])], [], [("t", F32, None)])
    no = body([node("Neg", ["x"], ["e"])], [], [("e", F32, None)])
    nodes = [node("If", ["go"], ["y"], then_branch=yes, else_branch=no)]
    x, go = ("x", F32, (1, 3, 5, 5)), ("go", BOOL, ())
    old = model(nodes, [x, go], ["y"], w=np.ones((2, 3, 3, 3), np.float32))
    new = ir.from_proto(old)
    set_layouts(new, "NHWC")
    feeds = feeds_for(old) | {"go": np.array(True)}
    wanted = results(old, feeds)["y"]
    feeds["x"] = feeds["x"].transpose(0, 2, 3, 1)
    assert_close(results(new, feeds)["y"], wanted)


def test_a_layout_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="NCHW or NHWC, but got 'NWHC'"):
        set_layouts(loaded(image_net()), "NWHC")


def mixed() -> object:
    nodes = [
        node("Gather", ["table", "ids"], ["e"]),
        node("Mul", ["e", "x"], ["m"]),
        node("Where", ["keep", "m", "x"], ["y"]),
        node("ArgMax", ["y"], ["best"], axis=1),
    ]
    inputs = [("ids", I64, (2,)), ("x", F32, (2, 3)), ("keep", BOOL, (2, 3))]
    table = np.arange(12, dtype=np.float32).reshape(4, 3) / 8
    return model(nodes, inputs, ["y", ("best", I64, None)], table=table)


FEEDS = {
    "ids": np.array([3, 1]),
    "x": np.array([[0.5, -1, 2], [1, 0.25, -0.5]], np.float32),
    "keep": np.array([[True, False, True]] * 2),
}


@pytest.mark.parametrize(
    ("asked", "seen"),
    [
        ("float16", ["INT64", "FLOAT16", "BOOL"]),
        ("float64", ["INT64", "DOUBLE", "BOOL"]),
        ("float32", ["INT64", "FLOAT", "BOOL"]),
        ("int32", ["INT32", "FLOAT", "BOOL"]),
        ("int64", ["INT64", "FLOAT", "BOOL"]),
        ("uint8", ["INT64", "UINT8", "BOOL"]),
    ],
)
def test_types_of_inputs_of_the_same_kind_are_exchanged(asked: str, seen: list[str]) -> None:
    new = loaded(mixed())
    set_types(new, inputs=asked)
    assert [i.dtype.name for i in new.graph.inputs] == seen
    feeds = dict(FEEDS)
    if asked == "uint8":
        feeds["x"] = np.abs(feeds["x"]).round()
    wanted = results(mixed(), feeds)
    given = {i.name: feeds[str(i.name)].astype(i.dtype.numpy()) for i in new.graph.inputs}
    for name, array in results(new, given).items():
        assert_close(array, wanted[name])


@pytest.mark.parametrize(
    ("asked", "seen"),
    [("float16", ["FLOAT16", "INT64"]), ("int32", ["FLOAT", "INT32"]), ("int8", ["INT8", "INT64"])],
)
def test_types_of_outputs_of_the_same_kind_are_exchanged(asked: str, seen: list[str]) -> None:
    new = loaded(mixed())
    set_types(new, outputs=asked)
    assert [o.dtype.name for o in new.graph.outputs] == seen
    wanted = results(mixed(), FEEDS)
    found = results(new, FEEDS)
    assert list(found) == list(wanted)
    for output in new.graph.outputs:
        name = str(output.name)
        assert_close(found[name], wanted[name].astype(output.dtype.numpy()))


def quantised() -> object:
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        node("Relu", ["d"], ["r"]),
        node("QuantizeLinear", ["r", "s", "z"], ["q2"]),
        node("DequantizeLinear", ["q2", "s", "z"], ["y"]),
    ]
    weights = {"s": np.array(0.25, np.float32), "z": np.array(3, np.int8)}
    return model(nodes, [("x", F32, (4,))], ["y"], **weights)


def test_quantised_borders_lose_their_quantisation() -> None:
    new = loaded(quantised())
    set_types(new, "int8", "int8")
    x = np.array([-5, 3, 7, 100], np.int8)
    (found,) = results(new, {"x": x}).values()
    np.testing.assert_array_equal(found, np.maximum(x, 3))
    assert found.dtype == np.int8
    optimise(new, "general")
    assert ops(new) == ["DequantizeLinear", "Relu", "QuantizeLinear"]
    np.testing.assert_array_equal(results(new, {"x": x})["y"], found)


def test_another_type_than_the_quantised_one_is_cast() -> None:
    new = loaded(quantised())
    set_types(new, "uint8")
    found = results(new, {"x": np.array([0, 1, 2, 3], np.uint8)})["y"]
    np.testing.assert_allclose(found, [0, 1, 2, 3])


def test_a_type_that_no_border_has_is_refused() -> None:
    for name in ("bool", "complex64", "float", "int4"):
        with pytest.raises(ValueError, match=f"not '{name}'"):
            set_types(loaded(mixed()), outputs=name)
