"""The access log: one line of JSON for each request, off unless it is asked for."""

from __future__ import annotations

import logging
import time
from typing import Any

import msgspec

from mindspore_lite.server.http.head import Head
from mindspore_lite.server.http.reply import Reply

LOG = logging.getLogger("mindspore_lite.server.access")


def log_access(transport: Any, head: Head | None, reply: Reply, took_s: float = 0.0) -> None:
    """Write the line of one answer; what a client sent is escaped by JSON."""
    peer = transport.get_extra_info("peername")
    line = {
        "time": round(time.time(), 3),
        "client": peer[0] if isinstance(peer, tuple) else "",
        "method": head.method if head is not None else "",
        "path": head.path if head is not None else "",
        "status": reply.status,
        "bytes_in": (head.length or 0) if head is not None else 0,
        "bytes_out": reply.length,
        "ms": round(took_s * 1e3, 3),
        "id": (head.text(b"x-request-id") or "")[:128] if head is not None else "",
    }
    LOG.info("%s", msgspec.json.encode(line).decode())
