"""Products of quantised matrices, and products in groups."""

from __future__ import annotations

import numpy as np

from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.ops.attention import absent
from mindspore_lite.ops.matmul import product, turned
from mindspore_lite.ops.table import Val, op
from mindspore_lite.ops.tape import Tape, bounded, constant_of, dtype_argument

F32, I32, I64 = np.dtype(np.float32), np.dtype(np.int32), np.dtype(np.int64)
MAX_EXPERTS = 1024  # matrices of one grouped product; guess, models have up to 256


def scale_of(t: Tape, scale: Val) -> Val:
    """A scale as float32; one of 64 bits holds the bits of a float32."""
    if t.dtype(scale).kind not in "iu":
        return t.cast(scale, F32)
    bits = constant_of(scale)
    if bits is None:
        raise UnsupportedOpError(f"{t.primitive} with a packed scale that is no constant")
    return t.constant(bits.astype(np.uint32).view(np.float32))


def integer_product(t: Tape, a: Val, b: Val) -> Val:
    """int8 times int8 in int32."""
    return t.op("MatMulInteger", [a, b])


@op("QuantBatchMatmul")
def quant_batch_matmul(
    t: Tape,
    x1: Val,
    x2: Val,
    scale: Val,
    offset: Val = None,
    bias: Val = None,
    pertoken_scale: Val = None,
    *,
    transpose_x1: bool = False,
    transpose_x2: bool = False,
    dtype: Val = 42,
) -> Val:
    """(x1 @ x2 + bias) * scale, and a scale for each row of x1."""
    absent(t, offset=offset)
    kind = dtype_argument(dtype).numpy
    if kind.kind != "f" or t.dtype(x1) != np.int8 or t.dtype(x2) != np.int8:
        raise UnsupportedOpError("QuantBatchMatmul goes from int8 to a type of floats only")
    y = integer_product(t, turned(t, x1, transpose_x1), turned(t, x2, transpose_x2))
    late = bias is not None and t.dtype(bias).kind == "f"
    if bias is not None and not late:
        y = t.op("Add", [y, t.cast(bias, I32)])
    y = t.op("Mul", [t.cast(y, F32), scale_of(t, scale)])
    if pertoken_scale is not None:
        column = t.op("Unsqueeze", [t.cast(pertoken_scale, F32), np.asarray([-1])])
        y = t.op("Mul", [y, column])
    return t.cast(t.op("Add", [y, t.cast(bias, F32)]) if late else y, kind)


def dequantised(t: Tape, weight: Val, scale: Val, offset: Val, dtype: np.dtype) -> Val:
    """(weight + offset) * scale."""
    w = t.cast(weight, dtype)
    if offset is not None:
        w = t.op("Add", [w, t.cast(offset, dtype)])
    return t.op("Mul", [w, t.cast(scale, dtype)])


@op("WeightQuantBatchMatmul")
def weight_quant_batch_matmul(
    t: Tape,
    x: Val,
    weight: Val,
    antiquant_scale: Val,
    antiquant_offset: Val = None,
    quant_scale: Val = None,
    quant_offset: Val = None,
    bias: Val = None,
    *,
    transpose_x: bool = False,
    transpose_weight: bool = False,
    antiquant_group_size: int = 0,
) -> Val:
    """x @ ((weight + offset) * scale) + bias, the weight being int8."""
    absent(t, quant_scale=quant_scale, quant_offset=quant_offset)
    if antiquant_group_size or t.dtype(weight) != np.int8:
        raise UnsupportedOpError("WeightQuantBatchMatmul takes int8 with a scale for each column")

    def by_column(value: Val) -> Val:
        across = value is not None and transpose_weight and t.rank(value) == 2
        return t.op("Transpose", [value], perm=[1, 0]) if across else value

    dtype = t.dtype(x)
    w = dequantised(t, turned(t, weight, transpose_weight), by_column(antiquant_scale),
                    by_column(antiquant_offset), dtype)  # fmt: skip
    y = product(t, turned(t, x, transpose_x), w)
    return y if bias is None else t.op("Add", [y, t.cast(bias, dtype)])


@op("DynamicQuantExt")
def dynamic_quant(t: Tape, x: Val, smooth_scales: Val = None) -> Val:
    """-> (int8, scale of each row): the largest element of a row becomes 127."""
    x = t.cast(x, F32)
    if smooth_scales is not None:
        x = t.op("Mul", [x, t.cast(smooth_scales, F32)])
    most = t.op("ReduceMax", [t.op("Abs", [x]), np.asarray([-1])], keepdims=1)
    scale = t.op("Div", [most, np.asarray(127, F32)])
    y = t.op("Round", [t.op("Div", [x, scale])])
    return t.cast(y, np.dtype(np.int8)), t.op("Squeeze", [scale, np.asarray([-1])])


# --- groups ---------------------------------------------------------------------------------------


def _listed(value: Val) -> list[Val]:
    if value is None:
        return []
    return list(value) if isinstance(value, tuple | list) else [value]


def grouped(
    t: Tape,
    x: Val,
    weight: Val,
    bias: Val,
    antiquant: tuple[Val, Val],
    ends: Val,
    group_type: int,
    turn: bool = False,
) -> Val:
    """One product for each pair of matrices, or for each run of rows of one matrix."""
    xs, weights, biases = _listed(x), _listed(weight), _listed(bias)
    scales, offsets = (_listed(v) for v in antiquant)
    if group_type == -1:
        pairs = list(zip(xs, weights, strict=True))
    elif group_type == 0 and len(xs) == len(weights) == 1 and ends is not None:
        return (_by_rows(t, xs[0], weights[0], biases, scales, offsets, ends, turn),)
    else:
        raise UnsupportedOpError(f"{t.primitive} with group_type {group_type}")

    def one(at: int, a: Val, w: Val) -> Val:
        if scales:
            w = dequantised(t, w, scales[at], offsets[at] if offsets else None, t.dtype(a))
        y = product(t, a, turned(t, w, turn))
        return t.op("Add", [y, t.cast(biases[at], t.dtype(a))]) if biases else y

    bounded(len(pairs), "products", MAX_EXPERTS)
    return tuple(one(at, a, w) for at, (a, w) in enumerate(pairs))


def _by_rows(
    t: Tape,
    x: Val,
    weight: Val,
    biases: list[Val],
    scales: list[Val],
    offsets: list[Val],
    ends: Val,
    turn: bool,
) -> Val:
    """Rows up to the first end times the first matrix, and so on; rows beyond the last are 0."""
    count = t.shape(weight)[0]
    if count is None:
        raise UnsupportedOpError(f"{t.primitive} needs a fixed number of matrices")
    bounded(count, "matrices", MAX_EXPERTS)
    dtype = t.dtype(x)
    if scales:  # [E, N] beside [E, K, N]
        scale, offset = ([t.op("Unsqueeze", [v, np.asarray([1])]) for v in values] or [None]
                         for values in (scales, offsets))  # fmt: skip
        weight = dequantised(t, weight, scale[0], offset[0], dtype)
    weight, ends = turned(t, weight, turn), t.cast(ends, I64)
    edges = t.op("Concat", [np.asarray([0]), ends], axis=0)
    parts = []
    for at in range(count):
        start, end = (t.op("Slice", [edges, [at + i], [at + i + 1]]) for i in (0, 1))
        rows = t.op("Slice", [x, start, end, [0]])
        y = t.op("MatMul", [rows, t.op("Gather", [weight, np.asarray(at)], axis=0)])
        if biases:
            y = t.op("Add", [y, t.op("Gather", [t.cast(biases[0], dtype), np.asarray(at)], axis=0)])
        parts.append(y)
    y = t.op("Concat", parts, axis=0)
    left = t.op("Sub", [t.op("Shape", [x], end=1), t.op("Shape", [y], end=1)])
    return t.op("Pad", [y, t.op("Concat", [np.asarray([0, 0]), left, np.asarray([0])], axis=0)])


@op("GroupedMatmul")
def grouped_matmul(
    t: Tape,
    x: Val,
    weight: Val,
    bias: Val = None,
    scale: Val = None,
    offset: Val = None,
    antiquant_scale: Val = None,
    antiquant_offset: Val = None,
    group_list: Val = None,
    *,
    split_item: int = 0,
    group_type: int = -1,
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> Val:
    """-> a tuple; group_list holds the ends of the runs of rows."""
    absent(t, scale=scale, offset=offset)
    if transpose_a:
        raise UnsupportedOpError("GroupedMatmul with transpose_a is not supported")
    antiquant = (antiquant_scale, antiquant_offset)
    return grouped(t, x, weight, bias, antiquant, group_list, group_type, transpose_b)


@op("GroupedMatmulV2")
def grouped_matmul_v2(
    t: Tape,
    x: Val,
    weight: Val,
    bias: Val = None,
    scale: Val = None,
    offset: Val = None,
    antiquant_scale: Val = None,
    antiquant_offset: Val = None,
    group_list: Val = None,
    split_item: int = 0,
    group_type: int = -1,
) -> Val:
    """GroupedMatmul with all its settings as inputs."""
    absent(t, scale=scale, offset=offset)
    antiquant = (antiquant_scale, antiquant_offset)
    return grouped(t, x, weight, bias, antiquant, group_list, group_type)


@op("GroupedMatmulV4")
def grouped_matmul_v4(
    t: Tape,
    x: Val,
    weight: Val,
    bias: Val = None,
    scale: Val = None,
    offset: Val = None,
    antiquant_scale: Val = None,
    antiquant_offset: Val = None,
    pre_token_scale: Val = None,
    group_list: Val = None,
    activation_input: Val = None,
    activation_quant_scale: Val = None,
    activation_quant_offset: Val = None,
    split_item: int = 0,
    group_type: int = -1,
    group_list_type: int = 0,
    act_type: int = 0,
    output_dtype: Val = None,
) -> Val:
    """GroupedMatmul whose group_list may hold the sizes of the runs instead of their ends."""
    absent(t, scale=scale, offset=offset, pre_token_scale=pre_token_scale,
           activation_input=activation_input)  # fmt: skip
    if act_type or group_list_type not in (0, 1):
        raise UnsupportedOpError(f"GroupedMatmulV4 with act_type {act_type}")
    if group_list_type == 1 and group_list is not None:
        group_list = t.op("CumSum", [t.cast(group_list, I64), np.asarray(0)])
    antiquant = (antiquant_scale, antiquant_offset)
    return grouped(t, x, weight, bias, antiquant, group_list, group_type)
