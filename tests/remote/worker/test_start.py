"""worker/start.py: how a process begins, what it hears, and that it ends and leaves nothing."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
from pathlib import Path

import numpy as np
import pytest
from support.fake_engine import LIMIT_S, Client, wait_for
from support.models import DIGITS, ENDLESS, looping
from support.workers import MAIN, Watch, X, child, connected, file_build, listening, process

from mindspore_lite.errors import CancelledError, ClosedError, WorkerDiedError
from mindspore_lite.remote.wire.bodies import RUNNER
from mindspore_lite.remote.wire.client import STOPPED, Model, Pending, WireSession
from mindspore_lite.serving.call import Call

DIGIT = np.zeros((1, 1, 8, 8), np.float32)
ONNX = 3


def run(worker: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Wait for the end; exit code and what was said."""
    out, err = worker.communicate(timeout=LIMIT_S)
    return worker.returncode, out, err


def endless(session: WireSession, path: Path) -> tuple[Model, Pending]:
    """A run that does not end by itself, and surely is under way."""
    model = session.build(file_build(path, ONNX, RUNNER, **{"parallel.workers_num": "1"}))
    call = model.start(Call([ENDLESS, X]))
    wait_for(lambda: '"running": 1' in model.statistics())
    return model, call


def draining(seconds: float) -> str:
    """What a worker does first so that its requests have so long at its end."""
    return f"from mindspore_lite.remote.worker import server as host\nhost.DRAIN_S = {seconds}"


# --- children -------------------------------------------------------------------------------------


def test_a_child_serves_its_parent_and_ends_with_the_session() -> None:
    with child() as (worker, session):
        assert session.pid == worker.pid
        (found,) = session.build(file_build(DIGITS)).predict([DIGIT])
        assert found.shape == (1, 10)
        session.close()
        assert run(worker) == (0, "", "")


def test_a_child_says_what_it_was_told_at_the_end() -> None:
    with child() as (worker, session):
        session.exit("enough", LIMIT_S)
        assert run(worker) == (0, "Receive exit message enough and start to exit\n", "")


def test_a_child_listens_under_no_name_that_stays() -> None:
    with child() as (worker, session):
        address = session._address
        assert address.startswith(("\0", "@"))
        session.close()
        run(worker)
        refused = pytest.raises(ConnectionRefusedError)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock, refused:
            sock.connect("\0" + address[1:])


def test_a_child_leaves_ctrl_c_to_its_parent() -> None:
    with child() as (worker, session):
        session.info("pid")
        worker.send_signal(signal.SIGINT)
        assert session.info("pid") == str(worker.pid)
        session.close()
        assert run(worker) == (0, "", "")


def test_the_cores_of_a_worker_are_those_it_was_given() -> None:
    first = min(os.sched_getaffinity(0))
    ours, theirs = socket.socketpair()
    arguments = ("worker", "--fd", theirs.fileno(), "--cores", first)
    with theirs, process(MAIN, *arguments, fds=[theirs.fileno()]):
        theirs.close()
        session = WireSession(ours)
        assert session.info("cores") == str(first)
        session.close()


@pytest.mark.parametrize("closed", [(0,), (1,), (0, 1), (0, 1, 2)])
def test_a_worker_needs_neither_stdin_nor_stdout(closed: tuple[int, ...]) -> None:
    first = "import os\n" + "\n".join(f"os.close({number})" for number in closed)
    with child(first) as (worker, session):
        # what a socket in the place of stdout would be told by a print from anywhere
        model = session.build(file_build(DIGITS, kind=RUNNER))
        large = np.zeros((512, 1, 8, 8), np.float32)
        assert model.predict([large])[0].shape == (512, 10)
        session.exit("nobody hears this", LIMIT_S)
        assert worker.wait(LIMIT_S) == 0


def test_a_worker_whose_output_nobody_reads_any_more_still_answers() -> None:
    with child() as (worker, session):
        assert worker.stdout is not None
        worker.stdout.close()
        session.exit("nobody hears this", LIMIT_S)
        assert worker.wait(LIMIT_S) == 0


# --- in a directory of its own --------------------------------------------------------------------


def private_path(worker: subprocess.Popen[str]) -> Path:
    assert worker.stdout is not None
    begin, path = worker.stdout.readline().rstrip("\n").split(" listens on ")
    assert begin == f"mslite worker {worker.pid}"
    return Path(path)


def test_a_private_worker_tells_its_path_and_leaves_nothing() -> None:
    with process(MAIN, "worker", "--private") as worker:
        path = private_path(worker)
        with connected(path) as session:
            assert session.build(file_build(DIGITS)).predict([DIGIT])[0].shape == (1, 10)
            worker.send_signal(signal.SIGINT)  # which is for its parent
            assert session.info("pid") == str(worker.pid)
        assert run(worker) == (0, "", "")
        assert not path.parent.exists()


def test_a_private_worker_ends_by_sigterm_and_leaves_nothing() -> None:
    with process(MAIN, "worker", "--private") as worker:
        path = private_path(worker)
        worker.terminate()
        assert run(worker) == (0, "", "")
        assert not path.parent.exists()


def test_a_private_worker_whose_parent_has_gone_meanwhile_does_not_wait(tmp_path: Path) -> None:
    first = f"import os, tempfile\ntempfile.tempdir = {str(tmp_path)!r}\n"
    read, write = os.pipe()
    os.close(read)  # as the parent's end does
    with process(
        f"{first}os.dup2({write}, 1)\n{MAIN}", "worker", "--private", fds=[write]
    ) as worker:
        os.close(write)
        code, _, err = run(worker)
    assert (code, list(tmp_path.iterdir())) == (1, [])
    assert "the process that started this worker has ended" in err


# --- on a path ------------------------------------------------------------------------------------


def test_a_worker_on_a_path_serves_its_user_and_ends_with_the_last_client(tmp_path: Path) -> None:
    path = tmp_path / "w.sock"
    with listening(path) as worker:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with connected(path) as second:
            with connected(path) as first:
                assert first.build(file_build(DIGITS)).predict([DIGIT])[0].shape == (1, 10)
            assert second.info("pid") == str(worker.pid)
        assert run(worker) == (0, "", "")
        assert not path.exists()


def test_a_worker_that_stays_serves_one_client_after_another(tmp_path: Path) -> None:
    path = tmp_path / "w.sock"
    with listening(path, "--stay") as worker:
        for _ in range(3):
            with connected(path) as session:
                assert session.info("pid") == str(worker.pid)
        worker.terminate()
        assert run(worker) == (0, "", "")
        assert not path.exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_an_idle_worker_and_its_socket(number: int, tmp_path: Path) -> None:
    path = tmp_path / "w.sock"
    with listening(path) as worker, connected(path) as session:
        worker.send_signal(number)
        assert run(worker) == (0, "", "")
        assert not path.exists()
        with pytest.raises(WorkerDiedError):
            session.info("pid")


def test_what_nohup_has_switched_off_stays_off(tmp_path: Path) -> None:
    path = tmp_path / "w.sock"
    first = "import signal\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)"
    with listening(path, first=first) as worker:
        worker.send_signal(signal.SIGHUP)
        with connected(path) as session:
            assert session.info("pid") == str(worker.pid)
        assert run(worker) == (0, "", "")


def test_sigterm_lets_requests_under_way_finish_and_takes_no_new_ones(tmp_path: Path) -> None:
    path = tmp_path / "w.sock"
    with listening(path, first=draining(10 * LIMIT_S)) as worker, connected(path) as session:
        model, call = endless(session, looping(tmp_path / "loop.onnx"))
        for lane in [session.lane() for _ in range(2)]:  # kept, since no new ones are welcome
            lane.give_back()
        worker.terminate()
        wait_for(lambda: not path.exists())
        refused = Client(lambda: [model.statistics() for _ in range(10**6)])
        assert isinstance(refused.ended().error, ClosedError)
        # the one under way is answered, if only because it is told to end
        assert session.cancel(call.request, LIMIT_S, LIMIT_S) == STOPPED
        with pytest.raises(CancelledError):
            call.outputs()
        assert run(worker) == (0, "", "")


def test_sigterm_does_not_wait_for_ever_for_a_request_that_does_not_end(tmp_path: Path) -> None:
    path = tmp_path / "w.sock"
    with listening(path, first=draining(0.05)) as worker, connected(path) as session:
        _, call = endless(session, looping(tmp_path / "loop.onnx"))
        worker.terminate()
        assert run(worker) == (0, "", "")
        with pytest.raises(WorkerDiedError):
            call.outputs()
        assert not path.exists()


PARENT = """
import subprocess, sys
worker = subprocess.Popen([sys.executable, "-c", sys.argv[1], "worker", *sys.argv[2:]],
                          stdout=subprocess.PIPE, text=True)
line = worker.stdout.readline()
print(worker.pid, line.split()[-1], flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("is_private", [False, True])
def test_a_worker_on_a_path_ends_with_its_parent_though_clients_use_it(
    is_private: bool, tmp_path: Path
) -> None:
    where = ["--private"] if is_private else ["--socket", tmp_path / "w.sock"]
    with process(PARENT, MAIN, *where, stdin=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        pid, path = parent.stdout.readline().split()
        watch = Watch(int(pid))
        with connected(Path(path)) as session:
            assert session.info("pid") == str(watch.pid)
            parent.kill()
            watch.ended()
        assert not os.path.exists(os.path.dirname(path) if is_private else path)
