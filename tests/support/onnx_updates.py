"""Small ONNX graphs by the way that they use a weight: rows of (model, weights that change)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import TensorProto
from support.onnx_graphs import BOOL, F32, I64, body, model, node

F16, F64, I32 = TensorProto.FLOAT16, TensorProto.DOUBLE, TensorProto.INT32
X = ("x", F32, [2, 8])
IMAGE = ("x", F32, [1, 3, 8, 8])
STEPS = ("x", F32, [5, 1, 4])

_RNG = np.random.default_rng(0)


class Use(NamedTuple):
    """A graph, and which of its weights change."""

    what: str
    made: onnx.ModelProto
    names: tuple[str, ...]
    exact: bool = True  # False: compiled apart from its weights it rounds elsewhere

    def weights(self) -> dict[str, np.ndarray]:
        """The first values of those that change."""
        found = {t.name: onnx.numpy_helper.to_array(t) for t in self.made.graph.initializer}
        return {name: found[name] for name in self.names}

    def changed(self) -> dict[str, np.ndarray]:
        """Other values, which all outputs depend on."""
        return {
            name: np.logical_not(w)
            if w.dtype == np.bool_
            else np.asarray(w[..., ::-1] + w)
            if w.ndim
            else np.asarray(w + w)
            for name, w in self.weights().items()
        }

    def with_weights(self, weights: dict[str, np.ndarray]) -> bytes:
        """The same file with other weights in it."""
        other = onnx.ModelProto()
        other.CopyFrom(self.made)
        for tensor in other.graph.initializer:
            if tensor.name in weights:
                value = weights[tensor.name]
                tensor.CopyFrom(onnx.numpy_helper.from_array(value, tensor.name))
        return bytes(other.SerializeToString())


def some(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    """Random numbers."""
    return _RNG.standard_normal(shape).astype(dtype)


def small_ints(*shape: int, dtype: Any = np.int8) -> np.ndarray:
    """Random numbers of a quantised weight, whose sum of two still fits."""
    return _RNG.integers(0, 60, shape).astype(dtype)


def dense(kind: int = F32, dtype: Any = np.float32) -> onnx.ModelProto:
    """MatMul and Add of one type."""
    return model(
        [node("MatMul", ["x", "w"], ["h"]), node("Add", ["h", "b"], ["y"])],
        [("x", kind, [2, 8])],
        [("y", kind, None)],
        w=some(8, 4, dtype=dtype),
        b=some(4, dtype=dtype),
    )


def gemm(trans_a: int, trans_b: int) -> onnx.ModelProto:
    return model(
        [node("Gemm", ["x", "w", "b"], ["y"], transA=trans_a, transB=trans_b, alpha=1.5, beta=0.5)],
        [("x", F32, [8, 2] if trans_a else [2, 8])],
        ["y"],
        w=some(4, 8) if trans_b else some(8, 4),
        b=some(4),
    )


def conv_and_norm() -> onnx.ModelProto:
    return model(
        [
            node("Conv", ["x", "w", "b"], ["h"], pads=[1] * 4),
            node("BatchNormalization", ["h", "scale", "shift", "mean", "var"], ["g"]),
            node("Relu", ["g"], ["y"]),
        ],
        [IMAGE],
        ["y"],
        w=some(16, 3, 3, 3),
        b=some(16),
        scale=some(16),
        shift=some(16),
        mean=some(16),
        var=np.abs(some(16)) + 1,
    )


def recurrent(op: str, gates: int) -> onnx.ModelProto:
    return model(
        [node(op, ["x", "w", "r", "b"], ["y"], hidden_size=6)],
        [STEPS],
        ["y"],
        w=some(1, gates * 6, 4),
        r=some(1, gates * 6, 6),
        b=some(1, gates * 12),
    )


def branches() -> onnx.ModelProto:
    """Each branch uses a weight from outside; which one is taken depends on x."""
    then = body([node("MatMul", ["x", "w"], ["t"])], [], [("t", F32, None)])
    other = body([node("Mul", ["x", "v"], ["e"])], [], [("e", F32, None)])
    return model(
        [
            node("ReduceMax", ["x"], ["most"], keepdims=0),
            node("Greater", ["most", "limit"], ["is_large"]),
            node("If", ["is_large"], ["y"], then_branch=then, else_branch=other),
        ],
        [X],
        ["y"],
        w=some(8, 8),
        v=some(8),
        limit=np.float32(0),
    )


def loop() -> onnx.ModelProto:
    """x goes through a weight from outside three times."""
    turn = body(
        [node("MatMul", ["s", "w"], ["s_next"]), node("Identity", ["c"], ["c_next"])],
        [("i", I64, []), ("c", BOOL, []), ("s", F32, [2, 8])],
        [("c_next", BOOL, []), ("s_next", F32, [2, 8])],
    )
    made = node("Loop", ["n", "", "x"], ["y"], body=turn)
    return model([made], [X], ["y"], w=some(8, 8), n=np.int64(3))


def quantised() -> onnx.ModelProto:
    """A product of quantised numbers, in the form that tools write."""
    return model(
        [
            node("QuantizeLinear", ["x", "xs", "xz"], ["q"]),
            node("DequantizeLinear", ["q", "xs", "xz"], ["xd"]),
            node("DequantizeLinear", ["w", "ws", "wz"], ["wd"], axis=1),
            node("MatMul", ["xd", "wd"], ["y"]),
        ],
        [X],
        ["y"],
        w=small_ints(8, 4),
        ws=np.abs(some(4)) + np.float32(0.1),
        wz=np.zeros(4, np.int8),
        xs=np.float32(0.02),
        xz=np.uint8(128),
    )


def dynamically_quantised() -> onnx.ModelProto:
    return model(
        [
            node("DynamicQuantizeLinear", ["x"], ["q", "qs", "qz"]),
            node("MatMulInteger", ["q", "w", "qz"], ["i"]),
            node("Cast", ["i"], ["f"], to=F32),
            node("Mul", ["f", "qs"], ["y"]),
        ],
        [X],
        ["y"],
        w=small_ints(8, 4, dtype=np.uint8),
    )


def bfloat16() -> onnx.ModelProto:
    import ml_dtypes

    return model(
        [node("Cast", ["w"], ["f"], to=F32), node("MatMul", ["x", "f"], ["y"])],
        [X],
        ["y"],
        w=some(8, 4).astype(ml_dtypes.bfloat16),
    )


def old_file() -> onnx.ModelProto:
    """Before IR version 4 every weight had to be an input too, and many files still say so."""
    made = model(
        [node("MatMul", ["x", "w"], ["h"]), node("Add", ["h", "b"], ["y"])],
        [X, ("w", F32, [8, 4]), ("b", F32, [4])],
        ["y"],
        opset=11,
        w=some(8, 4),
        b=some(4),
    )
    made.ir_version = 3
    return made


ALL_OF_NORM = ("w", "b", "scale", "shift", "mean", "var")

USES = [
    Use("matmul", dense(), ("w",)),
    Use("a_bias_of_a_few_bytes", dense(), ("b",)),
    *(Use(f"gemm_{a}{b}", gemm(a, b), ("w", "b")) for a in (0, 1) for b in (0, 1)),
    Use(
        "turned_on_its_way",
        model(
            [node("Transpose", ["w"], ["turned"]), node("MatMul", ["x", "turned"], ["y"])],
            [X], ["y"], w=some(4, 8),
        ),
        ("w",),
    ),
    Use("conv", conv_and_norm(), ("w", "b")),
    Use("conv_and_norm", conv_and_norm(), ALL_OF_NORM),
    Use("norm_after_a_fixed_conv", conv_and_norm(), ("scale", "mean"), exact=False),
    Use("lstm", recurrent("LSTM", 4), ("w", "r", "b")),
    Use("one_weight_of_an_lstm", recurrent("LSTM", 4), ("r",)),
    Use("gru", recurrent("GRU", 3), ("w", "r", "b")),
    Use(
        "embedding",
        model([node("Gather", ["w", "x"], ["y"])], [("x", I64, [1, 3])], ["y"], w=some(10, 8)),
        ("w",),
    ),
    Use(
        "places_to_gather",
        model(
            [node("Gather", ["x", "i"], ["y"], axis=1)],
            [X], ["y"], i=np.array([1, 0, 2], np.int64),
        ),
        ("i",),
    ),
    Use("float16", dense(F16, np.float16), ("w", "b")),
    Use("bfloat16", bfloat16(), ("w",)),
    Use("float64", dense(F64, np.float64), ("w", "b")),
    Use(
        "int32",
        model(
            [node("Add", ["x", "b"], ["y"])],
            [("x", I32, [2, 4])], [("y", I32, None)], b=np.arange(4, dtype=np.int32),
        ),
        ("b",),
    ),
    Use(
        "bool",
        model([node("Where", ["w", "x", "b"], ["y"])], [X], ["y"], w=np.arange(8) > 3, b=some(8)),
        ("w", "b"),
    ),
    Use("a_single_number", model([node("Mul", ["x", "w"], ["y"])], [X], ["y"], w=some()), ("w",)),
    Use(
        "used_twice",
        model(
            [node("MatMul", ["x", "w"], ["h"]), node("MatMul", ["h", "w"], ["y"])],
            [X], ["y"], w=some(8, 8),
        ),
        ("w",),
    ),
    Use(
        "computed_from_weights_alone",
        model(
            [node("MatMul", ["v", "w"], ["z"]), node("Add", ["x", "z"], ["y"])],
            [X], ["y"], v=some(2, 8), w=some(8, 8),
        ),
        ("w",),
    ),
    Use("in_branches", branches(), ("w", "v")),
    Use("in_a_loop", loop(), ("w",)),
    Use("turns_of_a_loop", loop(), ("n",)),
    Use("quantised", quantised(), ("w", "ws")),
    Use("dynamically_quantised", dynamically_quantised(), ("w",)),
    Use(
        "an_output_itself",
        model([node("MatMul", ["x", "w"], ["y"])], [X], ["y", ("w", F32, [8, 4])], w=some(8, 4)),
        ("w",),
    ),
    Use(
        "an_output_and_nothing_else",
        model([node("Relu", ["x"], ["y"])], [X], ["y", ("w", F32, [8, 4])], w=some(8, 4)),
        ("w",),
    ),
    Use(
        "beside_a_weight_nobody_needs",
        model(
            [node("MatMul", ["x", "w"], ["y"]), node("Add", ["v", "v"], ["z"])],
            [X], ["y"], w=some(8, 4), v=some(8, 4),
        ),
        ("w", "v"),
    ),
    Use("declared_as_input_too", old_file(), ("w", "b")),
]  # fmt: skip
