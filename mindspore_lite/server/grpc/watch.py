"""What is noted of gRPC calls: their times, their line in the access log, the id of their client.

A call is counted when its answer is there, and before gRPC sends it; when it was sent, gRPC says so
by a callback on a thread of its own, and the rest is noted.
"""

from __future__ import annotations

import re
import time
from typing import Any

from mindspore_lite.server.access_log import log_call
from mindspore_lite.server.core import Core
from mindspore_lite.server.errors import Answer
from mindspore_lite.server.meter import RequestTimes
from mindspore_lite.server.traceparent import read_traceparent

_ID = re.compile(r"[\x21-\x7e]{1,128}")  # of a request that is sent back
REQUEST_ID = "x-request-id"
_OK = 200  # statuses are those of HTTP, in every number and log


class Call:
    """One call under way.

    Attributes:
        context: gRPC's own.
        times: Of its request.
        id: By which its client knows it; "" if it does not say.
    """

    __slots__ = ("_bytes_in", "_bytes_out", "_status", "_watch", "context", "id", "times")

    def __init__(self, watch: Watch, context: Any) -> None:
        self._watch = watch
        self._status, self._bytes_in, self._bytes_out = _OK, 0, 0
        self.context = context
        self.times = RequestTimes()
        self.id = ""

    def received(self, message: bytes) -> None:
        """The message is there."""
        self.times.received_ns = time.monotonic_ns()
        self._bytes_in = len(message)

    def read_metadata(self) -> None:
        """Look at what the client says of the request; its id is sent back."""
        parent = state = None
        for key, value in self.context.invocation_metadata() or ():
            if key == REQUEST_ID and isinstance(value, str) and _ID.fullmatch(value):
                self.id = value
            elif key == "traceparent":
                parent = value
            elif key == "tracestate":
                state = value
        if parent is not None:
            self.times.parent = read_traceparent(parent, state)
        if self.id:
            self.context.set_trailing_metadata(((REQUEST_ID, self.id),))

    def answered(self, answer: bytes) -> None:
        """The answer is there."""
        self._bytes_out = len(answer)
        self._counted()

    def failed(self, exc: BaseException, answer: Answer) -> None:
        """The answer is an error."""
        self.times.failed(exc)
        self._status = answer.kind.status
        self._watch.core.observer.refused.add(self._status)
        self._counted()

    def gone(self) -> None:
        """The client is gone."""
        self._watch.core.observer.answered(self.times, "cancelled")

    def _counted(self) -> None:
        self._watch.core.observer.answered(self.times)
        is_noted = self.times.model is not None or self._watch.logs
        if is_noted and not self.context.add_callback(self._sent):
            self._sent()  # it is over already

    def _sent(self) -> None:
        watch = self._watch
        watch.core.observer.sent(self.times, self._status, "grpc")
        if watch.logs:
            peer, sizes = self.context.peer(), (self._bytes_in, self._bytes_out)
            log_call(peer, watch.path, self._status, *sizes, self.id, self.times)


class Watch:
    """Notes the calls of one method.

    Args:
        core: The server.
        path: Of the method.
        logs: Whether there is an access log.
    """

    def __init__(self, core: Core, path: str, *, logs: bool) -> None:
        self.core, self.path, self.logs = core, path, logs

    def begin(self, context: Any) -> Call:
        """A call came."""
        return Call(self, context)

    def sent(
        self, context: Any, times: RequestTimes, status: int, size: int, answer: bytes
    ) -> None:
        """The answer to one of many requests of a call was sent."""
        if status != _OK:
            self.core.observer.refused.add(status)
        self.core.observer.sent(times, status, "grpc")
        if self.logs:
            log_call(context.peer(), self.path, status, size, len(answer), times.id, times)

    def refused(self, context: Any, answer: Answer) -> None:
        """A call was refused before anything of it was read."""
        self.core.observer.refused.add(answer.kind.status)
        if self.logs:
            log_call(context.peer(), self.path, answer.kind.status, 0, 0, "", None)
