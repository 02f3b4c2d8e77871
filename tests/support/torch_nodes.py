"""Runs graphs on torch, by the kernels alone: node tests of the onnx package, and MindIR files.

Statically, for the shapes of the data, or dynamically, with all sizes open.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import torch
from onnx.backend.test.case.test_case import TestCase
from support import onnx_graphs
from support.fixture_files import KEYS, compare_outputs
from support.onnx_nodes import compare, data_of
from support.running import DATA, assert_close, fixture_arrays

from mindspore_lite.engines.prepare.widen import Kernels, widen
from mindspore_lite.engines.sessions import io_types
from mindspore_lite.engines.torch.kernels.lower import Lowered, Target, lower
from mindspore_lite.engines.torch.kernels.table import KERNELS
from mindspore_lite.engines.torch.kernels.taken import rows
from mindspore_lite.engines.torch.kernels.types import of_numpy, to_numpy
from mindspore_lite.graph.open_rank import OpenRankError
from mindspore_lite.graph.source import ModelInput, source_of
from mindspore_lite.mindir.decrypt import Key
from mindspore_lite.passes.opset import upgraded

LIST = DATA / "torch_conformance.txt"
EXCEPTIONS = DATA / "torch_exceptions.txt"
CPU = Target(torch.device("cpu"))


def listed() -> tuple[str, list[str]]:
    """The onnx release that the committed list is of, and the tests that pass."""
    header, *names = LIST.read_text().splitlines()
    return header.split()[2], names


@functools.cache
def exceptions() -> dict[str, str]:
    """The tests that ONNX Runtime passes and torch does not, and why."""
    lines = (line.partition(" ") for line in EXCEPTIONS.read_text().splitlines())
    return {name: reason for name, _, reason in lines}


def run_node_test(test: TestCase, dynamic: bool = False) -> None:
    """Compute a node test, and compare by its tolerance."""
    given, wanted = data_of(test)
    model = upgraded(ir.from_proto(test.model))
    if not dynamic:
        given = with_constant_sizes(model, given)
    compare(run_graph(model, given, dynamic), wanted, test)


def with_constant_sizes(model: ir.Model, given: Sequence[Any]) -> list[Any]:
    """Make weights of inputs that decide sizes, which they are in models; the other arrays."""
    kept = []
    for value, array in zip(list(model.graph.inputs), given, strict=True):
        if isinstance(array, list) or not value.uses() or not _decides_sizes(value):
            kept.append(array)
            continue
        model.graph.inputs.remove(value)
        value.const_value = ir.Tensor(np.asarray(array), name=value.name)
        model.graph.register_initializer(value)
    return kept


def _decides_sizes(value: ir.Value) -> bool:
    for node, at in value.uses():
        row = KERNELS.get((node.domain, node.op_type))
        if row is None or (row.input_name(at) not in row.numbers and row.op_type != "Range"):
            return False
    return True


def run_file(path: Path, dynamic: bool = False) -> None:
    """Compute a MindIR file, and compare with what MindSpore gave."""
    given, wanted = fixture_arrays(path.with_suffix(".npz"))
    compare_outputs(path, run_graph(translated(path, given), given, dynamic), wanted)


def translated(path: Path, given: Sequence[np.ndarray]) -> ir.Model:
    """The graph of a MindIR file, if need be for the shapes of these inputs."""
    key = Key(*KEYS[path.stem]) if path.stem in KEYS else None
    file = ModelInput("MINDIR", path, key=key)
    try:
        return source_of(file).translate()
    except OpenRankError as exc:
        shapes = {
            name: np.shape(one) for (name, *_), one in zip(exc.trial.inputs, given, strict=True)
        }
        return source_of(file, shapes).translate()


def failures(check: Callable[[bool], None]) -> list[str]:
    """What goes wrong in a static and in a dynamic run, in words."""
    found = []
    for dynamic in (False, True):
        try:
            check(dynamic)
        except Exception as exc:  # noqa: BLE001 - whatever it is, it is told
            words = " ".join(str(exc).split())[:300]
            found.append(f"{'dynamic' if dynamic else 'static'}: {type(exc).__name__} {words}")
    return found


def run_graph(model: ir.Model, given: Sequence[Any], dynamic: bool = False) -> list[Any]:
    """Compute with an onnx-ir model, which is changed on the way."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # less precision; a border's rounding
        widen(model, taken)
        inputs = io_types.declared(model.metadata_props, "inputs")
        outputs = io_types.declared(model.metadata_props, "outputs")
        names = [str(value.name) for value in model.graph.inputs]
        given = [
            io_types.inward(one, inputs[name]) if name in inputs else one
            for name, one in zip(names, given, strict=True)
        ]
        shapes = None if dynamic else [() if _is_open(one) else np.shape(one) for one in given]
        found = [as_arrays(one) for one in run_lowered(lower(model, shapes, CPU), given)]
        names = [str(value.name) for value in model.graph.outputs]
        return [
            io_types.outward(one, outputs[name]) if name in outputs else one
            for name, one in zip(names, found, strict=True)
        ]


def run_lowered(lowered: Lowered, given: Sequence[Any]) -> Sequence[Any]:
    """Call a lowered graph with arrays, its parameters put in."""
    fill(lowered)
    with torch.inference_mode():
        found: Sequence[Any] = lowered.module(*map(as_tensors, given))
    return found


def fill(lowered: Lowered) -> None:
    """Put the parameters of a graph and of its bodies in."""
    for name, weight in lowered.weights.items():
        value = lowered.constants[weight.name].to(weight.dtype)
        setattr(lowered.module, name, torch.nn.Parameter(value, requires_grad=False))
    for body in lowered.bodies.values():
        fill(body)


@functools.cache
def taken() -> Kernels:
    """The types that the kernels take."""
    return Kernels("PyTorch", rows())


def as_tensors(value: Any) -> Any:
    """Arrays as tensors, also in sequences; None is an optional that holds nothing."""
    if isinstance(value, list | tuple):
        return [as_tensors(one) for one in value]
    return None if value is None else of_numpy(np.array(value))


def as_arrays(value: Any) -> Any:
    """Tensors as arrays, also in sequences."""
    if isinstance(value, list):
        return [as_arrays(one) for one in value]
    return None if value is None else to_numpy(value)


def _is_open(value: Any) -> bool:
    return value is None or isinstance(value, list | tuple)


def assert_like_onnxruntime(op_type: str, *given: Any, outputs: int = 1, **attributes: Any) -> None:
    """One node computes on torch what ONNX Runtime computes; an input None is left out.

    Sizes and places may be constants: lists of integers are weights, arrays are inputs.
    """
    names = ["" if one is None else f"i{at}" for at, one in enumerate(given)]
    results = [f"o{at}" for at in range(outputs)]
    arrays = {n: one for n, one in zip(names, given, strict=True) if isinstance(one, np.ndarray)}
    weights = {
        n: np.array(one) for n, one in zip(names, given, strict=True) if isinstance(one, list)
    }
    ports = [(name, _onnx_type(array), array.shape) for name, array in arrays.items()]
    made = onnx_graphs.node(op_type, names, results, **attributes)
    proto = onnx_graphs.model([made], ports, [(name, 0, None) for name in results], **weights)
    for output in proto.graph.output:  # whose type is what ONNX says of the operator
        output.ClearField("type")
    wanted = onnx_graphs.results(proto, arrays)
    for dynamic in (False, True):
        found = run_graph(ir.from_proto(proto), list(arrays.values()), dynamic)
        for got, want in zip(found, wanted.values(), strict=True):
            assert_close(got, want, f"{op_type}, {'dynamic' if dynamic else 'static'}")


def _onnx_type(array: np.ndarray) -> int:
    return int(ir.DataType.from_numpy(array.dtype))
