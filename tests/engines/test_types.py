"""Every element type through representatives of the op families, by the public API, against NumPy.

A row is one primitive with the types that MindSpore allows it. The reference of bfloat16 is
computed in float32, since NumPy knows no such type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.mindir_builder import encode
from support.op_case import Case, Form, K, T, truths
from support.running import assert_close

import mindspore_lite as mslite

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
FLOATS = [np.dtype("float16"), BFLOAT16, np.dtype("float32"), np.dtype("float64")]
SIGNED = [np.dtype(f"int{bits}") for bits in (8, 16, 32, 64)]
UNSIGNED = [np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64)]
BOOL = [np.dtype("bool")]
INTEGERS = SIGNED + UNSIGNED
NUMBERS = FLOATS + INTEGERS
ALL = NUMBERS + BOOL
Array = Any


@dataclass(frozen=True, eq=False)
class Row:
    """A primitive: its inputs, made for a type, and what NumPy says."""

    primitive: str
    inputs: Callable[[np.dtype], Sequence[Any]]
    wants: Callable[..., Any]
    types: Sequence[np.dtype]
    init: dict[str, Any] = field(default_factory=dict)
    attributes: dict[str, Any] = field(default_factory=dict)


def any_(*shape: int, seed: int = 0) -> Callable[[np.dtype], Array]:
    """Numbers over the whole range of an integer type, so that sums and products wrap round."""

    def make(dtype: np.dtype) -> Array:
        rng = np.random.default_rng(seed)
        if dtype.kind == "b":
            return rng.random(shape) < 0.5
        if dtype.kind in "iu":
            info = np.iinfo(dtype)
            return rng.integers(info.min, info.max, shape, dtype, endpoint=True)
        return rng.uniform(-2, 2, shape).astype(np.float32).astype(dtype)

    return make


def below(*shape: int) -> Callable[[np.dtype], Array]:
    """As any_, but unsigned numbers stay in the half that int64 has, too: order is lost above."""
    return lambda dtype: any_(*shape)(dtype) // (2 if dtype.kind == "u" else 1)


def small(*shape: int, low: int = 1, high: int = 7, seed: int = 0) -> Callable[[np.dtype], Array]:
    """A few small whole numbers, which every type can hold."""

    def make(dtype: np.dtype) -> Array:
        rng = np.random.default_rng(seed)
        return rng.integers(low if dtype.kind != "u" else max(low, 0), high, shape).astype(dtype)

    return make


def of(*makers: Callable[[np.dtype], Array]) -> Callable[[np.dtype], list[Array]]:
    return lambda dtype: [make(dtype) for make in makers]


def distinct(*shape: int) -> Callable[[np.dtype], Array]:
    count = int(np.prod(shape))
    order = np.random.default_rng(1).permutation(count).reshape(shape)
    return lambda dtype: order.astype(dtype)


def softmax(x: Array) -> Array:
    grown = np.exp(x - x.max(-1, keepdims=True))
    return grown / grown.sum(-1, keepdims=True)


def layer_norm(x: Array, g: Array, b: Array) -> Array:
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) / np.sqrt(var + 1e-5) * g + b


def conv(x: Array, w: Array) -> Array:
    windows = np.lib.stride_tricks.sliding_window_view(x, (2, 2), (2, 3))
    return np.einsum("nchwij,ocij->nohw", windows, w).astype(x.dtype)


def true_div(x: Array, y: Array) -> Array:
    return (x / y).astype(x.dtype if x.dtype.kind == "f" else np.float32)


def one_hot(i: Array, on: Array, off: Array) -> Array:
    return np.where(np.arange(3) == i[:, None], on, off)


TWO = of(any_(2, 3), any_(2, 3, seed=1))
ONE = of(any_(2, 3))
FEW = of(small(2, 3), small(2, 3, seed=1))
CONV = {"kernel_size": (2, 2), "mode": 1, "out_channel": 3, "pad_mode": "valid",
        "pad": (0, 0, 0, 0), "stride": (1, 1, 1, 1), "dilation": (1, 1, 1, 1), "group": 1,
        "format": "NCHW"}  # fmt: skip

ROWS = [
    Row("Add", TWO, np.add, ALL),
    Row("Sub", TWO, np.subtract, NUMBERS),
    Row("Mul", TWO, np.multiply, ALL),
    Row("Div", FEW, true_div, NUMBERS),
    Row("FloorDiv", FEW, np.floor_divide, NUMBERS),
    Row("FloorMod", FEW, np.mod, NUMBERS),
    Row("Maximum", TWO, np.maximum, NUMBERS + BOOL),
    Row("Minimum", TWO, np.minimum, NUMBERS + BOOL),
    Row("Neg", ONE, np.negative, FLOATS + SIGNED),
    Row("Abs", of(small(2, 3, low=-5)), np.abs, NUMBERS),
    Row("Sign", of(small(2, 3, low=-2, high=3)), np.sign, FLOATS + SIGNED),
    Row("Square", of(small(2, 3)), np.square, NUMBERS),
    Row("Equal", FEW, np.equal, ALL),
    Row("NotEqual", TWO, np.not_equal, ALL),
    Row("Less", FEW, np.less, ALL),
    Row("GreaterEqual", FEW, np.greater_equal, ALL),
    Row("LogicalNot", ONE, np.logical_not, BOOL),
    Row("BitwiseAnd", TWO, np.bitwise_and, INTEGERS + BOOL),
    Row("ReduceSum", lambda d: [small(2, 3)(d), K((1,))], lambda x: x.sum(1, dtype=x.dtype),
        NUMBERS, {"keep_dims": False}),
    Row("ReduceMax", lambda d: [below(2, 3)(d), K((1,))], lambda x: x.max(1), ALL,
        {"keep_dims": False}),
    Row("ReduceMin", lambda d: [below(2, 3)(d), K((0,))], lambda x: x.min(0), NUMBERS,
        {"keep_dims": False}),
    Row("ReduceProd", lambda d: [small(2, 3)(d), K((1,))], lambda x: x.prod(1, dtype=x.dtype),
        NUMBERS, {"keep_dims": False}),
    Row("ReduceMean", lambda d: [small(2, 4)(d), K((1,))], lambda x: x.mean(1), FLOATS,
        {"keep_dims": False}),
    Row("ReduceAll", lambda d: [any_(2, 3)(d), K((1,))], lambda x: x.all(1), BOOL,
        {"keep_dims": False}),
    Row("Concat", lambda d: [T(any_(2, 3)(d), any_(1, 3)(d))], np.concatenate, ALL, {"axis": 0}),
    Row("Stack", lambda d: [T(any_(2, 3)(d), any_(2, 3)(d))], np.stack, ALL, {}, {"axis": 0}),
    Row("Split", of(any_(4, 6)), lambda x: tuple(np.split(x, 3, 1)), ALL,
        {"axis": 1, "output_num": 3}),
    Row("Transpose", lambda d: [any_(2, 3)(d), K((1, 0))], np.transpose, ALL),
    Row("Reshape", lambda d: [any_(2, 3)(d), K((3, 2))], lambda x: x.reshape(3, 2), ALL),
    Row("ExpandDims", lambda d: [any_(2, 3)(d), K(0)], lambda x: x[None], ALL),
    Row("Gather", lambda d: [any_(3, 4)(d), np.array([0, 2, 0], np.int32), K(0)],
        lambda x, i: x[i], ALL, {"batch_dims": 0}),
    Row("StridedSlice", lambda d: [any_(3, 4)(d), K((0, 1)), K((3, 4)), K((2, 1))],
        lambda x: x[0:3:2, 1:4], ALL, {"begin_mask": 0, "end_mask": 0, "ellipsis_mask": 0,
                                       "new_axis_mask": 0, "shrink_axis_mask": 0}),
    Row("Select", lambda d: [truths(2, 3), any_(2, 3)(d), any_(2, 3, seed=1)(d)], np.where, ALL),
    Row("MaskedFill", lambda d: [any_(2, 3)(d), truths(2, 3), K(np.ones((), d))],
        lambda x, m: np.where(m, np.ones((), x.dtype), x), ALL),
    Row("BroadcastTo", of(any_(2, 1)), lambda x: np.broadcast_to(x, (2, 4)), ALL,
        {"shape": (2, 4)}),
    Row("Tile", lambda d: [any_(2, 3)(d), K((2, 3))], lambda x: np.tile(x, (2, 3)), ALL),
    Row("Pad", of(any_(2, 3)), lambda x: np.pad(x, ((1, 0), (2, 3))), ALL, {},
        {"paddings": ((1, 0), (2, 3))}),
    Row("ReverseV2", of(any_(4, 5)), lambda x: x[::-1], ALL, {"axis": (0,)}),
    Row("Tril", of(any_(4, 4)), np.tril, ALL),
    Row("ZerosLike", ONE, np.zeros_like, ALL),
    Row("OnesLike", ONE, np.ones_like, ALL),
    Row("OneHot", lambda d: [np.array([0, 2, 1], np.int32), K(3), K(np.ones((), d)),
                             K(np.zeros((), d))],
        lambda i: i, ALL, {"axis": -1}),
    Row("TensorScatterUpdate", lambda d: [any_(3, 4)(d), np.array([[1]], np.int64), any_(1, 4)(d)],
        lambda x, i, u: np.concatenate([x[:1], u, x[2:]]), ALL),
    Row("MatMul", of(small(2, 3), small(3, 4)), np.matmul, NUMBERS,
        {"transpose_a": False, "transpose_b": False}),
    Row("Conv2D", of(small(1, 2, 4, 4, high=3), small(3, 2, 2, 2, high=3)), conv, FLOATS, {}, CONV),
    Row("ReLU", of(small(2, 3, low=-3)), lambda x: np.maximum(x, 0), FLOATS + INTEGERS),
    Row("Softmax", ONE, softmax, FLOATS, {"axis": (-1,)}),
    Row("LayerNorm", of(any_(2, 4), any_(4), any_(4, seed=1)), layer_norm, FLOATS,
        {"begin_norm_axis": -1, "begin_params_axis": -1, "epsilon": 1e-5}),
    Row("Sigmoid", ONE, lambda x: 1 / (1 + np.exp(-x)), FLOATS),
    Row("Tanh", ONE, np.tanh, FLOATS),
    Row("GeLU", ONE, lambda x: x / 2 * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3))), FLOATS),
    Row("Exp", ONE, np.exp, FLOATS),
    Row("Erf", of(small(2, 3, high=2)), lambda x: np.full_like(x, 0.84270079), FLOATS),
    Row("Sqrt", of(small(2, 3)), np.sqrt, FLOATS),
    Row("Sin", ONE, np.sin, FLOATS),
    Row("Atan", ONE, np.arctan, FLOATS),
    Row("Floor", ONE, np.floor, FLOATS),
    Row("Pow", of(small(2, 3, high=4), small(2, 3, high=3)), np.power, NUMBERS),
    Row("TopK", lambda d: [distinct(2, 5)(d), K(2)],
        lambda x: (-np.sort(-x.astype(np.int64))[:, :2]).astype(x.dtype), NUMBERS, {},
        {"sorted": True}),
    Row("Argmax", of(distinct(2, 5)), lambda x: x.argmax(-1).astype(np.int32), NUMBERS,
        {"axis": -1, "output_type": 34}),
    Row("CumSum", lambda d: [small(2, 3)(d), K(1)], lambda x: x.cumsum(1, dtype=x.dtype), NUMBERS,
        {"exclusive": False, "reverse": False}),
]  # fmt: skip


def pairs() -> Iterator[Any]:
    for row in ROWS:
        for dtype in row.types:
            yield pytest.param(row, dtype, id=f"{row.primitive}-{dtype.name}")


@pytest.fixture(autouse=True)
def no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSLITE_CACHE", "off")


def case_of(row: Row, dtype: np.dtype) -> Case:
    def wants(*given: Any) -> Any:
        found = row.wants(*[wide(v) for v in given])
        if row.primitive == "OneHot":
            found = one_hot(found, np.ones((), dtype), np.zeros((), dtype))
        parts = found if isinstance(found, tuple) else (found,)
        rounded = [
            f.astype(dtype) if dtype in FLOATS and np.asarray(f).dtype.kind == "f" else f
            for f in parts
        ]
        return tuple(rounded)

    pick = 0 if row.primitive in ("TopK", "LayerNorm") else None
    return Case(row.primitive, row.inputs(dtype), wants, row.init, row.attributes, pick=pick)


def wide(value: Any) -> Any:
    if isinstance(value, list):
        return [wide(v) for v in value]
    return value.astype(np.float32) if value.dtype == BFLOAT16 else value


@pytest.mark.filterwarnings("ignore:computed with less precision")
@pytest.mark.parametrize(("row", "dtype"), list(pairs()))
def test_a_type_passes_through_an_op(row: Row, dtype: np.dtype, tmp_path: Path) -> None:
    case = case_of(row, dtype)
    model, feeds = Form(case, as_attributes=False, typed=True, dynamic=False).build()
    (tmp_path / "net.mindir").write_bytes(encode(model))
    context = mslite.Context()
    context.cpu.thread_num = 1
    with mslite.Model() as built:
        built.build_from_file(str(tmp_path / "net.mindir"), mslite.ModelType.MINDIR, context)
        told = [meta.dtype for meta in built.get_outputs()]
        outputs = built.predict(feeds)
    assert told == [output.dtype for output in outputs]
    for output, want in zip(outputs, case.wanted(), strict=True):
        assert_close(output.get_data_to_numpy(), want, row.primitive)
