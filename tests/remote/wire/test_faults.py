from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindspore_lite import errors
from mindspore_lite.errors import EngineError, InputError, LiteError, WireError
from mindspore_lite.remote.wire.faults import read_error, write_error
from mindspore_lite.remote.wire.fields import MAX_TEXT, Reader, Writer


def sent(error: BaseException) -> Exception:
    out = Writer()
    write_error(out, error)
    return read_error(Reader(memoryview(out.data)))


def code_of(error: BaseException) -> int:
    out = Writer()
    write_error(out, error)
    return Reader(memoryview(out.data)).i32("the code")


OWN = [c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, LiteError)]


@pytest.mark.parametrize("kind", [*OWN, TypeError, ValueError])
def test_every_error_comes_back_as_itself(kind: type[Exception]) -> None:
    found = sent(kind("what, got, wanted"))
    assert type(found) is kind
    assert str(found) == "what, got, wanted"
    wanted = kind.code if issubclass(kind, LiteError) else -3
    assert code_of(kind("x")) == wanted


@pytest.mark.parametrize("kind", [errors.InputError, errors.ShapeError])
def test_the_input_that_an_error_is_about_travels_with_it(kind: type[InputError]) -> None:
    found = sent(kind("does not fit", input_name="pixel values"))
    assert isinstance(found, InputError)
    assert (found.input_name, str(found)) == ("pixel values", "does not fit")
    assert not hasattr(found, "__notes__")


def test_causes_and_notes_travel_as_detail() -> None:
    try:
        try:
            raise RuntimeError("Add: dims do not fit")
        except RuntimeError as cause:
            raise EngineError("predict failed!") from cause
    except EngineError as error:
        error.add_note("input 'x' was [2, 3]")
        found = sent(error)
    assert found.__notes__ == ["RuntimeError: Add: dims do not fit\ninput 'x' was [2, 3]"]


def test_causes_in_a_circle_end() -> None:
    first, second = EngineError("first"), EngineError("second")
    first.__cause__, second.__cause__ = second, first
    assert sent(first).__notes__[0].count("\n") == 7


class OwnInputError(InputError):
    """One of a user, say."""

    code = 77


def test_an_error_that_the_wire_has_not_comes_as_the_nearest_that_it_has() -> None:
    found = sent(OwnInputError("bad"))
    assert type(found) is InputError
    assert code_of(OwnInputError("bad")) == 77
    assert type(sent(UnicodeError("no text"))) is ValueError


class InputErrorLookalike(Exception):
    """Not one of ours."""


InputErrorLookalike.__name__ = "InputError"


@pytest.mark.parametrize("error", [KeyError("k"), InputErrorLookalike("k"), AssertionError()])
def test_errors_that_nobody_expected_tell_their_type(error: Exception) -> None:
    found = sent(error)
    assert type(found) is EngineError
    assert str(found).startswith(f"{type(error).__name__}: ")
    assert code_of(error) == 1


def test_a_kind_of_a_later_version_goes_by_its_code() -> None:
    out = Writer()
    out.i32(-12)
    for text in ("QuotaError", "no more today", ""):
        out.text(text)
    found = read_error(Reader(memoryview(out.data + b"and more")))
    assert type(found) is EngineError
    assert str(found) == "no more today (code -12)"


def test_words_that_are_no_text_or_too_long_still_arrive() -> None:
    assert str(sent(EngineError("/tmp/\udcff"))) == "/tmp/\\udcff"
    assert len(str(sent(EngineError("x" * (2 * MAX_TEXT))))) == MAX_TEXT


@given(st.binary(max_size=60))
def test_any_bytes_are_an_error_that_was_sent_or_a_wire_error(data: bytes) -> None:
    try:
        found = read_error(Reader(memoryview(data)))
    except WireError:
        return
    assert isinstance(found, Exception)
