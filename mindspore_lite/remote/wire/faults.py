"""Errors on the wire: code, kind, message and detail, and back to an exception.

i32   code, a number of the C++ API's StatusCode
text  kind, the name of the Python class; a client that does not know it goes by the code
text  message
text  detail: what the engine said, or further lines; may be empty. The line `input: NAME` of an
      InputError is the input that it is about
"""

from __future__ import annotations

from mindspore_lite import errors
from mindspore_lite.errors import LiteError
from mindspore_lite.remote.wire.fields import Reader, Writer

_PARAM_INVALID = -3  # kLiteParamInvalid: TypeError, ValueError
_CORE_FAILED = 1  # kCoreFailed: unexpected
_ABOUT = "input: "

# what a worker puts in front of the error of a runner, which no user of Python has made
RUNNER_FAILED = "ModelParallelRunner's build from file failed! Error is "

_BUILTINS: dict[str, type[Exception]] = {"TypeError": TypeError, "ValueError": ValueError}
_KINDS: dict[str, type[Exception]] = _BUILTINS | {
    name: found
    for name, found in vars(errors).items()
    if isinstance(found, type) and issubclass(found, LiteError)
}


def write_error(out: Writer, error: BaseException) -> None:
    """Append an exception."""
    message = str(error) or type(error).__name__
    kind: type[BaseException] | None
    kind = next((c for c in type(error).__mro__ if _KINDS.get(c.__name__) is c), None)
    if kind is not None:
        code = error.code if isinstance(error, LiteError) else _PARAM_INVALID
    else:
        message = f"{type(error).__name__}: {message}"
        kind, code = errors.EngineError, _CORE_FAILED
    out.i32(code)
    out.text(kind.__name__)
    out.words(message)
    name = getattr(error, "input_name", "").replace("\n", " ")
    about = [f"{_ABOUT}{name}"] if name else []
    out.words("\n".join([*about, *_causes(error), *getattr(error, "__notes__", ())]))


def read_error(body: Reader) -> Exception:
    """The exception that a frame describes; its detail becomes a note."""
    code = body.i32("an error's code")
    kind = body.text("an error's kind")
    message = body.text("an error's message")
    detail = body.text("an error's detail")
    found = _KINDS.get(kind)
    error = errors.EngineError(f"{message} (code {code})") if found is None else found(message)
    if isinstance(error, errors.InputError) and detail.startswith(_ABOUT):
        line, _, detail = detail.partition("\n")
        error.input_name = line.removeprefix(_ABOUT)
    if detail:
        error.add_note(detail)
    return error


def _causes(error: BaseException) -> list[str]:
    """What lay behind the error, the nearest first."""
    found: list[str] = []
    cause = error.__cause__
    while cause is not None and len(found) < 8:  # a circle must not keep us here
        found.append(f"{type(cause).__name__}: {cause}")
        cause = cause.__cause__
    return found
