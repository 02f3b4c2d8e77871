"""Rows for ops/index.py."""

from __future__ import annotations

import numpy as np
from support.op_case import Case, K, T, W, numbers, truths

F16, F32, F64 = np.float16, np.float32, np.float64
I8, I16, I32, I64 = np.int8, np.int16, np.int32, np.int64

ROWS = np.array([[0, 2], [1, 1]], I32)

GATHERS = [
    Case("Gather", [(3, 4), ROWS, K(0)], lambda x, i: x[i], {"batch_dims": 0}, dynamic=True),
    Case("Gather", [(3, 4), ROWS.astype(I64), K(-1)], lambda x, i: x[:, i]),
    Case("Gather", [(3, 4), np.array(-1, I32), K(1)], lambda x, i: x[:, -1]),
    Case("Gather", [(3, 4), ROWS.astype(np.uint8), K(0)], lambda x, i: x[i]),
    Case("Gather", [numbers(5, high=9, dtype=I64), K(np.array([1, 1], I32)), K(0)],
         lambda x: x[[1, 1]]),
    Case("Gather", [(3, 4), K(2), K(0)], lambda x: x[2]),
    Case("GatherV2", [(3, 4), ROWS, K(np.array(1, I64))], lambda x, i: x[:, i]),
    Case("GatherD", [(3, 2), K(0), np.array([[0, 1], [2, 0]], I64)],
         lambda x, i: np.take_along_axis(x, i, 0)),
    Case("GatherD", [(2, 3), K(-1), np.array([[0, 2], [-1, 0]], I32)],
         lambda x, i: np.take_along_axis(x, i, 1)),
    Case("GatherNd", [(3, 4), np.array([[0, 1], [2, 3]], I32)], lambda x, i: x[[0, 2], [1, 3]]),
    Case("GatherNd", [(3, 4), np.array([[0], [-1]], I64)], lambda x, i: x[[0, -1]]),
    Case("IndexSelect", [(3, 4), K(1), np.array([3, 0], I32)], lambda x, i: x[:, [3, 0]]),
]  # fmt: skip

BATCH = np.array([[0, 3, -1], [2, 2, 0]], I32)

MORE = [
    Case("Gather", [(2, 4), BATCH, K(1)], lambda x, i: np.take_along_axis(x, i, 1),
         {"batch_dims": 1}, dynamic=True),
    Case("Gather", [(2, 4, 3), BATCH, K(1)], lambda x, i: np.stack([x[0][i[0]], x[1][i[1]]]),
         {"batch_dims": 1}),
    Case("Gather", [(2, 3, 4), BATCH, K(2)],
         lambda x, i: np.stack([x[0][:, i[0]], x[1][:, i[1]]]), {"batch_dims": 1}, dynamic=True),
    Case("Gather", [(2, 3, 4), BATCH, K(-1)],
         lambda x, i: np.stack([x[0][:, i[0]], x[1][:, i[1]]]), {"batch_dims": -1}),
    Case("Gather", [(2, 3, 4, 2), BATCH.reshape(2, 3, 1), K(2)],
         lambda x, i: np.take_along_axis(x, i[..., None], 2), {"batch_dims": 2}),
    Case("GatherD", [(), K(0), np.array(0, I64)], lambda x, i: x),
    Case("GatherNdExt", [(3, 4), np.array([[0, 1]], I64)], lambda x, i: x[[0], [1]]),
    Case("Take", [(3, 4), np.array([[11, -1], [0, 5]], I64)], lambda x, i: x.reshape(-1)[i],
         dynamic=True),
    Case("Embedding", [ROWS, W(numbers(3, 4)), K(None), K(None), K(2.0), K(False)],
         lambda i, w: w[i], dynamic=True),
    Case("Embedding", [ROWS, (3, 4), K(1), K(None), K(2.0), K(True)], lambda i, w: w[i]),
    Case("EmbeddingLookup", [(4, 3), np.array([[2, 4], [1, 6]], I32), K(2)],
         lambda w, i: np.where(((i >= 2) & (i < 6))[..., None], w[(i - 2) % 4], F32(0)),
         dynamic=True),
    Case("MaskedSelect", [(2, 3), truths(2, 3)], lambda x, m: x[m]),
    Case("MaskedSelect", [(2, 3), truths(3, seed=1)],
         lambda x, m: x[np.broadcast_to(m, x.shape)], dynamic=True),
    Case("MaskedSelect", [(3,), truths(2, 3)], lambda x, m: np.broadcast_to(x, (2, 3))[m],
         dynamic=True),
    Case("MaskedSelect", [numbers(4, high=9, dtype=I8), truths(4)], lambda x, m: x[m]),
    Case("UnravelIndex", [np.array([5, 2], I32), np.array([2, 3], I32)],
         lambda i, d: np.stack(np.unravel_index(i, d)).astype(I32)),
    Case("UnravelIndex", [np.array(11, I64), K(np.array([2, 3, 2], I64))],
         lambda i: np.stack(np.unravel_index(i, (2, 3, 2)))),
]  # fmt: skip

FIRST, SECOND = np.array([0, 1, -1], I64), np.array([[2], [0]], I32)
NO_INDEX = K(np.zeros((0,) * 9, I64))

INDEXED = [
    Case("Index", [(3, 4), T(FIRST)], lambda x, i: x[i[0]], dynamic=True),
    Case("Index", [(3, 4), T(FIRST, SECOND)], lambda x, i: x[i[0], i[1]], dynamic=True),
    Case("Index", [(2, 3, 4), T(NO_INDEX, FIRST)], lambda x, i: x[:, i[0]], dynamic=True),
    Case("Index", [(2, 3, 4, 5), T(NO_INDEX, FIRST, SECOND)], lambda x, i: x[:, i[0], i[1]],
         dynamic=True),
    Case("Index", [(3, 4, 5), T(FIRST, NO_INDEX, SECOND)], lambda x, i: x[i[0], :, i[1]],
         dynamic=True),
    Case("Index", [(3, 4), T(truths(3, 4))], lambda x, i: x[i[0]]),
    Case("Index", [(3, 4, 2), T(truths(3))], lambda x, i: x[i[0]]),
    Case("Index", [(2, 3, 4), T(NO_INDEX, truths(3, 4))], lambda x, i: x[:, i[0]]),
    Case("InnerIndex", [numbers(3, 4, high=9, dtype=I64), T(FIRST, FIRST)],
         lambda x, i: x[i[0], i[1]]),
]  # fmt: skip

CASES = [*GATHERS, *MORE, *INDEXED]
