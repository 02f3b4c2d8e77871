"""passes/opset.py: old models compute the same at opset 21."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper
from support.onnx_graphs import (
    BOOL,
    F32,
    I64,
    assert_same,
    body,
    feeds_for,
    model,
    node,
    ops,
    results,
)

from mindspore_lite.errors import ModelFileError, UnsupportedOpError
from mindspore_lite.passes.infer_shapes import infer_shapes
from mindspore_lite.passes.opset import upgraded

X = ("x", F32, (2, 3, 4, 4))
OPEN = ("x", F32, ("n", "c", "h", "w"))
ONES = np.ones(3, np.float32)
STATISTICS = {
    "scale": np.array([0.5, 1, 2], np.float32),
    "bias": np.array([1, -1, 0.5], np.float32),
    "mean": np.array([0.1, 0, -0.3], np.float32),
    "var": np.array([1, 2, 0.5], np.float32),
}
NORM = ["x", *STATISTICS]
WIDE = {name: np.tile(array[:, None, None], (1, 4, 4)) for name, array in STATISTICS.items()}
WIDE["mean"] = np.linspace(-1, 1, 48, dtype=np.float32).reshape(3, 4, 4)
UP = np.array([1, 1, 2, 1.5], np.float32)
DOWN = np.array([1, 1, 0.5, 0.75], np.float32)


def one(op: str, opset: int, *more: str, outputs: int = 1, **kept: object) -> tuple:
    """A case of a single node whose weights are arrays and whose other keywords are attributes."""
    weights = {k: v for k, v in kept.items() if isinstance(v, np.ndarray)}
    attributes = {k: v for k, v in kept.items() if k not in weights}
    names = ["y", "z", "v"][:outputs]
    return op, opset, more, names, attributes, weights


CASES = [
    one("Upsample", 7, scales=[1.0, 1.0, 2.0, 3.0]),
    one("Upsample", 7, scales=[1.0, 1.0, 2.0, 3.0], mode="linear"),
    one("Upsample", 9, "s", s=UP),
    one("Resize", 10, "s", s=UP),
    one("Resize", 10, "s", s=DOWN),
    one("Resize", 10, "s", s=np.array([1, 1, 1.5, 0.5], np.float32)),
    one("Resize", 10, "s", s=UP, mode="linear"),
    one("Resize", 10, "s", s=DOWN, mode="linear"),
    one("Resize", 11, "r", "s", r=np.array([], np.float32), s=UP, mode="cubic"),
    one(
        "Resize",
        11,
        "r",
        "e",
        "s",
        r=np.array([], np.float32),
        e=np.array([], np.float32),
        s=np.array([2, 3, 7, 9]),
    ),
    one(
        "Resize",
        11,
        "r",
        "s",
        r=np.array([], np.float32),
        s=UP,
        nearest_mode="floor",
        coordinate_transformation_mode="tf_half_pixel_for_nn",
    ),
    one("Softmax", 7),
    one("Softmax", 11, axis=3),
    one("Softmax", 12, axis=-1),
    one("LogSoftmax", 10, axis=2),
    one("Hardmax", 11),
    one("Hardmax", 12, axis=-2),
    one("Unsqueeze", 7, axes=[0, 2]),
    one("Squeeze", 9),
    one("Clip", 7, max=1.0),
    one("Clip", 10, min=-0.5, max=0.5),
    one("Clip", 7),
    one("Clip", 11, "m", m=np.array(0, np.float32)),
    one("Pad", 7, pads=[0, 0, 1, 2, 0, 0, 0, 1], value=2.0),
    one("Pad", 10, pads=[0, 0, 1, 1, 0, 0, 1, 1], mode="reflect"),
    one("Slice", 7, starts=[1, 0], ends=[3, -1], axes=[2, 3]),
    one("Slice", 9, starts=[1], ends=[2]),
    one("TopK", 7, k=2, outputs=2),
    one("TopK", 10, "k", k=np.array([2]), outputs=2),
    one("Dropout", 7, ratio=0.3),
    one("Dropout", 10, ratio=0.3),
    one("Dropout", 12),
    one("BatchNormalization", 7, *STATISTICS, **STATISTICS),
    one("BatchNormalization", 8, *STATISTICS, spatial=0, epsilon=0.1, **WIDE),
    one("BatchNormalization", 9, *STATISTICS, epsilon=0.01, **STATISTICS),
    one("BatchNormalization", 14, *STATISTICS, **STATISTICS),
    one("ReduceSum", 7, axes=[1, 3], keepdims=0),
    one("ReduceSum", 12),
    one("ReduceMean", 7, axes=[1]),
    one("ReduceMax", 13, axes=[2], keepdims=0),
    one("ReduceL2", 17, axes=[-1]),
    one("ReduceLogSumExp", 11),
    one("ReduceMin", 18, "a", a=np.array([1])),
    one("Split", 7, axis=2, outputs=2),
    one("Split", 11, axis=1, split=[1, 2], outputs=2),
    one("Split", 13, "s", s=np.array([1, 3]), axis=3, outputs=2),
    one("Split", 17, axis=3, outputs=2),
    one(
        "GroupNormalization",
        18,
        "s",
        "b",
        num_groups=1,
        s=np.array([2], np.float32),
        b=np.array([1], np.float32),
    ),
    one("GroupNormalization", 20, "s", "b", num_groups=3, s=ONES * 2, b=ONES),
    one("MaxPool", 7, kernel_shape=[2, 2]),
    one("AveragePool", 10, kernel_shape=[2, 2]),
    one("LpPool", 11, kernel_shape=[2, 2]),
    one("ArgMax", 7, axis=1),
    one("Flatten", 7),
    one("Cast", 8, to=TensorProto.FLOAT16),
    one("Shape", 12),
    one("DepthToSpace", 10, blocksize=1),
    one("QuantizeLinear", 10, "s", "p", s=np.array(0.1, np.float32), p=np.array(3, np.uint8)),
    one("InstanceNormalization", 7, "s", "b", s=ONES, b=ONES),
    one("LRN", 7, size=3),
    one("GlobalAveragePool", 7),
    one("Selu", 7),
    one("LeakyRelu", 15),
    one("Pow", 7, "p", p=np.array(2, np.float32)),
    one(
        "Scatter",
        9,
        "i",
        "u",
        i=np.zeros((1, 3, 4, 4), np.int64),
        u=np.ones((1, 3, 4, 4), np.float32),
    ),
    one("Gather", 7, "i", i=np.array([1, 0]), axis=1),
    one("Tile", 7, "r", r=np.array([1, 2, 1, 1])),
    one("Sum", 7, "w", w=np.ones((2, 3, 4, 4), np.float32)),
    one("Expand", 8, "s", s=np.array([2, 3, 4, 4])),
    one(
        "RoiAlign",
        10,
        "r",
        "i",
        r=np.array([[0.2, 0.3, 2.7, 3.1]], np.float32),
        i=np.array([1]),
        output_height=2,
        output_width=2,
    ),
    one("GridSample", 16, "g", g=np.linspace(-1, 1, 16, dtype=np.float32).reshape(2, 2, 2, 2)),
    one(
        "GridSample",
        16,
        "g",
        g=np.linspace(-1, 1, 16, dtype=np.float32).reshape(2, 2, 2, 2),
        mode="bicubic",
    ),
    one("Reshape", 7, "s", s=np.array([2, -1])),
    one("Dropout", 13, "q", q=np.array(0.5, np.float32)),
]
OUTPUT_TYPES = {
    "ArgMax": I64, "Shape": I64, "QuantizeLinear": TensorProto.UINT8, "Cast": TensorProto.FLOAT16,
}  # fmt: skip


def built(case: tuple, x: tuple) -> onnx.ModelProto:
    op, opset, more, names, attributes, weights = case
    outputs = [(names[0], OUTPUT_TYPES.get(op, F32), None)]
    outputs += [(n, I64 if op == "TopK" else F32, None) for n in names[1:]]
    return model([node(op, ["x", *more], names, **attributes)], [x], outputs, opset, **weights)


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[0]}-{c[1]}")
@pytest.mark.parametrize("x", [X, OPEN, ("x", F32, None)], ids=["fixed", "open", "any_rank"])
def test_an_old_operator_computes_the_same_at_opset_21(case: tuple, x: tuple) -> None:
    old = built(case, x)
    new = upgraded(ir.from_proto(old))
    assert new.opset_imports[""] == 21
    infer_shapes(new)
    if x is X and new.graph.outputs[0].shape is not None:
        onnx.checker.check_model(ir.to_proto(new), full_check=True)
    assert_same(new, old, feeds_for(built(case, X)))


@pytest.mark.parametrize("case", [c for c in CASES if c[0] in ("Clip", "Pad")], ids=str)
def test_numbers_that_become_inputs_have_the_type_of_the_operand(case: tuple) -> None:
    op, opset, more, names, attributes, weights = case
    half = TensorProto.FLOAT16
    weights = {name: np.asarray(array, np.float16) for name, array in weights.items()}
    nodes = [
        node("Cast", ["x"], ["h"], to=half),
        node(op, ["h", *more], ["k"], **attributes),
        node("Cast", ["k"], names, to=F32),
    ]
    new = upgraded(ir.from_proto(model(nodes, [X], ["y"], opset, **weights)))
    infer_shapes(new)
    onnx.checker.check_model(ir.to_proto(new), full_check=True)


def test_a_recurrent_layer_stays_what_it_is() -> None:
    random = np.random.default_rng(3)
    w, r = (random.normal(size=(1, 8, n)).astype(np.float32) for n in (3, 2))
    old = model(
        [node("LSTM", ["x", "w", "r"], ["y"], hidden_size=2)], [("x", F32, (5, 1, 3))], ["y"], 7,
        w=w, r=r,
    )  # fmt: skip
    new = upgraded(ir.from_proto(old))
    assert ops(new) == ["LSTM"]
    assert_same(new, old, feeds_for(old))


def test_a_fourier_transform_keeps_its_axis() -> None:
    for attributes in ({}, {"axis": 2}):
        old = model(
            [node("DFT", ["x"], ["y"], **attributes)], [("x", F32, (2, 3, 4, 1))], ["y"], 17
        )
        assert_same(upgraded(ir.from_proto(old)), old, feeds_for(old))


def test_the_rank_of_a_softmax_may_follow_from_other_upgrades() -> None:
    """x.reshape(n, m, 2, 2).softmax(3): n and m go through Unsqueeze, whose old form hid them."""
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "first"], ["n"]),
        node("Unsqueeze", ["n"], ["n1"], axes=[0]),
        node("Concat", ["n1", "rest"], ["target"], axis=0),
        node("Reshape", ["x", "target"], ["r"]),
        node("Softmax", ["r"], ["y"], axis=3),
    ]
    weights = {"first": np.array(0), "rest": np.array([3, 2, 2])}
    old = model(nodes, [("x", F32, ("n", 12))], ["y"], 11, **weights)
    new = upgraded(ir.from_proto(old))
    assert [op for op in ops(new) if op != "Constant"] == [n.op_type for n in old.graph.node]
    assert_same(new, old, feeds_for(old))


def branches(opset: int, axis: int = 1) -> onnx.ModelProto:
    yes = body([node("Softmax", ["x"], ["t"], axis=axis)], [], [("t", F32, None)])
    low = body([node("Clip", ["x"], ["l"], max=0.0)], [], [("l", F32, None)])
    wide = [node("Unsqueeze", ["x"], ["u"], axes=[0]), node("ReduceSum", ["u"], ["s"], axes=[0])]
    high = body([*wide, node("Squeeze", ["s"], ["r"], axes=[0])], [], [("r", F32, None)])
    no = body([node("If", ["d"], ["e"], then_branch=low, else_branch=high)], [], [("e", F32, None)])
    nodes = [node("If", ["c"], ["y"], then_branch=yes, else_branch=no)]
    return model(nodes, [X, ("c", BOOL, ()), ("d", BOOL, ())], ["y"], opset)


@pytest.mark.parametrize("c", [True, False])
@pytest.mark.parametrize("d", [True, False])
def test_branches_inside_of_branches_are_upgraded(c: bool, d: bool) -> None:
    old = branches(10)
    feeds = feeds_for(old) | {"c": np.array(c), "d": np.array(d)}
    assert_same(upgraded(ir.from_proto(old)), old, feeds)


def test_the_body_of_a_loop_is_upgraded() -> None:
    loop = body(
        [node("Softmax", ["v"], ["w"]), node("Unsqueeze", ["w"], ["u"], axes=[0]),
         node("Squeeze", ["u"], ["s"], axes=[0]), node("Identity", ["go"], ["on"])],
        [("i", I64, ()), ("go", BOOL, ()), ("v", F32, (2, 3, 4))],
        [("on", BOOL, ()), ("s", F32, (2, 3, 4))],
    )  # fmt: skip
    nodes = [node("Loop", ["n", "c", "x"], ["y"], body=loop)]
    old = model(nodes, [("x", F32, (2, 3, 4))], ["y"], 11, n=np.array(3), c=np.array(True))
    assert_same(upgraded(ir.from_proto(old)), old, feeds_for(old))


def test_the_body_of_a_scan_is_upgraded() -> None:
    scan = body(
        [node("Clip", ["e"], ["k"], max=1.0), node("Add", ["s", "k"], ["t"])],
        [("s", F32, (3,)), ("e", F32, (3,))],
        [("t", F32, (3,)), ("k", F32, (3,))],
    )
    nodes = [node("Scan", ["z", "x"], ["y", "k_all"], body=scan, num_scan_inputs=1)]
    old = model(nodes, [("x", F32, (5, 3))], ["y", "k_all"], 9, z=np.zeros(3, np.float32))
    assert_same(upgraded(ir.from_proto(old)), old, feeds_for(old))


def test_a_model_of_opset_21_or_newer_stays_as_it_is() -> None:
    for opset in (21, 22, 23):
        made = ir.from_proto(model([node("Relu", ["x"], ["y"])], [X], ["y"], opset))
        assert upgraded(made).opset_imports[""] == opset


def test_other_domains_keep_their_version() -> None:
    nodes = [node("Gelu", ["x"], ["a"], domain="com.microsoft"), node("Softmax", ["a"], ["y"])]
    old = model(nodes, [X], ["y"], 11, domains={"com.microsoft": 1})
    new = upgraded(ir.from_proto(old))
    assert new.opset_imports == {"": 21, "com.microsoft": 1}
    assert_same(new, old, feeds_for(old))


def test_the_long_name_of_the_default_domain_is_understood() -> None:
    old = model([node("Softmax", ["x"], ["y"])], [X], ["y"], 11)
    old.opset_import[0].domain = "ai.onnx"
    new = upgraded(ir.from_proto(old))
    assert new.opset_imports == {"": 21}
    assert_same(new, old, feeds_for(old))


def test_functions_are_inlined_whatever_their_opset() -> None:
    scaled = helper.make_function(
        "own", "Scaled", ["a"], ["b"],
        [node("Clip", ["a"], ["k"], min=-1.0), node("Softmax", ["k"], ["b"])],
        [helper.make_opsetid("", 10)], [],
    )  # fmt: skip
    nodes = [node("Scaled", ["x"], ["p"], domain="own"), node("Scaled", ["p"], ["y"], domain="own")]
    old = model(nodes, [X], ["y"], 10, domains={"own": 1}, functions=[scaled])
    mixed = ir.from_proto(old)
    mixed.opset_imports[""] = 18
    for made in (ir.from_proto(old), mixed):
        new = upgraded(made)
        assert not new.functions
        assert {n.domain for n in new.graph} == {""}
        assert_same(new, old, feeds_for(old))


@pytest.mark.parametrize("opset", [17, 21])
def test_a_function_may_hand_on_its_input_and_be_called_in_a_branch(opset: int) -> None:
    both = helper.make_function(
        "own", "Both", ["a"], ["a", "b"], [node("Neg", ["a"], ["b"])],
        [helper.make_opsetid("", opset)], [],
    )  # fmt: skip
    yes = body([node("Both", ["x"], ["p", "t"], domain="own")], [], [("t", F32, None)])
    no = body([node("Both", ["b"], ["q", "e"], domain="own")], [], [("e", F32, None)])
    nodes = [
        node("Both", ["x"], ["a", "b"], domain="own"),
        node("If", ["c"], ["y"], then_branch=yes, else_branch=no),
    ]
    inputs = [X, ("c", BOOL, ())]
    old = model(nodes, inputs, ["y", "b"], opset, domains={"own": 1}, functions=[both])
    new = upgraded(ir.from_proto(old))
    assert not new.functions
    x = feeds_for(old)["x"]
    for c, wanted in ((True, -x), (False, x)):  # ONNX Runtime does not take such a function
        found = results(new, {"x": x, "c": np.array(c)})
        np.testing.assert_array_equal(found["y"], wanted)
        np.testing.assert_array_equal(found["b"], -x)


def test_attributes_of_a_function_are_filled_in_before_it_is_upgraded() -> None:
    inner = helper.make_node("Clip", ["a"], ["b"], min=-1.0)
    inner.attribute[0].CopyFrom(
        onnx.AttributeProto(name="max", type=onnx.AttributeProto.FLOAT, ref_attr_name="top")
    )
    capped = helper.make_function(
        "own", "Capped", ["a"], ["b"], [inner], [helper.make_opsetid("", 10)], ["top"]
    )
    old = model(
        [node("Capped", ["x"], ["y"], domain="own", top=0.25)], [X], ["y"], 10,
        domains={"own": 1}, functions=[capped],
    )  # fmt: skip
    assert_same(upgraded(ir.from_proto(old)), old, feeds_for(old))


def test_weights_are_the_same_objects_under_the_same_names() -> None:
    old = model(
        [node("Conv", ["x", "w"], ["c"]), node("Clip", ["c"], ["y"], max=1.0)], [X], ["y"], 9,
        w=np.ones((8, 3, 3, 3), np.float32),
    )  # fmt: skip
    made = ir.from_proto(old)
    before = made.graph.initializers["w"].const_value
    assert upgraded(made).graph.initializers["w"].const_value is before


class Unreadable(ir.Tensor):
    """A weight that nobody may read."""

    def numpy(self) -> np.ndarray:
        raise AssertionError("a weight was read")

    tobytes = numpy


def test_a_weight_of_many_gigabytes_is_not_read() -> None:
    made = ir.from_proto(
        model([node("MatMul", ["x", "w"], ["m"]), node("Softmax", ["m"], ["y"])],
              [("x", F32, (2, 1 << 20))], ["y"], 11, w=np.ones((1, 1), np.float32))
    )  # fmt: skip
    weight = made.graph.initializers["w"]
    weight.const_value = Unreadable(np.broadcast_to(np.float32(1), (1 << 20, 1 << 12)), name="w")
    weight.shape = ir.Shape([1 << 20, 1 << 12])
    new = upgraded(made)
    assert new.graph.outputs[0].shape == (2, 1 << 12)
    assert ops(new) == ["MatMul", "Softmax"]


def test_weights_that_are_listed_as_inputs_are_weights() -> None:
    old = model([node("Add", ["x", "w"], ["y"])], [X, ("w", F32, (1,))], ["y"], 7, w=ONES[:1])
    new = upgraded(ir.from_proto(old))
    assert [i.name for i in new.graph.inputs] == ["x"]
    assert_same(new, old, feeds_for(old))


def test_names_and_metadata_survive() -> None:
    old = model([node("Softmax", ["x"], ["y"], name="top")], [X], ["y"], 11)
    old.metadata_props.add(key="who", value="me")
    new = upgraded(ir.from_proto(old))
    assert "top" in [n.name for n in new.graph]
    assert new.metadata_props == {"who": "me"}
    assert [v.name for v in (*new.graph.inputs, *new.graph.outputs)] == ["x", "y"]


def test_names_that_are_taken_are_not_given_again() -> None:
    old = model(
        [node("Unsqueeze", ["x"], ["y"], axes=[0]), node("Relu", ["x"], ["y_axes"])],
        [X], ["y", "y_axes"], 11,
    )  # fmt: skip
    assert_same(upgraded(ir.from_proto(old)), old, feeds_for(old))


def test_every_node_that_cannot_be_upgraded_is_named() -> None:
    nodes = [
        node("Dropout", ["x"], ["a", "mask"], name="drop"),
        node("BatchNormalization", NORM, ["b", "mean_out", "var_out"], name="norm"),
    ]
    made = ir.from_proto(model(nodes, [X], ["a", "b", "mask", "mean_out"], 7, **STATISTICS))
    with pytest.raises(UnsupportedOpError, match="cannot be brought to ONNX opset 21") as caught:
        upgraded(made)
    assert "drop" in str(caught.value)
    assert "norm" in str(caught.value)


def test_an_operator_that_its_opset_lacks_is_named() -> None:
    made = ir.from_proto(model([node("Relu", ["x"], ["y"], name="who")], [X], ["y"], 9))
    made.graph[0].op_type = "Nothing"
    with pytest.raises(UnsupportedOpError, match=r"Nothing is no operator of ONNX opset 9 \(who\)"):
        upgraded(made)


def test_an_opset_that_is_not_known_yet_is_refused() -> None:
    made = ir.from_proto(model([node("Relu", ["x"], ["y"])], [X], ["y"], 21))
    made.opset_imports[""] = 99
    with pytest.raises(ModelFileError, match="of ONNX opset 99, the installed onnx package knows"):
        upgraded(made)


def test_an_operator_before_opset_7_is_refused_where_its_form_was_another() -> None:
    old = model([node("Add", ["x", "x"], ["y"], name="sum")], [X], ["y"], 6)
    with pytest.raises(UnsupportedOpError, match=r"Add of ONNX opset 6 had another form .*\(sum\)"):
        upgraded(ir.from_proto(old))


def test_an_operator_before_opset_7_is_understood_where_its_form_was_the_same() -> None:
    old = model([node("Flatten", ["x"], ["y"])], [X], ["y"], 5)
    assert_same(upgraded(ir.from_proto(old)), old, feeds_for(old))


@pytest.mark.parametrize("directions", [None, [1]])
def test_a_scan_over_a_batch_becomes_two_scans(directions: list[int] | None) -> None:
    scan = body(
        [node("Clip", ["e"], ["k"], max=1.0), node("Add", ["s", "k"], ["t"])],
        [("s", F32, (3,)), ("e", F32, (3,))],
        [("t", F32, (3,)), ("k", F32, (3,))],
    )
    more = {} if directions is None else {"directions": directions}
    nodes = [node("Scan", ["", "z", "x"], ["y", "all"], body=scan, num_scan_inputs=1, **more)]
    inputs = [("z", F32, (2, 3)), ("x", F32, (2, 5, 3))]
    old = model(nodes, inputs, ["y", "all"], 8)
    assert_same(upgraded(ir.from_proto(old)), old, feeds_for(old))


def test_a_scan_over_sequences_of_their_own_lengths_is_refused() -> None:
    scan = body(
        [node("Add", ["s", "e"], ["t"])], [("s", F32, (3,)), ("e", F32, (3,))], [("t", F32, (3,))]
    )
    nodes = [node("Scan", ["len", "z", "x"], ["y"], body=scan, num_scan_inputs=1)]
    inputs = [("len", I64, (2,)), ("z", F32, (2, 3)), ("x", F32, (2, 5, 3))]
    with pytest.raises(UnsupportedOpError, match="lengths of their own"):
        upgraded(ir.from_proto(model(nodes, inputs, ["y"], 8)))


def test_a_model_without_an_opset_is_refused() -> None:
    made = ir.from_proto(model([node("Relu", ["x"], ["y"])], [X], ["y"], 21))
    del made.opset_imports[""]
    with pytest.raises(ModelFileError, match="does not say which opset"):
        upgraded(made)


@pytest.mark.parametrize("scales", [UP, DOWN], ids=["enlarged", "reduced"])
def test_a_resize_by_factors_of_the_run_time_picks_the_pixels_that_it_picked(
    scales: np.ndarray,
) -> None:
    given = model([node("Resize", ["x", "s"], ["y"])], [X, ("s", F32, (4,))], ["y"], opset=10)
    feeds = {**feeds_for(given), "s": scales}
    assert_same(given, upgraded(ir.from_proto(given)), feeds)


def test_a_layer_normalisation_that_onnx_runtime_put_into_an_old_model_is_understood() -> None:
    scale = {"g": np.ones(4, np.float32)}
    nodes = [
        node("LayerNormalization", ["x", "g"], ["a"], axis=-1),
        node("SimplifiedLayerNormalization", ["a", "g"], ["b"], axis=-1),
        node("ThresholdedRelu", ["b"], ["y"], alpha=0.5),
    ]
    given = model(nodes, [X], ["y"], opset=9, **scale)
    assert_same(given, upgraded(ir.from_proto(given)), feeds_for(given))


def test_steps_that_need_shapes_come_after_others_that_make_nodes() -> None:
    weights = {"s": np.ones(1, np.float32), "b": np.ones(1, np.float32)}
    nodes = [
        node("GroupNormalization", ["x", "s", "b"], ["a"], num_groups=1),
        node("Softmax", ["a"], ["y"], axis=1),
    ]
    given = model(nodes, [X], ["y"], opset=18, **weights)
    assert_same(given, upgraded(ir.from_proto(given)), feeds_for(given))


def test_what_is_inside_of_a_body_has_no_name_of_what_is_around_it() -> None:
    """ONNX's shape inference takes the one for the other."""
    made, flag = [("same", F32, None)], ("flag", BOOL, ())
    inner = body([node("Neg", ["x"], ["same"])], [], made)
    nodes = [
        node("If", ["flag"], ["inner"], then_branch=inner, else_branch=inner),
        node("ReduceMax", ["inner"], ["same"]),
    ]
    outer = body(nodes, [], made)
    branch = node("If", ["flag"], ["y"], then_branch=outer, else_branch=inner)
    model_21 = upgraded(ir.from_proto(model([branch], [X, flag], ["y"], opset=21)))
    around = model_21.graph[0].attributes["then_branch"].as_graph()
    inside = around[0].attributes["then_branch"].as_graph()
    assert around[1].outputs[0].name != inside[0].outputs[0].name


def test_an_old_pad_behind_an_operator_that_onnx_does_not_know_is_understood() -> None:
    nodes = [
        node("QuickGelu", ["x"], ["a"], domain="com.microsoft"),
        node("Pad", ["a"], ["y"], pads=[0, 0, 1, 0, 0, 0, 0, 2], value=0.0),
    ]
    given = model(nodes, [X], ["y"], opset=9, domains={"com.microsoft": 1})
    assert_same(given, upgraded(ir.from_proto(given)), feeds_for(given))
