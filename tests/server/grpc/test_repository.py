"""grpc/repository.py: index, load and unload over gRPC."""

from __future__ import annotations

from pathlib import Path

import pytest
import tritonclient.grpc as triton
from support.fake_engine import wait_for
from support.grpc_served import Caller, request
from support.repositories import ADMIN, serving, version
from support.served import floats

from mindspore_lite.server.grpc import inference_pb2 as pb

META = {"metadata": [("authorization", f"Bearer {ADMIN}")]}


def rows(caller: Caller, **asked: object) -> list[tuple[str, str, str, str]]:
    answer = caller.call("RepositoryIndex", pb.RepositoryIndexRequest(**asked))  # type: ignore[arg-type]
    found = pb.RepositoryIndexResponse.FromString(answer).models
    return [(one.name, one.version, one.state, one.reason) for one in found]


def test_a_model_is_loaded_and_unloaded(tmp_path: Path) -> None:
    version(tmp_path, "m", 1, 10)
    with serving(tmp_path, load_models=[]) as server, Caller(server.grpc_port) as caller:
        assert rows(caller) == [("m", "", "", "")] and rows(caller, ready=True) == []
        asked = pb.RepositoryModelLoadRequest(model_name="m")
        assert caller.code("RepositoryModelLoad", asked)[0] == "UNAUTHENTICATED"
        assert caller.code("RepositoryModelLoad", asked, **META) == ("OK", "")
        assert rows(caller, ready=True) == [("m", "1", "READY", "")]
        found = caller.infer(request("m", floats(1), (1,)))
        assert found.raw_output_contents[0] == floats(10)
        gone = pb.RepositoryModelUnloadRequest(model_name="m")
        assert caller.code("RepositoryModelUnload", gone, **META) == ("OK", "")
        wait_for(lambda: rows(caller) == [("m", "1", "UNAVAILABLE", "unloaded")])
        assert caller.code("ModelInfer", request("m", floats(1), (1,)))[0] == "NOT_FOUND"


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"model_name": "x"}, "NOT_FOUND"),
        ({"model_name": "m", "repository_name": "r"}, "UNIMPLEMENTED"),
        ({"model_name": "m", "parameters": {"x": "y"}}, "INVALID_ARGUMENT"),
        ({"model_name": "m", "parameters": {"config": 7}}, "INVALID_ARGUMENT"),
        ({"model_name": "m", "parameters": {"config": "{"}}, "INVALID_ARGUMENT"),
        ({"model_name": "m", "parameters": {"file:1/model.onnx": b"x"}}, "INVALID_ARGUMENT"),
        ({"model_name": "broken"}, "INTERNAL"),
    ],
)
def test_what_cannot_be_loaded(tmp_path: Path, asked: dict[str, object], code: str) -> None:
    version(tmp_path, "m", 1, 10)
    (tmp_path / "broken" / "1").mkdir(parents=True)
    (tmp_path / "broken" / "1" / "model.onnx").write_bytes(b"\x08\x07broken")
    message = pb.RepositoryModelLoadRequest()
    given = asked.pop("parameters", {})
    assert isinstance(given, dict)
    for key, value in given.items():
        kind = {str: "string_param", int: "int64_param", bytes: "bytes_param"}[type(value)]
        setattr(message.parameters[key], kind, value)
    for key, value in asked.items():
        setattr(message, key, value)
    with (
        serving(tmp_path, load_models=["m"]) as server,
        Caller(server.grpc_port) as caller,
    ):
        found, text = caller.code("RepositoryModelLoad", message, **META)
        assert found == code and str(tmp_path) not in text
        assert caller.infer(request("m", floats(1), (1,))).raw_output_contents[0] == floats(10)


def test_the_client_of_triton(tmp_path: Path) -> None:
    version(tmp_path, "m", 1, 10)
    headers = {"authorization": f"Bearer {ADMIN}"}
    with (
        serving(tmp_path, load_models=[]) as server,
        triton.InferenceServerClient(f"127.0.0.1:{server.grpc_port}") as client,
    ):
        client.load_model("m", headers=headers)
        assert client.is_model_ready("m")
        assert client.get_model_repository_index(as_json=True)["models"][0]["state"] == "READY"
        client.unload_model("m", headers=headers)
        wait_for(lambda: not client.is_model_ready("m"))
