"""Rows for ops/create.py."""

from __future__ import annotations

from typing import Any

import numpy as np
from support.op_case import Case, K, S, T, numbers, truths

F16, F32, F64 = np.float16, np.float32, np.float64
I8, I16, I32, I64 = np.int8, np.int16, np.int32, np.int64


def one_hot(i: np.ndarray, depth: int, on: Any, off: Any, axis: int = -1) -> np.ndarray:
    hit = i[..., None] == np.arange(depth)
    return np.moveaxis(np.where(hit, on, off), -1, axis)


ONE_HOT = [
    Case("OneHot", [np.array([0, 2, 5], I32), K(3), K(np.array(1, np.float32)),
                    K(np.array(0, np.float32))],
         lambda i: one_hot(i, 3, np.float32(1), np.float32(0)), {"axis": -1}),
    Case("OneHot", [np.array([[0, -1], [2, 1]], I64), K(3), K(np.array(5, np.float32)),
                    K(np.array(-1, np.float32))],
         lambda i: one_hot(i, 3, np.float32(5), np.float32(-1), 1), {"axis": 1}),
    Case("OneHot", [np.array([1, 0], I32), K(2), K(np.array(1, I32)), K(np.array(0, I32))],
         lambda i: one_hot(i, 2, I32(1), I32(0), 0), {"axis": 0}),
    Case("OneHot", [np.array([1, 0], I32), S(3), np.array(1, F32), np.array(0, F32)],
         lambda i, n, a, b: one_hot(i, 3, F32(1), F32(0)), {"axis": -1}, dynamic=True),
    Case("OneHot", [np.array(1, I32), K(2), K(np.array(True)), K(np.array(False))],
         lambda i: one_hot(i, 2, True, False), {"axis": -1}),
    Case("OneHot", [np.array([7], np.uint8), K(0), K(np.array(1, F32)), K(np.array(0, F32))],
         lambda i: np.zeros((1, 0), F32), {"axis": -1}),
    Case("OneHotExt", [np.array([1, 0], I64), K(3), K(np.array(1, I64)), K(np.array(0, I64))],
         lambda i: one_hot(i, 3, 1, 0), {"axis": -1}, dynamic=True),
    Case("OneHotExt", [np.array([1, 4, 0], I64), K(-1), K(np.array(1, I64)), K(np.array(0, I64))],
         lambda i: one_hot(i, 5, 1, 0), {"axis": -1}, dynamic=True),
]  # fmt: skip

LIKE = [
    Case("ZerosLike", [(2, 3)], np.zeros_like, dynamic=True),
    Case("OnesLike", [numbers(3, high=9, dtype=I32)], np.ones_like),
    Case("OnesLike", [truths(3)], np.ones_like),
    Case("ZerosLikeExt", [(2, 3), K(None)], np.zeros_like),
    Case("ZerosLikeExt", [(2, 3), K(34)], lambda x: np.zeros_like(x, I32)),
    Case("OnesLikeExt", [(2, 3), K(42)], lambda x: np.ones_like(x, F16)),
    Case("EmptyLike", [(2, 3), K(35)], lambda x: np.zeros_like(x, I64), dynamic=True),
    Case("FullLike", [(2, 3), K(2.5), K(None)], lambda x: np.full_like(x, 2.5), dynamic=True),
    Case("FullLike", [(2, 3), K(7), K(34)], lambda x: np.full_like(x, 7, I32)),
    Case("FullLike", [(2, 3), S(1.5), K(None)], lambda x, v: np.full_like(x, 1.5)),
    Case("Fills", [(2, 3), K(3.0)], lambda x: np.full_like(x, 3), dynamic=True),
    Case("Fills", [numbers(2, high=9, dtype=I8), np.array(3, F32)],
         lambda x, v: np.full_like(x, 3)),
    Case("NewZeros", [(2, 3), K((2,)), K(None)], lambda x: np.zeros(2, F32)),
    Case("NewOnes", [truths(2), T(S(2), K(1)), K(None)], lambda x, s: np.ones((2, 1), bool)),
    Case("NewOnes", [(2, 3), K(()), K(34)], lambda x: np.ones((), I32)),
    Case("NewEmpty", [(2, 3), K((2, 2)), K(None), K(None)], lambda x: np.zeros((2, 2), F32)),
    Case("NewFull", [(2, 3), K((2,)), K(1.5), K(None)], lambda x: np.full(2, 1.5, F32)),
    Case("NewFull", [(2, 3), K((2,)), K(3), K(35)], lambda x: np.full(2, 3, I64)),
]  # fmt: skip

FILLED = [
    Case("Zeros", [K((2, 3)), K(43)], lambda: np.zeros((2, 3), F32)),
    Case("Zeros", [T(S(2), K(3)), K(None)], lambda s: np.zeros((2, 3), F32)),
    Case("Ones", [np.array([2, 1], I64), K(30)], lambda s: np.ones((2, 1), bool), dynamic=True),
    Case("Ones", [K(3), K(42)], lambda: np.ones(3, F16)),
    Case("Empty", [K((2,)), K(34), K(None), K(False)], lambda: np.zeros(2, I32)),
    Case("Fill", [K(34), K((2, 3)), K(7)], lambda: np.full((2, 3), 7, I32)),
    Case("Fill", [K(42), K((2,)), K(1.5)], lambda: np.full(2, 1.5, F16)),
    Case("FillV2", [K((2, 3)), K(np.array(7, I64))], lambda: np.full((2, 3), 7)),
    Case("FillV2", [T(S(2), S(1)), np.array(True)], lambda s, v: np.full((2, 1), True)),
    Case("FillV2", [np.array([], I64), np.array(3, F32)], lambda s, v: np.array(3, F32)),
    Case("FillD", [K(np.array([2.5], F32))], lambda: np.full((2, 2), 2.5, F32),
         attributes={"dims": (2, 2)}),
    Case("FillScalar", [K((2, 3)), K(2.5), K(None)], lambda: np.full((2, 3), 2.5, F32)),
    Case("FillScalar", [K((2,)), K(2), K(42)], lambda: np.full(2, 2, F16)),
    Case("FillScalar", [T(S(2)), S(3), K(None)], lambda s, v: np.full(2, 3)),
    Case("FillTensor", [K((2, 3)), np.array([2], F32), K(None)],
         lambda v: np.full((2, 3), 2, F32)),
    Case("FillTensor", [K((2, 3)), np.array(2, F32), K(35)], lambda v: np.full((2, 3), 2)),
]  # fmt: skip

RANGES = [
    Case("Range", [K(1), K(9), K(3)], lambda: np.arange(1, 9, 3), {"maxlen": 1000000}),
    Case("Range", [np.array(1, I32), np.array(9, I32), np.array(3, I32)],
         lambda *_: np.arange(1, 9, 3, I32)),
    Case("Range", [K(np.array(3, F32)), K(np.array(1, F32)), K(np.array(-0.5, F32))],
         lambda: np.arange(3, 1, -0.5, F32)),
    Case("Range", [], lambda: np.arange(2, 9, 3), attributes={"start": 2, "limit": 9, "delta": 3}),
    Case("RangeV2", [S(0), S(5), K(2)], lambda *_: np.arange(0, 5, 2)),
    Case("Arange", [K(0), K(5), K(1), K(None)], lambda: np.arange(5)),
    Case("Arange", [K(0), S(5), K(2), K(42)], lambda e: np.arange(0, 5, 2).astype(F16)),
    Case("Arange", [K(0.5), K(2.0), K(0.5), K(43)], lambda: np.arange(0.5, 2, 0.5, F32)),
    Case("Arange", [K(5), K(0), K(-2), K(32)], lambda: np.arange(5, 0, -2).astype(I8)),
    Case("LinSpace", [np.array(-1, F32), np.array(2, F32), K(5)],
         lambda *_: np.linspace(-1, 2, 5).astype(F32)),
    Case("LinSpace", [K(np.array(3, F64)), K(np.array(3.5, F64)), S(4)],
         lambda n: np.linspace(3, 3.5, 4)),
    Case("LinSpace", [np.array(-1, F32), np.array(2, F32), K(1)], lambda *_: np.array([-1], F32)),
    Case("LinSpaceExt", [K(0), K(10), K(5), K(None)], lambda: np.linspace(0, 10, 5).astype(F32)),
    Case("LinSpaceExt", [K(0), K(10), K(5), K(34)], lambda: np.array([0, 2, 5, 7, 10], I32)),
    Case("LinSpaceExt", [S(0.5), K(1), S(3), K(42)], lambda *_: np.array([0.5, 0.75, 1], F16)),
    Case("LogSpace", [np.array(-1, F32), np.array(2, F32)],
         lambda *_: np.logspace(-1, 2, 4, base=2).astype(F32),
         attributes={"steps": 4, "base": 2}),
    Case("LogSpace", [np.array(0, F32), np.array(2, F32)],
         lambda *_: np.logspace(0, 2, 10).astype(F16), attributes={"dtype": 42}),
    Case("SequenceMask", [np.array([[1, 3], [0, 6]], I32), K(4)],
         lambda n: np.arange(4) < n[..., None], dynamic=True),
    Case("SequenceMask", [np.array([1, 3], I64)], lambda n: np.arange(3) < n[:, None]),
    Case("SequenceMask", [np.array([1, 3], I64), np.array(2, I64)],
         lambda n, m: np.arange(2) < n[:, None]),
    Case("Eye", [K(2), K(3), K(43)], lambda: np.eye(2, 3, dtype=F32)),
    Case("Eye", [K(2), K(2), K(30)], lambda: np.eye(2, dtype=bool)),
    Case("Eye", [S(2), K(3), K(34)], lambda n: np.eye(2, 3, dtype=I32)),
]  # fmt: skip


def window(count: int, periodic: bool, a: float, b: float, c: float = 0) -> np.ndarray:
    turn = 2 * np.pi * np.arange(count) / (count if periodic else max(count - 1, 1))
    return (a - b * np.cos(turn) + c * np.cos(2 * turn)).astype(F32)


SIX = np.array(6, I32)

WINDOWS = [
    Case("BlackmanWindow", [SIX], lambda n: window(6, True, 0.42, 0.5, 0.08),
         attributes={"periodic": True}),
    Case("BlackmanWindow", [np.array(1, I64)], lambda n: np.ones(1, F32),
         attributes={"periodic": False, "dtype": 43}),
    Case("HammingWindow", [np.array([6], I32)], lambda n: window(6, False, 0.54, 0.46),
         attributes={"periodic": False, "dtype": 0}),
    Case("HammingWindow", [SIX], lambda n: window(6, True, 0.5, 0.25).astype(F16),
         attributes={"alpha": 0.5, "beta": 0.25, "dtype": 1}),
    Case("HannWindow", [K(5)], lambda: window(5, True, 0.5, 0.5)),
    Case("BartlettWindow", [SIX], lambda n: np.bartlett(7)[:-1].astype(F32)),
    Case("BartlettWindow", [SIX], lambda n: np.bartlett(6), attributes={"periodic": False,
                                                                       "dtype": 44}),
]  # fmt: skip

CASES = [*ONE_HOT, *LIKE, *FILLED, *RANGES, *WINDOWS]
