"""How a call is received and answered, whatever it asks for.

A unary call is a stream of one message each way to gRPC, and is handled as such here: the handler
is called before the message is there, so that a client that never sends it can be given up.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import grpc
from google.protobuf.message import DecodeError, Message

from mindspore_lite.core.deadline import WATCHDOG
from mindspore_lite.server.allocator import LARGE_BYTES
from mindspore_lite.server.errors import Answer, Kind, RequestError, answer_to
from mindspore_lite.server.grpc.gate import abort
from mindspore_lite.server.grpc.threads import Threads
from mindspore_lite.server.grpc.watch import Call, Watch

Answers = Callable[[bytes, Call], bytes]  # what a message is answered with
_FOREVER_S = 1e9  # what gRPC gives as the time left where there is no deadline


def unary(
    answers: Answers,
    threads: Threads,
    receive_s: float,
    watch: Watch,
    freed: Callable[[], None] = lambda: None,
) -> Any:
    """The handler of a call of one message and one answer.

    Args:
        answers: Makes the answer; its errors are told to the client.
        threads: On which it runs.
        receive_s: Within which the message must be there; 0 does not wait for it.
        watch: Notes its calls.
        freed: Called when a message was large, or never came: gRPC may have dropped a large one.
    """

    def handle(requests: Any, context: Any) -> bytes:
        call, size = watch.begin(context), LARGE_BYTES
        try:
            received = _received(requests, context, receive_s) if receive_s else b""
            size = len(received)
            call.received(received)
            found = answers(received, call)
            call.answered(found)
            return found
        except grpc.RpcError:  # the client is gone: gRPC knows its own error
            call.gone()
            raise
        except Exception as exc:  # noqa: BLE001 - the client is told
            answer: Answer = answer_to(exc)
            call.failed(exc, answer)
        finally:
            if size >= LARGE_BYTES:
                freed()
        abort(context, answer)

    handle.experimental_thread_pool = threads  # type: ignore[attr-defined]
    return grpc.stream_unary_rpc_method_handler(handle)


def of_message(kind: type[Message], act: Callable[[Any], Message]) -> Answers:
    """Answers of small messages, by way of their classes."""

    def answers(received: bytes, call: Call) -> bytes:
        try:
            request = kind.FromString(received)
        except DecodeError as exc:
            raise RequestError(
                Kind.INVALID, f"the message is not a {kind.DESCRIPTOR.name}"
            ) from exc
        return act(request).SerializeToString()

    return answers


def deadline_s(context: Any) -> float | None:
    """When the client gives up, by time.monotonic(); None if it does not say."""
    left_s = context.time_remaining()
    if left_s is None or left_s > _FOREVER_S:
        return None
    return time.monotonic() + float(left_s)


def _received(requests: Any, context: Any, limit_s: float) -> bytes:
    """The message of a call, which is cancelled if it does not come."""
    entry = WATCHDOG.watch(time.monotonic() + limit_s, context.cancel)
    try:
        message = next(requests, None)
    finally:
        WATCHDOG.cancel(entry)
    if message is None:
        raise RequestError(Kind.INVALID, "the call has no message")
    return bytes(message)
