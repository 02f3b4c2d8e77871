"""bench/served.py against our own ports, over HTTP and gRPC."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.fake_engine import Client, Gate
from support.grpc_served import FakeService, grpc_port
from support.served import identity, port_of, service

from mindspore_lite.bench.burst import Load
from mindspore_lite.bench.oip import Url
from mindspore_lite.bench.served import Served, client_of
from mindspore_lite.errors import CancelledError, InputError, LiteError, QueueFullError, WireError
from mindspore_lite.server.datatypes import DATATYPES
from mindspore_lite.server.models import Models

ONNX_TYPES = {
    "BOOL": 9, "INT8": 3, "INT16": 5, "INT32": 6, "INT64": 7, "UINT8": 2, "UINT16": 4,
    "UINT32": 12, "UINT64": 13, "FP16": 10, "FP32": 1, "FP64": 11, "BF16": 16,
}  # fmt: skip
FEED = {"x": np.ones((1, 2), np.float32)}

Open = Callable[[Models], Url]


@pytest.fixture(params=["http", "grpc"])
def opened(request: pytest.FixtureRequest) -> Iterator[Open]:
    """Opens a port of these models."""
    with ExitStack() as stack:

        def open_(models: Models) -> Url:
            stack.callback(models.close, None)
            if request.param == "http":
                return Url("http", "127.0.0.1", stack.enter_context(port_of(models)).number)
            return Url("grpc", "127.0.0.1", stack.enter_context(grpc_port(models)).number)

        yield open_


def fake(compute: Any) -> Models:
    models = Models()
    models.load("m", "1", lambda: FakeService(compute))
    return models


def full(inputs: list[np.ndarray], stop: Any) -> list[np.ndarray]:
    raise QueueFullError("1000 requests are waiting")


@pytest.mark.parametrize("name", DATATYPES)
def test_every_type_comes_back_as_it_was_sent(opened: Open, name: str, tmp_path: Path) -> None:
    models = Models()
    path = identity(tmp_path / "m.onnx", ONNX_TYPES[name])
    models.load("m", "1", lambda: service(path))
    served = Served(opened(models), "m")
    assert [(one.name, one.datatype, one.shape) for one in served.inputs] == [("IN", name, (-1,))]
    array = np.arange(3).astype(DATATYPES[name].dtype)
    with served.desk(Load(clients=1), {"IN": array}) as desk:
        for _ in range(2):
            (found,) = desk.call()
            assert found.dtype == array.dtype
            assert found.tobytes() == array.tobytes()
    served.close()


def test_an_unknown_model_is_an_error(opened: Open) -> None:
    with pytest.raises(LiteError, match="has no model 'other': unknown model 'other'"):
        Served(opened(fake(full)), "other")


def test_other_inputs_are_refused_before_anything_is_sent(opened: Open) -> None:
    with (
        closing(Served(opened(fake(full)), "m")) as served,
        pytest.raises(InputError, match=r"has the inputs \['x'\], the request has \['z'\]"),
    ):
        served.probe({"z": FEED["x"]})


def test_a_wrong_shape_has_the_words_of_the_server(opened: Open) -> None:
    with (
        closing(Served(opened(fake(full)), "m")) as served,
        pytest.raises(InputError, match="unexpected shape for input 'x' of model 'm'"),
    ):
        served.probe({"x": np.ones((1, 3), np.float32)})


def test_a_server_without_room_refuses_which_a_probe_does_not_mind(opened: Open) -> None:
    served = Served(opened(fake(full)), "m")
    served.probe(FEED)
    with (
        served.desk(Load(clients=1), FEED) as desk,
        pytest.raises(QueueFullError, match="Exceeds maximum queue size"),
    ):
        desk.call()


def test_what_is_dropped_ends_at_once_and_the_next_request_is_answered(opened: Open) -> None:
    gate = Gate()
    served = Served(opened(fake(gate)), "m")
    with served.desk(Load(rate=1.0), FEED) as desk:
        caller = Client(desk.call)
        gate.entered()
        desk.drop()
        assert isinstance(caller.ended().error, CancelledError)
        gate.open()
        assert desk.call()[0].tolist() == [[2.0, 2.0]]


@pytest.mark.parametrize("scheme", ["http", "grpc"])
def test_no_server_is_an_error(scheme: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(WireError, match="there is no server at"):
        client_of(Url(scheme, "127.0.0.1", port)).describe("m")


def test_the_only_model_needs_no_name_over_http() -> None:
    models = fake(full)
    with port_of(models) as port:
        url = Url("http", "127.0.0.1", port.number)
        with closing(Served(url, "")) as served:
            assert served.model == "m"
        models.load("n", "1", lambda: FakeService(full))
        with pytest.raises(InputError, match=r"has the models \['m', 'n'\]; choose one"):
            Served(url, "")
    models.close(None)


def test_over_grpc_a_model_must_be_named() -> None:
    with grpc_port() as port, pytest.raises(InputError, match="does not list its models"):
        Served(Url("grpc", "127.0.0.1", port.number), "")


def test_the_ports_are_not_mixed_up() -> None:
    with grpc_port() as port, pytest.raises(WireError, match="is this the port of gRPC"):
        Served(Url("http", "127.0.0.1", port.number), "m")
    with port_of(Models()) as http, pytest.raises(WireError, match="is this the port of HTTP"):
        Served(Url("grpc", "127.0.0.1", http.number), "m")
