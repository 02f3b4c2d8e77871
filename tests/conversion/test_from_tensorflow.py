"""conversion/from_tensorflow.py: what is refused before tf2onnx runs, and what it makes of files.

`data/tensorflow` holds one small network as a frozen graph and as a TFLite file, with an input and
its result, made by scripts/fixtures/tensorflow_files.py. It is converted only where the extra `tf`
is installed, which is too large for the test set-up.
"""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path

import numpy as np
import pytest
from support.running import DATA, assert_close, run_graph

from mindspore_lite.conversion import from_tensorflow
from mindspore_lite.conversion.sources import Origin, load
from mindspore_lite.errors import EngineUnavailableError, ModelFileError

FOLDER = DATA / "tensorflow"
HERE = all(importlib.util.find_spec(name) for name in ("tensorflow", "tf2onnx"))
needs_tf = pytest.mark.skipif(not HERE, reason="needs the extra tf")


@needs_tf
@pytest.mark.parametrize(
    ("file", "framework", "names"),
    [
        ("net.pb", "TF", ("image", "Identity")),
        ("net.tflite", "TFLITE", ("serving_default_image:0", "StatefulPartitionedCall:0")),
    ],
)
def test_a_network_computes_what_tensorflow_computed(
    file: str, framework: str, names: tuple[str, str]
) -> None:
    model = load(Origin(framework, FOLDER / file))
    assert (model.graph.inputs[0].name, model.graph.outputs[0].name) == names
    assert not isinstance(model.graph.inputs[0].shape[0], int)  # type: ignore[index]
    with np.load(FOLDER / "net.npz") as known:
        assert_close(run_graph(model, known["x"])[0], known["y"])


@needs_tf
def test_a_damaged_file_is_refused_by_tf2onnx(tmp_path: Path) -> None:
    path = tmp_path / "net.tflite"
    path.write_bytes((FOLDER / "net.tflite").read_bytes()[:1000])
    with pytest.raises(ModelFileError, match=r"net\.tflite.* as TFLITE: tf2onnx failed"):
        load(Origin("TFLITE", path))


@pytest.mark.parametrize("missing", ["tensorflow", "tf2onnx"])
@pytest.mark.parametrize(("framework", "flag"), [("TF", "--graphdef"), ("TFLITE", "--tflite")])
def test_a_missing_package_is_named_with_the_way_around(
    monkeypatch: pytest.MonkeyPatch, missing: str, framework: str, flag: str
) -> None:
    def find_spec(name: str) -> object:
        return None if name == missing else object()

    monkeypatch.setattr(from_tensorflow.importlib.util, "find_spec", find_spec)
    with pytest.raises(EngineUnavailableError) as caught:
        load(Origin(framework, FOLDER / ("net.pb" if framework == "TF" else "net.tflite")))
    for part in (missing, "pip install 'mslite[tf]'", f"tf2onnx.convert {flag} MODEL"):
        assert part in str(caught.value)


# --- what happens before tf2onnx ------------------------------------------------------------------


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What would be run; nothing is, and it fails."""
    seen: list[list[str]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        seen.append(command)
        return subprocess.CompletedProcess(command, 1, "", "one\nValueError: the last line\n\n")

    monkeypatch.setattr(from_tensorflow.subprocess, "run", run)
    monkeypatch.setattr(from_tensorflow.importlib.util, "find_spec", lambda _: object())
    return seen


def message(number: int, payload: bytes) -> bytes:
    assert len(payload) < 128
    return bytes([number << 3 | 2, len(payload)]) + payload


def node(name: str, op: str, *inputs: str) -> bytes:
    parts = message(1, name.encode()) + message(2, op.encode())
    return parts + b"".join(message(3, i.encode()) for i in inputs)


def graph(*nodes: bytes) -> bytes:
    return b"".join(message(1, n) for n in nodes)


def written(folder: Path, data: bytes) -> Path:
    path = folder / "net.pb"
    path.write_bytes(data)
    return path


def test_inputs_and_outputs_of_a_frozen_graph_are_found(
    tmp_path: Path, commands: list[list[str]]
) -> None:
    data = graph(
        node("x", "Placeholder"),
        node("mask", "Placeholder"),
        node("w", "Const"),
        node("both", "Split", "w", "x"),
        node("first", "Relu", "both:0"),
        node("second", "Mul", "both:1", "mask", "^first"),
        node("last", "Identity", "second"),
        node("done", "NoOp", "^second"),
    )
    with pytest.raises(ModelFileError, match=r"net\.pb.*ValueError: the last line \(exit status 1"):
        load(Origin("TF", written(tmp_path, data)))
    (command,) = commands
    assert command[command.index("--inputs") + 1] == "x:0,mask:0"
    assert command[command.index("--outputs") + 1] == "last:0"
    assert command[command.index("--graphdef") + 1].startswith("/proc/self/fd/")


@pytest.mark.parametrize("op", ["ReadFile", "WriteFile", "PyFunc", "EagerPyFunc", "SaveV2",
                                "RestoreV2", "TFRecordDataset", "PrintV2"])  # fmt: skip
def test_operators_that_reach_outside_are_refused(
    tmp_path: Path, commands: list[list[str]], op: str
) -> None:
    data = graph(node("x", "Placeholder"), node("evil", op, "x"))
    with pytest.raises(ModelFileError, match=rf"reach outside.*'evil' \({op}\)"):
        load(Origin("TF", written(tmp_path, data)))
    inside = message(2, message(1, message(3, node("hidden", op))))  # in a function
    data = graph(node("x", "Placeholder"), node("y", "Relu", "x")) + inside
    with pytest.raises(ModelFileError, match=rf"reach outside.*'hidden' \({op}\)"):
        load(Origin("TF", written(tmp_path, data)))
    assert commands == []


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "it is an empty file"),
        (b"\xff\xff", "truncated or damaged"),
        (b"no model, but text", "reading|protobuf|truncated|graph inside"),
        (graph(node("x", "Placeholder")), "or one without a result"),
        (graph(node("v", "VarHandleOp"), node("y", "Relu", "v")), "variables are not frozen: v"),
    ],
)
def test_a_file_that_is_no_frozen_graph_is_refused(
    tmp_path: Path, commands: list[list[str]], data: bytes, words: str
) -> None:
    with pytest.raises(ModelFileError, match=rf"net\.pb' cannot be loaded as TF: .*({words})"):
        load(Origin("TF", written(tmp_path, data)))
    assert commands == []


def test_a_file_that_is_no_tflite_is_refused(tmp_path: Path, commands: list[list[str]]) -> None:
    path = tmp_path / "net.tflite"
    path.write_bytes(b"something else")
    with pytest.raises(ModelFileError, match="does not begin as TFLite files do"):
        load(Origin("TFLITE", path))
    assert commands == []
