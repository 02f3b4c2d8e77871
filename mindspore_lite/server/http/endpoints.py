"""What the server answers: the handlers of the protocol's routes, and their table."""

from __future__ import annotations

from functools import partial

import numpy as np

from mindspore_lite.errors import ClosedError
from mindspore_lite.server.access import Need
from mindspore_lite.server.errors import Kind, RequestError
from mindspore_lite.server.http import (
    dashboard,
    memory,
    metrics,
    model_config,
    repository,
    statistics,
    weights,
)
from mindspore_lite.server.http.coding import inflated
from mindspore_lite.server.http.exchange import Exchange
from mindspore_lite.server.http.infer import infer_head, read_infer, write_infer
from mindspore_lite.server.http.openapi import document
from mindspore_lite.server.http.reply import Reply, json_reply
from mindspore_lite.server.http.routes import Endpoint, Route, Routes, versioned
from mindspore_lite.server.request import Job, moved, prepare

_HEAVY_BYTES = 32 * 1024  # of JSON, about 0.2 ms: more would hold up all other connections; guess
_HEAVY_VALUES = 4096  # of an answer in JSON; guess


def live(exchange: Exchange) -> Reply:
    """The process answers, and its other ports get something done."""
    if not exchange.core.is_live:
        raise RequestError(Kind.UNAVAILABLE, "the server has stalled; start it again")
    return json_reply({"live": True})


def ready(exchange: Exchange) -> Reply:
    """Whether requests should come here; both keys, since the specification has the wrong one."""
    if not exchange.core.is_ready:
        raise RequestError(Kind.UNAVAILABLE, "the server is not ready", retry_after_s=1)
    return json_reply({"ready": True, "live": True})


def model_ready(exchange: Exchange) -> Reply:
    """Whether a model can be used."""
    model = exchange.core.models.ready(*_named(exchange))
    return json_reply({"name": model.name, "ready": True})


def server_metadata(exchange: Exchange) -> Reply:
    """Name, version and extensions of the server."""
    return json_reply(exchange.core.metadata())


def model_list(exchange: Exchange) -> Reply:
    """The names of all models."""
    return json_reply({"models": exchange.core.models.names()})


def model_metadata(exchange: Exchange) -> Reply:
    """Inputs and outputs of a model."""
    models, (name, version) = exchange.core.models, _named(exchange)
    model = models.find(name, version)
    return json_reply(model.metadata([model.version] if version else models.versions(name)))


def infer(exchange: Exchange) -> None:
    """Run a model; the answer comes when it has ended."""
    core, head = exchange.core, infer_head(exchange.head)
    params = exchange.params
    version = params.get("version", "")
    exchange.times.parent = head.parent
    model = exchange.times.model = core.usable(params["model"], version)
    body = exchange.body
    text_bytes = body.nbytes if head.length is None else head.length
    if not head.coding and text_bytes <= _HEAVY_BYTES:
        _run(exchange, prepare(model, read_infer(core, model, version, head, body)))
        return

    def read() -> tuple[Job, int]:
        plain, more_bytes = body, 0
        if head.coding:
            plain = memoryview(inflated(body, head.coding, core.limits))
            more_bytes = plain.nbytes
        return prepare(model, read_infer(core, model, version, head, plain)), more_bytes

    def run(found: tuple[Job, int]) -> None:
        exchange.count(found[1])
        _run(exchange, found[0])

    exchange.apart(read, run)


def openapi(exchange: Exchange) -> Reply:
    """The description of all this for machines."""
    return json_reply(_DOCUMENT)


def _named(exchange: Exchange) -> tuple[str, str]:
    return exchange.params["model"], exchange.params.get("version", "")


def _run(exchange: Exchange, job: Job) -> None:
    def ended(found: list[np.ndarray] | BaseException) -> None:
        exchange.soon(_ended, exchange, job, found)

    times = exchange.times
    times.id = job.request.trace_id or job.request.id
    times.decoded(job.call)
    try:
        cancel = job.model.service.submit_or_run(job.call, ended)
    except ClosedError as exc:
        _run(exchange, moved(exchange.core, job, exc, times))
        return
    if not exchange.is_over:
        exchange.cancel = cancel


def _ended(exchange: Exchange, job: Job, found: list[np.ndarray] | BaseException) -> None:
    exchange.cancel = None
    if isinstance(found, ClosedError):
        _run(exchange, moved(exchange.core, job, found, exchange.times))
        return
    if isinstance(found, BaseException):
        exchange.fail(found)
        return
    accepted = exchange.head.headers.get(b"accept-encoding")
    if _is_heavy(job, found, accepted):
        work = partial(_written, job, found, accepted)
        exchange.apart(work, exchange.answer)
    else:
        exchange.answer(_written(job, found, accepted))


def _written(job: Job, outputs: list[np.ndarray], accepted: bytes | None) -> Reply:
    return write_infer(job.response(outputs), accepted)


def _is_heavy(job: Job, outputs: list[np.ndarray], accepted: bytes | None) -> bool:
    """Whether to write an answer takes long: many numbers as text, or compressing."""
    size = 0
    for array in outputs:
        size += array.size
    if size <= _HEAVY_VALUES:
        return False
    as_text = not all(one.binary for one in job.wanted) if job.wanted else not job.request.binary
    return as_text or bool(accepted)


def _get(handler: object, summary: str, gives: str, **more: object) -> dict[str, Endpoint]:
    return {"GET": Endpoint(handler, summary=summary, gives=gives, **more)}  # type: ignore[arg-type]


ROUTES = Routes(
    [
        Route(
            "/v2/health/live",
            _get(live, "Is the process alive?", "Live", need=Need.OPEN, fails=(503,)),
        ),
        Route(
            "/v2/health/ready",
            _get(ready, "Should requests come here?", "Ready", need=Need.OPEN, fails=(503,)),
        ),
        Route("/v2", _get(server_metadata, "What the server is and can do", "ServerMetadata")),
        Route("/v2/", _get(server_metadata, "What the server is and can do", "ServerMetadata")),
        Route("/v2/models", _get(model_list, "The names of all models", "ModelList")),
        *versioned(
            "",
            _get(model_metadata, "Inputs and outputs of a model", "ModelMetadata", fails=(404,)),
        ),
        *versioned(
            "/ready",
            _get(model_ready, "Can the model be used?", "ModelReady", fails=(404, 503)),
        ),
        *versioned(
            "/infer",
            {
                "POST": Endpoint(
                    infer,
                    summary="Run a model",
                    takes="InferRequest",
                    gives="InferResponse",
                    fails=(400, 404, 408, 413, 415, 500, 501, 503, 504),
                    most_body=None,
                )
            },
        ),
        *memory.ROUTES,
        *model_config.ROUTES,
        *statistics.ROUTES,
        *metrics.ROUTES,
        *repository.ROUTES,
        *weights.ROUTES,
        *dashboard.ROUTES,
        Route("/openapi.json", _get(openapi, "This document", "Any")),
    ]
)
_DOCUMENT = document(ROUTES)
