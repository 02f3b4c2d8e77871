"""MultiDeviceRunner: one model on several devices, one batch split over them.

The runner checks arguments, splits and joins; who computes a part, and what happens when a process
dies, is the dispatcher's matter (remote/devices/dispatcher.py).
"""

from __future__ import annotations

import math
import os
import threading
import warnings
import weakref
from collections.abc import Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar, overload

import numpy as np

from mindspore_lite.context import Context
from mindspore_lite.core import checks
from mindspore_lite.core.boundary import boundary, reraise
from mindspore_lite.core.budget import SECTION
from mindspore_lite.core.tensor_info import for_target
from mindspore_lite.engines import time_limit
from mindspore_lite.errors import (
    EngineError,
    LiteError,
    QueueFullError,
    RequestTimeoutError,
    WorkerDiedError,
)
from mindspore_lite.faces.base_runner import BaseRunner
from mindspore_lite.model import ModelType
from mindspore_lite.remote.devices import trial
from mindspore_lite.remote.devices.dispatcher import Dispatcher
from mindspore_lite.remote.devices.groups import masks
from mindspore_lite.remote.devices.report import MultiDeviceStatistics
from mindspore_lite.remote.devices.request import SplitRequest
from mindspore_lite.remote.devices.split import Scatter, SplitPlan, joined, plan
from mindspore_lite.remote.devices.supervisor import DevicePlace, Life, stamp
from mindspore_lite.remote.devices.threads import Threads
from mindspore_lite.remote.wire.bodies import RUNNER, Build
from mindspore_lite.remote.wire.client import owned
from mindspore_lite.serving import feeds, update
from mindspore_lite.serving.batching import row_trial
from mindspore_lite.serving.batching.row_trial import Run
from mindspore_lite.serving.call import Call, checked_priority
from mindspore_lite.serving.pooled import Inputs
from mindspore_lite.serving.service import Described, unnamed
from mindspore_lite.settings.formats import model_kind
from mindspore_lite.settings.read import read_layers
from mindspore_lite.settings.spec import Spec, settle
from mindspore_lite.settings.text import request_of
from mindspore_lite.tensor import Tensor

E = TypeVar("E", bound=BaseException)

_PROBE_S = 2.0
_FOR_EVER_S = 1e6  # nobody waits longer; poll() cannot
_FAILED = "predict failed! "


class MultiDeviceRunner(BaseRunner["_Loaded"]):
    """A model on several devices, each in a worker process of its own.

    `context.parallel.device_ids` says which: numbers of cards for targets "gpu" and "ascend"; on
    the CPU, device i is the i-th disjoint group of the cores. Everything but building and closing
    may be called from any thread. A process that dies fails only what it was computing, and is
    started again. A runner is released by close(), by leaving a `with` block, or when nobody refers
    to it any more.

    Args:
        on_failure: What to do with a part of a request whose process died: "raise"
            WorkerDiedError, or "retry" it once on another device.

    Examples:
        >>> import numpy as np
        >>> import mindspore_lite as mslite
        >>> from mindspore_lite.cli.demo import DIGITS_MODEL
        >>> context = mslite.Context()
        >>> context.parallel.device_ids = [0]
        >>> with mslite.MultiDeviceRunner() as runner:
        ...     runner.build_from_file(str(DIGITS_MODEL), context)
        ...     (probabilities,) = runner.predict([np.zeros((5, 1, 8, 8), np.float32)])
        >>> probabilities.shape
        [5, 10]
    """

    def __init__(self, on_failure: Literal["raise", "retry"] = "raise") -> None:
        super().__init__()
        self._retries = int(checks.one_of("raise", "retry")("on_failure", on_failure) == "retry")

    def build_from_file(
        self, model_path: str | os.PathLike[str], context: Context | None = None
    ) -> None:
        """Load and compile a model on every device at once; `.onnx` is ONNX, others MindIR.

        Args:
            model_path: The file.
            context: Where and how to run; None is one CPU device. It is only read.

        Raises:
            TypeError: An argument is of the wrong type.
            RuntimeError: The first thing that went wrong on one of the devices; the others are
                ended then, and the object is as it was.
        """
        model_path = checks.path("model_path", model_path)
        context = self._checked(model_path, context)
        with boundary(self._building):
            loaded = _Loaded(model_path, context, self._retries)
        self._loaded, self._closed, self.model_path_ = loaded, False, model_path

    @property
    def _described(self) -> Described | None:
        return self._loaded

    def predict(
        self,
        inputs: Inputs,
        outputs: Sequence[Tensor] | None = None,
        *,
        timeout_s: float | None = None,
        priority: int = 0,
        scatter: Scatter = None,
    ) -> list[Tensor]:
        """Split the batch over the devices, run all parts at once, and join their outputs.

        Inputs that carry the batch are cut along their first axis, as evenly as can be; the others
        are sent whole to every device. A model whose file fixes the number of rows gets parts of
        just that many.

        Args:
            inputs: One Tensor or array per model input, in the order of get_inputs(), or by name.
            outputs: Tensors to write the results into; None makes new ones.
            timeout_s: Within which the answer must be there; None takes context.parallel.timeout_s.
            priority: -100 to 100: of the requests that wait for a device, those of a higher one
                start first. Every 100 ms of waiting count as one more.
            scatter: For inputs about which the runner would decide wrongly: by name or in order,
                True carries the batch, False is sent whole, None is decided by the runner.

        Raises:
            TypeError: An input is neither Tensor nor array.
            RequestTimeoutError: There was no answer in time; the work was ended.
            WorkerDiedError: A worker process ended while it computed a part.
            ClosedError: The runner was closed.
            RuntimeError: The inputs do not fit the model, its rows cannot be computed apart, or the
                engine failed.
        """
        loaded = self._usable(_FAILED)
        try:
            work = loaded.split(inputs, outputs, loaded.call(timeout_s, priority), scatter)
        except (LiteError, MemoryError, OSError) as exc:
            reraise(exc, _FAILED)
        with boundary(_FAILED):
            loaded.dispatcher.take()
            return loaded.done(work)

    @overload
    def predict_parts(
        self,
        parts: Sequence[Inputs],
        *,
        timeout_s: float | None = None,
        priority: int = 0,
        return_errors: Literal[False] = False,
    ) -> list[list[Tensor]]: ...

    @overload
    def predict_parts(
        self,
        parts: Sequence[Inputs],
        *,
        timeout_s: float | None = None,
        priority: int = 0,
        return_errors: bool,
    ) -> list[list[Tensor] | Exception]: ...

    def predict_parts(
        self,
        parts: Sequence[Inputs],
        *,
        timeout_s: float | None = None,
        priority: int = 0,
        return_errors: bool = False,
    ) -> list[list[Tensor]] | list[list[Tensor] | Exception]:
        """Run the model once for each of several requests, at once on all devices.

        Nothing is split or joined: the outputs of each part are returned, in the order of the
        parts. With as many parts as devices, part i runs on the i-th device if that is free.

        Args:
            parts: The inputs of each.
            timeout_s: Within which all answers must be there; None takes
                context.parallel.timeout_s.
            priority: That of every part; see predict().
            return_errors: Whether a part that failed has its error in the result; otherwise the
                first error is raised, and the other parts are called off.

        Raises:
            TypeError, RuntimeError: As predict().
        """
        loaded = self._usable(_FAILED)
        try:
            request = loaded.request(parts, loaded.call(timeout_s, priority), return_errors)
        except (LiteError, MemoryError) as exc:
            reraise(exc, _FAILED)
        with boundary(_FAILED):
            return loaded.parts(request, return_errors)

    def submit(
        self,
        inputs: Inputs,
        outputs: Sequence[Tensor] | None = None,
        *,
        timeout_s: float | None = None,
        priority: int = 0,
        scatter: Scatter = None,
    ) -> Future[list[Tensor]]:
        """Begin a run and return at once; arguments and errors are those of predict().

        What is given is read without a copy: leave it unchanged until the answer is there. The
        Future can be cancelled while it waits, and also while it runs.

        Raises:
            QueueFullError: As many requests are under way as context.parallel.queue_size allows.
        """
        loaded = self._usable(_FAILED)
        try:
            work = loaded.split(inputs, outputs, loaded.call(timeout_s, priority), scatter)
        except (LiteError, MemoryError, OSError) as exc:
            reraise(exc, _FAILED)
        with boundary(_FAILED):
            return loaded.submitted(work)

    async def predict_async(
        self,
        inputs: Inputs,
        outputs: Sequence[Tensor] | None = None,
        *,
        timeout_s: float | None = None,
        priority: int = 0,
        scatter: Scatter = None,
    ) -> list[Tensor]:
        """predict() for coroutines: the event loop is free while the devices compute."""
        import asyncio  # most programs never need it, and it is slow to load

        future = self.submit(
            inputs, outputs, timeout_s=timeout_s, priority=priority, scatter=scatter
        )
        return await asyncio.wrap_future(future)

    def is_ready(self, timeout_s: float = _PROBE_S) -> bool:
        """Whether every device is up, and its process has answered just now.

        Args:
            timeout_s: How long a process may take to answer.
        """
        limit_s = checks.seconds("timeout_s", timeout_s)
        return self._loaded is not None and self._loaded.dispatcher.is_ready(limit_s)

    def statistics(self) -> MultiDeviceStatistics:
        """What the runner did so far, and how its devices are; also to be had after close().

        Raises:
            RuntimeError: The runner is not built.
        """
        return self._usable("there are no statistics: ").dispatcher.statistics()

    def close(self, timeout_s: float | None = 30.0) -> None:
        """Take no more requests, finish those that were taken, and end the processes.

        Args:
            timeout_s: After which requests that are not done yet end with ClosedError; None waits
                as long as it takes.
        """
        if self._loaded is not None:
            limit_s = math.inf if timeout_s is None else checks.seconds("timeout_s", timeout_s)
            self._closed = True
            self._loaded.dispatcher.close(None if limit_s > _FOR_EVER_S else limit_s)


class _Loaded:
    """What a built runner holds: the dispatcher, and what the model says about its ends."""

    weights_handle = ""  # see _check_weights

    def __init__(self, path: str, context: Context, retries: int) -> None:
        asked = context.parallel
        layers = read_layers("build_from_file", asked.config_path, asked.config_info)
        spec = self.spec = unnamed(settle(context, layers, stacklevel=3))
        _check_weights(spec)
        self._submitted = 0
        self._lock = threading.Lock()
        self._threads = Threads()
        self._timeout_s = self._limit_s(spec.timeout_s or math.inf)
        # on a card the first runs compile, which has nothing to do with what a request may take
        first_s = spec.timeout_s if spec.target == "cpu" else 0.0
        self._run_limit_s = spec.budget.run_limit_s(first_s)
        self.dispatcher = Dispatcher(_places(path, spec, self._run_limit_s), retries=retries)
        models = [life.model for life in self.dispatcher.lives]
        self.inputs, self.outputs = for_target(spec.target, models[0].inputs), models[0].outputs
        self._shapes = [info.shape for info in self.inputs]
        self._verdicts: dict[trial.Cuts, str] = {}  # why a batch must not be cut so; "": it may
        try:
            for note in dict.fromkeys(note for model in models for note in model.notes):
                warnings.warn(note, UserWarning, stacklevel=3)
            if len(models) > 1:
                for cuts in trial.usual_cuts(self.inputs):
                    if self._tried(cuts, self._trial_run(self.dispatcher.lives[0]), self._verdicts):
                        break
        except BaseException:
            self.dispatcher.close(0.0)
            raise
        # not of the runner: Futures, which are to be answered, hold this one only
        weakref.finalize(self, self.dispatcher.abandon).atexit = False

    @property
    def weights_version(self) -> int:
        """How many times the weights were changed."""
        return self.dispatcher.weights.now.version

    def update_weights(self, groups: list[list[Tensor]]) -> None:
        """Change weights on all devices at once."""
        if not self.spec.weights.variable:
            raise update.fixed()
        verdicts: dict[trial.Cuts, str] = {}
        notes: dict[str, None] = {}

        def look(life: Life) -> None:
            """Whether rows mix may depend on the weights; requests need not wait to know it."""
            notes.update(dict.fromkeys(life.model.update_notes()))
            for cuts in list(self._verdicts):
                self._tried(cuts, self._trial_run(life), verdicts)

        # copies: what a process that starts again is to be told must not change
        self.dispatcher.update(
            [[(tensor.name, np.array(update.data(tensor))) for tensor in g] for g in groups], look
        )
        self._verdicts = verdicts
        for note in notes:
            warnings.warn(note, UserWarning, stacklevel=3)

    def call(self, timeout_s: float | None, priority: int) -> Call:
        """What a user asks for, without the inputs, which go in parts."""
        return Call((), self._limit_s(timeout_s), checked_priority(priority))

    def split(
        self, inputs: Inputs, outputs: Sequence[Tensor] | None, call: Call, scatter: Scatter
    ) -> _Work:
        """One request over the devices that there are."""
        given = feeds.arrays(self.inputs, inputs, any_size=True)
        wanted = None if outputs is None else feeds.checked_outputs(self.outputs, outputs)
        if scatter is None and [array.shape for array in given] == self._shapes:
            cut = SplitPlan([given], ())  # one batch of the model's own size
        else:
            cut = plan(self.inputs, given, self.dispatcher.usable(), scatter)
        request = self.dispatcher.request(cut.parts, call)
        if cut.rows and not cut.fixed:
            parts = zip(cut.parts[0], given, strict=True)
            self._check_cuts(tuple(part is not whole for part, whole in parts), request)
        return _Work(request, cut.rows, cut.fixed, wanted)

    def _check_cuts(self, cuts: trial.Cuts, request: SplitRequest) -> None:
        """Refuse to cut a batch so that its rows give something else; tried once for each way."""
        verdicts = self._verdicts  # for these weights
        if cuts not in verdicts:
            try:
                self._try_on_any(cuts, request, verdicts)
            except WorkerDiedError:  # perhaps of something else: then it is tried elsewhere
                self._try_on_any(cuts, request, verdicts)
        why = verdicts.setdefault(cuts, "")  # nobody knows: it is believed
        if why:
            raise EngineError(
                f"the batch cannot be split: {why}; call predict_parts() for batches that are to "
                "be computed apart, or use one device"
            )

    def _try_on_any(
        self, cuts: trial.Cuts, request: SplitRequest, verdicts: dict[trial.Cuts, str]
    ) -> None:
        with self.dispatcher.any_life(request) as life:
            self._tried(cuts, lambda arrays: life.predict(arrays, request.left_s()), verdicts)

    def _trial_run(self, life: Life) -> Run:
        """Runs that no request waits for, each within what the budget of builds allows."""

        def run(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
            try:
                return life.predict(arrays, self._run_limit_s)
            except RequestTimeoutError as exc:
                raise time_limit.overdue(row_trial.TRYING, self._run_limit_s) from exc

        return run

    def _tried(self, cuts: trial.Cuts, run: Run, verdicts: dict[trial.Cuts, str]) -> bool:
        """Keep whether a batch may be cut so; False when no made-up input could be run."""
        try:
            verdicts[cuts] = trial.difference(self.inputs, self.outputs, cuts, run)
        except EngineError:
            return False
        return True

    def request(self, parts: Sequence[Inputs], call: Call, return_errors: bool) -> SplitRequest:
        """Several requests as one, each part of which goes to one device."""
        given = [
            feeds.arrays(self.inputs, inputs, any_size=True)
            for inputs in checks.sequence("parts", parts, "list or tuple of inputs")
        ]
        return self.dispatcher.request(given, call, keeps_going=return_errors)

    def parts(self, request: SplitRequest, return_errors: bool) -> list[list[Tensor] | Exception]:
        """The outputs of each part, or its error."""
        self.dispatcher.take()
        if return_errors:
            return [
                self._tensors(result) if isinstance(result, list) else _told(result)
                for result in self.dispatcher.each(request)
            ]
        return self.dispatcher.run(
            request, lambda found: [self._tensors(arrays) for arrays in found]
        )

    def done(self, work: _Work) -> list[Tensor]:
        """Compute a request that was split, and taken."""

        def whole(parts: list[list[np.ndarray]]) -> list[Tensor]:
            arrays = joined(self.outputs, parts, work.rows, fixed=work.fixed)
            return self._tensors(arrays, work.outputs)

        return self.dispatcher.run(work.request, whole)

    def _tensors(
        self, arrays: Sequence[np.ndarray], outputs: Sequence[Tensor] | None = None
    ) -> list[Tensor]:
        return feeds.tensors(self.outputs, [owned(array) for array in arrays], outputs)

    def submitted(self, work: _Work) -> Future[list[Tensor]]:
        """The same as done(), on another thread; the request is taken here."""
        with self._lock:
            if self._submitted >= self.spec.queue_size:
                raise QueueFullError(
                    f"{self._submitted} requests are under way, as many as "
                    "context.parallel.queue_size allows; this one was not taken"
                )
            self.dispatcher.take()
            self._submitted += 1
        answer = _Answer(self, work.request)
        answer.add_done_callback(self._answered)
        try:
            self._threads.start(partial(answer.fetch, work))
        except LiteError:
            self.dispatcher.ended("failed")
            self._answered(answer)
            raise
        return answer

    def _answered(self, answer: Future[list[Tensor]]) -> None:
        with self._lock:
            self._submitted -= 1

    def _limit_s(self, timeout_s: float | None) -> float | None:
        """How long a request may take; None for ever."""
        if timeout_s is None:
            return self._timeout_s
        if not checks.seconds("timeout_s", timeout_s):
            raise ValueError("timeout_s must be more than 0 seconds, or None for no limit")
        return None if timeout_s > _FOR_EVER_S else float(timeout_s)


class _Work(NamedTuple):
    """A request that was split, and what is needed to join its outputs."""

    request: SplitRequest
    rows: tuple[int, ...]
    fixed: bool
    outputs: Sequence[Tensor] | None


class _Answer(Future[list[Tensor]]):
    """The Future of a request. It stays pending until the end, so that it can be cancelled."""

    def __init__(self, loaded: _Loaded, request: SplitRequest) -> None:
        super().__init__()
        self._loaded = loaded
        self._request = request

    def cancel(self) -> bool:
        """End the request, waiting or running; False when it has ended already."""
        if self._loaded.dispatcher.cancel(self._request):  # for one caller only
            super().cancel()
            self.set_running_or_notify_cancel()
        return self.cancelled()

    def fetch(self, work: _Work) -> None:
        """Compute it, on a thread of its own."""
        try:
            with boundary(_FAILED):
                found = self._loaded.done(work)
        except BaseException as exc:  # noqa: BLE001 - whoever waits must learn of it
            if not work.request.is_cancelled:  # else cancel() tells
                self.set_exception(_told(exc))
            del self, work  # which the error's own frame holds: without a circle, all goes with it
        else:
            self.set_result(found)


def _told(error: E) -> E:
    """What failed stands in front, once: a worker may have put it there already."""
    if isinstance(error, LiteError) and not str(error).startswith(_FAILED):
        error.prefixed(_FAILED)
    return error


def _check_weights(spec: Spec) -> None:
    """Refuse to share weights with others, for the processes are our own."""
    if spec.weights.pids is not None or spec.weights.handle is not None:
        raise EngineError(
            "a MultiDeviceRunner can neither share its weights by shareable_weight_pid_list nor "
            "use others' by shareable_weight_mem_handle: its processes share theirs among "
            "themselves; leave these settings out, or use a Model or a ModelParallelRunner"
        )


def _places(path: str, spec: Spec, run_limit_s: float) -> list[DevicePlace]:
    """What each device is, and what to build there."""
    ids = list(spec.device_ids) or [spec.device_id]
    found = masks(spec.target, ids, list(spec.thread_affinity_core_list))
    settings, config = request_of(spec, without=_OF_ALL)
    # a worker process knows nothing of timeout_s: every request brings its own
    config.setdefault(SECTION, {})["max_run_seconds"] = str(math.ceil(run_limit_s))
    now, kind = stamp(path), ModelType[model_kind(Path(path))].value
    return [
        DevicePlace(
            number,
            mask,
            Build(
                RUNNER,
                kind,
                os.path.abspath(path),
                settings=settings | _device(spec.target, number),
                config=config,
            ),
            now,
        )
        for number, mask in zip(ids, found, strict=True)
    ]


# settings of all devices together, which the process of one does not get
_OF_ALL = ("parallel.device_ids", "parallel.timeout_s", "cpu.thread_affinity_core_list")


def _device(target: str, number: int) -> dict[str, str]:
    return {} if target == "cpu" else {f"{target}.device_id": str(number)}
