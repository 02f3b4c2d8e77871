"""request.py: a request ends once, and cancel() finds every part of it."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import pytest
from support.fake_engine import rows
from support.fake_workers import FakeCall, FakeWorkers

from mindspore_lite.errors import CancelledError
from mindspore_lite.remote.devices.request import Flight, SplitRequest
from mindspore_lite.serving.call import Call

Flown = tuple[Flight, FakeCall]


@pytest.fixture
def flown() -> Iterator[Flown]:
    """A part under way."""
    workers = FakeWorkers()
    workers.holds = True
    process = workers.start(0, (), lambda: None)
    call = process.model.start(Call(rows()))
    yield Flight(cast(Any, None), cast(Any, process), cast(Any, call)), call
    call.abandon()


def test_time_is_left_until_the_deadline_and_never_less_than_none() -> None:
    assert SplitRequest([rows()]).left_s() is None
    left_s = SplitRequest([rows()], Call((), 1000.0)).left_s()
    assert left_s is not None and 0 < left_s <= 1000
    assert SplitRequest([rows()], Call((), -1.0)).left_s() == 0


def test_cancel_wakes_who_waits_for_a_part(flown: Flown) -> None:
    request, (one, call) = SplitRequest([rows()]), flown
    request.took_off(0, one)
    assert request.cancel()
    assert call.ends == ["interrupted"]
    with pytest.raises(CancelledError, match="the request was cancelled"):
        request.check()


def test_a_part_that_is_sent_while_the_request_is_cancelled_is_woken_as_well(flown: Flown) -> None:
    request, (one, call) = SplitRequest([rows()]), flown
    request.cancel()
    request.took_off(0, one)
    assert call.ends == ["interrupted"]


def test_an_answer_that_comes_together_with_cancel_is_not_taken(flown: Flown) -> None:
    """Its connection was woken, and is of no more use: the part must stay to be abandoned."""
    request, (one, call) = SplitRequest([rows()]), flown
    request.took_off(0, one)
    call.answer()
    request.cancel()
    with pytest.raises(CancelledError):
        request.landed(0)
    assert request.abandoned() == [one]
    assert request.abandoned() == []


def test_a_part_that_landed_is_not_touched_by_cancel(flown: Flown) -> None:
    request, (one, call) = SplitRequest([rows(), rows()]), flown
    request.took_off(0, one)
    request.landed(0)
    assert request.cancel()
    assert call.ends == []


def test_a_request_ends_once() -> None:
    finished, cancelled = SplitRequest([rows()]), SplitRequest([rows()])
    finished.finish()
    assert not finished.cancel()
    finished.check()
    assert [cancelled.cancel(), cancelled.cancel()] == [True, False]
    with pytest.raises(CancelledError):
        cancelled.finish()


def test_a_request_that_is_over_holds_no_arrays() -> None:
    given = np.zeros(3, np.float32)
    gone = weakref.ref(given)
    request = SplitRequest([[given]])
    request.results[0] = [given]
    del given
    request.forget()
    gc.collect()
    assert gone() is None
