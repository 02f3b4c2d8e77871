"""connect: use the models of a worker process (`mslite worker`) from Python.

    with mslite.connect("/run/user/1000/mslite.sock") as worker:
        digits = worker.build_from_file("digits.mindir", name="digits")
        digits.predict([image])

Programs that give a model the same name share it: one copy of the weights, and one pool of workers
of the size that the machine has room for. A model without a name belongs to its program alone.
"""

from __future__ import annotations

import logging
import os
import threading
import warnings
import weakref
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from mindspore_lite.context import Context
from mindspore_lite.core import checks, threads
from mindspore_lite.core.boundary import boundary, reraise
from mindspore_lite.core.json_text import read_json
from mindspore_lite.core.tensor_info import for_target
from mindspore_lite.errors import ClosedError, EngineError, LiteError, WorkerDiedError
from mindspore_lite.faces.base_runner import BaseRunner, checked_context
from mindspore_lite.remote.devices.heartbeat import Heartbeat
from mindspore_lite.remote.devices.threads import Threads
from mindspore_lite.remote.wire.bodies import RUNNER, Build
from mindspore_lite.remote.wire.client import Model, Pending, WireSession, owned
from mindspore_lite.serving import feeds, update
from mindspore_lite.serving.call import Call, checked_priority
from mindspore_lite.serving.pooled import Inputs
from mindspore_lite.serving.service import Described, existing
from mindspore_lite.settings.formats import ModelType, model_kind
from mindspore_lite.settings.read import read_layers
from mindspore_lite.settings.spec import settle
from mindspore_lite.settings.text import request_of
from mindspore_lite.tensor import Tensor

_LOG = logging.getLogger(__name__)
_FAILED = "predict failed! "
_BUILDING = "the worker cannot serve the model: "
_SERVICE_IDS = ("service.name", "service.version")
_LOOK_S = 10.0  # between two looks whether a worker that has requests of ours still answers
SILENT_S = 60.0  # without an answer or a sign of work, after which a worker counts as dead
_CANCEL_S = 5.0  # for a worker to take a cancellation


def connect(path: str | os.PathLike[str]) -> Worker:
    """Connect to a worker that listens on a path.

    Args:
        path: What `mslite worker --socket PATH` was started with.

    Raises:
        WorkerDiedError: No worker answers there.
        WireError: It speaks another version of the protocol.

    Examples:
        >>> import mindspore_lite as mslite
        >>> mslite.connect("/no/such/worker.sock")
        Traceback (most recent call last):
        ...
        mindspore_lite.errors.WorkerDiedError: no worker answers: No such file or directory; ...
    """
    return Worker(WireSession.connect(checks.path("path", path)))


class Worker:
    """A connection to a worker process. Everything but close() may be called from any thread."""

    def __init__(self, session: WireSession) -> None:
        self._session = session
        self._threads = Threads()
        self._watch = _Watch(session)
        self._gone = weakref.finalize(self, _leave, session, self._watch)
        self._forgotten: deque[Model] = deque()  # of runners that nobody has closed

    def build_from_file(
        self,
        model_path: str | os.PathLike[str],
        context: Context | None = None,
        *,
        name: str = "",
        version: str = "",
    ) -> WorkerRunner:
        """Have the worker load a model file as a ModelParallelRunner does; `.onnx` is ONNX.

        Args:
            model_path: The file, which the worker reads.
            context: Where and how to run; None is the CPU with automatic settings. It is only read.
            name: By which programs share the model: it is started, or joined if there is one of
                this name, which must have been built from the same file with the same settings.
                "" is a model of this program alone.
            version: Which of several models of the name; "" is the newest.

        Raises:
            TypeError: An argument is of the wrong type.
            RuntimeError: The model cannot be loaded, or the name belongs to another model.
        """
        path = os.path.abspath(checks.path("model_path", model_path))
        context = checked_context(context)
        asked = context.parallel
        with boundary(_BUILDING):
            layers = read_layers("build_from_file", asked.config_path, asked.config_info)
            spec = settle(context, layers, stacklevel=3)
            kind = ModelType[model_kind(Path(existing(path)))]
        # the worker has another working directory, and need not find the configuration's files
        settings, config = request_of(spec, without=_SERVICE_IDS)
        config |= _service(name or spec.name, version or spec.version)
        build = Build(RUNNER, kind.value, path, settings=settings, config=config)
        runner = self._built(build, spec.target)
        runner.model_path_ = path
        return runner

    def join(self, name: str, version: str = "") -> WorkerRunner:
        """Use a model that another program has built under a name.

        Raises:
            ClosedError: There is no such model.
        """
        service = _service(name, version)
        if not service:
            raise ValueError("name must not be empty: it says which model to join")
        return self._built(Build(RUNNER, 0, config=service))

    def info(self) -> dict[str, str]:
        """Facts about the worker: version, pid, cores, targets."""
        return {key: self._session.info(key) for key in ("version", "pid", "cores", "targets")}

    def close(self) -> None:
        """Leave: models that only this connection uses end. Harmless when repeated."""
        self._gone()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _built(self, build: Build, target: str = "") -> WorkerRunner:
        while self._forgotten:
            _close(self._forgotten.popleft(), 0.0)
        try:
            model = self._session.build(build)
        except LiteError as exc:
            reraise(exc, _BUILDING)
        for note in model.notes:
            warnings.warn(note, UserWarning, stacklevel=3)
        return WorkerRunner(_Loaded(model, self, self._threads, self._watch, target))

    def _forget(self, model: Model) -> None:
        """Close a model with the next build: a garbage collection calls this, wherever one is."""
        self._forgotten.append(model)


class WorkerRunner(BaseRunner["_Loaded"]):
    """A model that a worker process runs, for any number of threads of this one.

    It is released by close(), by leaving a `with` block, with its Worker, or, when nobody refers to
    it any more, with the next build of its Worker.
    """

    def __init__(self, loaded: _Loaded) -> None:
        super().__init__()
        self._loaded = loaded
        self._dropped = weakref.finalize(self, loaded.owner._forget, loaded.model)
        self._dropped.atexit = False

    def predict(
        self,
        inputs: Inputs,
        outputs: Sequence[Tensor] | None = None,
        *,
        timeout_s: float | None = None,
        priority: int = 0,
    ) -> list[Tensor]:
        """Run the model once and return its outputs, which own their memory.

        Args:
            inputs: One Tensor or array per model input, in the order of get_inputs(), or by name.
            outputs: Tensors to write the results into; None makes new ones.
            timeout_s: Within which the answer must be there; None takes what the model was built
                with.
            priority: -100 to 100: of the requests that wait, those of a higher one start first.

        Raises:
            TypeError: An input is neither Tensor nor array.
            ValueError: priority or timeout_s is out of range.
            RequestTimeoutError: There was no answer in time; the work was ended.
            WorkerDiedError: The worker ended, or stopped answering.
            RuntimeError: The inputs do not fit the model, or the engine failed.
        """
        loaded = self._open(_FAILED)
        prepared = loaded.prepared(inputs, outputs, timeout_s, priority)
        with boundary(_FAILED):
            return loaded.tensors(loaded.start(prepared), prepared)

    def submit(
        self,
        inputs: Inputs,
        outputs: Sequence[Tensor] | None = None,
        *,
        timeout_s: float | None = None,
        priority: int = 0,
    ) -> Future[list[Tensor]]:
        """Send a request and return; a Future that is cancelled ends it in the worker.

        Up to 64 answers are waited for at once; further ones are fetched after those.
        """
        loaded = self._open(_FAILED)
        prepared = loaded.prepared(inputs, outputs, timeout_s, priority)
        with boundary(_FAILED):
            return loaded.submitted(prepared)

    async def predict_async(
        self,
        inputs: Inputs,
        outputs: Sequence[Tensor] | None = None,
        *,
        timeout_s: float | None = None,
        priority: int = 0,
    ) -> list[Tensor]:
        """predict() for coroutines: the event loop is free while the worker computes."""
        import asyncio  # most programs never need it, and it is slow to load

        future = self.submit(inputs, outputs, timeout_s=timeout_s, priority=priority)
        return await asyncio.wrap_future(future)

    def statistics(self) -> dict[str, Any]:
        """What the model did so far, for all programs that share it, as the worker counts."""
        model = self._open("there are no statistics: ").model
        found: dict[str, Any] = read_json(model.statistics())
        return found

    def get_model_info(self, key: str | None = None) -> str:
        """One fact about the model as the worker says it; see Model.get_model_info."""
        return self._open("there is no model info: ").model.info(checks.string("key", key))

    @property
    def _described(self) -> Described | None:
        return None  # the worker has it

    def close(self, timeout_s: float | None = 30.0) -> None:
        """Give the model up; it ends when no other program shares it. Harmless when repeated."""
        limit = None if timeout_s is None else checks.seconds("timeout_s", timeout_s)
        if self._loaded is not None and not self._closed:
            self._closed = True
            self._dropped.detach()
            _close(self._loaded.model, limit)

    def _open(self, prefix: str) -> _Loaded:
        loaded = self._usable(prefix)
        if self._closed:
            raise ClosedError(f"{prefix}the model was closed; build or join it again")
        return loaded


class _Loaded:
    """A model of the worker, and what is needed to wait for its answers."""

    def __init__(
        self, model: Model, owner: Worker, waiting: Threads, watch: _Watch, target: str
    ) -> None:
        self.model = model
        self.owner = owner  # whose connection ends with it
        self.inputs, self.outputs = for_target(target, model.inputs), model.outputs
        self.threads, self._watch = waiting, watch

    def update_weights(self, groups: list[list[Tensor]]) -> None:
        """Change weights, for all programs that share the model."""
        self.model.update_weights([[(t.name, update.data(t)) for t in group] for group in groups])
        for note in self.model.update_notes():
            warnings.warn(note, UserWarning, stacklevel=3)

    def prepared(
        self,
        inputs: Inputs,
        outputs: Sequence[Tensor] | None,
        timeout_s: float | None,
        priority: int,
    ) -> _Prepared:
        """A request whose arguments are in order."""
        if timeout_s is not None and not checks.seconds("timeout_s", timeout_s):
            raise ValueError("timeout_s must be more than 0 seconds, or None for the model's own")
        number = checked_priority(priority)
        try:
            call = Call(feeds.arrays(self.inputs, inputs, any_size=True), timeout_s, number)
            return _Prepared(call, feeds.checked_outputs(self.outputs, outputs))
        except (LiteError, MemoryError) as exc:
            reraise(exc, _FAILED)

    def start(self, prepared: _Prepared) -> Pending:
        """Send a request."""
        return self.model.start(prepared.call)

    def tensors(self, call: Pending, prepared: _Prepared) -> list[Tensor]:
        """Wait for the answer of a request."""
        with self._watch:
            arrays = call.outputs()
        try:
            found = [owned(array) for array in arrays]
        finally:
            call.release()
        return feeds.tensors(self.outputs, found, prepared.outputs)

    def submitted(self, prepared: _Prepared) -> Future[list[Tensor]]:
        """A request whose answer is waited for on another thread."""
        call = self.start(prepared)
        answer = _Answer(self, call)
        try:
            self.threads.start(partial(answer.fetch, prepared))
        except LiteError:
            call.abandon()
            raise
        return answer


class _Prepared(NamedTuple):
    """A request, and where its outputs go."""

    call: Call
    outputs: Sequence[Tensor] | None


class _Answer(Future[list[Tensor]]):
    """The Future of a request. It stays pending until the end, so that it can be cancelled."""

    def __init__(self, loaded: _Loaded, call: Pending) -> None:
        super().__init__()
        self._loaded, self._call = loaded, call
        self._ending = threading.RLock()  # held by what ends it: a cancellation, or the answer

    def cancel(self) -> bool:
        """End the request; False when it has ended already."""
        with self._ending:
            if self.done():
                return self.cancelled()
            super().cancel()
            self.set_running_or_notify_cancel()
        with suppress(LiteError):  # the caller need not wait; without a thread, it just runs on
            self._loaded.threads.start(self._call_off)
        return True

    def _call_off(self) -> None:
        try:
            self._loaded.model.session.cancel(self._call.request, 0.0, _CANCEL_S)
        except LiteError as exc:  # the worker is gone, and the request with it
            _LOG.info("a request could not be called off: %s", exc)

    def fetch(self, prepared: _Prepared) -> None:
        """Wait for the answer, on a thread of its own."""
        found: list[Tensor] | BaseException
        try:
            with boundary(_FAILED):
                found = self._loaded.tensors(self._call, prepared)
        except BaseException as exc:  # noqa: BLE001 - whoever waits must learn of it
            found = exc
        with self._ending:
            if self.done():
                return
            if isinstance(found, BaseException):
                self.set_exception(found)
            else:
                self.set_result(found)


class _Watch:
    """Notices that a worker with requests of ours has stopped answering.

    A thread looks while requests are under way, and ends when there are none for a while.
    """

    def __init__(self, session: WireSession) -> None:
        self.session, self.pid = session, session.pid
        self._lock = threading.Lock()  # guards all below
        self._waiting = 0
        self._closed = False
        self._running = False
        self._wake = threading.Event()

    def __enter__(self) -> None:
        with self._lock:
            self._waiting += 1
            begins = not self._running and not self._closed
            self._running = self._running or begins
        if begins:
            try:
                threads.start(self._look)
            except RuntimeError:  # this request goes on unwatched; the next one tries again
                with self._lock:
                    self._running = False

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._waiting -= 1

    def close(self) -> None:
        """Look no more."""
        with self._lock:
            self._closed = True
        self._wake.set()

    def _look(self) -> None:
        heartbeat = Heartbeat(self)
        while not self._wake.wait(_LOOK_S):
            with self._lock:
                if not self._waiting:
                    self._running = False
                    return
            try:
                silent_s = heartbeat.ask_for_work()
            except LiteError as exc:  # there is no lane to ask over: that says nothing about it
                _LOG.info("the worker cannot be asked: %s", exc)
                continue
            if silent_s >= SILENT_S:
                _LOG.error("the worker did not answer for %.1f s, nor did it compute", silent_s)
                self.session.close()
                return


def _leave(session: WireSession, watch: _Watch) -> None:
    watch.close()
    session.close()


def _close(model: Model, drain_s: float | None) -> None:
    """Give a model up; a worker that is gone has done so already."""
    with suppress(WorkerDiedError, ClosedError):
        model.close(drain_s)


def _service(name: str, version: str) -> dict[str, dict[str, str]]:
    name, version = checks.string("name", name).strip(), checks.string("version", version).strip()
    if version and not name:
        raise EngineError(f"version is {version!r}, but there is no name; give the model one")
    return {"service": {"name": name, "version": version}} if name else {}
