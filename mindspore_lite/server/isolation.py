"""Where a model of the server runs: on threads of this process, or in a process of its own.

    service = started("net.onnx", spec, Isolation.PROCESS, retry=True)

A process of its own is the worker of a MultiDeviceRunner with one device: it gets requests over
shared memory, is watched, and is started again when it ends (remote/devices/supervisor.py). A crash
of the engine then takes nothing but the requests that this process was computing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

from mindspore_lite.core import synthetic
from mindspore_lite.core.tensor_info import ANY_RANK
from mindspore_lite.errors import LiteError
from mindspore_lite.faces.answer import FAILED
from mindspore_lite.graph.source import ModelInput
from mindspore_lite.remote.devices.service import SplitService
from mindspore_lite.remote.devices.threads import Threads
from mindspore_lite.remote.devices.vitals import Vitals
from mindspore_lite.serving.call import Call
from mindspore_lite.serving.layout import Layout
from mindspore_lite.serving.pooled import PooledService
from mindspore_lite.serving.service import Ended
from mindspore_lite.serving.statistics import (
    Latency,
    Occupancy,
    PriorityStatistics,
    Statistics,
    WorkerStatistics,
)
from mindspore_lite.settings.formats import model_kind
from mindspore_lite.settings.spec import Spec
from mindspore_lite.tensor import Tensor


class Isolation(Enum):
    """What a crash of a model's engine takes with it."""

    THREAD = "thread"  # the server
    PROCESS = "process"  # what the model's own process was computing


class IsolatedService:
    """A model in a process of its own, as the server sees a service (PoolLike in models.py).

    Requests that come while the process is started again wait for it.

    Args:
        path: The model file.
        spec: How it runs.
        retry: Whether a request that was lost with the process is computed once more.
        name: Of the model, for messages.
        nice: How much its process gives way to others, 0 to 19.

    Raises:
        LiteError: The model cannot be built there.
    """

    def __init__(
        self, path: Path, spec: Spec, *, retry: bool = False, name: str = "", nice: int = 0
    ) -> None:
        self.spec = spec
        self.file_bytes = path.stat().st_size
        title = f"model {name}" if name else ""
        self._split = SplitService(str(path), spec, int(retry), whole=True, name=title, nice=nice)
        self.inputs, self.outputs = self._split.inputs, self._split.outputs
        self._told: dict[str, Any] = {}  # what the process last told of its pool
        self.statistics()
        self._vitals = Vitals(self._split.dispatcher.supervisors[0], Threads().start)

    @property
    def is_up(self) -> bool:
        """Whether the process is there, with the model built and warmed up."""
        return self._split.dispatcher.is_up

    def examine(self) -> str:
        """Why it cannot compute now; "" if it can. To be called every LOOK_S, by one thread."""
        return self._vitals.look()

    def run(self, call: Call) -> list[np.ndarray]:
        """Compute one call; the calling thread waits."""
        start_ns = time.monotonic_ns()
        try:
            outputs = self._split.run(call)
            if call.timing is not None:
                call.timing.ran_alone(start_ns, time.monotonic_ns())
            return outputs
        except LiteError as exc:
            raise _plain(exc)  # noqa: B904 - it is the same error

    def submit_or_run(self, call: Call, ended: Ended) -> Callable[[], bool]:
        """Begin one call; its answer is waited for on another thread.

        Raises:
            LiteError: The inputs do not fit, or too many requests are under way.
        """
        call.inputs = self._split.arrays(call.inputs)
        if call.timeout_s is None:
            call.timeout_s = self._split.timeout_s
        start_ns = time.monotonic_ns()

        def deliver(found: list[Any] | BaseException) -> None:
            if call.timing is not None and not isinstance(found, BaseException):
                call.timing.ran_alone(start_ns, time.monotonic_ns())
            ended(_plain(found) if isinstance(found, LiteError) else found)

        return self._split.submit(call, deliver)

    @property
    def weights_version(self) -> int:
        """How many times the weights were changed, in all processes so far."""
        return self._split.weights_version

    def update_weights(self, groups: list[list[Tensor]]) -> None:
        """Change weights, all or none; a process that is started again has them too."""
        try:
            self._split.update_weights(groups)
        except LiteError as exc:
            raise _plain(exc)  # noqa: B904 - it is the same error

    def warm_up_shapes(self) -> list[list[int]] | None:
        """The shapes of a smallest request; None when only the user can know them."""
        if any(i.shape == ANY_RANK or -1 in i.shape[1:] for i in self.inputs):
            return None
        return [synthetic.closed(i.shape) for i in self.inputs]

    def warm_up(self, shapes: Sequence[Sequence[int]]) -> list[np.ndarray]:
        """Run the model once; its process has run every worker when it built the model."""
        arrays = [
            synthetic.array(i.dtype, dims) for i, dims in zip(self.inputs, shapes, strict=True)
        ]
        self.warm_up_with(arrays)
        return arrays

    def warm_up_with(self, arrays: list[np.ndarray]) -> None:
        """The same with these inputs."""
        limit_s = self.spec.budget.run_limit_s()
        dispatcher = self._split.dispatcher  # which does not count this
        with dispatcher.any_life(dispatcher.request([arrays], Call(arrays, limit_s))) as life:
            life.predict(arrays, limit_s)

    def statistics(self) -> Statistics:
        """What was done so far, over all processes; times and batches are those of the last one.

        Asks the process, for a few seconds if it hangs.
        """
        found = self._split.statistics()
        told = found.devices[0].runner
        self._told = told or {**self._told, "queued": 0, "stuck": 0}
        return _statistics(
            self._told,
            sent=found.sent,
            running=max(0, found.running - self._told["queued"]),
            queued=min(found.running, self._told["queued"]),
            done=found.done,
            failed=found.failed,
            timed_out=found.timed_out,
            cancelled=found.cancelled,
            rejected=0,
            closed=0,
        )

    def occupancy(self) -> Occupancy:
        """What goes on right now, as far as this process knows: how many calls are under way."""
        inside, workers = self._split.dispatcher.inside, self._told["layout"]["workers"]
        if not self.is_up:
            return Occupancy(("stuck",) * workers, inside, self.spec.queue_size, 0)
        busy = min(inside, workers)
        slots = ("computing",) * busy + ("idle",) * (workers - busy)
        return Occupancy(slots, inside - busy, self.spec.queue_size, busy)

    @property
    def pids(self) -> list[int]:
        """Of its process, while there is one."""
        return self._split.dispatcher.pids()

    def close(self, drain_s: float | None) -> None:
        """Finish what was taken, and end the process."""
        self._split.close(drain_s)


def started(
    path: Path,
    spec: Spec,
    isolation: Isolation,
    *,
    retry: bool = False,
    name: str = "",
    share: float | None = None,
    nice: int = 0,
) -> PooledService | IsolatedService:
    """Build a model of the server; on threads without a share it takes the cores it can get."""
    if isolation is Isolation.PROCESS:
        return IsolatedService(path, spec, retry=retry, name=name, nice=nice)
    return PooledService(ModelInput(model_kind(path), path), spec, share=share)


def _plain(error: LiteError) -> LiteError:
    """An error in the words that it would have without the process."""
    error.args = (str(error).removeprefix(FAILED), *error.args[1:])
    return error


def _statistics(told: Mapping[str, Any], **counts: int) -> Statistics:
    """The statistics of a pool that came as JSON, with other counts."""
    fields = {
        **told,
        **counts,
        "batches": {int(rows): times for rows, times in told["batches"].items()},
        "queue_wait": Latency(**told["queue_wait"]),
        "run_time": Latency(**told["run_time"]),
        "workers": tuple(map(_worker, told["workers"])),
        "layout": Layout(**_tuples(told["layout"])),
        "priorities": {
            int(number): PriorityStatistics(**{**one, "queue_wait": Latency(**one["queue_wait"])})
            for number, one in told["priorities"].items()
        },
    }
    return Statistics(**fields)


def _worker(told: Mapping[str, Any]) -> WorkerStatistics:
    waits, runs = Latency(**told["queue_wait"]), Latency(**told["run_time"])
    return WorkerStatistics(**{**_tuples(told), "queue_wait": waits, "run_time": runs})


def _tuples(told: Mapping[str, Any]) -> dict[str, Any]:
    """JSON has lists for the tuples of records, and for those in them."""
    return {key: _tuple(value) for key, value in told.items()}


def _tuple(value: Any) -> Any:
    return tuple(map(_tuple, value)) if isinstance(value, list) else value
