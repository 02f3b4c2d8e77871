"""The route of /metrics: with a token on the server's port, without one on a port of its own."""

from __future__ import annotations

from mindspore_lite.server.access import Need
from mindspore_lite.server.http.exchange import Exchange
from mindspore_lite.server.http.reply import Reply
from mindspore_lite.server.http.routes import Endpoint, Route, Routes
from mindspore_lite.server.metrics import OPENMETRICS, TEXT, metrics_parts, wants_openmetrics


def metrics(exchange: Exchange) -> Reply:
    """Every counter, for Prometheus."""
    openmetrics = wants_openmetrics(exchange.head.headers.get(b"accept"))
    parts = metrics_parts(exchange.core, openmetrics=openmetrics)
    return Reply(200, parts, OPENMETRICS if openmetrics else TEXT)


def _route(need: Need) -> Route:
    return Route("/metrics", {"GET": Endpoint(metrics, need, "Counters for Prometheus")})


ROUTES = [_route(Need.USE)]
OPEN = Routes([_route(Need.OPEN)])
