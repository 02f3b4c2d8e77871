"""The model configuration over HTTP and gRPC, in Triton's form and for its clients."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tritonclient.grpc
import tritonclient.http
from support.grpc_served import grpc_port
from support.served import Wire, get, identity, port_of

from mindspore_lite.context import Context
from mindspore_lite.server.isolation import Isolation, started
from mindspore_lite.server.models import Models
from mindspore_lite.server.repository.apply import check_declared, options_of, spec_of, warm_up
from mindspore_lite.server.repository.read import read_repository
from mindspore_lite.server.repository.records import chosen

CONFIG = """
max_batch_size: 4
input { name: "IN" data_type: TYPE_FP32 dims: 3 format: FORMAT_NCHW }
output { name: "OUT" data_type: TYPE_FP32 dims: 3 label_filename: "labels.txt" }
instance_group { count: 1 kind: KIND_CPU }
dynamic_batching {
  max_queue_delay_microseconds: 1000
  default_queue_policy { max_queue_size: 2 }
}
"""


def load(root: Path, models: Models) -> Models:
    """All models of a repository, as a server loads them."""
    for entry in read_repository(root).values():
        assert not entry.fault, entry.fault
        for version in chosen(entry):
            path = entry.versions[version]
            context = Context()
            context.parallel.workers_num = 2
            spec = spec_of(entry.config, context)

            def start(path: Path = path, spec: Any = spec, entry: Any = entry) -> Any:
                service = started(path, spec, Isolation.THREAD)
                check_declared(entry.config, service)
                warm_up(entry.config, service)
                return service

            models.load(entry.name, version, start, options_of(entry.config, path))
    return models


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Models]:
    root = tmp_path_factory.mktemp("repository")
    for name in ("m/1", "plain/1", "plain/2", "all/1", "queue/1"):
        (root / name).mkdir(parents=True)
        identity(root / name / "model.onnx", shape=("n", 3))
    (root / "m/config.pbtxt").write_text(CONFIG)
    (root / "m/labels.txt").write_text("cat\ndog\nbird\n")
    (root / "all/config.pbtxt").write_text("""
        version_policy { all { } }
        parameters { key: "k" value { string_value: "v" } }
        response_cache { enable: true }
        optimization { graph { level: 1 } }
        model_warmup { name: "w" inputs { key: "IN" value {
          data_type: TYPE_FP32 dims: [ 2, 3 ] random_data: true } } }
    """)
    (root / "queue/model.ini").write_text("[parallel]\nqueue_size=7\ntimeout_s=2.5\n")
    found = load(root, Models())
    yield found
    found.close(None)


@pytest.fixture(scope="module")
def http(models: Models) -> Iterator[int]:
    with port_of(models) as port:
        yield port.number


@pytest.fixture(scope="module")
def grpc(models: Models) -> Iterator[int]:
    with grpc_port(models) as port:
        yield port.number


def config(port: int, path: str) -> Any:
    with Wire(port) as wire:
        reply = wire.ask(get(f"/v2/models/{path}/config"))
    assert reply.status == 200, reply.body
    return reply.json


def test_the_bytes_of_a_batching_model(http: int) -> None:
    with Wire(http) as wire:
        body = wire.ask(get("/v2/models/m/config")).body
    assert body == (
        b'{"name":"m","platform":"onnx_onnxv1","backend":"mslite","runtime":"",'
        b'"version_policy":{"latest":{"num_versions":1}},"max_batch_size":4,'
        b'"input":[{"name":"IN","data_type":"TYPE_FP32","format":"FORMAT_NCHW","dims":[3],'
        b'"is_shape_tensor":false,"allow_ragged_batch":false,"optional":false,'
        b'"is_non_linear_format_io":false}],'
        b'"output":[{"name":"OUT","data_type":"TYPE_FP32","dims":[3],'
        b'"label_filename":"labels.txt","is_shape_tensor":false,"is_non_linear_format_io":false}],'
        b'"batch_input":[],"batch_output":[],'
        b'"optimization":{"priority":"PRIORITY_DEFAULT","input_pinned_memory":{"enable":false},'
        b'"output_pinned_memory":{"enable":false},"gather_kernel_buffer_threshold":0,'
        b'"eager_batching":false},'
        b'"dynamic_batching":{"preferred_batch_size":[4],"max_queue_delay_microseconds":1000,'
        b'"preserve_ordering":false,"priority_levels":0,"default_priority_level":0,'
        b'"default_queue_policy":{"timeout_action":"REJECT","default_timeout_microseconds":0,'
        b'"allow_timeout_override":true,"max_queue_size":2},"priority_queue_policy":{}},'
        b'"instance_group":[{"name":"m_0","kind":"KIND_CPU","count":1,"gpus":[],'
        b'"secondary_devices":[],"profile":[],"passive":false,"host_policy":""}],'
        b'"default_model_filename":"model.onnx","cc_model_filenames":{},"metric_tags":{},'
        b'"parameters":{},"model_warmup":[]}'
    )


def test_a_model_without_a_configuration(http: int) -> None:
    found = config(http, "plain")
    assert found["input"][0]["dims"] == [-1, 3] and found["max_batch_size"] == 0
    assert "dynamic_batching" not in found and "response_cache" not in found
    (group,) = found["instance_group"]
    assert (group["name"], group["kind"], group["count"]) == ("plain", "KIND_CPU", 2)
    assert config(http, "plain/versions/2") == found


def test_all_versions_a_cache_and_a_warm_up(http: int) -> None:
    found = config(http, "all")
    assert found["version_policy"] == {"all": {}} and found["response_cache"] == {"enable": True}
    assert found["parameters"] == {
        "ignored": {"string_value": "optimization.graph, parameters 'k'"},
        "k": {"string_value": "v"},
    }
    assert found["model_warmup"] == [
        {
            "name": "w",
            "batch_size": 0,
            "inputs": {"IN": {"data_type": "TYPE_FP32", "dims": [2, 3], "random_data": True}},
            "count": 1,
        }
    ]


def test_a_queue_without_a_batcher_is_told_by_parameters(http: int) -> None:
    found = config(http, "queue")["parameters"]
    assert found == {
        "parallel.queue_size": {"string_value": "7"},
        "parallel.timeout_s": {"string_value": "2.5"},
    }


@pytest.mark.parametrize("path", ["x", "plain/versions/1", "plain/versions/7"])
def test_models_that_there_are_not(http: int, path: str) -> None:
    with Wire(http) as wire:
        assert wire.ask(get(f"/v2/models/{path}/config")).status == 404


def test_the_extension_is_listed(http: int) -> None:
    with Wire(http) as wire:
        assert "model_configuration" in wire.ask(get("/v2")).json["extensions"]


def test_the_clients_of_triton_read_the_same(http: int, grpc: int) -> None:
    with tritonclient.http.InferenceServerClient(f"127.0.0.1:{http}") as client:
        over_http = client.get_model_config("m")
        assert client.get_model_config("plain", "2")["name"] == "plain"
    with tritonclient.grpc.InferenceServerClient(f"127.0.0.1:{grpc}") as client:
        over_grpc = client.get_model_config("m", as_json=True)["config"]
        message = client.get_model_config("m").config
    assert message.dynamic_batching.default_queue_policy.max_queue_size == 2
    assert message.instance_group[0].count == 1
    for key in ("name", "platform", "backend", "max_batch_size", "default_model_filename"):
        assert over_grpc[key] == over_http[key]
    assert over_grpc["input"][0]["dims"] == ["3"] and over_http["input"][0]["dims"] == [3]
    assert json.dumps(over_grpc["version_policy"]) == '{"latest": {"num_versions": 1}}'
