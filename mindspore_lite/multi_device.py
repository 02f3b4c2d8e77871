"""MultiDeviceRunner: one model on several devices, one batch split over them.

The runner checks arguments and turns Tensors into arrays and back; the rest is the service's matter
(remote/devices/service.py).
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from concurrent.futures import Future
from functools import partial
from typing import Literal, overload

from mindspore_lite.context import Context
from mindspore_lite.core import checks
from mindspore_lite.core.boundary import boundary, named, reraise
from mindspore_lite.errors import LiteError
from mindspore_lite.faces.answer import FAILED, Answer
from mindspore_lite.faces.base_runner import BaseRunner
from mindspore_lite.remote.devices.report import MultiDeviceStatistics
from mindspore_lite.remote.devices.service import SplitService, Work
from mindspore_lite.remote.devices.split import Scatter
from mindspore_lite.serving import feeds
from mindspore_lite.serving.call import Call, checked_priority
from mindspore_lite.serving.service import Described, Inputs, unnamed
from mindspore_lite.settings.read import read_layers
from mindspore_lite.settings.spec import settle
from mindspore_lite.tensor import Tensor

_PROBE_S = 2.0


class MultiDeviceRunner(BaseRunner[SplitService]):
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
        asked = context.parallel
        layers = read_layers("build_from_file", asked.config_path, asked.config_info)
        with boundary(self._building):
            spec = unnamed(settle(context, layers, stacklevel=4))
            loaded = SplitService(model_path, spec, self._retries)
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
        loaded = self._usable(FAILED)
        work = self._split(loaded, inputs, outputs, _call(loaded, timeout_s, priority), scatter)
        with boundary(FAILED):
            loaded.dispatcher.take()
            return feeds.tensors(loaded.outputs, loaded.finish(work), outputs)

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
        loaded = self._usable(FAILED)
        try:
            call = _call(loaded, timeout_s, priority)
            request = loaded.parts(parts, call, keeps_going=return_errors)
        except (LiteError, MemoryError) as exc:
            reraise(exc, FAILED)
        with boundary(FAILED):
            found: list[list[Tensor] | Exception] = [
                named(one, FAILED)
                if isinstance(one, Exception)
                else feeds.tensors(loaded.outputs, one, None)
                for one in loaded.run_parts(request)
            ]
            return found

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
        loaded = self._usable(FAILED)
        work = self._split(loaded, inputs, outputs, _call(loaded, timeout_s, priority), scatter)
        with boundary(FAILED):
            return Answer(loaded, partial(loaded.begin, work), outputs)

    @staticmethod
    def _split(
        loaded: SplitService,
        inputs: Inputs,
        outputs: Sequence[Tensor] | None,
        call: Call,
        scatter: Scatter,
    ) -> Work:
        """A request over the devices that there are, whose arguments are in order."""
        try:
            call.inputs = loaded.arrays(inputs)
            feeds.checked_outputs(loaded.outputs, outputs)
            return loaded.split(call, scatter)
        except (LiteError, MemoryError, OSError) as exc:
            reraise(exc, FAILED)

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
        return self._loaded is not None and self._loaded.probe(limit_s)

    def statistics(self) -> MultiDeviceStatistics:
        """What the runner did so far, and how its devices are; also to be had after close().

        Raises:
            RuntimeError: The runner is not built.
        """
        return self._usable("there are no statistics: ").statistics()

    def close(self, timeout_s: float | None = 30.0) -> None:
        """Take no more requests, finish those that were taken, and end the processes.

        Args:
            timeout_s: After which requests that are not done yet end with ClosedError; None waits
                as long as it takes.
        """
        if self._loaded is not None:
            limit_s = math.inf if timeout_s is None else checks.seconds("timeout_s", timeout_s)
            self._closed = True
            self._loaded.close(limit_s)


def _call(loaded: SplitService, timeout_s: float | None, priority: int) -> Call:
    """What a user asks for, without the inputs."""
    limit_s = loaded.timeout_s if timeout_s is None else loaded.limit_s(timeout_s)
    return Call((), limit_s, checked_priority(priority))
