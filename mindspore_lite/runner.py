"""ModelParallelRunner: one model, many callers at once, as many workers as there is room for.

The runner checks arguments and turns Tensors into arrays and back; who computes what, when and
where is the pool's matter (serving/pool.py).
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path

from mindspore_lite.context import Context
from mindspore_lite.core import checks
from mindspore_lite.core.boundary import boundary, reraise
from mindspore_lite.core.tensor_info import TensorInfo
from mindspore_lite.errors import LiteError
from mindspore_lite.faces.answer import FAILED, Answer
from mindspore_lite.faces.base_runner import BaseRunner
from mindspore_lite.graph.source import ModelInput
from mindspore_lite.serving import feeds
from mindspore_lite.serving.call import USUAL, Call, checked_priority
from mindspore_lite.serving.pooled import PooledService
from mindspore_lite.serving.service import Described, Inputs, unnamed
from mindspore_lite.serving.statistics import Statistics
from mindspore_lite.settings.formats import model_kind
from mindspore_lite.settings.read import read_layers
from mindspore_lite.settings.spec import settle
from mindspore_lite.tensor import Tensor

Shapes = Sequence[Sequence[int]] | Mapping[str, Sequence[int]]


class ModelParallelRunner(BaseRunner[PooledService]):
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

    def build_from_file(
        self, model_path: str | os.PathLike[str], context: Context | None = None
    ) -> None:
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
        model_path = checks.path("model_path", model_path)
        context = self._checked(model_path, context)
        path = Path(model_path).absolute()  # it is read again later, wherever the program is then
        self._build(ModelInput(model_kind(path), path), context)
        self.model_path_ = model_path

    def _build(self, given: ModelInput, context: Context) -> None:
        """Load what is given, a file or bytes."""
        asked = context.parallel
        layers = read_layers("build_from_file", asked.config_path, asked.config_info)
        with boundary(self._building):
            loaded = PooledService(given, unnamed(settle(context, layers, stacklevel=4)))
        self._loaded, self._closed = loaded, False
        if self._forgotten is not None:
            self._forgotten.detach()  # it holds the pool of the build before
        # the pool's threads know the pool, never the runner: nobody else keeps it from going
        self._forgotten = weakref.finalize(self, loaded.pool.abandon)
        self._forgotten.atexit = False

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
        loaded = self._usable(FAILED)
        try:
            # loaded.arrays(), and the check of a usual priority, without a call: 0.1 us of 5
            given = feeds.arrays(loaded.inputs, inputs, any_size=True, device=loaded.device)
            wanted = None if outputs is None else feeds.checked_outputs(loaded.outputs, outputs)
            limit_s = loaded.timeout_s if timeout_s is None else loaded.limit_s(timeout_s)
            if priority is not USUAL:
                priority = checked_priority(priority)
            call = Call(given, limit_s, priority)
        except (LiteError, MemoryError) as exc:
            reraise(exc, FAILED)
        try:  # as fast as nothing at all, which `with` is not
            return feeds.tensors(loaded.outputs, loaded.pool.run(call), wanted)
        except Exception as exc:  # noqa: BLE001 - it always raises
            reraise(exc, FAILED)

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
        loaded = self._usable(FAILED)
        try:
            given = loaded.arrays(inputs)
            wanted = feeds.checked_outputs(loaded.outputs, outputs)
            limit_s = loaded.timeout_s if timeout_s is None else loaded.limit_s(timeout_s)
            call = Call(given, limit_s, checked_priority(priority))
        except (LiteError, MemoryError) as exc:
            reraise(exc, FAILED)
        with boundary(FAILED):
            return Answer(loaded, partial(loaded.submit, call), wanted)

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
        return self._usable("there are no statistics: ").statistics()

    def close(self, timeout_s: float | None = 30.0) -> None:
        """Take no more requests, finish those that were taken, and release the model.

        Args:
            timeout_s: After which requests that are not done yet end with ClosedError; None waits
                as long as it takes. Some seconds later the call returns even if an engine hangs.
        """
        if self._loaded is not None:
            limit = None if timeout_s is None else checks.seconds("timeout_s", timeout_s)
            self._closed = True
            self._loaded.close(limit)


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
