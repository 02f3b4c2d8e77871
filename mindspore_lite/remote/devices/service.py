"""SplitService: one model in a process per device, one batch split over them.

The service splits and joins; who computes a part, and what happens when a process dies, is the
dispatcher's matter (remote/devices/dispatcher.py).
"""

from __future__ import annotations

import math
import os
import threading
import warnings
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mindspore_lite.core import checks
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
from mindspore_lite.remote.devices import trial
from mindspore_lite.remote.devices.dispatcher import Dispatcher
from mindspore_lite.remote.devices.groups import masks
from mindspore_lite.remote.devices.process import WorkerProcess
from mindspore_lite.remote.devices.report import MultiDeviceStatistics
from mindspore_lite.remote.devices.request import Result, SplitRequest
from mindspore_lite.remote.devices.split import Scatter, SplitPlan, joined, plan
from mindspore_lite.remote.devices.supervisor import DevicePlace, Life, stamp
from mindspore_lite.remote.devices.threads import Threads
from mindspore_lite.remote.wire.bodies import RUNNER, Build
from mindspore_lite.remote.wire.client import owned
from mindspore_lite.serving import feeds, update
from mindspore_lite.serving.batching import row_trial
from mindspore_lite.serving.batching.row_trial import Run
from mindspore_lite.serving.call import Call
from mindspore_lite.serving.service import Ended, Inputs
from mindspore_lite.settings.formats import ModelType, model_kind
from mindspore_lite.settings.spec import Spec
from mindspore_lite.settings.text import request_of
from mindspore_lite.tensor import Tensor

_FOR_EVER_S = 1e6  # nobody waits longer; poll() cannot


class SplitService:
    """A model on several devices; see serving/service.py.

    Args:
        path: The model file.
        spec: How it runs.
        retries: How often a part that was lost with its process is tried again.
        whole: Whether one process has all that the settings name, and no batch is split. It is
            started again however often it ends.
        name: What messages call the process of such a model.
        nice: By how much processes give way to others.
    """

    weights_handle = ""  # see _check_weights

    def __init__(
        self,
        path: str,
        spec: Spec,
        retries: int = 0,
        *,
        whole: bool = False,
        name: str = "",
        nice: int = 0,
    ) -> None:
        self.spec = spec
        self._whole = whole
        _check_weights(spec, "a server with process isolation" if whole else "a MultiDeviceRunner")
        self._submitted = 0
        self._lock = threading.Lock()
        self._threads = Threads()
        self.timeout_s = self.limit_s(spec.timeout_s or math.inf)
        # on a card the first runs compile, which has nothing to do with what a request may take
        first_s = spec.timeout_s if spec.target == "cpu" else 0.0
        self._run_limit_s = spec.budget.run_limit_s(first_s)
        places = (_one_place if whole else _places)(path, spec, self._run_limit_s)
        if name:
            places = [replace(place, name=name) for place in places]
        self.dispatcher = Dispatcher(
            places,
            retries=retries,
            stays=whole,
            start=partial(WorkerProcess, name=name, nice=nice),
        )
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
            notes.update(dict.fromkeys(life.model.notes))
            for cuts in list(self._verdicts):
                self._tried(cuts, self._trial_run(life), verdicts)

        # copies: what a process that starts again is to be told must not change
        self.dispatcher.update(
            [[(tensor.name, np.array(update.data(tensor))) for tensor in g] for g in groups], look
        )
        self._verdicts = verdicts
        for note in notes:
            warnings.warn(note, UserWarning, stacklevel=3)

    def arrays(self, inputs: Inputs) -> list[np.ndarray]:
        """Inputs as they are split; of any sizes that the model may have."""
        return feeds.arrays(self.inputs, inputs, any_size=True)

    def run(self, call: Call) -> list[np.ndarray]:
        """Split the batch of one call over the devices, and join the outputs of its parts."""
        call.inputs = self.arrays(call.inputs)
        if call.timeout_s is None:
            call.timeout_s = self.timeout_s
        work = self.split(call)
        self.dispatcher.take()
        if call.known is not None:
            call.known(partial(self.dispatcher.cancel, work.request))
        return self.finish(work)

    def split(self, call: Call, scatter: Scatter = None) -> Work:
        """One request over the devices that there are; its inputs are those of arrays()."""
        given = list(call.inputs)
        is_usual = scatter is None and [array.shape for array in given] == self._shapes
        if is_usual or self._whole:
            cut = SplitPlan([given], ())  # one batch of the model's own size
        else:
            cut = plan(self.inputs, given, self.dispatcher.usable(), scatter)
        request = self.dispatcher.request(cut.parts, call)
        if cut.rows and not cut.fixed:
            parts = zip(cut.parts[0], given, strict=True)
            self._check_cuts(tuple(part is not whole for part, whole in parts), request)
        return Work(request, cut.rows, cut.fixed)

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

    def finish(self, work: Work) -> list[np.ndarray]:
        """Compute a request that was split, and taken."""

        def whole(parts: list[list[np.ndarray]]) -> list[np.ndarray]:
            return _owned(joined(self.outputs, parts, work.rows, fixed=work.fixed))

        return self.dispatcher.run(work.request, whole)

    def parts(self, given: Sequence[Inputs], call: Call, *, keeps_going: bool) -> SplitRequest:
        """Several requests as one, each part of which goes to one device."""
        found = checks.sequence("parts", given, "list or tuple of inputs")
        arrays = [self.arrays(inputs) for inputs in found]
        return self.dispatcher.request(arrays, call, keeps_going=keeps_going)

    def run_parts(self, request: SplitRequest) -> list[Result]:
        """The outputs of each part; of one that failed its error, if the others keep going."""
        self.dispatcher.take()
        if request.keeps_going:
            return self.dispatcher.each(request)
        return self.dispatcher.run(request, lambda found: [_owned(arrays) for arrays in found])

    def submit(self, call: Call, ended: Ended) -> Callable[[], bool]:
        """The same as run(), on another thread; the request is taken here."""
        return self.begin(self.split(call), ended)

    def begin(self, work: Work, ended: Ended) -> Callable[[], bool]:
        """submit() of a request that was split."""
        with self._lock:
            if self._submitted >= self.spec.queue_size:
                raise QueueFullError(
                    f"{self._submitted} requests are under way, as many as "
                    "context.parallel.queue_size allows; this one was not taken"
                )
            self.dispatcher.take()
            self._submitted += 1
        try:
            self._threads.start(partial(self._fetch, work, ended))
        except LiteError:
            self.dispatcher.ended("failed")
            self._answered()
            raise
        return partial(self._cancel, work.request)

    def _fetch(self, work: Work, ended: Ended) -> None:
        found: list[np.ndarray] | BaseException
        try:
            found = self.finish(work)
        except BaseException as exc:  # noqa: BLE001 - whoever waits must learn of it
            found = exc
        if not work.request.is_cancelled:  # else the one who cancelled it knows
            self._answered()
            ended(found)
        del self, work, ended, found  # which the frames of an error hold, and would hold for ever

    def _cancel(self, request: SplitRequest) -> bool:
        if not self.dispatcher.cancel(request):
            return False
        self._answered()
        return True

    def _answered(self) -> None:
        with self._lock:
            self._submitted -= 1

    def probe(self, timeout_s: float) -> bool:
        """Whether every device is up, and its process has answered just now."""
        return self.dispatcher.is_ready(timeout_s)

    def statistics(self) -> MultiDeviceStatistics:
        """What was done so far, and how the devices are."""
        return self.dispatcher.statistics()

    def close(self, drain_s: float | None) -> None:
        """Finish what was taken, and end the processes."""
        self.dispatcher.close(None if drain_s is None or drain_s > _FOR_EVER_S else drain_s)

    @staticmethod
    def limit_s(timeout_s: float) -> float | None:
        """How long a request may take; None for ever."""
        if not checks.seconds("timeout_s", timeout_s):
            raise ValueError("timeout_s must be more than 0 seconds, or None for no limit")
        return None if timeout_s > _FOR_EVER_S else float(timeout_s)


def _owned(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    return [owned(array) for array in arrays]


class Work(NamedTuple):
    """A request that was split, and what is needed to join its outputs."""

    request: SplitRequest
    rows: tuple[int, ...]
    fixed: bool


def _check_weights(spec: Spec, who: str) -> None:
    """Refuse to share weights with others, for the processes are our own."""
    if spec.weights.pids is not None or spec.weights.handle is not None:
        raise EngineError(
            f"{who} can neither share its weights by shareable_weight_pid_list nor "
            "use others' by shareable_weight_mem_handle: its processes share theirs among "
            "themselves; leave these settings out, or use a Model or a ModelParallelRunner"
        )


def _places(path: str, spec: Spec, run_limit_s: float) -> list[DevicePlace]:
    """What each device is, and what to build there."""
    ids = list(spec.device_ids) or [spec.device_id]
    found = masks(spec.target, ids, list(spec.thread_affinity_core_list))
    build, now = _build(path, spec, run_limit_s, _OF_ALL), stamp(path)
    return [
        DevicePlace(
            number,
            mask,
            replace(build, settings=build.settings | _device(spec.target, number)),
            now,
        )
        for number, mask in zip(ids, found, strict=True)
    ]


def _one_place(path: str, spec: Spec, run_limit_s: float) -> list[DevicePlace]:
    """A process that runs the model as this one would, on the same cores and cards."""
    build = _build(path, spec, run_limit_s, (_TIMEOUT,))
    return [DevicePlace(0, (), build, stamp(path), keeps_trying=True)]


def _build(path: str, spec: Spec, run_limit_s: float, without: Sequence[str]) -> Build:
    settings, config = request_of(spec, without=without)
    config.setdefault(SECTION, {})["max_run_seconds"] = str(math.ceil(run_limit_s))
    kind = ModelType[model_kind(Path(path))].value
    return Build(RUNNER, kind, os.path.abspath(path), settings=settings, config=config)


_TIMEOUT = "parallel.timeout_s"  # a worker process does not need it: every request brings its own
# settings of all devices together, which the process of one does not get
_OF_ALL = ("parallel.device_ids", _TIMEOUT, "cpu.thread_affinity_core_list")


def _device(target: str, number: int) -> dict[str, str]:
    return {} if target == "cpu" else {f"{target}.device_id": str(number)}
