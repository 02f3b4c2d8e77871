"""passes/optimise.py: all passes together, on models as exporters write them."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.onnx_graphs import F32, I64, assert_same, feeds_for, model, node, ops

from mindspore_lite.passes.opset import upgraded
from mindspore_lite.passes.optimise import LEVELS, optimise

RANDOM = np.random.default_rng(5)


def f32(*shape: int) -> np.ndarray:
    return RANDOM.normal(size=shape).astype(np.float32)


def block(batch: int | str) -> onnx.ModelProto:
    """Conv, BatchNormalization, Dropout, a detour by NHWC, and a flattening by Shape."""
    nodes = [
        node("Conv", ["x", "conv.weight"], ["a"], pads=[1, 1, 1, 1]),
        node("BatchNormalization", ["a", "bn.weight", "bn.bias", "bn.mean", "bn.var"], ["b"]),
        node("Transpose", ["b"], ["c"], perm=[0, 2, 3, 1]),
        node("Relu", ["c"], ["d"]),
        node("Transpose", ["d"], ["e"], perm=[0, 3, 1, 2]),
        node("Dropout", ["e"], ["f"]),
        node("Shape", ["f"], ["s"]),
        node("Gather", ["s", "zero"], ["n"]),
        node("Constant", [], ["minus"], value_ints=[-1]),
        node("Concat", ["n", "minus"], ["target"], axis=0),
        node("Reshape", ["f", "target"], ["g"]),
        node("Gemm", ["g", "fc.weight", "fc.bias"], ["y"], transB=1),
        node("Identity", ["y"], ["unused"]),
    ]
    weights = {
        "conv.weight": f32(4, 3, 3, 3), "bn.weight": f32(4), "bn.bias": f32(4), "bn.mean": f32(4),
        "bn.var": np.abs(f32(4)), "zero": np.array([0]), "fc.weight": f32(5, 4 * 36),
        "fc.bias": f32(5),
    }  # fmt: skip
    return model(nodes, [("x", F32, (batch, 3, 6, 6))], ["y"], **weights)


@pytest.mark.parametrize("level", LEVELS[1:])
@pytest.mark.parametrize("batch", [2, "n"])
def test_a_network_shrinks_to_its_layers(batch: int | str, level: str) -> None:
    old = block(batch)
    new = ir.from_proto(old)
    done = optimise(new, level)
    assert [op for op in ops(new) if op != "Constant"] == ["Conv", "Relu", "Reshape", "Gemm"]
    assert sorted(new.graph.initializers) == ["bn.bias", "conv.weight", "fc.bias", "fc.weight"]
    assert done["BatchNormalizations folded"] == 1
    assert done["Transposes cancelled"] == 1
    assert done["constants folded"] > 0
    assert_same(new, old, feeds_for(old))


def test_level_none_keeps_the_nodes_and_knows_their_shapes() -> None:
    old = block(2)
    new = ir.from_proto(old)
    assert optimise(new, "none") == {"dead nodes removed": 1}
    assert len(new.graph) == len(old.graph.node) - 1
    assert new.graph.outputs[0].shape == (2, 5)
    assert_same(new, old, feeds_for(old))


def test_a_second_time_there_is_nothing_to_do() -> None:
    new = ir.from_proto(block("n"))
    optimise(new, "general")
    assert optimise(new, "general") == {}


def test_each_stage_is_told() -> None:
    told: list[str] = []
    optimise(ir.from_proto(block(2)), "general", told.append)
    assert told[:2] == ["inferring shapes", "optimising, round 1"]


def test_an_unknown_level_is_refused() -> None:
    with pytest.raises(ValueError, match="'fast'"):
        optimise(ir.from_proto(block(2)), "fast")


def test_shapes_left_over_from_another_batch_are_not_believed() -> None:
    """The input was opened by hand after the export for a batch of 1, which is often done."""
    old = block("n")
    sizes = {"a": (1, 4, 6, 6), "f": (1, 4, 6, 6), "n": (1,), "g": (1, 144), "y": (1, 5)}
    for name, dims in sizes.items():
        kind = I64 if name == "n" else F32
        old.graph.value_info.append(onnx.helper.make_tensor_value_info(name, kind, dims))
    old.graph.output[0].CopyFrom(onnx.helper.make_tensor_value_info("y", F32, (1, 5)))
    new = ir.from_proto(old)
    optimise(new, "general")
    assert new.graph.outputs[0].shape == ("n", 5)
    assert_same(new, block_of(old), feeds_for(old, open_dim=3))


def block_of(stale: onnx.ModelProto) -> onnx.ModelProto:
    """The same without what it says wrongly."""
    made = onnx.ModelProto()
    made.CopyFrom(stale)
    del made.graph.value_info[:]
    made.graph.output[0].type.tensor_type.ClearField("shape")
    return made


def test_an_old_model_is_upgraded_and_optimised() -> None:
    nodes = [
        node("Pad", ["x"], ["p"], pads=[0, 0, 0, 0, 0, 0, 0, 0]),
        node("Upsample", ["p"], ["u"], scales=[1.0, 1.0, 2.0, 2.0]),
        node("GlobalAveragePool", ["u"], ["g"]),
        node("Softmax", ["g"], ["s"]),
        node("Squeeze", ["s"], ["q"], axes=[2, 3]),
        node("Dropout", ["q"], ["y"], ratio=0.5),
    ]
    old = model(nodes, [("x", F32, ("n", 3, 4, 4))], ["y"], 7)
    new = upgraded(ir.from_proto(old))
    optimise(new, "general")
    assert [op for op in ops(new) if op != "Constant"] == [
        "Resize", "GlobalAveragePool", "Softmax", "Squeeze",
    ]  # fmt: skip
    assert_same(new, old, feeds_for(old))


UNARY = ["Relu", "Neg", "Identity", "Sigmoid", "Dropout"]
STEPS = st.one_of(
    st.sampled_from(UNARY).map(lambda op: ("unary", op)),
    st.permutations(range(3)).map(lambda perm: ("turn", list(perm))),
    st.sampled_from(["Add", "Mul", "Sub"]).map(lambda op: ("binary", op)),
    st.sampled_from([0.0, 1.0, 2.0]).map(lambda number: ("number", number)),
    st.just(("reshape", None)),
    st.just(("cast", None)),
    st.just(("slice", None)),
)


@settings(max_examples=100, deadline=None)
@given(st.lists(STEPS, min_size=1, max_size=9), st.sampled_from([2, "n"]), st.booleans())
def test_any_row_of_operators_computes_the_same(steps: list, batch: int | str, both: bool) -> None:
    nodes, weights, value, before = [], {}, "x", "x"
    for at, (kind, what) in enumerate(steps):
        new = f"v{at}"
        if kind == "unary":
            nodes.append(node(what, [value], [new]))
        elif kind == "turn":
            nodes.append(node("Transpose", [value], [new], perm=what))
        elif kind == "binary":  # of itself: shapes always fit
            nodes.append(node("Tanh", [value], [f"{new}h"]))
            nodes.append(node(what, [value, f"{new}h"], [new]))
        elif kind == "number":
            weights[f"c{at}"] = np.full((1,) * (at % 4), what, np.float32)
            nodes.append(node("Mul" if at % 2 else "Add", [value, f"c{at}"], [new]))
        elif kind == "reshape":
            nodes.append(node("Shape", [value], [f"{new}s"]))
            nodes.append(node("Reshape", [value, f"{new}s"], [new]))
        elif kind == "cast":
            nodes.append(node("Cast", [value], [new], to=F32))
        else:
            weights |= {f"s{at}": np.array([0]), f"e{at}": np.array([[2, 2**40][at % 2]])}
            nodes.append(node("Slice", [value, f"s{at}", f"e{at}"], [new]))
        value, before = new, value
    outputs = [value, before] if both and before != "x" else [value]
    old = model(nodes, [("x", F32, (batch, 3, 2))], outputs, **weights)
    made = ir.from_proto(old)
    optimise(made, "general")
    assert_same(made, old, feeds_for(old))
