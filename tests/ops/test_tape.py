"""ops/tape.py: what it knows about the values that it wrote."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from mindspore_lite.errors import ModelFileError
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


def test_constants_of_many_operators_count_together() -> None:
    tape = Tape()
    tape.max_table_bytes = 4096
    tape.label, tape.primitive = "Default/eye", "Eye"
    for _ in range(4):
        tape.constant(np.zeros(256, np.float32))
    words = (
        r"of 5120 bytes, 1024 of them in 'Default/eye' \(Eye\), more than the 4096 .*max_fold_by"
    )
    with pytest.raises(ModelFileError, match=words):
        tape.constant(np.zeros(256, np.float32))
