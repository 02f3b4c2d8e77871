"""Small PyTorch networks and their exported programs, for tests of the converter."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import Dim


class Convolutional(nn.Module):
    """A dict as result, a buffer, batch normalisation, and a dim that is computed."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.head = nn.Linear(16, 5)
        self.register_buffer("scale", torch.full((5,), 2.0))

    def forward(self, image: Tensor) -> dict[str, Tensor]:
        x = torch.relu(self.norm(self.conv(image)))
        x = nn.functional.adaptive_avg_pool2d(x, 2).reshape(image.shape[0], -1)
        logits = self.head(x) * self.scale
        return {"logits": logits, "best": logits.argmax(1)}


class Attentive(nn.Module):
    """A text as argument, integers as input, and two open dims."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(50, 16)
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        self.mix = nn.Parameter(torch.randn(16, 8))

    def forward(self, ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        x = self.layer(self.words(ids)) * mask.unsqueeze(-1)
        return torch.einsum("bsd,de->bse", x, self.mix), x.reshape(ids.shape[0] * ids.shape[1], -1)


class Recurrent(nn.Module):
    """Two layers that read in both directions."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(6, 8, num_layers=2, bidirectional=True, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        out, (hidden, _) = self.lstm(x)
        return out.sum(1) + hidden[0].sum()


def _ids() -> Tensor:
    return torch.arange(12).reshape(2, 6)


BATCH, LENGTH = Dim("batch", min=1, max=64), Dim("length", min=2, max=128)
NETWORKS: dict[str, tuple[type[nn.Module], Any, Any]] = {
    "convolutional": (
        Convolutional, lambda: (torch.randn(2, 3, 8, 8),), {"image": {0: BATCH}},
    ),
    "attentive": (
        Attentive, lambda: (_ids(), torch.ones(2, 6)),
        {"ids": {0: BATCH, 1: LENGTH}, "mask": {0: BATCH, 1: LENGTH}},
    ),
    "recurrent": (Recurrent, lambda: (torch.randn(2, 7, 6),), None),
}  # fmt: skip


def network(name: str) -> tuple[nn.Module, tuple[Tensor, ...], Any]:
    """A network, inputs for it, and which of their dims are open; always the same numbers."""
    make, inputs, dynamic = NETWORKS[name]
    torch.manual_seed(0)
    return make().eval(), inputs(), dynamic


def export(name: str, path: Path) -> None:
    """Write a network as an exported program."""
    model, inputs, dynamic = network(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch uses what torch deprecates
        program = torch.export.export(model, inputs, dynamic_shapes=dynamic)
        torch.export.save(program, path)
