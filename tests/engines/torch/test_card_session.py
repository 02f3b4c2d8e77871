"""Sessions on a card, with the CPU in its place: shapes, rows, twins, updates, errors."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from onnx import TensorProto, helper
from support.fake_card import FakeCard
from support.fake_engine import Client
from support.torch_graphs import (
    LateStop,
    computed,
    dense,
    endless,
    mixing,
    model,
    reshaping,
    rows,
    weight,
)

from mindspore_lite.engines.base import Stop
from mindspore_lite.engines.torch import program, replay
from mindspore_lite.engines.torch.card_session import CardSession
from mindspore_lite.errors import (
    ClosedError,
    EngineError,
    InputError,
    ResourceError,
    ShapeError,
    StoppedError,
)

OnCard = Callable[..., CardSession]


def check(session: Any, count: int, factor: float = 1.0, seed: int = 1) -> None:
    x = rows(count, seed)
    (y,) = session.run([x])
    np.testing.assert_allclose(y, computed(x, factor), rtol=1e-5)


def test_a_static_model_is_captured_at_the_build(on_card: OnCard, card: FakeCard) -> None:
    session = on_card(dense(rows=3))
    assert card.captured_runs == 1
    check(session, 3)
    check(session, 3, seed=2)
    assert card.captured_runs == 1
    with pytest.raises(ShapeError, match=r"'x': \[4, 16\].* takes .*'x': \[3, 16\]"):
        session.run([rows(4)])


def test_an_open_model_without_batches_runs_in_its_exact_shapes(
    on_card: OnCard, card: FakeCard
) -> None:
    session = on_card(dense())
    assert card.captured_runs == 0
    for count in (1, 3, 1, 3, 0):
        check(session, count)
    assert card.captured_runs == 3


def test_batches_are_captured_at_the_build_and_others_run_in_them(
    on_card: OnCard, card: FakeCard
) -> None:
    session = on_card(dense(), batches=(4, 1, 8))
    assert card.captured_runs == 3
    for count in (1, 2, 3, 4, 5, 8):
        check(session, count)
    assert card.captured_runs == 3


def test_more_rows_than_the_largest_batch_run_in_parts(on_card: OnCard, card: FakeCard) -> None:
    session = on_card(dense(), batches=(4,))
    check(session, 11)
    assert card.captured_runs == 1


def test_rows_that_depend_on_others_are_never_padded(on_card: OnCard, card: FakeCard) -> None:
    session = on_card(mixing(), batches=(4, 8))
    x = rows(6)
    (y,) = session.run([x])
    np.testing.assert_array_equal(y, x * np.repeat([1, 2], 3)[:, None].astype(np.float32))
    assert card.captured_runs == 3
    found = session.run_joined([[rows(2)], [rows(2, 2)]])
    for (y,), seed in zip(found, (1, 2), strict=True):
        np.testing.assert_array_equal(y, rows(2, seed) * np.float32([[1], [2]]))


def test_an_output_may_have_other_rows_than_the_inputs(on_card: OnCard) -> None:
    nodes = [helper.make_node("Concat", ["x", "x"], ["y"], axis=0)]
    session = on_card(model(nodes, {"x": ["n", 16]}, {"y": ["m", 16]}), batches=(2, 4))
    for count in (1, 2, 4, 5):
        for (y,) in (session.run([rows(count)]), *session.run_joined([[rows(count)]] * 2)):
            np.testing.assert_array_equal(y, np.tile(rows(count), (2, 1)))


def test_whether_rows_depend_on_others_is_tried_once_for_all_twins(
    on_card: OnCard, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []
    real = program.rows.independent
    monkeypatch.setattr(program.rows, "independent", lambda *given: tried.append(1) or real(*given))
    session = on_card(dense(), batches=(4,))
    check(session.twin(), 3)
    check(session, 2)
    assert tried == [1]


def test_large_arrays_are_staged_and_others_are_not(
    on_card: OnCard, card: FakeCard, monkeypatch: pytest.MonkeyPatch
) -> None:
    staged: list[tuple[int, ...]] = []
    room = replay.Recording.room

    def seen(lane: Any, use: str, at: int, *given: Any) -> Any:
        if use == "in":
            staged.append(given[0])
        return room(lane, use, at, *given)

    monkeypatch.setattr(replay, "_THREADS_BYTES", 3 * 64)
    monkeypatch.setattr(replay.Recording, "room", seen)
    session = on_card(dense(), batches=(1, 4))
    for count in (1, 2, 3, 4, 2):
        check(session, count, seed=count)
    assert staged == [(4, 16), (4, 16)]  # for three rows and for four
    found = session.run_joined([[rows(1, 1)], [rows(3, 2)]])
    for (y,), x in zip(found, (rows(1, 1), rows(3, 2)), strict=True):
        np.testing.assert_allclose(y, computed(x), rtol=1e-5)
    assert len(staged) == 2


@pytest.mark.parametrize("size", [4, 600, 20_000])
@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "bfloat16"])
def test_parts_of_all_sizes_are_copied(size: int, dtype: str) -> None:
    whole = (
        np.arange(3 * size)
        .reshape(3, size)
        .astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    )
    own = replay._copied(whole[1:2])
    assert own.base is None and own.dtype == whole.dtype and own.flags.writeable
    np.testing.assert_array_equal(own, whole[1:2])
    assert replay._copied(whole[:0]).shape == (0, size)


def test_requests_are_joined_and_their_outputs_parted(on_card: OnCard, card: FakeCard) -> None:
    session = on_card(dense(), batches=(2, 8))
    given = [rows(1, 1), rows(3, 2), rows(2, 3)]
    found = session.run_joined([[x] for x in given])
    for x, (y,) in zip(given, found, strict=True):
        np.testing.assert_allclose(y, computed(x), rtol=1e-5)
        assert y.base is None
    assert card.captured_runs == 2


def test_requests_that_fit_no_batch_are_run_one_by_one(on_card: OnCard) -> None:
    session = on_card(dense(), batches=(2, 4))
    for counts in ((3, 4), (0, 2)):
        given = [rows(count, at) for at, count in enumerate(counts)]
        for x, (y,) in zip(given, session.run_joined([[x] for x in given]), strict=True):
            np.testing.assert_allclose(y, computed(x), rtol=1e-5)


def test_tensors_of_the_card_give_tensors_that_own_their_memory(on_card: OnCard) -> None:
    session = on_card(dense(), batches=(4,))
    x = torch.from_numpy(rows(3))
    (first,) = session.run([x])
    (second,) = session.run([x * 2])
    assert isinstance(first, torch.Tensor)
    np.testing.assert_allclose(first.numpy(), computed(x.numpy()), rtol=1e-5)
    assert first.untyped_storage().data_ptr() != second.untyped_storage().data_ptr()
    assert first.untyped_storage().nbytes() == first.nbytes
    (many,) = session.run([torch.from_numpy(rows(9))])
    np.testing.assert_allclose(many.numpy(), computed(rows(9)), rtol=1e-5)


def test_requests_of_several_rows_arrive_whole(on_card: OnCard) -> None:
    session = on_card(dense(), batches=(64,))
    given = [rows(count, count) for count in (1, 2, 20, 30)]
    for x, (y,) in zip(given, session.run_joined([[x] for x in given]), strict=True):
        np.testing.assert_allclose(y, computed(x), rtol=1e-5)


def test_a_graph_that_depends_on_data_runs_step_by_step_and_says_so_once(
    on_card: OnCard, card: FakeCard
) -> None:
    session = on_card(reshaping())
    x = np.arange(6, dtype=np.float32)
    with pytest.warns(
        RuntimeWarning, match="'graph' cannot be recorded .* depends on data"
    ) as said:
        for dims in ([2, 3], [3, 2], [6, 1]):
            (y,) = session.run([x, np.array(dims)])
            np.testing.assert_array_equal(y, x.reshape(dims))
    assert len(said) == 1
    assert card.captured_runs == 0


def test_what_cannot_be_captured_runs_step_by_step(on_card: OnCard, card: FakeCard) -> None:
    card.failures = [RuntimeError("operation not permitted when stream is capturing")]
    with pytest.warns(RuntimeWarning, match="runs step by step: RuntimeError: operation not"):
        session = on_card(dense(rows=2))
    check(session, 2)
    check(session, 2, seed=3)


def test_a_card_without_graphs_runs_step_by_step(on_card: OnCard, card: FakeCard) -> None:
    card.captures_graphs = False
    session = on_card(dense(), batches=(4,))
    check(session, 3)


def test_only_so_many_shapes_are_kept(
    on_card: OnCard, card: FakeCard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "MAX_PLANS", 2)
    session = on_card(dense())
    for count in (1, 2, 1, 3, 1):  # the second goes when the third comes
        check(session, count)
    assert card.captured_runs == 3
    check(session, 2)
    assert card.captured_runs == 4


def test_however_many_batches_are_prepared_they_stay(
    on_card: OnCard, card: FakeCard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "MAX_PLANS", 1)
    session = on_card(dense(), batches=(1, 2, 3, 4))
    for count in (4, 3, 2, 1):
        check(session, count)
    assert card.captured_runs == 4


@pytest.mark.parametrize("given", [torch.tensor, np.array])
def test_padding_is_an_index_wherever_a_row_of_the_request_is_one(
    on_card: OnCard, given: Callable[..., Any]
) -> None:
    """Of rows with n columns, numbers below n are looked up in the columns of the row itself."""
    nodes = [helper.make_node("GatherElements", ["x", "x"], ["y"], axis=1)]
    ends = {"x": ["n", "columns"]}, {"y": ["n", "columns"]}
    kinds = dict.fromkeys("xy", TensorProto.INT64)
    session = on_card(model(nodes, *ends, kinds=kinds), batches=(4,))
    for row, count in 2 * (([7, 6, 5, 4, 3, 2, 1, 0], 4), ([2, 1, 0], 2)):
        (y,) = session.run([given([row] * count)])
        assert y.tolist() == [row[::-1]] * count


# --- twins and updates ---


def test_twins_share_the_weights_and_the_lowered_graphs(
    on_card: OnCard, card: FakeCard, monkeypatch: pytest.MonkeyPatch
) -> None:
    lowered = []
    real = program.lower
    monkeypatch.setattr(program, "lower", lambda *given: lowered.append(1) or real(*given))
    session = on_card(dense(rows=2))
    twins = [session.twin() for _ in range(3)]
    assert card.captured_runs == 4
    assert lowered == [1]
    for twin in twins:
        check(twin, 2)
        assert twin._program is session._program


def test_an_update_reaches_all_twins_and_shapes_met_later(on_card: OnCard, card: FakeCard) -> None:
    session = on_card(dense(), variable=[("w", "")])
    twin = session.twin()
    check(session, 2)
    assert [v.name for v in session.info.variables] == ["w"]
    session.update({"w": weight(3.0)})
    assert card.synchronized == 1
    check(twin, 2, 3.0)
    check(twin, 5, 3.0)
    session.update({})
    check(session, 2)
    check(twin, 5)


def test_weights_that_do_not_fit_change_nothing(on_card: OnCard) -> None:
    session = on_card(dense(), variable=[("w", "")])
    check(session, 2)
    for given, why in (
        ({"w": weight(2.0), "b": np.zeros(16, np.float32)}, "'b' .* no weight that may change"),
        ({"w": weight(2.0)[:3]}, r"float32\[3, 16\], float32\[16, 16\] there"),
        ({"w": weight(2.0).astype(np.float16)}, "float16"),
    ):
        with pytest.raises(InputError, match=why):
            session.update(given)
        check(session, 2)


def test_an_update_waits_for_runs_and_lets_no_new_one_begin(
    on_card: OnCard, card: FakeCard
) -> None:
    session = on_card(dense(rows=2), variable=[("w", "")])
    twin = session.twin()
    inside, go = threading.Event(), threading.Event()

    def held() -> None:
        inside.set()
        assert go.wait(120)

    card.on_replay = held
    x = rows(2)
    running = Client(lambda: session.run([x]))
    assert inside.wait(120)
    card.on_replay = lambda: None
    updating = Client(lambda: twin.update({"w": weight(2.0)}))
    store = twin._open_program().store
    while not store.gate._changing:
        assert updating.is_alive()
    late = Client(lambda: twin.run([x]))
    assert updating.is_alive() and running.is_alive()
    go.set()
    np.testing.assert_allclose(running.ended().result[0], computed(x), rtol=1e-5)
    assert updating.ended().error is None
    np.testing.assert_allclose(late.ended().result[0], computed(x, 2.0), rtol=1e-5)
    assert store.last_update_ms == 0.5


def test_updates_under_load_are_seen_whole(on_card: OnCard) -> None:
    """Two weights that always change together: a run that sees one of each gives another sum."""
    session = on_card(dense(rows=2), variable=[("w", ""), ("b", "")])
    ones = np.ones((16, 16), np.float32)
    states = [{"w": ones * k, "b": np.full(16, 1000 * k, np.float32)} for k in (1.0, 2.0)]
    session.update(states[0])
    x = np.ones((2, 16), np.float32)
    allowed = {1016.0, 2032.0}
    ended = threading.Event()

    def client(one: Any) -> set[float]:
        seen: set[float] = set()
        while not ended.is_set():
            seen |= set(np.unique(one.run([x])[0]).tolist())
        return seen

    clients = [Client(lambda s=s: client(s)) for s in (session, session.twin(), session.twin())]
    for at in range(30):
        session.update(states[at % 2])
    ended.set()
    for one in clients:
        assert one.ended().error is None
        assert one.result <= allowed and one.result


# --- errors ---


def test_a_full_card_is_told_and_the_session_goes_on(on_card: OnCard, card: FakeCard) -> None:
    session = on_card(dense())
    check(session, 1)
    card.failures = [torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB.")]
    with pytest.raises(ResourceError) as told:
        session.run([rows(2)])
    text = str(told.value)
    assert "'cpu' has no memory left for a run: CUDA out of memory. Tried to allocate 20" in text
    assert "3 of 8 MiB are free: use fewer workers, smaller batches" in text
    assert card.emptied == 1
    check(session, 1)
    check(session, 2)


def test_a_failed_capture_keeps_no_memory(on_card: OnCard, card: FakeCard) -> None:
    session = on_card(dense())
    kept: list[weakref.ref[Any]] = []

    def full(run: Any, stream: Any, pool: Any) -> Any:
        kept.extend(weakref.ref(tensor) for tensor in run())
        raise torch.OutOfMemoryError("CUDA out of memory.")

    card.captured = full  # type: ignore[method-assign]
    with pytest.raises(ResourceError) as told:
        session.run([rows(2)])
    gc.collect()
    assert told.value is not None
    assert kept and all(one() is None for one in kept)


def test_a_full_card_at_the_build_is_told(on_card: OnCard, card: FakeCard) -> None:
    card.failures = [torch.OutOfMemoryError("CUDA out of memory.")]
    with pytest.raises(ResourceError, match="no memory left to prepare the model"):
        on_card(dense(rows=2))


def test_a_broken_card_is_told_at_once_ever_after(on_card: OnCard, card: FakeCard) -> None:
    session = on_card(dense(rows=2))

    def broken() -> None:
        raise RuntimeError("CUDA error: device-side assert triggered")

    card.on_replay = broken
    with pytest.raises(EngineError, match=r"device-side assert .*restart it"):
        session.run([rows(2)])
    card.on_replay = lambda: pytest.fail("the card is used again")
    with pytest.raises(EngineError, match=r"failed before in this process .*restart the process"):
        session.run([rows(2)])


def test_other_failures_are_engine_errors(on_card: OnCard, card: FakeCard) -> None:
    session = on_card(dense(rows=2))
    card.on_replay = lambda: (_ for _ in ()).throw(RuntimeError("no\n such thing"))
    with pytest.raises(EngineError, match="torch could not run the model: no such thing"):
        session.run([rows(2)])
    card.on_replay = lambda: None
    check(session, 2)


def test_a_stop_that_was_fired_ends_the_run_before_it_begins(on_card: OnCard) -> None:
    session = on_card(dense(), batches=(2,))
    stop = Stop()
    stop.fire()
    for run in (
        lambda: session.run([rows(2)], stop),
        lambda: session.run_joined([[rows(2)]], stop),
    ):
        with pytest.raises(StoppedError):
            run()


@pytest.mark.filterwarnings("ignore:.*runs step by step")
def test_a_loop_without_end_is_ended_by_a_stop(on_card: OnCard) -> None:
    session = on_card(endless())
    x = np.ones(2, np.float32)
    with pytest.raises(StoppedError):
        session.run([x, np.array(True)], LateStop())
    assert session.run([x, np.array(False)])[0].tolist() == [1, 1]


def test_a_closed_session_says_so_and_its_twin_goes_on(on_card: OnCard) -> None:
    session = on_card(dense(rows=2))
    twin = session.twin()
    session.close()
    session.close()
    for use in (lambda: session.run([rows(2)]), session.twin, lambda: session.update({})):
        with pytest.raises(ClosedError):
            use()
    check(twin, 2)


def test_closing_during_a_run_lets_it_finish(on_card: OnCard, card: FakeCard) -> None:
    session = on_card(dense(rows=2))
    card.on_replay = session.close
    check(session, 2)
    assert not session._replays
    with pytest.raises(ClosedError):
        session.run([rows(2)])


def test_a_session_that_is_closed_at_the_very_end_of_a_run_lets_go_of_its_memory(
    on_card: OnCard,
) -> None:
    session = on_card(dense(rows=2))

    class ClosedBeforeItIsFree:
        lock = session._lock
        acquire, release = lock.acquire, lock.release

        def __enter__(self) -> None:
            self.acquire()

        def __exit__(self, *_: object) -> None:
            session.close()
            self.release()

    session._lock = ClosedBeforeItIsFree()  # type: ignore[assignment]
    check(session, 2)
    assert not session._replays


def test_many_threads_share_a_session(on_card: OnCard) -> None:
    session = on_card(dense(), batches=(1, 4))

    def client(seed: int) -> None:
        for count in (1, 3, 2, 4):
            check(session, count, seed=seed)

    clients = [Client(lambda seed=seed: client(seed)) for seed in range(8)]
    for one in clients:
        assert one.ended().error is None
