"""What one client has at a worker: its models, shared memory and requests under way.

Who owns what. Every lane of the client has a thread here, which takes one request after the other;
what they share is changed under `_lock`, which is never held while a model is built or run; single
look-ups in a dict are atomic and go without it. `_closed` is asked again under the lock before
anything is added, so that a model or block made meanwhile is not left behind. Blocks are made here
and belong to the client: it says when one may go. Those of a lane that ended go, too: the client
may have left it in the middle of an answer, and never heard of them. One that goes while a request
uses it stays in memory until that has ended.
"""

from __future__ import annotations

import errno
import itertools
import os
import secrets
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from mindspore_lite.core.boundary import ours
from mindspore_lite.engines.select import usable_targets
from mindspore_lite.errors import (
    CancelledError,
    ClosedError,
    InputError,
    ResourceError,
    WireError,
)
from mindspore_lite.remote.wire import bodies, faults
from mindspore_lite.remote.wire.client import ENDED, HANGS, STOPPED
from mindspore_lite.remote.wire.fields import Reader, Writer
from mindspore_lite.remote.wire.frames import Frame, Message
from mindspore_lite.remote.wire.handshake import TOKEN_BYTES
from mindspore_lite.remote.wire.memory import MAX_BLOCK, Block, remedy
from mindspore_lite.remote.wire.tensors import Region, array_of, laid_out, put, write_arrays
from mindspore_lite.remote.worker.groups import Groups
from mindspore_lite.remote.worker.served_model import Hosted, Running, built
from mindspore_lite.remote.worker.shared import Origin, Shared, named
from mindspore_lite.serving.registry import Registry
from mindspore_lite.tensor import Tensor
from mindspore_lite.version import __version__

MAX_BLOCKS = 4096
MAX_MODELS = 1024
MAX_WAIT_S = 60.0  # of a CANCEL for the end of what it cancels

_ALWAYS = (Message.CANCEL, Message.EXIT)  # taken also when no new requests are
_FULL = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOSPC)

Answer = tuple[Message, bytearray]


class ClientSession:
    """One client of a worker, from its first connection to the end of that."""

    def __init__(self, registry: Registry[Hosted]) -> None:
        # of models that have a name, which all clients share
        self._registry = registry
        self.token = secrets.token_bytes(TOKEN_BYTES)
        self.last_words = ""  # of its EXIT
        self.said_farewell = False  # somebody answers it
        self.refuses = ""  # why no new requests are taken
        self._lock = threading.Lock()
        self._closed = False
        self._models: dict[int, Hosted] = {}
        self._building = 0  # models that are not there yet
        self._groups = Groups()
        self._blocks: dict[int, Block] = {}
        self._makers: dict[int, int] = {}  # of each block, the thread of the lane it was made for
        self._running: dict[int, Running] = {}
        self._numbers = itertools.count(1)
        self._update_notes: dict[int, str] = {}  # of models: warnings of the last update
        self._answers: dict[Message, Callable[[Reader, Running], Answer]] = {
            Message.PREDICT: self._predict,
            Message.BUILD: self._build,
            Message.DESCRIBE: self._describe,
            Message.RESIZE: self._resize,
            Message.UPDATE_WEIGHTS: self._update_weights,
            Message.INFO: self._info,
            Message.STATISTICS: self._statistics,
            Message.CANCEL: self._cancel,
            Message.CLOSE: self._close,
            Message.ALLOCATE: self._allocate,
            Message.FREE: self._free,
            Message.DERIVE: self._derive,
            Message.EXIT: self._exit,
        }

    def answer(self, frame: Frame, running: Running) -> Answer:
        """Do what a frame asks for, unless it is cancelled; an error is an answer, too."""
        try:
            act = self._answers.get(frame.message)
            if act is None:
                raise WireError(f"a worker does not take {frame.message.name}")
            if self.refuses and frame.message not in _ALWAYS:
                raise ClosedError(self.refuses)
            return act(Reader(frame.body), running)
        except Exception as exc:  # noqa: BLE001 - whatever it is, the client must learn of it
            out = Writer()
            faults.write_error(out, _told(exc))
            return Message.ERROR, out.data

    def cancel(self) -> None:
        """End all requests: the client is gone. Does not wait."""
        with self._lock:
            self.refuses = "the client has left"
            found = list(self._running.values())
        for running in found:
            running.cancel()

    def lane_ended(self) -> None:
        """The lane of this thread is over: the blocks that were made for it go."""
        own = threading.get_ident()
        with self._lock:
            gone = [key for key, maker in self._makers.items() if maker == own]
            blocks = [self._take_block(key) for key in gone]
        for block in blocks:
            block.close()

    def close(self) -> None:
        """End everything under way, and release everything. Harmless when repeated."""
        self.cancel()
        with self._lock:
            self._closed = True
            models, self._models = list(self._models.values()), {}
            blocks, self._blocks, self._makers = list(self._blocks.values()), {}, {}
        for block in blocks:
            block.close()
        for model in models:
            model.close(0.0)

    # --- one method per message ---

    def _predict(self, body: Reader, running: Running) -> Answer:
        asked = bodies.read_predict(body, self._blocks)
        model = self._model(asked.model)
        room = self._blocks.get(asked.room.block)
        if asked.room.block and room is None:
            raise WireError(f"there is no block {asked.room.block}; was it freed?")
        with self._known(running):
            outputs = model.predict(asked.call, running)
        return self._reply(model, outputs, room, asked.room)

    def _reply(
        self, model: Hosted, outputs: list[np.ndarray], room: Block | None, place: Region
    ) -> Answer:
        """The outputs, in the room that the client offered, or in a new block."""
        places, size = laid_out(outputs)
        made = []
        start = place.offset
        if size and (room is None or size > place.size):
            room, start = self._new_block(size), 0
            made.append(room.made)
        if size and room is not None:
            places = [
                None if p is None else Region(room.number, p.offset + start, p.size) for p in places
            ]
            put(outputs, places, room)
        out = Writer()
        bodies.write_made(out, made)
        write_arrays(out, model.output_names, outputs, places)
        return Message.REPLY, out.data

    def _build(self, body: Reader, running: Running) -> Answer:
        asked = bodies.read_build(body)
        contents = [array_of(tensor, self._blocks).tobytes() for tensor in asked.content]
        return self._finish(lambda: self._built(asked, contents, running), running)

    def _derive(self, body: Reader, running: Running) -> Answer:
        key, weights = self._with_weights(body)
        model = self._model(key)
        return self._finish(lambda: model.derived(weights), running)

    def _finish(self, make: Callable[[], Hosted], running: Running) -> Answer:
        """Make a model, and tell the client about it."""
        with self._room_for_model(), self._known(running), _noted() as notes:
            model = make()
            key = next(self._numbers)
            out = Writer()
            out.u32(key)
            try:
                bodies.write_description(out, model.description())
                with self._lock:
                    if self._closed:
                        raise ClosedError("the client left while its model was being built")
                    if running.cancelled:
                        raise CancelledError("the build was cancelled")
                    self._models[key] = model
            except BaseException:
                model.close(0.0)
                raise
        said = list(dict.fromkeys(notes))  # reading the name has warned as the build does
        out.u32(len(said))
        for note in said:
            out.words(note)
        return Message.BUILD_FINISH, out.data

    @contextmanager
    def _room_for_model(self) -> Iterator[None]:
        with self._lock:
            if len(self._models) + self._building >= MAX_MODELS:
                raise ResourceError(f"there are {MAX_MODELS} models already; close some")
            self._building += 1
        try:
            yield
        finally:
            with self._lock:
                self._building -= 1

    def _built(self, asked: bodies.Build, contents: list[bytes], running: Running) -> Hosted:
        """The model of a client alone, or the one that all share who call it by the same name."""
        name, version, limit_s = named(asked)
        group = self._groups.group(asked.settings)
        if not name:
            return built(asked, contents, group)
        if group is not None:
            raise ValueError("a model with a name cannot be in a group; leave one of the two out")
        origin, start = None, None
        if asked.path or contents:
            origin, start = Origin.of(asked, contents), lambda: built(asked, contents)
        join = partial(self._registry.join, limit_s=limit_s, known=running.attach)
        return Shared(join(name, version, origin, start))

    def _describe(self, body: Reader, running: Running) -> Answer:
        model = self._model(body.u32("the model"))
        body.end("DESCRIBE")
        out = Writer()
        bodies.write_description(out, model.description())
        return Message.REPLY, out.data

    def _resize(self, body: Reader, running: Running) -> Answer:
        model = self._model(body.u32("the model"))
        shapes = body.items("shapes", lambda: body.dims("a shape", 64))
        body.end("RESIZE")
        out = Writer()
        bodies.write_description(out, model.resize(shapes))
        return Message.REPLY, out.data

    def _update_weights(self, body: Reader, running: Running) -> Answer:
        key, weights = self._with_weights(body)
        model = self._model(key)
        with _noted() as notes:
            model.update_weights(weights)
        self._update_notes[key] = "\n".join(dict.fromkeys(notes))
        return Message.REPLY, bytearray()

    def _with_weights(self, body: Reader) -> tuple[int, list[list[Tensor]]]:
        key, groups = bodies.read_update(body)
        return key, [[Tensor._wrap(t.name, array_of(t, self._blocks)) for t in g] for g in groups]

    def _info(self, body: Reader, running: Running) -> Answer:
        key = body.u32("the model")
        name = body.text("the fact's name")
        body.end("INFO")
        out = Writer()
        if key and name == bodies.WEIGHTS_NOTES:
            self._model(key)  # an error if there is none
            out.text(self._update_notes.get(key, ""))
        else:
            out.text(self._model(key).info(name) if key else _own_info(name))
        return Message.REPLY, out.data

    def _statistics(self, body: Reader, running: Running) -> Answer:
        model = self._model(body.u32("the model"))
        body.end("STATISTICS")
        out = Writer()
        out.text(model.statistics())
        return Message.REPLY, out.data

    def _cancel(self, body: Reader, running: Running) -> Answer:
        number, wait_us = body.u64("a request"), body.u64("a wait")
        body.end("CANCEL")
        with self._lock:
            found = self._running.get(number)
        out = Writer()
        if found is None:
            out.u8(ENDED)
        else:
            found.cancel()
            out.u8(STOPPED if found.wait(min(wait_us / 1e6, MAX_WAIT_S)) else HANGS)
        return Message.REPLY, out.data

    def _close(self, body: Reader, running: Running) -> Answer:
        key, drain_us = body.u32("the model"), body.time_us("a time")
        body.end("CLOSE")
        with self._lock:
            model = self._models.pop(key, None)
            self._update_notes.pop(key, None)
        if model is None:
            raise _no_model(key)
        model.close(drain_us / 1e6 if drain_us else None)
        return Message.REPLY, bytearray()

    def _allocate(self, body: Reader, running: Running) -> Answer:
        size = body.u64("a size")
        body.end("ALLOCATE")
        out = Writer()
        bodies.write_made(out, [self._new_block(size).made])
        return Message.REPLY, out.data

    def _free(self, body: Reader, running: Running) -> Answer:
        keys = body.items("blocks", lambda: body.u32("a block"))
        body.end("FREE")
        with self._lock:
            unknown = [key for key in keys if key not in self._blocks]
            found = [self._take_block(key) for key in set(keys) - set(unknown)]
        for block in found:
            block.close()
        if unknown:
            raise WireError(f"there are no blocks {unknown}; the others were freed")
        return Message.REPLY, bytearray()

    def _exit(self, body: Reader, running: Running) -> Answer:
        self.last_words = body.text("the last words")
        body.end("EXIT")
        self.refuses = "the client said that it leaves"
        return Message.REPLY, bytearray()

    # --- what they share ---

    def _model(self, key: int) -> Hosted:
        model = self._models.get(key)
        if model is None:
            raise _no_model(key)
        return model

    def _new_block(self, size: int) -> Block:
        if MAX_BLOCK >= size > _free_memory():
            raise ResourceError(
                f"{size} bytes of shared memory were asked for, but {_free_memory()} bytes of "
                "memory are free; send smaller requests, or fewer at once"
            )
        with self._lock:
            if len(self._blocks) >= MAX_BLOCKS:
                raise ResourceError(f"there are {MAX_BLOCKS} blocks already; free some")
            key = next(self._numbers)
        block = Block.make(key, size)
        with self._lock:
            if self._closed:
                block.close()
                raise ClosedError("the client has left")
            self._blocks[key] = block
            self._makers[key] = threading.get_ident()
        return block

    def _take_block(self, key: int) -> Block:
        del self._makers[key]
        return self._blocks.pop(key)

    @contextmanager
    def _known(self, running: Running) -> Iterator[None]:
        """A request that other lanes may cancel while it lasts."""
        number = running.number
        with self._lock:
            if self.refuses:
                raise ClosedError(self.refuses)
            if number in self._running:
                raise InputError(f"request {number} is under way already; ids must differ")
            self._running[number] = running
        try:
            yield
        finally:
            with self._lock:
                del self._running[number]
            running.ended.release()


def _no_model(key: int) -> ClosedError:
    return ClosedError(f"there is no model {key}; was it closed?")


def _told(error: Exception) -> Exception:
    """The error for a client: a full machine looks the same wherever it was noticed."""
    if isinstance(error, MemoryError):
        return ResourceError(f"there is not enough memory: {error}; send less, or less at once")
    if isinstance(error, OSError) and error.errno in _FULL:
        return ResourceError(f"the machine has no room for it: {error}; {remedy(error)}")
    if isinstance(error, TypeError | ValueError):  # the client's arguments are checked here
        return error
    return ours(error)


def _own_info(name: str) -> str:
    """Facts about the worker itself."""
    facts: dict[str, Callable[[], Any]] = {
        "version": lambda: __version__,
        "pid": os.getpid,
        "cores": lambda: ",".join(map(str, sorted(os.sched_getaffinity(0)))),
        "targets": lambda: ",".join(usable_targets()),
    }
    if name not in facts:
        raise ValueError(f"there is no worker info {name!r}, wanted one of {', '.join(facts)}")
    return str(facts[name]())


def _free_memory() -> int:
    """Bytes that are available without swapping, as the kernel estimates."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    return 1 << 62


_notes = threading.local()
_show = warnings.showwarning


@contextmanager
def _noted() -> Iterator[list[str]]:
    """Collect the warnings of this thread, for the client to see."""
    found: list[str] = []
    _notes.found = found
    try:
        yield found
    finally:
        _notes.found = None


def keep_notes() -> None:
    """Send warnings to the client whose build raised them; others are shown as usual."""
    warnings.simplefilter("always", UserWarning)

    def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        found = getattr(_notes, "found", None)
        if found is not None:
            found.append(str(message))
        else:
            _show(message, category, *place, **more)

    warnings.showwarning = show
