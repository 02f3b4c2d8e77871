"""runner.py and the life of a process: forks, forgotten runners, the interpreter's end, leaks."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import wait
from pathlib import Path

import numpy as np
import pytest
from support.fake_engine import LIMIT_S, wait_for
from support.mindir_builder import Net, encode
from support.models import DIGITS, ENDLESS, built_runner, dense_net, looping, written

import mindspore_lite as mslite

ROOT = Path(mslite.__file__).parent.parent
X = np.array([3, 4], np.float32)

HEAD = """
import asyncio, atexit, os, sys, threading
import numpy as np
import mindspore_lite as mslite
from mindspore_lite.serving import pool as pool_module

pool_module._EXIT_S = 0.05
X = np.array([3, 4], np.float32)
QUICK, NEVER = [np.array(3), X], [np.array(2**62), X]

def build(path=sys.argv[1], workers=1):
    context = mslite.Context()
    context.cpu.thread_num = 1
    context.parallel.workers_num = workers
    runner = mslite.ModelParallelRunner()
    runner.build_from_file(path, context)
    return runner

def running(runner):
    while not runner.statistics().running:
        os.sched_yield()
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return looping(tmp_path / "loop.onnx")


def run(body: str, *arguments: object) -> str:
    """Run a program; it must end by itself, well and without a word on stderr."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error"}
    done = subprocess.run(
        [sys.executable, "-c", HEAD + body, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=2 * LIMIT_S,
        env=environment,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


# --- fork -----------------------------------------------------------------------------------------

FORK = """
import warnings
warnings.filterwarnings("ignore", message=".*fork.*", category=DeprecationWarning)
before = build()
before.predict(QUICK)
busy = build()
future = busy.submit(NEVER)
running(busy)
quick = mslite.ModelParallelRunner()
quick.build_from_file(sys.argv[2])
quick.predict([X.reshape(1, 2)])
pools = [r._loaded.pool for r in (before, busy)]
for pool in pools:
    pool._lock.acquire()  # as another thread might hold it at the very moment of the fork
child = os.fork()
if child == 0:
    for runner, given in ((before, QUICK), (busy, QUICK), (quick, [X.reshape(1, 2)])):
        for call in (
            lambda: runner.predict(given),
            lambda: runner.predict(given, timeout_s=120),
            lambda: runner.submit(given),
            lambda: asyncio.run(runner.predict_async(given)),
        ):
            try:
                call()
            except RuntimeError as exc:
                assert str(exc).startswith("predict failed! the runner was built before"), exc
                assert "build it in the child, or use the spawn start method" in str(exc)
            else:
                raise AssertionError("no error")
        runner.statistics()
        runner.close()
    future.cancel()
    mine = build()
    assert mine.predict(QUICK)[0].shape == [2]
    assert mine.predict(QUICK, timeout_s=120)[0].shape == [2]
    mine.close()
    print("child is well", flush=True)
    sys.exit(0)
for pool in pools:
    pool._lock.release()
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert before.predict(QUICK)[0].shape == [2]
assert quick.predict([X.reshape(1, 2)])[0].shape == [1, 2]
assert future.cancel()
assert busy.predict(QUICK)[0].shape == [2]
print("parent is well")
"""


def relu(path: Path) -> Path:
    net = Net()
    return written(path, encode(net.model(net.call("ReLU", net.input("x", (1, 2))))))


def test_a_child_gets_a_clear_error_and_the_parent_goes_on(model: Path, tmp_path: Path) -> None:
    said = run(FORK, model, relu(tmp_path / "relu.mindir"))
    assert said == "child is well\nparent is well\n"


# --- the interpreter's end ------------------------------------------------------------------------

ENDS = {
    "idle": "build(workers=1).predict(QUICK); runner = build()",
    "never used": "runner = build()",
    "closed": "runner = build(); runner.close()",
    "in a circle": "runner = build(); runner.me = runner; del runner",
    "an endless run in a future": "runner = build(); f = runner.submit(NEVER); running(runner)",
    "waiting futures with callbacks": (
        "runner = build()\n"
        "futures = [runner.submit(NEVER) for _ in range(5)]\n"
        "for f in futures: f.add_done_callback(lambda f: f.exception())\n"
    ),
    "futures with a deadline far away": (
        "runner = build(); f = [runner.submit(NEVER, timeout_s=1e6) for _ in range(3)]"
    ),
    "a daemon in an endless run": (
        "runner = build()\n"
        "threading.Thread(target=lambda: runner.predict(NEVER), daemon=True).start()\n"
        "running(runner)\n"
        "threading.excepthook = lambda args: None  # its ClosedError is its own matter\n"
    ),
    "daemons that ask and ask": (
        "runner = build()\n"
        "def ask():\n"
        "    try:\n"
        "        while True: runner.predict(QUICK)\n"
        "    except RuntimeError: pass\n"
        "for _ in range(4): threading.Thread(target=ask, daemon=True).start()\n"
        "while runner.statistics().done < 100: os.sched_yield()\n"
    ),
    "a thread that is no daemon": (
        "runner = build()\n"
        "def ask():\n"
        "    for _ in range(50): runner.predict(QUICK)\n"
        "threading.Thread(target=ask).start()\n"
    ),
    "a coroutine that was given up": (
        "runner = build()\n"
        "async def main():\n"
        "    asyncio.get_running_loop().slow_callback_duration = 60\n"  # under load all are
        "    task = asyncio.ensure_future(runner.predict_async(NEVER))\n"
        "    while not runner.statistics().running: await asyncio.sleep(0)\n"
        "asyncio.run(main())\n"
    ),
    "sys.exit in the main thread": (
        "runner = build(); f = runner.submit(NEVER); running(runner); sys.exit(0)"
    ),
    "when no thread can be started any more": (  # as Python 3.12 and later do
        "runner = build(); f = runner.submit(NEVER); running(runner)\n"
        "f.add_done_callback(lambda f: f.exception())\n"
        'def refuse(self): raise RuntimeError("can\'t create new thread at interpreter shutdown")\n'
        "atexit.register(lambda: setattr(threading.Thread, 'start', refuse))\n"
    ),
}


@pytest.mark.parametrize("body", ENDS.values(), ids=ENDS)
def test_a_forgotten_runner_does_not_hold_up_the_end(body: str, model: Path) -> None:
    assert run(body, model) == ""


# --- forgotten runners ----------------------------------------------------------------------------


def workers() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name.startswith("mslite-worker")]


def test_a_runner_that_nobody_refers_to_ends_its_threads(model: Path) -> None:
    before = set(workers())
    runner = built_runner(model, workers_num=1)
    runner.predict([np.array(3), X])
    mine = set(workers()) - before
    assert len(mine) == 1
    gone = weakref.ref(runner)
    del runner
    gc.collect()
    assert gone() is None
    for thread in mine:
        thread.join(LIMIT_S)
        assert not thread.is_alive()


def test_what_a_forgotten_runner_was_asked_is_still_answered(model: Path) -> None:
    before = set(workers())
    futures = [built_runner(model, workers_num=1).submit([np.array(3), X]) for _ in range(3)]
    gc.collect()
    for future in futures:
        np.testing.assert_array_equal(future.result(LIMIT_S)[0].get_data_to_numpy(), X)
    wait_for(lambda: not set(workers()) - before)


def test_a_runner_that_was_forgotten_while_it_runs_can_be_stopped(model: Path) -> None:
    runner = built_runner(model, workers_num=1)
    future = runner.submit([ENDLESS, X])
    before = set(workers())
    del runner
    gc.collect()
    assert future.cancel()
    wait_for(lambda: len(set(workers()) & before) < len(before))


@pytest.mark.parametrize("how", ["done", "cancelled", "timed out", "closed"])
def test_a_future_and_its_results_go_with_the_last_reference(model: Path, how: str) -> None:
    """Without the garbage collector, which does not know how large the arrays are."""
    runner = built_runner(model, workers_num=1)
    gc.collect()
    gc.disable()
    try:
        given = [np.array(3) if how == "done" else ENDLESS, X]
        future = runner.submit(given, timeout_s=0.01 if how == "timed out" else None)
        if how == "cancelled":
            future.cancel()
        if how == "closed":
            runner.close(0)
        wait([future], LIMIT_S)
        gone = weakref.ref(future)
        del future
        wait_for(lambda: gone() is None)
    finally:
        gc.enable()
        runner.close(0)


FAILURES: dict[str, Callable[[mslite.ModelParallelRunner, np.ndarray], object]] = {
    "on the caller's thread": lambda r, x: r.predict([np.array(3), x]),
    "on a worker's thread": lambda r, x: r.predict([np.array(3), x], timeout_s=LIMIT_S),
    "in a Future": lambda r, x: r.submit([np.array(3), x]).result(LIMIT_S),
    "by its deadline": lambda r, x: r.predict([ENDLESS, x[:2]], timeout_s=0.01),
}


@pytest.mark.parametrize("fail", FAILURES.values(), ids=FAILURES)
def test_what_a_failed_request_was_given_goes_with_its_error(
    model: Path, fail: Callable[[mslite.ModelParallelRunner, np.ndarray], object]
) -> None:
    runner = built_runner(model, workers_num=1)
    gc.collect()
    gc.disable()
    try:
        x = np.zeros(3, np.float32)  # one too many, which the engine notices
        gone = weakref.ref(x)
        with pytest.raises(RuntimeError, match="predict failed! "):
            fail(runner, x)
        del x
        runner.predict([np.array(3), X], timeout_s=LIMIT_S)  # the worker has let go of the first
        wait_for(lambda: gone() is None)
    finally:
        gc.enable()
        runner.close(0)


def test_a_build_that_fails_leaves_no_threads(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    context = mslite.Context()
    context.parallel.max_batch_rows = 4
    path = written(tmp_path / "m.mindir", dense_net())
    with pytest.raises(RuntimeError, match="batching"):
        mslite.ModelParallelRunner().build_from_file(str(path), context)
    gc.collect()
    wait_for(lambda: set(threading.enumerate()) <= before)


# --- leaks ----------------------------------------------------------------------------------------

MANY = """
import gc
def own_kib():
    with open("/proc/self/smaps_rollup") as file:
        return sum(int(line.split()[1]) for line in file if line.startswith(("Private_", "Swap:")))

def state():
    gc.collect()
    return threading.active_count(), len(os.listdir("/proc/self/fd")), own_kib()

def once(runner=None):
    if runner is None:
        runner = mslite.ModelParallelRunner()
    context = mslite.Context()
    context.parallel.workers_num = 2
    context.cpu.thread_num = 1
    runner.build_from_file(sys.argv[1], context)
    runner.predict(given)
    runner.submit(given).result()
    runner.predict(given, timeout_s=120)
    runner.close()

import warnings
warnings.simplefilter("ignore")
given = [np.zeros((1, 1, 8, 8), np.float32)]
reused = mslite.ModelParallelRunner()
for _ in range(20):
    once()
    once(reused)
before = state()
for _ in range(100):
    once()
    once(reused)
after = state()
print(after[0] - before[0], after[1] - before[1], after[2] - before[2])
"""


def test_two_hundred_runners_leave_nothing_behind() -> None:
    """Half of them are one object that is built again and again."""
    threads, files, kib = map(int, run(MANY, DIGITS).split())
    assert (threads, files) == (0, 0)
    assert kib < 6144, "of own memory; a leak of one closed pool each was seen as 16 MiB"
