"""The routes of the model repository over HTTP: what server/control.py does, as JSON."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import msgspec

from mindspore_lite.server.access import Need
from mindspore_lite.server.control import index_of
from mindspore_lite.server.errors import Kind, RequestError
from mindspore_lite.server.http.exchange import Exchange
from mindspore_lite.server.http.reply import Reply, json_reply
from mindspore_lite.server.http.routes import Endpoint, Route
from mindspore_lite.server.request import invalid

_BASE = "/v2/repository"
_ONE = f"{_BASE}/models/{{model}}"
_OTHER = f"{_BASE}/{{repo}}"
_MOST_BODY = 1 << 20  # a configuration may be in there


class _Index(msgspec.Struct):
    """The body of a question for the index."""

    ready: bool = False


class _Change(msgspec.Struct):
    """The body of a load or unload."""

    parameters: dict[str, Any] = {}


def index(exchange: Exchange) -> Reply:
    """All models and versions, with their states."""
    asked = _body(exchange, _Index, '{"ready": true}')
    core = exchange.core
    if core.control is None:
        return json_reply(index_of(core.models, {}, ready=asked.ready))
    return json_reply(core.control.index(ready=asked.ready))


def load(exchange: Exchange) -> None:
    """Load a model, or what has changed of it; the answer comes when it is loaded."""
    asked = _body(exchange, _Change, '{"parameters": {}}')
    for key, value in asked.parameters.items():
        if not isinstance(value, str):
            raise invalid(f"parameter {key[:200]!r} must be a string")
    answer_later(
        exchange, exchange.core.controlled().load(exchange.params["model"], asked.parameters)
    )


def unload(exchange: Exchange) -> None:
    """Unload a model; the answer does not wait for its last requests."""
    _body(exchange, _Change, '{"parameters": {"unload_dependents": false}}')
    answer_later(exchange, exchange.core.controlled().unload(exchange.params["model"]))


def elsewhere(exchange: Exchange) -> Reply:
    """There is one repository, without a name."""
    raise RequestError(Kind.UNSUPPORTED, "repositories have no names here; leave it out")


def answer_later(
    exchange: Exchange, future: Future[Any], reply: Callable[[Any], Reply] = lambda _: Reply(200)
) -> None:
    """Answer when a task of the loader has ended."""

    def ended(found: Future[Any]) -> None:
        error = found.exception()
        if error is not None:
            exchange.soon(exchange.fail, error)
        else:
            exchange.soon(lambda: exchange.answer(reply(found.result())))

    future.add_done_callback(ended)


def _body(exchange: Exchange, kind: type[Any], example: str) -> Any:
    body = bytes(exchange.body)
    if not body.strip():
        return kind()
    try:
        return msgspec.json.decode(body, type=kind | None) or kind()
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        raise invalid(f"the body must be like {example}") from exc


def _post(handler: Any, summary: str, **more: Any) -> dict[str, Endpoint]:
    found = Endpoint(handler, summary=summary, may_be_empty=True, most_body=_MOST_BODY, **more)
    return {"POST": found}


def _admin(handler: Any, summary: str, *fails: int) -> dict[str, Endpoint]:
    return _post(handler, summary, need=Need.ADMIN, takes="RepositoryChange", fails=fails)


ROUTES = [
    Route(
        f"{_BASE}/index",
        _post(index, "All models and versions", takes="RepositoryIndex", gives="ModelIndex"),
    ),
    Route(f"{_ONE}/load", _admin(load, "Load a model", 404, 500, 503)),
    Route(f"{_ONE}/unload", _admin(unload, "Unload a model", 404, 503)),
    Route(f"{_OTHER}/index", _post(elsewhere, "Other repositories: there are none", fails=(501,))),
    Route(f"{_OTHER}/models/{{model}}/load", _admin(elsewhere, "The same", 501)),
    Route(f"{_OTHER}/models/{{model}}/unload", _admin(elsewhere, "The same", 501)),
]
