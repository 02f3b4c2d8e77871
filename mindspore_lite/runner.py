"""ModelParallelRunner: one model, many callers at once, as many workers as there is room for.

The runner checks arguments and turns Tensors into arrays and back; who computes what, when and
where is the pool's matter (serving/pool.py).
"""

from __future__ import annotations

import math
import time
import warnings
import weakref
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from mindspore_lite.context import Context
from mindspore_lite.core import checks, synthetic
from mindspore_lite.core.binding import bound
from mindspore_lite.core.boundary import boundary, reraise
from mindspore_lite.core.fork import ForkLock
from mindspore_lite.engines import ascend, choice, time_limit
from mindspore_lite.engines.base import ANY_RANK, Session, Stop, TensorInfo
from mindspore_lite.errors import EngineError, LiteError, RequestTimeoutError
from mindspore_lite.faces.base_runner import BaseRunner
from mindspore_lite.graph.source import ModelInput
from mindspore_lite.serving import feeds, update
from mindspore_lite.serving.batching import joining
from mindspore_lite.serving.call import Call, checked_priority
from mindspore_lite.serving.card_placement import place_on_cards
from mindspore_lite.serving.placement import Placed, place
from mindspore_lite.serving.pool import Pool
from mindspore_lite.serving.request import Request
from mindspore_lite.serving.scheduler import Batching, WorkerPlace
from mindspore_lite.serving.statistics import Statistics
from mindspore_lite.settings.formats import model_kind
from mindspore_lite.settings.read import read_layers
from mindspore_lite.settings.spec import settle
from mindspore_lite.tensor import Tensor

Inputs = Sequence[Tensor | np.ndarray] | Mapping[str, Tensor | np.ndarray]
Shapes = Sequence[Sequence[int]] | Mapping[str, Sequence[int]]

_FAILED = "predict failed! "
_QUICK_S = 50e-6  # about what it takes to wake a thread that waits; benchmarks/queue_overhead.py
_WARMING_UP = "warming the model up (context.parallel.warm_up) on made-up inputs"


class ModelParallelRunner(BaseRunner["_Loaded"]):
    """A model that any number of threads run at the same time.

    Requests are computed by `workers_num` workers, which share one copy of the weights; those that
    find no free worker wait in a queue, by priority, and first come, first served within one.
    Inputs may have any sizes that the model can take; there is no resize(). Everything but building
    and closing may be called from any thread. A runner is released by close(), by leaving a `with`
    block, or when nobody refers to it any more.

    Examples:
        >>> import numpy as np
        >>> import mindspore_lite as mslite
        >>> from mindspore_lite.cli.demo import DIGITS_MODEL
        >>> context = mslite.Context()
        >>> context.parallel.workers_num = 1
        >>> with mslite.ModelParallelRunner() as runner:
        ...     runner.build_from_file(str(DIGITS_MODEL), context)
        ...     (probabilities,) = runner.predict([np.zeros((2, 1, 8, 8), np.float32)])
        ...     runner.statistics().done
        1
        >>> probabilities.shape
        [2, 10]
    """

    def __init__(self) -> None:
        super().__init__()
        self._forgotten: weakref.finalize | None = None

    def build_from_file(self, model_path: str, context: Context | None = None) -> None:
        """Load and compile a model file for many callers; `.onnx` is ONNX, other names are MindIR.

        A build that fails leaves the object as it was. The model is run once on made-up inputs, on
        all workers at once, unless `context.parallel.warm_up` is False or its sizes are open.

        Args:
            model_path: The file.
            context: Where and how to run; None is the CPU with automatic settings. It is only read.

        Raises:
            TypeError: An argument is of the wrong type.
            RuntimeError: A file is missing or cannot be loaded, or a setting cannot be met.
        """
        context = self._checked(model_path, context)
        path = Path(model_path).absolute()  # it is read again later, wherever the program is then
        self._build(ModelInput(model_kind(path), path), context)
        self.model_path_ = model_path

    def _build(self, given: ModelInput, context: Context) -> None:
        """Load what is given, a file or bytes."""
        with boundary(self._building):
            loaded = _Loaded(given, context)
        self._loaded, self._closed = loaded, False
        if self._forgotten is not None:
            self._forgotten.detach()  # it holds the pool of the build before
        # the pool's threads know the pool, never the runner: nobody else keeps it from going
        self._forgotten = weakref.finalize(self, loaded.pool.abandon)
        self._forgotten.atexit = False

    def predict(
        self,
        inputs: Inputs,
        outputs: Sequence[Tensor] | None = None,
        *,
        timeout_s: float | None = None,
        priority: int = 0,
    ) -> list[Tensor]:
        """Run the model once and return its outputs, which own their memory.

        Contiguous arrays are read without a copy. An array of another shape but the right size is
        taken as it lies in memory; other sizes make the model run with those. Tensors on the card
        of a runner that has one stay there; if all inputs are such, so are the outputs.

        Args:
            inputs: One Tensor or array per model input, in the order of get_inputs(), or by name.
            outputs: Tensors to write the results into; None makes new ones.
            timeout_s: Within which the answer must be there; None takes context.parallel.timeout_s.
            priority: -100 to 100: of the requests that wait, those of a higher one start first.
                Every 100 ms of waiting count as one more.

        Raises:
            TypeError: An input is neither Tensor nor array.
            ValueError: priority or timeout_s is out of range.
            QueueFullError: As many requests are waiting as context.parallel.queue_size allows.
            RequestTimeoutError: There was no answer in time; the work was ended.
            ClosedError: The runner was closed.
            RuntimeError: Count or type differ from the model's, or the engine failed. It is the
                class that all errors of mslite are derived from.
        """
        loaded = self._usable(_FAILED)
        try:
            given = feeds.arrays(loaded.inputs, inputs, any_size=True, device=loaded.device)
            wanted = None if outputs is None else feeds.checked_outputs(loaded.outputs, outputs)
            limit_s = loaded.timeout_s if timeout_s is None else loaded.limit_s(timeout_s)
            call = Call(given, limit_s, checked_priority(priority))
        except (LiteError, MemoryError) as exc:
            reraise(exc, _FAILED)
        try:  # as fast as nothing at all, which `with` is not
            return feeds.tensors(loaded.outputs, loaded.pool.run(call), wanted)
        except Exception as exc:  # noqa: BLE001 - it always raises
            reraise(exc, _FAILED)

    def submit(
        self,
        inputs: Inputs,
        outputs: Sequence[Tensor] | None = None,
        *,
        timeout_s: float | None = None,
        priority: int = 0,
    ) -> Future[list[Tensor]]:
        """Queue a run and return at once; arguments and errors are those of predict().

        What is given is read without a copy: leave it unchanged until the answer is there. The
        Future can be cancelled while the request waits, and also while it runs. Its callbacks are
        called on a worker's thread, which goes on when they return.
        """
        loaded = self._usable(_FAILED)
        try:
            given = feeds.arrays(loaded.inputs, inputs, any_size=True, device=loaded.device)
            wanted = feeds.checked_outputs(loaded.outputs, outputs)
            limit_s = loaded.timeout_s if timeout_s is None else loaded.limit_s(timeout_s)
            call = Call(given, limit_s, checked_priority(priority))
        except (LiteError, MemoryError) as exc:
            reraise(exc, _FAILED)
        with boundary(_FAILED):
            return _Answer(loaded, call, wanted)

    async def predict_async(
        self,
        inputs: Inputs,
        outputs: Sequence[Tensor] | None = None,
        *,
        timeout_s: float | None = None,
        priority: int = 0,
    ) -> list[Tensor]:
        """predict() for coroutines: the event loop is free while a worker computes."""
        import asyncio  # most programs never need it, and it is slow to load

        future = self.submit(inputs, outputs, timeout_s=timeout_s, priority=priority)
        return await asyncio.wrap_future(future)

    def warm_up(self, shapes: Shapes | None = None) -> None:
        """Run made-up inputs on all workers at once, so that the first request is no slower.

        Args:
            shapes: One shape per input, in order or by name; None takes the model's, with 1 row
                where the batch is open.

        Raises:
            ValueError: The model leaves other sizes open, and none were given.
            RuntimeError: The model cannot be run so.
        """
        loaded = self._usable("warm_up failed! ")
        dims = loaded.warm_up_shapes() if shapes is None else _given_shapes(loaded.inputs, shapes)
        if dims is None:
            raise ValueError(
                "warm_up needs the shapes of the inputs, for the model leaves their sizes open: "
                f"{ {i.name: list(i.shape) for i in loaded.inputs} }"
            )
        with boundary("warm_up failed! "):
            loaded.warm_up(dims)

    def statistics(self) -> Statistics:
        """What the runner did so far and is doing now; also to be had after close().

        Raises:
            RuntimeError: The runner is not built.
        """
        return self._usable("there are no statistics: ").pool.statistics()

    def close(self, timeout_s: float | None = 30.0) -> None:
        """Take no more requests, finish those that were taken, and release the model.

        Args:
            timeout_s: After which requests that are not done yet end with ClosedError; None waits
                as long as it takes. Some seconds later the call returns even if an engine hangs.
        """
        if self._loaded is not None:
            limit = None if timeout_s is None else checks.seconds("timeout_s", timeout_s)
            self._closed = True
            self._loaded.pool.close(limit)
            self._loaded.end_sharing()


class _Loaded:
    """What a built runner holds: the pool, and what the model says about its ends."""

    def __init__(self, given: ModelInput, context: Context) -> None:
        asked = context.parallel
        layers = read_layers("build_from_file", asked.config_path, asked.config_info)
        spec = settle(context, layers, stacklevel=5)
        given = replace(given, beside=spec.mindir_path)
        spec = self.spec = choice.settled(spec, given)
        if spec.profile:
            raise EngineError("[common_context] profile is for Model alone; leave it out here")
        if spec.device_ids and spec.target == "cpu":
            warnings.warn(
                f"device_ids {list(spec.device_ids)} have no effect on target 'cpu'; a "
                "MultiDeviceRunner takes them for groups of cores",
                UserWarning,
                stacklevel=4,
            )
        if spec.target == "ascend":
            for number in spec.device_ids:
                ascend.check_device("context.parallel.device_ids", number)
        self._placed: Placed
        batching: Batching | None = None
        if spec.on_card:
            self._placed, batching = place_on_cards(given, spec)
        else:
            self._placed = place(given, spec)
            if spec.max_batch_rows:
                batching = Batching(spec.max_batch_rows, spec.max_batch_wait_us * 1000)
                limit_s = spec.budget.run_limit_s(spec.timeout_s)
                joining.check_model(self._placed.built.session, limit_s=limit_s)
        self.device = self._placed.device
        self._joins = batching is not None  # requests, along the batch axis
        self._changing = ForkLock()
        self.inputs, self.outputs = self._placed.built.inputs, self._placed.built.outputs
        self.timeout_s = self.limit_s(spec.timeout_s or math.inf)
        # on a card the first runs compile, which has nothing to do with what a request may take
        first_s = spec.budget.run_limit_s(0.0 if spec.on_card else spec.timeout_s)
        run_s = self._try_warm_up(first_s) if spec.warm_up else 0.0
        # a number of workers that the user chose is kept to, however short the runs are
        is_quick = 0 < run_s < _QUICK_S and not spec.has_chosen_workers and not spec.on_card
        self.pool = Pool(
            [place for place in self._placed.places if not (place.ahead and batching)],
            self._placed.layout,
            queue_size=spec.queue_size,
            batching=batching,
            quick=self._quick() if is_quick else None,
            run_ns=round(run_s * 1e9),
        )

    @property
    def weights_handle(self) -> str:
        """By which other processes use the weights."""
        share = self._placed.built.share
        return str(share.handle) if share is not None and share.is_open else ""

    def end_sharing(self) -> None:
        """Give the weights to nobody else."""
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
        self.pool.check_process()
        with self._changing:
            replaced = update.replacements(self._placed.built, groups)
            assert self._placed.changing is not None  # else there were none to replace
            self._placed.changing.change(replaced)

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
        prepared = self._placed.built.options.batches if self._joins else ()
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
        return arrays

    def _try_warm_up(self, limit_s: float) -> float:
        """Warm up if the sizes are known; returns the seconds that a run of one worker takes.

        Where the batch is open, a run may take any time: that is 0.
        """
        shapes = self.warm_up_shapes()
        if shapes is None:
            return 0.0
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


def _least_seconds(session: Session, arrays: list[np.ndarray], stop: Stop) -> float:
    """What a run takes when nothing disturbs it."""

    def seconds() -> float:
        start = time.perf_counter()
        session.run(arrays, stop)
        return time.perf_counter() - start

    run_s = seconds()
    repeats = 10 if run_s < 1e-3 else 0  # a short time is easily disturbed, and cheap to repeat
    return min([run_s, *(seconds() for _ in range(repeats))])


class _Answer(Future[list[Tensor]]):
    """The Future of a request. It stays pending until the end, so that it can be cancelled."""

    def __init__(self, loaded: _Loaded, call: Call, outputs: Sequence[Tensor] | None) -> None:
        super().__init__()
        self._loaded = loaded
        self._outputs = outputs
        self._request = loaded.pool.submit(call, self._ended)

    def cancel(self) -> bool:
        """End the request, waiting or running; False when it has ended already."""
        if self._loaded.pool.cancel(self._request):  # for one caller only
            super().cancel()
            self.set_running_or_notify_cancel()
        return self.cancelled()

    def _ended(self, request: Request) -> None:
        error, request.error = request.error, None  # which holds the frames of the run
        if error is not None:
            self.set_exception(error.prefixed(_FAILED) if isinstance(error, LiteError) else error)
            return
        assert request.outputs is not None
        try:
            with boundary(_FAILED):
                found = feeds.tensors(self._loaded.outputs, request.outputs, self._outputs)
        except BaseException as exc:  # noqa: BLE001 - whoever waits must learn of it
            self.set_exception(exc)
        else:
            self.set_result(found)


def _given_shapes(infos: Sequence[TensorInfo], shapes: object) -> list[list[int]]:
    names = [info.name for info in infos]
    if isinstance(shapes, Mapping):
        if set(shapes) != set(names):
            raise ValueError(f"shapes are for {sorted(shapes)}, the model's inputs are {names}")
        shapes = [shapes[name] for name in names]
    found = [
        checks.integers("shapes element", shape, "list or tuple of int")
        for shape in checks.sequence("shapes", shapes, "list, tuple or dict")
    ]
    if len(found) != len(names):
        raise ValueError(f"{len(found)} shapes were given for {len(names)} inputs {names}")
    if any(dim < 0 for shape in found for dim in shape):
        raise ValueError(f"shapes {found} hold a negative size; give the sizes of a request")
    return found
