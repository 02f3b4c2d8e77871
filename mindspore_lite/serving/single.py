"""SingleService: one model in one session, which every caller runs on its own thread."""

from __future__ import annotations

import json
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from mindspore_lite.core import machine, threads
from mindspore_lite.core.capabilities import named
from mindspore_lite.core.deadline import WATCHDOG
from mindspore_lite.core.fork import ForkLock
from mindspore_lite.core.json_text import read_json
from mindspore_lite.core.stop import Stop
from mindspore_lite.core.tensor_info import TensorInfo
from mindspore_lite.engines import choice
from mindspore_lite.engines.base import Group
from mindspore_lite.engines.sessions.state import StatefulSession
from mindspore_lite.errors import ClosedError, RequestTimeoutError, ShapeError, StoppedError
from mindspore_lite.graph.source import ModelInput
from mindspore_lite.serving import feeds, update
from mindspore_lite.serving.build import Built, build, resized, updated
from mindspore_lite.serving.call import Call
from mindspore_lite.serving.service import Ended, Inputs
from mindspore_lite.settings.spec import Spec
from mindspore_lite.tensor import Tensor

Infos = tuple[TensorInfo, ...]
_OF_RUNNERS = (
    "workers_num", "device_ids", "queue_size", "max_batch_rows", "max_batch_wait_us", "warm_up",
)  # fmt: skip
MODEL_INFO_KEYS = ("user_info", "input_shape", "dynamic_dims")  # texts about a model


class SingleService:
    """A model that can be resized; see serving/service.py.

    `built` is the model as it is now. It is exchanged as a whole, under `_changing`; a run takes it
    once, and needs no lock.
    """

    dynamic_dims = ""  # of an Ascend compiler

    def __init__(self, given: ModelInput, spec: Spec, group: Group | None = None) -> None:
        _warn_of_runner_settings(spec)
        given = replace(given, beside=spec.mindir_path)
        if group is not None and not spec.engine and not spec.on_card:
            spec = replace(spec, engine=named("").name)  # which shares; no other is picked
        self.spec, self.built = choice.made_by(spec, given, partial(build, given, group=group))
        self._changing = ForkLock()
        self._closed = False

    @property
    def name(self) -> str:
        """What errors call the model."""
        return self.built.given.name

    @property
    def inputs(self) -> tuple[TensorInfo, ...]:
        """What it takes, after the last resize."""
        return self._open().inputs

    @property
    def outputs(self) -> tuple[TensorInfo, ...]:
        """What it gives, after the last resize."""
        return self._open().outputs

    @property
    def weights_version(self) -> int:
        """How many times the weights were changed."""
        return self.built.version

    @property
    def weights_handle(self) -> str:
        """By which other processes use the weights."""
        return "" if self.built.share is None else str(self.built.share.handle)

    @property
    def user_info(self) -> str:
        """What a MindIR says of itself, as JSON; an ONNX file may hold anything under that name."""
        try:
            found = read_json(self.built.session.info.metadata.get("user_info", ""))
        except ValueError:
            return ""
        return json.dumps(found) if found and isinstance(found, dict) else ""

    @property
    def input_shape(self) -> str:
        """The inputs' shapes as text, as the original writes them."""
        return ";".join(f"{i.name}:{list(i.shape)}".replace(" ", "") for i in self.built.inputs)

    def run(self, call: Call) -> list[Any]:
        """Compute on the calling thread; nothing waits, so priorities have no effect."""
        stop, timeout_s = Stop(), call.timeout_s or self.spec.timeout_s or None
        expired = False

        def expire() -> None:
            nonlocal expired
            expired = True
            stop.fire()

        if call.known is not None:
            call.known(stop.fire)
        entry = None
        if timeout_s is not None:
            entry = WATCHDOG.watch(time.monotonic() + timeout_s, expire)
        try:
            return self._run(call, stop)
        except StoppedError as exc:
            if not expired:
                raise CancelledError from exc
            raise RequestTimeoutError(
                f"no answer within timeout_s={timeout_s:g}: it was running, and was told to stop"
            ) from exc
        finally:
            if entry is not None:
                WATCHDOG.cancel(entry)

    def _run(self, call: Call, stop: Stop) -> list[Any]:
        """Run it; a run that loses its session to a resize begins again, with the new one."""
        while True:
            built = self._open()
            try:
                return built.session.run(feeds.arrays(built.inputs, list(call.inputs)), stop)
            except ClosedError:
                if self._open() is built:
                    raise

    def arrays(self, inputs: Inputs) -> list[np.ndarray]:
        """Inputs as a session takes them, of the sizes after the last resize."""
        return feeds.arrays(self._open().inputs, inputs)

    def submit(self, call: Call, ended: Ended) -> Callable[[], bool]:
        """Compute on a thread of its own; what is returned cancels that."""
        turn = threading.Lock()  # whoever gets it ends the call: the run, or its cancellation
        is_cancelled = False
        stops: deque[Callable[[], object]] = deque()

        def known(stop: Callable[[], object]) -> None:
            stops.append(stop)
            if is_cancelled:  # cancel() says so before it looks for the stop: one sees the other
                stop()

        call.known = known

        def work() -> None:
            found: list[Any] | BaseException
            try:
                found = self.run(call)
            except BaseException as exc:  # noqa: BLE001 - whoever waits must learn of it
                found = exc
            if turn.acquire(blocking=False):
                ended(found)

        def cancel() -> bool:
            nonlocal is_cancelled
            if not turn.acquire(blocking=False):
                return False
            is_cancelled = True
            for stop in list(stops):
                stop()
            return True

        threads.start(work)
        return cancel

    def probe(self, timeout_s: float = 0.0) -> bool:
        """Whether it takes calls; nothing has to be asked."""
        return not self._closed

    def resize(self, shapes: Sequence[tuple[int, ...]]) -> tuple[Infos, Infos]:
        """Give the inputs other shapes; returns the inputs and outputs that this led to.

        A model that cannot have them stays as it was.
        """
        with self._changing:
            before = self._open()
            if len(shapes) != len(before.inputs):
                raise ShapeError(f"{len(shapes)} shapes were given for {len(before.inputs)} inputs")
            self.built = resized(before, list(shapes))
            if self.built.session is not before.session:
                before.session.close()
            elif isinstance(before.session, StatefulSession):
                before.session.reset()
            return self.built.inputs, self.built.outputs

    def update_weights(self, groups: list[list[Tensor]]) -> None:
        """Change weights; runs under way finish on those that they began with."""
        with self._changing:
            built = self._open()
            self.built = updated(built, update.replacements(built, groups))
            del built
            machine.trim_heap()  # what the session before took

    def statistics(self) -> None:
        """Nothing is counted."""

    def close(self, drain_s: float | None = None) -> None:
        """Release the model; runs under way finish. Harmless when repeated."""
        with self._changing:
            self._closed = True
            self.built.close()

    def _open(self) -> Built:
        if self._closed:
            raise ClosedError("the model was closed; build it again to use it")
        return self.built


def _warn_of_runner_settings(spec: Spec) -> None:
    """Say it when a configuration, which is for this model, has settings of a runner.

    A Context may serve both.
    """
    found = [spec.settled[f"parallel.{name}"] for name in _OF_RUNNERS]
    said = [f"[{one.section}] {one.key.name}" for one in found if one.section]
    if said:
        warnings.warn(
            f"{', '.join(said)}: no effect on a Model, which has neither workers nor a queue; use "
            "a ModelParallelRunner, or leave this out",
            UserWarning,
            stacklevel=5,
        )
