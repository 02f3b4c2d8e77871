"""Pages of other origins in browsers (CORS): what an allowed one is told, and nobody else.

A browser asks before it sends a page's request (a preflight: OPTIONS, without a token). It is
answered alike for every path, so that it tells nothing about which there are; the request itself
then passes the gate as any other.
"""

from __future__ import annotations

from mindspore_lite.server.access import Need
from mindspore_lite.server.http.exchange import Exchange
from mindspore_lite.server.http.head import Head
from mindspore_lite.server.http.reply import Header, Reply
from mindspore_lite.server.http.routes import Endpoint

_METHOD, _NETWORK = b"access-control-request-method", b"access-control-request-private-network"
_ANSWER: list[Header] = [
    (b"access-control-allow-methods", b"GET, HEAD, POST"),
    (
        b"access-control-allow-headers",
        b"authorization, content-encoding, content-type, inference-header-content-length, "
        b"traceparent, tracestate, x-request-id, x-request-timeout-ms",
    ),
    (b"access-control-max-age", b"600"),
]
_READABLE = b"inference-header-content-length, retry-after, x-request-id"  # of an answer


def is_preflight(head: Head) -> bool:
    """Whether a browser asks what a page may send."""
    return head.method == "OPTIONS" and _METHOD in head.headers and b"origin" in head.headers


def _preflight(exchange: Exchange) -> Reply:
    reply = Reply(200, (), headers=list(_ANSWER))
    if _NETWORK in exchange.head.headers:  # from a page of the internet to this machine
        reply.headers.append((b"access-control-allow-private-network", b"true"))
    return reply


PREFLIGHT = Endpoint(_preflight, need=Need.OPEN, most_body=0)


def allow(reply: Reply, origin: bytes) -> None:
    """Let pages of an origin read an answer."""
    reply.headers += [
        (b"access-control-allow-origin", origin),
        (b"access-control-expose-headers", _READABLE),
        (b"vary", b"origin"),
    ]
