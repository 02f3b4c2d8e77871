"""MultiDeviceRunner: what its errors say when a worker process had the first word."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support.fake_engine import LIMIT_S
from support.models import DIGITS, ENDLESS, looping

import mindspore_lite as mslite
from mindspore_lite.errors import CancelledError, RequestTimeoutError, ShapeError

RIGHT = [np.zeros((1, 1, 8, 8), np.float32)]
WRONG = [np.zeros((1, 2, 8, 8), np.float32)]  # one channel too many, which only a worker notices


@pytest.fixture(scope="module")
def runner() -> Iterator[mslite.MultiDeviceRunner]:
    with mslite.MultiDeviceRunner() as made:
        made.build_from_file(str(DIGITS))
        yield made


def test_a_failed_run_is_told_once_whoever_asked(runner: mslite.MultiDeviceRunner) -> None:
    with pytest.raises(ShapeError) as predicted:
        runner.predict(WRONG)
    with pytest.raises(ShapeError) as in_parts:
        runner.predict_parts([RIGHT, WRONG])
    submitted = runner.submit(WRONG).exception(LIMIT_S)
    done, failed = runner.predict_parts([RIGHT, WRONG], return_errors=True)
    assert isinstance(done, list)
    for error in (predicted.value, in_parts.value, submitted, failed):
        assert isinstance(error, ShapeError)
        assert str(error).startswith("predict failed! the model cannot take the shapes ")


def test_a_future_that_nobody_cancelled_ends_whatever_a_worker_says(
    runner: mslite.MultiDeviceRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_given: object) -> None:
        raise CancelledError("the request was cancelled")

    assert runner._loaded is not None
    monkeypatch.setattr(runner._loaded, "finish", refuse)
    future = runner.submit(RIGHT)
    assert isinstance(future.exception(LIMIT_S), CancelledError)
    runner._loaded.dispatcher.ended("failed")  # it was taken


def test_an_error_before_any_worker_is_told_once(runner: mslite.MultiDeviceRunner) -> None:
    with pytest.raises(RuntimeError, match=r"^predict failed! data type not equal!"):
        runner.predict([RIGHT[0].astype(np.float64)])
    with pytest.raises(RuntimeError, match=r"^predict failed! the runner is not built;"):
        mslite.MultiDeviceRunner().predict_parts([RIGHT])


def test_a_timeout_names_the_time_that_was_given(tmp_path: Path) -> None:
    with mslite.MultiDeviceRunner() as endless:
        endless.build_from_file(str(looping(tmp_path / "loop.onnx")))
        # a busy machine may take so long to tell that the device counts as silent: told alike
        with pytest.raises(
            RequestTimeoutError, match=r"^predict failed! no answer within timeout_s=0\.25: device"
        ):
            endless.predict([ENDLESS, np.zeros(2, np.float32)], timeout_s=0.25)
