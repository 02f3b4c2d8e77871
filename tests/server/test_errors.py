from __future__ import annotations

import pickle
from concurrent import futures

import pytest

from mindspore_lite import errors
from mindspore_lite.server.errors import KINDS, Kind, RequestError, answer_to


def test_every_error_of_ours_has_a_row() -> None:
    known = {getattr(errors, name) for name in errors.__all__}
    assert known <= KINDS.keys()


@pytest.mark.parametrize(
    ("error", "status", "code", "retries"),
    [
        (errors.InputError("x"), 400, "INVALID_ARGUMENT", False),
        (errors.ShapeError("x"), 400, "INVALID_ARGUMENT", False),
        (errors.QueueFullError("x"), 503, "UNAVAILABLE", True),
        (errors.ResourceError("x"), 503, "UNAVAILABLE", True),
        (errors.RequestTimeoutError("x"), 504, "DEADLINE_EXCEEDED", False),
        (errors.CancelledError("x"), 400, "CANCELLED", False),
        (futures.CancelledError(), 400, "CANCELLED", False),
        (errors.EngineError("x"), 500, "INTERNAL", False),
        (errors.EngineUnavailableError("x"), 503, "UNAVAILABLE", True),
        (errors.LiteError("x"), 500, "INTERNAL", False),
        (MemoryError(), 503, "UNAVAILABLE", True),
        (RequestError(Kind.TOO_LARGE, "x"), 413, "RESOURCE_EXHAUSTED", False),
        (KeyError("x"), 500, "INTERNAL", False),
    ],
)
def test_an_error_becomes_a_status(
    error: BaseException, status: int, code: str, retries: bool
) -> None:
    answer = answer_to(error)
    assert (answer.kind.status, answer.kind.code) == (status, code)
    assert (answer.retry_after_s is not None) == retries
    assert answer.text


def test_a_deadline_that_passed_in_the_queue_may_be_tried_again() -> None:
    error = errors.RequestTimeoutError("x")
    error.was_waiting = True
    assert answer_to(error).kind is Kind.UNAVAILABLE


def test_an_answer_holds_no_path_and_no_address() -> None:
    error = errors.EngineError("bad node 'Default/Softmax' in '/home/me/secret/net.onnx' at 0x7f12")
    assert answer_to(error).text == "bad node 'Default/Softmax' in '…' at 0x…"
    assert "secret" not in answer_to(KeyError("/home/me/secret/x")).text


def test_a_text_is_short_and_printable() -> None:
    answer = answer_to(errors.EngineError("a\0b\n" + "x" * 5000))
    assert answer.text.startswith("a b x") and len(answer.text) == 1001


def test_a_refusal_survives_pickling() -> None:
    error = pickle.loads(pickle.dumps(RequestError(Kind.UNAVAILABLE, "full", 3)))
    assert (error.kind, str(error), error.retry_after_s) == (Kind.UNAVAILABLE, "full", 3)
