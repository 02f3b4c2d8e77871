"""What tests of the torch engine share: a card that is the CPU, and sessions on it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest
from support.fake_card import FakeCard
from support.torch_graphs import source

from mindspore_lite.engines.base import Options
from mindspore_lite.engines.torch import compile as compiler
from mindspore_lite.engines.torch import engine, program
from mindspore_lite.engines.torch.card_session import CardSession


@pytest.fixture(autouse=True)
def said_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Warnings that are given once are given in every test."""
    monkeypatch.setattr(program, "_warned", set())
    monkeypatch.setattr(compiler, "_warned", [])


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> FakeCard:
    """What the engine gets for device cuda:0."""
    fake = FakeCard()
    monkeypatch.setattr(engine, "card_for", lambda device: fake)
    return fake


@pytest.fixture
def on_card(card: FakeCard, tmp_path: Path) -> Callable[..., CardSession]:
    """Load a model on the card."""

    def load(made: onnx.ModelProto, variable: Any = (), **options: Any) -> CardSession:
        found = engine.TorchEngine().load(
            source(tmp_path, made, variable), Options(device="cuda:0", **options)
        )
        assert isinstance(found, CardSession)
        return found

    return load
