from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mindspore_lite.cli.demo import art, gallery


def test_the_demo_prints_the_quick_starts_lines_and_ten_digits(mslite: Callable[..., Any]) -> None:
    done = mslite("demo")
    assert done.code == 0
    assert done.err == ""
    assert (
        "tensor's name is:Default/Softmax-op0 data size is:40 tensor elements num is:10" in done.out
    )
    assert "output data is: 0." in done.out
    assert "10 of 10 digits right" in done.out
    assert all(f"{digit}  9" in done.out for digit in range(10))  # each with 9x.xx %


def test_dark_pixels_are_dense_characters() -> None:
    assert art(np.array([[0.0, 1.0], [0.5, 2.0]])) == ["  @@", "==@@"]


def test_a_wrong_answer_is_shown_as_wrong() -> None:
    images = np.zeros((2, 1, 1, 1), np.float32)
    text = gallery(images, np.array([[0.25, 0.75], [0.25, 0.75]]), np.array([1, 0]))
    assert text.splitlines()[-1].split() == ["1", "75.00%", "1", "75.00%", "(is", "0)"]
