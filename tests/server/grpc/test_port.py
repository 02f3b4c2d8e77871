"""The gRPC port as a part of mslite.Server and mslite serve."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tritonclient.grpc as triton
from support.fake_engine import LIMIT_S
from support.grpc_served import Caller, request
from support.served import floats, identity

import mindspore_lite as mslite
from mindspore_lite.cli.demo import DIGITS_MODEL

OUTPUT = "Default/Softmax-op0"


@pytest.fixture
def net(tmp_path: Path) -> Path:
    return identity(tmp_path / "net.onnx")


def test_a_server_has_both_ports(net: Path) -> None:
    with mslite.Server([net], http_port=0) as server:
        assert server.http_port and server.grpc_port
        with Caller(server.grpc_port) as caller:
            assert caller.infer(request("net")).raw_output_contents[0] == floats(1, 2)
        assert server.drain(10)
    assert server.grpc_port == 0


def test_a_server_may_be_without_grpc(net: Path) -> None:
    with mslite.Server([net], http_port=0, grpc=False) as server:
        assert server.http_port
        assert not server.grpc_port


def test_a_port_that_is_taken_leaves_nothing_open(net: Path) -> None:
    with mslite.Server([net], http_port=0) as first:
        second = mslite.Server([net], http_port=0, grpc_port=first.grpc_port)
        with pytest.raises(RuntimeError, match=r"grpc_port \d+ of .* another program listens"):
            second.start()
        assert second.http_port == 0


def test_the_next_port_is_that_of_grpc(net: Path) -> None:
    assert mslite.Server([net], http_port=8000)._grpc.port == 8001  # type: ignore[union-attr]
    assert mslite.Server([net], http_port=0)._grpc.port == 0  # type: ignore[union-attr]


def test_a_certificate_without_its_key_is_refused_before_the_start(
    net: Path, tmp_path: Path
) -> None:
    (tmp_path / "cert.pem").write_text("nothing")
    with pytest.raises(ValueError, match="TLS files"):
        mslite.Server([net], http_port=0, tls_cert=tmp_path / "cert.pem")


def test_mslite_serve_answers_grpc_and_ends() -> None:
    command = [sys.executable, "-m", "mindspore_lite", "serve", "--demo", "--http-port", "0"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as child:
        try:
            assert child.stdout is not None
            line = child.stdout.readline()
            address = line.split()[1].removeprefix("grpc://")
            given = triton.InferInput("x", [1, 1, 8, 8], "FP32")
            given.set_data_from_numpy(np.zeros((1, 1, 8, 8), np.float32))
            with triton.InferenceServerClient(address) as client:
                assert client.infer("digits", [given]).as_numpy(OUTPUT).shape == (1, 10)
                child.send_signal(signal.SIGTERM)
                assert child.communicate(timeout=LIMIT_S)[1] == ""
            assert child.returncode == 0
        finally:
            child.kill()


def test_shared_memory_is_a_flag_of_the_server() -> None:
    with (
        mslite.Server([DIGITS_MODEL], http_port=0, allow_client_shm=True) as server,
        Caller(server.grpc_port) as caller,
    ):
        assert b"system_shared_memory" in caller.call("ServerMetadata")
        assert caller.call("SystemSharedMemoryUnregister") == b""
