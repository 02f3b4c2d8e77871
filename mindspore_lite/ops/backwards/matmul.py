"""Matrix products of ONNX as MindSpore primitives."""

from __future__ import annotations

from typing import Any

import numpy as np

from mindspore_lite.ops.backwards.pen import Made, Operand, Pen
from mindspore_lite.ops.backwards.table import back


@back("MatMul")
def matmul(p: Pen, a: Operand, b: Operand) -> Made:
    """Two matrices, batches of them, or anything that NumPy's rules allow."""
    if a.rank == b.rank == 2:
        return p.call("MatMul", a, b, False, False)
    if a.rank == b.rank > 2 and _same_batch(a, b):
        return p.call("BatchMatMul", a, b, False, False)
    return p.call("MatMulExt", a, b)


def _same_batch(a: Operand, b: Operand) -> bool:
    return None not in a.shape[:-2] and a.shape[:-2] == b.shape[:-2]


@back("Gemm")
def gemm(
    p: Pen,
    a: Operand,
    b: Operand,
    c: Operand | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Made:
    """alpha * (a @ b) + beta * c."""
    made: Any = p.call("MatMul", a, b, bool(transA), bool(transB))
    if alpha != 1:
        made = p.call("Mul", made, np.asarray(alpha, a.dtype))
    if c is None:
        return made  # type: ignore[no-any-return]
    added: Any = c if beta == 1 else p.call("Mul", c, np.asarray(beta, a.dtype))
    return p.call("Add", made, added)


@back("Einsum")
def einsum(p: Pen, *operands: Operand, equation: str) -> Made:
    """The equation as it is, without blanks."""
    return p.call("Einsum", p.tuple(operands), equation=equation.replace(" ", ""))


@back("Det")
def det(p: Pen, x: Operand) -> Made:
    """Of each matrix."""
    return p.call("MatrixDeterminant", x)
