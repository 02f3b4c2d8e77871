from __future__ import annotations

import re

from support.served import HttpPort, Wire, get

from mindspore_lite.server.http.endpoints import ROUTES
from mindspore_lite.server.http.openapi import SCHEMAS, document


def test_the_document_holds_every_route_and_method(wire: Wire) -> None:
    found = wire.ask(get("/openapi.json")).json
    assert found == document(ROUTES)
    assert found["openapi"].startswith("3.1")
    assert {
        (path, method.upper())
        for path, methods in found["paths"].items()
        for method in methods
        if method != "parameters"
    } == {(route.path, method) for route in ROUTES.all for method in route.methods}


def test_every_schema_that_is_named_is_there() -> None:
    text = str(document(ROUTES))
    named = set(re.findall(r"#/components/schemas/(\w+)", text))
    assert named <= SCHEMAS.keys()
    assert named == SCHEMAS.keys()


def test_operations_have_names_of_their_own() -> None:
    found = document(ROUTES)["paths"]
    names = [
        operation["operationId"]
        for path in found.values()
        for method, operation in path.items()
        if method != "parameters"
    ]
    assert len(names) == len(set(names))


def test_answers_are_what_the_document_says(port: HttpPort) -> None:
    """The fields that a schema requires are in the answer."""
    with Wire(port) as wire:
        for route in ROUTES.all:
            endpoint = route.methods.get("GET")
            if endpoint is None:
                continue
            path = route.path.replace("{model}", "id_fp32").replace("{version}", "3")
            answer = wire.ask(get(path)).json
            assert set(SCHEMAS[endpoint.gives].get("required", ())) <= answer.keys(), path
