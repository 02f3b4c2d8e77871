"""artefact_check.py: every way in which a compiled folder can be wrong, and the right ones."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper
from support.models import DIGITS

import mindspore_lite as mslite
from mindspore_lite.core.budget import Budget
from mindspore_lite.engines.cache.artefact_check import check
from mindspore_lite.engines.cache.digest import sha256_of
from mindspore_lite.engines.sandbox import compile_task
from mindspore_lite.errors import ModelFileError

Folder = Path


def compiled(folder: Path, engine: str) -> Path:
    """What an engine writes for a real model."""
    told = {
        "engine": engine,
        "precision": "enforce_fp32",
        "folder": str(folder),
        "digests": [sha256_of(DIGITS)],
        "kind": "MINDIR",
        "path": str(DIGITS),
        "beside": None,
        "has_weights": False,
        "budget": vars(Budget()),
        "strict_bfloat16": False,
        "shapes": None,
    }
    assert compile_task(told, []) == {}
    return folder


@pytest.mark.parametrize("engine", ["onnxruntime", "openvino"])
def test_what_an_engine_writes_is_right(engine: str, tmp_path: Path) -> None:
    check(compiled(tmp_path, engine), engine)


def external(location: str, **entries: object) -> onnx.TensorProto:
    """A tensor of 64 bytes that lies elsewhere."""
    tensor = TensorProto(name="w", data_type=1, dims=[16], data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def model_with(tensor: onnx.TensorProto, where: str = "initializer") -> onnx.ModelProto:
    """A model that holds a tensor in one of all places that can hold one."""
    model = helper.make_model(helper.make_graph([], "g", [], []))
    node = model.graph.node.add(op_type="If")
    sparse = onnx.SparseTensorProto(values=tensor)
    if where == "initializer":
        model.graph.initializer.append(tensor)
    elif where == "sparse initializer":
        model.graph.sparse_initializer.append(sparse)
    elif where == "attribute":
        node.attribute.add(name="a").t.CopyFrom(tensor)
    elif where == "list of tensors":
        node.attribute.add(name="a").tensors.append(tensor)
    elif where == "sparse attribute":
        node.attribute.add(name="a").sparse_tensor.CopyFrom(sparse)
    elif where == "sub-graph":
        node.attribute.add(name="a").g.initializer.append(tensor)
    elif where == "list of sub-graphs":
        node.attribute.add(name="a").graphs.add().initializer.append(tensor)
    elif where == "function":
        inner = model.functions.add(name="f").node.add(op_type="Constant")
        inner.attribute.add(name="value").t.CopyFrom(tensor)
    elif where == "default of a function":
        model.functions.add(name="f").attribute_proto.add(name="a").t.CopyFrom(tensor)
    else:
        model.training_info.add().initialization.initializer.append(tensor)
    return model


PLACES = [
    "initializer",
    "sparse initializer",
    "attribute",
    "list of tensors",
    "sparse attribute",
    "sub-graph",
    "list of sub-graphs",
    "function",
    "default of a function",
    "training",
]
EMPTY = helper.make_model(helper.make_graph([], "g", [], [])).SerializeToString()


def folder_of(place: Path, model: onnx.ModelProto, skeleton: bytes = EMPTY) -> Path:
    """A folder of onnxruntime with a data file of 128 bytes."""
    (place / "model.onnx").write_bytes(model.SerializeToString())
    (place / "skeleton.onnx").write_bytes(skeleton)
    (place / "weights.bin").write_bytes(bytes(128))
    return place


def refused(folder: Path, engine: str, words: str) -> None:
    with pytest.raises(ModelFileError, match=f"what the sandbox compiled is refused: .*{words}"):
        check(folder, engine)


@pytest.mark.parametrize("where", PLACES)
def test_a_tensor_lies_in_the_data_file_wherever_it_stands(where: str, tmp_path: Path) -> None:
    right = external("weights.bin", offset=64, length=64)
    check(folder_of(tmp_path, model_with(right, where)), "onnxruntime")
    wrong = external("/etc/passwd", offset=0, length=64)
    refused(folder_of(tmp_path, model_with(wrong, where)), "onnxruntime", "names files other than")


@pytest.mark.parametrize(
    ("location", "entries", "words"),
    [
        ("../weights.bin", {"length": 64}, "names files other than"),
        ("./weights.bin", {"length": 64}, "names files other than"),
        ("", {"length": 64}, "names files other than"),
        ("weights.bin", {"offset": 128, "length": 64}, "beyond weights.bin"),
        ("weights.bin", {"offset": 0, "length": 129}, "beyond weights.bin"),
        ("weights.bin", {"offset": 64, "length": 2**62}, "without a place|beyond"),
        ("weights.bin", {"offset": 1, "length": 64}, "beyond weights.bin"),
        ("weights.bin", {"offset": -64, "length": 64}, "without a place"),
        ("weights.bin", {"offset": "\u0661", "length": 64}, "without a place"),
        ("weights.bin", {"offset": "9" * 30, "length": 64}, "without a place"),
        ("weights.bin", {"offset": 0}, "without a place"),
        ("weights.bin", {"length": 64, "basepath": "/"}, "what it cannot know"),
        ("weights.bin", {"length": 64, "prepacked_0": "key|64;65;0"}, "beyond weights.bin"),
        ("weights.bin", {"length": 64, "prepacked_0": "key|1;64;0"}, "beyond weights.bin"),
        ("weights.bin", {"length": 64, "prepacked_0": "key"}, "what it cannot know"),
        ("weights.bin", {"length": 64, "prepacked_0": "key|-64;64;0"}, "what it cannot know"),
    ],
)
def test_a_place_outside_of_the_data_file_is_refused(
    location: str, entries: dict[str, object], words: str, tmp_path: Path
) -> None:
    folder = folder_of(tmp_path, model_with(external(location, **entries)))
    refused(folder, "onnxruntime", words)


def test_a_place_that_is_told_twice_is_refused(tmp_path: Path) -> None:
    tensor = external("weights.bin", offset=0, length=64)
    tensor.external_data.add(key="location", value="/etc/passwd")
    refused(folder_of(tmp_path, model_with(tensor)), "onnxruntime", "names files other than")


@pytest.mark.parametrize("where", PLACES)
def test_a_skeleton_names_no_file(where: str, tmp_path: Path) -> None:
    named = model_with(external("weights.bin", length=64), where).SerializeToString()
    folder = folder_of(tmp_path, onnx.ModelProto(), named)
    refused(folder, "onnxruntime", "skeleton.onnx names files")
    left_out = model_with(external("not-stored", length=64), where).SerializeToString()
    check(folder_of(tmp_path, onnx.ModelProto(), left_out), "onnxruntime")


@pytest.mark.parametrize("name", ["model.onnx", "skeleton.onnx"])
def test_a_graph_that_cannot_be_read_is_refused(name: str, tmp_path: Path) -> None:
    folder = folder_of(tmp_path, onnx.ModelProto())
    (folder / name).write_bytes(b"\xff" * 9)
    refused(folder, "onnxruntime", f"{name} cannot be read")


def test_a_graph_beyond_protobuf_is_not_read(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, onnx.ModelProto())
    os.truncate(folder / "model.onnx", 1 << 40)
    refused(folder, "onnxruntime", "model.onnx takes 1099511627776 bytes")


def test_weights_that_may_change_are_refused(tmp_path: Path) -> None:
    model = onnx.ModelProto()
    model.metadata_props.add(key="variable_weights", value="[[]]")
    refused(folder_of(tmp_path, model), "onnxruntime", "claims weights that may change")


def _missing(folder: Folder) -> None:
    (folder / "skeleton.onnx").unlink()


def _more(folder: Folder) -> None:
    (folder / "meta.json").write_text("{}")


def _link(folder: Folder) -> None:
    (folder / "weights.bin").unlink()
    (folder / "weights.bin").symlink_to(folder / "model.onnx")


def _pipe(folder: Folder) -> None:
    (folder / "weights.bin").unlink()
    os.mkfifo(folder / "weights.bin")


def _second_name(folder: Folder) -> None:
    os.link(folder / "weights.bin", folder.parent / "second")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_missing, "it holds"),
        (_more, "it holds .*meta.json"),
        (_link, "weights.bin is no plain file"),
        (_pipe, "weights.bin is no plain file"),
        (_second_name, "weights.bin is no plain file"),
    ],
)
def test_other_files_are_refused(
    change: Callable[[Folder], None], words: str, tmp_path: Path
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    change(folder_of(folder, onnx.ModelProto()))
    refused(folder, "onnxruntime", words)


RIGHT: dict[str, Any] = {
    "inputs": [["x", "float32", [-1, 3]]],
    "outputs": [["y", "bool", [-2]]],
    "metadata": {"a": "b"},
    "places": [0],
    "weights": [],
}


def ports(place: Path, text: str) -> Path:
    (place / "skeleton.onnx").write_bytes(EMPTY)
    (place / "model.blob").write_bytes(b"blob")
    (place / "ports.json").write_text(text)
    return place


def test_right_ports_are_right(tmp_path: Path) -> None:
    check(ports(tmp_path, json.dumps(RIGHT)), "openvino")


@pytest.mark.parametrize(
    "wrong",
    [
        {"inputs": 7},
        {"inputs": [["x", "float32"]]},
        {"inputs": [["x", "object", [1]]]},
        {"inputs": [["x", ["float32"], [1]]]},
        {"inputs": [[7, "float32", [1]]]},
        {"outputs": [["y", "float32", [1.5]]]},
        {"outputs": [["y", "float32", [-3]]]},
        {"outputs": [["y", "float32", [1] * 101]]},
        {"places": []},
        {"places": [1]},
        {"places": ["0"]},
        {"metadata": {"a": 7}},
        {"metadata": {"variable_weights": "[]"}},
        {"weights": [["w", "float32", [1], 0]]},
    ],
)
def test_wrong_ports_are_refused(wrong: dict[str, Any], tmp_path: Path) -> None:
    refused(ports(tmp_path, json.dumps({**RIGHT, **wrong})), "openvino", "makes no sense")


@pytest.mark.parametrize("text", ["", "[]", "[" * 100_000, "7", '{"inputs": []}'])
def test_what_is_no_record_of_ports_is_refused(text: str, tmp_path: Path) -> None:
    refused(ports(tmp_path, text), "openvino", "ports.json makes no sense")


def test_endless_ports_are_not_read(tmp_path: Path) -> None:
    folder = ports(tmp_path, "")
    os.truncate(folder / "ports.json", 1 << 40)
    refused(folder, "openvino", "ports.json takes 1099511627776 bytes")


def test_a_checked_folder_of_a_model_is_what_a_build_keeps(
    tmp_path: Path, cache_place: Path
) -> None:
    model = mslite.Model()
    model.build_from_file(str(DIGITS), mslite.ModelType.MINDIR)
    model.close()
    compiled(tmp_path, "onnxruntime")
    (kept,) = cache_place.glob("*/model.onnx")
    assert kept.read_bytes() == (tmp_path / "model.onnx").read_bytes()
    assert (kept.parent / "weights.bin").read_bytes() == (tmp_path / "weights.bin").read_bytes()
