"""errors.py: the tree holds, and every error crosses a process with its message."""

from __future__ import annotations

import pickle

import pytest

from mindspore_lite import errors

CLASSES = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, errors.LiteError)
]


def test_the_tree_is_the_one_drawn_in_the_docstring() -> None:
    drawn = {
        word for word in (errors.__doc__ or "").replace("(", " ").split() if word.endswith("Error")
    } - {"TypeError", "ValueError,", "ValueError"}
    assert {kind.__name__ for kind in CLASSES} == drawn


@pytest.mark.parametrize("kind", CLASSES)
def test_an_error_survives_pickling_with_its_message(kind: type[errors.LiteError]) -> None:
    again = pickle.loads(pickle.dumps(kind("what, got, wanted").prefixed("while loading: ")))
    assert type(again) is kind
    assert str(again) == "while loading: what, got, wanted"


@pytest.mark.parametrize("kind", CLASSES)
def test_every_error_is_a_runtime_error(kind: type[errors.LiteError]) -> None:
    assert issubclass(kind, RuntimeError)


def test_an_unavailable_engine_is_an_engine_error() -> None:
    assert issubclass(errors.EngineUnavailableError, errors.EngineError)


def test_whatever_is_wrong_with_a_request_is_an_input_error_that_names_the_input() -> None:
    error = pickle.loads(pickle.dumps(errors.ShapeError("does not fit", input_name="x")))
    assert isinstance(error, errors.InputError)
    assert error.input_name == "x"


def test_prefixed_changes_the_error_itself_and_keeps_its_cause() -> None:
    cause = ValueError("deep")
    with pytest.raises(errors.ShapeError) as caught:
        try:
            raise errors.ShapeError("bad dims") from cause
        except errors.LiteError as exc:
            raise exc.prefixed("resize failed! ").prefixed("model 'm': ") from exc.__cause__
    assert str(caught.value) == "model 'm': resize failed! bad dims"
    assert caught.value.__cause__ is cause


def test_an_error_without_a_message_can_be_prefixed() -> None:
    assert str(errors.LiteError().prefixed("alone")) == "alone"


def test_prefixed_keeps_further_arguments() -> None:
    assert errors.LiteError("b", 7).prefixed("a").args == ("ab", 7)
