from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.grpc_served import Caller, FakeService, fails, grpc_port
from support.served import identities, identity, service

from mindspore_lite.server.grpc.port import GrpcPort
from mindspore_lite.server.models import Models


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Models]:
    folder = tmp_path_factory.mktemp("models")
    found = identities(folder)
    kinds = {
        "bool": 9, "int8": 3, "int16": 5, "int32": 6, "int64": 7, "uint8": 2, "uint16": 4,
        "uint32": 12, "uint64": 13, "fp16": 10, "fp64": 11, "bf16": 16,
    }  # fmt: skip
    for name, number in kinds.items():
        path = identity(folder / f"id_{name}.onnx", number)
        found.load(f"id_{name}", "1", lambda path=path: service(path))  # type: ignore[misc]
    two = identity(folder / "id_two.onnx", inputs=2)
    found.load("id_two", "1", lambda: service(two))
    found.load("bad", "1", lambda: FakeService(fails))
    yield found
    found.close(None)


@pytest.fixture(scope="session")
def port(models: Models) -> Iterator[GrpcPort]:
    with grpc_port(models) as found:
        yield found


@pytest.fixture
def caller(port: GrpcPort) -> Iterator[Caller]:
    with Caller(port) as found:
        yield found
