"""PooledService: one model, many callers at once, as many workers as there is room for.

The service loads the model for its workers and warms it up; who computes what, and when, is decided
by the pool (serving/pool.py).
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from mindspore_lite.core import checks, synthetic
from mindspore_lite.core.binding import bound
from mindspore_lite.core.fork import ForkLock
from mindspore_lite.core.tensor_info import ANY_RANK
from mindspore_lite.engines import ascend, choice, time_limit
from mindspore_lite.engines.base import Session, Stop
from mindspore_lite.errors import (
    ClosedError,
    EngineError,
    LiteError,
    ModelFileError,
    RequestTimeoutError,
)
from mindspore_lite.graph.source import ModelInput
from mindspore_lite.serving import feeds, update
from mindspore_lite.serving.batching import joining
from mindspore_lite.serving.call import Call
from mindspore_lite.serving.card_placement import place_on_cards
from mindspore_lite.serving.placement import Placed, derived, place
from mindspore_lite.serving.pool import Pool
from mindspore_lite.serving.request import Request
from mindspore_lite.serving.scheduler import Batching, WorkerPlace
from mindspore_lite.serving.service import Ended, Inputs
from mindspore_lite.serving.statistics import Occupancy, Statistics
from mindspore_lite.settings.spec import Spec
from mindspore_lite.tensor import Tensor

_QUICK_S = 50e-6  # about what it takes to wake a thread that waits; benchmarks/queue_overhead.py
_WARMING_UP = "warming the model up (context.parallel.warm_up) on made-up inputs"


class PooledService:
    """A model on workers that share one copy of its weights; see serving/service.py."""

    def __init__(
        self,
        given: ModelInput,
        spec: Spec,
        derived: tuple[PooledService, Placed] | None = None,
        share: float | None = None,
    ) -> None:
        """Load a model; or, of a service and what was derived from it, only make the pool.

        With a share, cores are shared with other such services of this process (arbiter.py).
        """
        self._share = share
        given = self._given = replace(given, beside=spec.mindir_path)
        self._batching: Batching | None = None  # how requests are joined, along the batch axis
        if derived is not None:
            self._batching, self._placed = derived[0]._batching, derived[1]
        else:
            _check(spec)
            if spec.on_card:
                spec = choice.settled(spec, given)
                self._placed, self._batching = place_on_cards(given, spec)
            else:
                spec, self._placed = choice.made_by(spec, given, partial(place, given))
                if spec.max_batch_rows:
                    self._batching = Batching(spec.max_batch_rows, spec.max_batch_wait_us * 1000)
        self.spec = spec
        self._changing = ForkLock()
        self._closed = False
        try:
            self.device = self._placed.device
            self.inputs, self.outputs = self._placed.built.inputs, self._placed.built.outputs
            self.timeout_s = self.limit_s(spec.timeout_s or math.inf)
            if derived is None:
                self._check_model()
            # of one run, measured; 0: unknown
            self._run_s: float = self._try_warm_up() if derived is None else derived[0]._run_s
            self.pool = self._pool()
        except BaseException:
            self._placed.close()
            raise

    def _check_model(self) -> None:
        """Refuse a model whose requests cannot be joined; cards have done that already."""
        if self._batching is not None and not self.spec.on_card:
            limit_s = self.spec.budget.run_limit_s(self.spec.timeout_s)
            joining.check_model(self._placed.built.session, limit_s=limit_s)

    def _pool(self) -> Pool:
        spec, batching, run_s = self.spec, self._batching, self._run_s
        # a number of workers that the user chose is kept to, however short the runs are
        is_quick = 0 < run_s < _QUICK_S and not spec.has_chosen_workers and not spec.on_card
        return Pool(
            [place for place in self._placed.places if not (place.ahead and batching)],
            self._placed.layout,
            queue_size=spec.queue_size,
            batching=batching,
            quick=self._quick() if is_quick else None,
            run_ns=round(run_s * 1e9),
            share=self._share,
        )

    @property
    def file_bytes(self) -> int:
        """Of the model's files, weights included."""
        return sum(stamp[2] for stamp in self._placed.built.stamps)  # see core/files.py

    @property
    def weights_handle(self) -> str:
        """By which other processes use the weights."""
        share = self._placed.built.share
        return str(share.handle) if share is not None and share.is_open else ""

    def arrays(self, inputs: Inputs) -> list[np.ndarray]:
        """Inputs as the pool takes them; of any sizes that the model may have."""
        return feeds.arrays(self.inputs, inputs, any_size=True, device=self.device)

    def run(self, call: Call) -> list[Any]:
        """Compute the outputs of one call; the caller waits in the queue for its turn."""
        call.inputs = self.arrays(call.inputs)
        if call.timeout_s is None:
            call.timeout_s = self.timeout_s
        return self.pool.run(call)

    def submit(self, call: Call, ended: Ended) -> Callable[[], bool]:
        """Queue a call; what is returned cancels it. `ended` is called on a worker's thread."""

        def deliver(request: Request) -> None:
            error, request.error = request.error, None  # which holds the frames of the run
            assert error is not None or request.outputs is not None
            ended(request.outputs or [] if error is None else error)

        return partial(self.pool.cancel, self.pool.submit(call, deliver))

    def probe(self, timeout_s: float = 0.0) -> bool:
        """Whether it takes calls; nothing has to be asked."""
        return not self._closed

    @property
    def is_up(self) -> bool:
        """Whether it takes calls."""
        return not self._closed

    def examine(self) -> str:
        """Why it cannot compute now, as far as is known at once; "" if it can."""
        return "it was closed" if self._closed else self.pool.trouble()

    def submit_or_run(self, call: Call, ended: Ended) -> Callable[[], bool]:
        """submit() for an event loop: inputs are checked, and what takes microseconds is run here.

        `ended` may be called on this thread before this returns.

        Raises:
            LiteError: The inputs do not fit, or the queue is full.
        """
        call.inputs = self.arrays(call.inputs)
        if call.timeout_s is None:
            call.timeout_s = self.timeout_s
        try:
            outputs = self.pool.try_inline(call)
        except LiteError as exc:
            ended(exc)
            return _too_late
        if outputs is None:
            return self.submit(call, ended)
        ended(outputs)
        return _too_late

    def statistics(self) -> Statistics:
        """What was done so far, and what is going on."""
        return self.pool.statistics()

    def occupancy(self) -> Occupancy:
        """What the workers do right now."""
        return self.pool.occupancy()

    def close(self, drain_s: float | None) -> None:
        """Finish what was taken, then release the model; its weights are shared no more."""
        self._closed = True
        try:
            self.pool.close(drain_s)
        finally:
            if self._placed.built.share is not None:
                self._placed.built.share.close()

    def _quick(self) -> Session:
        """The session for requests of the model's own sizes, which many may run at once."""
        changing = self._placed.changing
        found = self._placed.built.session if changing is None else changing.quick
        assert found is not None  # else it is on a card, and not quick
        return found

    @property
    def weights_version(self) -> int:
        """How many times the weights were changed."""
        return self._placed.built.version

    def update_weights(self, groups: list[list[Tensor]]) -> None:
        """Change weights for all workers at once."""
        with self._changing:
            replaced = self._replacements(groups)
            assert self._placed.changing is not None  # else there were none to replace
            self._placed.changing.change(replaced)

    def derived(self, groups: list[list[Tensor]]) -> PooledService:
        """The same model with other weights in a service of its own; this one stays as it is.

        On the CPU it is made of what is compiled already, not of the model file.
        """
        with self._changing:
            replaced = self._replacements(groups)
            if not self.spec.on_card:
                made = (self, derived(self._placed, replaced))
                return PooledService(self._given, self.spec, made, self._share)
            stamps = self._placed.built.stamps
        other = PooledService(self._given, self.spec, share=self._share)
        try:
            if other._placed.built.stamps != stamps:
                raise ModelFileError(
                    f"{self._given.name} changed since it was built; build it again"
                )
            assert other._placed.changing is not None
            other._placed.changing.change(replaced)
        except BaseException:
            other.close(0.0)
            raise
        return other

    def _replacements(self, groups: list[list[Tensor]]) -> dict[str, np.ndarray]:
        """All weights that differ from the file's after an update."""
        self.pool.check_process()
        if self._closed:
            raise ClosedError("the runner was closed; build it again to use it")
        return update.replacements(self._placed.built, groups)

    @staticmethod
    def limit_s(timeout_s: float) -> float | None:
        """How long a request may take; None for ever."""
        if not checks.seconds("timeout_s", timeout_s):
            raise ValueError("timeout_s must be more than 0 seconds, or None for no limit")
        return None if timeout_s == math.inf else float(timeout_s)

    def warm_up_shapes(self) -> list[list[int]] | None:
        """The shapes of a smallest request; None when only the user can know them."""
        if any(i.shape == ANY_RANK or -1 in i.shape[1:] for i in self.inputs):
            return None
        return [synthetic.closed(i.shape) for i in self.inputs]

    def warm_up(
        self, shapes: Sequence[Sequence[int]], limit_s: float | None = None
    ) -> list[np.ndarray]:
        """Run every session once, and each as many times at once as workers share it.

        Those on a card run all that they were prepared for. All of it ends within limit_s; None is
        what the budget of builds says.

        Raises:
            RequestTimeoutError: It did not.
        """
        arrays = [
            synthetic.array(i.dtype, dims) for i, dims in zip(self.inputs, shapes, strict=True)
        ]
        self.warm_up_with(arrays, limit_s)
        return arrays

    def warm_up_with(self, arrays: list[np.ndarray], limit_s: float | None = None) -> None:
        """The same with these inputs.

        Raises:
            LiteError: A run failed, or did not end in time.
        """
        prepared = self._placed.built.options.batches if self._batching is not None else ()
        runs = [arrays, *([np.repeat(a[:1], rows, axis=0) for a in arrays] for rows in prepared)]

        stop = Stop()

        def once(place: WorkerPlace) -> None:
            with bound(place.cores[:1]):
                for lane in place.lanes:
                    for inputs in runs:
                        lane.session.run(inputs, stop)

        places = self._placed.places[: self._placed.layout.workers]
        calls = [partial(once, place) for place in places]
        limit_s = self.spec.budget.run_limit_s() if limit_s is None else limit_s
        time_limit.all_within(limit_s, _WARMING_UP, calls, stop)

    def _try_warm_up(self) -> float:
        """Warm up if the sizes are known; returns the seconds that a run of one worker takes.

        Where the batch is open, a run may take any time: that is 0.
        """
        shapes = self.warm_up_shapes() if self.spec.warm_up else None
        if shapes is None:
            return 0.0
        # on a card the first runs compile, which has nothing to do with what a request may take
        limit_s = self.spec.budget.run_limit_s(0.0 if self.spec.on_card else self.spec.timeout_s)
        try:
            arrays = self.warm_up(shapes, limit_s)
        except RequestTimeoutError:
            raise
        except LiteError as exc:  # it may be the made-up values that are wrong
            warnings.warn(
                f"the model could not be warmed up on made-up inputs: {exc}; if requests work, "
                "switch this off by context.parallel.warm_up = False",
                UserWarning,
                stacklevel=5,
            )
            return 0.0
        if any(-1 in i.shape for i in self.inputs):
            return 0.0
        session, stop = self._placed.places[0].lanes[-1].session, Stop()
        return time_limit.within(
            limit_s, _WARMING_UP, lambda: _least_seconds(session, arrays, stop), stop
        )


def _check(spec: Spec) -> None:
    """Refuse settings that a pool cannot obey, and say which have no effect."""
    if spec.profile:
        raise EngineError("[common_context] profile is for Model alone; leave it out here")
    if spec.device_ids and spec.target == "cpu":
        warnings.warn(
            f"device_ids {list(spec.device_ids)} have no effect on target 'cpu'; a "
            "MultiDeviceRunner takes them for groups of cores",
            UserWarning,
            stacklevel=5,
        )
    if spec.target == "ascend":
        for number in spec.device_ids:
            ascend.check_device("context.parallel.device_ids", number)


def _too_late() -> bool:
    """Cancels what has ended."""
    return False


def _least_seconds(session: Session, arrays: list[np.ndarray], stop: Stop) -> float:
    """What a run takes when nothing disturbs it."""

    def seconds() -> float:
        start = time.perf_counter()
        session.run(arrays, stop)
        return time.perf_counter() - start

    run_s = seconds()
    repeats = 10 if run_s < 1e-3 else 0  # a short time is easily disturbed, and cheap to repeat
    return min([run_s, *(seconds() for _ in range(repeats))])
