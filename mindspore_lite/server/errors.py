"""What clients of the server see when something goes wrong: one table for HTTP and gRPC.

    answer = answer_to(exc)     what to send: answer.kind.status, answer.kind.code, answer.text
    raise RequestError(Kind.NOT_FOUND, "unknown model 'x'")     the server's own refusals

The text is that of the Python error, cleaned: no path, no address, no traceback leaves the process.
A bug of ours becomes FAILED without its words, which go to the log.
"""

from __future__ import annotations

import logging
import re
from concurrent import futures
from dataclasses import dataclass
from enum import Enum

from mindspore_lite import errors

_LOG = logging.getLogger(__name__)
_MAX_TEXT = 1000  # characters of an error that a client needs to read; guess


class Kind(Enum):
    """A way to fail: its HTTP status, and the name of its gRPC code."""

    INVALID = (400, "INVALID_ARGUMENT")
    EXISTS = (400, "ALREADY_EXISTS")
    CANCELLED = (400, "CANCELLED")
    UNAUTHENTICATED = (401, "UNAUTHENTICATED")
    FORBIDDEN = (403, "PERMISSION_DENIED")
    NOT_FOUND = (404, "NOT_FOUND")
    WRONG_METHOD = (405, "UNIMPLEMENTED")
    TOO_SLOW = (408, "DEADLINE_EXCEEDED")  # the client did not send its request in time
    TOO_LARGE = (413, "RESOURCE_EXHAUSTED")
    URI_TOO_LONG = (414, "INVALID_ARGUMENT")
    ENCODING = (415, "UNIMPLEMENTED")
    EXPECTATION = (417, "UNIMPLEMENTED")
    MISDIRECTED = (421, "PERMISSION_DENIED")  # the Host is not one of ours
    HEAD_TOO_LARGE = (431, "RESOURCE_EXHAUSTED")
    FAILED = (500, "INTERNAL")  # the run failed
    UNSUPPORTED = (501, "UNIMPLEMENTED")
    UNAVAILABLE = (503, "UNAVAILABLE")  # try again: full, not ready yet, or ending
    DEADLINE = (504, "DEADLINE_EXCEEDED")  # the run did not end in time
    HTTP_VERSION = (505, "UNIMPLEMENTED")
    NO_SPACE = (507, "RESOURCE_EXHAUSTED")  # on the server's disk

    def __init__(self, status: int, code: str) -> None:
        self.status = status
        self.code = code


@dataclass(frozen=True)
class Answer:
    """What a client is told of a failure."""

    kind: Kind
    text: str
    retry_after_s: int | None = None  # when another try makes sense


class RequestError(errors.LiteError):
    """The server refuses a request."""

    def __init__(self, kind: Kind, text: str, retry_after_s: int | None = None) -> None:
        super().__init__(text)
        self.kind = kind
        self.retry_after_s = retry_after_s

    def __reduce__(self) -> tuple[type[RequestError], tuple[Kind, str, int | None]]:
        return type(self), (self.kind, str(self), self.retry_after_s)


class NoRoomError(RequestError):
    """The requests under way take all of the memory that they may."""

    def __init__(self, most_bytes: int) -> None:
        super().__init__(
            Kind.UNAVAILABLE,
            f"the requests under way take all of the {most_bytes} bytes that they may; try again",
            retry_after_s=1,
        )
        self.most_bytes = most_bytes

    def __reduce__(self) -> tuple[type[NoRoomError], tuple[int]]:  # type: ignore[override]
        return type(self), (self.most_bytes,)


# Every class of errors.py; one that is missing here is found by its nearest parent.
KINDS: dict[type[BaseException], Kind] = {
    errors.InputError: Kind.INVALID,
    errors.ShapeError: Kind.INVALID,
    errors.SettingsError: Kind.INVALID,
    errors.QueueFullError: Kind.UNAVAILABLE,
    errors.RequestTimeoutError: Kind.DEADLINE,
    errors.ClosedError: Kind.UNAVAILABLE,
    errors.WorkerDiedError: Kind.UNAVAILABLE,
    errors.ResourceError: Kind.UNAVAILABLE,
    errors.EngineUnavailableError: Kind.UNAVAILABLE,
    errors.CancelledError: Kind.CANCELLED,
    futures.CancelledError: Kind.CANCELLED,
    errors.StoppedError: Kind.CANCELLED,
    errors.UnsupportedOpError: Kind.FAILED,
    errors.ModelFileError: Kind.FAILED,
    errors.EngineError: Kind.FAILED,
    errors.WireError: Kind.FAILED,
    errors.LiteError: Kind.FAILED,
    MemoryError: Kind.UNAVAILABLE,
}
_RETRY_S = 1  # what Retry-After says; the queue moves within a second, or not for long
_WORDS: dict[
    type[BaseException], str
] = {  # instead of the error's own, where those are for the program that runs the model
    errors.ClosedError: "the model is being unloaded, or the server is ending",
    errors.WorkerDiedError: "the process of the model ended, and is being started again; "
    "send the request again",
    errors.CancelledError: "the request was cancelled",
    futures.CancelledError: "the request was cancelled",
    errors.StoppedError: "the request was cancelled",
    MemoryError: "there is not enough memory for the request",
}
_PATHS = re.compile(
    r"(?<![\w.\-\]])/[^\s'\":,;]+/[^\s'\":,;]*"
)  # not a name such as Default/Softmax
_ADDRESSES = re.compile(r"0x[0-9a-fA-F]{4,}")


def answer_to(exc: BaseException) -> Answer:
    """What to tell a client of an error, whichever it is."""
    if isinstance(exc, RequestError):
        return Answer(exc.kind, printable(str(exc)), exc.retry_after_s)
    found, kind = _class_of(exc), kind_of(exc)
    if found is None:
        _LOG.error("a request failed by a bug of the server", exc_info=exc)
        return Answer(kind, "the server failed; its log says more")
    text = _WORDS.get(found) or cleaned(str(exc))
    if found is errors.QueueFullError:
        text = f"Exceeds maximum queue size: {text}"
    if kind is Kind.FAILED:
        _LOG.warning("a run failed: %s", exc)
    return Answer(kind, text, _RETRY_S if kind is Kind.UNAVAILABLE else None)


def kind_of(exc: BaseException) -> Kind:
    """In which way a request failed."""
    if isinstance(exc, RequestError):
        return exc.kind
    if isinstance(exc, errors.RequestTimeoutError) and exc.was_waiting:
        return Kind.UNAVAILABLE
    found = _class_of(exc)
    return Kind.FAILED if found is None else KINDS[found]


def _class_of(exc: BaseException) -> type[BaseException] | None:
    """The nearest class of the table."""
    return next((one for one in type(exc).__mro__ if one in KINDS), None)


def cleaned(text: str) -> str:
    """A text without files and addresses of this machine."""
    return printable(_ADDRESSES.sub("0x…", _PATHS.sub("…", text)))


def printable(text: str) -> str:
    """A text in printable characters, cut off where it is long."""
    text = "".join(c if c.isprintable() else " " for c in text[: _MAX_TEXT + 1])
    return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}…"
