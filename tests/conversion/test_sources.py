"""conversion/sources.py: which framework a file is of, and what is refused before it is read."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.encryption import encrypt
from support.mindir_builder import Net, encode
from support.models import DIGITS, DYN_BATCH, dense_net
from support.running import run_graph

from mindspore_lite.conversion.sources import SUFFIXES, Origin, framework_of, load
from mindspore_lite.errors import EngineUnavailableError, ModelFileError
from mindspore_lite.mindir.decrypt import Key


@pytest.mark.parametrize(
    ("name", "framework"),
    [
        ("a.onnx", "ONNX"), ("a.mindir", "MINDIR"), ("a.pt2", "PYTORCH"), ("a.pt", "PYTORCH"),
        ("a.pth", "PYTORCH"), ("a.tflite", "TFLITE"), ("a.pb", "TF"), ("a.prototxt", "CAFFE"),
        ("A.ONNX", "ONNX"), ("folder.x/a.b.onnx", "ONNX"),
    ],
)  # fmt: skip
def test_the_suffix_tells_the_framework(name: str, framework: str) -> None:
    assert framework_of(Path(name)) == framework


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("a.ms", r"'a\.ms': an \.ms file is made for the runtime of mobile"),
        ("a.OM", "compiled for Asc"),
    ],
)
def test_a_file_that_nothing_converts_says_what_to_do_instead(name: str, words: str) -> None:
    with pytest.raises(ModelFileError, match=f"{words}.*convert the model that it was made of"):
        framework_of(Path(name))


@pytest.mark.parametrize("name", ["a", "a.h5", "a.onnx.bak", ".onnx", ""])
def test_an_unknown_suffix_is_refused_with_those_that_are_known(name: str) -> None:
    with pytest.raises(ModelFileError, match=r"wanted one of \.onnx, \.mindir, .*framework"):
        framework_of(Path(name))
    with pytest.raises(ModelFileError) as caught:
        framework_of(Path(name))
    assert not {".ms", ".om", ".prototxt"} & set(re.findall(r"\.\w+", str(caught.value)))


@pytest.mark.parametrize(
    ("name", "head", "words"),
    [
        ("w.safetensors", b'\x08\0\0\0\0\0\0\0{"w":{}}', "without a network; .*load_weights"),
        ("w.gguf", b"GGUF\3\0\0\0", "a GGUF file"),
        ("net.h5", b"\x89HDF\r\n\x1a\n", "HDF5.*tf2onnx"),
        ("net.onnx.gz", b"\x1f\x8b\x08", "compressed; unpack"),
        ("net", b"<!DOCTYPE html>", "an HTML page"),
    ],
)
def test_a_foreign_file_under_its_own_name_is_named(
    tmp_path: Path, name: str, head: bytes, words: str
) -> None:
    (tmp_path / name).write_bytes(head)
    with pytest.raises(ModelFileError, match=f"cannot be converted: it is .*{words}"):
        framework_of(tmp_path / name)


@pytest.mark.parametrize("framework", ["CAFFE", "OM", "MSLITE"])
def test_what_cannot_be_converted_says_what_to_do_instead(framework: str) -> None:
    with pytest.raises(EngineUnavailableError, match=r"'net\.x'.*[Cc]onvert the"):
        load(Origin(framework, Path("net.x")))


def test_a_framework_that_does_not_exist_is_a_wrong_argument() -> None:
    with pytest.raises(ValueError, match="framework is 'KERAS', wanted one of ONNX, MINDIR"):
        load(Origin("KERAS", Path("a.h5")))


@pytest.mark.parametrize("framework", ["ONNX", "PYTORCH", "TF"])
def test_a_wrong_suffix_is_refused(framework: str) -> None:
    with pytest.raises(ModelFileError, match=rf"suffix '\.bin', a file of {framework} has \."):
        load(Origin(framework, Path("net.bin")))


def test_a_saved_model_is_not_read(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="is a folder; a SavedModel may run code"):
        load(Origin("TF", tmp_path))


@pytest.mark.parametrize("framework", ["ONNX", "MINDIR", "PYTORCH"])
def test_a_missing_file_is_named(tmp_path: Path, framework: str) -> None:
    path = tmp_path / f"gone{SUFFIXES[framework][0]}"
    with pytest.raises(ModelFileError, match=r"cannot read .*gone\..*No such file"):
        load(Origin(framework, path))


def test_what_serves_another_framework_is_refused() -> None:
    with pytest.raises(ModelFileError, match="serves CAFFE alone; leave it out for ONNX"):
        load(Origin("ONNX", Path("a.onnx"), weights=Path("b")))
    with pytest.raises(ModelFileError, match="only MINDIR files can be encrypted, not ONNX"):
        load(Origin("ONNX", Path("a.onnx"), key=Key(b"0" * 16)))


# --- MINDIR ---------------------------------------------------------------------------------------


def test_a_mindir_file_loads_under_any_name(tmp_path: Path) -> None:
    path = tmp_path / "net.bin"
    path.write_bytes(dense_net())
    x = np.ones((2, 3), np.float32)
    (got,) = run_graph(load(Origin("MINDIR", path)), x)
    np.testing.assert_array_equal(got, np.full((2, 4), 4, np.float32))


def test_names_weights_and_information_of_a_mindir_file_are_kept(tmp_path: Path) -> None:
    net = Net()
    x = net.input("x", (-1, 3))
    y = net.call("MatMulExt", x, net.weight("w", np.ones((3, 4), np.float32)))
    path = tmp_path / "net.mindir"
    path.write_bytes(encode(replace(net.model(y), user_info={"made by": "a test"})))
    model = load(Origin("MINDIR", path))
    assert [v.name for v in model.graph.inputs] == ["x"]
    assert "w" in model.graph.initializers
    assert model.metadata_props["user_info"] == '{"made by": "a test"}'
    assert not isinstance(model.graph.inputs[0].shape[0], int)  # type: ignore[index]


def test_an_encrypted_mindir_file_loads_with_its_key(tmp_path: Path) -> None:
    path = tmp_path / "net.mindir"
    key = b"0123456789abcdef"
    path.write_bytes(encrypt(dense_net(), key))
    assert len(load(Origin("MINDIR", path, key=Key(key))).graph.outputs) == 1
    with pytest.raises(ModelFileError, match=r"net\.mindir"):
        load(Origin("MINDIR", path))


@pytest.mark.parametrize("path", [DIGITS, DYN_BATCH], ids=lambda p: p.name)
def test_files_that_mindspore_wrote_load(path: Path) -> None:
    assert load(Origin("MINDIR", path)).graph.outputs


# --- ONNX -----------------------------------------------------------------------------------------


def test_an_onnx_file_keeps_its_names_opset_and_metadata(tmp_path: Path) -> None:
    graph = helper.make_graph(
        [helper.make_node("Relu", ["in put"], ["out:put"])],
        "g",
        [helper.make_tensor_value_info("in put", TensorProto.FLOAT16, ["batch", 3])],
        [helper.make_tensor_value_info("out:put", TensorProto.FLOAT16, ["batch", 3])],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=7)
    made.metadata_props.add(key="author", value="someone")
    path = tmp_path / "net.onnx"
    onnx.save(made, path)
    model = load(Origin("ONNX", path))
    assert [v.name for v in model.graph.inputs] == ["in put"]
    assert [v.name for v in model.graph.outputs] == ["out:put"]
    assert str(model.graph.inputs[0].shape) == "[batch,3]"
    assert model.graph.opset_imports == {"": 14}
    assert model.metadata_props == {"author": "someone"}
