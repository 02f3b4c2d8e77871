"""Runs as one call, on a card whose functions are Python's: rows, padding, errors, threads."""

from __future__ import annotations

import gc
import os
import select
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from onnx import TensorProto, helper
from support.fake_card import CallingCard, FakeCard
from support.fake_engine import wait_for
from support.torch_graphs import computed, dense, model, rows, weight

from mindspore_lite.engines.torch import code_cache, engine, fused_launch
from mindspore_lite.engines.torch.card_session import CardSession
from mindspore_lite.errors import EngineError

pytestmark = pytest.mark.skipif(
    not any(shutil.which(name) for name in ("cc", "gcc", "clang")), reason="needs a C compiler"
)

OnCard = Callable[..., CardSession]


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> FakeCard:
    fake = CallingCard()
    monkeypatch.setattr(engine, "card_for", lambda device: fake)
    return fake


def run(session: Any, counts: list[int], as_tensors: bool = False) -> None:
    """Check requests of so many rows, as one run."""
    given = [rows(count, seed) for seed, count in enumerate(counts)]
    sent = [[torch.from_numpy(one) if as_tensors else one] for one in given]
    found = session.run_joined(sent)
    for (y,), x in zip(found, given, strict=True):
        assert isinstance(y, torch.Tensor) is as_tensors
        np.testing.assert_allclose(np.asarray(y), computed(x, 1.0), rtol=1e-5)


def test_arrays_are_copied_sent_run_and_waited_for(on_card: OnCard, card: CallingCard) -> None:
    session = on_card(dense(), batches=(1, 8))
    run(session, [1])
    assert card.calls == ["copy", "launch", "synchronize"]
    run(session, [1, 3, 2])
    assert card.calls[3:] == ["copy", "copy", "copy", "launch", "synchronize"]  # of 3 lengths


def test_threads_of_other_cards_change_over_by_torch(
    on_card: OnCard, card: CallingCard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CUDA's own function would make a context on the card that a thread goes back to."""

    @contextmanager
    def using(stream: Any) -> Iterator[None]:
        card.calls.append("there")
        yield
        card.calls.append("back")

    session = on_card(dense(), batches=(1, 8))
    monkeypatch.setattr(card, "using", using)
    run(session, [1])
    assert card.calls == ["copy", "launch", "synchronize"]
    monkeypatch.setattr(card, "is_current", lambda: False)
    run(session, [1])
    assert card.calls[3:] == ["there", "copy", "launch", "synchronize", "back"]


def test_arrays_are_found_whatever_they_hold() -> None:
    for kind in ("float32", "float16", "bool", "complex64", ml_dtypes.bfloat16):
        for writeable in (True, False):
            array = np.ones((2, 3), kind)
            array.flags.writeable = writeable
            assert fused_launch._address(array) == array.__array_interface__["data"][0]


def test_tensors_wait_for_their_stream_and_stay_on_the_card(
    on_card: OnCard, card: CallingCard
) -> None:
    session = on_card(dense(), batches=(1, 8))
    run(session, [1, 1], as_tensors=True)
    assert card.calls == [
        "record", "wait", "copy", "copy", "launch", "copy", "copy", "synchronize"
    ]  # fmt: skip


def test_tensors_with_gaps_go_call_by_call(on_card: OnCard, card: CallingCard) -> None:
    session = on_card(dense(rows=2))
    x = torch.from_numpy(rows(2))
    (y,) = session.run([torch.cat([x, x], dim=1)[:, :16]])
    np.testing.assert_allclose(y, computed(rows(2), 1.0), rtol=1e-5)
    assert card.calls == []


@pytest.mark.parametrize("as_tensors", [False, True])
def test_integers_of_padding_are_those_of_a_row(
    on_card: OnCard, card: CallingCard, as_tensors: bool
) -> None:
    seen = []
    graph = model(
        [helper.make_node("Gather", ["w", "x"], ["y"])],
        {"x": ["n", 1]},
        {"y": ["n", 1, 16]},
        {"w": weight(1.0)},
        kinds={"x": TensorProto.INT64},
    )
    session = on_card(graph, batches=(4,))
    (replay,) = session._replays.values()
    card.on_replay = lambda: seen.append(replay._inputs[0].flatten().tolist())
    for index in (5, 9):
        x = np.array([[index]], np.int64)
        (y,) = session.run([torch.from_numpy(x) if as_tensors else x])
        np.testing.assert_array_equal(y, weight(1.0)[x])
    assert seen == [[5] * 4, [9] * 4]


@pytest.mark.parametrize("size", [1, 3, 200_003])
def test_large_rows_are_put_together_by_threads(
    on_card: OnCard, card: CallingCard, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fused_launch.os, "cpu_count", lambda: 16)
    graph = model(
        [helper.make_node("Neg", ["x"], ["y"])],
        {"x": ["n", size]},
        {"y": ["n", size]},
    )
    session = on_card(graph, batches=(16,))
    for seed in range(8):
        drawn = np.random.default_rng(seed).random((16, size), np.float32)
        found = session.run_joined([[row[None]] for row in drawn])
        np.testing.assert_array_equal(np.concatenate([y for (y,) in found]), -drawn)


def test_an_error_of_any_function_is_told_and_the_next_run_goes_well(
    on_card: OnCard, card: CallingCard
) -> None:
    session = on_card(dense(rows=2))
    x = rows(2)
    for at in range(3):
        card.errors = [0] * at + [700]
        card.calls.clear()
        with pytest.raises(EngineError, match="CUDA error: the error 700"):
            session.run([x])
        assert card.calls[-1] == "synchronize"  # nothing is under way
        card.errors.clear()
        np.testing.assert_allclose(session.run([x])[0], computed(x, 1.0), rtol=1e-5)


def test_a_run_that_draws_numbers_is_replayed_by_torch(on_card: OnCard, card: CallingCard) -> None:
    graph = model(
        [
            helper.make_node("RandomNormalLike", ["x"], ["noise"]),
            helper.make_node("Add", ["x", "noise"], ["y"]),
        ],
        {"x": [4]},
        {"y": [4]},
    )
    session = on_card(graph)
    first, second = (session.run([np.zeros(4, np.float32)])[0] for _ in range(2))
    assert (first != second).any()
    assert card.calls == []


def test_threads_end_with_the_session(
    on_card: OnCard, card: CallingCard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fused_launch.os, "cpu_count", lambda: 16)

    def threads() -> set[str]:
        return set(os.listdir("/proc/self/task"))

    before = threads()
    session = on_card(dense(rows=2))
    mine = threads() - before  # others may end meanwhile
    assert len(mine) == 3
    session.close()
    wait_for(lambda: not mine & threads())  # the kernel lists a thread a little longer


def test_a_forked_child_waits_for_no_threads(
    on_card: OnCard, card: CallingCard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fused_launch.os, "cpu_count", lambda: 16)
    sessions = [on_card(dense(rows=2))]
    child = os.fork()
    if not child:
        sessions.clear()
        gc.collect()
        os._exit(0)
    end = os.pidfd_open(child)
    ended = select.select([end], [], [], 120)[0]
    os.close(end)
    if not ended:
        os.kill(child, signal.SIGKILL)
    assert os.waitpid(child, 0)[1] == 0


def test_sessions_run_at_the_same_time(on_card: OnCard, card: CallingCard) -> None:
    session = on_card(dense(), batches=(4,))
    sessions = [session, session.twin()]
    together = threading.Barrier(2)

    def client(mine: CardSession) -> None:
        together.wait(120)
        for _ in range(20):
            run(mine, [1, 1, 2])

    clients = [threading.Thread(target=client, args=[one]) for one in sessions]
    for one in clients:
        one.start()
    for one in clients:
        one.join()
    assert card.calls.count("launch") == 40


def test_without_a_compiler_runs_go_call_by_call(
    on_card: OnCard, card: CallingCard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fused_launch.shutil, "which", lambda name: None)
    monkeypatch.setattr(code_cache, "file", lambda name: None)
    monkeypatch.setattr(fused_launch, "_library", fused_launch._library.__wrapped__)
    session = on_card(dense(rows=2))
    np.testing.assert_allclose(session.run([rows(2)])[0], computed(rows(2), 1.0), rtol=1e-5)
    assert card.calls == []


def test_the_library_is_compiled_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(code_cache, "file", lambda name: tmp_path / name)
    assert fused_launch._opened().one_run
    monkeypatch.setattr(fused_launch, "_compiled", lambda: pytest.fail("compiled again"))
    assert fused_launch._opened().one_run
