from __future__ import annotations

from mindspore_lite.core.text import harmless


def test_what_a_terminal_would_obey_is_shown_instead() -> None:
    assert harmless("a\x1b[31mb\u202e\r") == "a\\x1b[31mb\\u202e\\r"


def test_words_lines_and_tabs_stay() -> None:
    assert harmless("für\tdie\nZeile ✓") == "für\tdie\nZeile ✓"
