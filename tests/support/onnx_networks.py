"""Whole networks as ONNX files with their inputs: converted as the converter does, and computed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import onnxruntime as ort
from support.running import QUIET
from support.written import Source

from mindspore_lite.graph.to_mindir import Written, to_mindir
from mindspore_lite.passes.opset import upgraded
from mindspore_lite.passes.optimise import optimise


def network(path: Path) -> Source:
    """The network of an ONNX file, on the inputs of the .npz beside it."""
    return Source(
        lambda: converted(path), lambda: (inputs_of(path), run_onnx(path, inputs_of(path)))
    )


def converted(path: Path) -> Written:
    """The network as MindIR records."""
    model = upgraded(ir.load(path))
    optimise(model, "general")
    return to_mindir(model)


def run_onnx(path: Path, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """What ONNX Runtime computes with the ONNX file."""
    session = ort.InferenceSession(path, QUIET, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]
    found: list[Any] = session.run(None, dict(zip(names, inputs, strict=True)))
    return found


def inputs_of(path: Path) -> list[np.ndarray]:
    """The inputs of a network, in order."""
    with np.load(path.with_suffix(".npz")) as held:
        return [held[f"i{i}"] for i in range(sum(name.startswith("i") for name in held.files))]
