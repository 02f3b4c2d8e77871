"""The route of the model configuration over HTTP."""

from __future__ import annotations

from mindspore_lite.server.http.exchange import Exchange
from mindspore_lite.server.http.reply import Reply, json_reply
from mindspore_lite.server.http.routes import Endpoint, versioned
from mindspore_lite.server.model_config import as_json, config_of


def model_config(exchange: Exchange) -> Reply:
    """How a model is served."""
    params = exchange.params
    model = exchange.core.models.find(params["model"], params.get("version", ""))
    return json_reply(as_json(config_of(model)))


ROUTES = versioned(
    "/config",
    {
        "GET": Endpoint(
            model_config, summary="How a model is served", gives="ModelConfig", fails=(404, 503)
        )
    },
)
