"""Matrix products of ONNX as MindSpore primitives."""

from __future__ import annotations

from typing import Any

import numpy as np

from mindspore_lite.ops.to_mindir.table import back
from mindspore_lite.ops.to_mindir.writer import Made, MindirWriter, Operand


@back("MatMul")
def matmul(p: MindirWriter, a: Operand, b: Operand) -> Made:
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
    p: MindirWriter,
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
    p.require(a.rank == b.rank == 2, "no matrices")
    made: Any = p.call("MatMul", a, b, bool(transA), bool(transB))
    if alpha != 1:
        made = p.call("Mul", made, np.asarray(alpha, a.dtype))
    if c is None:
        return made  # type: ignore[no-any-return]
    added: Any = c if beta == 1 else p.call("Mul", c, np.asarray(beta, a.dtype))
    return p.call("Add", made, added)


@back("Einsum")
def einsum(p: MindirWriter, *operands: Operand, equation: str) -> Made:
    """A product of matrices where it is one; MindSpore has no Einsum on CPUs."""
    equation = equation.replace(" ", "")
    terms, arrow, result = equation.partition("->")
    orders = _product(terms.split(","), result) if arrow and "." not in equation else None
    if orders is not None:
        *before, after = orders
        turned = [_ordered(p, x, perm) for x, perm in zip(operands, before, strict=True)]
        kind = "MatMul" if len(after) == 2 else "BatchMatMul"
        return p.value(_ordered(p, p.call(kind, *turned, False, False), after))
    return p.call("Einsum", p.tuple(operands), equation=equation)


def _product(terms: list[str], result: str) -> list[tuple[int, ...]] | None:
    """The orders of axes that make an equation a batch of products [.., i, k] @ [.., k, j]."""
    if len(terms) != 2 or any(len(set(term)) != len(term) for term in (*terms, result)):
        return None  # no pair, or a diagonal
    a, b = terms
    batch = [c for c in a if c in b and c in result]
    inner = [c for c in a if c in b and c not in result]
    rows = [c for c in a if c not in b]
    columns = [c for c in b if c not in a]
    if not len(inner) == len(rows) == len(columns) == 1 or len(result) != len(batch) + 2:
        return None
    wanted = [*batch, *rows, *columns]
    return [
        tuple(a.index(c) for c in (*batch, *rows, *inner)),
        tuple(b.index(c) for c in (*batch, *inner, *columns)),
        tuple(wanted.index(c) for c in result),
    ]


def _ordered(p: MindirWriter, x: Any, perm: tuple[int, ...]) -> Any:
    return x if perm == tuple(range(len(perm))) else p.call("Transpose", x, perm)


@back("Det")
def det(p: MindirWriter, x: Operand) -> Made:
    """Of each matrix."""
    return p.call("MatrixDeterminant", x)
