"""The access log: one line of JSON for each request, off unless it is asked for."""

from __future__ import annotations

import json
import logging
import time
from typing import Any

import msgspec

from mindspore_lite.server.http.head import Head
from mindspore_lite.server.http.reply import Reply
from mindspore_lite.server.meter import RequestTimes
from mindspore_lite.server.observer import phases_ms

LOG = logging.getLogger("mindspore_lite.server.access")
_MOST_ID = 128  # characters


def log_access(transport: Any, head: Head | None, reply: Reply, times: RequestTimes | None) -> None:
    """Write the line of one answer over HTTP."""
    peer = transport.get_extra_info("peername")
    _log(
        {
            "time": round(time.time(), 3),
            "client": peer[0] if isinstance(peer, tuple) else "",
            "method": head.method if head is not None else "",
            "path": head.path if head is not None else "",
            "status": reply.status,
            "bytes_in": (head.length or 0) if head is not None else 0,
            "bytes_out": reply.length,
        },
        (head.text(b"x-request-id") or "") if head is not None else "",
        times,
    )


def log_call(
    peer: str, path: str, status: int, bytes_in: int, bytes_out: int, id_: str,
    times: RequestTimes | None,
) -> None:  # fmt: skip
    """Write the line of one call over gRPC; statuses are those of HTTP."""
    _log(
        {
            "time": round(time.time(), 3),
            "client": _address(peer),
            "method": "GRPC",
            "path": path,
            "status": status,
            "bytes_in": bytes_in,
            "bytes_out": bytes_out,
        },
        id_,
        times,
    )


def _log(line: dict[str, Any], id_: str, times: RequestTimes | None) -> None:
    """What a client sent is escaped by JSON."""
    line["ms"] = 0.0 if times is None else round(times.total_ns() / 1e6, 3)
    line["id"] = id_[:_MOST_ID]
    if times is not None and times.model is not None:
        line["id"] = line["id"] or times.id[:_MOST_ID]
        line["model"], line["version"] = times.model.name, times.model.version
        line["phases_ms"] = phases_ms(times)
        if times.parent is not None:
            line["trace"] = times.parent.trace_id
        if times.reason:
            line["reason"] = times.reason
    text = msgspec.json.encode(line).decode()
    if not text.isascii() or "\x7f" in text:  # some end a line, or steer a terminal
        text = json.dumps(line).replace("\x7f", "\\u007f")
    LOG.info("%s", text)


def _address(peer: str) -> str:
    """The address in what gRPC says of a client, such as ipv4:127.0.0.1:5000."""
    kind, _, rest = peer.partition(":")
    if kind not in ("ipv4", "ipv6"):
        return ""
    return rest.rpartition(":")[0].replace("%5B", "").replace("%5D", "").strip("[]")
