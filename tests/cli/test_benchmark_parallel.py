"""benchmark_parallel.py: the lines of clients, what ends them, and accuracy of all their runs."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from cli.conftest import Done
from support.models import DIGITS

from mindspore_lite.cli import benchmark_parallel
from mindspore_lite.errors import EngineError
from mindspore_lite.runner import ModelParallelRunner
from mindspore_lite.tensor import Tensor

Run = Callable[..., Done]
PREDICT = ModelParallelRunner.predict
RULE = "=" * 42


@pytest.fixture
def clients(benchmark: Run) -> Run:
    """Call `clients(*flags)`: the embedded model, one worker of one thread."""
    flags = (f"--modelFile={DIGITS}", "--inputShape=x:1,1,8,8", "--enableParallelPredict=true")
    single = ("--numThreads=1", "--cpuBindMode=0", "--workersNum=1")
    return lambda *more: benchmark(*flags, *single, *more)


@pytest.fixture
def on_run(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, Exception | type], None]:
    """Call `on_run(n, error)` to raise at the n-th run."""

    def at(number: int, error: BaseException | type[BaseException]) -> None:
        count = iter(range(1, 10**6))

        def predict(self: ModelParallelRunner, inputs: list[np.ndarray]) -> list[Tensor]:
            if next(count) == number:
                raise error
            return PREDICT(self, inputs)

        monkeypatch.setattr(ModelParallelRunner, "predict", predict)

    return at


def test_the_lines_of_clients(clients: Run) -> None:
    done = clients("--parallelNum=3", "--parallelTaskNum=2", "--warmUpLoopCount=2")
    assert (done.code, done.err) == (0, "")
    lines = re.sub(r"\d+\.\d{3} ms", "T ms", done.out).splitlines()
    start = lines.index("warm up index: 0 | time: T ms")
    assert lines[start + 1 : start + 3] == [
        "warm up index: 1 | time: T ms",
        "=============== end warm up ===============",
    ]
    assert sorted(lines[start + 3 : start + 9]) == [
        f"parallel index: {client} | task index: {task} | predict time: T ms"
        for client in range(3)
        for task in range(2)
    ]
    assert lines[start + 9 :] == [
        RULE,
        "parallel predict init time: T ms",
        "parallel predict all run time: T ms",
        RULE,
        "Run Benchmark digits.mindir Success.",
    ]


def test_a_client_that_fails_ends_all(clients: Run, on_run: Callable[..., None]) -> None:
    on_run(5, EngineError("broken"))
    done = clients("--parallelTaskNum=-1", "--warmUpLoopCount=0")
    assert done.code == 255
    assert done.err == "broken\nRun Benchmark digits.mindir Failed : -1\n"


def test_ctrl_c_is_the_end_of_what_has_none(clients: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(futures: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(benchmark_parallel, "wait", interrupted)
    done = clients("--parallelTaskNum=-1")
    assert (done.code, done.err) == (0, "")
    assert "parallel predict all run time: " in done.out
    done = clients("--parallelTaskNum=2")
    assert (done.code, done.err) == (130, "interrupted\n")


def test_threads_that_cannot_be_had_leave_nobody_waiting(
    clients: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full(benchmark_parallel.ThreadPoolExecutor):
        def submit(self, fn, /, *given):  # type: ignore[no-untyped-def]
            if given == (1,):
                raise RuntimeError("can't start new thread")
            return super().submit(fn, *given)

    monkeypatch.setattr(benchmark_parallel, "ThreadPoolExecutor", Full)
    done = clients("--parallelTaskNum=-1")
    assert done.code == 255
    assert done.err.startswith("no more threads can be started (can't start new thread); end some")


def test_the_run_that_is_furthest_off_is_told(
    clients: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = iter(range(100))

    def predict(self: ModelParallelRunner, inputs: list[np.ndarray]) -> list[Tensor]:
        output = Tensor(np.array([1.0, 3.0 if next(count) == 1 else 2.0], np.float32))
        output.name = "y"
        return [output]

    monkeypatch.setattr(ModelParallelRunner, "predict", predict)
    (tmp_path / "want").write_text("y 1 2\n1 2\n")
    flags = (f"--benchmarkDataFile={tmp_path / 'want'}", "--warmUpLoopCount=0")
    done = clients(*flags)
    assert done.code == 255
    assert done.out.count("Comparing Output data") == 1
    assert "Mean bias of all nodes/tensors: 25%\n" in done.out
    assert clients(*flags).code == 0
