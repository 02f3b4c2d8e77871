"""Rows for ops/language.py. MindSpore has these ops on Ascend only: NumPy is the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
from support.op_case import Case, K, numbers

F16, I32 = np.float16, np.int32
B, S, N, D = 2, 3, 2, 4


def turned(x: np.ndarray, pairs: bool) -> np.ndarray:
    if pairs:
        return np.stack([-x[..., 1::2], x[..., ::2]], -1).reshape(x.shape)
    half = x.shape[-1] // 2
    return np.concatenate([-x[..., half:], x[..., :half]], -1)


def rotary(x: Any, cos: Any, sin: Any, pairs: bool = False) -> Any:
    return x * cos + turned(x, pairs) * sin


def table(count: int, pairs: bool) -> list[np.ndarray]:
    angles = np.outer(np.arange(count), 1 / 10.0 ** np.arange(D // 2))
    angles = np.repeat(angles, 2, -1) if pairs else np.concatenate([angles, angles], -1)
    return [f(angles).astype(np.float32) for f in (np.cos, np.sin)]


def applied(kind: int) -> Any:
    def wants(q: Any, k: Any, cos: Any, sin: Any, places: Any) -> Any:
        if kind < 2:
            shape = (-1, 1, 1, D) if q.shape[1] == 1 else (1, -1, 1, D)
            cos, sin = cos[places].reshape(shape), sin[places].reshape(shape)
        else:
            cos, sin = (v.reshape(*q.shape[:2], 1, D) for v in (cos, sin))
        return tuple(rotary(x.reshape(*x.shape[:2], -1, D), cos, sin, kind % 2 == 1)
                     .reshape(x.shape).astype(x.dtype) for x in (q, k))  # fmt: skip

    return wants


def apply_case(kind: int, length: int, *, heads_apart: bool = False, **more: Any) -> Case:
    places = np.array([4, 1], I32) if length == 1 else np.arange(length, dtype=I32)
    rows = table(8 if kind < 2 else B * length, kind % 2 == 1)
    last = (N, D) if heads_apart else (N * D,)
    given = [numbers(B, length, *last), numbers(B, length, *last, seed=1), *rows, places]
    return Case("ApplyRotaryPosEmb", given, applied(kind), {"cos_format": kind}, **more)


ROTARY = [
    Case("RotaryPositionEmbedding", [(B, N, S, D), (1, 1, S, D), (1, 1, S, D), K(0)], rotary),
    Case("RotaryPositionEmbedding", [(B, S, N, D), (1, S, 1, D), (1, S, 1, D), K(1)],
         lambda x, c, s: rotary(x, c, s, True), dynamic=True),
    *[apply_case(kind, length) for kind in (0, 1, 2, 3) for length in (1, S)],
    apply_case(0, S, heads_apart=True),
]  # fmt: skip


def updated(cache: Any, starts: Any, new: Any, axis: int) -> Any:
    found = cache.copy()
    for b, start in enumerate(starts):
        size = new.shape[axis]
        if axis == -2:
            found[b, :, start : start + size] = new[b]
        else:
            found[b, :, :, start : start + size] = new[b]
    return found


CACHE = [
    Case("KVCacheScatterUpdate", [(2, 3, 6, 4), np.array([4, 1]), (2, 3, 1, 4), K(-2), K("update")],
         lambda c, i, u: updated(c, i, u, -2), dynamic=True),
    Case("KVCacheScatterUpdate", [(2, 3, 4, 6), np.array([2, 1]), (2, 3, 4, 2), K(-1), K("none")],
         lambda c, i, u: updated(c, i, u, -1)),
]  # fmt: skip


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def gating(x: np.ndarray, k: int) -> Any:
    order = np.argsort(-x, -1, kind="stable")[:, :k]
    rows = np.arange(x.shape[0] * k).reshape(k, -1).T
    return np.take_along_axis(softmax(x), order, 1), order.astype(I32), rows.astype(I32)


ROWS = np.arange(6, dtype=I32).reshape(2, 3).T
EXPERTS = np.array([[1, 0], [2, 1], [0, 2]], I32)


def routed(x: Any, rows: Any, experts: Any, active: int) -> Any:
    order = np.argsort(experts.reshape(-1), kind="stable")
    sources = rows.reshape(-1)[order]
    places = np.empty(len(order), I32)
    places[sources] = np.arange(len(order))
    kept = min(len(x), active) * rows.shape[1]
    return x[sources[:kept] % len(x)], places, np.sort(experts.reshape(-1))


PLACES = np.array([3, 0, 5, 1, 4, 2], I32)  # of 2 experts of 3 tokens, expert by expert


def finalized(x: Any, x1: Any, *rest: Any) -> Any:
    *others, scales, places, experts = rest
    x2, bias = others if others else (0, np.zeros((3, x.shape[1]), np.float32))
    found = x1 + x2
    for i in range(3):
        for k in range(2):
            found[i] += scales[i, k] * (x[places[i + 3 * k]] + bias[experts[i, k]])
    return found


def permuted(tokens: Any, indices: Any, count: int | None = None) -> Any:
    flat = indices.reshape(-1)
    order = np.argsort(flat, kind="stable")
    places = np.argsort(order, kind="stable").astype(I32)
    return tokens[order[:count] // (flat.size // len(tokens))], places


def best_groups(x: Any, groups: int, k: int, inner: int) -> Any:
    apart = x.reshape(len(x), groups, -1).copy()
    score = np.sort(apart.astype(np.float32), -1)[..., -inner:].sum(-1)
    order = np.argsort(-score, -1, kind="stable")
    for row, worst in enumerate(order[:, k:]):
        apart[row, worst] = 0
    return apart.reshape(x.shape)


MOE = [
    Case("MoeGatingTopKSoftmax", [(3, 4), K(None), K(2)], lambda x: gating(x, 2), dynamic=True),
    Case("MoeInitRouting", [(3, 4), ROWS, EXPERTS, K(3)], lambda x, r, e: routed(x, r, e, 3)),
    Case("MoeInitRouting", [(3, 4), ROWS, EXPERTS, K(2)], lambda x, r, e: routed(x, r, e, 2),
         dynamic=True),
    Case("MoeFinalizeRouting", [(6, 4), (3, 4), (3, 4), (3, 4), (3, 2), PLACES, EXPERTS],
         finalized),
    Case("MoeFinalizeRouting", [(6, 4), (3, 4), K(None), K(None), (3, 2), PLACES, EXPERTS],
         finalized, dynamic=True),
    Case("MoeComputeExpertTokens", [np.array([0, 0, 1, 2, 2], I32), K(5)],
         lambda e: np.array([2, 3, 5, 5, 5], I32)),
    Case("MoeTokenPermute", [(6, 3), np.array([5, 0, 3, 1, 2, 4], I32), K(None), K(False)],
         permuted),
    Case("MoeTokenPermute", [(3, 4), EXPERTS, K(4), K(False)], lambda x, i: permuted(x, i, 4),
         dynamic=True),
    Case("MoeTokenUnpermute", [(6, 3), PLACES, K(None), K(False), K(None)], lambda x, i: x[i]),
    Case("MoeTokenUnpermute", [(6, 4), PLACES, (3, 2), K(False), K(None)],
         lambda x, i, p: (x[i].reshape(3, 2, 4) * p[..., None]).sum(1), dynamic=True),
    Case("InnerMoeTokenUnpermute", [(6, 3), PLACES, K(None), K(False), K(None)],
         lambda x, i: x[i]),
    Case("GroupTopk", [(3, 8), np.arange(8, dtype=I32), K(4), K(2), K(2)],
         lambda x, _: best_groups(x, 4, 2, 2)),
    Case("GroupTopk", [numbers(3, 6, dtype=F16), np.arange(8, dtype=I32), K(3), K(1), K(1)],
         lambda x, _: best_groups(x, 3, 1, 1), dynamic=True),
]  # fmt: skip

CASES = [*ROTARY, *CACHE, *MOE]
