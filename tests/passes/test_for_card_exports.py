"""passes/for_card.py: transformers of PyTorch, as its exporter writes them."""

from __future__ import annotations

import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest
import torch
from support.running import assert_close
from support.torch_nodes import run_graph
from torch import Tensor, nn
from torch.nn import functional as F

from mindspore_lite.passes.for_card import prepare
from mindspore_lite.passes.opset import upgraded


class Block(nn.Module):
    """Projections to two heads of size 4, and back."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(8, 8) for _ in range(4))
        self.norm = nn.LayerNorm(8)

    def heads(self, x: Tensor) -> list[Tensor]:
        layers = (self.query, self.key, self.value)
        return [f(x).view(x.size(0), 5, 2, 4).transpose(1, 2) for f in layers]

    def joined(self, x: Tensor) -> Tensor:
        return self.norm(self.out(x.transpose(1, 2).reshape(x.size(0), 5, 8)))


class Encoder(Block):
    """torch's own attention, with keys that are hidden by truth values."""

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        hidden = mask[:, None, None, :] > 0
        return F.gelu(self.joined(F.scaled_dot_product_attention(*self.heads(x), hidden)))


class Decoder(Block):
    """Spelt out, and causal."""

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        q, k, v = self.heads(x)
        later = torch.ones(5, 5).triu(1) > 0
        scores = (q @ k.transpose(-2, -1) / 2).masked_fill(later, float("-inf"))
        y = self.joined(scores.softmax(-1) @ v) * mask[..., None]
        return 0.5 * y * (1 + torch.tanh(0.7978845608 * (y + 0.044715 * y**3)))


@pytest.mark.parametrize(("network", "causal"), [(Encoder, 0), (Decoder, 1)])
def test_a_transformer_is_fused_and_computes_the_same(
    network: type[Block], causal: int, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    module, arguments = network().eval(), (torch.randn(3, 5, 8), torch.ones(3, 5))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch's own
        batch = {0: torch.export.Dim("batch")}
        torch.onnx.export(
            module, arguments, tmp_path / "m.onnx", dynamo=True, verbose=False,
            dynamic_shapes=(batch, batch),
        )  # fmt: skip
    made = upgraded(ir.load(tmp_path / "m.onnx"))
    prepare(made)
    found = Counter(node.op_type for node in made.graph)
    wanted = {"ScaledDotProductAttention": 1, "LayerNormalization": 1, "Gelu": 1, "Linear": 4}
    assert {op: found[op] for op in wanted} == wanted
    assert not {"MatMul", "Softmax"} & found.keys()
    attention = next(n for n in made.graph if n.op_type == "ScaledDotProductAttention")
    assert attention.attributes["is_causal"].as_int() == causal
    x, mask = torch.randn(2, 5, 8), torch.tensor([[1.0, 1, 0, 1, 0], [1, 1, 1, 1, 1]])
    with torch.no_grad():
        want = module(x, mask).numpy()
    (got,) = run_graph(made, [np.asarray(x), np.asarray(mask)])
    assert_close(got, want)
