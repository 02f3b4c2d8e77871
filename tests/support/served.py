"""Small models to serve: identities of one type, as ONNX files made by code."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from support.fake_engine import LIMIT_S, Compute, FakeSession, double
from support.onnx_graphs import model, node

from mindspore_lite.context import Context
from mindspore_lite.graph.source import ModelInput
from mindspore_lite.server.access import Gate
from mindspore_lite.server.core import Core
from mindspore_lite.server.http.port import HttpOptions, HttpPort
from mindspore_lite.server.limits import Limits
from mindspore_lite.server.models import ModelOptions, Models
from mindspore_lite.serving.call import Call
from mindspore_lite.serving.layout import Layout
from mindspore_lite.serving.pool import Pool
from mindspore_lite.serving.pooled import PooledService
from mindspore_lite.serving.request import Request
from mindspore_lite.serving.scheduler import Batching, WorkerPlace
from mindspore_lite.serving.service import Ended
from mindspore_lite.serving.statistics import Occupancy, Statistics
from mindspore_lite.serving.thread_widths import WidthOption
from mindspore_lite.settings.spec import settle

F32 = onnx.TensorProto.FLOAT


def identity(
    path: Path, elem_type: int = F32, shape: Sequence[int | str] = ("n",), inputs: int = 1
) -> Path:
    """A model that answers what it is given: IN as OUT, or IN0 as OUT0 and so on."""
    names = [("IN", "OUT")] if inputs == 1 else [(f"IN{i}", f"OUT{i}") for i in range(inputs)]
    made = model(
        [node("Identity", [a], [b]) for a, b in names],
        [(a, elem_type, list(shape)) for a, _ in names],
        [(b, elem_type, list(shape)) for _, b in names],
    )
    onnx.save(made, path)
    return path


def service(path: Path, workers: int = 1) -> PooledService:
    """A model file, served by so many workers of one thread."""
    context = Context()
    context.parallel.workers_num, context.cpu.thread_num = workers, 1
    return PooledService(ModelInput("ONNX", path), settle(context))


def identities(folder: Path) -> Models:
    """The models of the worked exchanges: id_fp32 (version 3) and id_batch (at most 4 rows)."""
    models = Models()
    plain = identity(folder / "id_fp32.onnx")
    rows = identity(folder / "id_batch.onnx", shape=("n", 3))
    models.load("id_fp32", "3", lambda: service(plain))
    models.load("id_batch", "1", lambda: service(rows), ModelOptions(max_batch_size=4))
    return models


def floats(*values: float) -> bytes:
    return np.array(values, np.float32).tobytes()


class FakeService:
    """A pool of fake sessions, as the server sees a service: `compute` says what a run does."""

    def __init__(
        self,
        compute: Compute = double,
        workers: int = 1,
        queue_size: int = 100,
        batching: Batching | None = None,
    ) -> None:
        self.session = FakeSession(compute)
        self.spec = settle()
        self.inputs, self.outputs = self.session.info.inputs, self.session.info.outputs
        shared = (WidthOption(workers, self.session),)
        places = [WorkerPlace(index, shared) for index in range(workers)]
        layout = Layout(workers, 1, (1,), ((),) * workers, (-1,) * workers, 2, "the test")
        self.pool = Pool(places, layout, queue_size=queue_size, batching=batching)
        self.is_up = True
        self.weights_version = 0

    def run(self, call: Call) -> list[np.ndarray]:
        return self.pool.run(call)

    def submit_or_run(self, call: Call, ended: Ended) -> Callable[[], bool]:
        def deliver(request: Request) -> None:
            ended(request.outputs or [] if request.error is None else request.error)

        request = self.pool.submit(call, deliver)
        return lambda: self.pool.cancel(request)

    def update_weights(self, groups: list[list[Any]]) -> None:
        self.weights_version += 1

    def warm_up_shapes(self) -> None:
        return None

    def warm_up(self, shapes: Sequence[Sequence[int]]) -> list[np.ndarray]:
        raise AssertionError("it has no sizes to warm up with")

    def warm_up_with(self, arrays: list[np.ndarray]) -> None:
        self.pool.run(Call(arrays))

    def statistics(self) -> Statistics:
        return self.pool.statistics()

    def occupancy(self) -> Occupancy:
        return self.pool.occupancy()

    def close(self, drain_s: float | None) -> None:
        self.pool.close(drain_s)


@contextmanager
def port_of(
    models: Models, limits: Limits | None = None, gate: Gate | None = None, **options: Any
) -> Iterator[HttpPort]:
    """An HTTP port of these models on the loopback; they stay open."""
    core = Core(models, gate or Gate(), limits or Limits())
    port = HttpPort(core, HttpOptions(port=0, **options))
    port.start()
    try:
        yield port
    finally:
        port.close()


@contextmanager
def fake_port(
    service: FakeService, limits: Limits | None = None, **options: Any
) -> Iterator[HttpPort]:
    """A port that serves a fake as `fake`: x float32 [-1, 2] becomes y."""
    models = Models()
    models.load("fake", "1", lambda: service)
    try:
        with port_of(models, limits, **options) as port:
            yield port
    finally:
        models.close(0.0)


@dataclass
class Reply:
    """An answer as it came."""

    status: int
    headers: dict[str, str]
    body: bytes
    raw_head: bytes = b""

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        return str(self.json["error"])


class Wire:
    """A connection to a port, on which a test sends whatever bytes it likes."""

    def __init__(self, port: HttpPort | int) -> None:
        number = port if isinstance(port, int) else port.number
        self.sock = socket.create_connection(("127.0.0.1", number), timeout=LIMIT_S)
        self._file = self.sock.makefile("rb")

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()
        self.sock.close()

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def reply(self, has_body: bool = True) -> Reply:
        """The next answer."""
        lines = []
        while (line := self._file.readline()) not in (b"\r\n", b""):
            lines.append(line)
        if not lines:
            raise EOFError
        status = int(lines[0].split()[1])
        pairs = [line.decode("latin-1").strip().partition(": ") for line in lines[1:]]
        headers = {name.lower(): value for name, _, value in pairs}
        length = int(headers.get("content-length", 0)) if has_body else 0
        return Reply(status, headers, self._file.read(length), b"".join(lines))

    def at_end(self) -> bool:
        """Whether the server closed it; waits for that."""
        try:
            return self._file.read(1) == b""
        except ConnectionResetError:
            return True

    def ask(self, data: bytes, **more: Any) -> Reply:
        self.send(data)
        return self.reply(**more)


def post(
    path: str, body: bytes | dict[str, Any], *headers: str, length: int | None = None
) -> bytes:
    """The bytes of a POST."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", *headers]
    if not any(line.lower().startswith(("content-length", "transfer-enc")) for line in headers):
        lines.append(f"Content-Length: {len(data) if length is None else length}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


def get(path: str, *headers: str, method: str = "GET") -> bytes:
    """The bytes of a GET."""
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: localhost", *headers, "", ""]).encode()


def certificate(folder: Path, name: str, signer: str = "") -> None:
    """A key and a certificate, signed by itself or by another."""
    command = [
        "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
        "-keyout", f"{name}.key", "-out", f"{name}.pem", "-days", "2", "-subj", f"/CN={name}",
        "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
    ]  # fmt: skip
    if signer:
        command += ["-CA", f"{signer}.pem", "-CAkey", f"{signer}.key"]
        command += ["-addext", "basicConstraints=critical,CA:FALSE"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
