"""Models and runners on target gpu, from the Context to the replay, with the CPU for a card."""

from __future__ import annotations

import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.fake_card import FakeCard
from support.fake_cards import gpu, on_host
from support.models import DIGITS, MINDIR, written
from support.updates import telling_net, told, update, variable, versions

import mindspore_lite as mslite
from mindspore_lite.engines.torch import engine
from mindspore_lite.errors import LiteError

ROWS = np.random.default_rng(1).random((8, 1, 8, 8), np.float32)
BERT = Path(__file__).parents[1] / "data/onnx_nets/bert.onnx"
UNCOMPILED = {"gpu_context": {"tuning": "off", "batch_buckets": "1,2,4"}}


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> FakeCard:
    fake = FakeCard()
    on_host(monkeypatch)
    monkeypatch.setattr("mindspore_lite.engines.torch.cards.check", lambda device: None)
    monkeypatch.setattr(engine, "card_for", lambda device: fake)
    return fake


@pytest.fixture(scope="module")
def wanted() -> np.ndarray:
    with mslite.Model() as model:
        model.build_from_file(str(DIGITS), MINDIR)
        return model.predict([ROWS])[0].get_data_to_numpy()


def runner(path: Path = DIGITS, **parallel: Any) -> mslite.ModelParallelRunner:
    made = mslite.ModelParallelRunner()
    made.build_from_file(str(path), gpu(**{"config_info": UNCOMPILED, **parallel}))
    return made


def close(found: mslite.Tensor, wanted: np.ndarray) -> bool:
    return np.allclose(found.get_data_to_numpy(), wanted, atol=1e-5)


def test_every_stream_is_prepared_for_every_bucket_at_the_build(
    card: FakeCard, wanted: np.ndarray
) -> None:
    with runner(workers_num=2) as made:
        assert card.captured_runs == 6
        for rows in (1, 3, 8):
            assert close(made.predict([ROWS[:rows]])[0], wanted[:rows])
        assert card.captured_runs == 6


def test_single_rows_of_many_clients_run_together(card: FakeCard, wanted: np.ndarray) -> None:
    with runner(workers_num=1, max_batch_rows=4, max_batch_wait_us=60_000_000) as made:
        futures = [made.submit([row[None]]) for row in ROWS]
        for number, future in enumerate(futures):
            assert close(future.result(120)[0], wanted[number][None])
        assert made.statistics().batches == {4: 2}
        assert card.captured_runs == 3


def test_inputs_on_the_card_give_outputs_on_it(card: FakeCard, wanted: np.ndarray) -> None:
    given = torch.from_numpy(ROWS)
    with runner() as made:
        there = mslite.Tensor(ROWS[:3], device="gpu:0")
        (output,) = made.predict([there])
        assert output.device == "gpu:0"
        assert close(output, wanted[:3])
        futures = [made.submit([mslite.Tensor(row[None], device="gpu:0")]) for row in ROWS]
        assert all(close(f.result(120)[0], wanted[n]) for n, f in enumerate(futures))
        (output,) = made.predict([mslite.Tensor.from_dlpack(given)])
        assert output.device == "None:-1"  # memory of the host stays there
        assert close(output, wanted)


@pytest.mark.parametrize("ids", [[0], [0, 0]])
def test_weights_change_while_clients_ask(card: FakeCard, tmp_path: Path, ids: list[int]) -> None:
    path = written(tmp_path / "telling.mindir", telling_net(rows=2))
    config = {"gpu_context": {"tuning": "off"}, **variable("a", "b")}
    stop = threading.Event()
    with runner(path, device_ids=ids, config_info=config) as made:

        def client(rows: int) -> bool:
            seen = [0.0]
            while not stop.is_set():
                seen.append(told(made, rows=rows))
            return seen == sorted(seen) or len(ids) > 1

        with ThreadPoolExecutor(4) as threads:
            asked = [threads.submit(client, rows) for rows in (2, 2, 3, 3)]
            for version in range(1, 6):
                update(made, versions(version))
                assert told(made) == version
            stop.set()
            assert all(future.result(120) for future in asked)
        assert told(made, rows=3) == 5


def test_a_card_that_is_full_fails_the_request_and_goes_on(
    card: FakeCard, wanted: np.ndarray
) -> None:
    with mslite.Model() as model:
        config = {"gpu_context": {"tuning": "off"}}
        model.build_from_file(str(DIGITS), MINDIR, gpu(), config_dict=config)
        card.failures.append(torch.OutOfMemoryError("CUDA out of memory"))
        with pytest.raises(LiteError, match="has no memory left"):
            model.predict([ROWS])
        assert close(model.predict([ROWS])[0], wanted)


def test_a_model_whose_inner_sizes_are_open_is_joined(card: FakeCard) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = runner(BERT, workers_num=1)
    with made:
        ids, mask = np.zeros((2, 7), np.int64), np.ones((2, 7), np.int64)
        outputs = made.predict([ids, mask])
        assert [output.shape for output in outputs] == [[2, 7, 16], [2, 16]]
