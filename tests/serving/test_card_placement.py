"""card_placement.py and runner.py: workers, batches and weights of a model on made-up cards."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.fake_cards import FakeCards, gpu, installed
from support.mindir_builder import Net, encode
from support.models import DIGITS, built, dense_net, dense_values, written
from support.updates import filled, telling_net, told, update, variable, versions

import mindspore_lite as mslite
from mindspore_lite.errors import EngineError

DIGIT = np.random.default_rng(5).random((1, 1, 8, 8), np.float32)


@pytest.fixture
def cards(monkeypatch: pytest.MonkeyPatch) -> FakeCards:
    return installed(monkeypatch)


def runner(context: mslite.Context, path: Path = DIGITS) -> mslite.ModelParallelRunner:
    made = mslite.ModelParallelRunner()
    made.build_from_file(str(path), context)
    return made


@pytest.fixture
def dense(tmp_path: Path) -> Path:
    return written(tmp_path / "dense.mindir", dense_net())


def batching(made: mslite.ModelParallelRunner) -> Any:
    return made._usable("").pool._scheduler.batching


def close(found: np.ndarray, wanted: np.ndarray) -> bool:
    return np.allclose(found, wanted, atol=1e-5)


# --- workers --------------------------------------------------------------------------------------


def test_a_card_has_two_streams_over_one_copy_of_the_weights(cards: FakeCards) -> None:
    with runner(gpu()) as made:
        found = made.statistics()
        assert found.layout.devices == ("gpu:0", "gpu:0")
        assert [worker.device for worker in found.workers] == ["gpu:0", "gpu:0"]
        assert (len(cards.copies), len(cards.sessions)) == (1, 2)
        (output,) = made.predict([DIGIT])
    assert cards.asked == [("gpu", "", 0)]
    with built(DIGITS) as plain:
        assert close(output.get_data_to_numpy(), plain.predict([DIGIT])[0].get_data_to_numpy())
    assert all(session.closed for session in cards.sessions)


def test_workers_are_dealt_to_the_devices_in_turn(cards: FakeCards) -> None:
    with runner(gpu(workers_num=5, device_ids=[1, 0])) as made:
        devices = made.statistics().layout.devices
    assert devices == ("gpu:1", "gpu:0", "gpu:1", "gpu:0", "gpu:1")
    assert [options.device for options in cards.loads] == ["cuda:1", "cuda:0"]
    assert [device for _, _, device in cards.asked] == [1, 0]


def test_a_device_that_is_named_twice_has_two_copies(cards: FakeCards) -> None:
    with runner(gpu(device_ids=[0, 0])) as made:
        assert made.statistics().layout.workers == 4
    assert len(cards.copies) == 2


def test_the_device_of_the_context_counts_without_a_list(cards: FakeCards) -> None:
    context = gpu(workers_num=1)
    context.gpu.device_id = 3
    runner(context).close()
    assert [options.device for options in cards.loads] == ["cuda:3"]


def test_devices_without_a_worker_are_told_of(cards: FakeCards) -> None:
    with pytest.warns(UserWarning, match=r"device_ids \[1, 2\] are not used") as caught:
        runner(gpu(workers_num=1, device_ids=[0, 1, 2])).close()
    assert caught[0].filename == __file__
    assert len(cards.copies) == 1


def test_threads_and_cores_have_no_effect_and_that_is_said(cards: FakeCards) -> None:
    context = gpu()
    context.cpu.thread_num, context.cpu.thread_affinity_mode = 4, 1
    words = r"\['cpu.thread_num', 'cpu.thread_affinity_mode'\] have no effect on target 'gpu'"
    with pytest.warns(UserWarning, match=words) as caught:
        runner(context).close()
    with pytest.warns(UserWarning, match=words) as of_model:
        mslite.Model().build_from_file(str(DIGITS), mslite.ModelType.MINDIR, context)
    assert {warning.filename for warning in (*caught, *of_model)} == {__file__}


def test_too_many_workers_are_refused(cards: FakeCards) -> None:
    with pytest.raises(EngineError, match="5000 workers were asked for, wanted 1 to 1024"):
        runner(gpu(workers_num=5000))


def test_nothing_is_made_for_workers_that_are_too_many(cards: FakeCards) -> None:
    with pytest.raises(EngineError, match="2147483647 workers were asked for"):
        runner(gpu(workers_num=2**31 - 1))


def test_the_configuration_reaches_the_engine(cards: FakeCards) -> None:
    section = {"tuning": "full", "allow_tf32": "false", "precision_mode": "preferred_bf16"}
    runner(gpu(config_info={"gpu_context": section})).close()
    (options,) = cards.loads
    assert (options.tuning, options.tf32, options.precision) == ("full", False, "preferred_bf16")
    mslite.Model().build_from_file(
        str(DIGITS), mslite.ModelType.MINDIR, gpu(), config_dict={"gpu_context": section}
    )
    assert cards.loads[1].precision == "preferred_bf16"
    assert cards.loads[1].batches == ()


# --- sizes ----------------------------------------------------------------------------------------


def test_requests_of_other_sizes_share_one_more_copy(cards: FakeCards, dense: Path) -> None:
    x = np.random.default_rng(0).random((5, 3), np.float32)
    with runner(gpu(workers_num=2), dense) as made:
        for _ in range(4):
            (output,) = made.predict([x])
            assert close(output.get_data_to_numpy(), dense_values(x))
        sessions = [place.lanes[0].session for place in made._usable("")._placed.places]
        for session in sessions:
            assert close(session.run([x])[0], dense_values(x))
    assert len(cards.copies) == 2
    assert all(session.closed for session in cards.sessions)


# --- batches --------------------------------------------------------------------------------------


def test_requests_are_joined_unless_told_otherwise(cards: FakeCards) -> None:
    with runner(gpu()) as made:
        assert batching(made).max_rows == 64
    assert cards.loads[0].batches == (1, 2, 4, 8, 16, 32, 64)


@pytest.mark.parametrize(
    ("parallel", "entries", "rows", "batches"),
    [
        ({"max_batch_rows": 1}, {}, None, ()),
        ({"max_batch_rows": 1}, {"batch_buckets": "1,4"}, None, (1, 4)),
        ({"max_batch_rows": 12}, {}, 12, (1, 2, 4, 8, 12)),
        ({}, {"batch_buckets": "1,16"}, 16, (1, 16)),
        ({"max_batch_rows": 8}, {"batch_buckets": "4,16"}, 8, (4, 16)),
        ({}, {"batch_buckets": "1"}, None, (1,)),
    ],
)
def test_rows_and_buckets_follow_from_each_other(
    cards: FakeCards,
    parallel: dict[str, Any],
    entries: dict[str, str],
    rows: int | None,
    batches: tuple[int, ...],
) -> None:
    with runner(gpu(**parallel, config_info={"gpu_context": entries})) as made:
        found = batching(made)
    assert (None if found is None else found.max_rows) == rows
    assert cards.loads[0].batches == batches


def test_a_wait_alone_switches_nothing_off(cards: FakeCards) -> None:
    with runner(gpu(max_batch_wait_us=30)) as made:
        assert (batching(made).max_rows, batching(made).wait_ns) == (64, 30_000)


def test_only_prepared_numbers_of_rows_are_run_at_the_build(cards: FakeCards) -> None:
    with runner(gpu(config_info={"gpu_context": {"batch_buckets": "4,16"}}, workers_num=2)):
        ran = {row for session in cards.sessions for row in session.rows}
    assert ran == {1, 4, 16}  # 1: a smallest request, as clients send it
    assert all({4, 16} <= set(session.rows) for session in cards.sessions)


def test_a_model_of_fixed_sizes_is_not_joined(cards: FakeCards, dense: Path) -> None:
    with runner(gpu(), dense) as made:
        assert batching(made) is None
    with pytest.raises(EngineError, match="wanted an open batch axis first"):
        runner(gpu(max_batch_rows=8), dense)


def mixing(path: Path) -> Path:
    """The rows of a batch take part in the sum of each."""
    net = Net()
    x = net.input("x", (-1, 3))
    return written(path, encode(net.model(net.call("Softmax", x, axis=(0,)))))


def test_a_model_that_mixes_rows_is_not_joined(cards: FakeCards, tmp_path: Path) -> None:
    path = mixing(tmp_path / "mixing.mindir")
    with runner(gpu(), path) as made:
        assert batching(made) is None
        (output,) = made.predict([np.zeros((4, 3), np.float32)])
        assert close(output.get_data_to_numpy(), np.full((4, 3), 0.25))
    with pytest.raises(EngineError, match="depends on the other rows of its batch"):
        runner(gpu(max_batch_rows=8), path)


def test_rows_of_open_sizes_are_tried_uncompiled(cards: FakeCards, tmp_path: Path) -> None:
    net = Net()
    x = net.input("x", (-1, -1))
    path = written(tmp_path / "open.mindir", encode(net.model(net.call("ReLU", x))))
    with runner(gpu(), path) as made:
        assert batching(made).max_rows == 64
        (output,) = made.predict([np.full((2, 5), -1, np.float32)])
        assert not output.get_data_to_numpy().any()
    assert [options.tuning for options in cards.loads] == ["fast", "off"]
    used, tried = (session for session in cards.sessions if session.rows)
    assert (tried.options.tuning, tried.closed, used.rows) == ("off", 1, [2])


def test_waiting_requests_run_as_one(cards: FakeCards) -> None:
    digits = np.random.default_rng(2).random((8, 1, 8, 8), np.float32)
    with built(DIGITS) as plain:
        wanted = plain.predict([digits])[0].get_data_to_numpy()
    context = gpu(workers_num=1, max_batch_wait_us=60_000_000, max_batch_rows=8)
    with runner(context) as made:
        futures = [made.submit([digit[None]]) for digit in digits]
        found = [future.result(120)[0].get_data_to_numpy() for future in futures]
        assert made.statistics().batches == {8: 1}
    assert close(np.concatenate(found), wanted)
    assert cards.sessions[-1].joined == [8]


def test_a_request_of_many_rows_is_the_session_s_own_matter(cards: FakeCards) -> None:
    with runner(gpu(workers_num=1, max_batch_rows=4)) as made:
        (output,) = made.predict([np.zeros((10, 1, 8, 8), np.float32)])
    assert output.shape == [10, 10]
    assert cards.sessions[0].rows[-1] == 10


def test_a_batch_that_fails_is_run_one_by_one(cards: FakeCards) -> None:
    context = gpu(workers_num=1, max_batch_wait_us=60_000_000, max_batch_rows=4)
    with runner(context) as made:
        cards.refuses_runs = True
        futures = [made.submit([DIGIT]) for _ in range(4)]
        for future in futures:
            with pytest.raises(EngineError, match="the card is tired"):
                future.result(120)
        assert cards.sessions[0].rows[-4:] == [1] * 4


# --- weights --------------------------------------------------------------------------------------


@pytest.fixture
def telling(tmp_path: Path) -> Path:
    return written(tmp_path / "telling.mindir", telling_net())


@pytest.fixture
def changeable(cards: FakeCards, telling: Path) -> Iterator[mslite.ModelParallelRunner]:
    config = variable("a", "b")
    with runner(gpu(device_ids=[0, 1], workers_num=4, config_info=config), telling) as made:
        yield made


def everywhere(made: mslite.ModelParallelRunner) -> set[float]:
    """What every worker tells of the weights."""
    ones = np.ones((2, 8), np.float32)
    sessions = [place.lanes[0].session for place in made._usable("")._placed.places]
    return {float(version) for session in sessions for version in np.unique(session.run([ones])[0])}


def test_an_update_reaches_all_copies_and_all_sizes(
    changeable: mslite.ModelParallelRunner, cards: FakeCards
) -> None:
    assert told(changeable, rows=3) == 0
    update(changeable, versions(1))
    assert everywhere(changeable) == {1.0}
    assert told(changeable, rows=3) == 1
    assert told(changeable, rows=5) == 1  # sizes that come after the update
    assert changeable.get_model_info("weights_version") == "1"
    changeable.update_weights([])
    assert everywhere(changeable) == {0.0}
    assert told(changeable, rows=3) == 0


def test_an_update_that_fails_on_one_card_changes_none(
    changeable: mslite.ModelParallelRunner, cards: FakeCards
) -> None:
    update(changeable, {"a": filled(4), "b": filled(4)})
    cards.refuses_updates = {"cuda:1"}
    with pytest.raises(EngineError, match="update weight failed! Error is cuda:1 has no room"):
        update(changeable, versions(5))
    assert everywhere(changeable) == {4.0}
    assert changeable.get_model_info("weights_version") == "1"
    cards.refuses_updates = set()
    update(changeable, versions(6))
    assert everywhere(changeable) == {6.0}


def test_a_model_on_a_card_changes_its_weights_in_place(cards: FakeCards, telling: Path) -> None:
    model = mslite.Model()
    config = variable("a", "b")
    model.build_from_file(str(telling), mslite.ModelType.MINDIR, gpu(), config_dict=config)
    update(model, versions(3))
    assert told(model) == 3
    assert len(cards.sessions) == 1
    model.close()


# --- beside each other ----------------------------------------------------------------------------


def test_many_callers_get_their_own_rows(cards: FakeCards) -> None:
    digits = np.random.default_rng(3).random((64, 1, 8, 8), np.float32)
    with built(DIGITS) as plain:
        wanted = plain.predict([digits])[0].get_data_to_numpy()
    start = threading.Barrier(16)

    def client(number: int) -> bool:
        start.wait(120)
        rows = range(number, 64, 16)
        return all(
            close(made.predict([digits[row][None]])[0].get_data_to_numpy(), wanted[row][None])
            for row in rows
        )

    with runner(gpu(device_ids=[0, 0])) as made, ThreadPoolExecutor(16) as threads:
        assert all(threads.map(client, range(16)))
        assert made.statistics().done == 64
