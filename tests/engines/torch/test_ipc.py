"""Weights between processes, but for the card: what is said, and what is refused."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest
import torch
from support.fake_card import FakeCard

from mindspore_lite.engines.torch import ipc
from mindspore_lite.engines.torch.kernels.lower import Weight
from mindspore_lite.engines.torch.store import Store
from mindspore_lite.errors import EngineError

WEIGHTS = {
    Weight("a", torch.float32, "transposed"): (0, (5, 3)),
    Weight("b", torch.bool): (256, (2,)),
}


def said(**changed: Any) -> bytes:
    rows = [["a", "float32", "transposed", 0, [5, 3]], ["b", "bool", "", 256, [2]]]
    body = {
        "process": 1, "card": "fake", "handle": "aa", "size": 512, "offset": 0, "counter": "bb",
        "counter_at": 3, "event": "cc", "waits": True, "weights": rows,
    }  # fmt: skip
    return json.dumps(body | changed).encode()


class FakeStorage:
    """The storage of a buffer on a card."""

    def _share_cuda_(self) -> tuple[Any, ...]:
        return 0, b"\xaa", 512, 0, b"\xbb", 3, b"\xcc", True


class FakeFlat:
    def untyped_storage(self) -> FakeStorage:
        return FakeStorage()


def test_what_is_exported_is_plain_data_that_says_where_everything_lies() -> None:
    store = Store(FakeCard(), {})
    store.flat, store.places = FakeFlat(), WEIGHTS  # type: ignore[assignment]
    assert json.loads(ipc.exported(store)) == json.loads(said(process=os.getpid()))


def test_a_store_without_a_card_exports_nothing() -> None:
    assert ipc.exported(Store(None, {})) == b""
    assert ipc.exported(Store(FakeCard(), {})) == b""


def test_adopted_weights_are_used_where_they_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    flat = torch.zeros(512, dtype=torch.uint8)
    asked: list[Any] = []
    monkeypatch.setattr(ipc, "_mapped", lambda *given: asked.append(given) or flat)
    store = Store(FakeCard(), {})
    ipc.adopt(store, said())
    _, binary, numbers, waits = asked[0]
    assert binary == {"handle": b"\xaa", "counter": b"\xbb", "event": b"\xcc"}
    assert numbers == {"size": 512, "offset": 0, "counter_at": 3} and waits
    a, b = (store._tensors[weight] for weight in WEIGHTS)
    assert a.shape == (3, 5) and a.stride() == (1, 3) and a.data_ptr() == flat.data_ptr()
    assert b.dtype == torch.bool and b.data_ptr() == flat.data_ptr() + 256


def row(*changed: Any) -> list[list[Any]]:
    return [list(changed)]


@pytest.mark.parametrize(
    "data, why",
    [
        (b"no json", "cannot be understood"),
        (b"[]", "cannot be understood"),
        (b"{}", "cannot be understood"),
        (said(handle="zz"), "cannot be understood"),
        (said(weights=row("a", "no_type", "", 0, [1])), "cannot be understood"),
        (said(weights=row("a", "load", "", 0, [1])), "cannot be understood"),
        (said(weights=row("a", "float32", "upside_down", 0, [1])), "cannot be understood"),
        (said(weights=row("a", "float32", "", 500, [4])), "does not lie where"),
        (said(weights=row("a", "float32", "", -4, [1])), "does not lie where"),
        (said(weights=row("a", "float32", "", 0, [-1, -3])), "does not lie where"),
        (said(card="another"), "on another card .another. than device 'cpu'"),
    ],
)
def test_nonsense_is_refused_before_anything_is_mapped(
    data: bytes, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ipc, "_mapped", lambda *given: pytest.fail("it was mapped"))
    with pytest.raises(EngineError, match=why):
        ipc.adopt(Store(FakeCard(), {}), data)


@pytest.mark.skipif(torch.cuda.is_available(), reason="the handle would be tried")
def test_what_cannot_be_mapped_is_told() -> None:
    with pytest.raises(EngineError, match="cannot be mapped from the card"):
        ipc.adopt(Store(FakeCard(), {}), said())
