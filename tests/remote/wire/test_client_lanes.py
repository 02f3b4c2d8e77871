"""client.py: who has a lane, when a session ends, memory is missing, or a worker hangs."""

from __future__ import annotations

import gc
import os
import socket
import threading
import weakref
from typing import Any

import numpy as np
import pytest
from support.fake_engine import wait_for
from support.wire_peers import LIMIT_S, Twice, session_at

from mindspore_lite.errors import RequestTimeoutError, ResourceError, WorkerDiedError
from mindspore_lite.remote.wire import client
from mindspore_lite.remote.wire.client import Lane
from mindspore_lite.remote.wire.frames import Channel, Message, header
from mindspore_lite.remote.wire.memory import Block, Made
from mindspore_lite.remote.worker.client_session import ClientSession
from mindspore_lite.serving.call import Call

SMALL = np.ones((1, 2), np.float32)
LARGE = np.ones((4096, 2), np.float32)  # goes through a block


def test_a_lane_in_use_keeps_its_descriptor_when_the_session_ends() -> None:
    """Else the number becomes another file's, while somebody waits on it."""
    with session_at(Twice()) as (session, model, _):
        call, idle = model.start(Call([SMALL])), session.lane()
        idle.give_back()
        descriptor = call.fileno()
        session.close()
        assert idle.fileno() == -1
        assert call.fileno() == descriptor
        os.fstat(descriptor)
        call.release()
        assert call.fileno() == -1


def test_a_lane_that_is_given_back_after_the_end_is_closed() -> None:
    with session_at(Twice()) as (session, _, _guest):
        lane = session.lane()
        session.close()
        lane.give_back()
        assert lane.fileno() == -1
        with pytest.raises(WorkerDiedError, match="the session with the worker is over"):
            session.lane()


def test_a_lane_that_is_forgotten_after_the_end_is_closed() -> None:
    with session_at(Twice()) as (session, _, _guest):
        lane = session.lane()
        channel = lane._channel
        session.close()
        gone = weakref.ref(lane)
        del lane
        gc.collect()
        assert gone() is None
        assert channel.fileno() == -1


def test_an_error_that_is_kept_keeps_no_shared_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else who remembers why requests failed, as the owner of a Future does, holds their blocks."""

    class Hangs(Twice):
        def predict(self, *given: Any) -> list[np.ndarray]:
            assert may_end.wait(LIMIT_S)
            return super().predict(*given)

    opened: list[weakref.ref[Block]] = []
    really_opened = client.Lane._opened

    def noted(lane: client.Lane, made: Made) -> Block:
        block = really_opened(lane, made)
        opened.append(weakref.ref(block))
        return block

    monkeypatch.setattr(client.Lane, "_opened", noted)
    may_end = threading.Event()
    with session_at(Hangs()) as (_, model, _guest):
        call = model.start(Call([LARGE], timeout_s=1e-6))
        with pytest.raises(RequestTimeoutError) as kept:
            call.fetched()
        call.release()
        assert [block() for block in opened] == [None]
        assert kept.value.__traceback__ is not None
        may_end.set()


def test_after_an_error_who_fetched_it_keeps_the_lane_until_it_is_released() -> None:
    class Fails(Twice):
        def predict(self, *given: Any) -> list[np.ndarray]:
            raise ResourceError("no room")

    with session_at(Fails()) as (session, model, _):
        call = model.start(Call([SMALL]))
        with pytest.raises(ResourceError, match="no room"):
            call.fetched()
        assert session._idle == []
        call.release()
        assert len(session._idle) == 1
        with pytest.raises(ResourceError, match="no room"):
            model.start(Call([SMALL])).outputs()
        assert len(session._idle) == 1


@pytest.mark.parametrize("failing", [0, 1], ids=["for inputs", "for outputs"])
def test_memory_that_cannot_be_opened_goes_back_to_the_worker(
    monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    with session_at(Twice()) as (_, model, client_session):
        opened: list[object] = []

        def sometimes(pid: int, made: Any) -> Block:
            opened.append(made)
            if len(opened) == failing + 1:
                raise ResourceError("too many open files")
            return Block.open(pid, made)

        monkeypatch.setattr(client, "Block", type("Opener", (), {"open": staticmethod(sometimes)}))
        with pytest.raises(ResourceError, match="too many open files"):
            model.predict([LARGE])
        monkeypatch.undo()
        np.testing.assert_array_equal(model.predict([LARGE])[0], 2 * LARGE)
        model.predict([SMALL])
        assert len(client_session._blocks) == 2  # one for inputs, one for outputs


@pytest.mark.parametrize("silent_on", [Message.ALLOCATE, Message.FREE])
def test_a_deadline_counts_for_what_is_needed_before_the_request_as_well(
    monkeypatch: pytest.MonkeyPatch, silent_on: Message
) -> None:
    hears = threading.Event()
    answer = ClientSession.answer

    def slow(self: ClientSession, frame: Any, *more: Any) -> Any:
        if frame.message is silent_on:
            assert hears.wait(120)
        return answer(self, frame, *more)

    with session_at(Twice()) as (session, model, _):
        if silent_on is Message.FREE:
            model.predict([LARGE])
            model.predict([np.concatenate([LARGE] * 8)])  # outgrows its blocks
            assert any(lane._freed for lane in session._idle)
        monkeypatch.setattr(ClientSession, "answer", slow)
        with pytest.raises(RequestTimeoutError, match="did not answer within"):
            model.predict([np.concatenate([LARGE] * 64)], timeout_s=0.01)
        hears.set()
        assert session._idle == []
        wait_for(lambda: not session._lanes)
        np.testing.assert_array_equal(model.predict([SMALL])[0], 2 * SMALL)


def test_a_worker_that_takes_no_lane_because_it_ends_is_gone() -> None:
    """It keeps to the protocol: a caller who may try elsewhere must see that this one has ended."""
    with session_at(Twice()) as (session, _, _guest):
        session._token = bytes(range(16))  # of which the worker knows nothing any more
        with pytest.raises(WorkerDiedError, match="is over: the worker refused the connection"):
            session.lane()


@pytest.mark.parametrize(
    ("timeout_s", "error"), [(None, WorkerDiedError), (0.005, RequestTimeoutError)]
)
def test_an_answer_that_stops_in_the_middle_is_an_error(
    timeout_s: float | None, error: type[Exception]
) -> None:
    ours, theirs = socket.socketpair()
    # who has a deadline does not wait for the rest as long as others
    channel = Channel(ours, stall_s=0.005 if timeout_s is None else 1000)
    with theirs:
        theirs.sendall(header(Message.REPLY, 1, 100) + bytes(10))
        with pytest.raises(error):
            Lane(None, channel)._received(timeout_s)  # type: ignore[arg-type]
    channel.close()
