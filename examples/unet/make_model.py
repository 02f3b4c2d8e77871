"""Writes model.onnx: a network with the shape of Stable Diffusion's UNet, small and untrained.

It has the inputs of SD 2.1 (sample, timestep, encoder_hidden_states, with an open batch) and its
parts, as PyTorch exports them: an embedding of the time step, residual blocks with group norm,
attention to the picture itself and to the text, halving and doubling, short cuts across. Channels
are few, levels three, the largest of them without attention, and weights random, so that it
converts and runs in a second:

    python examples/unet/make_model.py model.onnx
    converter_lite --modelFile=model.onnx --fmk=ONNX --outputFile=SD2.1_size512_bs1 \
        --inputShape="sample:1,4,64,64;timestep:1;encoder_hidden_states:1,77,1024" \
        --optimize=ascend_oriented
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
from onnx_ir import Value

CHANNELS = (32, 64)  # SD 2.1: 320, 640, 1280, 1280
GROUPS = 8
HEADS = 4
TEXT = 1024
TIME = 64


class Net:
    """Nodes and weights in the order in which they are made."""

    def __init__(self) -> None:
        self.nodes: list[ir.Node] = []
        self.weights: list[Value] = []
        self.random = np.random.default_rng(21)

    def op(self, op_type: str, *inputs: Value, **attributes: Any) -> Value:
        """Append a node; returns its output."""
        result = Value(name=f"{op_type}_{len(self.nodes)}_output")
        name = f"/{op_type}_{len(self.nodes)}"
        self.nodes.append(ir.node(op_type, inputs, attributes, outputs=[result], name=name))
        return result

    def constant(self, values: Any, dtype: Any = np.int64) -> Value:
        """A weight with these values."""
        held = ir.tensor(np.asarray(values, dtype), name=f"onnx::Weight_{len(self.weights)}")
        self.weights.append(
            Value(
                name=held.name, type=ir.TensorType(held.dtype), shape=held.shape, const_value=held
            )
        )
        return self.weights[-1]

    def weight(self, *shape: int) -> Value:
        """Random numbers that keep the size of a signal."""
        fan_in = int(np.prod(shape[1:])) if len(shape) == 4 else shape[0]
        return self.constant(self.random.normal(0, fan_in**-0.5, shape), np.float32)

    def around(self, centre: float, *shape: int) -> Value:
        """Random numbers about another: a bias or a scale."""
        return self.constant(self.random.normal(centre, 0.1, shape), np.float32)

    # --- layers ---------------------------------------------------------------------------------

    def conv(self, x: Value, inner: int, outer: int, size: int = 3, stride: int = 1) -> Value:
        """A convolution with a bias that keeps the size, or halves it."""
        weights = self.weight(outer, inner, size, size), self.around(0, outer)
        pads = [size // 2] * 4
        return self.op(
            "Conv", x, *weights, kernel_shape=[size] * 2, pads=pads, strides=[stride] * 2
        )

    def linear(self, x: Value, inner: int, outer: int, bias: bool = True) -> Value:
        """A product over the last axis."""
        y = self.op("MatMul", x, self.weight(inner, outer))
        return self.op("Add", self.around(0, outer), y) if bias else y

    def silu(self, x: Value) -> Value:
        """X by its sigmoid."""
        return self.op("Mul", x, self.op("Sigmoid", x))

    def group_norm(self, x: Value, channels: int) -> Value:
        """As PyTorch exports it: each group is an instance, scale and bias come after."""
        grouped = self.op("Reshape", x, self.constant([0, GROUPS, -1]))
        ones = self.constant(np.ones(GROUPS), np.float32)
        zeros = self.constant(np.zeros(GROUPS), np.float32)
        y = self.op("InstanceNormalization", grouped, ones, zeros, epsilon=1e-5)
        y = self.op("Reshape", y, self.op("Shape", x))
        y = self.op("Mul", y, self.around(1, channels, 1, 1))
        return self.op("Add", y, self.around(0, channels, 1, 1))

    def layer_norm(self, x: Value, channels: int) -> Value:
        """Over the last axis."""
        scale, bias = self.around(1, channels), self.around(0, channels)
        return self.op("LayerNormalization", x, scale, bias, axis=-1, epsilon=1e-5)

    def attention(self, x: Value, source: Value, channels: int, inner: int) -> Value:
        """Every row of x looks at the rows of the source."""
        width = channels // HEADS

        def heads(y: Value, order: Sequence[int]) -> Value:
            split = self.op("Reshape", y, self.constant([0, -1, HEADS, width]))
            return self.op("Transpose", split, perm=list(order))

        query = heads(self.linear(x, channels, channels, bias=False), (0, 2, 1, 3))
        key = heads(self.linear(source, inner, channels, bias=False), (0, 2, 3, 1))
        value = heads(self.linear(source, inner, channels, bias=False), (0, 2, 1, 3))
        scores = self.op("Mul", self.op("MatMul", query, key), self.scalar(width**-0.5))
        mixed = self.op("MatMul", self.op("Softmax", scores, axis=-1), value)
        joined = self.op("Transpose", mixed, perm=[0, 2, 1, 3])
        joined = self.op("Reshape", joined, self.constant([0, -1, channels]))
        return self.linear(joined, channels, channels)

    def scalar(self, number: float) -> Value:
        """A number."""
        return self.constant(number, np.float32)

    def gated(self, x: Value, channels: int) -> Value:
        """Twice the width, one half gated by the GELU of the other."""
        wide = self.linear(x, channels, 8 * channels)
        first, second = (
            self.op("Slice", wide, *(self.constant([n]) for n in (start, start + 4 * channels, -1)))
            for start in (0, 4 * channels)
        )
        grown = self.op("Erf", self.op("Div", second, self.scalar(2**0.5)))
        grown = self.op("Mul", self.op("Mul", second, self.op("Add", grown, self.scalar(1))),
                        self.scalar(0.5))  # fmt: skip
        return self.linear(self.op("Mul", first, grown), 4 * channels, channels)

    # --- blocks ---------------------------------------------------------------------------------

    def time_embedding(self, timestep: Value, sample: Value) -> Value:
        """Sines and cosines of the time step, one row for each item of the batch."""
        batch = self.op("Gather", self.op("Shape", sample), self.constant(0), axis=0)
        batch = self.op("Unsqueeze", batch, self.constant([0]))
        steps = self.op("Cast", self.op("Expand", timestep, batch), to=ir.DataType.FLOAT)
        frequencies = np.exp(-np.log(10000) * np.arange(TIME // 2) / (TIME // 2))
        angles = self.op("Mul", self.op("Unsqueeze", steps, self.constant([1])),
                         self.constant(frequencies[None], np.float32))  # fmt: skip
        both = self.op("Concat", self.op("Cos", angles), self.op("Sin", angles), axis=-1)
        return self.dense(self.silu(self.dense(both, TIME, TIME)), TIME, TIME)

    def dense(self, x: Value, inner: int, outer: int) -> Value:
        """A product of matrices, as PyTorch stores it."""
        weight = self.constant(self.random.normal(0, inner**-0.5, (outer, inner)), np.float32)
        return self.op("Gemm", x, weight, self.around(0, outer), transB=1)

    def residual(self, x: Value, time: Value, inner: int, outer: int) -> Value:
        """Two convolutions, the time between them, x added."""
        y = self.conv(self.silu(self.group_norm(x, inner)), inner, outer)
        moved = self.dense(self.silu(time), TIME, outer)
        y = self.op("Add", y, self.op("Unsqueeze", moved, self.constant([2, 3])))
        y = self.conv(self.silu(self.group_norm(y, outer)), outer, outer)
        return self.op("Add", x if inner == outer else self.conv(x, inner, outer, 1), y)

    def transformer(self, x: Value, text: Value, channels: int) -> Value:
        """The picture looks at itself, then at the text."""
        shape = self.op("Shape", x)
        y = self.conv(self.group_norm(x, channels), channels, channels, 1)
        y = self.op("Transpose", y, perm=[0, 2, 3, 1])
        rows = self.op("Reshape", y, self.constant([0, -1, channels]))
        normed = self.layer_norm(rows, channels)
        rows = self.op("Add", self.attention(normed, normed, channels, channels), rows)
        normed = self.layer_norm(rows, channels)
        rows = self.op("Add", self.attention(normed, text, channels, TEXT), rows)
        rows = self.op("Add", self.gated(self.layer_norm(rows, channels), channels), rows)
        batch, height, width = (
            self.op("Slice", shape, *(self.constant([n]) for n in (at, at + 1, 0)))
            for at in (0, 2, 3)
        )
        target = self.op("Concat", batch, height, width, self.constant([channels]), axis=0)
        y = self.op("Transpose", self.op("Reshape", rows, target), perm=[0, 3, 1, 2])
        return self.op("Add", self.conv(y, channels, channels, 1), x)

    def doubled(self, x: Value, channels: int) -> Value:
        """Twice the height and width."""
        scales = self.constant([1, 1, 2, 2], np.float32)
        empty = Value(name="")
        y = self.op("Resize", x, empty, scales, mode="nearest", nearest_mode="floor",
                    coordinate_transformation_mode="asymmetric")  # fmt: skip
        return self.conv(y, channels, channels)


def unet(time_type: ir.DataType = ir.DataType.INT64) -> ir.Model:
    """The whole network."""
    net = Net()
    sample = _input("sample", ir.DataType.FLOAT, ["batch", 4, 64, 64])
    timestep = _input("timestep", time_type, [1])
    text = _input("encoder_hidden_states", ir.DataType.FLOAT, ["batch", 77, TEXT])
    few, many = CHANNELS
    time = net.time_embedding(timestep, sample)
    first = net.conv(sample, 4, few)
    a = net.residual(first, time, few, few)
    b = net.transformer(net.residual(net.conv(a, few, few, stride=2), time, few, many), text, many)
    middle = net.residual(net.conv(b, many, many, stride=2), time, many, many)
    middle = net.residual(net.transformer(middle, text, many), time, many, many)
    y = net.op("Concat", net.doubled(middle, many), b, axis=1)
    y = net.transformer(net.residual(y, time, 2 * many, many), text, many)
    y = net.op("Concat", net.doubled(y, many), a, axis=1)
    y = net.residual(y, time, many + few, few)
    out = net.conv(net.silu(net.group_norm(y, few)), few, 4)
    out.name, out.type = "out_sample", ir.TensorType(ir.DataType.FLOAT)
    out.shape = ir.Shape(["batch", 4, 64, 64])
    graph = ir.Graph(
        [sample, timestep, text],
        [out],
        nodes=net.nodes,
        initializers=net.weights,
        opset_imports={"": 17},
        name="unet",
    )
    return ir.Model(graph, ir_version=8, producer_name="make_model")


def _input(name: str, dtype: ir.DataType, dims: Sequence[int | str]) -> Value:
    return Value(name=name, type=ir.TensorType(dtype), shape=ir.Shape(dims))


if __name__ == "__main__":
    ir.save(unet(), sys.argv[1] if len(sys.argv) > 1 else "model.onnx")
