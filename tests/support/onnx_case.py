"""One ONNX operator, run by ONNX Runtime as it is and after a way through a MindIR file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
from support.running import run_graph

from mindspore_lite.graph.from_mindir import from_mindir
from mindspore_lite.graph.to_mindir import Written, to_mindir
from mindspore_lite.mindir.read import read_file
from mindspore_lite.mindir.write import write_file
from mindspore_lite.passes.infer_shapes import infer_shapes


@dataclass(frozen=True)
class OnnxCase:
    """A node with its inputs, and what it should be written as."""

    op_type: str
    inputs: Sequence[np.ndarray | None]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    outputs: int = 1
    constants: Sequence[int] = ()  # the inputs that are weights of the model
    primitives: frozenset[str] | set[str] = frozenset()  # some of those it is written as
    custom: str = ""  # why it cannot be written as primitives, where it cannot
    open_dims: bool = False
    opset: int = 21
    tolerance: float = 1e-5
    note: str = ""  # tells rows of one operator apart

    def __str__(self) -> str:
        about = [f"{key}={value}" for key, value in self.attributes.items()]
        shapes = ["none" if x is None else "x".join(map(str, x.shape)) for x in self.inputs]
        return "-".join([self.op_type, *shapes, *about, *([self.note] if self.note else [])])

    def model(self) -> ir.Model:
        """The node as a model of its own."""
        values = [self._input(i, x) for i, x in enumerate(self.inputs)]
        outputs = [ir.Value(name=f"out_{i}") for i in range(self.outputs)]
        node = ir.node(self.op_type, values, dict(self.attributes), outputs=outputs, name="node")
        fed = [v for i, v in enumerate(values) if v is not None and i not in self.constants]
        kept = [v for i, v in enumerate(values) if v is not None and i in self.constants]
        graph = ir.Graph(
            fed,
            outputs,
            nodes=[node],
            initializers=kept,
            opset_imports={"": self.opset},
            name="case",
        )
        made = ir.Model(graph, ir_version=10)
        infer_shapes(made)
        return made

    def feeds(self) -> dict[str, np.ndarray]:
        """The inputs by name."""
        return {
            f"in_{i}": x
            for i, x in enumerate(self.inputs)
            if x is not None and i not in self.constants
        }

    def _input(self, index: int, array: np.ndarray | None) -> ir.Value | None:
        if array is None:
            return None
        name = f"in_{index}"
        kind = ir.TensorType(ir.DataType.from_numpy(array.dtype))
        if index in self.constants:
            held = ir.Tensor(array, name=name)
            return ir.Value(name=name, type=kind, shape=ir.Shape(array.shape), const_value=held)
        dims = [f"d{index}_{i}" if self.open_dims else d for i, d in enumerate(array.shape)]
        return ir.Value(name=name, type=kind, shape=ir.Shape(dims))


def check(case: OnnxCase, folder: Path) -> Written:
    """Run a case both ways and compare; returns how it was written."""
    want = run_graph(case.model(), *case.feeds().values())
    written = to_mindir(case.model())
    if case.custom:
        assert any(case.custom in reason for reason in written.custom), written.custom
    else:
        assert not written.custom, written.custom
    assert set(case.primitives) <= set(written.primitives), written.primitives
    (path,) = write_file(written.model, folder / "case.mindir")
    back = from_mindir(read_file(path))
    assert [v.name for v in back.graph.inputs] == list(case.feeds())
    assert [v.name for v in back.graph.outputs] == [f"out_{i}" for i in range(case.outputs)]
    got = run_graph(back, *case.feeds().values())
    for expected, found in zip(want, got, strict=True):
        assert found.dtype == expected.dtype
        assert found.shape == expected.shape
        np.testing.assert_allclose(
            found.astype(np.float64),
            expected.astype(np.float64),
            rtol=case.tolerance,
            atol=case.tolerance,
        )
    return written
