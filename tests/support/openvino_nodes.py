"""Runs graphs on the OpenVINO engine: node tests of the onnx package, and MindIR files."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
from onnx.backend.test.case.test_case import TestCase
from support.fixture_files import KEYS, compare_outputs
from support.onnx_nodes import compare, data_of
from support.running import DATA, fixture_arrays
from support.snapshots import snapshot

from mindspore_lite.engines.base import ModelSource, Options
from mindspore_lite.engines.openvino.engine import OpenVinoEngine
from mindspore_lite.graph.open_rank import OpenRankError
from mindspore_lite.graph.source import ModelInput, source_of
from mindspore_lite.mindir.decrypt import Key

EXCEPTIONS = DATA / "openvino_exceptions.txt"
ENGINE = OpenVinoEngine()


@functools.cache
def exceptions() -> dict[str, str]:
    """The files and node tests that ONNX Runtime passes and OpenVINO does not, and why."""
    lines = (line.partition(" ") for line in EXCEPTIONS.read_text().splitlines())
    return {name: reason for name, _, reason in lines}


def run_node_test(test: TestCase) -> None:
    """Compute a node test, and compare by its tolerance."""
    given, wanted = data_of(test)
    source = ModelSource(snapshot(), "", lambda: ir.from_proto(test.model), storable=False)
    compare(run_source(source, given), wanted, test)


def run_file(path: Path) -> None:
    """Compute a MindIR file, and compare with what MindSpore gave."""
    given, wanted = fixture_arrays(path.with_suffix(".npz"))
    file = ModelInput("MINDIR", path, key=Key(*KEYS[path.stem]) if path.stem in KEYS else None)
    try:
        found = run_source(source_of(file), given)
    except OpenRankError as exc:
        shapes = {
            name: np.shape(one) for (name, *_), one in zip(exc.trial.inputs, given, strict=True)
        }
        found = run_source(source_of(file, shapes), given)
    compare_outputs(path, found, wanted)


def run_source(source: ModelSource, given: Sequence[Any]) -> list[np.ndarray]:
    """Compile, through the cache where the source may lie there, and compute."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # less precision; a border's rounding
        session = ENGINE.load(source, Options())
        return session.run([np.array(one, order="C") for one in given])


def failure(check: Callable[[], None]) -> str:
    """What goes wrong, in words; "" when nothing does."""
    try:
        check()
    except Exception as exc:  # noqa: BLE001 - whatever it is, it is told
        return f"{type(exc).__name__} {' '.join(str(exc).split())[:300]}"
    return ""
