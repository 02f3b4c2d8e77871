"""Attention."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import torch
from torch.nn import functional as F

from mindspore_lite.engines.torch.kernels.table import kernel
from mindspore_lite.engines.torch.kernels.types import torch_type

Optional: TypeAlias = "torch.Tensor | None"


@kernel("ScaledDotProductAttention", domain="mslite", half="narrow")
def scaled_dot_product_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: Optional = None,
    *,
    is_causal: int = 0,
    scale: float | None = None,
) -> torch.Tensor:
    """softmax(q @ k^T * scale + mask) @ v, which broadcast: what graph/ makes of its parts."""
    if mask is not None:
        mask = mask.reshape((1,) * (2 - mask.dim()) + mask.shape)  # torch asks for two axes
        if mask.dtype in (torch.float16, torch.bfloat16):
            # the lowest float32 became -inf, of which whole rows would give NaN
            mask = mask.clamp(min=torch.finfo(mask.dtype).min)
    lead = torch.broadcast_shapes(*(x.shape[:-2] for x in (q, k, v, mask) if x is not None))
    rows = q.shape[-2] if mask is None else max(q.shape[-2], mask.shape[-2])
    q, k, v = q.expand(*lead, rows, -1), k.expand(*lead, -1, -1), v.expand(*lead, -1, -1)
    if len(lead) == 1:  # the fast kernels of cards ask for four
        q, k, v = q[None], k[None], v[None]
    y = F.scaled_dot_product_attention(q, k, v, mask, is_causal=bool(is_causal), scale=scale)
    return y[0] if len(lead) == 1 else y


@kernel("Attention", half="narrow")
def attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: Optional = None,
    past_key: Optional = None,
    past_value: Optional = None,
    lengths: Optional = None,
    *,
    is_causal: int = 0,
    kv_num_heads: int | None = None,
    left_window_size: int = -1,
    q_num_heads: int | None = None,
    qk_matmul_output_mode: int = 0,
    right_window_size: int = -1,
    scale: float | None = None,
    softcap: float = 0.0,
    softmax_precision: int | None = None,
    outputs: int = 1,
) -> Any:
    """Attention of heads, with past keys and values; and those of now, and the scores."""
    packed = q.dim() == 3
    q, k, v = _heads(q, q_num_heads), _heads(k, kv_num_heads), _heads(v, kv_num_heads)
    offset: torch.Tensor | int = 0  # how many keys come before the first query
    if past_key is not None and past_value is not None:
        offset = past_key.shape[2]
        k, v = torch.cat([past_key, k], 2), torch.cat([past_value, v], 2)
    elif lengths is not None:
        offset = (lengths - q.shape[2]).reshape(-1, 1, 1, 1)
    now = (k, v)
    k, v = _shared(k, q.shape[1]), _shared(v, q.shape[1])
    window = (left_window_size, 0 if is_causal else right_window_size)
    exact = softmax_precision is None or torch_type(softmax_precision) is not torch.float64
    if outputs < 4 and not softcap and exact:
        plain = window == (-1, 0) and mask is None and lengths is None and isinstance(offset, int)
        causal = bool(plain and offset == 0)
        bias = None if causal else _bias(q, k, mask, lengths, offset, window)
        y = F.scaled_dot_product_attention(q, k, v, bias, is_causal=causal, scale=scale)
        y = y if bias is None else torch.where(_barred(bias), 0, y)
        scores: Optional = None
    else:
        bias = _bias(q, k, mask, lengths, offset, window)
        dtype = None if softmax_precision is None else torch_type(softmax_precision)
        y, scores = _step_by_step(q, k, v, bias, scale, softcap, dtype, qk_matmul_output_mode)
    if packed:
        y = y.transpose(1, 2).flatten(2)
    return y if outputs == 1 else (y, *now, scores)[:outputs]


def _heads(x: torch.Tensor, count: int | None) -> torch.Tensor:
    """(batch, heads, length, size), of this or of (batch, length, heads * size)."""
    if x.dim() == 4:
        return x
    assert count is not None
    return x.unflatten(2, (count, -1)).transpose(1, 2)


def _shared(x: torch.Tensor, heads: int) -> torch.Tensor:
    """Keys or values as often as there are heads of queries."""
    return x if x.shape[1] == heads else x.repeat_interleave(heads // x.shape[1], 1)


def _bias(
    q: torch.Tensor,
    k: torch.Tensor,
    mask: Optional,
    lengths: Optional,
    offset: torch.Tensor | int,
    window: tuple[int, int],
) -> Optional:
    """What forbids or weighs keys: a mask of truth values, or of numbers to add, or None."""
    queries, keys = q.shape[2], k.shape[2]
    if mask is not None and mask.shape[-1] < keys:
        barred: Any = False if mask.dtype is torch.bool else -math.inf
        mask = F.pad(mask, (0, keys - mask.shape[-1]), value=barred)
    left, right = window
    at = torch.arange(queries, device=q.device)[:, None] + offset
    key = torch.arange(keys, device=q.device)
    rules = [] if lengths is None else [key < lengths.reshape(-1, 1, 1, 1)]
    rules += [key >= at - left] if left >= 0 else []
    rules += [key <= at + right] if right >= 0 else []
    for rule in rules:
        if mask is None:
            mask = rule
        elif mask.dtype is torch.bool:
            mask = mask & rule
        else:
            mask = torch.where(rule, mask, -math.inf)
    return mask


def _barred(bias: torch.Tensor) -> torch.Tensor:
    """Queries that no key is allowed for: their result is 0, which not all of torch's ways give."""
    allowed = bias if bias.dtype is torch.bool else bias > -math.inf
    return ~allowed.any(-1, keepdim=True)


def _step_by_step(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    bias: Optional,
    scale: float | None,
    softcap: float,
    dtype: torch.dtype | None,
    mode: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention whose scores are capped or asked for: the result, and the scores of a stage."""
    root = math.sqrt(1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    stages = [torch.matmul(q * root, (k * root).transpose(-1, -2))]
    stages.append(softcap * torch.tanh(stages[0] / softcap) if softcap else stages[0])
    if bias is not None and bias.dtype is torch.bool:
        stages.append(torch.where(bias, stages[1], -math.inf))
    else:
        stages.append(stages[1] if bias is None else stages[1] + bias)
    weights = torch.softmax(stages[2], -1, dtype=dtype or stages[2].dtype).to(q.dtype)
    stages.append(torch.where(_barred(stages[2]), 0, weights))
    return torch.matmul(stages[3], v), stages[mode]


@kernel("RotaryEmbedding")
def rotary_embedding(
    x: torch.Tensor,
    cosines: torch.Tensor,
    sines: torch.Tensor,
    positions: Optional = None,
    *,
    interleaved: int = 0,
    num_heads: int | None = None,
    rotary_embedding_dim: int = 0,
) -> torch.Tensor:
    """x, pairs of whose elements are turned by the angle of their position."""
    heads = _heads(x, num_heads)
    if positions is not None:
        cosines, sines = cosines[positions], sines[positions]
    cosines, sines = cosines[:, None], sines[:, None]
    size = rotary_embedding_dim or heads.shape[-1]
    turned, rest = heads[..., :size], heads[..., size:]
    if interleaved:
        real, imaginary = turned[..., 0::2], turned[..., 1::2]
    else:
        real, imaginary = turned.chunk(2, -1)
    pair = (cosines * real - sines * imaginary, sines * real + cosines * imaginary)
    turned = torch.stack(pair, -1).flatten(-2) if interleaved else torch.cat(pair, -1)
    y = torch.cat([turned, rest], -1)
    return y if x.dim() == 4 else y.transpose(1, 2).flatten(2)
