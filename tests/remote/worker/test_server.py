"""worker/server.py: who is welcome, who hears what when somebody leaves, and how all ends."""

from __future__ import annotations

import errno
import os
import select
import socket
import struct
import threading
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from support.fake_engine import LIMIT_S, Client, Gate, wait_for
from support.workers import FakeModel, HostHere, X, host_here

from mindspore_lite.errors import (
    CancelledError,
    ClosedError,
    ResourceError,
    WireError,
    WorkerDiedError,
)
from mindspore_lite.remote.wire import handshake
from mindspore_lite.remote.wire.client import WireSession
from mindspore_lite.remote.wire.fields import Reader, Writer
from mindspore_lite.remote.wire.frames import Channel, Frame, Message, header
from mindspore_lite.remote.wire.handshake import Hello, greet
from mindspore_lite.remote.worker import server as host_module
from mindspore_lite.remote.worker.listener import abstract_listener
from mindspore_lite.remote.worker.server import WorkerServer
from mindspore_lite.serving.call import Call


def works(session: WireSession) -> None:
    """The worker answers."""
    assert int(session.info("pid")) > 0


def closed_by_worker(sock: socket.socket) -> bytes:
    """What came until the worker closed the connection."""
    sock.settimeout(LIMIT_S)
    found = b""
    with suppress(ConnectionResetError):  # it did not want to read everything
        while got := sock.recv(1 << 16):
            found += got
    return found


def errors_in(data: bytes) -> str:
    """The message of an ERROR frame."""
    body = Reader(memoryview(data)[24:])
    body.i32("")
    body.text("")
    return body.text("")


# --- welcome --------------------------------------------------------------------------------------


def test_lanes_of_one_client_share_its_models_and_others_do_not_see_them() -> None:
    with host_here() as here:
        first, second = here.session(), here.session()
        model = here.model(first, FakeModel())
        np.testing.assert_array_equal(model.predict([X])[0], 2 * X)
        model.session = second
        with pytest.raises(ClosedError, match="there is no model"):
            model.predict([X])


@pytest.mark.parametrize("token", [b"x" * 16, bytes(15) + b"\1"])
def test_a_token_of_no_session_is_refused(token: bytes) -> None:
    refused = pytest.raises(WireError, match="there is no such session")
    with host_here() as here, here.connection() as sock, refused:
        greet(sock, token)


def test_a_lane_cannot_join_a_session_that_is_over() -> None:
    with host_here() as here:
        session = here.session()
        token = session._token
        session.close()
        here.idle()
        with here.connection() as sock, pytest.raises(WireError, match="it may be over"):
            greet(sock, token)


def test_a_client_that_comes_while_the_worker_ends_is_told_so() -> None:
    gate = Gate()
    with host_here(gate) as here:
        session = here.session()
        call = Client(lambda: here.model(session, FakeModel(gate)).predict([X]))
        gate.entered()
        late = here.connection()
        wait_for(lambda: len(here.host._connections) == 3)
        here.host.ask_to_end()
        with late, pytest.raises(WireError, match="the worker is ending"):
            greet(late)
        gate.open()
        np.testing.assert_array_equal(call.ended().result[0], 2 * X)


def test_a_client_of_another_user_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with host_here() as here:
        monkeypatch.setattr(handshake.os, "geteuid", lambda: 4242)  # before it looks at who comes
        with here.connection() as sock:
            assert b"a worker serves only the user" in closed_by_worker(sock)
        monkeypatch.undo()
        works(here.session())


def test_more_connections_than_allowed_are_refused_until_one_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(host_module, "MAX_CONNECTIONS", 2)
    with host_here(parent=True) as here:
        parent = WireSession(here.parent)
        works(parent)  # which takes a lane
        with here.connection() as sock, pytest.raises(ResourceError, match="2 connections already"):
            greet(sock)
        parent.lane().drop()
        wait_for(lambda: len(here.host._connections) == 1)
        works(parent)
        parent.close()


def test_a_connection_without_a_thread_is_refused_and_the_next_is_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with host_here() as here:
        refused = threading.Event()

        def refuse(act: object, name: str) -> None:
            refused.set()
            raise RuntimeError("can't start new thread")

        monkeypatch.setattr(host_module, "_start", refuse)
        with here.connection() as sock, pytest.raises(ResourceError, match="no thread can be had"):
            greet(sock)
        assert refused.is_set()
        monkeypatch.undo()
        works(here.session())


class Full:
    """A process without descriptors, as the host sees it: so many tries to get one fail."""

    def __init__(self, here: HostHere, monkeypatch: pytest.MonkeyPatch) -> None:
        self.accepting = self.opening = 0
        self._accept, self._open = here.listener.accept, os.open
        monkeypatch.setattr(here.listener, "accept", self.accept)
        monkeypatch.setattr(host_module.os, "open", self.open)

    def accept(self) -> socket.socket:
        if self.accepting:
            self.accepting -= 1
            raise OSError(errno.EMFILE, "Too many open files")
        return self._accept()

    def open(self, *arguments: Any) -> int:
        if self.opening and arguments[0] == os.devnull:
            self.opening -= 1
            raise OSError(errno.EMFILE, "Too many open files")
        return self._open(*arguments)


def test_without_descriptors_a_client_is_told_and_the_next_is_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with host_here() as here:
        full = Full(here, monkeypatch)
        full.accepting = 1
        with (
            here.connection() as sock,
            pytest.raises(ResourceError, match="no file descriptor left"),
        ):
            greet(sock)
        works(here.session())


def test_without_even_a_spare_descriptor_a_client_waits_for_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with host_here() as here:
        full = Full(here, monkeypatch)
        full.accepting, full.opening = 1, 2
        with (
            here.connection() as sock,
            pytest.raises(ResourceError, match="no file descriptor left"),
        ):
            greet(sock)
        full.accepting = 2  # the spare one is gone now, and comes back at the second try
        works(here.session())
        assert full.accepting == full.opening == 0
        assert here.host._spare >= 0


# --- clients that do not keep to the protocol -----------------------------------------------------

GARBAGE = {
    "garbage": (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"the connection began with"),
    "a version of the future": (Hello(7, 9).encoded(), b"versions 7 to 9"),
    "a version of the past": (Hello(0, 0).encoded(), b"install the same release"),
}


@pytest.mark.parametrize(("sent", "words"), GARBAGE.values(), ids=GARBAGE)
def test_a_stranger_is_refused_and_others_are_served(sent: bytes, words: bytes) -> None:
    with host_here() as here:
        session = here.session()
        with here.connection() as sock:
            sock.sendall(sent)
            said = closed_by_worker(sock)
        assert words in said
        works(session)


FRAMES = {
    "garbage": (b"\xff" * 24, "a frame begins with"),
    "a length of 2^63": (struct.pack("<IHHQQ", 0x464C534D, 1, 0, 1, 2**63), "at most 16777216"),
    "an unknown message": (struct.pack("<IHHQQ", 0x464C534D, 99, 0, 1, 0), "no message 99"),
}


@pytest.mark.parametrize(("sent", "words"), FRAMES.values(), ids=FRAMES)
def test_bad_frames_end_their_connection_with_a_reason(sent: bytes, words: str) -> None:
    with host_here() as here:
        session = here.session()
        with here.connection() as sock:
            greet(sock)
            sock.sendall(sent)
            assert words in errors_in(closed_by_worker(sock))
        works(session)


def test_half_a_frame_and_silence_end_the_connection() -> None:
    with host_here(stall_s=0.02) as here:
        session = here.session()
        for sent in (b"M", header(Message.INFO, 1, 100), header(Message.INFO, 1, 9) + b"123"):
            with here.connection() as sock:
                greet(sock)
                sock.sendall(sent)
                assert closed_by_worker(sock) == b""
        works(session)  # silence between frames is no fault


def test_a_client_that_reads_no_answers_is_hung_up_on() -> None:
    with host_here(stall_s=0.02) as here:
        session = here.session()
        with here.connection() as sock:
            greet(sock)
            sock.setblocking(False)
            out = Writer()
            out.u32(0)
            out.text("cores")
            frame = header(Message.INFO, 1, len(out.data)) + out.data
            poll = select.poll()
            poll.register(sock, select.POLLOUT)
            while not [what for _, what in poll.poll(LIMIT_S * 1000) if what & select.POLLHUP]:
                try:
                    sock.send(frame)
                except (BlockingIOError, ConnectionError):
                    poll.modify(sock, 0)  # the worker has stopped reading: wait for its end
        works(session)


def test_a_message_that_is_no_request_is_answered_by_an_error() -> None:
    with host_here() as here:
        session = here.session()
        with pytest.raises(WireError, match="a worker does not take REPLY"):
            session.ask(Message.REPLY, b"")
        works(session)


def test_an_answer_that_is_too_long_becomes_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with host_here() as here:
        session = here.session()
        model = here.model(session, FakeModel())
        monkeypatch.setattr("mindspore_lite.remote.wire.frames.MAX_BODY", 150)
        with pytest.raises(WireError, match="cannot be sent, at most 150"):
            model.info("x" * 100)
        assert model.info("so") == "soso"


# --- clients that hang up -------------------------------------------------------------------------


def test_a_run_whose_lane_is_hung_up_is_cancelled() -> None:
    gate = Gate()
    with host_here(gate) as here:
        session = here.session()
        model = here.model(session, FakeModel(gate))
        call = model.start(Call([X]))
        gate.entered()
        client_session = here.client_session(session)
        call.abandon()
        wait_for(lambda: not client_session._running)
        works(session)


def test_a_request_whose_lane_was_hung_up_before_it_was_read_does_not_begin(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate = Gate()
    looked, receive = threading.Event(), Channel.receive

    def late(self: Channel, *timeout: float | None) -> Frame | None:
        frame = receive(self, *timeout)
        if frame is not None and frame.message is Message.PREDICT:
            assert looked.wait(LIMIT_S)
        return frame

    with host_here(gate) as here:
        look_at = here.host._look_at

        def look(descriptor: int) -> None:
            look_at(descriptor)
            looked.set()

        monkeypatch.setattr(here.host, "_look_at", look)
        session = here.session()
        hosted = FakeModel(gate)
        model = here.model(session, hosted)
        monkeypatch.setattr(Channel, "receive", late)
        model.start(Call([X])).abandon()
        wait_for(lambda: len(here.host._connections) == 1)
        assert gate.nobody_entered()


def test_a_client_that_dies_in_the_midst_of_its_only_connection_takes_its_run_along() -> None:
    gate = Gate()
    with host_here(gate) as here:
        sock = here.connection()
        token = greet(sock).token
        client_session = here.host._client_sessions[token]
        model = FakeModel(gate)
        client_session._models[1] = model
        out = Writer()
        out.data += struct.pack("<IQbIQQ", 1, 0, 0, 0, 0, 0)
        out.u32(0)
        Channel(sock).send(Message.PREDICT, 5, out.data)
        gate.entered()
        sock.close()
        assert model.closed.wait(LIMIT_S)
        here.idle()


def test_the_last_client_ends_the_worker_even_if_its_run_does_not_stop() -> None:
    gate = Gate(obeys=False)
    with host_here(gate, stays=False) as here:
        sock = here.connection()
        client_session = here.host._client_sessions[greet(sock).token]
        client_session._models[1] = FakeModel(gate)
        out = Writer()
        out.data += struct.pack("<IQbIQQ", 1, 0, 0, 0, 0, 0)
        out.u32(0)
        Channel(sock).send(Message.PREDICT, 5, out.data)
        gate.entered()
        sock.close()
        here.ended()


def test_lanes_are_closed_with_their_session() -> None:
    with host_here() as here:
        owner = here.connection()
        token = greet(owner).token
        lane = here.connection()
        greet(lane, token)
        owner.close()
        assert closed_by_worker(lane) == b""
        lane.close()
        here.idle()


def test_the_end_of_a_session_cancels_what_its_lanes_run_and_closes_its_models() -> None:
    gate = Gate()
    with host_here(gate) as here:
        session = here.session()
        hosted = FakeModel(gate)
        model = here.model(session, hosted)
        call = Client(lambda: model.predict([X]))
        gate.entered()
        session._owner.shutdown(socket.SHUT_RDWR)
        assert isinstance(call.ended().error, CancelledError | WorkerDiedError)
        assert hosted.closed.wait(LIMIT_S)


# --- EXIT -----------------------------------------------------------------------------------------


def test_an_exit_waits_for_the_requests_of_other_lanes(capsys: pytest.CaptureFixture[str]) -> None:
    gate = Gate()
    with host_here(gate, stays=False) as here:
        session = here.session()
        model = here.model(session, FakeModel(gate))
        call = Client(lambda: model.predict([X]))
        gate.entered()
        client_session = here.client_session(session)
        leaving = Client(lambda: session.exit("good bye", LIMIT_S))
        wait_for(lambda: client_session.said_farewell)
        with pytest.raises(ClosedError, match="the client said that it leaves"):
            session.info("pid")
        gate.open()
        np.testing.assert_array_equal(call.ended().result[0], 2 * X)
        assert leaving.ended().error is None
        here.ended()
    assert capsys.readouterr().out == "Receive exit message good bye and start to exit\n"


def test_exits_on_two_lanes_do_not_wait_for_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    gate = Gate()
    with host_here(gate, drain_s=10 * LIMIT_S) as here:
        session = here.session()
        model = here.model(session, FakeModel(gate))
        call = Client(lambda: model.predict([X]))
        gate.entered()
        client_session = here.client_session(session)
        leaving = Client(lambda: session.exit("first", LIMIT_S))
        wait_for(lambda: client_session.said_farewell)
        again = Client(lambda: session.exit("second", LIMIT_S))
        assert again.ended().error is None
        gate.open()
        call.ended()
        leaving.ended()
    assert capsys.readouterr().out.count("start to exit") == 1


def test_an_exit_of_one_client_leaves_the_others_alone() -> None:
    with host_here(stays=False) as here:
        first, second = here.session(), here.session()
        model = here.model(second, FakeModel())
        first.exit("", LIMIT_S)
        with pytest.raises((ClosedError, WorkerDiedError, WireError)):
            first.info("pid")
        np.testing.assert_array_equal(model.predict([X])[0], 2 * X)
        first.close()
        second.exit("", LIMIT_S)
        here.ended()


def test_an_exit_does_not_wait_for_ever_for_a_run_that_hangs() -> None:
    gate = Gate(obeys=False)
    with host_here(gate, drain_s=0.02) as here:
        session = here.session()
        hosted = FakeModel(gate)
        call = Client(lambda: here.model(session, hosted).predict([X]))
        gate.entered()
        session.exit("", LIMIT_S)
        assert isinstance(call.ended().error, WorkerDiedError)


# --- the end of the worker ------------------------------------------------------------------------


def test_who_asks_the_worker_to_end_waits_for_requests_under_way() -> None:
    gate = Gate()
    with host_here(gate) as here:
        session = here.session()
        works(session)
        client_session = here.client_session(session)
        call = Client(lambda: here.model(session, FakeModel(gate)).predict([X]))
        gate.entered()
        lane = session.lane()
        here.host.ask_to_end()
        wait_for(lambda: bool(client_session.refuses))
        with pytest.raises(ClosedError, match="it takes no new requests"):
            lane.ask(Message.ALLOCATE, struct.pack("<Q", 64))
        assert here.thread.is_alive()
        gate.open()
        np.testing.assert_array_equal(call.ended().result[0], 2 * X)
        here.ended()


def test_a_request_can_be_cancelled_while_the_worker_ends() -> None:
    gate = Gate()
    with host_here(gate, drain_s=10 * LIMIT_S) as here:
        session = here.session()
        works(session)
        client_session = here.client_session(session)
        call = here.model(session, FakeModel(gate)).start(Call([X]))
        gate.entered()
        idle = session.lane()
        idle.give_back()
        here.host.ask_to_end()
        wait_for(lambda: bool(client_session.refuses))
        assert session.cancel(call.request, LIMIT_S, LIMIT_S) == 1
        here.ended()
        call.abandon()


def test_a_run_that_hangs_holds_the_end_up_for_a_bounded_time() -> None:
    gate = Gate(obeys=False)
    with host_here(gate, drain_s=0.02) as here:
        session = here.session()
        call = Client(lambda: here.model(session, FakeModel(gate)).predict([X]))
        gate.entered()
        here.host.ask_to_end()
        here.ended()
        assert isinstance(call.ended().error, WorkerDiedError)


def test_a_child_ends_with_its_parent_though_others_use_it() -> None:
    with host_here(stays=False, parent=True) as here:
        parent = WireSession(here.parent)
        other = here.session()
        works(other)
        parent.close()
        here.ended()


def test_a_child_ends_when_its_parent_cannot_be_welcomed() -> None:
    with host_here(stays=False, parent=True) as here:
        assert here.parent is not None
        here.parent.sendall(b"nonsense" * 4)
        here.ended()


def test_a_worker_that_nobody_needs_ends() -> None:
    with host_here(stays=False) as here:
        here.session().close()
        here.ended()


def test_a_worker_to_which_nobody_comes_ends() -> None:
    WorkerServer(abstract_listener()).run(first_s=0.01)


def test_a_worker_that_stays_outlives_its_clients() -> None:
    with host_here() as here:
        for _ in range(3):
            session = here.session()
            works(session)
            session.close()
            here.idle()
        assert here.thread.is_alive()
