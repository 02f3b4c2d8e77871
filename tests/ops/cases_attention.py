"""Rows for ops/attention.py. MindSpore has these ops on Ascend only: NumPy is the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
from support.op_case import Case, K, T, numbers, truths

B, N, S1, S2, D = 2, 4, 3, 5, 8  # batch, heads, queries, keys, size of a head
F16, FAR = np.float16, 2**31 - 1
LAYOUTS = {"BSH": 0, "BNSD": 1, "SBH": 2, "BSND": 3, "TND": 5}


def laid_out(layout: str, count: int, heads: int = N, seed: int = 0) -> np.ndarray:
    x = numbers(B, heads, count, D, seed=seed)
    return lay(x, layout)


def lay(x: np.ndarray, layout: str) -> np.ndarray:
    if layout == "BNSD":
        return x
    if layout == "BSND":
        return np.ascontiguousarray(x.transpose(0, 2, 1, 3))
    if layout == "BSH":
        return np.ascontiguousarray(x.transpose(0, 2, 1, 3)).reshape(x.shape[0], x.shape[2], -1)
    return np.ascontiguousarray(x.transpose(2, 0, 1, 3)).reshape(x.shape[2], x.shape[0], -1)


def unlay(x: np.ndarray, layout: str, heads: int) -> np.ndarray:
    if layout == "BNSD":
        return x
    if layout == "SBH":
        return x.reshape(*x.shape[:2], heads, -1).transpose(1, 2, 0, 3)
    return x.reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3)


def attention(q: Any, k: Any, v: Any, hidden: Any = False, shift: Any = 0.0) -> np.ndarray:
    """In [B, N, S, D]."""
    groups = q.shape[1] // k.shape[1]
    k, v = (np.repeat(x, groups, 1) for x in (k, v))
    scores = (q @ k.swapaxes(2, 3) + shift) * np.float32(0.25)
    scores = np.where(hidden, np.finfo(np.float32).min, scores)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return (weights / weights.sum(-1, keepdims=True)) @ v


ROW, COLUMN = np.arange(S2), np.arange(S1)[:, None]
CAUSAL, FROM_END = ROW > COLUMN, ROW > COLUMN + S2 - S1


def score(
    layout: str = "BSH",
    *,
    key_heads: int = N,
    mode: int = 0,
    before: int = FAR,
    after: int = FAR,
    mask: Any = None,
    shift: Any = None,
    hidden: Any = False,
    dtype: Any = np.float32,
    **more: Any,
) -> Case:
    """One row of FlashAttentionScore."""
    init = {"head_num": N, "keep_prob": 1.0, "scale_value": 0.25, "pre_tokens": before,
            "next_tokens": after, "inner_precise": 0, "input_layout": LAYOUTS[layout],
            "sparse_mode": mode}  # fmt: skip
    given = [laid_out(layout, S1).astype(dtype),
             *(laid_out(layout, S2, key_heads, seed).astype(dtype) for seed in (1, 2))]  # fmt: skip
    none = K(None)
    inputs = [*given, none if shift is None else shift, none, none, none if mask is None else mask,
              none, none, none]  # fmt: skip

    def wants(q: Any, k: Any, v: Any, *rest: Any) -> np.ndarray:
        parts = (unlay(x.astype(np.float32), layout, h)
                 for x, h in ((q, N), (k, key_heads), (v, key_heads)))  # fmt: skip
        return lay(attention(*parts, hidden, 0.0 if shift is None else shift), layout).astype(dtype)

    return Case("FlashAttentionScore", inputs, wants, init, pick=3, **more)


MASK = truths(B, 1, S1, S2, seed=3)
MASK[..., 0] = False
SCORES = [
    *[score(layout) for layout in ("BSH", "BNSD", "SBH", "BSND")],
    score("BNSD", dtype=F16), score("BSH", key_heads=2), score("BNSD", key_heads=1),
    score("BSH", mask=MASK, hidden=MASK),
    score("BNSD", mask=MASK.astype(np.uint8), hidden=MASK, mode=1),
    score("BSH", mask=MASK[0, 0], hidden=MASK[0, 0]),
    score("BNSD", shift=numbers(B, N, S1, S2, seed=4)),
    score("BSH", mode=2, hidden=CAUSAL), score("BSH", mode=3, hidden=FROM_END),
    score("BNSD", mode=4, before=1, after=0, mask=CAUSAL,
          hidden=FROM_END | (ROW < COLUMN + S2 - S1 - 1)),
    score("BNSD", mask=MASK, before=1, after=1,
          hidden=MASK | (ROW < COLUMN - 1) | (ROW > COLUMN + 1)),
]  # fmt: skip

QLEN, KLEN = (2, 3), (2, 5)  # ends of two sequences: 2 and 1 queries, 2 and 3 keys


def by_sequence(q: Any, k: Any, v: Any) -> np.ndarray:
    found = []
    for at, (q_end, k_end) in enumerate(zip(QLEN, KLEN, strict=True)):
        q_start, k_start = (0, 0) if at == 0 else (QLEN[0], KLEN[0])
        one = [x[a:b].transpose(1, 0, 2)[None]
               for x, a, b in ((q, q_start, q_end), (k, k_start, k_end),
                               (v, k_start, k_end))]  # fmt: skip
        queries, keys = one[0].shape[2], one[1].shape[2]
        hidden = np.arange(keys) > np.arange(queries)[:, None] + keys - queries
        found.append(attention(*one, hidden)[0].transpose(1, 0, 2))
    return np.concatenate(found)


TND = Case(
    "FlashAttentionScore",
    [numbers(3, N, D), numbers(5, N, D, seed=1), numbers(5, N, D, seed=2), *[K(None)] * 5,
     K(QLEN), K(KLEN)],
    by_sequence,
    {"head_num": N, "keep_prob": 1.0, "scale_value": 0.25, "pre_tokens": FAR, "next_tokens": 0,
     "inner_precise": 0, "input_layout": 5, "sparse_mode": 3},
    pick=3,
)  # fmt: skip


def inference(primitive: str, init: dict[str, Any], layout: str, *rest: Any, hidden: Any = False,
              queries: int = S1, heads: int = N, out: str = "", **more: Any) -> Case:  # fmt: skip
    q = laid_out(layout, queries)
    k, v = (T(laid_out(layout, S2, heads, seed)) for seed in (1, 2))

    def wants(q: Any, k: Any, v: Any, *_: Any) -> np.ndarray:
        y = attention(unlay(q, layout, N), unlay(k[0], layout, heads), unlay(v[0], layout, heads),
                      hidden)  # fmt: skip
        return lay(y, out or layout)

    return Case(primitive, [q, k, v, *rest], wants, init, **more)


def prompt(**more: Any) -> dict[str, Any]:
    return {"num_heads": N, "scale_value": 0.25, "pre_tokens": FAR, "next_tokens": 0,
            "input_layout": 0, "num_key_value_heads": 0, "sparse_mode": 0,
            "inner_precise": 1, **more}  # fmt: skip


LENGTHS = np.array([5, 3])
BEYOND = np.arange(S2) >= LENGTHS[:, None, None, None]
ONE = {"num_heads": N, "input_layout": 0, "scale_value": 0.25, "num_key_value_heads": 2,
       "block_size": 0, "inner_precise": 1}  # fmt: skip
FUSED = {"num_heads": N, "scale_value": 0.25, "pre_tokens": FAR, "next_tokens": FAR,
         "input_layout": "BNSD_BSND", "num_key_value_heads": 0, "sparse_mode": 0,
         "inner_precise": 1, "block_size": 0, "antiquant_mode": 0, "softmax_lse_flag": False,
         "key_antiquant_mode": 0, "value_antiquant_mode": 0}  # fmt: skip
NO = K(None)
INFERENCE = [
    inference("PromptFlashAttention", prompt(), "BSH", *[NO] * 9),
    inference("PromptFlashAttention", prompt(input_layout=1, num_key_value_heads=2), "BNSD",
              NO, LENGTHS, LENGTHS, *[NO] * 6, hidden=BEYOND, heads=2),
    inference("PromptFlashAttention", prompt(next_tokens=FAR), "BSH", MASK[:, 0], *[NO] * 8,
              hidden=MASK),
    inference("PromptFlashAttention", prompt(), "BSH", MASK, *[NO] * 8, hidden=MASK | CAUSAL),
    inference("IncreFlashAttention", ONE, "BSH", NO, LENGTHS, *[NO] * 10, queries=1, heads=2,
              hidden=BEYOND),
    inference("IncreFlashAttention", {**ONE, "input_layout": 1}, "BNSD", MASK[:, 0, 0],
              *[NO] * 11, queries=1, heads=2, hidden=MASK[:, :, :1]),
    inference("FusedInferAttentionScore", FUSED, "BNSD", NO, MASK, NO, LENGTHS, *[NO] * 17,
              hidden=MASK | BEYOND, out="BSND", pick=0),
    inference("FusedInferAttentionScore", {**FUSED, "input_layout": 0, "sparse_mode": 3}, "BSH",
              *[NO] * 21, hidden=FROM_END, pick=0),
]  # fmt: skip

TABLE, CONTEXT = np.array([[2, 0], [1, -1]], np.int32), np.array([5, 2], np.int32)


def paged(q: Any, keys: Any, values: Any, table: Any, lengths: Any) -> np.ndarray:
    found = []
    for at, length in enumerate(lengths):
        k, v = (x[np.maximum(table[at], 0)].reshape(-1, 2, D)[:length].transpose(1, 0, 2)[None]
                for x in (keys, values))  # fmt: skip
        found.append(attention(q[at].reshape(1, N, 1, D), k, v).reshape(q[at].shape))
    return np.stack(found)


PAGED = [
    Case("PagedAttention",
         [numbers(B, 1, N * D), numbers(3, 3, 2, D, seed=1), numbers(3, 3, 2, D, seed=2), TABLE,
          CONTEXT, *[NO] * 5], paged,
         {"head_num": N, "scale_value": 0.25, "kv_head_num": 2, "kv_cache_quant_mode": "DEFAULT",
          "mask_mode": "MASK_DEFAULT", "mla_v_dim": 0}),
]  # fmt: skip

CASES = [*SCORES, TND, *INFERENCE, *PAGED]
