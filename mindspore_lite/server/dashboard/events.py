"""Server-sent events: what a page in a browser is told without asking (text/event-stream)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec


def event_bytes(name: str, value: Mapping[str, Any]) -> bytes:
    """One event; JSON has no line feeds, which would end it."""
    return b"event: %b\ndata: %b\n\n" % (name.encode(), msgspec.json.encode(value))
