"""A model of the cluster, as the server in the ingress sees it: calls go to replicas by a handle.

A replica that dies takes its requests with it. Those are sent once more, to another replica and
within what is left of their time: inference changes nothing, so that a second run is harmless.
Where that is not so, `retry` is switched off, and the client learns that the request was lost.

Ray queues calls while all replicas are busy; a full queue is the same QueueFullError as elsewhere.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mindspore_lite.cluster.replica import Answer, Description
from mindspore_lite.core import synthetic
from mindspore_lite.core.tensor_info import ANY_RANK
from mindspore_lite.errors import (
    CancelledError,
    EngineError,
    LiteError,
    QueueFullError,
    RequestTimeoutError,
    WorkerDiedError,
)
from mindspore_lite.serving.call import Call
from mindspore_lite.serving.service import Ended
from mindspore_lite.serving.statistics import Occupancy, Statistics
from mindspore_lite.tensor import Tensor

_LATE_S = 1.0  # for the answer of a replica that gives up at the deadline by itself; guess
_PROBE_S = 60.0  # for a first answer


class HandleService:
    """Runs calls on the replicas of one deployment (PoolLike in server/models.py).

    Args:
        handle: Of the deployment.
        told: What a replica said of itself.
        retry: Whether a request that was lost with its replica is sent once more.
    """

    def __init__(self, handle: Any, told: Description, *, retry: bool = True) -> None:
        self.told = told  # replaced by whoever watches the replicas
        self.why_down = ""  # likewise: why no replica answers
        self.spec, self.inputs, self.outputs = told.spec, told.inputs, told.outputs
        self._handle = handle.options(method_name="infer")
        self._tries = 2 if retry else 1
        self._lock = threading.Lock()  # guards the counts
        self._counts = dict.fromkeys(("sent", "done", "failed", "timed_out", "cancelled"), 0)

    @property
    def is_up(self) -> bool:
        """Whether a replica answered lately."""
        return not self.why_down

    @property
    def weights_version(self) -> int:
        """Of the replica that was asked last."""
        return self.told.weights_version

    def examine(self) -> str:
        """Why it cannot compute now; "" if it can."""
        return self.why_down

    def run(self, call: Call) -> list[np.ndarray]:
        """Compute one call; the calling thread waits."""
        cancelled = threading.Event()
        response: list[Any] = [None]
        if call.known is not None:

            def cancel() -> None:
                cancelled.set()
                if response[0] is not None:
                    response[0].cancel()

            call.known(cancel)
        flow = _Flow(call)
        self._count("sent")
        for left in reversed(range(self._tries)):
            try:
                response[0] = self._send(call, flow)
                if cancelled.is_set():
                    response[0].cancel()
                found = response[0].result(timeout_s=flow.wait_s())
            except BaseException as exc:  # noqa: BLE001 - it becomes an error of ours
                if left and not cancelled.is_set() and is_lost(exc) and not flow.is_late():
                    continue
                found = _ours(exc, response[0])
            return self._taken(call, flow, found)
        raise AssertionError("every try ends the loop or is followed by another")

    def submit_or_run(self, call: Call, ended: Ended) -> Callable[[], bool]:
        """Begin one call on the event loop of the calling thread, where `ended` is called."""
        self._count("sent")
        task = asyncio.get_running_loop().create_task(self._follow(call, ended))
        return task.cancel

    async def _follow(self, call: Call, ended: Ended) -> None:
        try:
            found: list[np.ndarray] | BaseException = await self._answer(call)
        except asyncio.CancelledError:
            self._count("cancelled")
            raise
        except Exception as exc:  # noqa: BLE001 - whoever sent the call is told
            found = exc
        ended(found)

    async def _answer(self, call: Call) -> list[np.ndarray]:
        flow = _Flow(call)
        for left in reversed(range(self._tries)):
            response = None
            try:
                response = self._send(call, flow)
                found = await asyncio.wait_for(_awaited(response), flow.wait_s())
            except asyncio.CancelledError:
                if response is not None:
                    response.cancel()
                raise
            except Exception as exc:  # noqa: BLE001 - it becomes an error of ours
                if left and is_lost(exc) and not flow.is_late():
                    continue
                found = _ours(exc, response)
            return self._taken(call, flow, found)
        raise AssertionError("every try ends the loop or is followed by another")

    def _send(self, call: Call, flow: _Flow) -> Any:
        return self._handle.remote(
            list(call.inputs), call.version, flow.left_s(), call.priority, call.trace_id
        )

    def _taken(self, call: Call, flow: _Flow, found: Any) -> list[np.ndarray]:
        """The outputs of what came back, or its error; the books are kept."""
        if isinstance(found, Answer):
            self._count("done")
            call.version = found.version
            if call.timing is not None:
                call.timing.ran_alone(flow.start_ns, time.monotonic_ns())
            return found.outputs
        kinds = {RequestTimeoutError: "timed_out", CancelledError: "cancelled"}
        self._count(kinds.get(type(found), "failed"))
        if isinstance(found, BaseException):
            raise found
        raise EngineError(f"a replica answered with {type(found).__name__}, wanted an Answer")

    def _count(self, what: str) -> None:
        with self._lock:
            self._counts[what] += 1

    def update_weights(self, groups: list[list[Tensor]]) -> None:
        """Refused: a handle reaches one replica, and all must change.

        Raises:
            EngineError: Always.
        """
        raise EngineError(
            "weights of a cluster change on all replicas at once: deploy it again with others"
        )

    def warm_up_shapes(self) -> list[list[int]] | None:
        """The shapes of a smallest request; None when only the user can know them."""
        if any(i.shape == ANY_RANK or -1 in i.shape[1:] for i in self.inputs):
            return None
        return [synthetic.closed(i.shape) for i in self.inputs]

    def warm_up(self, shapes: Sequence[Sequence[int]]) -> list[np.ndarray]:
        """Run the model once, on any replica; each was probed when it was started."""
        arrays = [
            synthetic.array(i.dtype, dims) for i, dims in zip(self.inputs, shapes, strict=True)
        ]
        self.warm_up_with(arrays)
        return arrays

    def warm_up_with(self, arrays: list[np.ndarray]) -> None:
        """The same with these inputs."""
        found = self._handle.remote(arrays).result(timeout_s=_PROBE_S)
        if isinstance(found, BaseException):
            raise found

    def statistics(self) -> Statistics:
        """What this ingress sent; times and batches are those of one replica."""
        with self._lock:
            counts = dict(self._counts)
        running = counts["sent"] - sum(counts.values()) + counts["sent"]
        changed: dict[str, Any] = {**counts, "running": running, "queued": 0, "closed": 0}
        return replace(self.told.statistics, rejected=0, **changed)

    def occupancy(self) -> Occupancy:
        """How many calls of this ingress are under way."""
        running = self.statistics().running
        workers = self.told.statistics.layout.workers
        busy = min(running, workers)
        slots = ("computing",) * busy + ("idle",) * (workers - busy)
        return Occupancy(slots, running - busy, self.spec.queue_size, busy)

    def close(self, drain_s: float | None) -> None:
        """Nothing to release: Ray ends the replicas."""


class _Flow:
    """The time of one call."""

    def __init__(self, call: Call) -> None:
        self.start_ns = time.monotonic_ns()
        self._due_s = None if call.timeout_s is None else time.monotonic() + call.timeout_s

    def left_s(self) -> float | None:
        """That a replica may take."""
        return None if self._due_s is None else max(0.001, self._due_s - time.monotonic())

    def wait_s(self) -> float | None:
        """That the answer is waited for: a replica gives up by itself, and says why."""
        left_s = self.left_s()
        return None if left_s is None else left_s + _LATE_S

    def is_late(self) -> bool:
        """Whether no time is left for another try."""
        return self._due_s is not None and time.monotonic() >= self._due_s


async def _awaited(response: Any) -> Any:
    return await response


def is_lost(exc: BaseException) -> bool:
    """Whether a replica ended before it answered."""
    from ray import exceptions
    from ray.serve.exceptions import ReplicaUnavailableError

    lost = (exceptions.RayActorError, exceptions.WorkerCrashedError, exceptions.ObjectLostError)
    return isinstance(exc, (*lost, ReplicaUnavailableError))


def _ours(exc: BaseException, response: Any) -> BaseException:
    """An error of Ray in our words."""
    from ray.serve import exceptions

    if isinstance(exc, TimeoutError):
        if response is not None:
            response.cancel()
        return RequestTimeoutError("no replica answered within the time of the request")
    if isinstance(exc, exceptions.BackPressureError):
        return QueueFullError("as many requests wait for the replicas as may; send it later")
    if isinstance(exc, exceptions.RequestCancelledError):
        return CancelledError("the request was cancelled")
    if is_lost(exc) or isinstance(exc, exceptions.DeploymentUnavailableError):
        return WorkerDiedError("the replica that computed the request ended before it answered")
    if isinstance(exc, LiteError) or not isinstance(exc, Exception):
        return exc
    return EngineError(f"Ray failed: {exc}")
