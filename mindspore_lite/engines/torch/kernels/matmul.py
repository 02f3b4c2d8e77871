"""Matrix products."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.nn import functional as F

from mindspore_lite.engines.torch.kernels.quant import quantized
from mindspore_lite.engines.torch.kernels.table import Layout, kernel


@kernel("MatMul", half="narrow", layouts={"b": "transposed"})
def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a @ b."""
    return product(a, b)


@kernel("Linear", domain="mslite", half="narrow", layouts={"w": "transposed"})
def linear(x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """x @ w + bias, of matrices in any number: what graph/ makes of these two."""
    return F.linear(rows_of(x), w.t(), bias).reshape(*x.shape[:-1], w.shape[1])


def rows_of(x: torch.Tensor) -> torch.Tensor:
    """All rows as one matrix. Of a transposed x torch would make a batch of small products."""
    return x.reshape(-1, x.shape[-1])


def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a @ b of any type."""
    if a.dim() > 2 and b.dim() == 2 and a.numel():
        return product(rows_of(a), b).reshape(*a.shape[:-1], b.shape[1])
    if a.is_floating_point() or a.device.type == "cpu":
        return torch.matmul(a, b)
    # cards have no products of integers; those of float64 are exact up to 2**53
    return torch.matmul(a.to(torch.float64), b.to(torch.float64)).to(a.dtype)


def _of_b(attributes: Mapping[str, Any]) -> Layout:
    return "" if attributes.get("transB") else "transposed"


@kernel("Gemm", half="narrow", layouts={"b": _of_b})
def gemm(
    a: torch.Tensor,
    b: torch.Tensor,
    c: torch.Tensor | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> torch.Tensor:
    """alpha * a @ b + beta * c."""
    a, b = a.t() if transA else a, b.t() if transB else b
    if c is not None and a.is_floating_point():
        return torch.addmm(c, a, b, beta=beta, alpha=alpha)
    y = product(a, b)
    y = y if alpha == 1 else y * alpha
    if c is not None:
        y = y + (c if beta == 1 else c * beta)
    return y.to(a.dtype)


@kernel("Einsum", half="narrow")
def einsum(*terms: torch.Tensor, equation: str) -> torch.Tensor:
    """Products summed as the equation says."""
    if terms[0].is_floating_point() or terms[0].device.type == "cpu":
        return torch.einsum(equation, *terms)
    return torch.einsum(equation, *(x.to(torch.float64) for x in terms)).to(terms[0].dtype)


@kernel("MatMulInteger")
def matmul_integer(
    a: torch.Tensor,
    b: torch.Tensor,
    a_zero_point: torch.Tensor | None = None,
    b_zero_point: torch.Tensor | None = None,
) -> torch.Tensor:
    """(a - a_zero_point) @ (b - b_zero_point) in int32; the points of a may go by row."""
    return product(_centred(a, a_zero_point, by_row=True), _centred(b, b_zero_point))


def _centred(
    x: torch.Tensor, zero_point: torch.Tensor | None, by_row: bool = False
) -> torch.Tensor:
    """x without its zero point, in int32; points in one dim go along the rows or the columns."""
    wide = x.to(torch.int32)
    if zero_point is None:
        return wide
    if by_row and zero_point.dim() == 1 and zero_point.numel() > 1:
        zero_point = zero_point[:, None]
    return wide - zero_point.to(torch.int32)


@kernel("QLinearMatMul")
def qlinear_matmul(
    a: torch.Tensor,
    a_scale: torch.Tensor,
    a_zero_point: torch.Tensor,
    b: torch.Tensor,
    b_scale: torch.Tensor,
    b_zero_point: torch.Tensor,
    y_scale: torch.Tensor,
    y_zero_point: torch.Tensor,
) -> torch.Tensor:
    """The product of quantised matrices, quantised."""
    y = matmul_integer(a, b, a_zero_point, b_zero_point)
    by_row = a_scale.dim() == 1 and a_scale.numel() > 1
    scale = (a_scale[:, None] if by_row else a_scale) * b_scale / y_scale
    return quantized(y * scale, y_zero_point, y_zero_point.dtype)
