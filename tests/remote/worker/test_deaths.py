"""What is left of workers and clients that are killed: for the other side a clear error at once,
for the machine nothing."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest
from support.fake_engine import LIMIT_S, Client, wait_for
from support.models import ENDLESS, looping
from support.workers import (
    MAIN,
    Watch,
    X,
    blocks_of,
    child,
    connected,
    file_build,
    holders,
    listening,
    process,
)

from mindspore_lite.errors import WorkerDiedError
from mindspore_lite.remote.wire.bodies import MODEL, RUNNER
from mindspore_lite.remote.wire.client import WireSession
from mindspore_lite.serving.call import Call

ONNX = 3
SLOW_BUILD = """
import threading
import mindspore_lite.remote.worker.client_session as client_session
def built(*_):
    print("building", flush=True)
    threading.Event().wait()
client_session.built = built
"""


@pytest.fixture
def loop(tmp_path: Path) -> Path:
    return looping(tmp_path / "loop.onnx")


# --- kill -9 of the worker ------------------------------------------------------------------------


def test_a_worker_that_is_killed_while_idle_is_an_error_for_the_next_call(loop: Path) -> None:
    with child() as (worker, session):
        model = session.build(file_build(loop, ONNX))
        worker.kill()
        worker.wait()
        with pytest.raises(WorkerDiedError, match="the worker is gone"):
            model.predict([np.array(3), X])
        with pytest.raises(WorkerDiedError):
            session.info("pid")


def test_a_worker_that_is_killed_while_building_is_an_error_at_once() -> None:
    with child(SLOW_BUILD) as (worker, session):
        call = Client(lambda: session.build(file_build("any")))
        assert worker.stdout is not None
        assert worker.stdout.readline() == "building\n"
        worker.kill()
        assert isinstance(call.ended().error, WorkerDiedError)


@pytest.mark.parametrize("kind", [MODEL, RUNNER])
def test_a_worker_that_is_killed_while_predicting_is_an_error_for_all_at_once(
    kind: int, loop: Path
) -> None:
    with child() as (worker, session):
        model = session.build(file_build(loop, ONNX, kind))
        calls = [model.start(Call([ENDLESS, X])) for _ in range(3)]
        waiting = [Client(call.outputs) for call in calls]
        worker.send_signal(signal.SIGKILL)
        for client in waiting:
            assert isinstance(client.ended().error, WorkerDiedError)


def test_memory_shared_with_a_worker_that_was_killed_goes_with_its_client(loop: Path) -> None:
    with child() as (worker, session):
        lane = session.lane()
        lane.bring([np.ones(1 << 20, np.float32)])
        blocks = blocks_of(worker.pid)
        assert blocks
        assert set(holders(blocks)) == {worker.pid, os.getpid()}
        worker.kill()
        worker.wait()
        assert lane._inputs is not None
        assert bytes(lane._inputs.view[:4]) == np.float32(1).tobytes()  # valid still
        lane.drop()
        del lane
        assert holders(blocks) == []


def test_the_socket_of_a_worker_that_was_killed_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "w.sock"
    with listening(path) as worker:
        worker.kill()
    assert path.exists()
    with pytest.raises(WorkerDiedError, match="no worker answers"):
        WireSession.connect(str(path))
    with listening(path):
        WireSession.connect(str(path)).close()


# --- kill -9 of the client ------------------------------------------------------------------------

OWNER = """
import subprocess, sys, socket, threading
import numpy as np
from mindspore_lite.serving.call import Call
from mindspore_lite.remote.wire.bodies import Build
from mindspore_lite.remote.wire.client import WireSession

ours, theirs = socket.socketpair()
number = theirs.fileno()
worker = subprocess.Popen([sys.executable, "-c", sys.argv[1], "worker", "--fd", str(number)],
                          pass_fds=[number])
theirs.close()
session = WireSession(ours)
session.lane().bring([np.ones(1 << 20, np.float32)])
"""
CLIENT = """
import sys
import numpy as np
from mindspore_lite.serving.call import Call
from mindspore_lite.remote.wire.bodies import Build
from mindspore_lite.remote.wire.client import WireSession
session = WireSession.connect(sys.argv[1])
session.lane().bring([np.ones(1 << 20, np.float32)])
"""
DOING = {
    "idle": "print(session.pid, flush=True)\nsys.stdin.read()\n",
    "building": "print(session.pid, flush=True)\nsession.build(Build(0, 0, 'any'))\n",
    "predicting": """
model = session.build(Build(1, 3, sys.argv[2], settings={"parallel.workers_num": "1"}))
call = model.start(Call([np.array(2**62), np.array([3, 4], np.float32)]))
while '"running": 1' not in model.statistics():
    pass
print(session.pid, flush=True)
sys.stdin.read()
""",
    "predicting with all lanes closed but the first": """
model = session.build(Build(0, 3, sys.argv[2]))
from mindspore_lite.remote.wire.client import Lane
from mindspore_lite.remote.wire.frames import Channel
lane = Lane(session, Channel(session._owner))
call = Call([np.array(2**62), np.array([3, 4], np.float32)])
lane.send_predict(model.number, ["n", "x"], call)
print(session.pid, flush=True)
sys.stdin.read()
""",
}


@pytest.mark.parametrize("doing", DOING)
def test_a_child_ends_when_its_parent_is_killed_and_leaves_nothing(doing: str, loop: Path) -> None:
    first = SLOW_BUILD if doing == "building" else ""
    with process(OWNER + DOING[doing], first + MAIN, loop, stdin=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        watch = Watch(int(parent.stdout.readline()))
        if doing == "building":
            assert parent.stdout.readline() == "building\n"
        before = set(os.listdir("/dev/shm"))
        blocks = blocks_of(watch.pid)
        assert blocks
        parent.kill()
        watch.ended()
        assert holders(blocks) == []
        assert {name for name in set(os.listdir("/dev/shm")) - before if "mslite" in name} == set()


@pytest.mark.parametrize("doing", DOING)
def test_a_worker_ends_when_its_last_client_is_killed(
    doing: str, loop: Path, tmp_path: Path
) -> None:
    path = tmp_path / "w.sock"
    first = SLOW_BUILD if doing == "building" else ""
    with (
        listening(path, first=first) as worker,
        process(CLIENT + DOING[doing], path, loop, stdin=subprocess.PIPE) as client,
    ):
        assert client.stdout is not None
        assert worker.stdout is not None
        assert int(client.stdout.readline()) == worker.pid
        if doing == "building":
            assert worker.stdout.readline() == "building\n"
        blocks = blocks_of(worker.pid)
        assert blocks
        client.kill()
        out, err = worker.communicate(timeout=LIMIT_S)
        assert (worker.returncode, out, err) == (0, "", "")
        assert holders(blocks) == []
        assert not path.exists()


def test_what_a_killed_client_had_is_gone_and_others_go_on(loop: Path, tmp_path: Path) -> None:
    path = tmp_path / "w.sock"
    with listening(path) as worker, connected(path) as session:
        session.info("pid")
        files = f"/proc/{worker.pid}/fd"
        before = len(os.listdir(files))
        code = CLIENT + DOING["predicting"]
        with process(code, path, loop, stdin=subprocess.PIPE) as client:
            assert client.stdout is not None
            client.stdout.readline()
            assert len(os.listdir(files)) > before
            client.kill()
        wait_for(lambda: len(os.listdir(files)) == before)
        wait_for(lambda: blocks_of(worker.pid) == set())
        assert session.info("pid") == str(worker.pid)
