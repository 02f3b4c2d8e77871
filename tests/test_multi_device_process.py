"""multi_device.py and the life of a process: forks, forgotten runners, its end, and its death."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest
from support.devices import (
    context,
    device,
    has_ended,
    on_devices,
    shared_memory,
    stop_process,
    worker_pids,
)
from support.fake_engine import LIMIT_S, wait_for
from support.models import ENDLESS, arrays, looping

import mindspore_lite as mslite

ROOT = Path(mslite.__file__).parent.parent
X = np.array([3, 4], np.float32)
QUICK = [np.array(3), X]

HEAD = """
import asyncio, os, signal, sys, threading
import numpy as np
import mindspore_lite as mslite

X = np.array([3, 4], np.float32)
QUICK, NEVER = [np.array(3), X], [np.array(2**62), X]

def build(path=sys.argv[1], ids=[0, 1]):
    context = mslite.Context()
    context.cpu.thread_num = 1
    context.parallel.workers_num = 1
    context.parallel.device_ids = ids
    runner = mslite.MultiDeviceRunner()
    runner.build_from_file(path, context)
    print(*(device.pid for device in runner.statistics().devices), flush=True)
    return runner

def computing(runner, count=1):
    while sum(d.runner["running"] for d in runner.statistics().devices) < count:
        os.sched_yield()
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return looping(tmp_path / "loop.onnx")


def begun(body: str, model: Path) -> subprocess.Popen[str]:
    """A program that runs; warnings are errors in it, and its workers."""
    return subprocess.Popen(
        [sys.executable, "-X", "dev", "-c", HEAD + body, str(model)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error"},
    )


def run(body: str, model: Path) -> list[str]:
    """Run a program, which must end by itself, well and without a word on stderr; its lines."""
    with begun(body, model) as program:
        said, complaints = program.communicate(timeout=2 * LIMIT_S)
    assert (program.returncode, complaints) == (0, "")
    return said.splitlines()


def all_ended(pids: str) -> bool:
    return all(has_ended(int(pid)) for pid in pids.split())


# --- the interpreter's end ------------------------------------------------------------------------

ENDS = {
    "idle": "runner = build(); runner.predict(QUICK)",
    "closed": "runner = build(); runner.close()",
    "in a circle": "runner = build(); runner.me = runner; del runner",
    "a future under way": "runner = build(); f = runner.submit(NEVER); computing(runner)",
    "a daemon under way": (
        "runner = build()\n"
        "threading.Thread(target=lambda: runner.predict(NEVER), daemon=True).start()\n"
        "computing(runner)"
    ),
    "a coroutine that was given up": (
        "runner = build()\n"
        "async def main():\n"
        "    asyncio.get_running_loop().slow_callback_duration = 60\n"  # under load all are
        "    task = asyncio.ensure_future(runner.predict_async(NEVER))\n"
        "    while not runner.statistics().running: await asyncio.sleep(0)\n"
        "asyncio.run(main())\n"
    ),
    "sys.exit": "runner = build(); f = runner.submit(NEVER); computing(runner); sys.exit(0)",
    "a worker that died": (
        "runner = build()\n"
        "os.kill(runner.statistics().devices[0].pid, signal.SIGKILL)\n"
        "import logging; logging.disable()"
    ),
}


@pytest.mark.parametrize("body", ENDS.values(), ids=ENDS)
def test_a_program_that_does_not_close_its_runner_ends_and_leaves_nothing(
    body: str, model: Path
) -> None:
    before = shared_memory()
    (pids,) = run(body, model)
    assert all_ended(pids)
    assert shared_memory() <= before


@pytest.mark.parametrize(
    "body",
    [
        "runner = build(); signal.pause()",
        "runner = build(); f = runner.submit(NEVER); computing(runner); signal.pause()",
        "runner = build(); runner.predict_parts([NEVER, NEVER])",
    ],
    ids=["idle", "a future under way", "in predict"],
)
def test_the_workers_of_a_killed_program_end(body: str, model: Path) -> None:
    before = shared_memory()
    with begun(body, model) as program:
        assert program.stdout is not None
        pids = program.stdout.readline()
        program.kill()
        assert all_ended(pids)
    assert shared_memory() <= before


def test_a_stopped_worker_of_a_killed_program_ends(model: Path) -> None:
    """It cannot see the end of its parent; the kernel wakes it."""
    with begun("runner = build(); signal.pause()", model) as program:
        assert program.stdout is not None
        pids = program.stdout.readline()
        for pid in pids.split():
            stop_process(int(pid))
        program.kill()
        assert all_ended(pids)


def test_the_workers_of_a_program_that_is_killed_while_it_builds_end(tmp_path: Path) -> None:
    model = looping(tmp_path / "never.onnx", turns=2**62)
    with begun("build()", model) as program:
        wait_for(lambda: len(worker_pids(program.pid)) == 2)
        pids = worker_pids(program.pid)
        program.kill()
        assert all(has_ended(pid) for pid in pids)


def test_a_forked_child_does_not_keep_the_workers_of_a_killed_parent(model: Path) -> None:
    body = """
import warnings
warnings.simplefilter("ignore", DeprecationWarning)
runner = build()
child = os.fork()
if child == 0:
    signal.pause()
print(child, flush=True)
signal.pause()
"""
    with begun(body, model) as program:
        assert program.stdout is not None
        pids = program.stdout.readline()
        child = int(program.stdout.readline())
        program.kill()
        try:
            assert all_ended(pids)
        finally:
            os.kill(child, signal.SIGKILL)


def test_ctrl_c_on_the_terminal_reaches_the_program_and_not_its_workers(model: Path) -> None:
    body = """
runner = build()
runner.predict(QUICK)
ask = threading.Thread(target=lambda: (computing(runner, 2), os.killpg(0, signal.SIGINT)))
ask.start()
try:
    runner.predict_parts([NEVER, NEVER])
except KeyboardInterrupt:
    print("interrupted")
ask.join()
assert runner.predict(QUICK)[0].shape == [2]
print("restarts", *(d.restarts for d in runner.statistics().devices))
runner.close()
"""
    with subprocess.Popen(
        [sys.executable, "-c", HEAD + body, str(model)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        start_new_session=True,  # a group of its own, as a terminal has it
    ) as program:
        said, complaints = program.communicate(timeout=2 * LIMIT_S)
    assert (said.splitlines()[1:], complaints) == (["interrupted", "restarts 0 0"], "")


# --- fork -----------------------------------------------------------------------------------------

FORK = """
import warnings
warnings.filterwarnings("ignore", message=".*fork.*", category=DeprecationWarning)
runner = build()
runner.predict(QUICK)
future = runner.submit(NEVER)
computing(runner)
child = os.fork()
if child == 0:
    for call in (
        lambda: runner.predict(QUICK),
        lambda: runner.predict(QUICK, timeout_s=120),
        lambda: runner.predict_parts([QUICK], return_errors=True),
        lambda: runner.submit(QUICK),
        lambda: asyncio.run(runner.predict_async(QUICK)),
    ):
        try:
            call()
        except RuntimeError as exc:
            assert str(exc).startswith("predict failed! the runner was built before"), exc
            assert "build it in the child, or use the spawn start method" in str(exc)
        else:
            raise AssertionError("no error")
    assert not runner.is_ready()
    assert not future.cancel()
    runner.statistics()
    runner.close()
    del runner
    mine = build()
    assert mine.predict(QUICK)[0].shape == [2]
    mine.close()
    sys.exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert runner.is_ready()
assert runner.predict(QUICK)[0].shape == [2]
assert future.cancel()
runner.close()
print("parent is well")
"""


def test_a_child_gets_a_clear_error_and_the_parent_goes_on(model: Path) -> None:
    assert run(FORK, model)[-1] == "parent is well"


# --- forgotten runners ----------------------------------------------------------------------------


def watching() -> set[threading.Thread]:
    return {t for t in threading.enumerate() if t.name.startswith("mslite-device")}


def test_a_runner_that_nobody_refers_to_ends_its_workers(model: Path) -> None:
    before = watching()
    runner = mslite.MultiDeviceRunner()
    runner.build_from_file(str(model), context())
    runner.predict(QUICK)
    runner.submit(QUICK).result(LIMIT_S)
    pids = [d.pid for d in runner.statistics().devices]
    gone = weakref.ref(runner)
    del runner
    gc.collect()
    assert gone() is None
    assert all(has_ended(pid) for pid in pids)
    wait_for(lambda: not watching() - before)


def test_what_a_forgotten_runner_was_asked_is_still_answered(model: Path) -> None:
    runner = mslite.MultiDeviceRunner()
    runner.build_from_file(str(model), context())
    pids = [d.pid for d in runner.statistics().devices]
    futures = [runner.submit([np.array(2**16), X]) for _ in range(4)]
    del runner
    gc.collect()
    for future in futures:
        np.testing.assert_array_equal(arrays(future.result(LIMIT_S))[0], X)
    del future, futures
    gc.collect()
    assert all(has_ended(pid) for pid in pids)


def test_a_forgotten_runner_that_starts_again_is_ended_as_well(tmp_path: Path) -> None:
    """While its device builds, which may take long."""
    path = looping(tmp_path / "m.onnx", turns=3)
    runner = mslite.MultiDeviceRunner()
    runner.build_from_file(str(path), context([0]))
    looping(path, turns=2**62)  # so long that it never ends
    first = device(runner, 0).pid
    os.kill(first, signal.SIGKILL)
    while (second := device(runner, 0).pid) in (0, first):
        os.sched_yield()
    del runner
    gc.collect()
    assert has_ended(second)


def test_many_builds_leave_no_descriptor_thread_or_process(model: Path) -> None:
    def files() -> int:
        gc.collect()
        return len(os.listdir("/proc/self/fd"))

    def once() -> None:
        with on_devices(model, [0]) as runner:
            runner.predict(QUICK)
            future = runner.submit([ENDLESS, X])
            wait_for(lambda: runner.statistics().running == 1)
            future.cancel()

    once()
    wait_for(lambda: not watching())
    before, workers = files(), worker_pids()
    for _ in range(3):
        once()
    wait_for(lambda: files() <= before and not watching() and worker_pids() == workers)
