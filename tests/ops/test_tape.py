"""ops/tape.py: what it knows about the values that it wrote."""

from __future__ import annotations

import onnx
import onnx_ir as ir
import pytest

from mindspore_lite.ops.tape import Tape


def test_shapes_with_open_dims_are_inferred_once_for_each_node(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not once for each question: that took minutes for networks with an open batch."""
    asked = []
    infer = onnx.shape_inference.infer_node_outputs

    def counted(*arguments: object) -> object:
        asked.append(arguments)
        return infer(*arguments)

    monkeypatch.setattr(onnx.shape_inference, "infer_node_outputs", counted)
    tape = Tape()
    kind = ir.TensorType(ir.DataType.FLOAT)
    value = ir.Value(name="x", type=kind, shape=ir.Shape(["batch", 3]))
    for _ in range(20):
        value = tape.op("Relu", [value])
        assert tape.shape(value) == (None, 3)
    assert len(asked) == 20
