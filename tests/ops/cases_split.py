"""Rows for ops/split.py."""

from __future__ import annotations

import numpy as np
from support.op_case import Case, K, S, T, numbers

F16, F32, F64 = np.float16, np.float32, np.float64
I8, I16, I32, I64 = np.int8, np.int16, np.int32, np.int64

JOINING = [
    Case("Concat", [T((2, 3), (4, 3))], np.concatenate),
    Case("Concat", [T((2, 3), (2, 1), (2, 2))], lambda xs: np.concatenate(xs, 1), {"axis": 1},
         dynamic=True),
    Case("Concat", [T((2, 3), (2, 1))], lambda xs: np.concatenate(xs, -1), {"axis": -1}),
    Case("Concat", [T((2, 3))], lambda xs: xs[0], {"axis": 1}),
    Case("Concat", [T(numbers(2, high=9, dtype=I64), K(np.array([5], I64)))],
         lambda xs: np.append(xs[0], 5), {"axis": 0}),
    Case("Concat", [T((2,), K(np.array([5], I32)))],
         lambda xs: np.append(xs[0], np.float32(5)), {"axis": 0}),
    Case("Stack", [T((2, 3), (2, 3))], np.stack, attributes={"axis": 0, "num": 2}),
    Case("Stack", [T((2, 3), (2, 3))], lambda xs: np.stack(xs, -1), attributes={"axis": -1}),
    Case("Stack", [T((2, 3), (2, 3))], lambda xs: np.stack(xs, -2), attributes={"axis": -2}),
    Case("StackExt", [T((2, 3), (2, 3), (2, 3))], lambda xs: np.stack(xs, 1), {"dim": 1}),
    Case("StackExt", [T((), ())], np.stack, {"dim": 0}),
]  # fmt: skip


def even(x: np.ndarray, size: int, axis: int) -> tuple[np.ndarray, ...]:
    return tuple(np.split(x, range(size, x.shape[axis], size), axis))


CUTTING = [
    Case("Split", [(4, 6)], lambda x: tuple(np.split(x, 3, 1)), {"axis": 1, "output_num": 3},
         dynamic=True),
    Case("Split", [(4, 6)], lambda x: tuple(np.split(x, 2, 0)), {"axis": -2, "output_num": 2}),
    Case("Split", [(4, 6)], lambda x: (x,), {"axis": 0, "output_num": 1}),
    Case("SplitWithSize", [(2, 6), K((1, 2, 3)), K(1)],
         lambda x: (x[:, :1], x[:, 1:3], x[:, 3:])),
    Case("SplitWithSizeView", [(5, 2), K((4, 1)), K(-2)], lambda x: (x[:4], x[4:])),
    Case("SplitTensor", [(5, 2), K(2), K(0)], lambda x: even(x, 2, 0)),
    Case("SplitTensorView", [(2, 5), K(3), K(-1)], lambda x: even(x, 3, 1)),
    Case("SplitTensor", [(5, 2), K(9), K(0)], lambda x: (x,)),
    Case("Chunk", [(5, 2), K(3), K(0)], lambda x: even(x, 2, 0)),
    Case("ChunkView", [(2, 6), K(3), K(1)], lambda x: even(x, 2, 1)),
    Case("Unstack", [(3, 4)], lambda x: tuple(x), attributes={"axis": 0, "num": 3},
         dynamic=True),
    Case("Unstack", [(3, 2)], lambda x: tuple(x.T), attributes={"axis": -1}),
    Case("Unstack", [(1, 4)], lambda x: (x[0],), attributes={"axis": 0}),
    Case("UnstackExtView", [(3, 2), K(1)], lambda x: tuple(x.T)),
]  # fmt: skip

MORE = [
    # converters leave out the MakeTuple
    Case("Concat", [(2, 3), (2, 1)], lambda x, y: np.concatenate([x, y], 1),
         attributes={"axis": 1, "inputNums": 2}),
    Case("Stack", [(2,), (2,), (2,)], lambda *xs: np.stack(xs), attributes={"axis": 0, "num": 3}),
    Case("Pack", [T((2, 3), (2, 3))], lambda xs: np.stack(xs, 1), attributes={"axis": 1}),
    Case("Unpack", [(2, 3)], lambda x: tuple(x), attributes={"axis": 0, "num": 2}),
    Case("SplitD", [(4, 6)], lambda x: tuple(np.split(x, 2, 1)),
         attributes={"axis": 1, "output_num": 2}),
    Case("SplitV", [(2, 6)], lambda x: (x[:, :2], x[:, 2:]),
         attributes={"size_splits": (2, -1), "split_dim": 1, "num_split": 2},
         dynamic=True),
    Case("SplitV", [(6, 2)], lambda x: (x[:1], x[1:3], x[3:]),
         attributes={"size_splits": [1, 2, 3], "split_dim": -2, "num_split": 3}, dynamic=True),
    Case("SplitWithSize", [(2, 6), T(S(4), S(2)), K(1)], lambda x, s: (x[:, :4], x[:, 4:])),
    Case("Chunk", [np.zeros((0, 2), np.float32), K(3), K(0)], lambda x: (x,)),
    Case("Meshgrid", [T((3,), (2,))], lambda v: tuple(np.meshgrid(*v, indexing="ij")),
         {"indexing": 0}, dynamic=True),
    Case("Meshgrid", [T((3,), (2,), (4,))], lambda v: tuple(np.meshgrid(*v)), {"indexing": 1}),
    Case("Meshgrid", [T((3,), (2,))], lambda v: tuple(np.meshgrid(*v)),
         attributes={"indexing": "xy"}),
    Case("Meshgrid", [T((3,))], lambda v: v[0], {"indexing": 1}, pick=0),
]  # fmt: skip

CASES = [*JOINING, *CUTTING, *MORE]
