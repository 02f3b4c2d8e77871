from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from support.wire_peers import LIMIT_S, ScriptedWorker, Twice, received, session_at
from support.wire_vectors import FOLDER, read

from mindspore_lite.errors import (
    CancelledError,
    ClosedError,
    InputError,
    ModelFileError,
    RequestTimeoutError,
    ResourceError,
    WireError,
    WorkerDiedError,
)
from mindspore_lite.remote.wire import bodies
from mindspore_lite.remote.wire.bodies import MODEL, Build
from mindspore_lite.remote.wire.client import ENDED, HANGS, STOPPED, Pending, WireSession, _rounded
from mindspore_lite.remote.wire.fields import Writer
from mindspore_lite.remote.wire.frames import Message, header
from mindspore_lite.remote.wire.handshake import VERSION, Welcome
from mindspore_lite.remote.wire.memory import Made
from mindspore_lite.remote.worker import client_session as client_session_module
from mindspore_lite.remote.worker.served_model import Running
from mindspore_lite.serving.call import Call
from mindspore_lite.tensor import Tensor

SMALL = np.ones((1, 2), np.float32)
LARGE = np.ones((4096, 2), np.float32)  # goes through a block


class Waits(Twice):
    """Its runs wait until they are stopped, or the test lets them go."""

    def __init__(self) -> None:
        super().__init__()
        self.began, self.may_end = threading.Event(), threading.Event()
        self.stops = True

    def predict(self, call: Call, running: Running) -> list[np.ndarray]:
        if self.stops:
            running.attach(self.may_end.set)
        self.began.set()
        assert self.may_end.wait(LIMIT_S)
        if running.cancelled:
            raise CancelledError("the request was cancelled")
        return super().predict(call, running)


@pytest.mark.parametrize("array", [SMALL, LARGE, np.zeros((0, 2), np.float32)])
def test_a_model_runs_in_a_worker(array: np.ndarray) -> None:
    with session_at(Twice()) as (_, model, _guest):
        for _ in range(3):
            (output,) = model.predict([array])
            np.testing.assert_array_equal(output, 2 * array)
            assert output.flags.owndata


def test_large_outputs_of_a_call_lie_in_shared_memory_and_are_used_again() -> None:
    with session_at(Twice()) as (_, model, client_session):
        addresses = []
        for _ in range(2):
            call = model.start(Call([LARGE]))
            outputs = call.outputs()
            np.testing.assert_array_equal(outputs[0], 2 * LARGE)
            addresses.append(outputs[0].ctypes.data)
            call.release()
        assert addresses[0] == addresses[1]
        assert len(client_session._blocks) == 2  # one for inputs, one for outputs


def test_blocks_that_were_outgrown_are_given_back() -> None:
    with session_at(Twice()) as (_, model, client_session):
        for rows in (1 << 13, 1 << 15, 1 << 17):
            model.predict([np.ones((rows, 2), np.float32)])
        model.predict([SMALL])
        assert sorted(block.size for block in client_session._blocks.values()) == [1 << 20, 1 << 20]


def test_requests_at_once_have_lanes_of_their_own() -> None:
    waits = Waits()
    with session_at(waits) as (session, model, _):
        first, second = model.start(Call([SMALL])), model.start(Call([LARGE]))
        assert first.fileno() != second.fileno()
        assert waits.began.wait(LIMIT_S)
        waits.may_end.set()
        np.testing.assert_array_equal(second.outputs()[0], 2 * LARGE)
        np.testing.assert_array_equal(first.outputs()[0], 2 * SMALL)
        used = {first.fileno(), second.fileno()}
        first.release()
        second.release()
        assert {session.lane().fileno(), session.lane().fileno()} == used


def test_an_error_of_the_model_leaves_the_lane_usable() -> None:
    class Fails(Twice):
        def info(self, key: str) -> str:
            raise InputError(f"no {key}")

    with session_at(Fails()) as (session, model, _):
        with pytest.raises(InputError, match="no author"):
            model.info("author")
        assert len(session._idle) == len(session._lanes) == 1
        assert model.statistics() == '{"requests": 3}'


def test_a_request_is_cancelled_over_another_lane() -> None:
    waits = Waits()
    with session_at(waits) as (session, model, _):
        call = model.start(Call([SMALL]))
        number = call.request
        assert waits.began.wait(LIMIT_S)
        assert session.cancel(number, wait_s=LIMIT_S, timeout_s=LIMIT_S) == STOPPED
        with pytest.raises(CancelledError):
            call.outputs()
        assert session.cancel(number, wait_s=0, timeout_s=LIMIT_S) == ENDED


def test_a_request_that_cannot_be_stopped_hangs() -> None:
    waits = Waits()
    waits.stops = False
    with session_at(waits) as (session, model, _):
        call = model.start(Call([SMALL]))
        assert waits.began.wait(LIMIT_S)
        assert session.cancel(call.request, wait_s=0, timeout_s=LIMIT_S) == HANGS
        waits.may_end.set()
        call.abandon()


def test_no_answer_in_time_is_an_error_and_the_lane_goes() -> None:
    waits = Waits()
    with session_at(waits) as (session, model, _):
        with pytest.raises(RequestTimeoutError, match="did not answer within"):
            model.predict([SMALL], timeout_s=1e-6)
        assert not session._idle
        assert not session._lanes
        waits.may_end.set()


def test_blocks_go_with_the_lane_that_was_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that gives up a request never hears of the block that its answer is in."""
    waits = Waits()
    waits.stops = False
    with session_at(waits) as (_, model, client_session):
        ended = threading.Event()
        lane_ended = client_session.lane_ended

        def noticed() -> None:
            lane_ended()
            ended.set()

        monkeypatch.setattr(client_session, "lane_ended", noticed)
        call = model.start(Call([LARGE]))
        assert waits.began.wait(LIMIT_S)
        assert len(client_session._blocks) == 1
        call.abandon()
        waits.may_end.set()
        assert ended.wait(LIMIT_S)
        assert client_session._blocks == {}
        assert client_session._makers == {}


def test_the_block_of_a_models_content_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    given = []

    def built(build: Build, contents: list[bytes], group: object) -> Twice:
        given.extend(contents)
        return Twice()

    monkeypatch.setattr(client_session_module, "built", built)
    with session_at(Twice()) as (session, _, client_session):
        content = [np.full(100_000, 1, np.uint8), np.full(3, 2, np.uint8)]
        session.build(Build(MODEL, 0), content)
        assert given == [array.tobytes() for array in content]
        assert client_session._blocks == {}


def test_the_block_of_a_content_that_is_no_model_is_given_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def built(build: Build, contents: list[bytes], group: object) -> Twice:
        raise ModelFileError("no model")

    monkeypatch.setattr(client_session_module, "built", built)
    with session_at(Twice()) as (session, _, client_session):
        with pytest.raises(ModelFileError, match="no model"):
            session.build(Build(MODEL, 0), [np.ones(100_000, np.uint8)])
        assert client_session._blocks == {}
        assert len(session._idle) == 1


@pytest.mark.parametrize("sizes", [(0,), (0, 5)])
def test_an_empty_model_stays_one(sizes: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    given = []

    def built(build: Build, contents: list[bytes], group: object) -> Twice:
        given.extend(contents)
        return Twice()

    monkeypatch.setattr(client_session_module, "built", built)
    with session_at(Twice()) as (session, _, _guest):
        session.build(Build(MODEL, 0), [np.zeros(size, np.uint8) for size in sizes])
    assert [len(content) for content in given] == list(sizes)


def test_a_closed_model_says_so() -> None:
    with session_at(Twice()) as (_, model, _guest):
        model.close()
        with pytest.raises(ClosedError, match="there is no model 1"):
            model.predict([SMALL])


def test_a_closed_session_says_so_and_wakes_who_waits() -> None:
    waits = Waits()
    with session_at(waits) as (session, model, _):
        call = model.start(Call([SMALL]))
        assert waits.began.wait(LIMIT_S)
        session.close()
        session.close()  # harmless
        with pytest.raises(WorkerDiedError):
            call.outputs()
        with pytest.raises(WorkerDiedError, match="session with the worker is over"):
            model.predict([SMALL])


def test_the_session_is_over_also_for_who_is_told_of_the_end_of_a_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A worker whose client leaves calls off its requests, and may still say so."""
    waits = Waits()
    with session_at(waits) as (session, model, client_session):
        call = model.start(Call([SMALL]))
        assert waits.began.wait(LIMIT_S)
        with monkeypatch.context() as patch:
            patch.setattr(session, "_closed", True)  # close() would race with the worker's words
            client_session.cancel()
            with pytest.raises(WorkerDiedError, match="session with the worker is over"):
                call.outputs()


def test_a_lane_that_opens_while_the_session_ends_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with session_at(Twice()) as (session, _, _guest):
        opened = []
        greet = "mindspore_lite.remote.wire.client.greet"

        def slow(sock: socket.socket, token: bytes, timeout_s: float) -> None:
            opened.append(sock)
            session.close()

        monkeypatch.setattr(greet, slow)
        with pytest.raises(WorkerDiedError, match="session with the worker is over"):
            session.lane()
        assert opened[0].fileno() == -1


def test_a_worker_that_is_not_there_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(WorkerDiedError, match="No such file or directory; is it running"):
        WireSession.connect(str(tmp_path / "none.sock"))


def test_a_worker_that_is_full_is_no_breach_of_the_protocol() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        theirs.sendall(Welcome(0, ResourceError.code, bytes(16), 1, "it is full").encoded())
        with pytest.raises(ResourceError, match="it is full"):
            WireSession(ours)
        assert ours.fileno() == -1


def test_a_worker_that_ends_in_the_greeting_is_told_so() -> None:
    ours, theirs = socket.socketpair()
    theirs.close()
    with pytest.raises(WorkerDiedError, match="no worker answers"):
        WireSession(ours)
    assert ours.fileno() == -1


def test_a_worker_that_takes_no_lane_in_time_fails_the_request_alone(tmp_path: Path) -> None:
    path = str(tmp_path / "silent.sock")
    ours, theirs = socket.socketpair()
    with theirs, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()  # and never accept
        theirs.sendall(Welcome(VERSION, 0, bytes(16), 1, path).encoded())
        session = WireSession(ours)
        with pytest.raises(RequestTimeoutError, match="did not answer within"):
            session.lane(timeout_s=0)
        session.close()


def test_a_worker_without_an_address_takes_no_lanes() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        theirs.sendall(Welcome(VERSION, 0, bytes(16), 1, "").encoded())
        session = WireSession(ours)
        with pytest.raises(WireError, match="does not take further lanes"):
            session.lane()
        session.close()


def test_a_worker_that_dies_in_a_request_is_told_of(tmp_path: Path) -> None:
    with ScriptedWorker(tmp_path, [(24 + 4 + 11, b"")]) as worker:
        session = WireSession.connect(worker.path)
        with pytest.raises(WorkerDiedError, match="it closed the connection"):
            session.info("version")
        assert not session._lanes
        session.close()


def test_the_last_words_of_a_worker_are_told(tmp_path: Path) -> None:
    """After a frame that made no sense it has no request to answer: its ERROR is of request 0."""
    part = read(FOLDER / "error-WireError.txt").parts[0]
    body = part.encoded()[24:]
    words = header(Message.ERROR, 0, len(body)) + body
    with ScriptedWorker(tmp_path, [(24 + 4 + 11, words)]) as worker:
        session = WireSession.connect(worker.path)
        with pytest.raises(WireError, match="there is no block 9"):
            session.info("version")
        assert not session._lanes
        session.close()


def test_an_answer_with_more_than_we_know_is_understood(tmp_path: Path) -> None:
    """Later versions may say more at the end of an answer."""
    out = Writer()
    out.text("1.2.3")
    answer = header(Message.REPLY, 1, len(out.data) + 4) + out.data + b"more"
    with ScriptedWorker(tmp_path, [(24 + 4 + 11, answer)]) as worker:
        session = WireSession.connect(worker.path)
        assert session.info("version") == "1.2.3"
        session.close()


@pytest.mark.parametrize("count", [0, 2])
def test_a_worker_that_makes_no_block_or_several_breaks_the_protocol(
    tmp_path: Path, count: int
) -> None:
    out = Writer()
    bodies.write_made(out, [Made(number + 1, 9, 1 << 16) for number in range(count)])
    answer = header(Message.REPLY, 1, len(out.data)) + out.data
    with ScriptedWorker(tmp_path, [(24 + 8, answer)]) as worker:
        session = WireSession.connect(worker.path)
        lane = session.lane()
        with pytest.raises(
            WireError, match=f"one block was asked for, and the worker made {count}"
        ):
            lane.bring([LARGE])
        lane.give_back()
        session.close()


FORKS = """
import os, socket, sys
from mindspore_lite.errors import WireError
from mindspore_lite.remote.wire.client import WireSession
session = WireSession(socket.socket(fileno=int(sys.argv[1])))
if os.fork() == 0:
    try:
        session.lane()
    except WireError as exc:
        print(str(exc)[:42], flush=True)
    session.close()
sys.stdin.read()
"""


def test_a_forked_child_does_not_keep_the_session_of_its_parent() -> None:
    ours, theirs = socket.socketpair()
    with ours:
        ours.settimeout(LIMIT_S)
        ours.sendall(Welcome(VERSION, 0, bytes(16), 1, "@nobody").encoded())
        with theirs:
            command = [sys.executable, "-c", FORKS, str(theirs.fileno())]
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
            parent = subprocess.Popen(command, pass_fds=[theirs.fileno()], **pipes)  # type: ignore[call-overload]
        with parent:
            received(ours, 32)  # its greeting
            assert parent.stdout.readline() == b"the session was opened before this process\n"
            ours.setblocking(False)
            with pytest.raises(BlockingIOError):  # the child closed it, the parent has it still
                ours.recv(1)
            ours.settimeout(LIMIT_S)
            os.kill(parent.pid, signal.SIGKILL)
            assert ours.recv(1) == b""  # while the child lives on
            parent.stdin.close()


@pytest.mark.parametrize("size", [64, 1 << 16, (1 << 16) + 64, 1 << 20, (1 << 20) + 64, 3_000_000])
def test_blocks_are_larger_than_asked_for_but_not_by_much(size: int) -> None:
    found = _rounded(size)
    assert size <= found < size + max(1 << 16, size // 3)
    assert found % 64 == 0


def test_a_call_that_cannot_be_sent_gives_its_lane_back() -> None:
    with session_at(Twice()) as (session, model, _):
        with pytest.raises(InputError, match="cannot be sent to another process"):
            model.predict([np.array(["text"])])
        assert len(session._idle) == 1
        assert isinstance(model.start(Call([SMALL])), Pending)


# --- weights --------------------------------------------------------------------------------------


def groups(*sizes: int) -> list[list[tuple[str, np.ndarray]]]:
    """One group for each size, with a weight of that many numbers and a small one."""
    return [
        [(f"w{size}", np.arange(size, dtype=np.float32)), ("", np.array(size, np.int64))]
        for size in sizes
    ]


@pytest.mark.parametrize("given", [groups(), groups(3), groups(1 << 20, 5, 1 << 16), [[]]])
def test_weights_arrive_as_they_are(given: list[list[tuple[str, np.ndarray]]]) -> None:
    twice = Twice()
    with session_at(twice) as (_, model, client_session):
        model.update_weights(given)
        wanted = [[(name, array.tobytes()) for name, array in group] for group in given]
        assert twice.calls == [("update_weights", wanted)]
        assert client_session._blocks == {}


def test_large_weights_travel_in_one_block_which_is_not_copied() -> None:
    seen: list[tuple[bool, int]] = []

    class Looks(Twice):
        def update_weights(self, weights: list[list[Tensor]]) -> None:
            (large, _), (other, _) = weights
            for tensor in (large, other):
                data = tensor._filled()
                assert data is not None
                seen.append((data.flags.owndata, data.ctypes.data % 64))

    with session_at(Looks()) as (_, model, client_session):
        model.predict([LARGE])
        model.update_weights(groups(1 << 16, 1 << 15))
        assert seen == [(False, 0)] * 2
        assert len(client_session._blocks) == 1  # that of the lane's outputs
        model.predict([LARGE])
        assert len(client_session._blocks) == 2


def test_what_was_wrong_with_weights_is_told_and_their_block_given_back() -> None:
    class Refuses(Twice):
        def update_weights(self, weights: list[list[Tensor]]) -> None:
            raise InputError("no weight 'w' may change")

    with session_at(Refuses()) as (session, model, client_session):
        with pytest.raises(InputError, match=r"^no weight 'w' may change$") as error:
            model.update_weights(groups(1 << 16))
        assert error.value.code == -101
        assert client_session._blocks == {}
        assert len(session._idle) == 1


def test_weights_that_cannot_be_sent_leave_the_lane_usable() -> None:
    with session_at(Twice()) as (session, model, client_session):
        large = np.zeros(1 << 16, ">f4")
        with pytest.raises(InputError, match="cannot be sent to another process"):
            model.update_weights([[("w", large)]])
        assert client_session._blocks == {}
        assert len(session._idle) == 1
