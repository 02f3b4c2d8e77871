"""The routes of statistics over HTTP."""

from __future__ import annotations

from mindspore_lite.server.http.exchange import Exchange
from mindspore_lite.server.http.reply import Reply, json_reply
from mindspore_lite.server.http.routes import Endpoint, Route, versioned
from mindspore_lite.server.statistics import model_statistics


def statistics(exchange: Exchange) -> Reply:
    """What was counted of a model, or of all."""
    params = exchange.params
    found = model_statistics(
        exchange.core.models, params.get("model", ""), params.get("version", "")
    )
    return json_reply({"model_stats": found})


_METHODS = {
    "GET": Endpoint(
        statistics, summary="Counters of requests and runs", gives="Statistics", fails=(404, 503)
    )
}
ROUTES = [Route("/v2/models/stats", _METHODS), *versioned("/stats", _METHODS)]
