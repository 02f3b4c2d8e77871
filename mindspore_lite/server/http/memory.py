"""The routes of shared memory over HTTP: what server/shared_memory.py does, as JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from mindspore_lite.server.http.exchange import Exchange
from mindspore_lite.server.http.reply import Reply, json_reply
from mindspore_lite.server.http.routes import Endpoint, Route
from mindspore_lite.server.request import invalid

_SYSTEM, _CUDA = "/v2/systemsharedmemory", "/v2/cudasharedmemory"
_MOST_BODY = 16 * 1024  # bytes of a registration; guess


class _Registration(msgspec.Struct):
    """The body of a registration. Fields that are not known are passed over, as everywhere."""

    key: str
    byte_size: int
    offset: int = 0


def system_status(exchange: Exchange) -> Reply:
    """The regions that are registered."""
    regions, name = exchange.core.regions, exchange.params.get("region", "")
    if regions is None and not name:
        return json_reply([])
    found = exchange.core.shared().status(name)
    return json_reply(
        [
            {
                "name": one.name,
                "key": one.key,
                "offset": one.offset,
                "byte_size": one.byte_size,
            }
            for one in found
        ]
    )


def system_register(exchange: Exchange) -> Reply:
    """Let requests use a region."""
    memory = exchange.core.shared()
    try:
        asked = msgspec.json.decode(bytes(exchange.body), type=_Registration)
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        raise invalid(
            'the body must be like {"key": "/name", "offset": 0, "byte_size": 4096}'
        ) from exc
    memory.register(exchange.params["region"], asked.key, asked.offset, asked.byte_size)
    return _done()


def system_unregister(exchange: Exchange) -> Reply:
    """Forget a region, or all."""
    exchange.core.shared().unregister(exchange.params.get("region", ""))
    return _done()


def cuda_status(exchange: Exchange) -> Reply:
    """There are none."""
    return json_reply([])


def cuda_register(exchange: Exchange) -> Reply:
    """Cannot be done."""
    raise invalid("memory of cards cannot be registered here; use system shared memory")


def cuda_unregister(exchange: Exchange) -> Reply:
    """There is nothing to forget; clients ask for it all the same."""
    return _done()


def _done() -> Reply:
    return Reply(200, ())


def _routes(base: str, kind: str, status: Any, register: Any, unregister: Any) -> list[Route]:
    def get(**more: Any) -> dict[str, Endpoint]:
        return {"GET": Endpoint(status, summary=f"Regions of {kind}", gives="Regions", **more)}

    def post(handler: Callable[..., Reply], summary: str, **more: Any) -> dict[str, Endpoint]:
        more = {"most_body": _MOST_BODY, "fails": (404, 501, 503), **more}
        return {"POST": Endpoint(handler, summary=f"{summary} {kind}", gives="", **more)}

    return [
        Route(f"{base}/status", get()),
        Route(f"{base}/region/{{region}}/status", get(fails=(404, 501))),
        Route(f"{base}/region/{{region}}/register", post(register, "Register", takes="Region")),
        Route(f"{base}/region/{{region}}/unregister", post(unregister, "Unregister")),
        Route(f"{base}/unregister", post(unregister, "Unregister all regions of")),
    ]


ROUTES = [
    *_routes(_SYSTEM, "shared memory", system_status, system_register, system_unregister),
    *_routes(_CUDA, "memory of cards", cuda_status, cuda_register, cuda_unregister),
]
