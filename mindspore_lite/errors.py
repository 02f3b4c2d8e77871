"""Every error that the package raises on purpose, in one tree.

LiteError(RuntimeError)         the documented API promises RuntimeError, so the root inherits it
  ModelFileError                the bytes are not a model we can read: file, place, reason
  UnsupportedOpError            all missing primitives at once, with node names
  SettingsError                 a conversion was asked for in a way that makes no sense
  InputError                    an input is missing, unfilled, of the wrong type or size
    ShapeError                  a shape does not fit the model, or a resize cannot be done
  EngineError                   a runtime failed; its own error stays as __cause__
    EngineUnavailableError      the package or device is missing; names the way out
  StoppedError                  a run was stopped by its caller, which knows why
  QueueFullError                too many requests are waiting already
  RequestTimeoutError           the deadline passed before the work was done
  ClosedError                   the object was closed; it did not break
  CancelledError                the request was cancelled by its sender
  ResourceError                 the machine has no room for it: memory, descriptors, processes
  WireError                     the other side of a connection does not keep to the protocol
  WorkerDiedError               a worker process ended, or does not answer any more
TypeError, ValueError           a wrong argument: the builtin, no class of ours

A web application answers InputError, and the TypeError and ValueError of a `predict`, with status
400: the request was wrong, and is as wrong when it is sent again. QueueFullError is 503.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

__all__ = [
    "CancelledError",
    "ClosedError",
    "EngineError",
    "EngineUnavailableError",
    "InputError",
    "LiteError",
    "ModelFileError",
    "QueueFullError",
    "RequestTimeoutError",
    "ResourceError",
    "SettingsError",
    "ShapeError",
    "StoppedError",
    "UnsupportedOpError",
    "WireError",
    "WorkerDiedError",
]


class LiteError(RuntimeError):
    """Root of all errors of this package.

    `code` is what programs in other languages see: a number of the C++ API's StatusCode.
    """

    code: ClassVar[int] = -1  # kLiteError

    def prefixed(self, prefix: str) -> LiteError:
        """This very error with words put in front: callers above know what was being attempted."""
        self.args = (f"{prefix}{self.args[0] if self.args else ''}", *self.args[1:])
        return self


class ModelFileError(LiteError):
    """The file is not a model that can be read."""

    code = -200  # kLiteGraphFileError


class UnsupportedOpError(LiteError):
    """The model needs operators, or options of operators, that are not implemented."""

    code = -300  # kLiteNotFindOp

    def __init__(self, text: str = "", problems: Mapping[str, Sequence[str]] | None = None) -> None:
        super().__init__(text)
        self.problems = dict(problems or {})  # each reason, and every place where it holds


class SettingsError(LiteError):
    """What was asked of a conversion makes no sense; every reason at once."""

    code = -3  # kLiteParamInvalid

    def __init__(self, text: str = "", problems: Sequence[str] = ()) -> None:
        super().__init__(text)
        self.problems = tuple(problems)


class InputError(LiteError):
    """An input of a request is missing, unfilled, or of the wrong type or size.

    `input_name` is the input of the model that it is about, "" where it is about none or several.
    """

    code = -101  # kLiteInputTensorError

    def __init__(self, text: str = "", *, input_name: str = "") -> None:
        super().__init__(text)
        self.input_name = input_name


class ShapeError(InputError):
    """A shape does not fit the model."""

    code = -501  # kLiteInferInvalid


class EngineError(LiteError):
    """The runtime underneath failed; its own error is the __cause__."""


class EngineUnavailableError(EngineError):
    """The runtime or the device for a target is not there."""

    code = -7  # kLiteNotSupport


class StoppedError(LiteError):
    """A run was stopped from outside."""


class QueueFullError(LiteError):
    """As many requests as allowed are waiting already; this one was not taken."""

    code = -11  # kLiteServiceDeny


class RequestTimeoutError(LiteError):
    """The deadline passed before the work was done.

    `was_waiting` is True if the request was still in the queue.
    """

    code = 0x1000000E  # kMDTimeOut
    was_waiting = False


class ClosedError(LiteError):
    """The object was closed and cannot be used any more."""

    code = -9  # kLiteUninitializedObj


class CancelledError(LiteError):
    """The request was cancelled by its sender."""

    code = 0x10000003  # kMDInterrupted


class ResourceError(LiteError):
    """The machine has no room for it: memory, descriptors, processes."""

    code = -6  # kLiteMemoryFailed


class WireError(LiteError):
    """The other side of a connection does not keep to the protocol, or speaks another version."""

    code = 0x10000010  # kMDNetWorkError


class WorkerDiedError(LiteError):
    """A worker process ended, or does not answer any more.

    `device` is the device that it served (-1: none in particular), `signal` the number of the
    signal that ended it (0: none), `last_words` the end of what it wrote to its log.
    """

    code = 1  # kCoreFailed

    def __init__(
        self, text: str = "", *, device: int = -1, signal: int = 0, last_words: str = ""
    ) -> None:
        super().__init__(text)
        self.device = device
        self.signal = signal
        self.last_words = last_words
