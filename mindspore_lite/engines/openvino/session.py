"""A compiled OpenVINO model that many threads may run.

Who owns what: one compiled model serves all callers; its streams share the packed weights. A call
takes an infer request that nobody else uses from the free ones, or makes one, and puts it back when
its outputs are copied; one whose run failed is thrown away. Where the session has several streams,
a request is queued and one of OpenVINO's threads computes: a thread that computed itself would be
tied to a stream of its own, two callers to the same one, while others idle. So is one that may be
stopped, for OpenVINO cancels only such, at the next operator of the graph; a loop is one operator.
A caller pinned to its own cores runs the work itself, and cannot be stopped; one of a session with
a single stream computes himself, too.

OpenVINO's threads do not survive a fork: the child's copies are marked, and never destroyed.
"""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import numpy as np
import openvino as ov

from mindspore_lite.core import binding
from mindspore_lite.core.fork import after_fork_in_child
from mindspore_lite.engines.base import Opener, Options, SessionInfo, Stop
from mindspore_lite.engines.openvino.reading import UNUSED, Ports, readable, shown
from mindspore_lite.engines.sessions import io_types
from mindspore_lite.engines.sessions.run_failure import run_failure
from mindspore_lite.errors import ClosedError, EngineError, InputError, LiteError, StoppedError
from mindspore_lite.weights.records import Variable

FORKED = (
    "OpenVINO was used before this process was forked, and its threads stayed with the parent; use "
    "the spawn start method, or [common_context] engine=onnxruntime"
)


class _Request(NamedTuple):
    """An infer request, and the tensors that take its inputs' places between runs."""

    native: Any
    blanks: tuple[Any, ...]


class _Native(NamedTuple):
    """A compiled model, what it reads its weights from, and the infer requests of no caller."""

    compiled: Any
    weights: Any
    free: list[_Request]


class OpenVinoSession:
    """See engines/base.py for the contract."""

    def __init__(
        self,
        compiled: Any,
        weights: Any,
        ports: Ports,
        skeleton: bytes,
        options: Options,
        variables: tuple[Variable, ...] = (),
        opener: Opener | None = None,
    ) -> None:
        """Args beyond the obvious:

        weights: Whatever must live as long as the compiled model.
        opener: What opens the model with other weights, if there are variables.
        """
        self._opener = opener
        inward, outward = (io_types.declared(ports.metadata, s) for s in ("inputs", "outputs"))
        self.info = SessionInfo(
            inputs=tuple(io_types.seen(one, inward) for one in ports.inputs),
            outputs=tuple(io_types.seen(one, outward) for one in ports.outputs),
            metadata=ports.metadata,
            variables=variables,
            mapped=False,  # another session packs its own weights
        )
        self._inward = [inward.get(one.name) for one in ports.inputs]
        self._places = tuple(ports.places)
        self._outward = [outward.get(one.name) for one in ports.outputs]
        self._native: _Native | None = _Native(compiled, weights, [])
        self._skeleton = skeleton
        self._cores = options.cores[:1] if options.binds_caller else ()
        self._is_own = options.caller_computes or bool(options.cores)  # each caller computes
        self._has_streams = options.streams > 1
        self._forked = False
        _SESSIONS.add(self)

    def run(self, inputs: Sequence[np.ndarray], stop: Stop | None = None) -> list[np.ndarray]:
        """Compute the outputs, which are copied out of OpenVINO's memory."""
        native = self._native
        if native is None:
            raise self._unusable()
        if len(inputs) != len(self._inward):
            raise InputError(
                f"the model was given {len(inputs)} inputs, wanted {len(self._inward)}: "
                f"{[one.name for one in self.info.inputs]}"
            )
        try:
            request = native.free.pop() if native.free else None
        except IndexError:  # another caller took the last one meanwhile
            request = None
        try:
            request = request or _request(native.compiled)
            with binding.bound(self._cores):
                found = self._computed(request, inputs, stop)
        except LiteError:
            raise
        except Exception as exc:
            if stop is not None and stop.fired:
                raise StoppedError("the run was told to stop") from exc
            text = f"OpenVINO could not run the model: {readable(exc)}"
            raise run_failure(text, exc, self.info.inputs, self._skeleton, inputs) from exc
        if stop is None or not stop.fired:  # else it may be half cancelled
            native.free.append(request)
        return found

    def _computed(
        self, request: _Request, inputs: Sequence[np.ndarray], stop: Stop | None
    ) -> list[np.ndarray]:
        native = request.native
        shared = []  # which OpenVINO does not keep alive
        for place, array, kind in zip(self._places, inputs, self._inward, strict=True):
            if place != UNUSED:
                shared.append(shown(io_types.inward(array, kind) if kind else array))
                native.set_input_tensor(place, ov.Tensor(shared[-1], shared_memory=True))
        try:
            self._wait(native, stop)
        except BaseException:  # Ctrl-C may come before the end: nobody may read `shared` after it
            with suppress(Exception):
                native.cancel()
                native.wait()
            raise
        found = [np.array(native.get_output_tensor(at).data) for at in range(len(self._outward))]
        for at, blank in enumerate(request.blanks):
            native.set_input_tensor(at, blank)  # the caller's data is its own again
        return [
            io_types.outward(array, kind) if kind else array
            for array, kind in zip(found, self._outward, strict=True)
        ]

    def _wait(self, native: Any, stop: Stop | None) -> None:
        """Run a request to its end, or until it is stopped."""
        if stop is None:
            self._start(native, self._has_streams and not self._is_own)
            native.wait()
            return
        with stop.handle(_Runs, _Runs.cancel).of(native, stop):
            self._start(native, not self._is_own)
            if stop.fired:  # which may have come before there was something to cancel
                native.cancel()
            native.wait()

    def _start(self, native: Any, queued: bool) -> None:
        if queued:
            native.start_async()
        else:
            native.infer(share_outputs=True)  # they are copied later

    def skeleton(self) -> bytes:
        """The untouched ONNX graph without its large weights."""
        return self._skeleton

    def opener(self) -> Opener:
        """Compiles the model again, with other weights."""
        if self._opener is None:
            raise self._unusable()
        return self._opener

    def close(self) -> None:
        """Drop the compiled model; runs under way finish undisturbed."""
        self._native = None
        self._opener = None  # which holds weights

    def _unusable(self) -> Exception:
        if self._forked:
            return EngineError(f"the session cannot be used here: {FORKED}")
        return ClosedError("the session is closed; build the model again to run it")

    def _leave_to_parent(self) -> None:
        if self._native is not None:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._native))  # never destroyed
            self._native = None
            self._forked = True


class _Runs:
    """The runs that a Stop ends: those under way, and none that later uses the same request."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: list[Any] = []

    @contextmanager
    def of(self, native: Any, stop: Stop) -> Iterator[None]:
        """A run, which is over when the block ends."""
        with self._lock:
            if stop.fired:
                raise StoppedError("the run was told to stop before it began")
            self._running.append(native)
        try:
            yield
        finally:
            with self._lock:
                self._running.remove(native)

    def cancel(self) -> None:
        """End what is running, at the next operator."""
        with self._lock:
            for native in self._running:
                native.cancel()


def _request(compiled: Any) -> _Request:
    native = compiled.create_infer_request()
    count = len(compiled.inputs)
    return _Request(native, tuple(native.get_input_tensor(at) for at in range(count)))


def _after_fork() -> None:
    for session in list(_SESSIONS):
        session._leave_to_parent()


_SESSIONS: weakref.WeakSet[OpenVinoSession] = weakref.WeakSet()
after_fork_in_child(_after_fork)
