"""Loads TensorFlow and TFLite models through tf2onnx.

tf2onnx runs in a process of its own: TensorFlow's native readers may end theirs over a damaged
file, and keep several GB of memory and many words to themselves.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mindspore_lite.conversion.from_onnx import load_onnx
from mindspore_lite.core.environment import for_child
from mindspore_lite.core.extras import pip_install
from mindspore_lite.core.files import open_file
from mindspore_lite.core.snapshot import sealed_copy
from mindspore_lite.errors import EngineUnavailableError, ModelFileError
from mindspore_lite.mindir.scan import fields, payloads
from mindspore_lite.settings.formats import looks_like

if TYPE_CHECKING:
    import onnx_ir as ir

OPSET = 18  # the newest that tf2onnx 1.17 writes
# GraphDef.{node,library}, FunctionDefLibrary.function, FunctionDef.node_def,
# NodeDef.{name,op,input}
_NODE, _LIBRARY, _FUNCTION, _NODE_DEF, _NAME, _OP, _INPUT = 1, 2, 1, 3, 1, 2, 3
# TensorFlow computes what depends on constants alone while tf2onnx simplifies the graph: operators
# that read and write files, or call Python, have no business in a network
_OUTWARD = re.compile(r"File|PyFunc|Save|Restore|Reader|Dataset|Iterator|Summary|Print|Debug|Load")
_NO_RESULT = ("NoOp", "Const", "Assert", "Placeholder")


@dataclass(frozen=True)
class _Node:
    name: str
    op: str
    inputs: tuple[str, ...]


def load_tensorflow(path: Path, framework: str) -> ir.Model:
    """The network of a `.tflite` file (TFLITE) or a frozen `.pb` file (TF)."""
    open_file(path).close()  # says first why it cannot be read
    for package in ("tensorflow", "tf2onnx"):
        if importlib.util.find_spec(package) is None:
            raise EngineUnavailableError(
                f"{framework} models need {package}: {pip_install('tf')}, or in another "
                f"environment: pip install tf2onnx tensorflow; python -m tf2onnx.convert "
                f"--{'tflite' if framework == 'TFLITE' else 'graphdef'} MODEL --output MODEL.onnx"
            )
    with _naming(path, framework), sealed_copy(path) as copy:
        name = f"/proc/self/fd/{copy}"  # of the process that converts it, too
        with open_file(Path(name)) as file:
            if framework == "TFLITE":
                if not looks_like("TFLITE", file[:8]):
                    raise ModelFileError("it does not begin as TFLite files do")
                return _converted(["--tflite", name], copy)
            inputs, outputs = _ends(file.load())
        ends = ["--inputs", ",".join(inputs), "--outputs", ",".join(outputs)]
        model = _converted(["--graphdef", name, *ends], copy)
        for value in (*model.graph.inputs, *model.graph.outputs):
            value.name = str(value.name).removesuffix(":0")
        return model


def _ends(data: memoryview) -> tuple[list[str], list[str]]:
    """The inputs and outputs of a frozen graph: placeholders, and nodes whose result is unused."""
    nodes = [_node(data, *span) for span in payloads(data, 0, len(data), _NODE)]
    inside = [
        _node(data, *node)
        for library in payloads(data, 0, len(data), _LIBRARY)
        for function in payloads(data, *library, _FUNCTION)
        for node in payloads(data, *function, _NODE_DEF)
    ]
    outward = sorted({f"{n.name!r} ({n.op})" for n in nodes + inside if _OUTWARD.search(n.op)})
    if outward:
        raise ModelFileError(
            f"operators that reach outside of the network are refused: {', '.join(outward[:20])}"
        )
    if variables := [n.name for n in nodes if n.op.startswith(("Variable", "VarHandleOp"))]:
        raise ModelFileError(f"its variables are not frozen: {', '.join(variables[:10])}")
    used = {name.removeprefix("^").partition(":")[0] for n in nodes for name in n.inputs}
    inputs = [f"{n.name}:0" for n in nodes if n.op == "Placeholder"]
    outputs = [f"{n.name}:0" for n in nodes if n.name not in used and n.op not in _NO_RESULT]
    if not outputs:
        raise ModelFileError("there is no TensorFlow graph inside, or one without a result")
    return inputs, outputs


def _node(data: memoryview, start: int, end: int) -> _Node:
    texts: dict[int, list[str]] = {_NAME: [""], _OP: [""], _INPUT: []}
    for found in fields(data, start, end):
        if found.is_bytes and found.number in texts:
            text = str(data[found.start : found.end], "utf-8", "replace")
            texts[found.number].append(text)
    return _Node(texts[_NAME][-1], texts[_OP][-1], tuple(texts[_INPUT]))


def _converted(options: list[str], copy: int) -> ir.Model:
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "model.onnx"
        command = [sys.executable, "-m", "tf2onnx.convert", *options]
        command += ["--output", str(made), "--opset", str(OPSET)]
        quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
        done = subprocess.run(
            command,
            pass_fds=[copy],
            cwd=folder,  # Python looks for modules there first
            env=for_child(**quiet),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode != 0 or not made.exists():
            raise ModelFileError(
                "tf2onnx failed, because the file is damaged or for operators that it does not "
                f"know: {_reason(done)}"
            )
        return load_onnx(made)


def _reason(done: subprocess.CompletedProcess[str]) -> str:
    """The last line that says something; a traceback ends with it."""
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    last = lines[-1][:500] if lines else "it said nothing"
    return f"{last} (exit status {done.returncode})"


@contextmanager
def _naming(path: Path, framework: str) -> Iterator[None]:
    try:
        yield
    except ModelFileError as exc:
        raise exc.prefixed(f"{str(path)!r} cannot be loaded as {framework}: ") from exc.__cause__
