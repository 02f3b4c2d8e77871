"""The OpenAPI 3.1 document, made from the table of routes."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Any

from mindspore_lite.server.access import Need
from mindspore_lite.server.datatypes import BYTES, DATATYPES
from mindspore_lite.server.http.routes import Endpoint, Routes
from mindspore_lite.version import __version__

_EVERY = (400, 401, 403, 413, 421, 431)  # statuses that any request may get
_STRING: dict[str, Any] = {"type": "string"}
_SHAPE: dict[str, Any] = {"type": "array", "items": {"type": "integer"}}
_PARAMETERS: dict[str, Any] = {
    "type": "object",
    "additionalProperties": {"type": ["string", "number", "boolean"]},
}
_TYPES: dict[str, Any] = {"enum": [*DATATYPES, BYTES]}


def _object(required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "type": "object",
        "required": list(required),
        "properties": {**required, **(optional or {})},
    }


def _list(items: dict[str, Any], least: int = 0) -> dict[str, Any]:
    return {"type": "array", "items": items, **({"minItems": least} if least else {})}


_ANY: dict[str, Any] = {"type": "object"}
_NUMBER = {"type": "number"}
_COUNT = {"type": "integer", "minimum": 0}
_TENSOR = {"name": _STRING, "datatype": _TYPES, "shape": _SHAPE}
_DIMS = {"type": "array", "items": {"type": "integer", "minimum": 0}}
SCHEMAS: dict[str, dict[str, Any]] = {
    "Error": _object({"error": _STRING}),
    "Live": _object({"live": {"type": "boolean"}}),
    "Ready": _object({"ready": {"type": "boolean"}, "live": {"type": "boolean"}}),
    "ModelReady": _object({"name": _STRING, "ready": {"type": "boolean"}}),
    "ModelList": _object({"models": _list(_STRING)}),
    "ServerMetadata": _object({"name": _STRING, "version": _STRING, "extensions": _list(_STRING)}),
    "ModelMetadata": _object(
        {
            "name": _STRING,
            "versions": _list(_STRING),
            "platform": _STRING,
            "inputs": _list(_object(_TENSOR)),
            "outputs": _list(_object(_TENSOR)),
        }
    ),
    "InferRequest": _object(
        {
            "inputs": _list(
                _object(
                    {"name": _STRING, "shape": _DIMS, "datatype": _TYPES},
                    {"data": {"type": "array"}, "parameters": _PARAMETERS},
                ),
                least=1,
            )
        },
        {
            "id": _STRING,
            "parameters": _PARAMETERS,
            "outputs": _list(_object({"name": _STRING}, {"parameters": _PARAMETERS})),
        },
    ),
    "InferResponse": _object(
        {
            "model_name": _STRING,
            "model_version": _STRING,
            "outputs": _list(
                _object(_TENSOR, {"data": {"type": "array"}, "parameters": _PARAMETERS})
            ),
        },
        {"id": _STRING},
    ),
    "ModelConfig": _object(
        {
            "name": _STRING,
            "platform": _STRING,
            "backend": _STRING,
            "max_batch_size": _COUNT,
            "input": _list(_object({"name": _STRING, "data_type": _STRING, "dims": _SHAPE})),
            "output": _list(_object({"name": _STRING, "data_type": _STRING, "dims": _SHAPE})),
            "instance_group": _list(_object({"kind": _STRING, "count": _COUNT})),
            "parameters": {"type": "object"},
        }
    ),
    "Region": _object({"key": _STRING, "byte_size": _COUNT}, {"offset": _COUNT}),
    "Regions": _list(_object({"name": _STRING, "byte_size": _COUNT})),
    "RepositoryIndex": {
        "type": ["object", "null"],
        "properties": {"ready": {"type": "boolean"}},
    },
    "RepositoryChange": {
        "type": ["object", "null"],
        "properties": {"parameters": {"type": "object"}},
    },
    "ModelIndex": _list(
        _object({"name": _STRING}, {"version": _STRING, "state": _STRING, "reason": _STRING})
    ),
    "WeightsVersion": _object({"name": _STRING, "version": _STRING, "weights_version": _COUNT}),
    "Statistics": _object({"model_stats": _list(_ANY)}),
    "Numbers": _object(
        {
            "time": _NUMBER,
            "uptime_s": _NUMBER,
            "version": _STRING,
            "ready": {"type": "boolean"},
            "models": _list(_object({"name": _STRING, "version": _STRING, "recent": _ANY})),
        }
    ),
    "Access": _object({"admin": {"type": "boolean"}}),
    "History": _object(
        {
            "at": _list(_NUMBER),
            "took_s": _list(_NUMBER),
            "columns": _ANY,
            "bounds_ms": _list(_NUMBER),
            "latency": _list(_list(_COUNT)),
        }
    ),
    "Any": _ANY,
}


def document(routes: Routes) -> dict[str, Any]:
    """The document of all routes."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "mslite serve",
            "version": __version__,
            "summary": "Open Inference Protocol (KServe v2) with Triton's extensions",
        },
        "paths": {
            route.path: {
                **({"parameters": _parameters(route.path)} if "{" in route.path else {}),
                **{
                    method.lower(): _operation(route.path, method, endpoint)
                    for method, endpoint in route.methods.items()
                },
            }
            for route in routes.all
        },
        "components": {
            "schemas": SCHEMAS,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _parameters(path: str) -> list[dict[str, Any]]:
    def schema(name: str) -> dict[str, Any]:
        return {**_STRING, "pattern": "^[0-9]{1,18}$"} if name == "version" else _STRING

    return [
        {"name": name, "in": "path", "required": True, "schema": schema(name)}
        for name in re.findall(r"\{(\w+)\}", path)
    ]


def _operation(path: str, method: str, endpoint: Endpoint) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": re.sub(r"\W+", "_", f"{method.lower()}{path}"),
        "summary": endpoint.summary,
        "security": [{}] if endpoint.need is Need.OPEN else [{}, {"token": []}],
        "responses": {
            "200": _plain(endpoint.content)
            if endpoint.content
            else _answer("it worked", endpoint.gives, endpoint.takes == "InferRequest"),
            **{
                str(status): _answer(HTTPStatus(status).phrase, "Error")
                for status in sorted({*_EVERY, *endpoint.fails})
            },
        },
    }
    if endpoint.query:
        found["parameters"] = [
            {"name": name, "in": "query", "schema": _value(kind)}
            for name, kind in endpoint.query.items()
        ]
    if endpoint.sink is not None:
        content: dict[str, Any] = {"application/octet-stream": {}}
        found["requestBody"] = {"required": True, "content": content}
    elif endpoint.takes:
        content = _content(endpoint.takes, not endpoint.may_be_empty)
        found["requestBody"] = {"required": not endpoint.may_be_empty, "content": content}
    return found


def _value(kind: Any) -> dict[str, Any]:
    """The schema of a value: the name of its type, or all that it may be."""
    return {"type": kind} if isinstance(kind, str) else {"enum": list(kind)}


def _answer(text: str, schema: str, binary: bool = False) -> dict[str, Any]:
    return {"description": text, **({"content": _content(schema, binary)} if schema else {})}


def _plain(content: str) -> dict[str, Any]:
    return {"description": "it worked", "content": {content: {}}}


def _content(schema: str, binary: bool = False) -> dict[str, Any]:
    found: dict[str, Any] = {
        "application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}
    }
    if binary:  # JSON, and raw tensors behind it
        found["application/octet-stream"] = {}
    return found
