"""Every error the package raises on purpose, in one tree.

LiteError(RuntimeError)         the documented API promises RuntimeError, so the root inherits it
  ModelFileError                the bytes are not a model we can read: file, place, reason
  UnsupportedOpError            all missing primitives at once, with node names
  SettingsError                 a conversion was asked for in a way that makes no sense
  ShapeError                    a shape does not fit the model, or a resize cannot be done
  InputError                    an input is missing, unfilled, of the wrong type or size
  EngineError                   a runtime failed; its own error stays as __cause__
    EngineUnavailableError      the package or device is missing; names the way out
  StoppedError                  a run was told to stop; who told it knows why
  QueueFullError                too many requests are waiting already
  RequestTimeoutError           the deadline passed before the work was done
  ClosedError                   the object was closed; it did not break
TypeError, ValueError           a wrong argument: the builtin, no class of ours
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence


class LiteError(RuntimeError):
    """Root of all errors of this package."""

    def prefixed(self, prefix: str) -> LiteError:
        """This very error with words put in front: callers above know what was being attempted."""
        self.args = (f"{prefix}{self.args[0] if self.args else ''}", *self.args[1:])
        return self


class ModelFileError(LiteError):
    """The file is not a model that can be read."""


class UnsupportedOpError(LiteError):
    """The model needs operators, or options of operators, that are not implemented."""

    def __init__(self, text: str = "", problems: Mapping[str, Sequence[str]] | None = None) -> None:
        super().__init__(text)
        self.problems = dict(problems or {})  # each reason, and every place where it holds


class SettingsError(LiteError):
    """What was asked of a conversion makes no sense; every reason at once."""

    def __init__(self, text: str = "", problems: Sequence[str] = ()) -> None:
        super().__init__(text)
        self.problems = tuple(problems)


class ShapeError(LiteError):
    """A shape does not fit the model."""


class InputError(LiteError):
    """An input of a request is missing, unfilled, or of the wrong type or size."""


class EngineError(LiteError):
    """The runtime underneath failed; its own error is the __cause__."""


class EngineUnavailableError(EngineError):
    """The runtime or the device for a target is not there."""


class StoppedError(LiteError):
    """A run was told to stop, and did."""


class QueueFullError(LiteError):
    """As many requests as allowed are waiting already; this one was not taken."""


class RequestTimeoutError(LiteError):
    """The deadline passed before the work was done."""


class ClosedError(LiteError):
    """The object was closed and cannot be used any more."""
