"""runner.py: update_weights for all workers at once, beside requests of many threads."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.fake_engine import LIMIT_S
from support.fake_workers import begun
from support.models import written
from support.updates import (
    ROWS,
    SIDE,
    changeable_runner,
    filled,
    named,
    outputs,
    telling_net,
    told,
    update,
    versions,
)
from support.workers import ROOT

import mindspore_lite as mslite
from mindspore_lite.core.cores import Core
from mindspore_lite.errors import ClosedError, EngineError, InputError
from mindspore_lite.serving import build as building
from mindspore_lite.serving import placement
from mindspore_lite.serving.batching import joining

A_AND_B = ("a", "b")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return written(tmp_path / "telling.mindir", telling_net())


@pytest.fixture
def runner(path: Path) -> Iterator[mslite.ModelParallelRunner]:
    with changeable_runner(path, *A_AND_B, workers_num=2) as made:
        yield made


@pytest.fixture
def eight_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine of eight cores, whatever this one has."""
    fake = dataclasses.replace(
        placement.cores.usable(),
        ids=tuple(range(8)),
        limit=8,
        physical=8,
        nodes=(tuple(range(8)),),
        topology=tuple(Core(number, (number,), 0) for number in range(8)),
    )
    monkeypatch.setattr(placement.cores, "usable", lambda: fake)


def version(runner: mslite.ModelParallelRunner) -> str:
    return runner.get_model_info("weights_version")


def test_weights_change_count_and_are_restored(runner: mslite.ModelParallelRunner) -> None:
    seen = [(told(runner), version(runner))]
    for number in (4, 5):
        update(runner, versions(number))
        seen.append((told(runner), version(runner)))
    runner.update_weights([])
    seen.append((told(runner), version(runner)))
    assert seen == [(0, "0"), (4, "1"), (5, "2"), (0, "3")]


def test_names_may_come_from_a_configuration_file(path: Path, tmp_path: Path) -> None:
    written(tmp_path / "names.txt", b"a\nb\n")
    config = written(
        tmp_path / "config.ini", b'[ascend_context]\nvariable_weights_file="names.txt"\n'
    )
    context = mslite.Context()
    context.parallel.config_path = str(config)
    with mslite.ModelParallelRunner() as runner:
        runner.build_from_file(str(path), context)
        runner.update_weights([[mslite.Tensor(filled(1)), mslite.Tensor(filled(1))]])
        assert told(runner) == 1


def test_a_program_may_go_to_another_directory(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As daemons do; updates and other sizes read the model file again."""
    monkeypatch.chdir(path.parent)
    with changeable_runner(Path(path.name), *A_AND_B) as runner:
        monkeypatch.chdir("/")
        update(runner, versions(1))
        assert (told(runner), told(runner, 5)) == (1, 1)


def test_one_tensor_that_does_not_fit_leaves_all_weights_as_they_are(
    runner: mslite.ModelParallelRunner,
) -> None:
    update(runner, versions(1))
    with pytest.raises(InputError, match=r"^update weight failed! Error is weight 'b' has shape"):
        update(runner, {"a": filled(2), "b": filled(2)[0]})
    assert (told(runner), version(runner)) == (1, "1")


@pytest.mark.usefixtures("eight_cores")
def test_a_session_that_cannot_be_loaded_leaves_all_as_they_are(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of several: the others are loaded, and let go."""
    with changeable_runner(path, *A_AND_B, workers_num=2, threads=2) as runner:
        original, loads = building._reopened, []

        def fails_late(*args: Any) -> Any:
            loads.append(1)
            if len(loads) == 2:
                raise EngineError("no memory")
            return original(*args)

        monkeypatch.setattr(building, "_reopened", fails_late)
        with pytest.raises(EngineError, match=r"^update weight failed! Error is no memory"):
            update(runner, versions(1))
        assert (told(runner), version(runner)) == (0, "0")
        monkeypatch.undo()
        update(runner, versions(2))
        assert (told(runner), version(runner)) == (2, "1")


def test_unbuilt_fixed_and_closed_runners_say_so(
    path: Path, runner: mslite.ModelParallelRunner
) -> None:
    weights = [[named("a", filled(1))]]
    failed = "^update weight failed! Error is "
    with pytest.raises(EngineError, match=f"{failed}the runner is not built"):
        mslite.ModelParallelRunner().update_weights(weights)
    with changeable_runner(path) as fixed:
        with pytest.raises(EngineError, match=f"{failed}no weight of this model may change"):
            fixed.update_weights(weights)
        assert version(fixed) == "0"
    runner.close()
    with pytest.raises(ClosedError, match=f"{failed}the runner was closed"):
        runner.update_weights(weights)


def test_other_sizes_follow_the_weights_whether_met_before_or_not(
    runner: mslite.ModelParallelRunner,
) -> None:
    assert told(runner, 5) == 0
    update(runner, versions(1))
    assert [told(runner, rows) for rows in (5, 7, ROWS)] == [1, 1, 1]
    update(runner, versions(2))
    assert [told(runner, rows) for rows in (7, 5, ROWS)] == [2, 2, 2]


def test_submitted_requests_follow_the_weights(runner: mslite.ModelParallelRunner) -> None:
    update(runner, versions(3))
    (y,) = runner.submit([np.ones((ROWS, SIDE), np.float32)]).result(LIMIT_S)
    assert np.unique(y.get_data_to_numpy()) == 3


def test_batched_requests_follow_the_weights(tmp_path: Path) -> None:
    path = written(tmp_path / "open.mindir", telling_net(-1))
    batching = {"max_batch_rows": 8, "max_batch_wait_us": 60_000_000}  # until there are 8
    one = np.ones((1, SIDE), np.float32)
    with changeable_runner(path, *A_AND_B, workers_num=1, **batching) as runner:
        for number in range(3):
            if number:
                update(runner, versions(number))
            futures = [runner.submit([one]) for _ in range(8)]
            found = [future.result(LIMIT_S)[0].get_data_to_numpy() for future in futures]
            assert np.unique(found) == number
        assert runner.statistics().batches == {8: 3}


def test_a_request_of_many_rows_runs_in_parts_that_see_the_same_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path / "open.mindir", telling_net(-1))
    cut = joining.pieces
    with changeable_runner(path, *A_AND_B, workers_num=1, max_batch_rows=2) as runner:

        def change_between(*args: Any) -> Iterator[list[np.ndarray]]:
            for number, part in enumerate(cut(*args)):
                if number:
                    update(runner, versions(number))
                yield part

        monkeypatch.setattr(joining, "pieces", change_between)
        assert told(runner, 6) == 0
        assert version(runner) == "2"


# --- all sessions ---------------------------------------------------------------------------------


@pytest.mark.usefixtures("eight_cores")
@pytest.mark.parametrize(("workers", "threads"), [(0, 0), (3, 2), (4, 1)])
@pytest.mark.parametrize("stored", ["on", "off"])
def test_the_sessions_of_all_widths_change_together(
    path: Path, monkeypatch: pytest.MonkeyPatch, workers: int, threads: int, stored: str
) -> None:
    monkeypatch.setenv("MSLITE_CACHE", stored)
    x = [np.ones((ROWS, SIDE), np.float32)]
    with changeable_runner(path, *A_AND_B, workers_num=workers, threads=threads) as runner:
        placed = runner._loaded._placed  # type: ignore[union-attr]
        assert placed.changing is not None
        sessions = [lane.session for place in placed.places for lane in place.lanes]
        for number in (1, 2):
            update(runner, versions(number))
            for session in (*sessions, placed.changing.quick):
                assert np.unique(session.run(x)[0]) == number


def test_the_quick_way_follows_the_weights(path: Path) -> None:
    """Of a model that runs in microseconds, callers compute themselves."""
    context = mslite.Context()
    context.cpu.thread_num = 1
    context.parallel.config_info = {"ascend_context": {"variable_weights_list": "a,b"}}
    with mslite.ModelParallelRunner() as runner, pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "mindspore_lite.serving.pooled._QUICK_S", 1000.0
        )  # however slow the machine is
        runner.build_from_file(str(path), context)
        assert runner._loaded.pool._quick is not None  # type: ignore[union-attr]
        for number in (1, 2):
            update(runner, versions(number))
            assert told(runner) == number
            assert told(runner, 5) == number


# --- many threads ---------------------------------------------------------------------------------


@pytest.mark.usefixtures("eight_cores")
@pytest.mark.parametrize("parallel", [{"workers_num": 2}, {}, {"workers_num": 2, "threads": 2}])
def test_every_request_sees_one_version_and_none_older_than_the_last_update(
    path: Path, parallel: dict[str, int]
) -> None:
    last, updates = 0, 20  # last: the version of the last update that returned
    end = threading.Event()

    with changeable_runner(path, *A_AND_B, **parallel) as runner:

        def predicts(number: int) -> list[str]:
            rows, before, problems = ROWS + number % 2, 0.0, []
            while not end.is_set():
                least = last
                found = told(runner, rows)
                if found < max(least, before):
                    problems.append(f"{found} after {least} and {before}")
                before = found
            return problems

        with ThreadPoolExecutor(6) as threads:
            asked = [threads.submit(predicts, number) for number in range(6)]
            try:
                for number in range(1, updates + 1):
                    update(runner, versions(number))
                    last = number
            finally:
                end.set()
            assert [future.result(LIMIT_S) for future in asked] == [[]] * 6
        assert (told(runner), version(runner)) == (updates, str(updates))
        statistics = runner.statistics()
        assert statistics.failed == 0


def test_requests_are_answered_while_an_update_is_under_way(
    runner: mslite.ModelParallelRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, may_go_on = threading.Event(), threading.Event()
    original = building._reopened

    def slow(*args: Any) -> Any:
        began.set()
        assert may_go_on.wait(LIMIT_S)
        return original(*args)

    monkeypatch.setattr(building, "_reopened", slow)
    thread = threading.Thread(target=update, args=(runner, versions(1)))
    thread.start()
    assert began.wait(LIMIT_S)
    assert (told(runner), version(runner)) == (0, "0")
    may_go_on.set()
    thread.join(LIMIT_S)
    assert (told(runner), version(runner)) == (1, "1")


def test_an_update_that_ends_after_the_runner_was_closed_leaves_nothing_open(
    runner: mslite.ModelParallelRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, may_go_on = threading.Event(), threading.Event()
    made = []

    def slow(session: Any, replaced: Any) -> Any:
        opener = session.opener()
        began.set()
        assert may_go_on.wait(LIMIT_S)
        made.append(opener(replaced))
        return made[-1]

    monkeypatch.setattr(building, "_reopened", slow)
    updating = begun(lambda: update(runner, versions(1)))
    assert began.wait(LIMIT_S)
    runner.close()
    may_go_on.set()
    with pytest.raises(ClosedError, match=r"^update weight failed! .*was closed meanwhile; build"):
        updating()
    assert version(runner) == "0"
    (late,) = made
    with pytest.raises(ClosedError):
        late.run([np.ones((ROWS, SIDE), np.float32)])


def test_an_update_that_begins_when_the_runner_was_closed_says_so(
    runner: mslite.ModelParallelRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = building._reopened

    def late(*args: Any) -> Any:
        runner.close()
        return original(*args)

    monkeypatch.setattr(building, "_reopened", late)
    with pytest.raises(ClosedError, match=r"^update weight failed! Error is the session is closed"):
        update(runner, versions(1))


# --- fork -----------------------------------------------------------------------------------------

FORK = """
import os, sys, warnings
from pathlib import Path
warnings.filterwarnings("ignore", message=".*fork.*", category=DeprecationWarning)
from support.updates import changeable_runner, told, update, versions
runner = changeable_runner(Path(sys.argv[1]), "a", "b", workers_num=2)
update(runner, versions(1))
child = os.fork()
if child == 0:
    for call in (lambda: told(runner), lambda: update(runner, versions(2))):
        try:
            call()
        except RuntimeError as exc:
            assert "the runner was built before this process was forked" in str(exc), exc
        else:
            raise AssertionError("no error")
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
update(runner, versions(3))
print(told(runner))
"""


def test_a_forked_child_gets_a_clear_error_and_the_parent_goes_on(path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", FORK, str(path)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=2 * LIMIT_S,
        check=False,
    )
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "3.0\n")


def test_outputs_of_the_caller_are_filled_after_an_update_too(
    runner: mslite.ModelParallelRunner,
) -> None:
    update(runner, versions(2))
    given = mslite.Tensor(shape=[ROWS, 2 * SIDE], dtype=mslite.DataType.FLOAT32)
    runner.predict([np.ones((ROWS, SIDE), np.float32)], [given])
    assert np.unique(given.get_data_to_numpy()) == 2
    assert np.unique(outputs(runner, np.ones((ROWS, SIDE), np.float32))[0]) == 2
