"""Texts, as far as they are numbers: torch has no tensors of strings."""

from __future__ import annotations

import torch

from mindspore_lite.kernels.table import kernel


@kernel("TfIdfVectorizer")
def tf_idf_vectorizer(
    x: torch.Tensor,
    *,
    mode: str,
    min_gram_length: int,
    max_gram_length: int,
    max_skip_count: int,
    ngram_counts: list[int],
    ngram_indexes: list[int],
    pool_int64s: list[int],
    weights: list[float] | None = None,
) -> torch.Tensor:
    """How often each n-gram of a pool occurs in the rows of x, with gaps too, or by weights."""
    rows = x.reshape(-1, x.shape[-1]) if x.dim() else x.reshape(1, 1)
    columns: list[torch.Tensor] = []
    ends = [*ngram_counts[1:], len(pool_int64s)]
    for size, (start, end) in enumerate(zip(ngram_counts, ends, strict=True), start=1):
        pool = torch.tensor(pool_int64s[start:end], device=x.device).reshape(-1, size)
        counts = torch.zeros((rows.shape[0], pool.shape[0]), device=x.device)
        if min_gram_length <= size <= max_gram_length:
            skips = range(1 if size == 1 else max_skip_count + 1)
            for skip in skips:
                counts = counts + _occurrences(rows, pool, skip + 1)
        columns.append(counts)
    found = torch.cat(columns, 1)
    if mode == "IDF":
        found = (found > 0).float()
    if weights is not None and mode != "TF":
        found = found * torch.tensor(weights, device=x.device)
    places = torch.tensor(ngram_indexes, device=x.device)
    result = found.new_zeros(rows.shape[0], max(ngram_indexes) + 1).index_add(1, places, found)
    return result.reshape(*x.shape[:-1], -1)


def _occurrences(rows: torch.Tensor, pool: torch.Tensor, step: int) -> torch.Tensor:
    """How often each row of a pool occurs in each of some rows, its items a step apart."""
    span = (pool.shape[1] - 1) * step + 1
    if rows.shape[1] < span:
        return torch.zeros((rows.shape[0], pool.shape[0]), device=rows.device)
    windows = rows.unfold(1, span, 1)[..., ::step]
    same = (windows.unsqueeze(2) == pool).all(-1)
    return same.sum(1).float()
