"""Attention: the fused operators of Ascend, spelt out as products, masks and a softmax.

Inside, everything is [batch, heads, sequence, size] in float32, whatever the layout and type of the
operands. The compressed masks of sparse modes 2 to 4 are triangles by definition, so they are made
from the positions and never read.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.ops.arguments import ints
from mindspore_lite.ops.table import Val, op
from mindspore_lite.ops.tape import Tape, bounded

F32, I64 = np.dtype(np.float32), np.dtype(np.int64)
HIDDEN = np.asarray(np.finfo(np.float32).min)  # not -inf: a row without any key must stay finite
_LAYOUTS = {0: "BSH", 1: "BNSD", 2: "SBH", 3: "BSND", 5: "TND"}
_TO_HEADS = {"BSH": [0, 2, 1, 3], "BSND": [0, 2, 1, 3], "SBH": [1, 2, 0, 3]}
_FROM_HEADS = {"BSH": [0, 2, 1, 3], "BSND": [0, 2, 1, 3], "SBH": [2, 0, 1, 3]}
MAX_SEQUENCES = 1024  # in one batch of mixed lengths, as MindSpore says


@dataclass(frozen=True)
class Sparsity:
    """Which keys a query may see, besides what a mask says."""

    mode: int = 0
    before: int = 2**31 - 1
    after: int = 2**31 - 1


def layout_name(value: Val, *known: str) -> str:
    """A layout from its number or name."""
    name = _LAYOUTS.get(value, value)
    if name not in known:
        raise UnsupportedOpError(f"attention in the layout {value!r} is not supported")
    return str(name)


def absent(t: Tape, **options: Val) -> None:
    """Refuse options that are set."""
    for name, value in options.items():
        if value is not None:
            raise UnsupportedOpError(f"{t.primitive} with {name} is not supported")


def alone(t: Tape, value: Val) -> Val:
    """Keys and values of the inference ops come as lists of one."""
    if not isinstance(value, tuple | list):
        return value
    if len(value) != 1:
        raise UnsupportedOpError(f"{t.primitive} with {len(value)} keys is not supported")
    return value[0]


def to_heads(t: Tape, x: Val, layout: str, heads: int) -> Val:
    """[B, N, S, D] in float32."""
    x = t.cast(x, F32)
    if layout in ("BSH", "SBH"):
        x = t.op("Reshape", [x, np.asarray([0, 0, heads, -1])])
    return x if layout == "BNSD" else t.op("Transpose", [x], perm=_TO_HEADS[layout])


def from_heads(t: Tape, y: Val, layout: str, dtype: np.dtype) -> Val:
    """Back to where the query came from."""
    if layout != "BNSD":
        y = t.op("Transpose", [y], perm=_FROM_HEADS[layout])
    if layout in ("BSH", "SBH"):
        y = t.op("Reshape", [y, np.asarray([0, 0, -1])])
    return t.cast(y, dtype)


def repeated(t: Tape, x: Val, heads: int, key_heads: int) -> Val:
    """Each head of the keys for as many heads of the queries as share it."""
    if key_heads < 1 or heads % key_heads:
        raise UnsupportedOpError(f"{heads} heads cannot share {key_heads} heads of keys")
    if heads == key_heads:
        return x
    apart = t.op("Unsqueeze", [x, np.asarray([2])])
    wide = t.op("Expand", [apart, np.asarray([1, 1, heads // key_heads, 1, 1])])
    shape = t.op("Concat", [np.asarray([0, heads]), t.op("Shape", [x], start=2)], axis=0)
    return t.op("Reshape", [wide, shape])


def attend(
    t: Tape,
    q: Val,
    k: Val,
    v: Val,
    scale: float,
    *,
    shift: Val = None,
    mask: Val = None,
    lengths: Val = None,
    sparsity: Sparsity | None = None,
) -> Val:
    """softmax(scale * (q @ k.T + shift), what is hidden left out) @ v."""
    scores = t.op("MatMul", [q, t.op("Transpose", [k], perm=[0, 1, 3, 2])])
    if shift is not None:
        scores = t.op("Add", [scores, t.cast(shift, F32)])
    scores = t.op("Mul", [scores, np.asarray(scale, F32)])
    for hidden in _hidden(t, q, k, mask, lengths, sparsity or Sparsity()):
        scores = t.op("Where", [hidden, HIDDEN, scores])
    return t.op("MatMul", [t.op("Softmax", [scores], axis=-1), v])


def _hidden(t: Tape, q: Val, k: Val, mask: Val, lengths: Val, sparsity: Sparsity) -> list[Val]:
    """Truth values that broadcast to [B, N, queries, keys]."""
    found = []
    if sparsity.mode in (0, 1) and mask is not None:
        covered = t.cast(mask, np.dtype(np.bool_))
        if t.rank(mask) == 3:  # [B, queries, keys]
            covered = t.op("Unsqueeze", [covered, np.asarray([1])])
        found.append(covered)
    if lengths is not None:
        counts = t.op("Reshape", [t.cast(lengths, I64), np.asarray([-1, 1, 1, 1])])
        found.append(t.op("GreaterOrEqual", [_places(t, k), counts]))
    if sparsity.mode in (2, 3, 4) or (sparsity.mode == 0 and mask is not None):
        found += _outside_band(t, q, k, sparsity)
    elif sparsity.mode not in (0, 1):
        raise UnsupportedOpError(f"{t.primitive} with sparse_mode {sparsity.mode}")
    return found


def _outside_band(t: Tape, q: Val, k: Val, sparsity: Sparsity) -> list[Val]:
    """Keys too far before or after a query; both are counted from the start, or from the end."""
    before, after = sparsity.before, sparsity.after
    if sparsity.mode in (2, 3):
        before, after = 2**31 - 1, 0
    queries, keys = t.shape(q)[2], t.shape(k)[2]
    place = t.op("Unsqueeze", [_places(t, q), np.asarray([1])])
    if sparsity.mode in (3, 4):
        place = t.op("Add", [place, t.op("Sub", [_count(t, k), _count(t, q)])])
    found = []
    longest = 2**31 - 1 if queries is None or keys is None else max(queries, keys)
    if before < longest:
        first = t.op("Sub", [place, np.asarray(before)])
        found.append(t.op("Less", [_places(t, k), first]))
    if after < longest:
        last = t.op("Add", [place, np.asarray(after)])
        found.append(t.op("Greater", [_places(t, k), last]))
    return found


def _count(t: Tape, x: Val) -> Val:
    return t.op("Gather", [t.op("Shape", [x]), np.asarray(2)], axis=0)


def _places(t: Tape, x: Val) -> Val:
    return t.op("Range", [np.asarray(0), _count(t, x), np.asarray(1)])


def _key_heads(t: Tape, query: Val, key: Val, layout: str, heads: int) -> int:
    """How many heads the keys have, from their size."""
    if layout in ("BNSD", "BSND", "TND"):
        found = t.shape(key)[{"BNSD": 1, "BSND": 2, "TND": 1}[layout]]
    else:
        wide, narrow = t.shape(query)[-1], t.shape(key)[-1]
        found = None if wide is None or narrow is None else narrow * heads // max(wide, 1)
    if found is None:
        raise UnsupportedOpError(f"{t.primitive} needs a fixed size of its heads")
    return found


@op("FlashAttentionScore")
def flash_attention_score(
    t: Tape,
    query: Val,
    key: Val,
    value: Val,
    real_shift: Val = None,
    drop_mask: Val = None,
    padding_mask: Val = None,
    attn_mask: Val = None,
    prefix: Val = None,
    actual_seq_qlen: Val = None,
    actual_seq_kvlen: Val = None,
    *,
    head_num: int,
    keep_prob: float = 1.0,
    scale_value: float = 1.0,
    pre_tokens: int = 2**31 - 1,
    next_tokens: int = 2**31 - 1,
    inner_precise: int = 0,
    input_layout: Val = "BSH",
    sparse_mode: int = 0,
) -> Val:
    """-> (largest, sum, softmax, attention); only the last one is given."""
    absent(t, padding_mask=padding_mask, prefix=prefix)
    if keep_prob != 1:
        raise UnsupportedOpError("FlashAttentionScore with dropout; call set_train(False)")
    layout = layout_name(input_layout, "BSH", "BNSD", "SBH", "BSND", "TND")
    sparsity = Sparsity(sparse_mode, pre_tokens, next_tokens)
    dtype, key_heads = t.dtype(query), _key_heads(t, query, key, layout, head_num)
    if layout == "TND":
        absent(t, real_shift=real_shift)
        ends = (
            ints(actual_seq_qlen, "actual_seq_qlen"),
            ints(actual_seq_kvlen, "actual_seq_kvlen"),
        )
        y = _by_sequence(t, (query, key, value), ends, key_heads, scale_value, sparsity)
        return (None, None, None, t.cast(y, dtype))
    q = to_heads(t, query, layout, head_num)
    k, v = (repeated(t, to_heads(t, x, layout, key_heads), head_num, key_heads)
            for x in (key, value))  # fmt: skip
    y = attend(t, q, k, v, scale_value, shift=real_shift, mask=attn_mask, sparsity=sparsity)
    return (None, None, None, from_heads(t, y, layout, dtype))


def _by_sequence(
    t: Tape,
    operands: tuple[Val, Val, Val],
    ends: tuple[tuple[int, ...], tuple[int, ...]],
    key_heads: int,
    scale: float,
    sparsity: Sparsity,
) -> Val:
    """Sequences of their own lengths, lying one behind the other along the first axis."""
    bounded(len(ends[0]), "sequences", MAX_SEQUENCES)
    heads = t.shape(operands[0])[1]
    if heads is None or len(ends[0]) != len(ends[1]) or not ends[0]:
        raise UnsupportedOpError("attention in the layout TND needs heads and lengths to be known")
    if sparsity.mode not in (2, 3):
        raise UnsupportedOpError(f"attention in the layout TND with sparse_mode {sparsity.mode}")
    wide = [t.op("Unsqueeze", [t.op("Transpose", [t.cast(x, F32)], perm=[1, 0, 2]),
                               np.asarray([0])]) for x in operands]  # fmt: skip
    found = []
    starts = [(0, *column[:-1]) for column in ends]
    for at in range(len(ends[0])):
        q, k, v = (
            t.op("Slice", [x, *([int(edge[side][at])] for edge in (starts, ends)), [2]])
            for x, side in zip(wide, (0, 1, 1), strict=True)
        )
        k, v = (repeated(t, x, heads, key_heads) for x in (k, v))
        found.append(attend(t, q, k, v, scale, sparsity=sparsity))
    y = t.op("Concat", found, axis=2)
    return t.op("Transpose", [t.op("Squeeze", [y, np.asarray([0])])], perm=[1, 0, 2])


def _inferred(
    t: Tape,
    query: Val,
    key: Val,
    value: Val,
    layout: str,
    heads: int,
    key_heads: int,
    scale: float,
    mask: Val,
    lengths: Val,
    sparsity: Sparsity,
) -> Val:
    """What the three operators for inference share."""
    dtype, shared = t.dtype(query), key_heads or heads
    inner = "BNSD" if layout == "BNSD_BSND" else layout
    q = to_heads(t, query, inner, heads)
    k, v = (repeated(t, to_heads(t, alone(t, x), inner, shared), heads, shared)
            for x in (key, value))  # fmt: skip
    y = attend(t, q, k, v, scale, mask=mask, lengths=lengths, sparsity=sparsity)
    return from_heads(t, y, "BSND" if layout == "BNSD_BSND" else layout, dtype)


@op("PromptFlashAttention")
def prompt_flash_attention(
    t: Tape,
    query: Val,
    key: Val,
    value: Val,
    attn_mask: Val = None,
    actual_seq_lengths: Val = None,
    actual_seq_lengths_kv: Val = None,
    pse_shift: Val = None,
    deq_scale1: Val = None,
    quant_scale1: Val = None,
    deq_scale2: Val = None,
    quant_scale2: Val = None,
    quant_offset2: Val = None,
    *,
    num_heads: int = 1,
    scale_value: float = 1.0,
    pre_tokens: int = 2**31 - 1,
    next_tokens: int = 0,
    input_layout: Val = "BSH",
    num_key_value_heads: int = 0,
    sparse_mode: int = 0,
    inner_precise: int = 1,
) -> Val:
    """All queries of a prompt; rows beyond actual_seq_lengths mean nothing."""
    absent(t, pse_shift=pse_shift, deq_scale1=deq_scale1, quant_scale1=quant_scale1,
           deq_scale2=deq_scale2, quant_scale2=quant_scale2,
           quant_offset2=quant_offset2)  # fmt: skip
    layout = layout_name(input_layout, "BSH", "BNSD")
    return _inferred(
        t, query, key, value, layout, num_heads, num_key_value_heads, scale_value, attn_mask,
        actual_seq_lengths_kv, Sparsity(sparse_mode, pre_tokens, next_tokens),
    )  # fmt: skip


@op("IncreFlashAttention")
def incre_flash_attention(
    t: Tape,
    query: Val,
    key: Val,
    value: Val,
    attn_mask: Val = None,
    actual_seq_lengths: Val = None,
    pse_shift: Val = None,
    dequant_scale1: Val = None,
    quant_scale1: Val = None,
    dequant_scale2: Val = None,
    quant_scale2: Val = None,
    quant_offset2: Val = None,
    antiquant_scale: Val = None,
    antiquant_offset: Val = None,
    block_table: Val = None,
    kv_padding_size: Val = None,
    *,
    num_heads: int = 1,
    input_layout: Val = "BSH",
    scale_value: float = 1.0,
    num_key_value_heads: int = 0,
    block_size: int = 0,
    inner_precise: int = 1,
) -> Val:
    """One query for each sequence, whose lengths are those of the keys."""
    absent(t, pse_shift=pse_shift, dequant_scale1=dequant_scale1, quant_scale1=quant_scale1,
           dequant_scale2=dequant_scale2, quant_scale2=quant_scale2, quant_offset2=quant_offset2,
           antiquant_scale=antiquant_scale, antiquant_offset=antiquant_offset,
           block_table=block_table, kv_padding_size=kv_padding_size)  # fmt: skip
    layout = layout_name(input_layout, "BSH", "BNSD", "BSND")
    if attn_mask is not None:  # [B, keys], [B, 1, keys] or [B, 1, 1, keys]
        keys = t.op("Shape", [attn_mask], start=t.rank(attn_mask) - 1)
        shape = t.op("Concat", [np.asarray([-1, 1, 1]), keys], axis=0)
        attn_mask = t.op("Reshape", [attn_mask, shape])
    return _inferred(
        t, query, key, value, layout, num_heads, num_key_value_heads, scale_value, attn_mask,
        actual_seq_lengths, Sparsity(),
    )  # fmt: skip


@op("FusedInferAttentionScore")
def fused_infer_attention_score(
    t: Tape,
    query: Val,
    key: Val,
    value: Val,
    pse_shift: Val = None,
    attn_mask: Val = None,
    actual_seq_lengths: Val = None,
    actual_seq_lengths_kv: Val = None,
    dequant_scale1: Val = None,
    quant_scale1: Val = None,
    dequant_scale2: Val = None,
    quant_scale2: Val = None,
    quant_offset2: Val = None,
    antiquant_scale: Val = None,
    antiquant_offset: Val = None,
    block_table: Val = None,
    query_padding_size: Val = None,
    kv_padding_size: Val = None,
    key_antiquant_scale: Val = None,
    key_antiquant_offset: Val = None,
    value_antiquant_scale: Val = None,
    value_antiquant_offset: Val = None,
    key_shared_prefix: Val = None,
    value_shared_prefix: Val = None,
    actual_shared_prefix_len: Val = None,
    *,
    num_heads: int = 1,
    scale_value: float = 1.0,
    pre_tokens: int = 2**31 - 1,
    next_tokens: int = 2**31 - 1,
    input_layout: Val = "BSH",
    num_key_value_heads: int = 0,
    sparse_mode: int = 0,
    inner_precise: int = 1,
    block_size: int = 0,
    antiquant_mode: int = 0,
    softmax_lse_flag: bool = False,
    key_antiquant_mode: int = 0,
    value_antiquant_mode: int = 0,
) -> Val:
    """-> (attention, logarithm of the sums): prompts, or one query for each sequence."""
    absent(t, pse_shift=pse_shift, dequant_scale1=dequant_scale1, quant_scale1=quant_scale1,
           dequant_scale2=dequant_scale2, quant_scale2=quant_scale2, quant_offset2=quant_offset2,
           antiquant_scale=antiquant_scale, antiquant_offset=antiquant_offset,
           block_table=block_table, query_padding_size=query_padding_size,
           kv_padding_size=kv_padding_size, key_antiquant_scale=key_antiquant_scale,
           key_antiquant_offset=key_antiquant_offset, value_antiquant_scale=value_antiquant_scale,
           value_antiquant_offset=value_antiquant_offset, key_shared_prefix=key_shared_prefix,
           value_shared_prefix=value_shared_prefix)  # fmt: skip
    layout = layout_name(input_layout, "BSH", "BNSD", "BSND", "BNSD_BSND")
    sparsity = Sparsity(sparse_mode, pre_tokens, next_tokens)
    y = _inferred(
        t, query, key, value, layout, num_heads, num_key_value_heads, scale_value, attn_mask,
        actual_seq_lengths_kv, sparsity,
    )  # fmt: skip
    return (y, None)


@op("PagedAttention")
def paged_attention(
    t: Tape,
    query: Val,
    key_cache: Val,
    value_cache: Val,
    block_tables: Val,
    context_lens: Val,
    antiquant_scale: Val = None,
    antiquant_offset: Val = None,
    attn_mask: Val = None,
    q_seq_lens: Val = None,
    alibi_mask: Val = None,
    *,
    head_num: int,
    scale_value: float,
    kv_head_num: int,
    kv_cache_quant_mode: Val = "DEFAULT",
    mask_mode: Val = "MASK_DEFAULT",
    mla_v_dim: int = 0,
) -> Val:
    """One query for each sequence; its keys lie in the blocks that its row of the table names."""
    absent(t, antiquant_scale=antiquant_scale, antiquant_offset=antiquant_offset,
           attn_mask=attn_mask, q_seq_lens=q_seq_lens, alibi_mask=alibi_mask)  # fmt: skip
    if value_cache is None or mla_v_dim:
        raise UnsupportedOpError("PagedAttention without a cache of values is not supported")
    dtype, shape = t.dtype(query), t.op("Shape", [query])
    q = t.op("Reshape", [t.cast(query, F32), np.asarray([-1, head_num, 1, _size(t, key_cache)])])
    blocks = t.op("Max", [t.cast(block_tables, I64), np.asarray(0)])  # -1 fills up the rows

    def lined_up(cache: Val) -> Val:
        found = t.op("Gather", [t.cast(cache, F32), blocks], axis=0)
        lines = t.op("Reshape", [found, np.asarray([0, -1, kv_head_num, _size(t, cache)])])
        heads_first = t.op("Transpose", [lines], perm=[0, 2, 1, 3])
        return repeated(t, heads_first, head_num, kv_head_num)

    k, v = lined_up(key_cache), lined_up(value_cache)
    y = attend(t, q, k, v, scale_value, lengths=context_lens)
    return t.cast(t.op("Reshape", [y, shape]), dtype)


def _size(t: Tape, cache: Val) -> int:
    found = t.shape(cache)[-1]
    if found is None:
        raise UnsupportedOpError("PagedAttention needs a fixed size of its heads")
    return found
