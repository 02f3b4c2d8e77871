"""Plans for later starts: what is found is what the first start would have made."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from support.fake_card import FakeCard
from support.torch_graphs import SIDE, computed, dense, model, rows

from mindspore_lite.engines.torch import compile as compiler
from mindspore_lite.engines.torch import engine, plan_cache, program
from mindspore_lite.engines.torch.card_session import CardSession

OnCard = Callable[..., CardSession]


class CompilingCard(FakeCard):
    """One whose graphs are compiled; its properties are what code is kept for."""

    def __init__(self) -> None:
        super().__init__()
        self.kind = "cuda"
        self.made_by = "a maker"

    def properties(self) -> str:
        return self.made_by


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> FakeCard:
    fake = CompilingCard()
    monkeypatch.setattr(engine, "card_for", lambda device: fake)
    return fake


@pytest.fixture
def lowered(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Shapes that were lowered; compiling gives the graph itself."""
    found: list[Any] = []
    real = program.lower
    monkeypatch.setattr(program, "lower", lambda *given: found.append(given[1]) or real(*given))
    monkeypatch.setattr(compiler, "_inductor", lambda: lambda graph, given, options: graph)
    monkeypatch.setattr(compiler, "_artefacts", lambda: SimpleNamespace())
    return found


def test_a_second_start_lowers_and_compiles_nothing(on_card: OnCard, lowered: list[Any]) -> None:
    for _ in range(2):
        session = on_card(dense(rows=3))
        np.testing.assert_allclose(session.run([rows(3)])[0], computed(rows(3)), rtol=1e-5)
    assert lowered == [((3, SIDE),)]


@pytest.mark.parametrize("other", ["shapes", "card", "precision", "tf32", "tuning"])
def test_another_plan_is_made_anew(
    other: str, on_card: OnCard, card: CompilingCard, lowered: list[Any]
) -> None:
    on_card(dense(rows=3))
    more: dict[str, Any] = {}
    if other == "card":
        card.made_by = "another"
    elif other == "precision":
        more = {"precision": "preferred_bf16"}
    elif other == "tf32":
        more = {"tf32": False}
    elif other == "tuning":
        more = {"tuning": "off"}
    on_card(dense(rows=4 if other == "shapes" else 3), **more)
    assert len(lowered) == 2


def test_weights_that_may_change_change_after_a_second_start(
    on_card: OnCard, lowered: list[Any]
) -> None:
    for _ in range(2):
        session = on_card(dense(rows=2), variable=[("w", ""), ("b", "")])
        np.testing.assert_allclose(session.run([rows(2)])[0], computed(rows(2)), rtol=1e-5)
        session.update({"w": np.eye(SIDE, dtype=np.float32), "b": np.zeros(SIDE, np.float32)})
        np.testing.assert_allclose(session.run([rows(2)])[0], np.maximum(rows(2), 0), rtol=1e-5)
    assert len(lowered) == 1


def counting() -> Any:
    """x and the number of each column: a constant that follows from the shape, in no file."""
    nodes = [
        helper.make_node("Shape", ["x"], ["dims"]),
        helper.make_node("Gather", ["dims", "one"], ["columns"]),
        helper.make_node("Range", ["zero", "columns", "one"], ["numbers"]),
        helper.make_node("Cast", ["numbers"], ["floats"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["x", "floats"], ["y"]),
    ]
    numbers = {"zero": np.array(0), "one": np.array(1)}
    return model(nodes, {"x": ["n", "columns"]}, {"y": ["n", "columns"]}, numbers)


@pytest.mark.parametrize("most, times", [(1 << 20, 1), (0, 2)])
def test_constants_of_the_shapes_are_kept_unless_they_are_large(
    on_card: OnCard, lowered: list[Any], most: int, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_cache, "_MOST_BYTES", most)
    for _ in range(2):
        (y,) = on_card(counting()).run([rows(3)])
        np.testing.assert_allclose(y, rows(3) + np.arange(SIDE), rtol=1e-5)
    assert len(lowered) == times


def test_a_damaged_file_is_as_good_as_none(
    on_card: OnCard, lowered: list[Any], cache_place: Path
) -> None:
    on_card(dense(rows=3))
    (file,) = cache_place.rglob("kept")
    for content in (b"", file.read_bytes()[:200]):
        file.write_bytes(content)
        session = on_card(dense(rows=3))
        np.testing.assert_allclose(session.run([rows(3)])[0], computed(rows(3)), rtol=1e-5)
    assert len(lowered) == 3


def test_a_tape_that_does_not_run_here_is_as_good_as_none(
    on_card: OnCard, lowered: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    on_card(dense(rows=3))

    def fails(*given: Any, **more: Any) -> Any:
        raise RuntimeError("CUDA error: no kernel image is available")

    monkeypatch.setattr(plan_cache.trace_program.Player, "__call__", fails)
    session = on_card(dense(rows=3))
    np.testing.assert_allclose(session.run([rows(3)])[0], computed(rows(3)), rtol=1e-5)
    assert len(lowered) == 2


def test_what_is_not_heard_is_not_kept(
    on_card: OnCard, lowered: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_cache.trace, "recorded", lambda *_: None)
    for _ in range(2):
        on_card(dense(rows=3))
    assert len(lowered) == 2
