"""Text operators, as far as they work on numbers: torch has no tensors of strings."""

from __future__ import annotations

import torch

from mindspore_lite.engines.torch.kernels.table import kernel


def _tables(
    x: torch.Tensor,
    *,
    ngram_counts: list[int],
    ngram_indexes: list[int],
    pool_int64s: list[int],
    weights: list[float] | None = None,
    **_: object,
) -> list[torch.Tensor]:
    """Where each n-gram is counted, its weight, and the pools of 1-grams, 2-grams and so on."""
    ends = [*ngram_counts[1:], len(pool_int64s)]
    pools = [
        torch.tensor(pool_int64s[start:end]).reshape(-1, size)
        for size, (start, end) in enumerate(zip(ngram_counts, ends, strict=True), start=1)
    ]
    factors = torch.ones(len(ngram_indexes)) if weights is None else torch.tensor(weights)
    return [torch.tensor(ngram_indexes), factors, *pools]


@kernel("TfIdfVectorizer", tables=_tables)
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
    tables: list[torch.Tensor] | None = None,
) -> torch.Tensor:
    """How often each n-gram of a pool occurs in the rows of x, with gaps too, or by weights."""
    rows = x.reshape(-1, x.shape[-1]) if x.dim() else x.reshape(1, 1)
    places, factors, *pools = tables or (
        table.to(x.device)
        for table in _tables(
            x,
            ngram_counts=ngram_counts,
            ngram_indexes=ngram_indexes,
            pool_int64s=pool_int64s,
            weights=weights,
        )
    )
    columns: list[torch.Tensor] = []
    for size, pool in enumerate(pools, start=1):
        counts = torch.zeros((rows.shape[0], pool.shape[0]), device=x.device)
        if min_gram_length <= size <= max_gram_length:
            skips = range(1 if size == 1 else max_skip_count + 1)
            for skip in skips:
                counts = counts + _occurrences(rows, pool, skip + 1)
        columns.append(counts)
    found = torch.cat(columns, 1)
    if mode == "IDF":
        found = (found > 0).float()
    if mode != "TF":
        found = found * factors
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
