"""Shared memory over gRPC and HTTP, with Triton's clients, as one extension of one server."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import partial
from multiprocessing.shared_memory import SharedMemory
from threading import Thread
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as triton
import tritonclient.http as triton_http
from support.fake_engine import Gate as RunGate
from support.fake_engine import wait_for
from support.grpc_served import Caller, FakeService, grpc_port, request
from support.served import Wire, floats, get, port_of, post
from tritonclient.utils import InferenceServerException

from mindspore_lite.server.core import Core
from mindspore_lite.server.datatypes import DATATYPES
from mindspore_lite.server.errors import RequestError
from mindspore_lite.server.grpc.inference_pb2 import (
    ModelInferRequest,
    SystemSharedMemoryRegisterRequest,
    SystemSharedMemoryStatusResponse,
    SystemSharedMemoryUnregisterRequest,
)
from mindspore_lite.server.grpc.port import GrpcOptions, GrpcPort
from mindspore_lite.server.http.port import HttpOptions, HttpPort
from mindspore_lite.server.limits import Limits
from mindspore_lite.server.models import Models

SYSTEM = "/v2/systemsharedmemory"


@pytest.fixture
def block() -> Iterator[SharedMemory]:
    """Memory of 64 bytes that a client made: the numbers 0 to 15."""
    found = SharedMemory(create=True, size=64)
    found.buf[:64] = np.arange(16, dtype=np.float32).tobytes()
    yield found
    found.close()
    found.unlink()


@pytest.fixture
def ports(models: Models) -> Iterator[tuple[GrpcPort, HttpPort]]:
    with port_of(models) as http:
        http.core.allow_shared_memory()
        grpc_port = GrpcPort(http.core, GrpcOptions())
        grpc_port.start()
        yield grpc_port, http
        grpc_port.close()


@pytest.fixture
def caller(ports: tuple[GrpcPort, HttpPort]) -> Iterator[Caller]:
    with Caller(ports[0]) as found:
        yield found


def register(name: str, block: SharedMemory, offset: int = 0, byte_size: int = 64) -> Any:
    return SystemSharedMemoryRegisterRequest(
        name=name, key=f"/{block.name}", offset=offset, byte_size=byte_size
    )


def using(part: Any, region: str, offset: int | None, size: int) -> None:
    part.parameters["shared_memory_region"].string_param = region
    part.parameters["shared_memory_byte_size"].int64_param = size
    if offset is not None:
        part.parameters["shared_memory_offset"].int64_param = offset


def asked(offset: int | None, size: int, shape: int, out: int = 48, room: int = 16) -> Any:
    """IN from the region r, OUT to the region w."""
    message = ModelInferRequest(model_name="id_fp32")
    using(message.inputs.add(name="IN", datatype="FP32", shape=[shape]), "r", offset, size)
    using(message.outputs.add(name="OUT"), "w", out, room)
    return message


def test_11_tensors_go_through_shared_memory(caller: Caller, block: SharedMemory) -> None:
    caller.call("SystemSharedMemoryRegister", register("r", block, offset=4, byte_size=32))
    caller.call("SystemSharedMemoryRegister", register("w", block))
    found = caller.infer(asked(8, 12, 3))
    (output,) = found.outputs
    assert (output.name, output.datatype, list(output.shape)) == ("OUT", "FP32", [3])
    assert list(found.raw_output_contents) == [b""]
    assert np.frombuffer(block.buf, np.float32)[12:15].tolist() == [3, 4, 5]
    caller.infer(asked(None, 8, 2))
    assert np.frombuffer(block.buf, np.float32)[12:14].tolist() == [1, 2]


def test_an_input_in_shared_memory_takes_no_raw_entry(caller: Caller, block: SharedMemory) -> None:
    caller.call("SystemSharedMemoryRegister", register("r", block))
    message = ModelInferRequest(model_name="id_two")
    using(message.inputs.add(name="IN0", datatype="FP32", shape=[2]), "r", 0, 8)
    message.inputs.add(name="IN1", datatype="FP32", shape=[1])
    message.raw_input_contents.append(floats(7))
    assert list(caller.infer(message).raw_output_contents) == [floats(0, 1), floats(7)]


@pytest.mark.parametrize(
    ("message", "code", "words"),
    [
        (asked(0, 12, 2), "INVALID_ARGUMENT", "byte size mismatch"),
        (asked(60, 8, 2), "INVALID_ARGUMENT", "do not lie in"),
        (asked((1 << 63) - 1, 8, 2), "INVALID_ARGUMENT", "do not lie in"),
        (asked(-4, 8, 2), "INVALID_ARGUMENT", "0 or more"),
        (asked(0, 8, 2, room=4), "INVALID_ARGUMENT", "its range in shared memory only 4"),
        (asked(0, 8, 2, out=60), "INVALID_ARGUMENT", "do not lie in"),
    ],
)
def test_ranges_are_checked(
    caller: Caller, block: SharedMemory, message: Any, code: str, words: str
) -> None:
    before = bytes(block.buf)
    for name in ("r", "w"):
        caller.call("SystemSharedMemoryRegister", register(name, block))
    got, text = caller.code("ModelInfer", message)
    assert (got, words in text) == (code, True)
    assert bytes(block.buf) == before


def test_contradictions_are_refused(caller: Caller, block: SharedMemory) -> None:
    caller.call("SystemSharedMemoryRegister", register("r", block))
    message = ModelInferRequest(model_name="id_fp32")
    tensor = message.inputs.add(name="IN", datatype="FP32", shape=[2])
    using(tensor, "r", 0, 8)
    tensor.contents.fp32_contents.extend([1, 2])
    assert "contents and shared memory" in caller.code("ModelInfer", message)[1]
    tensor.ClearField("contents")
    message.raw_input_contents.append(b"")
    assert "the inputs take 0" in caller.code("ModelInfer", message)[1]
    message = request()
    using(message.outputs.add(name="OUT"), "r", 0, 8)
    message.outputs[0].parameters["classification"].int64_param = 1
    assert "classification does not go" in caller.code("ModelInfer", message)[1]
    using(message.outputs[0], "nowhere", 0, 8)
    assert caller.code("ModelInfer", message)[0] == "NOT_FOUND"


def test_memory_that_shrinks_fails_the_request_alone(caller: Caller, block: SharedMemory) -> None:
    for name in ("r", "w"):
        caller.call("SystemSharedMemoryRegister", register(name, block))
    os.truncate(f"/dev/shm/{block.name}", 4)
    assert "shorter than it was" in caller.code("ModelInfer", asked(0, 8, 2))[1]
    assert caller.infer(request())


def test_regions_are_listed_and_forgotten(caller: Caller, block: SharedMemory) -> None:
    def names(name: str = "") -> list[str]:
        found = caller.call("SystemSharedMemoryStatus", f"\x0a{chr(len(name))}{name}".encode())
        return sorted(SystemSharedMemoryStatusResponse.FromString(found).regions)

    for name in ("r", "w"):
        caller.call("SystemSharedMemoryRegister", register(name, block))
    again = caller.code("SystemSharedMemoryRegister", register("r", block))
    assert again[0] == "ALREADY_EXISTS"
    assert (names(), names("w")) == (["r", "w"], ["w"])
    unregister = SystemSharedMemoryUnregisterRequest(name="r")
    for _ in range(2):  # what is unknown is no error
        caller.call("SystemSharedMemoryUnregister", unregister)
    assert names() == ["w"]
    assert caller.code("SystemSharedMemoryStatus", b"\x0a\x01r")[0] == "NOT_FOUND"
    caller.call("SystemSharedMemoryUnregister")
    assert names() == []


def test_memory_of_cards_is_none(caller: Caller) -> None:
    assert caller.call("CudaSharedMemoryStatus") == b""
    assert caller.call("CudaSharedMemoryUnregister") == b""
    assert caller.code("CudaSharedMemoryRegister")[0] == "INVALID_ARGUMENT"


def test_it_is_off_unless_it_is_allowed(models: Models, block: SharedMemory) -> None:
    with grpc_port(models) as port, Caller(port) as caller:
        assert caller.call("SystemSharedMemoryStatus") == b""
        for method in ("SystemSharedMemoryRegister", "SystemSharedMemoryUnregister"):
            code, text = caller.code(method, register("r", block))
            assert (code, "--allow-client-shm" in text) == ("UNIMPLEMENTED", True)
    assert Core().regions is None
    with port_of(models) as port_, Wire(port_) as wire:
        assert wire.ask(get(f"{SYSTEM}/status")).json == []
        assert wire.ask(post(f"{SYSTEM}/unregister", b"")).status == 501
        assert wire.ask(post(f"{SYSTEM}/region/r/register", b"{}")).status == 501


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_tritons_clients(
    ports: tuple[GrpcPort, HttpPort], block: SharedMemory, protocol: str
) -> None:
    module: Any = triton if protocol == "grpc" else triton_http
    number = ports[0].number if protocol == "grpc" else ports[1].number
    with module.InferenceServerClient(f"127.0.0.1:{number}") as client:
        client.unregister_system_shared_memory()
        client.unregister_cuda_shared_memory()
        client.register_system_shared_memory("r", f"/{block.name}", 32)
        client.register_system_shared_memory("w", f"/{block.name}", 32, offset=32)
        given = module.InferInput("IN", [2], "FP32")
        given.set_shared_memory("r", 8, offset=4)
        wanted = module.InferRequestedOutput("OUT")
        wanted.set_shared_memory("w", 8)
        found = client.infer("id_fp32", [given], outputs=[wanted])
        output = found.get_output("OUT")
        shape = output["shape"] if protocol == "http" else list(output.shape)
        assert shape == [2]
        assert np.frombuffer(block.buf, np.float32)[8:10].tolist() == [1, 2]
        status = client.get_system_shared_memory_status()
        regions = status if protocol == "http" else status.regions
        assert len(regions) == 2
        assert "system_shared_memory" in str(client.get_server_metadata())
        with pytest.raises(InferenceServerException, match="already in manager"):
            client.register_system_shared_memory("r", f"/{block.name}", 32)
        client.unregister_system_shared_memory("r")
        with pytest.raises(InferenceServerException, match="Unable to find shared memory region"):
            client.infer("id_fp32", [given])
        client.unregister_system_shared_memory()


def test_regions_are_those_of_the_server_not_of_a_port(
    ports: tuple[GrpcPort, HttpPort], caller: Caller, block: SharedMemory
) -> None:
    caller.call("SystemSharedMemoryRegister", register("r/ä", block, 4, 8))
    with Wire(ports[1]) as wire:
        wanted = {"name": "r/ä", "key": f"/{block.name}", "offset": 4, "byte_size": 8}
        assert wire.ask(get(f"{SYSTEM}/status")).json == [wanted]
        assert wire.ask(get(f"{SYSTEM}/region/nowhere/status")).status == 404
        body = {"key": block.name, "byte_size": 16, "more": 1}
        reply = wire.ask(post(f"{SYSTEM}/region/s/register", body))
        assert (reply.status, reply.body) == (200, b"")
        assert wire.ask(get(f"{SYSTEM}/region/s/status")).json[0]["byte_size"] == 16


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{}", b"[]", b"null", b'{"key":"x"}', b'{"byte_size":4}', b'{"key":1,"byte_size":4}',
        b'{"key":"x","byte_size":"4"}', b'{"key":"x","byte_size":4.5}',
        b'{"key":"x","byte_size":-4}',
        b'{"key":"x","byte_size":true}', b'{"key":"x","byte_size":4,"offset":-1}',
        b'{"key":"../x","byte_size":4}', b'{"key":"x","byte_size":99999999999999999999999}',
        b'{"key":"\\ud800","byte_size":4}', b"\xff",
    ],
)  # fmt: skip
def test_registrations_that_make_no_sense(ports: tuple[GrpcPort, HttpPort], body: bytes) -> None:
    with Wire(ports[1]) as wire:
        reply = wire.ask(post(f"{SYSTEM}/region/r/register", body))
        assert reply.status == 400
        assert json.loads(reply.body)["error"]
        assert wire.ask(get(f"{SYSTEM}/status")).json == []


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_copies_of_shared_memory_count_as_bytes_in_flight(
    block: SharedMemory, protocol: str
) -> None:
    gate = RunGate()
    models = Models()
    models.load("slow", "1", lambda: FakeService(gate))
    core = Core(models, limits=Limits(flight_bytes=1000))
    core.allow_shared_memory()
    core.shared().register("r", block.name, 0, 64)
    port: GrpcPort | HttpPort = GrpcPort(core, GrpcOptions())
    if protocol == "http":
        port = HttpPort(core, HttpOptions(port=0))
    port.start()
    sender = Thread(target=partial(infer_slowly, protocol, port.number))
    sender.start()
    gate.entered()
    under_way = core.flight.bytes
    read = core.shared().reader("r", 0, 64)
    core.flight.take(1000 - under_way - 63)
    with pytest.raises(RequestError, match="take all of the 1000 bytes"):
        read(DATATYPES["FP32"], (16,))
    core.flight.give(1000 - under_way - 63)
    gate.open()
    sender.join()
    wait_for(lambda: core.flight.bytes == 0)
    port.close()
    models.close(None)
    assert under_way > 64  # the copy, and the message


def infer_slowly(protocol: str, number: int) -> None:
    if protocol == "grpc":
        message = ModelInferRequest(model_name="slow")
        using(message.inputs.add(name="x", datatype="FP32", shape=[8, 2]), "r", 0, 64)
        with Caller(number) as caller:
            assert caller.infer(message)
        return
    where = {"shared_memory_region": "r", "shared_memory_byte_size": 64}
    tensor = {"name": "x", "datatype": "FP32", "shape": [8, 2], "parameters": where}
    with Wire(number) as wire:
        assert wire.ask(post("/v2/models/slow/infer", {"inputs": [tensor]})).status == 200
