"""Ctrl-C in a program of its own: a predict that waits ends at once, and the next one works."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.fake_engine import LIMIT_S
from support.models import looping

import mindspore_lite as mslite

ROOT = Path(mslite.__file__).parent.parent

HEAD = """
import asyncio, logging, os, signal, sys, threading, time
import numpy as np
import mindspore_lite as mslite

logging.basicConfig(stream=sys.stdout, format="%(message)s")
path, engine = sys.argv[1:]
X = np.array([3, 4], np.float32)
QUICK, NEVER = [np.array(3), X], [np.array(2_000_000_000), X]

def context(**parallel):
    made = mslite.Context()
    made.cpu.thread_num = 1
    made.parallel.config_info = {"common_context": {"engine": engine}}
    for name, value in parallel.items():
        setattr(made.parallel, name, value)
    return made

def model():
    made = mslite.Model()
    config = {"common_context": {"engine": engine}}
    made.build_from_file(path, mslite.ModelType.ONNX, context(), config_dict=config)
    return made

def runner(**parallel):
    made = mslite.ModelParallelRunner()
    made.build_from_file(path, context(**parallel))
    return made

def devices():
    made = mslite.MultiDeviceRunner()
    made.build_from_file(path, context(device_ids=[0]))
    return made

def running(used):
    # a Model does not say so, but the processor time of its endless run does
    tick, start_s = threading.Event(), time.process_time()
    while used is None and time.process_time() - start_s < 0.2:
        tick.wait(0.01)
    while used is not None and not used.statistics().running:
        tick.wait(0.01)

def interrupt(used):
    def ask():
        running(used)
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=ask).start()

def never(used, counts=True):
    interrupt(used if counts else None)
    try:
        used.predict(NEVER)
    except KeyboardInterrupt:
        print("interrupted", flush=True)

def again(used):
    print(*used.predict(QUICK)[0].get_data_to_numpy(), flush=True)
"""

PATHS = {
    "model": "used = model(); never(used, False); again(used)",
    "runner": "used = runner(workers_num=1); never(used); again(used); used.close()",
    "caller computes": (
        "used = runner(workers_num=1); again(used); again(used); never(used); used.close()"
    ),
    "quick": "used = runner(); again(used); never(used); used.close()",
    "devices": "used = devices(); never(used); again(used); used.close()",
}


@pytest.fixture
def loop(tmp_path: Path) -> Path:
    return looping(tmp_path / "loop.onnx")


def run(body: str, path: Path, engine: str = "onnxruntime") -> str:
    """What a program prints, which must end by itself, and well."""
    done = subprocess.run(
        [sys.executable, "-c", HEAD + body, str(path), engine],
        capture_output=True,
        text=True,
        timeout=2 * LIMIT_S,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("path", PATHS)
def test_ctrl_c_ends_predict_and_the_next_one_works(path: str, loop: Path) -> None:
    said = run(PATHS[path], loop).splitlines()
    assert sorted(set(said)) == ["3.0 4.0", "interrupted"]


@pytest.mark.parametrize("path", ["model", "runner"])
def test_ctrl_c_ends_predict_on_torch(path: str, loop: Path) -> None:
    pytest.importorskip("torch", reason="the torch engine needs PyTorch")
    assert run(PATHS[path], loop, "torch").splitlines() == ["interrupted", "3.0 4.0"]


def test_a_run_that_openvino_cannot_stop_is_left_and_the_program_can_end(loop: Path) -> None:
    """A loop is one operator there: it is not stopped, but the call ends, and so does the exit."""
    pytest.importorskip("openvino", reason="the OpenVINO engine needs openvino")
    said = run("used = model(); never(used, False)", loop, "openvino").splitlines()
    assert said[-1] == "interrupted"
    assert "its thread is left to itself" in said[0]


def test_ctrl_c_ends_a_predict_that_waits_in_the_queue(loop: Path) -> None:
    body = """
used = runner(workers_num=1)
first = used.submit(NEVER)
running(used)
def ask():
    tick = threading.Event()
    while not used.statistics().queued:
        tick.wait(0.01)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=ask).start()
try:
    used.predict(QUICK)
except KeyboardInterrupt:
    print("interrupted", used.statistics().queued, first.running() or not first.done())
first.cancel()
again(used)
used.close()
"""
    assert run(body, loop).splitlines() == ["interrupted 0 True", "3.0 4.0"]


def test_a_handler_that_returns_is_called_at_once_and_the_run_goes_on(loop: Path) -> None:
    body = """
used = runner(workers_num=1)
def told(number, frame):
    print("told", used.statistics().running, flush=True)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    interrupt(used)
signal.signal(signal.SIGINT, told)
never(used)
used.close()
"""
    assert run(body, loop).splitlines() == ["told 1", "interrupted"]


def test_the_programs_own_wake_up_descriptor_still_gets_the_signal(loop: Path) -> None:
    body = """
import socket
read, write = socket.socketpair()
write.setblocking(False)
signal.set_wakeup_fd(write.fileno())
used = model()
never(used, False)
read.settimeout(120)
print(read.recv(1)[0] == signal.SIGINT, signal.set_wakeup_fd(-1) == write.fileno())
"""
    assert run(body, loop).splitlines() == ["interrupted", "True True"]


def test_ctrl_c_in_asyncio_cancels_what_is_awaited(loop: Path) -> None:
    body = """
used = runner(workers_num=1)
async def main():
    await used.predict_async(NEVER)
interrupt(used)
try:
    asyncio.run(main())
except KeyboardInterrupt:
    print("interrupted", used.statistics().cancelled)
again(used)
used.close()
"""
    assert run(body, loop).splitlines() == ["interrupted 1", "3.0 4.0"]


def test_predict_on_another_thread_leaves_ctrl_c_to_the_main_thread(loop: Path) -> None:
    body = """
used = runner(workers_num=1)
ended = []
def predict():
    try:
        used.predict(NEVER)
    except mslite.model.LiteError as exc:
        ended.append(type(exc).__name__)
thread = threading.Thread(target=predict)
thread.start()
try:
    interrupt(used)
    thread.join()
except KeyboardInterrupt:
    print("interrupted", used.statistics().running)
used.close(0.0)
thread.join()
print(*ended)
"""
    assert run(body, loop).splitlines() == ["interrupted 1", "ClosedError"]
