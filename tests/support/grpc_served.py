"""A gRPC port over small models, and a model whose runs wait until the test lets them go."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import grpc
import numpy as np
from support import served
from support.fake_engine import Compute, Gate
from support.served import floats

from mindspore_lite.server.core import Core
from mindspore_lite.server.grpc.inference_pb2 import ModelInferRequest, ModelInferResponse
from mindspore_lite.server.grpc.port import GrpcOptions, GrpcPort
from mindspore_lite.server.models import Models
from mindspore_lite.serving.call import Call
from mindspore_lite.serving.service import Ended

SERVICE = "/inference.GRPCInferenceService/"


class FakeService(served.FakeService):
    """A model of x and y, of any rows of two, that computes what the test says."""

    def __init__(self, compute: Compute, workers: int = 1, queue_size: int = 1000) -> None:
        super().__init__(compute, workers, queue_size)
        self.calls: list[Call] = []

    def run(self, call: Call) -> list[np.ndarray]:
        self.calls.append(call)
        return super().run(call)

    def submit_or_run(self, call: Call, ended: Ended) -> Callable[[], bool]:
        self.calls.append(call)
        return super().submit_or_run(call, ended)


@contextmanager
def grpc_port(models: Models | None = None, **more: Any) -> Iterator[GrpcPort]:
    """An open port; `more` are fields of the Core, or of GrpcOptions."""
    options = {k: more.pop(k) for k in list(more) if k in GrpcOptions.__dataclass_fields__}
    port = GrpcPort(Core(models=models or Models(), **more), GrpcOptions(**options))
    port.start()
    try:
        yield port
    finally:
        port.close()


@contextmanager
def gated(workers: int = 1, **more: Any) -> Iterator[tuple[Gate, FakeService, GrpcPort]]:
    """A port with the model `slow`, which waits at a gate, and `bad`, which fails."""
    gate = Gate()
    service = FakeService(gate, workers)
    models = Models()
    models.load("slow", "1", lambda: service)
    models.load("bad", "1", lambda: FakeService(fails))
    try:
        with grpc_port(models, **more) as port:
            yield gate, service, port
    finally:
        gate.open()
        models.close(None)


def fails(inputs: list[np.ndarray], stop: Any) -> list[np.ndarray]:
    from mindspore_lite.errors import EngineError

    raise EngineError("the kernel of /secret/model.onnx failed")


def request(
    name: str = "id_fp32",
    data: bytes | None = None,
    shape: tuple[int, ...] = (2,),
    port: str = "IN",
    datatype: str = "FP32",
    **more: Any,
) -> ModelInferRequest:
    """A request of one input."""
    message = ModelInferRequest(model_name=name, **more)
    message.inputs.add(name=port, datatype=datatype, shape=shape)
    message.raw_input_contents.append(floats(1, 2) if data is None else data)
    return message


def slow(value: float = 1.0, name: str = "slow", **more: Any) -> ModelInferRequest:
    """A request to a model of gated()."""
    return request(name, floats(value, value), (1, 2), "x", **more)


class Caller:
    """Calls methods with bytes or messages."""

    def __init__(self, port: GrpcPort | int, credentials: Any = None, **options: Any) -> None:
        number = port if isinstance(port, int) else port.number
        given = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
        given += list(options.items())
        if credentials is None:
            self.channel = grpc.insecure_channel(f"127.0.0.1:{number}", given)
        else:
            self.channel = grpc.secure_channel(f"localhost:{number}", credentials, given)

    def __enter__(self) -> Caller:
        return self

    def __exit__(self, *_: object) -> None:
        self.channel.close()

    def call(self, method: str, message: Any = b"", **more: Any) -> bytes:
        path = method if method.startswith("/") else SERVICE + method
        found: bytes = self.channel.unary_unary(path)(_bytes(message), timeout=60, **more)
        return found

    def infer(self, message: Any, **more: Any) -> ModelInferResponse:
        return ModelInferResponse.FromString(self.call("ModelInfer", message, **more))

    def code(self, method: str, message: Any = b"", **more: Any) -> tuple[str, str]:
        """The code and words that a call fails with; ("OK", "") if it does not."""
        try:
            self.call(method, message, **more)
        except grpc.RpcError as exc:
            return exc.code().name, exc.details()
        return "OK", ""

    def stream(self, messages: Any, **more: Any) -> Any:
        call = self.channel.stream_stream(SERVICE + "ModelStreamInfer")
        return call((_bytes(one) for one in messages), **more)


def _bytes(message: Any) -> bytes:
    return message if isinstance(message, bytes) else message.SerializeToString()
