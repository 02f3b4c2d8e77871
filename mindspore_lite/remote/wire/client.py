"""The client's side of the protocol: builds and runs models in a worker process.

A WireSession is what one process has at one worker. It owns one connection that carries nothing:
when it closes, the worker knows that the client is gone. Requests go over lanes, further
connections that carry one request at a time; as many are opened as there are requests at once, and
kept. `WireSession._lock` guards the list of idle lanes and `_closed`, and is not held while
anything is connected, sent or received; a lane itself belongs to one thread at a time. Every lane
has a block of shared memory for inputs and one for outputs, which grow when they must.
"""

from __future__ import annotations

import itertools
import math
import os
import socket
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress

import numpy as np

from mindspore_lite.core.fork import after_fork_in_child
from mindspore_lite.errors import (
    LiteError,
    RequestTimeoutError,
    ResourceError,
    WireError,
    WorkerDiedError,
)
from mindspore_lite.remote.wire import bodies, faults
from mindspore_lite.remote.wire.bodies import Build, Description, Group
from mindspore_lite.remote.wire.fields import Reader, Writer, microseconds
from mindspore_lite.remote.wire.frames import Buffer, Channel, Frame, Message
from mindspore_lite.remote.wire.handshake import NEW_SESSION, TIMEOUT_S, Welcome, greet
from mindspore_lite.remote.wire.memory import Block, Made, aligned
from mindspore_lite.remote.wire.tensors import (
    INLINE_BYTES,
    Region,
    laid_out,
    put,
    read_arrays,
    write_arrays,
)
from mindspore_lite.serving.call import Call

STOPPED, ENDED, HANGS = 1, 0, 2  # answers to CANCEL

LATE_S = 0.25  # how much longer than a deadline a client waits for the worker to say so; guess
_SMALLEST_BLOCK = 1 << 16
_QUICK_S = 200e-6  # an answer that takes no longer is awaited awake; benchmarks/devices.py
_OVER = "the session with the worker is over; connect and build again"
_GONE_S = 1.0  # between the first and the last sign that a process has ended; guess

_SESSIONS: weakref.WeakSet[WireSession] = weakref.WeakSet()


def _leave_to_parent() -> None:
    for session in list(_SESSIONS):
        session._forked()


after_fork_in_child(_leave_to_parent)


class WireSession:
    """Everything that this process has at a worker. Safe from many threads, except close()."""

    def __init__(self, sock: socket.socket, timeout_s: float = TIMEOUT_S) -> None:
        """Take over a connected socket, and become welcome there; closes it when that fails."""
        welcome = _greeted(sock, timeout_s=timeout_s)
        self._owner = sock
        self.pid = welcome.pid
        self._token = welcome.token
        self._address = welcome.text
        self._requests = itertools.count(1)
        self._lock = threading.Lock()
        self._idle: list[Lane] = []
        self._lanes: set[Lane] = set()
        self._closed = False
        self._process = os.getpid()
        _SESSIONS.add(self)

    @classmethod
    def connect(cls, path: str) -> WireSession:
        """A session at a worker that listens on a path (`mslite worker --socket`)."""
        return cls(_connected(path, TIMEOUT_S))

    def build(self, build: Build, contents: Sequence[np.ndarray] = ()) -> Model:
        """Load a model there; contents are the bytes of the model, and of its weights, as uint8."""

        def write(out: Writer, places: list[Region | None]) -> None:
            bodies.write_build(out, build, contents, places)

        return Model.of(self, self.ask_with(Message.BUILD, contents, write))

    def info(self, key: str, model: int = 0, timeout_s: float | None = None) -> str:
        """One fact about a model, or, for model 0, about the worker."""
        out = Writer()
        out.u32(model)
        out.text(key)
        return self.ask(Message.INFO, out.data, timeout_s).text("a fact")

    def cancel(self, request: int, wait_s: float, timeout_s: float) -> int:
        """End a request and wait for its end: ENDED before, STOPPED, or it HANGS."""
        out = Writer()
        out.u64(request)
        out.u64(microseconds(wait_s))
        return self.ask(Message.CANCEL, out.data, timeout_s).u8("an answer")

    def exit(self, words: str, timeout_s: float) -> None:
        """Say that no more requests will come; the worker ends when no other client needs it."""
        out = Writer()
        out.words(words)
        self.ask(Message.EXIT, out.data, timeout_s)

    def ask(self, message: Message, body: Buffer, timeout_s: float | None = None) -> Reader:
        """Send a request over a free lane and wait for its answer."""
        lane = self.lane(timeout_s)
        try:
            return lane.ask(message, body, timeout_s)
        finally:
            lane.give_back()

    def ask_with(
        self,
        message: Message,
        arrays: Sequence[np.ndarray],
        write: Callable[[Writer, list[Region | None]], None],
    ) -> Reader:
        """Send a request whose arrays are as large as models are; nothing like it follows soon.

        `write` appends the body, given the places of the arrays. Memory that was made for them is
        given back.
        """
        lane = self.lane()
        usual = lane._inputs
        try:
            out = Writer()
            write(out, lane.bring(arrays))
            return lane.ask(message, out.data)
        finally:
            try:
                if lane._inputs is not usual:
                    lane.free_inputs()
            finally:
                lane.give_back()

    def lane(self, timeout_s: float | None = None) -> Lane:
        """A lane for the caller alone, until it is given back or dropped."""
        if self._process != os.getpid():
            raise WireError(
                "the session was opened before this process was forked, and stayed with the "
                "parent; open another one in the child, or use the spawn start method"
            )
        with self._lock:
            if self._closed:
                raise WorkerDiedError(_OVER)
            if self._idle:
                return self._idle.pop()
        limit_s = TIMEOUT_S if timeout_s is None else min(max(timeout_s, LATE_S), TIMEOUT_S)
        sock = _connected(_address(self._address), limit_s)
        try:
            _greeted(sock, self._token, limit_s)
        except WireError as exc:  # it took us once, so it is ending, or gone and another is there
            raise WorkerDiedError(f"the session with the worker is over: {exc}") from exc
        lane = Lane(self, Channel(sock))
        with self._lock:
            if not self._closed:
                self._lanes.add(lane)
                return lane
        lane.hang_up()
        raise WorkerDiedError(_OVER)

    @property
    def is_alone(self) -> bool:
        """Whether one lane at most is in use; others may take some while this is asked."""
        return len(self._lanes) <= len(self._idle) + 1

    def next_request(self) -> int:
        """An id that no other request of the session has."""
        return next(self._requests)

    def close(self) -> None:
        """Go: the worker forgets everything that was built here. Harmless when repeated."""
        if self._process != os.getpid():
            return  # the parent's; what this process had of it went when it was forked
        with self._lock:
            self._closed = True
            busy, self._lanes = self._lanes.difference(self._idle), set()
            idle, self._idle = self._idle, []
        with suppress(OSError):  # the worker may have been first
            self._owner.shutdown(socket.SHUT_RDWR)
        self._owner.close()
        for lane in idle:
            lane.hang_up()
        for lane in busy:
            # its user closes it, at the latest by dropping it: now its descriptor might
            # become another's, while it is still waited for
            lane.interrupt()
            weakref.finalize(lane, lane._channel.let_go)

    def _forked(self) -> None:
        """In a child of this process: let go, or the worker would not see the parent's end."""
        self._owner.close()
        for lane in self._lanes:
            lane._channel.let_go()

    def _given_back(self, lane: Lane) -> None:
        with self._lock:
            if not self._closed:
                self._idle.append(lane)
                return
        lane.hang_up()

    def _dropped(self, lane: Lane) -> None:
        with self._lock:
            self._lanes.discard(lane)


class Lane:
    """One connection of a session, for one request at a time."""

    def __init__(self, session: WireSession, channel: Channel) -> None:
        self.session = session
        self.request = 0  # the one that was sent and is not answered yet; 0: none
        self._channel = channel
        self._inputs: Block | None = None
        self._outputs: Block | None = None
        self._freed: list[int] = []
        self._took_s = math.inf  # for the last answer to come

    def bring(
        self,
        arrays: Sequence[np.ndarray],
        inline: int = INLINE_BYTES,
        due_s: float | None = None,
    ) -> list[Region | None]:
        """Copy arrays into this lane's memory; the small ones have no place, and travel inline."""
        places, size = laid_out(arrays, inline=inline)
        if size == 0:
            return places
        block = self._inputs
        if block is None or block.size < size:
            if block is not None:
                self._freed.append(block.number)
                self._inputs = None
            block = self._inputs = self._allocated(_rounded(size), _left_s(due_s))
        placed = [None if p is None else p._replace(block=block.number) for p in places]
        put(arrays, placed, block)
        return placed

    def send_predict(self, model: int, names: Sequence[str], call: Call) -> None:
        """Have the model run; the answer is to be fetched by predicted()."""
        timeout_s = call.timeout_s
        due_s = None if timeout_s is None else time.monotonic() + timeout_s
        inputs, had_to_wait = self._inputs, bool(self._freed)
        if self._freed:
            self._free(timeout_s)
        places = self.bring(call.inputs, due_s=due_s)
        if had_to_wait or self._inputs is not inputs:
            call = call.part(call.inputs, _left_s(due_s))
        out = Writer()
        room = self._outputs
        place = bodies.NO_ROOM if room is None else Region(room.number, 0, room.size)
        bodies.write_predict(out, model, call, place)
        write_arrays(out, names, call.inputs, places)
        self._send(Message.PREDICT, out.data)

    def predicted(self, timeout_s: float | None = None) -> list[np.ndarray]:
        """The outputs. Large ones lie in this lane's memory: valid until it is given back."""
        start_s = time.perf_counter()
        # only one at a time: threads that stay awake are in the way of those that work
        if self._took_s < _QUICK_S and self.session.is_alone:
            self._look(2 * self._took_s)
        body = self._answer(None if timeout_s is None else timeout_s + LATE_S)
        self._took_s = time.perf_counter() - start_s
        for made in bodies.read_made(body):
            if self._outputs is not None:
                self._freed.append(self._outputs.number)
                self._outputs = None
            self._outputs = self._opened(made)
        blocks = {} if self._outputs is None else {self._outputs.number: self._outputs}
        return read_arrays(body, blocks, "outputs")

    def fileno(self) -> int:
        """The connection's descriptor."""
        return self._channel.fileno()

    def ask(self, message: Message, body: Buffer, timeout_s: float | None = None) -> Reader:
        """Send a request and wait for its answer."""
        self._send(message, body)
        return self._answer(timeout_s)

    def give_back(self) -> None:
        """Let others have it; one whose request was not answered is closed instead."""
        if self.request:
            self.drop()
        else:
            self.session._given_back(self)

    def drop(self) -> None:
        """Close it: it broke, or its answer is not wanted any more."""
        self.session._dropped(self)
        self.hang_up()

    def interrupt(self) -> None:
        """Wake the thread that waits for an answer; the lane is spoilt and must be dropped."""
        self._channel.interrupt()

    def hang_up(self) -> None:
        """Close the connection and let go of its memory; not while another thread uses the lane."""
        self._channel.close()
        # not when the lane is forgotten: the error of a request refers to it for as long as
        # somebody keeps the error, or until cycles of garbage are looked for
        self._inputs = self._outputs = None

    def _send(self, message: Message, body: Buffer) -> None:
        self.request = self.session.next_request()
        try:
            self._channel.send(message, self.request, body)
        except OSError as exc:
            raise WorkerDiedError(f"the worker is gone: {exc}") from exc

    def _answer(self, timeout_s: float | None) -> Reader:
        frame = self._received(timeout_s)
        body = Reader(frame.body)
        if frame.request != self.request:
            if frame.request == 0 and frame.message is Message.ERROR:
                raise faults.read_error(body)  # its last words on this connection
            raise WireError(f"the answer to request {frame.request} came, wanted {self.request}")
        self.request = 0
        if frame.message is Message.ERROR:
            error = faults.read_error(body)
            if self.session._closed:  # it may be called off because of that
                raise WorkerDiedError(_OVER) from error
            raise error
        if frame.message not in (Message.REPLY, Message.BUILD_FINISH):
            raise WireError(f"{frame.message.name} came as an answer")
        return body

    def _received(self, timeout_s: float | None) -> Frame:
        try:
            frame = self._channel.receive(timeout_s)
        except TimeoutError as exc:
            if timeout_s is None:
                raise WorkerDiedError(f"the worker stopped within an answer: {exc}") from exc
            raise RequestTimeoutError(f"the worker did not answer within {timeout_s:g} s") from exc
        except OSError as exc:
            raise WorkerDiedError(f"the worker is gone: {exc}") from exc
        if frame is None:
            raise WorkerDiedError("the worker is gone: it closed the connection")
        return frame

    def _look(self, limit_s: float) -> None:
        try:
            self._channel.look(limit_s)
        except OSError as exc:
            raise WorkerDiedError(f"the worker is gone: {exc}") from exc

    def _allocated(self, size: int, timeout_s: float | None = None) -> Block:
        out = Writer()
        out.u64(size)
        made = bodies.read_made(self.ask(Message.ALLOCATE, out.data, timeout_s))
        if len(made) != 1:
            raise WireError(f"one block was asked for, and the worker made {len(made)}")
        return self._opened(made[0])

    def _opened(self, made: Made) -> Block:
        try:
            return Block.open(self.session.pid, made)
        except LiteError as exc:
            self._freed.append(made.block)  # nobody else would
            if isinstance(exc.__cause__, FileNotFoundError) and self._channel.is_lost(_GONE_S):
                raise WorkerDiedError("the worker is gone, and its shared memory with it") from exc
            raise

    def free_inputs(self) -> None:
        """Give the block for inputs back, unless the lane is stuck; the next one is new."""
        if self._inputs is not None and not self.request:
            self._freed.append(self._inputs.number)
            self._inputs = None
            self._free()

    def _free(self, timeout_s: float | None = None) -> None:
        """Give blocks back that were too small; now, when no answer is awaited."""
        out = Writer()
        out.u32(len(self._freed))
        for number in self._freed:
            out.u32(number)
        self._freed = []
        self.ask(Message.FREE, out.data, timeout_s)


class Model:
    """A model, or a runner, that a worker hosts."""

    def __init__(
        self, session: WireSession, number: int, description: Description, notes: list[str]
    ) -> None:
        self.session = session
        self.number = number
        self.inputs = description.inputs
        self.outputs = description.outputs
        self.notes = notes  # warnings of the build
        self._names = [info.name for info in self.inputs]

    @classmethod
    def of(cls, session: WireSession, body: Reader) -> Model:
        """What the body of BUILD_FINISH tells."""
        number = body.u32("the model")
        description = bodies.read_description(body)
        return cls(session, number, description, body.items("notes", lambda: body.text("a note")))

    def start(self, call: Call) -> Pending:
        """Send a request without waiting for its answer."""
        timeout_s = call.timeout_s
        due_s = None if timeout_s is None else time.monotonic() + timeout_s
        lane = self.session.lane(timeout_s)
        try:
            lane.send_predict(self.number, self._names, call)
        except BaseException:
            lane.give_back()
            raise
        return Pending(lane, due_s)

    def predict(
        self, arrays: Sequence[np.ndarray], timeout_s: float | None = None, priority: int = 0
    ) -> list[np.ndarray]:
        """Run the model and return outputs that own their memory."""
        pending = self.start(Call(arrays, timeout_s, priority))
        arrays = pending.outputs()
        try:
            return [owned(array) for array in arrays]
        finally:
            pending.release()

    def resize(self, shapes: Sequence[Sequence[int]]) -> None:
        """Give the inputs other shapes."""
        out = Writer()
        out.u32(self.number)
        out.u32(len(shapes))
        for shape in shapes:
            out.dims(tuple(shape))
        found = bodies.read_description(self.session.ask(Message.RESIZE, out.data))
        self.inputs, self.outputs = found.inputs, found.outputs

    def update_weights(self, groups: Sequence[Group]) -> None:
        """Change weights, group by group; no groups restore those of the file.

        Returns when requests that are sent from now on run with the new ones.
        """
        self._with_weights(Message.UPDATE_WEIGHTS, groups)

    def derived(self, groups: Sequence[Group]) -> Model:
        """Another model like this one, which stays as it is, with other weights."""
        return Model.of(self.session, self._with_weights(Message.DERIVE, groups))

    def _with_weights(self, message: Message, groups: Sequence[Group]) -> Reader:
        def write(out: Writer, places: list[Region | None]) -> None:
            bodies.write_update(out, self.number, groups, places)

        arrays = [array for group in groups for _, array in group]
        return self.session.ask_with(message, arrays, write)

    def update_notes(self) -> list[str]:
        """The warnings of this client's last update."""
        return [note for note in self.info(bodies.WEIGHTS_NOTES).split("\n") if note]

    def info(self, key: str) -> str:
        """One fact about the model."""
        return self.session.info(key, self.number)

    def statistics(self, timeout_s: float | None = None) -> str:
        """What was done so far, as JSON."""
        out = Writer()
        out.u32(self.number)
        return self.session.ask(Message.STATISTICS, out.data, timeout_s).text("statistics")

    def close(self, drain_s: float | None = None, timeout_s: float | None = None) -> None:
        """Release the model; requests under way have drain_s to end, the answer timeout_s."""
        out = Writer()
        out.u32(self.number)
        out.u64(microseconds(drain_s))
        self.session.ask(Message.CLOSE, out.data, timeout_s)


class Pending:
    """A request under way; it is over after release() or abandon()."""

    def __init__(self, lane: Lane, due_s: float | None) -> None:
        self.request = lane.request
        self._lane = lane
        self.due_s = due_s  # by which the answer must be there; None: whenever

    def fileno(self) -> int:
        """What becomes readable when the answer is there."""
        return self._lane.fileno()

    def outputs(self) -> list[np.ndarray]:
        """Wait for the answer. Arrays with a base lie in shared memory: valid until release()."""
        try:
            return self.fetched()
        except BaseException:
            self.release()
            raise

    def fetched(self) -> list[np.ndarray]:
        """As outputs(), but after an error, too, the lane stays with the caller until release().

        For a thread that another may interrupt: the lane must be its own then.
        """
        return self._lane.predicted(_left_s(self.due_s))

    @property
    def answered(self) -> bool:
        """Whether the worker has answered, with outputs or an error."""
        return self._lane.request != self.request

    def release(self) -> None:
        """The outputs are not needed any more."""
        self._lane.give_back()

    def interrupt(self) -> None:
        """Wake the thread that waits for the answer; it gets an error."""
        self._lane.interrupt()

    def abandon(self) -> None:
        """The answer is not wanted any more."""
        self._lane.drop()


def _left_s(due_s: float | None) -> float | None:
    return None if due_s is None else max(0.0, due_s - time.monotonic())


def owned(array: np.ndarray) -> np.ndarray:
    """An output in memory of its own: what lies in shared memory is copied."""
    return array if array.base is None else array.copy()


def _address(text: str) -> str:
    """How workers write where they listen: a path, or "@" and an abstract name."""
    if not text:
        raise WireError("the worker does not take further lanes")
    return "\0" + text[1:] if text.startswith("@") else text


def _connected(address: str, timeout_s: float) -> socket.socket:
    sock = None
    try:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.settimeout(timeout_s)
        sock.connect(address)
    except OSError as exc:
        if sock is None:
            raise ResourceError(
                f"no socket can be had: {exc}; close files, or allow more (ulimit -n)"
            ) from exc
        sock.close()
        raise _lost(exc, timeout_s) from exc
    return sock


def _greeted(
    sock: socket.socket, token: bytes = NEW_SESSION, timeout_s: float = TIMEOUT_S
) -> Welcome:
    """Become welcome on a connection, or close it."""
    try:
        return greet(sock, token, timeout_s)
    except OSError as exc:
        sock.close()
        raise _lost(exc, timeout_s) from exc
    except LiteError:
        sock.close()
        raise


def _lost(exc: OSError, limit_s: float) -> LiteError:
    """What it means that no connection can be had."""
    if isinstance(exc, TimeoutError) and limit_s < TIMEOUT_S:
        return RequestTimeoutError(f"the worker did not answer within {limit_s:g} s")
    return WorkerDiedError(f"no worker answers: {exc.strerror or exc}; is it running?")


def _rounded(size: int) -> int:
    """A size that is not outgrown at once: an eighth of a power of two more, at least."""
    step = max(_SMALLEST_BLOCK, 1 << (size.bit_length() - 3))
    return aligned(-(-size // step) * step)
