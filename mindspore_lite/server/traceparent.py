"""The W3C header `traceparent`: to which trace a request belongs. What is not valid is ignored, as
the standard demands: a request is not refused for it."""

from __future__ import annotations

import re
from typing import NamedTuple

_FORM = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_NO_VERSION, _FIRST = "ff", "00"
_MOST_STATE = 512  # characters of a tracestate that are passed on, as the standard has it
_SAMPLED = 1  # the one flag of version 00


class TraceParent(NamedTuple):
    """The span of the caller.

    Attributes:
        trace_id: 32 hex digits.
        span_id: 16 hex digits.
        flags: Whether it is sampled, and what later versions may add.
        state: The header `tracestate`; "" if there is none, or it is too long.
    """

    trace_id: str
    span_id: str
    flags: int
    state: str = ""

    @property
    def is_sampled(self) -> bool:
        """Whether the caller keeps the trace."""
        return bool(self.flags & _SAMPLED)


def read_traceparent(text: str | None, state: str | None = None) -> TraceParent | None:
    """The caller's span; None if it says nothing valid."""
    if text is None:
        return None
    found = _FORM.fullmatch(text)
    if found is None:
        return None
    version, trace_id, span_id, flags, more = found.groups()
    if version == _NO_VERSION or (version == _FIRST and more is not None):
        return None
    if not int(trace_id, 16) or not int(span_id, 16):
        return None
    kept = state if state is not None and len(state) <= _MOST_STATE else ""
    return TraceParent(trace_id, span_id, int(flags, 16), kept)
