"""What language models add to attention: rotary positions, and tokens routed to experts."""

from __future__ import annotations

import numpy as np

from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.ops.arguments import axis_of, number
from mindspore_lite.ops.table import Val, op
from mindspore_lite.ops.tape import Tape, constant_of

F32, I32, I64 = np.dtype(np.float32), np.dtype(np.int32), np.dtype(np.int64)


def rotated(t: Tape, x: Val, cos: Val, sin: Val, pairs: bool) -> Val:
    """x * cos + x turned by 90 degrees * sin; a pair is two neighbours, or one of each half."""
    if pairs:
        shape = t.op("Shape", [x])
        apart = t.op("Reshape", [x, t.op("Concat", [t.op("Shape", [x], end=-1),
                                                    np.asarray([-1, 2])], axis=0)])  # fmt: skip
        first, second = t.op("Split", [apart], outputs=2, axis=-1, num_outputs=2)
        joined = t.op("Concat", [t.op("Neg", [second]), first], axis=-1)
        turned = t.op("Reshape", [joined, shape])
    else:
        first, second = t.op("Split", [x], outputs=2, axis=-1, num_outputs=2)
        turned = t.op("Concat", [t.op("Neg", [second]), first], axis=-1)
    return t.op("Add", [t.op("Mul", [x, cos]), t.op("Mul", [turned, sin])])


@op("RotaryPositionEmbedding")
def rotary_position_embedding(t: Tape, x: Val, cos: Val, sin: Val, mode: Val = 0) -> Val:
    """Mode 0 pairs the halves of the last axis, mode 1 neighbours."""
    kind = number(mode, "mode")
    if kind not in (0, 1):
        raise UnsupportedOpError(f"RotaryPositionEmbedding with mode {kind}")
    dtype = t.dtype(x)
    return rotated(t, x, t.cast(cos, dtype), t.cast(sin, dtype), kind == 1)


@op("ApplyRotaryPosEmb")
def apply_rotary_pos_emb(
    t: Tape, query: Val, key: Val, cos: Val, sin: Val, position_ids: Val, *, cos_format: int = 0
) -> Val:
    """-> (query, key); formats 0 and 1 are tables of all positions, 2 and 3 have a row per token.

    A step of one token has a position for each sequence, a longer one the same for all sequences.
    """
    if cos_format not in (0, 1, 2, 3):
        raise UnsupportedOpError(f"ApplyRotaryPosEmb with cos_format {cos_format}")
    dtype, size = t.dtype(query), t.shape(cos)[-1]
    if size is None:
        raise UnsupportedOpError("ApplyRotaryPosEmb needs a fixed size of its heads")
    if cos_format < 2:
        cos, sin = (t.op("Gather", [v, t.cast(position_ids, I64)], axis=0) for v in (cos, sin))
        one = t.op("Equal", [t.op("Shape", [query], start=1, end=2), np.asarray([1])])
        shape = t.op("Where", [one, np.asarray([-1, 1, 1, size]), np.asarray([1, -1, 1, size])])
    else:
        shape = t.op("Concat", [t.op("Shape", [query], end=2), np.asarray([1, size])], axis=0)
    cos, sin = (t.op("Reshape", [t.cast(v, dtype), shape]) for v in (cos, sin))

    def turned(x: Val) -> Val:
        heads = t.op("Reshape", [x, np.asarray([0, 0, -1, size])])
        made = rotated(t, heads, cos, sin, cos_format % 2 == 1)
        return t.op("Reshape", [made, t.op("Shape", [x])])

    return turned(query), turned(key)


@op("KVCacheScatterUpdate", writes=True)
def kv_cache_scatter_update(
    t: Tape, var: Val, indices: Val, updates: Val, axis: Val, reduce: Val = "none"
) -> Val:
    """The updates of each sequence into its cache, from its own place along the axis on."""
    along = axis_of(t, var, axis)
    if constant_of(var) is not None:
        raise UnsupportedOpError(
            "KVCacheScatterUpdate into a weight keeps state between runs, which is not possible; "
            "make the cache an input and an output of the network"
        )
    rank = t.rank(var)
    count = t.op("Squeeze", [t.op("Shape", [updates], start=along, end=along + 1)])
    steps = t.op("Range", [np.asarray(0), count, np.asarray(1)])
    steps = t.op("Reshape", [steps, np.asarray([-1 if a == along else 1 for a in range(rank)])])
    starts = t.op("Reshape", [t.cast(indices, I64), np.asarray([-1] + [1] * (rank - 1))])
    places = t.op("Expand", [t.op("Add", [starts, steps]), t.op("Shape", [updates])])
    return t.op("ScatterElements", [var, places, t.cast(updates, t.dtype(var))], axis=along)


# --- experts --------------------------------------------------------------------------------------


def sorting(t: Tape, keys: Val) -> tuple[Val, Val]:
    """The keys in rising order and where each one stood; equal ones keep their order."""
    count = t.op("Shape", [keys])
    found: tuple[Val, Val] = t.op("TopK", [keys, count], outputs=2, axis=0, largest=0, sorted=1)
    return found


def ranks(t: Tape, order: Val) -> Val:
    """The inverse of a permutation."""
    return sorting(t, order)[1]


@op("MoeGatingTopKSoftmax")
def moe_gating_top_k_softmax(t: Tape, x: Val, finished: Val = None, k: Val = 1) -> Val:
    """-> (weights, experts, rows): the best experts of each token, and their places by column."""
    if finished is not None or t.rank(x) != 2:
        raise UnsupportedOpError("MoeGatingTopKSoftmax takes a matrix, without finished")
    count = int(number(k, "k"))
    scores = t.cast(t.op("Softmax", [t.cast(x, F32)], axis=-1), t.dtype(x))
    weights, experts = t.op("TopK", [scores, np.asarray([count])], outputs=2, axis=-1)
    tokens = t.op("Shape", [x], end=1)
    total = t.op("Mul", [tokens, np.asarray([count])])
    every = t.op("Range", [np.asarray(0), t.op("Squeeze", [total]), np.asarray(1)])
    rows = t.op("Transpose", [t.op("Reshape", [every, np.asarray([count, -1])])], perm=[1, 0])
    return weights, t.cast(experts, I32), t.cast(rows, I32)


@op("MoeInitRouting")
def moe_init_routing(t: Tape, x: Val, row_idx: Val, expert_idx: Val, active_num: Val) -> Val:
    """-> (tokens by expert, place of each row there, experts in order)."""
    flat = np.asarray([-1])
    experts, order = sorting(t, t.op("Reshape", [t.cast(expert_idx, I64), flat]))
    rows = t.op("Gather", [t.op("Reshape", [t.cast(row_idx, I64), flat]), order], axis=0)
    tokens = t.op("Shape", [x], end=1)
    kept = t.op("Mul", [t.op("Min", [tokens, t.int64s([active_num])]),
                        t.op("Shape", [expert_idx], start=1, end=2)])  # fmt: skip
    sources = t.op("Mod", [t.op("Slice", [rows, np.asarray([0]), kept, np.asarray([0])]), tokens])
    expanded = t.op("Gather", [x, sources], axis=0)
    return expanded, t.cast(ranks(t, rows), I32), t.cast(experts, I32)


@op("MoeFinalizeRouting")
def moe_finalize_routing(
    t: Tape,
    expanded_x: Val,
    x1: Val,
    x2: Val,
    bias: Val,
    scales: Val,
    expanded_row_idx: Val,
    expanded_expert_idx: Val,
) -> Val:
    """x1 + x2 + what the experts of each token made of it, with the bias of each, weighted."""
    experts = t.op("Transpose", [t.cast(expanded_expert_idx, I64)], perm=[1, 0])
    places = t.op("Reshape", [t.cast(expanded_row_idx, I64), t.op("Shape", [experts])])
    rows = t.op("Gather", [expanded_x, places], axis=0)  # [experts of a token, tokens, size]
    if bias is not None:
        rows = t.op("Add", [rows, t.op("Gather", [bias, experts], axis=0)])
    weights = t.op("Transpose", [scales], perm=[1, 0])
    weighted = t.op("Mul", [rows, t.op("Unsqueeze", [weights, np.asarray([2])])])
    total = t.op("ReduceSum", [weighted, np.asarray([0])], keepdims=0)
    for other in (x1, x2):
        total = total if other is None else t.op("Add", [total, other])
    return total


@op("MoeComputeExpertTokens")
def moe_compute_expert_tokens(t: Tape, sorted_experts: Val, num_expert: Val) -> Val:
    """How many of the sorted tokens belong to an expert or to one before it."""
    every = t.op("Range", [np.asarray(0), t.cast(num_expert, I64), np.asarray(1)])
    column = t.op("Unsqueeze", [every, np.asarray([1])])
    counted = t.op("LessOrEqual", [t.cast(sorted_experts, I64), column])
    total = t.op("ReduceSum", [t.cast(counted, I64), np.asarray([1])], keepdims=0)
    return t.cast(total, t.dtype(sorted_experts))


@op("MoeTokenPermute")
def moe_token_permute(
    t: Tape, tokens: Val, indices: Val, num_out_tokens: Val = None, padded_mode: bool = False
) -> Val:
    """-> (tokens in the order of their experts, place of each there)."""
    if padded_mode:
        raise UnsupportedOpError("MoeTokenPermute with padded_mode is not supported")
    flat = t.op("Reshape", [t.cast(indices, I64), np.asarray([-1])])
    order = sorting(t, flat)[1]
    places = t.cast(ranks(t, order), I32)
    if num_out_tokens is not None:
        cut = [order, np.asarray([0]), t.int64s([num_out_tokens]), np.asarray([0])]
        order = t.op("Slice", cut)
    if t.rank(indices) == 2:
        order = t.op("Div", [order, t.op("Shape", [indices], start=1, end=2)])
    return t.op("Gather", [tokens, order], axis=0), places


@op("MoeTokenUnpermute", "InnerMoeTokenUnpermute")
def moe_token_unpermute(
    t: Tape,
    permuted_tokens: Val,
    sorted_indices: Val,
    probs: Val = None,
    padded_mode: bool = False,
    restore_shape: Val = None,
) -> Val:
    """Tokens back in their places; those of one token are added up by their weights."""
    if padded_mode:
        raise UnsupportedOpError(f"{t.primitive} with padded_mode is not supported")
    rows = t.op("Gather", [permuted_tokens, t.cast(sorted_indices, I64)], axis=0)
    if probs is None:
        return rows
    size = t.op("Shape", [permuted_tokens], start=1)
    apart = t.op("Reshape", [rows, t.op("Concat", [t.op("Shape", [probs]), size], axis=0)])
    weights = t.op("Unsqueeze", [t.cast(probs, t.dtype(permuted_tokens)), np.asarray([2])])
    return t.op("ReduceSum", [t.op("Mul", [apart, weights]), np.asarray([1])], keepdims=0)


@op("GroupTopk", writes=True)
def group_topk(t: Tape, token: Val, idx_arr: Val, group_num: Val, k: Val, k_inner: Val = 1) -> Val:
    """Zeros in all groups of experts but the k best, judged by the sum of their k_inner best."""
    groups, best, inner = (int(number(v, "k")) for v in (group_num, k, k_inner))
    apart = t.op("Reshape", [token, np.asarray([0, groups, -1])])
    top, _ = t.op("TopK", [t.cast(apart, F32), np.asarray([inner])], outputs=2, axis=-1)
    score = t.op("ReduceSum", [top, np.asarray([2])], keepdims=0)
    _, order = t.op("TopK", [score, np.asarray([groups])], outputs=2, axis=-1)
    _, rank = t.op("TopK", [order, np.asarray([groups])], outputs=2, axis=-1, largest=0)
    kept = t.op("Unsqueeze", [t.op("Less", [rank, np.asarray(best)]), np.asarray([2])])
    chosen = t.op("Where", [kept, apart, np.asarray(0, t.dtype(token))])
    return t.op("Reshape", [chosen, t.op("Shape", [token])])
