"""single.py: what a service of one session says and how it takes calls."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.fake_engine import wait_for
from support.models import DIGITS, ENDLESS, looping
from support.settings import spec_of

import mindspore_lite as mslite
from mindspore_lite.errors import InputError
from mindspore_lite.graph.source import ModelInput
from mindspore_lite.serving.call import Call
from mindspore_lite.serving.single import SingleService

X = np.zeros((1, 1, 8, 8), np.float32)


def test_settings_of_a_runner_are_said_to_have_no_effect() -> None:
    parallel = {"workers_num": "3", "thread_num": "1"}
    entries = {"parallel": parallel, "batching": {"max_batch_rows": "4"}}
    with pytest.warns(UserWarning) as caught:
        mslite.Model().build_from_file(str(DIGITS), mslite.ModelType.MINDIR, config_dict=entries)
    (one,) = caught
    assert str(one.message).startswith(
        "[parallel] workers_num, [batching] max_batch_rows: no effect on a Model"
    )
    assert one.filename == __file__


def test_a_context_may_serve_models_and_runners() -> None:
    context = mslite.Context()
    context.parallel.workers_num = 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mslite.Model().build_from_file(str(DIGITS), mslite.ModelType.MINDIR, context)


def begun(service: SingleService, *inputs: np.ndarray) -> tuple[list[Any], Callable[[], bool]]:
    found: list[Any] = []
    return found, service.submit(Call(list(inputs)), found.append)


def test_a_call_that_was_submitted_ends_once() -> None:
    service = SingleService(ModelInput("MINDIR", DIGITS), spec_of())
    (given,) = service.arrays([X])
    found, cancel = begun(service, given)
    wait_for(lambda: bool(found))
    assert not cancel()
    ((outputs,),) = found
    assert outputs.shape == (1, 10)
    failed, _ = begun(service, X, X)
    wait_for(lambda: bool(failed))
    assert isinstance(failed[0], InputError)
    assert service.probe()
    service.close()
    assert not service.probe()


def test_a_call_that_runs_is_cancelled_by_one(tmp_path: Path) -> None:
    path = looping(tmp_path / "loop.onnx")
    service = SingleService(ModelInput("ONNX", path), spec_of())
    found, cancel = begun(service, ENDLESS, np.zeros(2, np.float32))
    assert cancel()
    assert not cancel()
    service.close()
    assert found == []
