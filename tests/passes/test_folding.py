"""passes/folding.py: what an engine would compute ahead of time is measured before it does."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from onnx import helper
from support.onnx_graphs import BOOL, F32, I64, body, model, node

from mindspore_lite.core.budget import DEFAULT, Budget
from mindspore_lite.errors import EngineError, ModelFileError
from mindspore_lite.passes.folding import Folding, check_folding, refuse_unknown

X = ("x", F32, (2, 3))
SMALL = Budget(max_fold_bytes=1 << 20)


def measured(nodes: list[Any], budget: Budget = SMALL, opset: int = 21, **weights: Any) -> Folding:
    """The folding of a model that adds a constant `k` to its input."""
    last = node("Identity", ["x"], ["y"])
    return check_folding(ir.from_proto(model([*nodes, last], [X], ["y"], opset, **weights)), budget)


def ints(*numbers: int) -> np.ndarray:
    return np.asarray(numbers, np.int64)


ONE = np.ones(1, np.float32)
HUGE = 1 << 20

BOMBS: dict[str, tuple[Any, dict[str, Any]]] = {
    "AffineGrid": (node("AffineGrid", ["t", "s"], ["k"]),
                   {"t": np.ones((1, 2, 3), np.float32), "s": ints(1, 1, HUGE, HUGE)}),
    "ConstantOfShape": (node("ConstantOfShape", ["s"], ["k"]), {"s": ints(HUGE, HUGE)}),
    "Expand": (node("Expand", ["o", "s"], ["k"]), {"o": ONE, "s": ints(HUGE)}),
    "Tile": (node("Tile", ["o", "s"], ["k"]), {"o": ONE, "s": ints(HUGE)}),
    "Range": (node("Range", ["a", "b", "c"], ["k"]),
              {"a": np.int64(0), "b": np.int64(HUGE), "c": np.int64(1)}),
    "OneHot": (node("OneHot", ["i", "d", "v"], ["k"]),
               {"i": ints(1, 2), "d": np.int64(HUGE), "v": np.float32([0, 1])}),
    "Resize": (node("Resize", ["i", "", "f"], ["k"]),
               {"i": np.ones((1, 1, 2, 2), np.float32), "f": np.float32([1, 1, 9999, 9999])}),
    "Pad": (node("Pad", ["o", "s"], ["k"]), {"o": ONE, "s": ints(HUGE, HUGE)}),
    "Col2Im": (node("Col2Im", ["i", "s", "w"], ["k"]),
               {"i": np.ones((1, 1, 1), np.float32), "s": ints(HUGE, HUGE), "w": ints(1, 1)}),
    "MaxUnpool": (node("MaxUnpool", ["i", "p", "s"], ["k"], kernel_shape=[1, 1]),
                  {"i": np.ones((1, 1, 1, 1), np.float32), "p": np.zeros((1, 1, 1, 1), np.int64),
                   "s": ints(1, 1, HUGE, HUGE)}),
    "GridSample": (node("GridSample", ["i", "g"], ["k"]),
                   {"i": np.ones((1, 999, 1, 1), np.float32),
                    "g": np.ones((1, 20, 20, 2), np.float32)}),
    "MelWeightMatrix": (node("MelWeightMatrix", ["a", "b", "c", "d", "e"], ["k"]),
                        {"a": np.int64(HUGE), "b": np.int64(HUGE), "c": np.int64(8000),
                         "d": np.float32(0), "e": np.float32(1)}),
    "HannWindow": (node("HannWindow", ["n"], ["k"]), {"n": np.int64(HUGE)}),
    "BlackmanWindow": (node("BlackmanWindow", ["n"], ["k"]), {"n": np.int64(HUGE)}),
    "DFT": (node("DFT", ["i", "n"], ["k"]),
            {"i": np.ones((1, 4, 1), np.float32), "n": np.int64(HUGE)}),
    "Add": (node("Add", ["a", "b"], ["k"]),
            {"a": np.ones((1, 1024), np.float32), "b": np.ones((1024, 1), np.float32)}),
    "Where": (node("Where", ["c", "a", "b"], ["k"]),
              {"c": np.ones((1024, 1), np.bool_), "a": np.ones((1, 1024), np.float32), "b": ONE}),
    "MatMul": (node("MatMul", ["a", "b"], ["k"]),
               {"a": np.ones((2048, 1), np.float32), "b": np.ones((1, 2048), np.float32)}),
}  # fmt: skip


@pytest.mark.parametrize("name", BOMBS)
def test_a_small_constant_that_becomes_a_large_one_is_refused(name: str) -> None:
    made, weights = BOMBS[name]
    with pytest.raises(ModelFileError, match=rf"\({name}\), more than the 1048576 .*max_fold_b"):
        measured([made], **weights)


def test_an_operator_of_an_older_opset_is_measured_too() -> None:
    scales = {"i": np.ones((1, 1, 2, 2), np.float32), "f": np.float32([1, 1, 9999, 9999])}
    with pytest.raises(ModelFileError, match=r"\(Upsample\)"):
        measured([node("Upsample", ["i", "f"], ["k"])], opset=9, **scales)


def test_many_results_count_together() -> None:
    def expands(count: int) -> list[Any]:
        return [node("Expand", ["o", "s"], [f"k{i}"]) for i in range(count)]

    weights = {"o": ONE, "s": ints(1 << 16)}
    assert measured(expands(4), **weights).known_bytes == 1 << 20
    with pytest.raises(ModelFileError, match=r"would make 1310720 bytes, 262144 of them in node"):
        measured(expands(5), **weights)


def test_sizes_are_followed_through_arithmetic_and_shapes_of_inputs() -> None:
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Mul", ["s", "f"], ["m"]),
        node("Cast", ["m"], ["c"], to=I64),
        node("ConstantOfShape", ["c"], ["k"]),
    ]
    assert measured(nodes, f=ints(10)).known_bytes == 2 * 8 * 2 + 20 * 30 * 4
    with pytest.raises(ModelFileError, match="ConstantOfShape"):
        measured(nodes, f=ints(HUGE))


def test_the_shape_of_a_value_in_between_is_known_where_it_follows_from_the_inputs() -> None:
    nodes = [
        node("Transpose", ["x"], ["t"]),
        node("Shape", ["t"], ["s"]),
        node("Mul", ["s", "f"], ["m"]),
        node("ConstantOfShape", ["m"], ["k"]),
    ]
    with pytest.raises(ModelFileError, match="ConstantOfShape"):
        measured(nodes, f=ints(HUGE))


def test_nodes_in_branches_count() -> None:
    yes = body([node("Expand", ["o", "s"], ["k"])], [], [("k", F32, None)])
    no = body([node("Identity", ["x"], ["e"])], [], [("e", F32, None)])
    proto = model(
        [node("If", ["c"], ["y"], then_branch=yes, else_branch=no)], [X, ("c", BOOL, ())], ["y"],
        o=ONE, s=ints(HUGE),
    )  # fmt: skip
    with pytest.raises(ModelFileError, match="Expand"):
        check_folding(ir.from_proto(proto), SMALL)


def test_what_depends_on_an_input_is_not_computed_ahead() -> None:
    nodes = [node("Expand", ["x", "s"], ["k"]), node("RandomNormal", [], ["r"], shape=[HUGE, 9])]
    assert measured(nodes, s=ints(HUGE, 1, 1)).known_bytes == 0


def test_results_that_depend_on_numbers_are_bounded_by_the_inputs() -> None:
    nodes = [node("NonZero", ["a"], ["k"]), node("Unique", ["a"], ["u"])]
    found = measured(nodes, a=np.ones((8, 4), np.float32))
    assert found.unknown == []
    assert found.known_bytes == 2 * 32 * 8 + 32 * 8


def test_a_weight_that_is_cast_and_transposed_is_within_the_default() -> None:
    nodes = [node("Cast", ["w"], ["c"], to=F32), node("Transpose", ["c"], ["k"])]
    made = ir.from_proto(model([*nodes, node("Identity", ["x"], ["y"])], [X], ["y"], w=ONE))
    weight = made.graph.initializers["w"]
    large = np.broadcast_to(np.int8(1), (1 << 16, 1 << 16))
    weight.const_value, weight.shape = ir.Tensor(large, name="w"), ir.Shape(large.shape)
    assert check_folding(made, DEFAULT).known_bytes == 2 * (4 << 32)


def loop(trips: int) -> list[Any]:
    inner = body(
        [node("Identity", ["c"], ["d"]), node("Concat", ["v", "v"], ["w"], axis=0)],
        [("i", I64, ()), ("c", BOOL, ()), ("v", F32, None)],
        [("d", BOOL, ()), ("w", F32, None)],
    )
    trip = helper.make_node("Constant", [], ["n"], value_int=trips)
    return [trip, node("Loop", ["n", "", "o"], ["k"], body=inner), node("Neg", ["k"], ["z"])]


def test_what_no_inference_tells_shares_what_is_left() -> None:
    found = measured(loop(40), o=ONE)
    assert found.unknown == ["node 'Loop_k' (Loop)", "node 'Neg_z' (Neg)"]
    assert found.most_each == (1 << 20) // 2


def test_an_engine_without_a_bound_refuses_what_no_inference_tells() -> None:
    proto = model([*loop(40), node("Add", ["x", "z"], ["y"])], [X], ["y"], o=ONE)
    with pytest.raises(EngineError, match=r"OpenVINO would compute node 'Loop_k' \(Loop\) ahead"):
        refuse_unknown(ir.from_proto(proto), SMALL, "OpenVINO")


def test_a_loop_that_uses_an_input_is_none_of_the_constants() -> None:
    nodes = loop(40)
    nodes[1].attribute[0].g.node[1].input[1] = "x"
    assert measured(nodes, o=np.ones((2, 3), np.float32)).unknown == []


def test_a_node_that_makes_no_sense_is_left_to_the_engine() -> None:
    found = measured([node("MatMul", ["a", "a"], ["k"])], a=np.ones((2, 3), np.float32))
    assert found.unknown == ["node 'MatMul_k' (MatMul)"]


@pytest.mark.parametrize(
    "odd",
    [
        helper.make_node("Shape", ["x"], []),
        helper.make_node("Shape", ["x"], ["k"], start=1.5),
        helper.make_node("Size", [], ["k"]),
        helper.make_node("NonZero", [""], ["k"]),
    ],
)
def test_nodes_that_no_exporter_writes_do_no_harm(odd: Any) -> None:
    assert measured([odd]).known_bytes == 0


def test_a_size_beyond_all_integers_is_followed_as_the_largest() -> None:
    shapes = [node("Size", ["big"], ["s"]), node("Reshape", ["s", "one"], ["r"])]
    proto = model(
        [*shapes, node("ConstantOfShape", ["r"], ["k"]), node("Identity", ["x"], ["y"])],
        [X, ("big", F32, (1 << 40, 1 << 40))], ["y"], one=ints(1),
    )  # fmt: skip
    with pytest.raises(ModelFileError, match="ConstantOfShape"):
        check_folding(ir.from_proto(proto), SMALL)


def test_weights_that_share_their_bytes_raise_the_limit_once() -> None:
    array = np.zeros(1 << 20, np.float32)
    values = [ir.Value(name=f"w{n}", const_value=ir.Tensor(array)) for n in range(100)]
    graph = ir.Graph([], [], nodes=[], initializers=values, opset_imports={"": 21}, name="g")
    made = ir.Model(graph, ir_version=10)
    assert check_folding(made, Budget()).limit == Budget().fold_limit(array.nbytes)


# --- what computing takes -------------------------------------------------------------------------

ROW = np.ones((1, 1, 600), np.float32)


def conv_transpose(*before: Any) -> list[Any]:
    return [*before, node("ConvTranspose", ["a", "b"], ["k"], pads=[599, 599])]


def test_working_memory_beyond_the_limit_is_found() -> None:
    found = measured(conv_transpose(), a=ROW, b=ROW)
    assert found.costly == (
        "node 'ConvTranspose_k' (ConvTranspose) may take 2880000 bytes for that, with the "
        "constants before it more than the 1048576 of [build] max_fold_bytes"
    )
    assert measured(conv_transpose(), Budget(), a=ROW, b=ROW).costly == ""


def test_steps_add_up() -> None:
    square = [node("ConstantOfShape", ["s"], ["a"])]
    products = [node("MatMul", ["a", "a"], [f"k{at}"]) for at in range(2)]
    assert measured([*square, *products[:1]], Budget(), s=ints(2500, 2500)).costly == ""
    found = measured([*square, *products], Budget(), s=ints(2500, 2500))
    assert found.costly.startswith("that may take 31250000000 steps, 15625000000 of them in node")


def test_weights_allow_more_steps() -> None:
    found = measured([node("MatMul", ["a", "a"], ["k"])], a=np.ones((64, 64), np.float32))
    assert found.most_steps == (1 << 34) + 16 * 4 * 64 * 64


def test_an_operator_without_a_bound_is_costly() -> None:
    found = measured([node("Own", ["a"], ["k"], domain="own")], a=ONE)
    assert found.costly == "what memory node 'Own_k' (Own) takes for that cannot be told"


def test_an_engine_that_computes_all_ahead_refuses_what_is_costly() -> None:
    proto = model([*conv_transpose(), node("Add", ["x", "k"], ["y"])], [X], ["y"], a=ROW, b=ROW)
    words = "PyTorch would compute constants ahead of time, and node 'ConvTranspose_k'"
    with pytest.raises(EngineError, match=words):
        refuse_unknown(ir.from_proto(proto), SMALL, "PyTorch")


def test_texts_of_constants_are_refused() -> None:
    proto = model(
        [node("StringConcat", ["t", "t"], ["k"]), node("Identity", ["x"], ["y"])], [X], ["y"],
        t=np.asarray(["text"], object),
    )  # fmt: skip
    with pytest.raises(ModelFileError, match="makes texts of constants, whose size nothing bounds"):
        check_folding(ir.from_proto(proto), DEFAULT)


@pytest.mark.parametrize("op", ["StringSplit", "StringNormalizer"])
def test_texts_of_unknown_number_are_not_computed_ahead(op: str) -> None:
    outputs = ["k", "n"] if op == "StringSplit" else ["k"]
    proto = model(
        [node(op, ["t"], outputs), node("Identity", ["x"], ["y"])], [X], ["y"],
        t=np.asarray(["a text"], object),
    )  # fmt: skip
    try:
        found = check_folding(ir.from_proto(proto), DEFAULT)
    except ModelFileError as exc:
        assert "makes texts of constants" in str(exc)
    else:
        assert found.costly


# --- shapes that an engine knows, and ONNX's inference does not -----------------------------------

SHAPED = [
    node("Shape", ["g"], ["s"]),
    node("ReduceProd", ["s"], ["p"], keepdims=1),
    node("Mul", ["p", "m"], ["n"]),
    node("Concat", ["one", "n"], ["d"], axis=0),
    node("ConstantOfShape", ["d"], ["a"]),
    node("ConvTranspose", ["a", "a"], ["k"], pads=[599, 599]),
]
SIZES = {"m": ints(100), "one": ints(1, 1)}


@pytest.mark.parametrize(
    "before",
    [
        [node("Gelu", ["x"], ["g"], domain="com.microsoft")],
        [node("Abs", ["t"], ["u"]), node("Reshape", ["x", "u"], ["g"])],
        [node("Unique", ["t"], ["u"]), node("Reshape", ["x", "u"], ["g"])],
        # constants that follow from shapes that follow from constants
        [
            node("Abs", ["t"], ["u"]), node("Reshape", ["x", "u"], ["h"]),
            node("Shape", ["h"], ["v"]), node("Abs", ["v"], ["w"]),
            node("Reshape", ["x", "w"], ["g"]),
        ],
    ],
)  # fmt: skip
def test_constants_made_of_shapes_that_only_an_engine_knows_are_costly(before: list[Any]) -> None:
    assert measured([*before, *SHAPED], t=ints(2, 3), **SIZES).costly


def test_what_a_file_says_of_a_shape_does_not_count_before_what_follows() -> None:
    last = node("Identity", ["x"], ["y"])
    proto = model([node("Neg", ["x"], ["g"]), *SHAPED, last], [X], ["y"], **SIZES)
    proto.graph.value_info.append(helper.make_tensor_value_info("g", F32, (1, 1)))
    assert check_folding(ir.from_proto(proto), SMALL).costly


def test_the_shape_of_a_result_that_is_only_bounded_is_not_known() -> None:
    nodes = [node("Unique", ["t"], ["g"]), *SHAPED]
    assert measured(nodes, t=np.zeros(2, np.float32), **SIZES).costly


def test_shapes_without_end_are_given_up() -> None:
    nodes, last = [], "x"
    for at in range(20):
        nodes += [
            node("Abs", ["t" if not at else f"s{at - 1}"], [f"u{at}"]),
            node("Reshape", [last, f"u{at}"], [f"g{at}"]),
            node("Shape", [f"g{at}"], [f"s{at}"]),
        ]
        last = f"g{at}"
    nodes.append(node("Identity", [last], ["g"]))
    assert measured([*nodes, *SHAPED], t=ints(2, 3), **SIZES).costly


def test_open_sizes_are_open_for_every_engine() -> None:
    last = node("Identity", ["x"], ["y"])
    nodes = [node("Neg", ["x"], ["g"]), *SHAPED, last]
    proto = model(nodes, [("x", F32, ("n", 3))], ["y"], **SIZES)
    found = check_folding(ir.from_proto(proto), SMALL)
    assert (found.costly, found.unknown, found.known_bytes) == ("", [], 0)


def test_bodies_that_share_names_are_told_apart() -> None:
    """In one body `u` is a constant, in the other it is not."""

    def branch(*nodes: Any) -> Any:
        return body(list(nodes), [], [("g", F32, None)])

    reshape = node("Reshape", ["x", "u"], ["g"])
    chosen = node(
        "If", ["c"], ["z"],
        then_branch=branch(node("Abs", ["t"], ["u"]), reshape, *SHAPED),
        else_branch=branch(node("Abs", ["v"], ["u"]), reshape),
    )  # fmt: skip
    ports = [X, ("c", BOOL, ()), ("v", I64, (2,))]
    proto = model([chosen, node("Identity", ["x"], ["y"])], ports, ["y"], t=ints(2, 3), **SIZES)
    assert check_folding(ir.from_proto(proto), SMALL).costly
