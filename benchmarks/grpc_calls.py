"""What a gRPC request costs the server without a model: our port, protobuf's parse, bare gRPC.

    python benchmarks/grpc_calls.py [--bytes 602112] [--requests 400] [--rounds 5]

CPU microseconds of the server's process per request, the median over interleaved rounds. `ours` is
the port with a model that answers at once; `protobuf` is a plain generated servicer that parses the
message and reads its tensor; `bare` takes the bytes and looks at none of them.
"""

from __future__ import annotations

import argparse
import multiprocessing as mp
import os
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import grpc
import numpy as np

from mindspore_lite.core.tensor_info import TensorInfo
from mindspore_lite.server.core import Core
from mindspore_lite.server.grpc.inference_pb2 import ModelInferRequest, ModelInferResponse
from mindspore_lite.server.grpc.options import GrpcOptions
from mindspore_lite.server.grpc.port import GrpcPort
from mindspore_lite.server.grpc.split import parsed, split

METHOD = "/inference.GRPCInferenceService/ModelInfer"
ANSWER = np.zeros((1, 10), np.float32)
KEPT: list[Any] = []  # servers end when nothing refers to them
SIZES = [("grpc.max_receive_message_length", -1)]


class NoModel:
    """Answers the same ten numbers, at once."""

    spec: Any = SimpleNamespace(warm_up=False)
    inputs = (TensorInfo("x", np.dtype(np.float32), (-1,)),)
    outputs = (TensorInfo("y", np.dtype(np.float32), (1, 10)),)

    def run(self, call: Any) -> list[np.ndarray]:
        """The answer."""
        return [ANSWER]

    def statistics(self) -> Any:
        """Where it runs."""
        return SimpleNamespace(layout=SimpleNamespace(workers=1))

    def close(self, drain_s: float | None) -> None:
        """Nothing to do."""


def ours() -> int:
    """Open our port."""
    core = Core()
    core.models.load("m", "1", NoModel)  # type: ignore[arg-type]
    KEPT.append(GrpcPort(core, GrpcOptions()))
    return int(KEPT[-1].start())


def by_protobuf(request: ModelInferRequest, context: Any) -> ModelInferResponse:
    """What a servicer of generated code does."""
    array = np.frombuffer(request.raw_input_contents[0], np.float32)
    response = ModelInferResponse(model_name="m", model_version="1", id=request.id)
    response.outputs.add(name="y", datatype="FP32", shape=ANSWER.shape)
    response.raw_output_contents.append(ANSWER.tobytes())
    assert array.size
    return response


def plain(handler: Any) -> int:
    """Open a port of gRPC's own."""
    server = grpc.server(ThreadPoolExecutor(8), options=SIZES)
    handlers = {"ModelInfer": handler}
    generic = grpc.method_handlers_generic_handler(METHOD.split("/")[1], handlers)
    server.add_generic_rpc_handlers([generic])
    port = int(server.add_insecure_port("127.0.0.1:0"))
    server.start()
    KEPT.append(server)
    return port


KINDS = {
    "ours": ours,
    "protobuf": lambda: plain(
        grpc.unary_unary_rpc_method_handler(
            by_protobuf, ModelInferRequest.FromString, ModelInferResponse.SerializeToString
        )
    ),
    "bare": lambda: plain(grpc.unary_unary_rpc_method_handler(lambda message, context: b"")),
}


def serve(kind: str, pipe: Any) -> None:
    """Be a server until the pipe says so; on each other message, tell the CPU seconds so far."""
    pipe.send(KINDS[kind]())
    while pipe.recv():
        pipe.send(time.process_time())
    os._exit(0)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    for name, value in (("bytes", 602_112), ("requests", 400), ("rounds", 5)):
        parser.add_argument(f"--{name}", type=int, default=value)
    asked = parser.parse_args()
    message = ModelInferRequest(model_name="m")
    message.inputs.add(name="x", datatype="FP32", shape=[asked.bytes // 4])
    message.raw_input_contents.append(bytes(asked.bytes))
    data = message.SerializeToString()
    context, pipes, calls = mp.get_context("spawn"), {}, {}
    for kind in KINDS:
        pipes[kind], end = context.Pipe()
        context.Process(target=serve, args=(kind, end), daemon=True).start()
        channel = grpc.insecure_channel(f"127.0.0.1:{pipes[kind].recv()}", SIZES)
        calls[kind] = channel.unary_unary(METHOD)
        for _ in range(20):
            calls[kind](data)
    found: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for _ in range(asked.rounds):
        for kind, call in calls.items():
            pipes[kind].send(True)
            before_s = pipes[kind].recv()
            for _ in range(asked.requests):
                call(data)
            pipes[kind].send(True)
            found[kind].append((pipes[kind].recv() - before_s) / asked.requests * 1e6)
    for kind, values in found.items():
        print(f"{kind:10s} {statistics.median(values):8.1f} us of CPU per request")
        pipes[kind].send(False)
    for name, act in (
        ("split", lambda: parsed(split(data, 1 << 23, 4096)[0])),
        ("parse", lambda: ModelInferRequest.FromString(data).raw_input_contents[0]),
    ):
        start_s = time.process_time()
        for _ in range(1000):
            act()
        print(f"{name:10s} {(time.process_time() - start_s) * 1e3:8.1f} us alone")


if __name__ == "__main__":
    main()
