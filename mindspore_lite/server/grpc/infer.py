"""ModelInfer: one request, one answer. The thread of the call waits for the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mindspore_lite.server.core import Core
from mindspore_lite.server.grpc.calls import deadline_s
from mindspore_lite.server.grpc.inference_pb2 import ModelInferRequest
from mindspore_lite.server.grpc.messages import checked_version, read_infer, write_infer
from mindspore_lite.server.grpc.split import parsed, split
from mindspore_lite.server.request import Job, prepare


def infer(core: Core, received: bytes, context: Any) -> bytes:
    """Run a model on the tensors of a message."""
    core.flight.take(len(received))
    try:
        job = prepared(core, *taken_apart(core, received), deadline_s(context))

        def known(cancel: Callable[[], object]) -> None:
            if not context.add_callback(cancel):  # the client is gone already
                cancel()

        job.call.known = known
        return write_infer(job.response(job.model.service.run(job.call)))
    finally:
        core.flight.give(len(received))


def taken_apart(core: Core, received: bytes) -> tuple[ModelInferRequest, list[memoryview]]:
    """A message without its tensors, and the tensors."""
    limits = core.limits
    rest, raws = split(received, limits.json_bytes, limits.grpc_fields)
    return parsed(rest), raws


def prepared(
    core: Core, message: ModelInferRequest, raws: list[memoryview], due_s: float | None
) -> Job:
    """What to run for a message.

    Raises:
        RequestError: It does not fit a model of ours.
    """
    core.check_takes_work()
    model = core.models.usable(message.model_name, checked_version(message.model_version))
    request = read_infer(core, message, raws)
    request.deadline_s = due_s
    return prepare(model, request)
