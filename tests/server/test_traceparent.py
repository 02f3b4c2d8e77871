"""traceparent.py: the W3C header, read strictly."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindspore_lite.server.traceparent import TraceParent, read_traceparent

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


def test_a_valid_header_is_read() -> None:
    found = read_traceparent(f"00-{TRACE}-{SPAN}-01", "a=1,b=2")
    assert found == TraceParent(TRACE, SPAN, 1, "a=1,b=2")
    assert found.is_sampled


def test_what_is_not_sampled_says_so() -> None:
    found = read_traceparent(f"00-{TRACE}-{SPAN}-00")
    assert found is not None and not found.is_sampled


def test_a_later_version_may_say_more() -> None:
    for text in (f"01-{TRACE}-{SPAN}-01", f"cc-{TRACE}-{SPAN}-03-what-ever"):
        found = read_traceparent(text)
        assert found is not None and found.trace_id == TRACE


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01-more",
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE[:-1]}-{SPAN}-01",
        f"00-{TRACE}0-{SPAN}-01",
        f" 00-{TRACE}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01\n",
        f"00-{TRACE}-{SPAN}-1",
        f"0-{TRACE}-{SPAN}-01",
        f"01-{TRACE}-{SPAN}-01more",
        "00-" + "٣" * 32 + f"-{SPAN}-01",
    ],
)
def test_what_is_not_valid_is_ignored(text: str | None) -> None:
    assert read_traceparent(text) is None


def test_a_state_that_is_too_long_is_left_out() -> None:
    found = read_traceparent(f"00-{TRACE}-{SPAN}-01", "x" * 513)
    assert found is not None and found.state == ""


@given(st.text(alphabet="0123456789abcdef-fF\n x", max_size=70), st.text(max_size=20))
def test_whatever_comes_is_read_or_ignored(text: str, state: str) -> None:
    found = read_traceparent(text, state)
    assert found is None or text[3:35] == found.trace_id
