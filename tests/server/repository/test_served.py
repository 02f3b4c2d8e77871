"""A repository behind a server: versions by policy, labels, batching, faults, names."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from support.models import dense_net
from support.onnx_graphs import model, node
from support.served import F32, Wire, get, identity, post
from support.split_builder import split

import mindspore_lite as mslite
from mindspore_lite.errors import LiteError


def repository(root: Path, **configs: str) -> Path:
    """Two versions of each model, and what config.pbtxt says of it."""
    for name, text in configs.items():
        for version in ("1", "2"):
            (root / name / version).mkdir(parents=True)
            identity(root / name / version / "model.onnx", shape=("n", 3))
        (root / name / "config.pbtxt").write_text(text)
    return root


def body(rows: int = 1, **more: Any) -> dict[str, Any]:
    data = [0.0, 1.0, 0.5] * rows
    given = {"name": "IN", "datatype": "FP32", "shape": [rows, 3], "data": data}
    return {"inputs": [given], **more}


def test_versions_by_policy_and_files_next_to_them(tmp_path: Path) -> None:
    root = repository(tmp_path, new="", every="version_policy { all { } }")
    identity(root / "plain.onnx", shape=("n", 3))
    with mslite.Server(root, http_port=0) as server, Wire(server.http_port) as wire:  # type: ignore[arg-type]
        assert wire.ask(get("/v2/models")).json == {"models": ["every", "new", "plain"]}
        versions = {
            name: wire.ask(get(f"/v2/models/{name}")).json["versions"]
            for name in ("every", "new", "plain")
        }
        assert versions == {"every": ["1", "2"], "new": ["2"], "plain": ["1"]}
        for version in ("1", "2"):
            reply = wire.ask(post(f"/v2/models/every/versions/{version}/infer", body())).json
            assert reply["model_version"] == version


def external(path: Path) -> None:
    """A model whose weight lies in a file next to it: three ones are added."""
    weight = numpy_helper.from_array(np.ones(3, np.float32), "w")
    made = model(
        [node("Add", ["IN", "w"], ["OUT"])], [("IN", F32, ["n", 3])], [("OUT", F32, ["n", 3])]
    )
    made.graph.initializer.append(weight)
    data = f"{path.name}.data"
    onnx.save(made, path, save_as_external_data=True, location=data, size_threshold=0)


@pytest.mark.parametrize("layout", ["folders", "files"])
def test_weights_next_to_models_in_volumes_of_kubernetes(tmp_path: Path, layout: str) -> None:
    real = tmp_path / "..2026_01"
    split_folder, external_folder = real, real
    if layout == "folders":
        split_folder, external_folder = real / "split/1", real / "external/1"
    for folder in (split_folder, external_folder):
        folder.mkdir(parents=True, exist_ok=True)
    name = "model" if layout == "folders" else "split"
    split(dense_net(), split_folder, name)
    external(external_folder / ("model.onnx" if layout == "folders" else "external.onnx"))
    (tmp_path / "..data").symlink_to(real.name)
    for entry in real.iterdir():
        (tmp_path / entry.name).symlink_to(f"..data/{entry.name}")
    with mslite.Server([tmp_path], http_port=0) as server, Wire(server.http_port) as wire:
        assert wire.ask(get("/v2/models")).json == {"models": ["external", "split"]}
        reply = wire.ask(post("/v2/models/external/infer", body())).json
        assert reply["outputs"][0]["data"] == [1.0, 2.0, 1.5]
        config = wire.ask(get("/v2/models/split/config")).json
        assert config["default_model_filename"] == f"{name}_graph.mindir"


def test_labels_and_rows(tmp_path: Path) -> None:
    text = 'max_batch_size: 2 output { name: "OUT" label_filename: "labels.txt" }'
    root = repository(tmp_path, m=text)
    (root / "m/labels.txt").write_text("cat\ndog\nbird\n")
    wanted = [{"name": "OUT", "parameters": {"classification": 2}}]
    with mslite.Server([root], http_port=0) as server, Wire(server.http_port) as wire:
        reply = wire.ask(post("/v2/models/m/infer", body(outputs=wanted))).json
        assert reply["outputs"][0]["data"] == ["1.000000:1:dog", "0.500000:2:bird"]
        assert wire.ask(post("/v2/models/m/infer", body(2))).status == 200
        assert "batch-size must be <= 2" in wire.ask(post("/v2/models/m/infer", body(3))).error


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ('input { name: "IN" dims: [ 2, 3 ] }', [2, 3]),
        ('max_batch_size: 8 input { name: "IN" dims: 3 }', [-1, 3]),
        ("", [-1, 3]),
    ],
)
def test_dims_that_a_configuration_declares_are_those_of_requests(
    tmp_path: Path, text: str, shape: list[int]
) -> None:
    root = repository(tmp_path, m=text)
    with mslite.Server([root], http_port=0) as server, Wire(server.http_port) as wire:
        assert wire.ask(get("/v2/models/m")).json["inputs"][0]["shape"] == shape
        assert wire.ask(post("/v2/models/m/infer", body(2))).status == 200
        other = wire.ask(post("/v2/models/m/infer", body(1))).status
        assert other == (400 if shape[0] == 2 else 200)


def test_a_fault_of_one_model_leaves_the_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    root = repository(tmp_path, good="optimization { eager_batching: true }", bad="x: 1")
    caplog.set_level(logging.WARNING)
    with mslite.Server([root], http_port=0) as server, Wire(server.http_port) as wire:
        assert wire.ask(get("/v2/models/good/ready")).status == 200
        assert wire.ask(get("/v2/models/bad/ready")).status != 200
    assert 'no field named "x"' in caplog.text and "optimization.eager_batching" in caplog.text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('input { name: "x" }', "declares the input 'x', and the model has IN"),
        ('input { name: "IN" data_type: TYPE_INT8 }', "as INT8, and the model has FP32"),
        ("model_warmup { name: 'w' }", "has inputs , and the model IN"),
    ],
)
def test_a_model_that_is_not_what_its_configuration_declares(
    tmp_path: Path, text: str, words: str
) -> None:
    server = mslite.Server([repository(tmp_path, m=text)], http_port=0)
    try:
        server.start()
        model = server.core.models.find("m")  # or it serves the others and says so
        assert words in model.reason
    except LiteError as exc:
        assert words in str(exc)
    finally:
        server.close()


def test_a_folder_with_one_model_can_be_named(tmp_path: Path) -> None:
    identity(tmp_path / "model.onnx", shape=("n", 3))
    given = {"resnet": tmp_path}
    with mslite.Server(given, http_port=0) as server, Wire(server.http_port) as wire:
        assert wire.ask(get("/v2/models")).json == {"models": ["resnet"]}


def test_folders_that_cannot_be_served(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no models"):
        mslite.Server([tmp_path])
    repository(tmp_path, a="", b="")
    with pytest.raises(ValueError, match="is for one model"):
        mslite.Server({"x": tmp_path})


def test_the_model_may_ask_for_a_process_of_its_own(tmp_path: Path) -> None:
    text = 'parameters { key: "isolation" value { string_value: "process" } }'
    root = repository(tmp_path, m=text)
    with mslite.Server([root], http_port=0) as server:
        assert type(server.core.models.find("m").service).__name__ == "IsolatedService"
        with Wire(server.http_port) as wire:
            assert wire.ask(post("/v2/models/m/infer", body())).status == 200
