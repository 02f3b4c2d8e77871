"""all_or_none.py: several changes of which all are made, or none."""

from __future__ import annotations

import pytest

from mindspore_lite.weights.all_or_none import all_or_none


def test_what_went_well_stays() -> None:
    undone: list[int] = []
    with all_or_none(undone.append) as done:
        for number in range(3):
            done(number)
    assert undone == []


def test_after_an_error_what_was_done_is_undone_the_last_first() -> None:
    undone: list[int] = []
    with pytest.raises(ValueError, match="the third"), all_or_none(undone.append) as done:
        done(1)
        done(2)
        raise ValueError("the third")
    assert undone == [2, 1]


def test_what_cannot_be_undone_keeps_no_other_from_it_and_the_first_error_counts() -> None:
    undone: list[int] = []

    def undo(number: int) -> None:
        if number == 2:
            raise OSError("no room")
        undone.append(number)

    with pytest.raises(ValueError, match="the fourth") as caught, all_or_none(undo) as done:
        for number in (1, 2, 3):
            done(number)
        raise ValueError("the fourth")
    assert undone == [3, 1]
    assert caught.value.__notes__ == ["undoing the change failed, too: no room"]


def test_an_interrupt_undoes_too() -> None:
    undone: list[int] = []
    with pytest.raises(KeyboardInterrupt), all_or_none(undone.append) as done:
        done(1)
        raise KeyboardInterrupt
    assert undone == [1]
