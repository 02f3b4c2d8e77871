from __future__ import annotations

import json
import os
import re
import socket
import ssl
import sys
import urllib.request
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.devices import worker_pids
from support.fake_engine import LIMIT_S, Client
from support.fake_engine import Gate as RunGate
from support.served import FakeService, Wire, certificate, get, identity, post

import mindspore_lite as mslite
from mindspore_lite.cli.demo import DIGITS_MODEL
from mindspore_lite.errors import ClosedError, LiteError
from mindspore_lite.server.limits import Limits


@pytest.fixture
def net(tmp_path: Path) -> Path:
    return identity(tmp_path / "my net.v1.onnx")


def test_a_program_serves_a_model(net: Path) -> None:
    server = mslite.Server([net], http_port=0)
    assert not server.is_ready and server.http_port == 0
    with server:
        assert server.is_ready and server.is_local
        with Wire(server.http_port) as wire:
            assert wire.ask(get("/v2/models")).json == {"models": ["my-net.v1"]}
            reply = wire.ask(get("/v2/models/my-net.v1")).json
            assert (reply["platform"], reply["versions"]) == ("onnx_onnxv1", ["1"])
    assert not server.is_ready
    server.close()
    with pytest.raises(ClosedError, match="once"):
        server.start()


def test_names_may_be_chosen(net: Path) -> None:
    with (
        mslite.Server({"a": net, "b": DIGITS_MODEL}, http_port=0) as server,
        Wire(server.http_port) as wire,
    ):
        assert wire.ask(get("/v2/models")).json == {"models": ["a", "b"]}


@pytest.mark.parametrize("models", [[], {}, {"stats": "x"}, {"a/b": "x"}, ["x", "x"]])
def test_models_that_cannot_be_served_are_refused(net: Path, models: Any) -> None:
    models = dict.fromkeys(models, net) if isinstance(models, dict) else [net for _ in models]
    with pytest.raises(ValueError, match=r"models|served|twice"):
        mslite.Server(models, http_port=0)


def test_a_file_that_is_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LiteError, match="there is no model to serve at"):
        mslite.Server([tmp_path / "x.onnx"])
    with pytest.raises(ValueError, match="no models in the directory"):
        mslite.Server([tmp_path])


def test_a_start_that_fails_leaves_nothing_open(tmp_path: Path) -> None:
    path = tmp_path / "broken.onnx"
    path.write_bytes(b"\x08\x07broken")
    server = mslite.Server([path], http_port=0)
    with pytest.raises(LiteError, match="the server cannot be started"):
        server.start()
    assert server.http_port == 0


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"x": 1}, "no limits"),
        ({"chunks": 0}, "above 0"),
        ({"head_s": float("nan")}, "above 0"),
        ({"body_bytes": 1e9}, "whole number"),
    ],
)
def test_limits_are_checked(net: Path, limits: dict[str, float], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        mslite.Server([net], limits=limits)


@pytest.mark.parametrize(
    "ports", [{"http_port": 70_000}, {"grpc_port": 65_536}, {"http_port": 65_535}]
)
def test_ports_that_there_are_not_are_refused(net: Path, ports: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="must be 0 to 65535"):
        mslite.Server([net], **ports)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["tokens", "admin_tokens", "allow_hosts", "allow_origins"])
def test_a_text_is_no_list_of_texts(net: Path, name: str) -> None:
    with pytest.raises(TypeError, match=name):
        mslite.Server([net], **{name: "0123456789abcdef"})  # type: ignore[arg-type]


def test_a_model_that_is_being_loaded_is_not_ready_yet(net: Path) -> None:
    server = mslite.Server([net], http_port=0)
    models = server.core.models
    with pytest.raises(LiteError, match="being loaded"):
        models.find("my-net.v1")
    server.close()


def test_a_drain_finishes_what_is_under_way(net: Path) -> None:
    gate = RunGate()
    body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}]}
    server = mslite.Server([net], http_port=0).start()
    server.core.models.load("fake", "1", lambda: FakeService(gate))
    with Wire(server.http_port) as busy, Wire(server.http_port) as idle:
        assert idle.ask(get("/v2/health/ready")).status == 200
        busy.send(post("/v2/models/fake/infer", body))
        gate.entered()
        drain = Client(lambda: server.drain(60))
        while not server.core.is_ending:
            pass
        reply = idle.ask(get("/v2/health/ready"))  # those who are here learn of it
        assert (reply.status, reply.headers["connection"]) == (503, "close")
        gate.open()
        reply = busy.reply()
        assert (reply.status, reply.headers["connection"]) == (200, "close")
    assert drain.ended().result is True


def test_a_drain_ends_in_time(net: Path) -> None:
    gate = RunGate()
    server = mslite.Server([net], http_port=0).start()
    server.core.models.load("fake", "1", lambda: FakeService(gate))
    with Wire(server.http_port) as wire:
        body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}]}
        wire.send(post("/v2/models/fake/infer", body))
        gate.entered()
        assert server.drain(0.05) is False
        assert wire.at_end()
    gate.open()


def test_a_drain_does_not_wait_for_the_good_bye_of_tls_clients(net: Path, tmp_path: Path) -> None:
    certificate(tmp_path, "server")
    cert, key = tmp_path / "server.pem", tmp_path / "server.key"
    context = ssl.create_default_context(cafile=str(cert))
    with (
        mslite.Server([net], http_port=0, grpc=False, tls_cert=cert, tls_key=key) as server,
        socket.create_connection(("127.0.0.1", server.http_port), LIMIT_S) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as client,
    ):
        client.sendall(get("/dashboard/events"))
        assert client.recv(12) == b"HTTP/1.1 200"
        assert server.drain(20.0)


def test_tls_and_client_certificates(net: Path, tmp_path: Path) -> None:
    certificate(tmp_path, "ca")
    for name in ("server", "client"):
        certificate(tmp_path, name, "ca")
    files = {"tls_cert": tmp_path / "server.pem", "tls_key": tmp_path / "server.key"}
    trusted = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
    image = np.zeros((1, 1, 8, 8)).reshape(-1).tolist()
    body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 1, 8, 8], "data": image}]}
    with mslite.Server([DIGITS_MODEL], http_port=0, **files) as server:  # type: ignore[arg-type]
        url = f"https://localhost:{server.http_port}/v2/models/digits/infer"
        data = json.dumps(body).encode()
        with urllib.request.urlopen(url, data, context=trusted) as answer:
            assert json.load(answer)["outputs"][0]["shape"] == [1, 10]
    with mslite.Server([net], http_port=0, tls_client_ca=tmp_path / "ca.pem", **files) as server:  # type: ignore[arg-type]
        url = f"https://localhost:{server.http_port}/v2"
        with pytest.raises(OSError, match=r"certificate|reset|closed|EOF"):
            urllib.request.urlopen(url, context=trusted)
        trusted.load_cert_chain(tmp_path / "client.pem", tmp_path / "client.key")
        with urllib.request.urlopen(url, context=trusted) as answer:
            assert answer.status == 200


@pytest.mark.parametrize(
    "files", [{"tls_key": "x"}, {"tls_client_ca": "x"}, {"tls_cert": "/nowhere.pem"}]
)
def test_tls_files_are_checked(net: Path, files: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"TLS|tls_cert"):
        mslite.Server([net], **files)  # type: ignore[arg-type]


def test_the_page_lists_every_limit_with_its_default() -> None:
    text = (Path(__file__).parents[2] / "docs/serving.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| ([\d.]+) \|", text, re.MULTILINE))
    assert rows == {one.name: str(one.default) for one in fields(Limits)}


@pytest.mark.parametrize("package", ["httptools", "msgspec"])
def test_a_missing_package_names_the_extra(
    net: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(LiteError, match=rf"{package}: pip install 'mslite\[serve\]'"):
        mslite.Server([net])


def test_models_share_the_cores(net: Path) -> None:
    files = {"a": net, "b": net, "c": net}
    isolation = {"b": "process", "c": "process"}
    shares = {"a": 2, "b": 8.0}
    with mslite.Server(files, http_port=0, isolation=isolation, shares=shares) as server:
        service = server.core.models.find("a").service
        assert service.pool._cores._party.share == 2.0  # type: ignore[attr-defined]
        own = os.getpriority(os.PRIO_PROCESS, 0)
        found = sorted(os.getpriority(os.PRIO_PROCESS, pid) for pid in worker_pids())
        assert found == [own, min(19, own + 9)]  # 1.25 to the power of 9 is about 8


@pytest.mark.parametrize(
    ("shares", "error", "words"),
    [
        ({"x": 1}, ValueError, "the models are"),
        ({"my-net.v1": 0}, ValueError, "must be 0.001 to 1000, but got 0"),
        ({"my-net.v1": float("inf")}, ValueError, "must be 0.001 to 1000"),
        ({"my-net.v1": "2"}, TypeError, "must be a number, but got '2'"),
        ({"my-net.v1": True}, TypeError, "must be a number"),
    ],
)
def test_shares_that_make_no_sense_are_refused(
    net: Path, shares: dict[str, float], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        mslite.Server([net], shares=shares)
