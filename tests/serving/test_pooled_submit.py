"""PooledService.submit_or_run: a call is queued, and its end is told to a function."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from support.fake_engine import LIMIT_S, Bench, Gate, rows
from support.onnx_graphs import F32, I64, body, model, node
from support.served import identity, service

from mindspore_lite.errors import ClosedError, InputError
from mindspore_lite.serving.call import Call


class Ended:
    """Where a call's end is told."""

    def __init__(self) -> None:
        self.outputs: Any = None
        self.error: BaseException | None = None
        self.thread = 0
        self._there = threading.Event()

    def __call__(self, found: list[Any] | BaseException) -> None:
        self.thread = threading.get_ident()
        if isinstance(found, BaseException):
            self.error = found
        else:
            self.outputs = found
        self._there.set()

    def wait(self) -> Ended:
        assert self._there.wait(LIMIT_S), "nobody told of the end"
        return self


def test_the_outputs_are_told_on_another_thread(tmp_path: Path) -> None:
    pooled = service(identity(tmp_path / "net.onnx"))
    ended = Ended()
    cancel = pooled.submit_or_run(Call([np.float32([1, 2])]), ended)
    assert ended.wait().outputs[0].tolist() == [1, 2] and ended.error is None
    assert ended.thread != threading.get_ident()
    assert cancel() is False
    with pytest.raises(InputError):
        pooled.submit_or_run(Call([np.int8([1])]), ended)
    pooled.close(None)
    with pytest.raises(ClosedError):
        pooled.submit_or_run(Call([np.float32([1])]), ended)


def test_a_short_run_is_done_at_once(tmp_path: Path) -> None:
    pooled = service(identity(tmp_path / "net.onnx", shape=(4,)), workers=0)
    ended = Ended()
    cancel = pooled.submit_or_run(Call([np.ones(4, np.float32)]), ended)
    assert ended.wait().outputs[0].tolist() == [1] * 4
    assert cancel() is False
    assert pooled.statistics().done == 1
    pooled.close(None)


def test_the_inline_lane_takes_what_it_was_made_for() -> None:
    bench = Bench(quick=True)
    found = bench.pool.try_inline(Call(rows(1)))
    assert found is not None and bench.session.threads == [threading.get_ident()]
    assert bench.pool.try_inline(Call(rows(2))) is None  # another size
    assert bench.pool.try_inline(Call(rows(1), 1.0)) is None  # a thread that waits has no deadline
    assert Bench().pool.try_inline(Call(rows(1))) is None


def test_a_run_that_may_take_long_is_queued(tmp_path: Path) -> None:
    """A loop's length may be a value of the request."""
    loop = body(
        [
            node("Identity", ["go"], ["went"]),
            node("Add", ["before", "before"], ["after"]),
        ],
        [("i", I64, []), ("go", onnx.TensorProto.BOOL, []), ("before", F32, [1])],
        [("went", onnx.TensorProto.BOOL, []), ("after", F32, [1])],
    )
    made = model(
        [node("Loop", ["n", "", "x"], ["y"], body=loop)],
        [("n", I64, [1]), ("x", F32, [1])],
        [("y", F32, [1])],
    )
    onnx.save(made, tmp_path / "loop.onnx")
    pooled = service(tmp_path / "loop.onnx", workers=0)
    ended = Ended()
    pooled.submit_or_run(Call([np.int64([3]), np.float32([1])]), ended)
    assert ended.wait().outputs[0].tolist() == [8.0]
    assert ended.thread != threading.get_ident()
    pooled.close(None)


def test_a_gate_of_the_fake_engine_is_cancelled() -> None:
    gate = Gate()
    bench = Bench(gate)
    answer = bench.submit()
    gate.entered()
    assert bench.pool.cancel(answer.request)
    assert not bench.pool.cancel(answer.request)
    gate.open()
