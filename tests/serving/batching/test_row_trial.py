"""two_rows.py: which made-up rows a model is tried with; what they tell is in test_batcher.py."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
import pytest
from support.fake_engine import LIMIT_S, FakeSession

from mindspore_lite.core.tensor_info import TensorInfo
from mindspore_lite.engines.base import Stop
from mindspore_lite.errors import (
    EngineError,
    InputError,
    QueueFullError,
    RequestTimeoutError,
    ShapeError,
    StoppedError,
)
from mindspore_lite.serving.batching import row_trial

FLOAT = np.dtype(np.float32)
ROWS = TensorInfo("x", FLOAT, (-1, 3, -1))
STEP = TensorInfo("step", FLOAT, (-1,))
TABLE = TensorInfo("table", FLOAT, (2, 2))


def echo(inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    return list(inputs)


def test_rows_that_are_carried_run_alone_and_together() -> None:
    outcome = row_trial.tried([ROWS, STEP], [True, True], echo)
    for first, second, together in zip(*outcome, strict=True):
        assert len(first) == len(second) == 1
        assert (first != second).any()
        np.testing.assert_array_equal(np.concatenate([first, second]), together)


def test_other_inputs_are_the_same_in_all_runs_with_one_row_where_it_is_open() -> None:
    outcome = row_trial.tried([ROWS, STEP, TABLE], [True, False, False], echo)
    for at, shape in ((1, (1,)), (2, (2, 2))):
        first, second, together = (run[at] for run in outcome)
        assert first.shape == shape
        np.testing.assert_array_equal(first, second)
        np.testing.assert_array_equal(first, together)


@pytest.mark.parametrize("kind", [EngineError, InputError, ShapeError])
def test_another_size_is_tried_when_a_model_refuses_one(kind: type[Exception]) -> None:
    def wants_64(inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        if inputs[0].shape[2] != 64:
            raise kind(f"{inputs[0].shape[2]} is no good")
        return list(inputs)

    assert row_trial.tried([ROWS], [True], wants_64).together[0].shape == (2, 3, 64)


def test_a_model_that_takes_nothing_is_told_with_its_last_words() -> None:
    def never(inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        raise InputError(f"not {inputs[0].shape}")

    with pytest.raises(EngineError, match=r"no made-up input could be run \(not \(1, 3, 224\)\)"):
        row_trial.tried([ROWS], [True], never)


def test_a_fault_that_no_other_input_would_heal_ends_the_trial() -> None:
    runs = 0

    def full(_: Sequence[np.ndarray]) -> list[np.ndarray]:
        nonlocal runs
        runs += 1
        raise QueueFullError("full")

    with pytest.raises(QueueFullError):
        row_trial.tried([ROWS], [True], full)
    assert runs == 1


def test_a_run_that_does_not_end_is_stopped_and_ends_the_trial() -> None:
    stopped = threading.Event()

    class Endless(FakeSession):
        def run(self, inputs: Sequence[np.ndarray], stop: Stop | None = None) -> list[np.ndarray]:
            assert stop is not None
            stop.handle(lambda: stopped, lambda event: event.set())
            assert stopped.wait(LIMIT_S)
            raise StoppedError("it was told to")

    session = Endless()
    words = r"^trying the model with made-up rows did not end within 0.01 s"
    with pytest.raises(RequestTimeoutError, match=words):
        row_trial.tried([ROWS], [True], row_trial.limited(session, 0.01))
    assert stopped.is_set()
