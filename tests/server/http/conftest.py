from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.served import HttpPort, Wire, identities, identity, port_of, service

from mindspore_lite.server.models import Models


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Models]:
    folder = tmp_path_factory.mktemp("models")
    found = identities(folder)
    kinds = {"bool": 9, "int8": 3, "int64": 7, "uint8": 2, "uint64": 13, "fp16": 10, "fp64": 11}
    for name, number in kinds.items():
        path = identity(folder / f"id_{name}.onnx", number)
        found.load(f"id_{name}", "1", lambda path=path: service(path))  # type: ignore[misc]
    two = identity(folder / "id_two.onnx", inputs=2)
    found.load("id_two", "1", lambda: service(two))
    yield found
    found.close(None)


@pytest.fixture(scope="session")
def port(models: Models) -> Iterator[HttpPort]:
    with port_of(models) as found:
        yield found


@pytest.fixture
def wire(port: HttpPort) -> Iterator[Wire]:
    with Wire(port) as found:
        yield found
