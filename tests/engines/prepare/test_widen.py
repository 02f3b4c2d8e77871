"""widen.py: nodes without a kernel for their types, and what becomes of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir
import pytest
from engines.conftest import model, tensor
from onnx import TensorProto, helper
from support.mindir_builder import Net, tensor_type
from support.running import DATA, run

from mindspore_lite.engines.base import ModelSource, Options
from mindspore_lite.engines.onnxruntime.engine import OnnxRuntimeEngine, _kernels
from mindspore_lite.engines.prepare import widen as module
from mindspore_lite.engines.prepare.widen import TAKES_NUMBERS, TAKES_ORDINARY, Kernels, widen
from mindspore_lite.engines.torch.kernels.taken import rows
from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.graph.source import ModelInput, source_of
from mindspore_lite.passes.element_types import signature

ENGINE = OnnxRuntimeEngine()
MakeSource = Callable[[Any], ModelSource]
I8, I16, U64, BF16, F64, BOOL = (
    TensorProto.INT8,
    TensorProto.INT16,
    TensorProto.UINT64,
    TensorProto.BFLOAT16,
    TensorProto.DOUBLE,
    TensorProto.BOOL,
)


@pytest.fixture(autouse=True)
def warnings_come_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_warned", set())


def graph(nodes: list[Any], inputs: list[Any], outputs: list[Any], weights: Any = ()) -> ir.Model:
    return ir.from_proto(model(nodes, inputs, outputs, weights))


def ops(made: ir.Model) -> list[str]:
    return [node.op_type for node in made.graph]


def no_kernels() -> Kernels:
    raise AssertionError("the list of kernels was asked for")


def node(op_type: str, *inputs: str, to: str = "y", **attributes: Any) -> Any:
    return helper.make_node(op_type, list(inputs), [to], name=f"n_{to}", **attributes)


# --- what is left alone ---------------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted(DATA.glob("models/*.mindir")), ids=lambda p: p.stem)
def test_ordinary_models_do_not_ask_for_kernels(path: Any) -> None:
    made = source_of(ModelInput("MINDIR", path)).translate()
    before = ops(made)
    widen(made, no_kernels)
    assert ops(made) == before


@pytest.mark.parametrize("op_type", sorted(TAKES_NUMBERS | TAKES_ORDINARY))
def test_the_engine_takes_what_is_held_to_be_ordinary(op_type: str) -> None:
    known = signature("", op_type, 21)
    assert known is not None
    kinds = {formal.type for formal in known.inputs if not formal.type.startswith("tensor(")}
    made = ir.node(op_type, [])
    wanted = [ir.DataType.FLOAT, ir.DataType.INT32, ir.DataType.INT64]
    if op_type in TAKES_ORDINARY:
        wanted.append(ir.DataType.BOOL)
    if op_type in ("And", "Or", "Not", "Xor"):
        return  # of truth values only
    main = known.outputs[0].type if known.outputs[0].type in kinds else known.inputs[0].type
    for dtype in wanted:
        assert _kernels().take(made, known, {main: dtype}), dtype


def test_float16_is_left_to_the_engine() -> None:
    half = TensorProto.FLOAT16
    made = graph([node("Add", "x", "x")], [tensor("x", [2], half)], [tensor("y", [2], half)])
    widen(made, no_kernels)
    assert ops(made) == ["Add"]


# --- what is widened ------------------------------------------------------------------------------


def test_casts_are_put_around_a_node() -> None:
    made = graph([node("Tile", "x", "r")], [tensor("x", [2], BF16), tensor("r", [1], 7)],
                 [tensor("y", None, BF16)])  # fmt: skip
    widen(made, _kernels)
    assert "Tile" in ops(made)
    assert [i.dtype for i in made.graph.inputs] == [ir.DataType.FLOAT, ir.DataType.INT64]


def test_integers_wrap_round_and_keep_their_casts(source_of: MakeSource) -> None:
    made = model(
        [node("MatMul", "x", "x", to="p"), node("Relu", "p")],
        [tensor("x", [1, 1], I16)],
        [tensor("y", [1, 1], I16)],
    )
    (y,) = ENGINE.load(source_of(made), Options()).run([np.array([[200]], np.int16)])
    assert y.tolist() == [[0]]  # 40000 is -25536 as int16: relu must see that


def test_a_value_is_cast_once_for_all_who_want_it() -> None:
    made = graph(
        [node("Max", "x", "x", to="a"), node("Min", "x", "a")],
        [tensor("x", [2], I16)],
        [tensor("y", [2], I16)],
    )
    widen(made, _kernels)
    # x in, y out; what Max picked needs no cast in between
    assert sorted(ops(made)) == ["Cast", "Cast", "Max", "Min"]


def test_constants_are_converted_at_once() -> None:
    made = graph(
        [node("Max", "x", "w")], [tensor("x", [2], I16)], [tensor("y", [2], I16)],
        {"w": np.array([1, 2], np.int16)},
    )  # fmt: skip
    widen(made, _kernels)
    (weight,) = made.graph.initializers.values()
    assert weight.dtype == ir.DataType.INT32
    assert ops(made).count("Cast") == 2


def test_bodies_of_branches_are_widened(source_of: MakeSource) -> None:
    then = helper.make_graph([node("Max", "x", "w", to="a")], "t", [], [tensor("a", [2], I16)])
    other = helper.make_graph([node("Min", "x", "w", to="b")], "e", [], [tensor("b", [2], I16)])
    made = model(
        [helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other)],
        [tensor("c", [], BOOL), tensor("x", [2], I16)],
        [tensor("y", [2], I16)],
        {"w": np.array([3, 3], np.int16)},
    )
    session = ENGINE.load(source_of(made), Options())
    x = np.array([1, 5], np.int16)
    assert session.run([np.array(True), x])[0].tolist() == [3, 5]
    assert session.run([np.array(False), x])[0].tolist() == [1, 3]


def test_the_type_of_a_result_may_stand_in_an_attribute(source_of: MakeSource) -> None:
    made = model([node("EyeLike", "x", dtype=I8)], [tensor("x", [2, 2])], [tensor("y", [2, 2], I8)])
    (y,) = ENGINE.load(source_of(made), Options()).run([np.zeros((2, 2), np.float32)])
    assert (y.dtype, y.tolist()) == (np.int8, [[1, 0], [0, 1]])


def test_sums_of_uint64_are_right_beyond_int64(source_of: MakeSource) -> None:
    made = model([node("CumSum", "x", "axis")], [tensor("x", [2], U64)], [tensor("y", [2], U64)],
                 {"axis": np.array(0)})  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        session = ENGINE.load(source_of(made), Options())
    (y,) = session.run([np.array([2**63, 5], np.uint64)])
    assert y.tolist() == [2**63, 2**63 + 5]


# --- what loses something, and what cannot be -----------------------------------------------------


def test_lost_precision_is_told_once(source_of: MakeSource) -> None:
    made = model([node("Erf", "x")], [tensor("x", [1], F64)], [tensor("y", [1], F64)])
    with pytest.warns(RuntimeWarning, match="less precision .*: Erf of double"):
        session = ENGINE.load(source_of(made), Options())
    (y,) = session.run([np.array([1.0])])
    assert y.dtype == np.float64
    np.testing.assert_allclose(y, 0.8427007929, rtol=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        widen(ir.from_proto(made), _kernels)


def test_what_no_type_can_help_is_named() -> None:
    kind = TensorProto.STRING
    made = graph([node("Abs", "x")], [tensor("x", [1], kind)], [tensor("y", [1], kind)])
    for kernels in (_kernels, lambda: Kernels("PyTorch", rows())):
        name = kernels().name
        with pytest.raises(UnsupportedOpError, match=rf"^{name} has no .*Abs of string \(at n_y\)"):
            widen(made, kernels)


# --- bfloat16 -------------------------------------------------------------------------------------


def test_bfloat16_goes_in_and_out_and_is_float32_in_between(source_of: MakeSource) -> None:
    weight = helper.make_tensor("w", BF16, [2], np.array([0.5, 2], np.float32))
    made = model(
        [node("Mul", "x", "w", to="p"), node("Exp", "p")],
        [tensor("x", [2], BF16)],
        [tensor("y", [2], BF16)],
    )
    made.graph.initializer.append(weight)
    session = ENGINE.load(source_of(made), Options())
    kind = np.dtype(ml_dtypes.bfloat16)
    assert [i.dtype for i in (*session.info.inputs, *session.info.outputs)] == [kind, kind]
    (y,) = session.run([np.array([2, 1], kind)])
    assert y.dtype == kind
    np.testing.assert_allclose(y.astype(np.float32), np.exp([1, 2]), rtol=1e-2)
    widened = ir.from_proto(made)
    widen(widened, _kernels)
    assert ops(widened) == ["Mul", "Exp", "Cast"]  # from float32 to float32: dropped when compiled


def test_a_bfloat16_input_handed_through_comes_out(source_of: MakeSource) -> None:
    made = model([node("Identity", "x")], [tensor("x", [1], BF16)], [tensor("y", [1], BF16)])
    (y,) = ENGINE.load(source_of(made), Options()).run([np.array([1.5], ml_dtypes.bfloat16)])
    assert y.tolist() == [1.5]


def test_a_convolution_of_float64_says_that_it_loses_digits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_warned", set())
    net = Net()
    x = net.input("x", (1, 1, 3, 3), np.float64)
    w = net.weight("w", np.ones((1, 1, 2, 2)))
    y = net.call("Conv2D", x, w, pad_mode="valid", type=tensor_type((1, 1, 2, 2), np.float64))
    with pytest.warns(RuntimeWarning, match=r"less precision .* Conv of double"):
        (got,) = run(net.model(y), np.ones((1, 1, 3, 3)))
    assert got.dtype == np.float64
    np.testing.assert_array_equal(got, np.full((1, 1, 2, 2), 4.0))
