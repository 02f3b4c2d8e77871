"""ModelInfer: one request, one answer. The thread of the call waits for the model."""

from __future__ import annotations

from collections.abc import Callable

from mindspore_lite.errors import ClosedError
from mindspore_lite.server.core import Core
from mindspore_lite.server.grpc.calls import deadline_s
from mindspore_lite.server.grpc.inference_pb2 import ModelInferRequest
from mindspore_lite.server.grpc.messages import checked_version, read_infer, write_infer
from mindspore_lite.server.grpc.split import parsed, split
from mindspore_lite.server.grpc.watch import Call
from mindspore_lite.server.meter import RequestTimes
from mindspore_lite.server.request import Job, moved, prepare


def infer(core: Core, received: bytes, call: Call) -> bytes:
    """Run a model on the tensors of a message."""
    core.flight.take(len(received))
    try:
        context, times = call.context, call.times
        call.read_metadata()
        job = prepared(core, *taken_apart(core, received), deadline_s(context), times)
        job.call.trace_id = call.id
        times.id = call.id or times.id

        def known(cancel: Callable[[], object]) -> None:
            if not context.add_callback(cancel):  # the client is gone already
                cancel()

        while True:
            job.call.known = known
            times.decoded(job.call)
            try:
                outputs = job.model.service.run(job.call)
            except ClosedError as exc:
                job = moved(core, job, exc, times)
            else:
                return write_infer(job.response(outputs))
    finally:
        core.flight.give(len(received))


def taken_apart(core: Core, received: bytes) -> tuple[ModelInferRequest, list[memoryview]]:
    """A message without its tensors, and the tensors."""
    limits = core.limits
    rest, raws = split(received, limits.json_bytes, limits.grpc_fields)
    return parsed(rest), raws


def prepared(
    core: Core,
    message: ModelInferRequest,
    raws: list[memoryview],
    due_s: float | None,
    times: RequestTimes,
) -> Job:
    """What to run for a message; its times learn which model it is for.

    Raises:
        RequestError: It does not fit a model of ours.
    """
    version = checked_version(message.model_version)
    model = times.model = core.usable(message.model_name, version)
    request = read_infer(core, message, raws)
    request.deadline_s = due_s
    times.id = request.id
    return prepare(model, request)
