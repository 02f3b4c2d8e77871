"""call.py: what a request may ask for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mindspore_lite.serving.call import Call, checked_priority


@pytest.mark.parametrize("value", [0, 1, -100, 100, np.int64(7)])
def test_a_priority_is_a_number_within_bounds(value: Any) -> None:
    found = checked_priority(value)
    assert (found, type(found)) == (value, int)


@pytest.mark.parametrize("value", [101, -101, 10**30])
def test_a_priority_out_of_bounds_is_refused(value: int) -> None:
    with pytest.raises(ValueError, match=f"priority must be -100 to 100, but got {value}; 0 is"):
        checked_priority(value)


@pytest.mark.parametrize("value", [None, 1.0, 0.0, "1", True, False])
def test_a_priority_that_is_no_integer_is_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="priority must be int, but got"):
        checked_priority(value)


def test_a_part_is_a_call_like_the_whole_but_cannot_be_cancelled_by_itself() -> None:
    whole = Call(["a", "b"], 5.0, 3, known=lambda end: None, trace_id="t")  # type: ignore[list-item]
    part = whole.part(["a"], 4.0)  # type: ignore[list-item]
    assert (part.inputs, part.timeout_s, part.priority, part.trace_id) == (["a"], 4.0, 3, "t")
    assert part.known is None
