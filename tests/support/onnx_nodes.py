"""The node tests of the onnx package: each run by ONNX Runtime as it is, and by way of MindIR."""

from __future__ import annotations

import functools
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime as ort
from onnx.backend.test.case.node import collect_testcases
from onnx.backend.test.case.test_case import TestCase
from support.running import DATA, QUIET, run_graph

from mindspore_lite.graph.from_mindir import from_mindir
from mindspore_lite.graph.to_mindir import Written, to_mindir
from mindspore_lite.mindir.read import read_file
from mindspore_lite.mindir.write import write_file
from mindspore_lite.passes.infer_shapes import infer_shapes
from mindspore_lite.passes.opset import upgraded

LIST = DATA / "onnx_conformance.txt"
# They draw numbers: what they pass, they pass by chance.
RANDOM = {"Bernoulli", "Multinomial", "RandomNormal", "RandomUniform"}


class DirectFailure(Exception):
    """ONNX Runtime itself does not pass the test: nothing can be asked of MindIR."""


@functools.cache
def node_tests() -> Mapping[str, TestCase]:
    """Every test of the installed release, by name; they are made in some seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's, about what the tests divide by zero
        found = {test.name: test for test in collect_testcases(None)}
    return {name: found[name] for name in sorted(found) if not _is_random(found[name].model)}


def listed() -> tuple[str, dict[str, str]]:
    """The onnx release that the committed list is of, and how each of its tests was written."""
    header, *lines = LIST.read_text().splitlines()
    return header.split()[2], {line.split()[0]: line for line in lines}


def run_directly(test: TestCase) -> list[Any]:
    """What ONNX Runtime computes, if that is what the test wants."""
    try:
        session = ort.InferenceSession(
            test.model.SerializeToString(), QUIET, providers=["CPUExecutionProvider"]
        )
        given, wanted = data_of(test)
        names = [value.name for value in test.model.graph.input]
        got: list[Any] = session.run(None, dict(zip(names, given, strict=True)))
        compare(got, wanted, test)
    except Exception as exc:  # ONNX Runtime raises anything
        raise DirectFailure(f"{test.name}: {exc}") from exc
    return got


def run_through_mindir(test: TestCase) -> str:
    """Compute by way of a MindIR file and compare; returns how the operators were written."""
    model, written = write(test)
    with tempfile.TemporaryDirectory() as folder:
        (path,) = write_file(written.model, Path(folder) / "node.mindir")
        back = from_mindir(read_file(path))
        assert _names(back.graph.inputs) == [value.name for value in test.model.graph.input]
        assert _names(back.graph.outputs) == [value.name for value in test.model.graph.output]
        given, wanted = data_of(test)
        compare(run_graph(back, *given), wanted, test)
    return f"{test.name} {_how(model, written)}"


def write(test: TestCase) -> tuple[ir.Model, Written]:
    """The model of a test, and what becomes of it."""
    model = upgraded(ir.from_proto(test.model))
    infer_shapes(model)
    return model, to_mindir(model)


def compare(got: Sequence[Any], wanted: Sequence[Any], test: TestCase) -> None:
    """Assert that outputs are alike, by the tolerance that the tests of onnx have."""
    assert len(got) == len(wanted)
    for one, other in zip(got, wanted, strict=True):
        _compare(one, other, test)


def _compare(got: Any, wanted: Any, test: TestCase) -> None:
    if isinstance(wanted, list | tuple):  # a sequence
        compare(got, wanted, test)
    elif wanted is None:  # an optional that holds nothing
        assert got is None
    else:
        got, wanted = np.asarray(got), np.asarray(wanted)
        assert got.shape == wanted.shape
        if wanted.dtype.kind in "OUS":
            assert got.astype(str).tolist() == wanted.astype(str).tolist()
            return
        assert got.dtype == wanted.dtype
        wide = complex if wanted.dtype.kind == "c" else float  # also for what NumPy does not know
        with np.errstate(invalid="ignore"):  # NaN in a type that NumPy does not know
            got, wanted = got.astype(wide), wanted.astype(wide)
        np.testing.assert_allclose(got, wanted, rtol=test.rtol, atol=test.atol)


def data_of(test: TestCase) -> tuple[list[Any], list[Any]]:
    ((given, wanted),) = test.data_sets
    return [_array(value) for value in given], [_array(value) for value in wanted]


def _array(value: Any) -> Any:
    return onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


def _how(model: ir.Model, written: Written) -> str:
    """The operators of the main graph; in brackets those that travel as they are."""
    carried = {label for labels in written.custom.values() for label in labels}
    found = set()
    for node in model.graph:
        is_carried = str(node.name or node.outputs[0].name) in carried
        found.add(f"Custom({node.op_type})" if is_carried else node.op_type)
    return " ".join(sorted(found))


def _names(values: Sequence[ir.Value]) -> list[str]:
    return [str(value.name) for value in values]


def _is_random(model: onnx.ModelProto) -> bool:
    return any(node.op_type in RANDOM for node in model.graph.node)
