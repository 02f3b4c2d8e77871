"""passes/fuse_conv_bias.py: a bias joins the convolution where that means the same."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from support.running import op_types, run_graph

from mindspore_lite.passes.fuse_conv_bias import fuse_conv_bias

RNG = np.random.default_rng(0)
X = RNG.random((1, 4, 3, 3), dtype=np.float32)
W = RNG.random((4, 2, 2, 2), dtype=np.float32)
BIAS = RNG.random(4, dtype=np.float32)


def constant(name: str, array: np.ndarray) -> ir.Value:
    return ir.Value(
        name=name,
        type=ir.TensorType(ir.DataType.from_numpy(array.dtype)),
        shape=ir.Shape(array.shape),
        const_value=ir.Tensor(array, name=name),
    )


def model(
    bias: np.ndarray = BIAS,
    shape: tuple[int, ...] = (-1, 1, 1),
    is_used_twice: bool = False,
    op_type: str = "ConvTranspose",
) -> ir.Model:
    """Add(ConvTranspose(x, w), Reshape(bias)), of two groups."""
    x = ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape(X.shape))
    held = [constant("w", W), constant("bias", bias), constant("shape", np.asarray(shape))]
    conv = ir.node(op_type, [x, held[0]], {"group": 2}, name="conv")
    turned = ir.node("Reshape", held[1:], name="turned")
    add = ir.node("Add", [conv.outputs[0], turned.outputs[0]], name="add")
    add.outputs[0].name = "y"
    nodes, outputs = [conv, turned, add], [add.outputs[0]]
    if is_used_twice:
        nodes.append(ir.node("Neg", [conv.outputs[0]], name="neg"))
        outputs.append(nodes[-1].outputs[0])
    for value in outputs:
        value.type = ir.TensorType(ir.DataType.FLOAT)
    graph = ir.Graph([x], outputs, nodes=nodes, initializers=held, opset_imports={"": 21}, name="g")
    return ir.Model(graph, ir_version=10)


@pytest.mark.parametrize("op_type", ["Conv", "ConvTranspose"])
def test_a_bias_per_channel_joins(op_type: str) -> None:
    (want,) = run_graph(model(op_type=op_type), X)
    made = model(op_type=op_type)
    assert fuse_conv_bias(made) == 1
    fused = made.graph.outputs[0].producer()
    assert fused is not None
    assert (fused.op_type, fused.name, fused.outputs[0].name) == (op_type, "conv", "y")
    (got,) = run_graph(made, X)
    np.testing.assert_allclose(got, want, rtol=1e-5)


@pytest.mark.parametrize(
    "made",
    [
        model(is_used_twice=True),
        model(BIAS[:1]),
        model(BIAS[:3], (1, 1, -1)),
        model(RNG.random((4, 1), dtype=np.float32), (-1, 1, 1)),
    ],
    ids=["used twice", "one for all", "along the width", "not a vector"],
)
def test_nothing_else_joins(made: ir.Model) -> None:
    before = op_types(made)
    assert fuse_conv_bias(made) == 0
    assert op_types(made) == before
