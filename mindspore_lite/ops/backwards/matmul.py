"""Matrix products of ONNX as MindSpore primitives."""

from __future__ import annotations

from typing import Any

import numpy as np

from mindspore_lite.ops.backwards.pen import Made, Operand, Pen
from mindspore_lite.ops.backwards.table import back


@back("MatMul")
def matmul(p: Pen, a: Operand, b: Operand) -> Made:
    """2-D products, and batches of them."""
    if a.rank == b.rank == 2:
        return p.call("MatMul", a, b, False, False)
    p.require(a.rank >= 2 and b.rank >= 2, "a vector")
    p.require(a.rank == b.rank, "matrices of different ranks")
    return p.call("BatchMatMul", a, b, False, False)


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
