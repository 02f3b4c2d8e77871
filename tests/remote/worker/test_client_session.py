"""worker/client_session.py: models, blocks and requests of one client, on many lanes at once."""

from __future__ import annotations

import errno
import os
import struct
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.fake_engine import LIMIT_S, Client, Gate, wait_for
from support.models import ENDLESS, dense_net, dense_values, looping, written
from support.workers import FakeModel, HostHere, X, file_build, host_here

from mindspore_lite.errors import (
    CancelledError,
    ClosedError,
    InputError,
    LiteError,
    ModelFileError,
    ResourceError,
    WireError,
)
from mindspore_lite.remote.wire import bodies
from mindspore_lite.remote.wire.bodies import RUNNER, Build
from mindspore_lite.remote.wire.client import ENDED, HANGS, STOPPED, Lane, Model, WireSession
from mindspore_lite.remote.wire.fields import Reader, Writer
from mindspore_lite.remote.wire.frames import Message
from mindspore_lite.remote.wire.memory import Block
from mindspore_lite.remote.wire.tensors import Region, array_of, read_tensor, write_tensor
from mindspore_lite.remote.worker import client_session as client_session_module
from mindspore_lite.remote.worker.served_model import Hosted
from mindspore_lite.serving.call import Call

ONNX = 3
LARGE = np.arange(1 << 16, dtype=np.float32)  # does not fit into a frame
BUILT = "mindspore_lite.remote.worker.client_session.built"


def shared(here: HostHere, session: WireSession) -> list[Block]:
    """The worker's side of the blocks that it made for a client."""
    return list(here.client_session(session)._blocks.values())


def is_closed(found: Block) -> bool:
    return found.made.descriptor < 0


def block(lane: Lane, size: int) -> Block:
    """A block of shared memory, as a client gets it."""
    (made,) = bodies.read_made(lane.ask(Message.ALLOCATE, struct.pack("<Q", size)))
    return Block.open(lane.session.pid, made)


def predict(lane: Lane, model: int, given: np.ndarray, at: Block, room: Block) -> np.ndarray:
    """Run a model on an array that lies in one block, its output to go to another."""
    out = Writer()
    place = Region(at.number, 0, given.nbytes)
    bodies.write_predict(out, model, Call(()), Region(room.number, 0, room.size))
    out.u32(1)
    write_tensor(out, "x", given.dtype, given.shape, place)
    body = lane.ask(Message.PREDICT, out.data)
    assert bodies.read_made(body) == []
    blocks = {at.number: at, room.number: room}
    (found,) = body.items("", lambda: array_of(read_tensor(body), blocks))
    return found


# --- cancelling -----------------------------------------------------------------------------------


def test_a_request_that_ended_is_not_cancelled() -> None:
    with host_here() as here:
        assert here.session().cancel(4711, 0, LIMIT_S) == ENDED


def test_a_request_can_be_cancelled_twice_at_once() -> None:
    gate = Gate(obeys=False)
    with host_here(gate) as here:
        session = here.session()
        call = here.model(session, FakeModel(gate)).start(Call([X]))
        gate.entered()
        request = call.request
        (running,) = here.client_session(session)._running.values()
        first, second = (Client(lambda: session.cancel(request, LIMIT_S, LIMIT_S)) for _ in "12")
        assert session.cancel(request, 0, LIMIT_S) == HANGS
        wait_for(lambda: running.cancelled)
        gate.open()
        # the later of them may come after the end
        assert {first.ended().result, second.ended().result} <= {STOPPED, ENDED}
        assert session.cancel(request, 0, LIMIT_S) == ENDED
        call.abandon()


def test_a_request_in_the_queue_of_a_runner_is_cancelled(tmp_path: Path) -> None:
    with host_here() as here:
        session = here.session()
        path = looping(tmp_path / "loop.onnx")
        settings = {"parallel.workers_num": "1"}
        model = session.build(file_build(path, ONNX, RUNNER, **settings))
        running = model.start(Call([ENDLESS, X]))
        wait_for(lambda: '"running": 1' in model.statistics())
        waiting = model.start(Call([np.array(3), X]))
        wait_for(lambda: '"queued": 1' in model.statistics())
        assert session.cancel(waiting.request, LIMIT_S, LIMIT_S) == STOPPED
        with pytest.raises(CancelledError, match="the request was cancelled"):
            waiting.outputs()
        assert session.cancel(running.request, LIMIT_S, LIMIT_S) == STOPPED
        with pytest.raises(CancelledError):
            running.outputs()
        np.testing.assert_array_equal(model.predict([np.array(3), X])[0], X)


def test_a_run_of_a_model_is_cancelled(tmp_path: Path) -> None:
    with host_here() as here:
        session = here.session()
        model = session.build(file_build(looping(tmp_path / "loop.onnx"), ONNX))
        call = model.start(Call([ENDLESS, X]))
        wait_for(lambda: call.request in here.client_session(session)._running)
        assert session.cancel(call.request, LIMIT_S, LIMIT_S) == STOPPED
        with pytest.raises(CancelledError, match="the request was cancelled"):
            call.outputs()
        np.testing.assert_array_equal(model.predict([np.array(3), X])[0], X)


class SlowBuild:
    """Builds that wait until the test lets them; then there is a FakeModel."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.model = FakeModel()
        self.begun, self.goes_on = threading.Event(), threading.Event()
        monkeypatch.setattr(BUILT, self.built)

    def built(self, *_: object) -> Hosted:
        self.begun.set()
        assert self.goes_on.wait(LIMIT_S)
        return self.model


def test_a_cancelled_build_leaves_no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = SlowBuild(monkeypatch)
    with host_here() as here:
        session = here.session()
        lane = session.lane()
        build = Client(lambda: lane.ask(Message.BUILD, build_body()))
        assert slow.begun.wait(LIMIT_S)
        assert session.cancel(lane.request, 0, LIMIT_S) == HANGS
        slow.goes_on.set()
        assert isinstance(build.ended().error, CancelledError)
        assert slow.model.closed.is_set()
        assert here.client_session(session)._models == {}


def test_a_client_that_leaves_during_its_build_leaves_no_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slow = SlowBuild(monkeypatch)
    with host_here() as here:
        session = here.session()
        client_session = here.client_session(session)
        build = Client(lambda: session.build(Build(0, 0)))
        assert slow.begun.wait(LIMIT_S)
        session.close()
        assert build.ended().error is not None
        wait_for(lambda: client_session._closed)
        slow.goes_on.set()
        assert slow.model.closed.wait(LIMIT_S)
        assert client_session._models == {}


def build_body(
    content: Sequence[np.ndarray] = (), places: Sequence[Region | None] = ()
) -> bytearray:
    out = Writer()
    bodies.write_build(out, Build(0, 0), content, places)
    return out.data


# --- request ids ----------------------------------------------------------------------------------


def test_an_id_may_be_used_again_but_not_twice_at_once() -> None:
    gate = Gate()
    with host_here(gate) as here:
        session = here.session()
        model = here.model(session, FakeModel(gate))
        session.next_request = lambda: 5  # type: ignore[method-assign]
        call = Client(lambda: model.predict([X]))
        gate.entered()
        with pytest.raises(InputError, match="request 5 is under way already"):
            model.predict([X])
        gate.open()
        np.testing.assert_array_equal(call.ended().result[0], 2 * X)
        np.testing.assert_array_equal(model.predict([X])[0], 2 * X)


# --- blocks ---------------------------------------------------------------------------------------


def test_inputs_and_outputs_may_share_a_block() -> None:
    with host_here() as here:
        session = here.session()
        model = here.model(session, FakeModel())
        lane = session.lane()
        both = block(lane, LARGE.nbytes)
        np.frombuffer(both.view, np.float32)[:] = LARGE
        found = predict(lane, model.number, LARGE, both, both)
        np.testing.assert_array_equal(found, 2 * LARGE)


def test_a_block_that_is_freed_in_use_stays_until_the_request_has_ended() -> None:
    gate = Gate()
    with host_here(gate) as here:
        session = here.session()
        hosted = FakeModel(gate)
        model = here.model(session, hosted)
        lane = session.lane()
        given, room = block(lane, LARGE.nbytes), block(lane, LARGE.nbytes)
        np.frombuffer(given.view, np.float32)[:] = LARGE
        mine = shared(here, session)
        call = Client(lambda: predict(lane, model.number, LARGE, given, room))
        gate.entered()
        session.ask(Message.FREE, struct.pack("<III", 2, given.number, room.number))
        assert [is_closed(one) for one in mine] == [True, True]
        assert shared(here, session) == []
        np.testing.assert_array_equal(hosted.seen[0], LARGE)
        gate.open()
        np.testing.assert_array_equal(call.ended().result, 2 * LARGE)
        with pytest.raises(WireError, match=f"there is no block {given.number}; was it freed"):
            predict(lane, model.number, LARGE, given, room)


def test_blocks_that_are_not_there_cannot_be_freed_but_the_others_are() -> None:
    with host_here() as here:
        session = here.session()
        lane = session.lane()
        mine = block(lane, 64)
        with pytest.raises(WireError, match=r"there are no blocks \[99\]; the others were freed"):
            lane.ask(Message.FREE, struct.pack("<IIII", 3, mine.number, 99, mine.number))
        assert shared(here, session) == []


def test_a_client_has_a_limited_number_of_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_session_module, "MAX_BLOCKS", 1)
    with host_here() as here:
        lane = here.session().lane()
        mine = block(lane, 64)
        with pytest.raises(ResourceError, match="1 blocks already; free some"):
            block(lane, 64)
        lane.ask(Message.FREE, struct.pack("<II", 1, mine.number))
        block(lane, 64)


FULL = {
    "shared memory": ("posix_fallocate", errno.ENOSPC, "send smaller requests"),
    "descriptors": ("memfd_create", errno.EMFILE, "ulimit -n"),
}


@pytest.mark.parametrize(("call", "number", "words"), FULL.values(), ids=FULL)
def test_without_room_for_a_block_there_is_a_clear_error_and_later_an_answer(
    call: str, number: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    with host_here() as here:
        session = here.session()
        model = here.model(session, FakeModel())
        with monkeypatch.context() as patched:
            patched.setattr(os, call, full)
            with pytest.raises(ResourceError, match=f"of shared memory cannot be had.*{words}"):
                model.predict([LARGE])
        assert shared(here, session) == []
        np.testing.assert_array_equal(model.predict([LARGE])[0], 2 * LARGE)


def test_a_block_larger_than_the_memory_is_refused_before_it_is_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client_session_module, "_free_memory", lambda: 1 << 20)
    with host_here() as here:
        lane = here.session().lane()
        with pytest.raises(ResourceError, match="but 1048576 bytes of memory are free"):
            block(lane, 1 << 21)
        assert block(lane, 1 << 10).size == 1 << 10


def test_the_blocks_of_a_client_go_with_it() -> None:
    with host_here() as here:
        session = here.session()
        here.model(session, FakeModel()).predict([LARGE])
        mine = shared(here, session)
        assert len(mine) == 2
        session.close()
        here.idle()
        assert all(is_closed(one) for one in mine)


# --- building and closing -------------------------------------------------------------------------


def test_a_model_is_built_from_bytes_that_may_be_overwritten_afterwards() -> None:
    with host_here() as here:
        session = here.session()
        lane = session.lane()
        content = np.frombuffer(dense_net(), np.uint8)
        places = lane.bring([content], inline=0)
        body = lane.ask(Message.BUILD, build_body([content], places))
        number = body.u32("the model")
        model = Model(session, number, bodies.read_description(body), [])
        assert lane._inputs is not None
        np.frombuffer(lane._inputs.view, np.uint8)[:] = 0
        x = np.ones((2, 3), np.float32)
        np.testing.assert_allclose(model.predict([x])[0], dense_values(x))
        model.resize([[5, 3]])
        x = np.ones((5, 3), np.float32)
        np.testing.assert_allclose(model.predict([x])[0], dense_values(x))


def test_a_build_that_fails_tells_why_and_the_next_one_works(tmp_path: Path) -> None:
    with host_here() as here:
        session = here.session()
        with pytest.raises(ModelFileError, match=r"nowhere\.mindir"):
            session.build(file_build(tmp_path / "nowhere.mindir"))
        with pytest.raises(ValueError, match="there is no kind 7 of model"):
            session.build(Build(7, 0))
        with pytest.raises(LiteError):
            session.build(file_build(written(tmp_path / "bad.mindir", b"no model")))
        model = session.build(file_build(written(tmp_path / "m.mindir", dense_net())))
        assert [info.name for info in model.inputs] == ["x"]


def test_a_client_has_a_limited_number_of_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_session_module, "MAX_MODELS", 1)
    monkeypatch.setattr(BUILT, lambda *_: FakeModel())
    with host_here() as here:
        session = here.session()
        model = session.build(Build(0, 0))
        with pytest.raises(ResourceError, match="1 models already; close some"):
            session.build(Build(0, 0))
        model.close()
        session.build(Build(0, 0))


def test_models_that_are_being_built_count_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_session_module, "MAX_MODELS", 1)
    slow = SlowBuild(monkeypatch)
    with host_here() as here:
        session = here.session()
        first = Client(lambda: session.build(Build(0, 0)))
        assert slow.begun.wait(LIMIT_S)
        with pytest.raises(ResourceError, match="1 models already; close some"):
            session.build(Build(0, 0))
        slow.goes_on.set()
        assert first.ended().error is None


def test_a_build_that_waits_for_another_clients_is_cancelled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slow = SlowBuild(monkeypatch)
    build = Build(RUNNER, 0, "/no/such/model", config={"service": {"name": "m"}})
    with host_here() as here:
        first = Client(lambda: here.session().build(build))
        assert slow.begun.wait(LIMIT_S)
        session = here.session()
        lane = session.lane()
        body = Writer()
        bodies.write_build(body, build, [], [])
        second = Client(lambda: lane.ask(Message.BUILD, body.data))
        wait_for(lambda: bool(here.client_session(session)._running))
        assert session.cancel(lane.request, LIMIT_S, LIMIT_S) == STOPPED
        assert isinstance(second.ended().error, CancelledError)
        slow.goes_on.set()
        assert first.ended().error is None


@pytest.mark.parametrize("kind", [0, RUNNER])
def test_a_model_that_is_closed_while_another_lane_runs_it_answers_that_one(
    kind: int, tmp_path: Path
) -> None:
    with host_here() as here:
        session = here.session()
        model = session.build(file_build(looping(tmp_path / "loop.onnx"), ONNX, kind))
        # the shortest run that is surely still under way when the model is closed is an endless
        # one, of which the end is then the test's own doing
        call = model.start(Call([ENDLESS, X]))
        client_session = here.client_session(session)
        wait_for(lambda: call.request in client_session._running)
        closing = Client(model.close)
        wait_for(lambda: model.number not in client_session._models)
        with pytest.raises(ClosedError, match="there is no model"):
            model.predict([np.array(3), X])
        assert session.cancel(call.request, LIMIT_S, LIMIT_S) == STOPPED
        with pytest.raises(CancelledError):
            call.outputs()
        assert closing.ended().error is None


def test_a_run_that_was_under_way_when_its_model_was_closed_gives_its_outputs() -> None:
    gate = Gate()
    with host_here(gate) as here:
        session = here.session()
        model = here.model(session, FakeModel(gate))
        call = Client(lambda: model.predict([X]))
        gate.entered()
        model.close()
        gate.open()
        np.testing.assert_array_equal(call.ended().result[0], 2 * X)
        with pytest.raises(ClosedError, match="was it closed"):
            model.close()


class Failing(FakeModel):
    """Fails in whatever way it is told."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def predict(self, *_: Any) -> list[np.ndarray]:
        raise self.error


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (MemoryError("8 GiB"), ResourceError, "there is not enough memory: 8 GiB"),
        (OSError(errno.EMFILE, "Too many open files"), ResourceError, "no room.*Too many open"),
        (OSError(errno.EIO, "Input/output error"), ModelFileError, "a file cannot.*Input/output"),
        (KeyError("x"), LiteError, "this is a bug of mslite: KeyError at .*'x'"),
        (ValueError("wrong"), ValueError, "wrong"),
    ],
)
def test_whatever_goes_wrong_the_client_learns_of_it(
    error: Exception, kind: type[Exception], words: str
) -> None:
    with host_here() as here:
        session = here.session()
        with pytest.raises(kind, match=words):
            here.model(session, Failing(error)).predict([X])
        works_still(here, session)


def works_still(here: HostHere, session: WireSession) -> None:
    np.testing.assert_array_equal(here.model(session, FakeModel()).predict([X])[0], 2 * X)


def test_warnings_of_a_build_go_to_the_client_that_asked_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import warnings

    def built(*_: object) -> Hosted:
        warnings.warn("mind the gap", UserWarning, stacklevel=1)
        return FakeModel()

    monkeypatch.setattr(BUILT, built)
    with warnings.catch_warnings(), host_here() as here:
        client_session_module.keep_notes()
        session = here.session()
        assert session.build(Build(0, 0)).notes == ["mind the gap"]


def test_facts_about_the_worker_are_told_and_no_others() -> None:
    with host_here() as here:
        session = here.session()
        assert session.info("pid") == str(os.getpid())
        assert session.info("cores") == ",".join(map(str, sorted(os.sched_getaffinity(0))))
        assert "cpu" in session.info("targets").split(",")
        with pytest.raises(ValueError, match="no worker info 'wealth', wanted one of version"):
            session.info("wealth")


def test_a_description_can_be_asked_for() -> None:
    with host_here() as here:
        session = here.session()
        model = here.model(session, FakeModel())
        body: Reader = session.ask(Message.DESCRIBE, struct.pack("<I", model.number))
        assert bodies.read_description(body) == FakeModel().description()
