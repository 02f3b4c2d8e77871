"""Small networks twice: as MindSpore exports them (NCHW), and as converter_lite writes them (NHWC).

The converted twin has batch norms folded into kernels and bias, activations fused, kernels as
[out, h, w, in], constants in int32, and arguments as attributes although the version is the newest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from support.mindir_builder import Net, tensor_type

from mindspore_lite.mindir import records as r

LITE = {"isOptimized": True, "fmk": 3, "graph_name": "main_graph", "inputFormat": 1}


class Twins:
    """The same layers into two networks; a value is (plain name, converted name, NCHW shape)."""

    def __init__(self, shape: Sequence[int], seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.plain, self.lite = Net("plain"), Net("lite")
        n, c, h, w = shape
        first = self.plain.input("x", shape)
        second = self.lite.input("x", (n, h, w, c), given_name="images")
        self.x = (first, second, tuple(shape))

    def models(self, y: Any) -> tuple[r.Model, r.Model]:
        """(plain, converted), both returning this value."""
        lite = self.lite.model(y[1])
        return self.plain.model(y[0]), replace(lite, graph=replace(lite.graph, attributes=LITE))

    def numbers(self, *shape: int, scale: float = 1.0) -> np.ndarray:
        return (self.rng.standard_normal(shape) * scale).astype(np.float32)

    def added(self, op: str, shape: Sequence[int], *inputs: str, **attributes: Any) -> str:
        """A node of the converted network, typed and with what the converter adds to each."""
        about = {"primitive_function": False, "fmk_type": 3}
        kind = tensor_type(shape)
        name = f"Default/{op}"
        return self.lite.call(op, *inputs, type=kind, scope=name, **{**attributes, **about})

    def conv(self, x: Any, out: int, k: int, stride: int = 1, group: int = 1,
             relu6: bool = True) -> Any:  # fmt: skip
        """Convolution without bias, batch norm, perhaps relu6; padded as 'same'."""
        n, c, h, w = x[2]
        shape = (n, out, -(-h // stride), -(-w // stride))
        kernel = self.numbers(out, c // group, k, k, scale=(c // group * k * k) ** -0.5)
        gamma, variance = (self.rng.uniform(0.5, 1.5, out).astype(np.float32) for _ in range(2))
        beta, mean = self.numbers(out, scale=0.1), self.numbers(out, scale=0.1)
        need = [
            max((s - 1) * stride + k - old, 0) for s, old in zip(shape[2:], (h, w), strict=True)
        ]
        pads = [p for n in need for p in (n // 2, n - n // 2)]

        net = self.plain
        first = net.call(
            "Conv2D", x[0], net.weight(f"w{net.count}", kernel), pad_mode="same", pad_list=pads,
            stride=(1, 1, stride, stride), dilation=(1, 1, 1, 1), group=group, format="NCHW",
        )  # fmt: skip
        held = [net.weight(f"p{net.count}.{i}", a)
                for i, a in enumerate((gamma, beta, mean, variance))]  # fmt: skip
        norm = net.call("BatchNorm", first, *held, is_training=False, epsilon=1e-5)
        first = net.call("TupleGetItem", norm, net.constant(0))
        first = net.call("ReLU6", first) if relu6 else first

        factor = gamma / np.sqrt(variance + np.float32(1e-5))
        folded = np.moveaxis(kernel * factor.reshape(-1, 1, 1, 1), 1, -1)
        lite = self.lite
        second = self.added(
            "Conv2DFusion", (n, *shape[2:], out), x[1],
            lite.weight(f"w{lite.count}", np.ascontiguousarray(folded)),
            lite.weight(f"b{lite.count}", beta - mean * factor),
            kernel_size=[k, k], stride=[stride] * 2, dilation=[1, 1], pad_mode=1, pad_list=pads,
            group=group, in_channel=c, out_channel=out, format=1,
            activation_type=3 if relu6 else 0, is_depth_wise=group > 1,
        )  # fmt: skip
        return first, second, shape

    def add(self, x: Any, y: Any) -> Any:
        shape = x[2]
        second = self.added("AddFusion", last(shape), x[1], y[1], activation_type=0)
        return self.plain.call("Add", x[0], y[0]), second, shape

    def block(self, x: Any, out: int, stride: int, expand: int = 2) -> Any:
        """MobileNet's inverted residual."""
        c = x[2][1]
        y = self.conv(x, c * expand, 1)
        y = self.conv(y, c * expand, 3, stride, group=c * expand)
        y = self.conv(y, out, 1, relu6=False)
        return self.add(x, y) if stride == 1 and out == c else y

    def max_pool(self, x: Any) -> Any:
        n, c, h, w = x[2]
        shape = (n, c, h // 2, w // 2)
        first = self.plain.call("MaxPool", x[0], kernel_size=(1, 1, 2, 2), strides=(1, 1, 2, 2),
                                pad_mode="VALID", format="NCHW")  # fmt: skip
        second = self.added(
            "MaxPoolFusion", last(shape), x[1], kernel_size=[2, 2], strides=[2, 2], pad=[0] * 4,
            pad_mode=2, round_mode=0, format=1, activation_type=0, **{"global": False},
        )  # fmt: skip
        return first, second, shape

    def concat(self, x: Any, y: Any) -> Any:
        n, c, h, w = x[2]
        shape = (n, c + y[2][1], h, w)
        first = self.plain.call("Concat", self.plain.tuple(x[0], y[0]), axis=1)
        second = self.added("Concat", last(shape), x[1], y[1], axis=3)
        return first, second, shape

    def head(self, x: Any, classes: int) -> Any:
        """Mean over the image, a dense layer, softmax."""
        n, c, _, _ = x[2]
        net, lite = self.plain, self.lite
        weight, bias = self.numbers(classes, c, scale=c**-0.5), self.numbers(classes)
        first = net.call("ReduceMean", x[0], net.constant((2, 3)), keep_dims=False)
        first = net.call("MatMul", first, net.weight("dense", weight), transpose_b=True)
        first = net.call("BiasAdd", first, net.weight("bias", bias))
        first = net.call("Softmax", first, axis=(-1,))
        second = self.added(
            "AvgPoolFusion", (n, 1, 1, c), x[1], kernel_size=[1, 1], strides=[1, 1], pad=[0] * 4,
            pad_mode=0, round_mode=0, format=1, activation_type=0, **{"global": True},
        )  # fmt: skip
        second = self.added("Reshape", (n, c), second, lite.constant(np.array([n, c], np.int32)))
        second = self.added(
            "FullConnection", (n, classes), second, lite.weight("dense", weight),
            lite.weight("bias", bias), has_bias=True, use_axis=True, axis=1, activation_type=0,
        )  # fmt: skip
        second = self.added("Softmax", (n, classes), second, axis=[-1])
        return first, second, (n, classes)


def last(shape: Sequence[int]) -> tuple[int, ...]:
    """An NCHW shape as NHWC."""
    return (shape[0], *shape[2:], shape[1])


def mobile_net(size: int = 32, width: int = 8, batch: int = 2, blocks: int = 2) -> Twins:
    """A MobileNet of a few layers; `.result` is what it returns."""
    net = Twins((batch, 3, size, size))
    x = net.conv(net.x, width, 3, 2)
    for stage in range(3):
        x = net.block(x, width * 2**stage, 1 if stage == 0 else 2)
        for _ in range(blocks - 1):
            x = net.block(x, width * 2**stage, 1)
    branch = net.max_pool(x)
    x = net.concat(net.max_pool(net.conv(x, width, 1)), branch)
    net.result = net.head(x, 10)  # type: ignore[attr-defined]
    return net
