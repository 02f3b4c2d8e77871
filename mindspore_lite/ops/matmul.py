"""Matrix products."""

from __future__ import annotations

import numpy as np

from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.ops.arguments import ints, same_type, swapped
from mindspore_lite.ops.table import Val, op
from mindspore_lite.ops.tape import Tape, constant_of


def turned(t: Tape, x: Val, turn: bool) -> Val:
    """The last two axes exchanged, if asked for."""
    if not turn:
        return x
    rank = t.rank(x)
    return t.op("Transpose", [x], perm=swapped(rank, rank - 2, rank - 1))


def product(t: Tape, a: Val, b: Val) -> Val:
    """By NumPy's rules; ONNX Runtime multiplies no integers below 32 bits."""
    dtype = t.promoted(a, b)
    narrow = dtype.kind in "iu" and dtype.itemsize < 4
    y = t.op("MatMul", same_type(t, np.dtype(np.int32) if narrow else dtype, a, b))
    return t.cast(y, dtype) if narrow else y


@op("MatMul")
def mat_mul(
    t: Tape, a: Val, b: Val, *, transpose_a: bool = False, transpose_b: bool = False
) -> Val:
    """Two matrices; Gemm takes the flags without moving the weights."""
    a, b = same_type(t, t.promoted(a, b), a, b)
    if (transpose_a or transpose_b) and t.rank(a) == t.rank(b) == 2 and t.dtype(a).kind == "f":
        return t.op("Gemm", [a, b], transA=int(transpose_a), transB=int(transpose_b))
    return product(t, turned(t, a, transpose_a), turned(t, b, transpose_b))


@op("MatMulV2")
def mat_mul_v2(
    t: Tape,
    a: Val,
    b: Val,
    bias: Val = None,
    offset_w: Val = None,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> Val:
    """MatMul as Ascend's graphs have it, with a bias."""
    if offset_w is not None:
        raise UnsupportedOpError("MatMulV2 with offset_w is not supported")
    y = mat_mul(t, a, b, transpose_a=transpose_a, transpose_b=transpose_b)
    return y if bias is None else t.op("Add", [y, t.cast(bias, t.dtype(y))])


@op("BatchMatMul", "BatchMatMulV2")
def batch_mat_mul(
    t: Tape, a: Val, b: Val, *, transpose_a: bool = False, transpose_b: bool = False
) -> Val:
    """Batch axes broadcast."""
    return product(t, turned(t, a, transpose_a), turned(t, b, transpose_b))


@op("FusedMatMulBiasAdd")
def fused_mat_mul_bias_add(
    t: Tape, a: Val, b: Val, bias: Val, *, transpose_a: bool = False, transpose_b: bool = False
) -> Val:
    """Product and bias in one."""
    y = mat_mul(t, a, b, transpose_a=transpose_a, transpose_b=transpose_b)
    return t.op("Add", [y, t.cast(bias, t.dtype(y))])


@op("MatMulExt", "BatchMatMulExt", "Mm", "Mv", "Dot", "Vdot")
def mat_mul_ext(t: Tape, a: Val, b: Val) -> Val:
    """NumPy's rules, 1-D operands included."""
    return product(t, a, b)


@op("Outer")
def outer(t: Tape, a: Val, b: Val) -> Val:
    """Each element of a times each of b."""
    a, b = same_type(t, t.promoted(a, b), a, b)
    return t.op("Mul", [t.op("Unsqueeze", [a, np.asarray([1])]), b])


@op("TransposeBatchMatmulTranspose")
def transposed_batch_mat_mul(
    t: Tape,
    a: Val,
    b: Val,
    perm_in: Val,
    perm_out: Val,
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> Val:
    """A product between two changes of the order of axes."""
    first = t.op("Transpose", [a], perm=list(ints(perm_in, "perm_in")))
    y = product(t, turned(t, first, transpose_a), turned(t, b, transpose_b))
    return t.op("Transpose", [y], perm=list(ints(perm_out, "perm_out")))


@op("Dense")
def dense(t: Tape, x: Val, w: Val, b: Val = None) -> Val:
    """x @ w.T + b."""
    if t.rank(x) == t.rank(w) == 2:
        return t.op("Gemm", [x, w] if b is None else [x, w, b], transB=1)
    y = t.op("MatMul", [x, turned(t, w, t.rank(w) > 1)])
    return y if b is None else t.op("Add", [y, b])


def weighted_sum(t: Tape, x: Val, y: Val, beta: Val, alpha: Val) -> Val:
    """beta * x + alpha * y; the weights may be known at run time only."""
    dtype = t.dtype(y)
    x, y = (
        v if constant_of(factor) == 1 else t.op("Mul", [v, t.cast(factor, dtype)])
        for v, factor in ((x, beta), (y, alpha))
    )
    return t.op("Add", [x, y])


def add_mat_mul(t: Tape, x: Val, a: Val, b: Val, beta: Val = 1, alpha: Val = 1) -> Val:
    """beta * x + alpha * a @ b."""
    return weighted_sum(t, x, product(t, a, b), beta, alpha)


op("Addmm", "Baddbmm", "Addmv")(add_mat_mul)
op("InplaceAddmm", writes=True)(add_mat_mul)


@op("Addbmm")
def add_batch_mat_mul(t: Tape, x: Val, a: Val, b: Val, beta: Val = 1, alpha: Val = 1) -> Val:
    """beta * x + alpha * the sum of all a @ b of the batch."""
    total = t.op("ReduceSum", [product(t, a, b), np.asarray([0])], keepdims=0)
    return weighted_sum(t, x, total, beta, alpha)


@op("Einsum")
def einsum(t: Tape, operands: Val, *, equation: str) -> Val:
    """Einstein's summation; ONNX Runtime has it for numbers of 32 and 64 bits."""
    values = list(operands) if isinstance(operands, tuple | list) else [operands]
    dtype = t.promoted(*values)
    wide = {"f": np.float32, "i": np.int32, "u": np.int32}[dtype.kind]
    inner = dtype if dtype.itemsize >= 4 else np.dtype(wide)
    return t.cast(t.op("Einsum", same_type(t, inner, *values), equation=equation), dtype)


@op("EinsumExt")
def einsum_ext(t: Tape, equation: str, operands: Val) -> Val:
    """Einsum with the equation first."""
    return einsum(t, operands, equation=equation)
