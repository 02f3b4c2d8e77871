"""The routes of the dashboard: its files, the numbers as JSON, and the stream that moves them.

The files are open to all (server/dashboard/files.py says why); everything about this server needs a
client's token. The headers let the page load nothing from elsewhere, and nobody frame it.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from mindspore_lite.server.access import Need
from mindspore_lite.server.dashboard.events import event_bytes
from mindspore_lite.server.dashboard.files import FILES, File, content_of
from mindspore_lite.server.errors import Kind, RequestError
from mindspore_lite.server.http.exchange import Exchange
from mindspore_lite.server.http.reply import Header, Reply, json_reply
from mindspore_lite.server.http.routes import Endpoint, Route
from mindspore_lite.server.numbers import numbers

_EVENTS = "text/event-stream"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'"
)
SAFE: tuple[Header, ...] = (
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


def static(file: File, exchange: Exchange) -> Reply:
    """A file of the page."""
    content = content_of(file)
    if content is None:
        raise RequestError(
            Kind.NOT_FOUND, "the package uplot-python is missing: pip install uplot-python"
        )
    headers = [*SAFE, (b"cache-control", b"no-cache")]
    return Reply(200, (content,), file.content.encode(), headers)


def now(exchange: Exchange) -> None:
    """All numbers of the server at this moment."""
    core = exchange.core
    exchange.apart(lambda: core.history.described(numbers(core)), partial(_answer, exchange))


def access(exchange: Exchange) -> Reply:
    """What the caller's token allows: the page offers no more than that."""
    try:
        exchange.core.gate.check(Need.ADMIN, exchange.head.text(b"authorization"))
    except RequestError:
        return json_reply({"admin": False})
    return json_reply({"admin": True})


def history(exchange: Exchange) -> None:
    """The last quarter of an hour of one model, second by second."""
    core, name, version = exchange.core, exchange.params["model"], exchange.params["version"]

    def work() -> dict[str, Any]:
        found = core.history.of(name, version)
        if found is None:
            core.models.find(name, version)
        return found or {"at": [], "took_s": [], "columns": {}, "bounds_ms": [], "latency": []}

    exchange.apart(work, partial(_answer, exchange))


def events(exchange: Exchange) -> Reply | None:
    """The numbers, anew every second, until the client leaves or the server ends."""
    core = exchange.core
    if exchange.head.method == "HEAD":
        return Reply(200, (), _EVENTS.encode(), _stream_headers())
    if core.is_ending:
        raise RequestError(Kind.UNAVAILABLE, "the server is ending", retry_after_s=1)
    if core.history.followers >= core.limits.event_streams:
        raise RequestError(
            Kind.UNAVAILABLE,
            f"there are {core.limits.event_streams} event streams open, which is the limit "
            "event_streams; close one",
            retry_after_s=5,
        )
    exchange.cancel = core.history.follow(lambda data: exchange.soon(exchange.send, data))
    first = event_bytes("sparks", {"models": core.history.sparks()})
    exchange.stream(Reply(200, (first,), _EVENTS.encode(), _stream_headers(), is_endless=True))
    return None


def _stream_headers() -> list[Header]:
    """Proxies must pass each event on at once, and keep none."""
    return [*SAFE, (b"cache-control", b"no-store"), (b"x-accel-buffering", b"no")]


def _answer(exchange: Exchange, value: dict[str, Any]) -> None:
    reply = json_reply(value)
    reply.headers.extend((*SAFE, (b"cache-control", b"no-store")))
    exchange.answer(reply)


def _get(handler: Any, summary: str, **more: Any) -> dict[str, Endpoint]:
    return {"GET": Endpoint(handler, summary=summary, **more)}


ROUTES = [
    *(
        Route(
            file.path,
            _get(
                partial(static, file),
                f"The dashboard: {file.name}",
                need=Need.OPEN,
                content=file.content,
                fails=() if file.is_ours else (404,),
            ),
        )
        for file in FILES
    ),
    Route("/dashboard/numbers", _get(now, "All numbers of the server", gives="Numbers")),
    Route("/dashboard/access", _get(access, "What the token allows", gives="Access")),
    Route(
        "/dashboard/history/{model}/{version}",
        _get(history, "A quarter of an hour of a model", gives="History", fails=(404,)),
    ),
    Route(
        "/dashboard/events",
        _get(events, "The numbers, anew every second", content=_EVENTS, fails=(503,)),
    ),
]
