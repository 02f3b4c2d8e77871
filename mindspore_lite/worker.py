"""connect: use the models of a worker process (`mslite worker`) from Python.

    with mslite.connect("/run/user/1000/mslite.sock") as worker:
        digits = worker.build_from_file("digits.mindir", name="digits")
        digits.predict([image])

Programs that give a model the same name share it: one copy of the weights, and one pool of workers
of the size that the machine has room for. A model without a name belongs to its program alone.
"""

from __future__ import annotations

import os
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from mindspore_lite.context import Context
from mindspore_lite.core import checks
from mindspore_lite.core.boundary import boundary, reraise
from mindspore_lite.errors import ClosedError, EngineError, LiteError
from mindspore_lite.faces.answer import FAILED, Answer
from mindspore_lite.faces.base_runner import BaseRunner, checked_context
from mindspore_lite.remote.service import Connection, RemoteService
from mindspore_lite.remote.wire.bodies import RUNNER, Build
from mindspore_lite.remote.wire.client import WireSession
from mindspore_lite.remote.wire.faults import RUNNER_FAILED
from mindspore_lite.serving import feeds
from mindspore_lite.serving.call import Call, checked_priority
from mindspore_lite.serving.service import Described, Inputs, existing
from mindspore_lite.settings.formats import ModelType, model_kind
from mindspore_lite.settings.read import read_layers
from mindspore_lite.settings.spec import settle
from mindspore_lite.settings.text import request_of
from mindspore_lite.tensor import Tensor

_BUILDING = "the worker cannot serve the model: "
_NO_STATISTICS = "there are no statistics: "
_SERVICE_IDS = ("service.name", "service.version")


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
        self._connection = Connection(session)
        self._gone = weakref.finalize(self, self._connection.close)
        self._forgotten: deque[RemoteService] = deque()  # of runners that nobody has closed

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
        existing(path)
        layers = read_layers("build_from_file", asked.config_path, asked.config_info)
        with boundary(_BUILDING):
            spec = settle(context, layers, stacklevel=3)
            kind = ModelType[model_kind(Path(path))]
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
        return {
            key: self._connection.session.info(key)
            for key in ("version", "pid", "cores", "targets")
        }

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
            self._forgotten.popleft().close(0.0)
        try:
            model = self._connection.session.build(build)
        except LiteError as exc:
            exc.args = (str(exc).removeprefix(RUNNER_FAILED), *exc.args[1:])
            reraise(exc, _BUILDING)
        for note in model.notes:
            warnings.warn(note, UserWarning, stacklevel=3)
        forgotten = RemoteService(model, self._connection)  # it must not hold this object
        return WorkerRunner(
            RemoteService(model, self._connection, self, target),
            partial(self._forgotten.append, forgotten),
        )


class WorkerRunner(BaseRunner[RemoteService]):
    """A model that a worker process runs, for any number of threads of this one.

    It is released by close(), by leaving a `with` block, with its Worker, or, when nobody refers to
    it any more, with the next build of its Worker.
    """

    def __init__(self, loaded: RemoteService, forget: Callable[[], None]) -> None:
        """`forget` is called when nobody refers to it: by a garbage collection, anywhere."""
        super().__init__()
        self._loaded = loaded
        self._last: dict[str, Any] | None = None  # statistics, when it was closed
        self._dropped = weakref.finalize(self, forget)
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
        loaded = self._open(FAILED)
        call = _call(loaded, inputs, outputs, timeout_s, priority)
        with boundary(FAILED):
            return feeds.tensors(loaded.outputs, loaded.run(call), outputs)

    def submit(
        self,
        inputs: Inputs,
        outputs: Sequence[Tensor] | None = None,
        *,
        timeout_s: float | None = None,
        priority: int = 0,
    ) -> Future[list[Tensor]]:
        """Send a request and return; a Future that is cancelled ends it in the worker."""
        loaded = self._open(FAILED)
        call = _call(loaded, inputs, outputs, timeout_s, priority)
        with boundary(FAILED):
            return Answer(loaded, partial(loaded.submit, call), outputs)

    def statistics(self) -> dict[str, Any]:
        """What the model did so far, for all programs that share it, as the worker counts.

        After close(), what it had done by then.
        """
        if self._last is not None:
            return self._last
        loaded = self._open(_NO_STATISTICS)
        with boundary(_NO_STATISTICS):
            return loaded.statistics()

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
            with suppress(LiteError):  # a worker that is gone counts no more
                self._last = self._loaded.statistics()
            self._closed = True
            self._dropped.detach()
            self._loaded.close(limit)

    def _open(self, prefix: str) -> RemoteService:
        loaded = self._usable(prefix)
        if self._closed:
            raise ClosedError(f"{prefix}the model was closed; build or join it again")
        return loaded


def _call(
    loaded: RemoteService,
    inputs: Inputs,
    outputs: Sequence[Tensor] | None,
    timeout_s: float | None,
    priority: int,
) -> Call:
    """A request whose arguments are in order."""
    if timeout_s is not None and not checks.seconds("timeout_s", timeout_s):
        raise ValueError("timeout_s must be more than 0 seconds, or None for the model's own")
    number = checked_priority(priority)
    try:
        feeds.checked_outputs(loaded.outputs, outputs)
        return Call(loaded.arrays(inputs), timeout_s, number)
    except (LiteError, MemoryError) as exc:
        reraise(exc, FAILED)


def _service(name: str, version: str) -> dict[str, dict[str, str]]:
    name, version = checks.string("name", name).strip(), checks.string("version", version).strip()
    if version and not name:
        raise EngineError(f"version is {version!r}, but there is no name; give the model one")
    return {"service": {"name": name, "version": version}} if name else {}
