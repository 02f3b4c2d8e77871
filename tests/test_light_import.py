"""`import mindspore_lite` stays light: runtimes and readers are loaded when a model is built."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
HEAVY = {
    "onnxruntime", "openvino", "torch", "onnx", "onnx_ir", "matplotlib", "google.protobuf", "rich",
    "cyclopts", "safetensors", "mindspore_lite.mindir.mindir_pb2",
}  # fmt: skip


def loaded_by(statement: str) -> set[str]:
    code = f"{statement}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    command = [sys.executable, "-c", code]  # which looks for modules where it is started
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


def test_importing_the_package_loads_no_runtime() -> None:
    found = loaded_by("import mindspore_lite")
    assert "mindspore_lite.model" in found
    assert found & HEAVY == set()


def test_the_test_would_see_a_runtime() -> None:
    assert "onnx_ir" in loaded_by("import mindspore_lite.graph.from_mindir")
