"""The routes of weights over HTTP: what server/weights.py does with the body of a request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mindspore_lite.server.access import Need
from mindspore_lite.server.core import Core
from mindspore_lite.server.http.exchange import Exchange
from mindspore_lite.server.http.head import Head
from mindspore_lite.server.http.reply import json_reply
from mindspore_lite.server.http.repository import answer_later
from mindspore_lite.server.http.routes import Endpoint, Route
from mindspore_lite.server.request import invalid
from mindspore_lite.server.weights import Form, changeable, form_of, update

_BASE = "/v2/repository/models/{model}"


def may_send(core: Core, head: Head, params: Mapping[str, str]) -> int:
    """Bytes that a file of weights may have; asked before it is sent.

    Raises:
        RequestError: It would be sent in vain.
    """
    core.check_takes_work()
    core.controlled()
    if head.headers.get(b"content-encoding", b"identity") != b"identity":
        raise invalid("a file of weights is sent as it is, without a Content-Encoding")
    form_of(head.query)
    changeable(core, params["model"], params.get("version", ""))
    return core.limits.weights_bytes


def post_weights(exchange: Exchange) -> None:
    """Give a model the weights of a file."""
    form, file = form_of(exchange.head.query), exchange.taken_file()
    if file is None:
        raise invalid("the body is empty; send a .safetensors file, or DELETE to restore weights")
    try:
        _change(exchange, file, form)
    except BaseException:
        file.close()
        raise


def delete_weights(exchange: Exchange) -> None:
    """Give a model the weights of its own file again."""
    _change(exchange, None, Form())


def _change(exchange: Exchange, file: Any, form: Form) -> None:
    name, version = exchange.params["model"], exchange.params.get("version", "")
    answer_later(exchange, update(exchange.core, name, version, file, form), json_reply)


_METHODS = {
    "POST": Endpoint(
        post_weights,
        need=Need.ADMIN,
        summary="Give a model other weights, or a LoRA",
        gives="WeightsVersion",
        query={"format": ("weights", "lora"), "scale": "number", "part": "string"},
        fails=(404, 408, 500, 503, 507),
        most_body=0,
        sink=may_send,
    ),
    "DELETE": Endpoint(
        delete_weights,
        need=Need.ADMIN,
        summary="Give a model the weights of its file again",
        gives="WeightsVersion",
        fails=(404, 500, 503),
    ),
}
ROUTES = [
    Route(f"{_BASE}/weights", _METHODS),
    Route(f"{_BASE}/versions/{{version}}/weights", _METHODS),
]
