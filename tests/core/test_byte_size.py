from __future__ import annotations

import pytest

from mindspore_lite.core.byte_size import size_of


@pytest.mark.parametrize(
    ("text", "size"), [("0", 0), ("1000", 1000), (" 2k ", 2048), ("64M", 64 << 20), ("1G", 1 << 30)]
)
def test_sizes(text: str, size: int) -> None:
    assert size_of(text) == size


@pytest.mark.parametrize("text", ["", "M", "-1", "1.5M", "1T", "1 M", "9" * 30, "\u0661"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="wanted a number of bytes"):
        size_of(text)
