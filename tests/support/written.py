"""What the converter writes for known models, as short digests that MindSpore's verdict hangs on.

The models are the rows of tests/ops/to_mindir and the node tests of the onnx package, as far as
they are written as primitives alone.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from support.onnx_case import OnnxCase
from support.onnx_nodes import data_of, listed, node_tests, run_directly, write
from support.running import DATA, run_graph

from mindspore_lite.graph.to_mindir import Written, to_mindir
from mindspore_lite.mindir import records as r

FILE = DATA / "written_by_mindspore.json"
ROWS = Path(__file__).parents[1] / "ops/to_mindir"


@dataclass(frozen=True)
class Source:
    """A model that is written, with its inputs and what it should compute."""

    write: Callable[[], Written]
    data: Callable[[], tuple[list[Any], list[Any]]]


def rows() -> dict[str, Source]:
    """The rows of the operators that are written as primitives."""
    found: dict[str, Source] = {}
    for file in sorted(ROWS.glob("cases_*.py")):
        spec = importlib.util.spec_from_file_location(file.stem, file)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for case in module.CASES:
            if not case.custom:
                found[_row_name(file.stem, case, found)] = _row(case)
    return found


def nodes() -> dict[str, Source]:
    """The node tests that the list of passing ones says to be written as primitives."""
    tests = node_tests()
    names = [n for n, line in listed()[1].items() if "Custom(" not in line and n in tests]
    return {name: _node(name) for name in names}


def _row(case: OnnxCase) -> Source:
    def data() -> tuple[list[Any], list[Any]]:
        given = list(case.feeds().values())
        return given, run_graph(case.model(), *given)

    return Source(lambda: to_mindir(case.model()), data)


def _node(name: str) -> Source:
    def data() -> tuple[list[Any], list[Any]]:
        test = node_tests()[name]
        return data_of(test)[0], run_directly(test)

    return Source(lambda: write(node_tests()[name])[1], data)


def _row_name(stem: str, case: OnnxCase, taken: Mapping[str, Any]) -> str:
    """What a row is called; the position among rows that are called alike tells them apart."""
    family = stem.removeprefix("cases_")
    options = "-open" * case.open_dims + "".join(f"-w{i}" for i in case.constants)
    types = "".join(f"-{x.dtype}" for x in case.inputs[:1] if x is not None)
    name = re.sub(r"\s+", "", f"{family}/{case}{types}{options}")
    if len(name) > 100:
        name = f"{name[:90]}~{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    number = 2
    while (fresh := name if number == 2 and name not in taken else f"{name}#{number}") in taken:
        number += 1
    return fresh


# --- digests --------------------------------------------------------------------------------------


def digest(model: r.Model) -> str:
    """A digest of what MindSpore computes with: no names, no notes, no version of the writer.

    Types of results are left out as well: MindSpore infers them anew, and releases of onnx differ.
    """
    numbers: dict[str, str] = {}

    def short(name: str) -> str:
        return numbers.setdefault(name, str(len(numbers)))

    state = hashlib.sha256()
    for graph in (model.graph, *model.functions.values()):
        short(graph.name)
        for line in _lines(graph, short):
            state.update(line.encode() + b"\n")
    return state.hexdigest()[:12]


def _lines(graph: r.Graph, short: Callable[[str], str]) -> list[str]:
    lines = [f"graph {short(graph.name)}"]
    lines += [f"weight {short(p.name)} {_text(p)}" for p in graph.parameters]
    lines += [f"input {short(i.name)} {i.type}" for i in graph.inputs]
    for node in graph.nodes:
        if isinstance(node, r.Constant):
            value = node.value
            held = short(value.name) if isinstance(value, r.GraphRef) else _text(value)
            lines.append(f"{short(node.name)} = {held}")
            continue
        target = node.target
        if isinstance(target, r.Primitive):
            attributes = {key: _text(value) for key, value in sorted(target.attributes.items())}
            called = f"{target.op}{attributes}"
        else:
            called = f"call {short(target.name)}"
        used = " ".join(map(short, node.inputs))
        lines.append(f"{short(node.name)} = {called} {used}")
    lines.append("return " + " ".join(map(short, graph.outputs)))
    return lines


def _text(value: Any) -> str:
    """A constant as text; floats by few digits, for NumPy's functions differ in their last ones."""
    if isinstance(value, r.Tensor):
        array = value.numpy()
        held = array.tolist()
        if array.dtype.kind not in "biu":
            wide = complex if array.dtype.kind == "c" else float
            held = [f"{x:.3g}" for x in array.astype(wide).ravel()]
        return f"{value.dtype.name}{list(value.shape)}{held}"
    if isinstance(value, float | np.floating):
        return f"{value:.3g}"
    if isinstance(value, tuple | list):
        return f"({','.join(map(_text, value))})"
    return repr(value)
