"""passes/shapes.py: output shapes for given input shapes."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from support.archives import content
from support.mindir_builder import Net, tensor_type
from support.running import run

from mindspore_lite.errors import ShapeError
from mindspore_lite.graph.from_mindir import from_mindir
from mindspore_lite.mindir.read import read
from mindspore_lite.mindir.records import Model
from mindspore_lite.passes.shapes import output_shapes


def skeleton(model: Model) -> bytes:
    return ir.to_proto(from_mindir(model)).SerializeToString()


def dense() -> bytes:
    net = Net()
    x = net.input("x", (-1, 3))
    y = net.call("MatMulExt", x, net.weight("w", np.ones((3, 4), np.float32)))
    return skeleton(net.model(net.tuple(y, net.call("ReduceSum", y, net.constant((1,))))))


def test_shapes_follow_those_of_the_inputs() -> None:
    assert output_shapes(dense(), {"x": (7, 3)}) == [(7, 4), (7,)]
    assert output_shapes(dense(), {"x": (1, 3)}) == [(1, 4), (1,)]


def test_a_dim_that_depends_on_data_is_minus_one() -> None:
    net = Net()
    found = output_shapes(
        skeleton(net.model(net.call("NonZero", net.input("x", (2, 3))))), {"x": (4, 5)}
    )
    assert found == [(-1, 2)]


def test_shapes_that_do_not_fit_are_refused_with_the_shapes() -> None:
    with pytest.raises(ShapeError, match=r"cannot take the shapes \{'x': \[7, 5\]\}") as caught:
        output_shapes(dense(), {"x": (7, 5)})
    assert "sizes that its layers fixed at export cannot change" in str(caught.value)
    assert caught.value.__cause__ is not None


def test_names_that_are_no_inputs_are_ignored() -> None:
    assert output_shapes(dense(), {"x": (2, 3), "other": (9,)}) == [(2, 4), (2,)]


def test_what_the_graph_said_of_its_values_before_is_forgotten() -> None:
    net = Net()
    y = net.input("x", (2, 3))
    for _ in range(3):
        y = net.call("Neg", y, type=tensor_type((2, 3)))
    fixed = skeleton(net.model(y))
    assert onnx.load_model_from_string(fixed).graph.value_info  # else there is nothing to forget
    assert output_shapes(fixed, {"x": (5, 6)}) == [(5, 6)]


def test_sizes_computed_from_shapes_are_followed() -> None:
    """Reshape(x, (Shape(x)[0], -1)): the size goes through Shape, Gather and Concat."""
    net = Net()
    x = net.input("x", (-1, 2, 3))
    batch = net.call("TupleGetItem", net.call("Shape", x), net.constant(0))
    y = net.call("Reshape", x, net.tuple(batch, net.constant(-1)))
    assert output_shapes(skeleton(net.model(y)), {"x": (5, 2, 3)}) == [(5, 6)]


@pytest.mark.parametrize(("channels", "group"), [(4, 1), (2, 1), (3, 2)])
def test_channels_that_a_convolution_has_no_weights_for_are_refused(
    channels: int, group: int
) -> None:
    """ONNX's own inference takes no notice of them."""
    net = Net()
    wanted = 3 if group == 1 else 4
    x = net.input("x", (1, wanted, 8, 8))
    w = net.weight("w", np.ones((4, wanted // group, 3, 3), np.float32))
    y = net.call("Conv2D", net.call("Neg", x), w, pad_mode="valid", group=group, scope="conv")
    made = skeleton(net.model(y))
    assert output_shapes(made, {"x": (2, wanted, 9, 9)}) == [(2, 4, 7, 7)]
    with pytest.raises(ShapeError, match=f"'conv' gets {channels} channels and has weights for"):
        output_shapes(made, {"x": (1, channels, 8, 8)})


def test_of_what_a_loop_returns_only_the_rank_is_known() -> None:
    model = read(memoryview(content("control/while_open.mindir")))
    found = output_shapes(skeleton(model), {"x": (4, 3), "n": ()})
    assert found == [(-1, -1), ()]


def test_a_reshape_to_a_fixed_shape_of_another_size_is_refused() -> None:
    net = Net()
    y = net.call("Reshape", net.input("x", (-1, 3)), net.constant((2, 6)), scope="Default/view")
    assert output_shapes(skeleton(net.model(y)), {"x": (4, 3)}) == [(2, 6)]
    with pytest.raises(ShapeError, match=r"cannot make \[2, 6\] of \[5, 3\]"):
        output_shapes(skeleton(net.model(y)), {"x": (5, 3)})


def test_sizes_by_factors_are_those_of_the_engine() -> None:
    net = Net()
    x = net.input("x", (1, 1, -1, -1, -1))
    y = net.call("UpsampleNearest3D", x, net.constant(None), net.constant((0.7, 1.0, 2.0)))
    model = net.model(y)
    (told,) = output_shapes(skeleton(model), {"x": (1, 1, 20, 3, 4)})
    (got,) = run(model, np.ones((1, 1, 20, 3, 4), np.float32))
    assert told == got.shape == (1, 1, 14, 3, 8)


def test_a_value_whose_rank_is_open_may_be_reshaped() -> None:
    """What comes out of a Loop has no rank where its body does not tell it."""
    helper = onnx.helper
    info = helper.make_tensor_value_info
    state, again = (info("state", 1, None), info("again", onnx.TensorProto.BOOL, []))
    nodes = [
        helper.make_node("Identity", ["going"], ["again"]),
        helper.make_node("Neg", ["state"], ["next"]),
    ]
    inner = [info("turn", onnx.TensorProto.INT64, []), info("going", onnx.TensorProto.BOOL, [])]
    body = helper.make_graph(nodes, "body", [*inner, state], [again, info("next", 1, None)])
    graph = helper.make_graph(
        [
            helper.make_node("Loop", ["count", "", "x"], ["last"], body=body),
            helper.make_node("Reshape", ["last", "target"], ["y"]),
        ],
        "net",
        [info("x", 1, ["n", 3])],
        [info("y", 1, None)],
        [
            onnx.numpy_helper.from_array(np.asarray(2), "count"),
            onnx.numpy_helper.from_array(np.asarray([3, 4]), "target"),
        ],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    assert output_shapes(made.SerializeToString(), {"x": (4, 3)}) == [(3, 4)]
