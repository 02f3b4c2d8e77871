"""Matrix products."""

from __future__ import annotations

import numpy as np

from mindspore_lite.ops.arguments import number, same_type, swapped
from mindspore_lite.ops.table import Val, op
from mindspore_lite.ops.tape import Tape


def turned(t: Tape, x: Val, turn: bool) -> Val:
    """The last two axes exchanged, if asked for."""
    if not turn:
        return x
    rank = t.rank(x)
    return t.op("Transpose", [x], perm=swapped(rank, rank - 2, rank - 1))


@op("MatMul", "MatMulV2")
def mat_mul(
    t: Tape, a: Val, b: Val, *, transpose_a: bool = False, transpose_b: bool = False
) -> Val:
    """Two matrices; Gemm takes the flags without moving the weights."""
    a, b = same_type(t, t.promoted(a, b), a, b)
    if (transpose_a or transpose_b) and t.rank(a) == t.rank(b) == 2 and t.dtype(a).kind == "f":
        return t.op("Gemm", [a, b], transA=int(transpose_a), transB=int(transpose_b))
    return t.op("MatMul", [turned(t, a, transpose_a), turned(t, b, transpose_b)])


@op("BatchMatMul", "BatchMatMulV2")
def batch_mat_mul(
    t: Tape, a: Val, b: Val, *, transpose_a: bool = False, transpose_b: bool = False
) -> Val:
    """Batch axes broadcast."""
    return t.op("MatMul", [turned(t, a, transpose_a), turned(t, b, transpose_b)])


@op("MatMulExt", "BatchMatMulExt", "Mm", "Mv", "Dot")
def mat_mul_ext(t: Tape, a: Val, b: Val) -> Val:
    """NumPy's rules, 1-D operands included."""
    return t.op("MatMul", same_type(t, t.promoted(a, b), a, b))


@op("Dense")
def dense(t: Tape, x: Val, w: Val, b: Val = None) -> Val:
    """x @ w.T + b."""
    if t.rank(x) == t.rank(w) == 2:
        return t.op("Gemm", [x, w] if b is None else [x, w, b], transB=1)
    y = t.op("MatMul", [x, turned(t, w, t.rank(w) > 1)])
    return y if b is None else t.op("Add", [y, b])


@op("Addmm", "Baddbmm", "Addmv")
def add_mat_mul(t: Tape, x: Val, a: Val, b: Val, beta: Val = 1, alpha: Val = 1) -> Val:
    """beta * x + alpha * a @ b."""
    dtype = t.dtype(a)
    product = t.op("MatMul", [a, b])
    if number(alpha, "alpha") != 1:
        product = t.op("Mul", [product, np.asarray(number(alpha, "alpha"), dtype)])
    if number(beta, "beta") != 1:
        x = t.op("Mul", [x, np.asarray(number(beta, "beta"), dtype)])
    return t.op("Add", [x, product])
