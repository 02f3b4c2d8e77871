"""Who may call what over gRPC: every method x token, known or not; TLS; reflection."""

from __future__ import annotations

import queue
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import grpc
import pytest
from support.fake_engine import LIMIT_S
from support.grpc_served import SERVICE, Caller, grpc_port, request

from mindspore_lite.errors import EngineError
from mindspore_lite.server.access import Gate
from mindspore_lite.server.grpc.inference_pb2 import DESCRIPTOR
from mindspore_lite.server.grpc.port import GrpcPort
from mindspore_lite.server.models import Models

CLIENT, ADMIN = "client-token-0123456789", "admin-token-0123456789"
OPEN = (f"{SERVICE}ServerLive", f"{SERVICE}ServerReady", "/grpc.health.v1.Health/Check")
METHODS = [
    *(SERVICE + one.name for one in DESCRIPTOR.services_by_name["GRPCInferenceService"].methods),
    "/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
    f"{SERVICE}Nope", f"{SERVICE}serverlive", f"/{SERVICE}ServerLive", f"{SERVICE}ServerLive/",
    "/inference.GRPCInferenceService//ServerLive", f"{SERVICE}ServerLive?x", "/",
    "/inference.GRPCInferenceService", "/x/ServerLive", "/inference%2EGRPCInferenceService/x",
]  # fmt: skip
ADMINISTRATORS = [f"{SERVICE}RepositoryModelLoad", f"{SERVICE}RepositoryModelUnload"]
REFUSED = [
    None, "", "Bearer", "Bearer ", "Bearer x", f"Basic {CLIENT}", CLIENT, f"Bearer {CLIENT}x",
    f"Bearer {CLIENT[:-1]}",
]  # fmt: skip


@pytest.fixture(scope="module")
def guarded(models: Models) -> Iterator[GrpcPort]:
    with grpc_port(models, gate=Gate([CLIENT], [ADMIN]), reflection=True) as found:
        yield found


def bearer(token: str | None) -> dict[str, object]:
    return {"metadata": [("authorization", token)]} if token is not None else {}


@pytest.mark.parametrize("method", METHODS)
def test_a_method_needs_its_token(guarded: GrpcPort, method: str) -> None:
    with Caller(guarded) as caller:
        for token in REFUSED:
            got, _ = caller.code(method, **bearer(token))
            assert got == ("OK" if method in OPEN else "UNAUTHENTICATED"), token
        for token in (CLIENT, ADMIN):
            if method.endswith(("Watch", "ReflectionInfo", "StreamInfer")):
                continue  # they have no single answer
            got, _ = caller.code(method, **bearer(f"Bearer {token}"))
            if method in ADMINISTRATORS and token == CLIENT:
                assert got == "PERMISSION_DENIED"
            else:
                assert got not in ("UNAUTHENTICATED", "PERMISSION_DENIED", "UNKNOWN"), token


def test_two_tokens_are_none(guarded: GrpcPort) -> None:
    header = ("authorization", f"Bearer {CLIENT}")
    with Caller(guarded) as caller:
        assert caller.code("ServerMetadata", metadata=[header])[0] == "OK"
        assert caller.code("ServerMetadata", metadata=[header] * 2)[0] == "UNAUTHENTICATED"


def test_a_stranger_is_refused_before_the_message(guarded: GrpcPort) -> None:
    """The call ends although its message never comes."""
    with Caller(guarded) as caller:
        for kind in ("ModelInfer", "ModelStreamInfer"):
            never = queue.SimpleQueue[bytes]()
            sending = iter(partial(never.get, timeout=LIMIT_S), b"")
            call = caller.channel.stream_stream(SERVICE + kind)(sending, timeout=60)
            assert call.code() is grpc.StatusCode.UNAUTHENTICATED
            never.put(b"")


def test_reflection_names_the_methods(guarded: GrpcPort, port: GrpcPort) -> None:
    # apart: the package registers its messages in this process
    code = f"""
import grpc, sys
from grpc_reflection.v1alpha import reflection_pb2 as pb, reflection_pb2_grpc
guarded, port = {guarded.number}, {port.number}
for port, token in ((guarded, "Bearer {CLIENT}"), (guarded, ""), (port, "")):
    with grpc.insecure_channel(f"127.0.0.1:{{port}}") as channel:
        stub = reflection_pb2_grpc.ServerReflectionStub(channel)
        asked = [pb.ServerReflectionRequest(list_services=""),
                 pb.ServerReflectionRequest(file_containing_symbol="inference.ModelInferRequest")]
        try:
            given = [("authorization", token)]
            listed, file = stub.ServerReflectionInfo(iter(asked), metadata=given)
            print(*sorted(one.name for one in listed.list_services_response.service))
            print(len(file.file_descriptor_response.file_descriptor_proto))
        except grpc.RpcError as exc:
            print(exc.code().name)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    names, count, *refused = done.stdout.splitlines()
    assert names == (
        "grpc.health.v1.Health grpc.reflection.v1alpha.ServerReflection "
        "inference.GRPCInferenceService"
    )
    assert int(count) == 2  # with the file of the model configuration, which it needs
    assert refused == ["UNAUTHENTICATED", "UNIMPLEMENTED"]


# --- TLS ---


def make(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An authority (ca), a server and a client of it, and a stranger that signed itself."""
    folder = tmp_path_factory.mktemp("tls")
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2")
    for name in ("ca", "stranger"):
        make(folder, "req", "-x509", *key, "-keyout", f"{name}.key", "-out", f"{name}.pem",
             "-subj", f"/CN={name}")  # fmt: skip
    (folder / "san").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1")
    for name in ("server", "client"):
        make(folder, "req", "-new", *key[:-2], "-keyout", f"{name}.key", "-out", f"{name}.csr",
             "-subj", f"/CN={name}")  # fmt: skip
        make(folder, "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
             "-CAcreateserial", "-out", f"{name}.pem", "-days", "2", "-extfile", "san")  # fmt: skip
    return folder


def credentials(folder: Path, root: str, name: str = "") -> grpc.ChannelCredentials:
    files = [(folder / f"{name}.{kind}").read_bytes() if name else None for kind in ("key", "pem")]
    return grpc.ssl_channel_credentials((folder / f"{root}.pem").read_bytes(), *files)


def test_tls(models: Models, certificates: Path) -> None:
    files = {"tls_cert": f"{certificates}/server.pem", "tls_key": f"{certificates}/server.key"}
    with grpc_port(models, **files) as port:
        with Caller(port, credentials(certificates, "ca")) as caller:
            assert caller.infer(request()).model_name == "id_fp32"
        with Caller(port, credentials(certificates, "stranger")) as caller:
            assert caller.code("ServerLive")[0] == "UNAVAILABLE"
        with Caller(port) as caller:  # without TLS
            assert caller.code("ServerLive")[0] == "UNAVAILABLE"


def test_clients_may_need_a_certificate(models: Models, certificates: Path) -> None:
    both = certificates / "both.pem"  # certificate and key in one file
    both.write_bytes(
        (certificates / "server.pem").read_bytes() + (certificates / "server.key").read_bytes()
    )
    files = {"tls_cert": str(both), "tls_client_ca": f"{certificates}/ca.pem"}
    with grpc_port(models, **files) as port:
        with Caller(port, credentials(certificates, "ca", "client")) as caller:
            assert caller.infer(request()).model_name == "id_fp32"
        for name in ("", "stranger"):
            with Caller(port, credentials(certificates, "ca", name)) as caller:
                assert caller.code("ServerLive")[0] == "UNAVAILABLE"


def test_a_port_that_is_taken_is_an_error(models: Models, port: GrpcPort) -> None:
    with pytest.raises(EngineError, match="cannot be opened"), grpc_port(models, port=port.number):
        pass
