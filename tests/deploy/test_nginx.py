"""Runs the nginx configuration of deploy/ in front of a server, where nginx is installed."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import grpc
import numpy as np
import pytest
from support.served import certificate

import mindspore_lite as mslite
from mindspore_lite.cli.demo import DIGITS_MODEL
from mindspore_lite.server.grpc.inference_pb2 import ModelInferRequest, ModelInferResponse

CONF = Path(__file__).parents[2] / "deploy" / "nginx" / "mslite.conf"
NGINX = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
START_S = 60.0
NAME = "models.example.com"  # as the configuration has it
AROUND = """
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log stderr;
events {{ worker_connections 64; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
{conf}
}}
"""


@dataclass(frozen=True)
class Proxy:
    """nginx in front of a server."""

    http_port: int
    grpc_port: int
    authority: Path  # whose certificate it shows

    def ask(
        self, method: str, path: str, body: bytes = b"", **headers: str
    ) -> tuple[http.client.HTTPResponse, bytes]:
        context = ssl.create_default_context(cafile=str(self.authority))
        link = http.client.HTTPSConnection("127.0.0.1", self.http_port, context=context, timeout=60)
        try:
            link.request(method, path, body, {"Host": NAME} | headers)
            answer = link.getresponse()
            return answer, answer.read()
        finally:
            link.close()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def configured(folder: Path, http_port: int, grpc_port: int, server: mslite.Server) -> Path:
    """The configuration as it is, but for ports and certificates."""
    text, ports = CONF.read_text(), {443: http_port, 8443: grpc_port}
    for number, ours in ports.items():
        text, count = re.subn(rf"listen {number} ", f"listen 127.0.0.1:{ours} ", text)
        assert count == 1
    text = text.replace("127.0.0.1:8000;", f"127.0.0.1:{server.http_port};")
    text = text.replace("127.0.0.1:8001;", f"127.0.0.1:{server.grpc_port};")
    text = text.replace("/etc/nginx/tls/cert.pem", str(folder / "proxy.pem"))
    text = text.replace("/etc/nginx/tls/key.pem", str(folder / "proxy.key"))
    file = folder / "nginx.conf"
    file.write_text(AROUND.format(folder=folder, conf=text))
    return file


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    if NGINX is None:
        pytest.skip("nginx is not installed")
    folder = tmp_path_factory.mktemp("nginx")
    certificate(folder, "proxy")
    with mslite.Server({"digits": DIGITS_MODEL}, http_port=0, allow_hosts=[NAME]) as server:
        ports = free_port(), free_port()
        command = [NGINX, "-p", str(folder), "-c", str(configured(folder, *ports, server))]
        child = subprocess.Popen(command, stderr=subprocess.PIPE)
        try:
            _wait(child, ports[0])
            yield Proxy(*ports, folder / "proxy.pem")
        finally:
            child.terminate()
            child.communicate()


def _wait(child: subprocess.Popen[bytes], port: int) -> None:
    due = time.monotonic() + START_S
    while time.monotonic() < due:
        if child.poll() is not None:
            raise AssertionError(child.communicate()[1].decode())
        with socket.socket() as trial:
            if trial.connect_ex(("127.0.0.1", port)) == 0:
                return
    raise AssertionError("nginx does not listen")


def infer_body(rows: int) -> bytes:
    values = {"name": "x", "datatype": "FP32", "shape": [rows, 1, 8, 8]}
    return json.dumps({"inputs": [values | {"data": [0.5] * (64 * rows)}]}).encode()


def test_requests_pass_with_their_bodies_and_errors(proxy: Proxy) -> None:
    answer, body = proxy.ask("POST", "/v2/models/digits/infer", infer_body(5000))  # 1.6 MB
    assert answer.status == 200
    assert json.loads(body)["outputs"][0]["shape"] == [5000, 10]
    assert re.fullmatch("[0-9a-f]{32}", answer.getheader("x-request-id") or "")
    answer, body = proxy.ask("GET", "/v2/models/nosuch")
    assert (answer.status, "nosuch" in json.loads(body)["error"]) == (404, True)


def test_the_page_may_send_requests_and_others_may_not(proxy: Proxy) -> None:
    url, body = "/v2/models/digits/infer", infer_body(1)
    for origin, status in ((f"https://{NAME}", 200), ("https://elsewhere.example", 403)):
        assert proxy.ask("POST", url, body, Origin=origin)[0].status == status


def test_what_is_for_operators_is_open_to_this_machine(proxy: Proxy) -> None:
    answer, body = proxy.ask("GET", "/metrics")
    assert answer.status == 200
    assert b"mslite_ready 1" in body


def test_the_stream_of_the_dashboard_is_not_held_back(proxy: Proxy) -> None:
    context = ssl.create_default_context(cafile=str(proxy.authority))
    link = http.client.HTTPSConnection("127.0.0.1", proxy.http_port, context=context, timeout=60)
    try:
        link.request("GET", "/dashboard/events", headers={"Host": NAME})
        answer = link.getresponse()
        assert answer.getheader("content-type", "").startswith("text/event-stream")
        assert answer.readline()  # comes although the answer has no end
    finally:
        link.close()


def test_grpc_passes(proxy: Proxy) -> None:
    credentials = grpc.ssl_channel_credentials(proxy.authority.read_bytes())
    with grpc.secure_channel(f"127.0.0.1:{proxy.grpc_port}", credentials) as channel:
        call = channel.unary_unary(
            "/inference.GRPCInferenceService/ModelInfer",
            request_serializer=ModelInferRequest.SerializeToString,
            response_deserializer=ModelInferResponse.FromString,
        )
        request = ModelInferRequest(model_name="digits")
        request.inputs.add(name="x", datatype="FP32", shape=[1, 1, 8, 8])
        request.raw_input_contents.append(np.zeros(64, np.float32).tobytes())
        found = call(request, timeout=60)
    assert np.frombuffer(found.raw_output_contents[0], np.float32).shape == (10,)
