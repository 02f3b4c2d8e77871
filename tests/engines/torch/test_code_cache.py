"""What is kept for later starts: where, under which names, and that nothing depends on it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from support.fake_card import FakeCard
from support.torch_graphs import dense, rows

from mindspore_lite.engines.torch import code_cache, program
from mindspore_lite.engines.torch.card_session import CardSession

OnCard = Callable[..., CardSession]


def test_what_is_written_is_read_and_lies_in_the_cache(cache_place: Path) -> None:
    name = code_cache.name_of(["a", "b"])
    assert code_cache.read(name) is None
    code_cache.write(name, b"one")
    code_cache.write(name, b"two")
    assert code_cache.read(name) == b"two"
    assert [path.name for path in (cache_place / "torch" / name).iterdir()] == ["kept"]


def test_what_is_read_counts_as_new(cache_place: Path) -> None:
    code_cache.write("name", b"one")
    path = cache_place / "torch" / "name" / "kept"
    os.utime(path, (0, 0))
    code_cache.read("name")
    assert path.stat().st_mtime > 0


def test_what_cannot_be_marked_as_read_is_read(
    cache_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code_cache.write("name", b"one")
    monkeypatch.setattr(os, "utime", lambda *_: (_ for _ in ()).throw(PermissionError()))
    assert code_cache.read("name") == b"one"


def test_names_tell_parts_apart() -> None:
    parts = [["ab", "c"], ["a", "bc"], ["abc"], ["abc", ""], ["ab", "d"]]
    assert len({code_cache.name_of(one) for one in parts}) == len(parts)


def test_names_change_with_the_code_that_makes_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    named: list[str] = []
    monkeypatch.setattr(
        code_cache.digest, "code_of", lambda *names: named.extend(names) or "changed"
    )
    before = code_cache.name_of(["a"])
    monkeypatch.setattr(code_cache, "_code", code_cache._code.__wrapped__)
    assert code_cache.name_of(["a"]) != before
    assert {"torch/compile", "torch/rows", "torch/kernels/lower", "torch/kernels/conv"} <= set(
        named
    )


def test_without_a_cache_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSLITE_CACHE", "0")
    assert code_cache.file("name") is None
    code_cache.write("name", b"one")
    assert code_cache.read("name") is None


def test_a_place_that_cannot_be_written_to_is_no_trouble(
    cache_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code_cache.write("name", b"one")
    monkeypatch.setattr(os, "mkdir", lambda *_: (_ for _ in ()).throw(PermissionError()))
    code_cache.write("other", b"two")
    assert code_cache.read("other") is None


def test_whether_rows_are_independent_is_found_out_once_for_all_starts(
    on_card: OnCard, card: FakeCard, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = on_card(dense(), batches=(2, 4))
    monkeypatch.setattr(program.rows, "independent", lambda *_: pytest.fail("it was tried again"))
    second = on_card(dense(), batches=(2, 4))
    for session in (first, second):
        assert len(session.run_joined([[rows(1)], [rows(2)]])) == 2
