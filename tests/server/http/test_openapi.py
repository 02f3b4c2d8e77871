from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from support.served import HttpPort, Wire, get, port_of

from mindspore_lite.server.http.endpoints import ROUTES
from mindspore_lite.server.http.openapi import SCHEMAS, document
from mindspore_lite.server.models import Models


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
            if endpoint is None or not endpoint.gives or "{region}" in route.path:
                continue
            path = route.path.replace("{model}", "id_fp32").replace("{version}", "3")
            answer = wire.ask(get(path)).json
            assert set(SCHEMAS[endpoint.gives].get("required", ())) <= set(answer), path


def test_schemathesis_finds_nothing(models: Models, tmp_path: Path) -> None:
    """What it makes up by the document is answered as the document says.

    One of its checks is left out: no schema can say which inputs a model has. So are repositories
    with names, which are answered by 501, as Triton does.
    """
    with port_of(models) as port:
        port.core.allow_shared_memory()  # without which its routes answer 501
        _tried(port, tmp_path)


def _tried(port: HttpPort, folder: Path) -> None:
    command = [
        str(Path(sys.executable).with_name("st")), "run",
        f"http://127.0.0.1:{port.number}/openapi.json", "-n", "10", "--seed", "1",
        "--phases", "examples,coverage,fuzzing",
        "--exclude-checks", "positive_data_acceptance", "--no-color",
        "--exclude-path-regex", "{repo}",
        "--exclude-path", "/dashboard/events",  # an answer without an end
    ]  # fmt: skip
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    with Wire(port) as wire:
        assert wire.ask(get("/v2/health/ready")).status == 200
