"""Rows for ops/diag.py."""

from __future__ import annotations

import numpy as np
from support.op_case import Case, K, S, numbers, truths

F16, F32, F64 = np.float16, np.float32, np.float64
I8, I16, I32, I64 = np.int8, np.int16, np.int32, np.int64

TRIANGLES = [
    Case("Tril", [(4, 4)], np.tril),
    Case("Tril", [(2, 3, 4)], lambda x: np.tril(x, 1), attributes={"diagonal": 1}),
    Case("Tril", [numbers(3, 4, high=9, dtype=np.uint8)], np.tril),
    Case("Tril", [truths(3, 4)], np.tril),
    Case("TrilExt", [(3, 4)], lambda x: np.tril(x, -1), {"diagonal": -1}, dynamic=True),
    Case("Triu", [(3, 4)], np.triu, {"diagonal": 0}),
    Case("Triu", [numbers(3, 4, high=9, dtype=I64)], lambda x: np.triu(x, 2), {"diagonal": 2}),
    Case("Triu", [numbers(3, 4, dtype=F16)], lambda x: np.triu(x, -1), {"diagonal": -1}),
    Case("MatrixBandPart", [(2, 4, 4), K(1), K(0)], lambda x: np.triu(np.tril(x), -1),
         dynamic=True),
    Case("MatrixBandPart", [(4, 5), K(-1), K(np.array(1, I64))], lambda x: np.tril(x, 1)),
    Case("MatrixBandPart", [(4, 5), K(2), K(-1)], lambda x: np.triu(x, -2)),
    Case("MatrixBandPart", [(4, 5), S(1), S(-1)], lambda x, a, b: np.triu(x, -1)),
    Case("TrilIndices", [], lambda: np.stack(np.tril_indices(3, 1, 4)).astype(I32),
         attributes={"row": 3, "col": 4, "offset": 1}),
    Case("TriuIndices", [], lambda: np.stack(np.triu_indices(3, -1, 4)),
         attributes={"row": 3, "col": 4, "offset": -1, "dtype": 35}),
]  # fmt: skip

DIAGONALS = [
    Case("Diagonal", [(3, 4)], np.diagonal, {"offset": 0, "dim1": 0, "dim2": 1}, dynamic=True),
    Case("Diagonal", [(3, 2, 4)], lambda x: np.diagonal(x, 1, 2, 0),
         {"offset": 1, "dim1": 2, "dim2": 0}, dynamic=True),
    Case("Diagonal", [(2, 3, 4)], lambda x: np.diagonal(x, -1, -2, -1),
         {"offset": -1, "dim1": -2, "dim2": -1}),
    Case("Diagonal", [(2, 3)], lambda x: np.diagonal(x, 9), {"offset": 9, "dim1": 0, "dim2": 1},
         dynamic=True),
    Case("DiagonalView", [(3, 4), K(1), K(0), K(1)], lambda x: np.diagonal(x, 1)),
    Case("Diag", [(3,)], np.diag, dynamic=True),
    Case("Diag", [truths(3)], np.diag),
    Case("Diag", [(2, 3)], lambda x: np.diag(x.reshape(-1)).reshape(2, 3, 2, 3), dynamic=True),
    Case("DiagPart", [(2, 3, 2, 3)], lambda x: np.diag(x.reshape(6, 6)).reshape(2, 3),
         dynamic=True),
    Case("DiagExt", [(3,), K(0)], np.diag),
    Case("DiagExt", [(3,), K(2)], lambda x: np.diag(x, 2), dynamic=True),
    Case("DiagExt", [numbers(3, high=9, dtype=I64), K(-1)], lambda x: np.diag(x, -1)),
    Case("DiagExt", [(3, 4), K(-1)], lambda x: np.diag(x, -1), dynamic=True),
    Case("Trace", [(3, 4)], np.trace, dynamic=True),
    Case("Trace", [numbers(3, 3, high=9, dtype=I8)], lambda x: np.trace(x).astype(I8)),
    Case("TraceExt", [(3, 3)], np.trace),
    Case("TraceExt", [numbers(3, 3, high=9, dtype=I32)], lambda x: np.trace(x).astype(I64),
         untyped=False),
    Case("TraceV2", [(3, 4, 2), K(1), K(0), K(1), K(None)], lambda x: np.trace(x, 1, 0, 1)),
    Case("TraceV2", [(3, 4), K(-1), K(0), K(1), K(44)],
         lambda x: np.trace(x.astype(F64), -1)),
    Case("FillDiagonal", [(3, 4)], lambda x: np.where(np.eye(3, 4, dtype=bool), F32(5), x),
         attributes={"fill_value": 5.0, "wrap": False}),
    Case("FillDiagonal", [(2, 2, 2)], lambda x: cube(x, 5), attributes={"fill_value": 5.0}),
    Case("FillDiagonal", [(5, 2)], lambda x: tall(x, 5),
         attributes={"fill_value": 5.0, "wrap": True}),
    Case("InplaceFillDiagonal", [(4, 2), K(5.0), K(False)],
         lambda x: np.where(np.eye(4, 2, dtype=bool), F32(5), x)),
]  # fmt: skip

BAND = np.array([-1, 1], I32)
SCALARS = {n: K(np.array(n, I32)) for n in (-1, 3, 4)}
NINE = K(np.array(9, F32))


def packed(align: str) -> np.ndarray:
    """Diagonals 1, 0, -1 of a 3 x 4 matrix of 1..12, nines where a row is not full."""
    above = [2, 7, 12]
    below = [9, 5, 10] if align.endswith("_RIGHT") else [5, 10, 9]
    return np.array([above, [1, 6, 11], below], F32)


def unpacked(pack: np.ndarray, align: str, rest: np.ndarray) -> np.ndarray:
    y = rest.copy()
    shift = int(align.endswith("_RIGHT"))
    for i in range(3):
        y[..., i, i + 1] = pack[..., 0, i]
        y[..., i, i] = pack[..., 1, i]
        if i < 2:
            y[..., i + 1, i] = pack[..., 2, i + shift]
    return y


MATRIX = np.arange(1, 13, dtype=F32).reshape(3, 4)

BANDS = [
    *[Case("MatrixDiagPartV3", [MATRIX, K(BAND), NINE], lambda x, a=align: packed(a),
           attributes={"align": align}) for align in ("RIGHT_LEFT", "LEFT_RIGHT")],
    Case("MatrixDiagPartV3", [(2, 3, 4), K(np.array(-1, I32)), NINE],
         lambda x: np.diagonal(x, -1, 1, 2), attributes={"align": "RIGHT_LEFT"}),
    *[Case("MatrixDiagV3", [(2, 3, 3), K(BAND), SCALARS[3], SCALARS[4], NINE],
           lambda x, a=align: unpacked(x, a, np.full((2, 3, 4), 9, F32)),
           attributes={"align": align}) for align in ("RIGHT_LEFT", "LEFT_RIGHT")],
    Case("MatrixDiagV3", [(3,), K(np.array(0, I32)), SCALARS[-1], SCALARS[-1], NINE],
         lambda x: np.where(np.eye(3, dtype=bool), x, F32(9))),
    Case("MatrixDiagV3", [(3,), K(np.array([-1], I32)), SCALARS[4], SCALARS[-1],
                          K(np.array(0, F32))], lambda x: np.diag(x, -1)[:, :3]),
    *[Case("MatrixSetDiagV3", [(2, 3, 4), (2, 3, 3), K(BAND)],
           lambda x, d, a=align: unpacked(d, a, x), attributes={"align": align})
      for align in ("LEFT_LEFT", "RIGHT_RIGHT")],
    Case("MatrixSetDiagV3", [truths(3, 4), truths(3, seed=1), K(np.array(0, I32))],
         lambda x, d: np.where(np.eye(3, 4, dtype=bool), d[:, None], x)),
]  # fmt: skip


def cube(x: np.ndarray, value: float) -> np.ndarray:
    y = x.copy()
    np.fill_diagonal(y, value)
    return y


def tall(x: np.ndarray, value: float) -> np.ndarray:
    y = x.copy()
    np.fill_diagonal(y, value, wrap=True)
    return y


CASES = [*TRIANGLES, *DIAGONALS, *BANDS]
