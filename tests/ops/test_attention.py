"""Attention where batch and lengths are open, as language models are exported."""

from __future__ import annotations

import numpy as np
import pytest
from ops.cases_attention import FAR, attention, lay, unlay
from support.mindir_builder import Net
from support.op_case import numbers
from support.running import assert_close, run_graph

from mindspore_lite.graph.from_mindir import from_mindir


@pytest.mark.parametrize(("mode", "shift"), [(0, None), (2, 0), (3, "end")])
@pytest.mark.parametrize("layout", ["BSH", "BNSD"])
def test_one_graph_serves_every_batch_and_length(
    mode: int, shift: int | str | None, layout: str
) -> None:
    net = Net()
    dims = (-1, -1, 16) if layout == "BSH" else (-1, 4, -1, 4)
    q, k, v = (net.input(name, dims) for name in "qkv")
    none = net.constant(None)
    settings = [4, 1.0, 0.25, FAR, FAR, 0, {"BSH": 0, "BNSD": 1}[layout], mode]
    made = net.call(
        "FlashAttentionScore", q, k, v, *[none] * 7, *(net.constant(s) for s in settings)
    )
    graph = from_mindir(net.model(net.call("TupleGetItem", made, net.constant(3))))
    for batch, queries, keys in ((1, 2, 2), (3, 1, 4), (2, 5, 6)):
        given = [numbers(batch, 4, n, 4, seed=i) for i, n in enumerate((queries, keys, keys))]
        first = 0 if shift is None else keys - queries if shift == "end" else shift
        hidden = np.arange(keys) > np.arange(queries)[:, None] + first
        wanted = attention(*given, False if shift is None else hidden)
        (got,) = run_graph(graph, *(lay(x, layout) for x in given))
        assert_close(unlay(got, layout, 4), wanted, f"{batch} {queries} {keys}")
