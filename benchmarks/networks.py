"""Networks of well-known shapes with random weights, written as MindIR files for the benchmarks.

The speed of a network does not depend on its weights, so nothing has to be downloaded or trained.
`equivalent_onnx` writes the same graph as plain ONNX, which is what a peer gets.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mindspore_lite.core.dtypes import BY_NAME
from mindspore_lite.mindir.records import (
    Call,
    Constant,
    Graph,
    Input,
    Model,
    Primitive,
    Tensor,
    TensorType,
)
from mindspore_lite.mindir.write import write_file


class Network:
    """A MindIR graph in the making."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.inputs: list[Input] = []
        self.nodes: list[Call | Constant] = []
        self.weights: list[Tensor] = []
        self.count = 0

    def input(self, name: str, shape: Sequence[int], dtype: type = np.float32) -> str:
        """A graph input."""
        kind = BY_NAME[np.dtype(dtype).name]
        self.inputs.append(Input(name, TensorType(kind, tuple(shape))))
        return name

    def weight(self, name: str, shape: Sequence[int], spread: float | None = None) -> str:
        """A weight with random values of the given spread, which by default keeps signals alive."""
        fan_in = math.prod(shape[1:]) if len(shape) > 1 else shape[0]
        rng = np.random.default_rng(
            zlib.crc32(name.encode())
        )  # the same in networks of other sizes
        values = rng.standard_normal(shape, np.float32) * (spread or fan_in**-0.5)
        return self._weight(name, values.astype(np.float32, copy=False))

    def ones(self, name: str, size: int) -> str:
        """A weight of ones."""
        return self._weight(name, np.ones(size, np.float32))

    def _weight(self, name: str, values: np.ndarray) -> str:
        data = memoryview(values.reshape(-1).view(np.uint8))
        self.weights.append(Tensor(name, BY_NAME["float32"], values.shape, data))
        return name

    def op(self, op_type: str, inputs: Sequence[object], **attributes: object) -> str:
        """One operator; inputs that are no names become constants."""
        names = tuple(i if isinstance(i, str) else self.constant(i) for i in inputs)
        name = self.new_name(op_type)
        self.nodes.append(Call(name, Primitive(op_type, attributes), names))
        return name

    def constant(self, value: object) -> str:
        """A number, flag or tuple."""
        name = self.new_name("constant")
        self.nodes.append(Constant(name, value))
        return name

    def new_name(self, stem: str) -> str:
        """A name that no other value has."""
        self.count += 1
        return f"{stem}_{self.count}"

    def dense(self, x: str, name: str, size_in: int, size_out: int) -> str:
        """x @ w.T + b for a matrix x."""
        product = self.op(
            "MatMul", [x, self.weight(f"{name}.weight", [size_out, size_in]), False, True]
        )
        return self.op("BiasAdd", [product, self.weight(f"{name}.bias", [size_out], 0.1), 0])

    def conv(
        self, x: str, name: str, sizes: tuple[int, int], kernel: int, stride: int = 1,
        group: int = 1,
    ) -> str:  # fmt: skip
        """A convolution that keeps the size but for its stride, and a batch norm."""
        size_in, size_out = sizes
        weight = self.weight(f"{name}.weight", [size_out, size_in // group, kernel, kernel])
        y = self.op(
            "Conv2D",
            [x, weight],
            pad_mode="pad",
            pad_list=(kernel // 2,) * 4,
            stride=(1, 1, stride, stride),
            dilation=(1, 1, 1, 1),
            group=group,
            format="NCHW",
        )
        stats = [self.ones(f"{name}.gamma", size_out), self.weight(f"{name}.beta", [size_out], 0.1)]
        stats += [self.weight(f"{name}.mean", [size_out], 0.1), self.ones(f"{name}.var", size_out)]
        normed = self.op("BatchNorm", [y, *stats, False, 1e-5, 0.1, 0])
        return self.op("TupleGetItem", [normed, 0])

    def save(self, path: Path, output: str) -> Path:
        """Write the file."""
        graph = Graph(
            self.name, tuple(self.inputs), tuple(self.nodes), (output,), tuple(self.weights)
        )
        model = Model(
            graph,
            producer="mslite benchmarks",
            producer_version="1",
            ir_version="0.1.1",
            mind_ir_version=2,
        )
        write_file(model, path)
        return path


def one_op(path: Path) -> Path:
    """Add of two vectors of 16: the time of a call is nearly all overhead."""
    net = Network("one_op")
    return net.save(path, net.op("Add", [net.input("x", [16]), net.input("y", [16])]))


def relu(path: Path, count: int) -> Path:
    """ReLU of a vector: as many bytes out as in, and hardly any work."""
    net = Network("relu")
    return net.save(path, net.op("ReLU", [net.input("x", [count])]))


def mobilenet_v2(path: Path) -> Path:
    """MobileNetV2 1.0 at 224 x 224: 3.5 million weights."""
    net = Network("mobilenet_v2")
    x = net.op("ReLU6", [net.conv(net.input("x", [1, 3, 224, 224]), "stem", (3, 32), 3, 2)])
    channels = 32
    stages = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1)]
    stages += [(6, 160, 3, 2), (6, 320, 1, 1)]
    for number, (expand, out, repeats, first_stride) in enumerate(stages):
        for block in range(repeats):
            name, hidden = f"stage{number}.{block}", channels * expand
            stride = first_stride if block == 0 else 1
            y = x
            if expand > 1:
                y = net.op("ReLU6", [net.conv(y, f"{name}.expand", (channels, hidden), 1)])
            y = net.op("ReLU6", [net.conv(y, f"{name}.depth", (hidden, hidden), 3, stride, hidden)])
            y = net.conv(y, f"{name}.project", (hidden, out), 1)
            x = net.op("Add", [x, y]) if stride == 1 and channels == out else y
            channels = out
    x = net.op("ReLU6", [net.conv(x, "head", (channels, 1280), 1)])
    pooled = net.op("ReduceMean", [x, (2, 3), False])
    return net.save(path, net.dense(pooled, "classifier", 1280, 1000))


def resnet50(path: Path) -> Path:
    """ResNet-50 at 224 x 224, the stride in the 3 x 3 convolution: 25.6 million weights."""
    net = Network("resnet50")
    x = net.op("ReLU", [net.conv(net.input("x", [1, 3, 224, 224]), "stem", (3, 64), 7, 2)])
    x = net.op(
        "MaxPool",
        [x],
        kernel_size=(1, 1, 3, 3),
        strides=(1, 1, 2, 2),
        pad_mode="SAME",
        format="NCHW",
    )
    channels = 64
    for number, (width, repeats) in enumerate([(64, 3), (128, 4), (256, 6), (512, 3)]):
        for block in range(repeats):
            name, out = f"stage{number}.{block}", 4 * width
            stride = 2 if block == 0 and number > 0 else 1
            y = net.op("ReLU", [net.conv(x, f"{name}.reduce", (channels, width), 1)])
            y = net.op("ReLU", [net.conv(y, f"{name}.middle", (width, width), 3, stride)])
            y = net.conv(y, f"{name}.expand", (width, out), 1)
            if block == 0:
                x = net.conv(x, f"{name}.shortcut", (channels, out), 1, stride)
            x, channels = net.op("ReLU", [net.op("Add", [x, y])]), out
    pooled = net.op("ReduceMean", [x, (2, 3), False])
    return net.save(path, net.dense(pooled, "classifier", channels, 1000))


def minilm(path: Path, tokens: int = 128, open_batch: bool = False) -> Path:
    """An encoder of MiniLM-L6's shape: 22.7 million weights."""
    return bert(path, layers=6, hidden=384, tokens=tokens, open_batch=open_batch)


def bert(
    path: Path, layers: int = 12, hidden: int = 768, heads: int = 12, tokens: int = 128,
    vocabulary: int = 30522, open_batch: bool = False,
) -> Path:  # fmt: skip
    """An encoder of BERT's shape; the defaults are BERT-base: 109 million weights, 418 MiB."""
    net = Network("bert")
    size = hidden // heads
    rows, flat = (-1, -1) if open_batch else (1, tokens)

    def norm(x: str, name: str) -> str:
        gamma, beta = net.ones(f"{name}.gamma", hidden), net.weight(f"{name}.beta", [hidden], 0.1)
        return net.op("TupleGetItem", [net.op("LayerNorm", [x, gamma, beta, -1, -1, 1e-12]), 0])

    def split(x: str, perm: tuple[int, ...]) -> str:
        return net.op("Transpose", [net.op("Reshape", [x, (rows, tokens, heads, size)]), perm])

    ids = net.input("ids", [rows, tokens], np.int32)
    table = net.weight("embeddings.words", [vocabulary, hidden], 0.5)
    places = net.weight("embeddings.places", [tokens, hidden], 0.5)
    x = net.op("Add", [net.op("Gather", [table, ids, 0, 0]), places])
    x = norm(net.op("Reshape", [x, (flat, hidden)]), "embeddings.norm")
    for i in range(layers):
        name = f"layer.{i}"
        q, k, v = (net.dense(x, f"{name}.{part}", hidden, hidden) for part in ("q", "k", "v"))
        q, v = split(q, (0, 2, 1, 3)), split(v, (0, 2, 1, 3))
        scores = net.op("BatchMatMul", [q, split(k, (0, 2, 1, 3)), False, True])
        weights = net.op("Softmax", [net.op("Muls", [scores, size**-0.5]), (-1,)])
        mixed = net.op(
            "Transpose", [net.op("BatchMatMul", [weights, v, False, False]), (0, 2, 1, 3)]
        )
        mixed = net.dense(net.op("Reshape", [mixed, (flat, hidden)]), f"{name}.mix", hidden, hidden)
        x = norm(net.op("Add", [x, mixed]), f"{name}.norm1")
        wide = net.op("GeLU", [net.dense(x, f"{name}.wide", hidden, 4 * hidden)])
        x = norm(
            net.op("Add", [x, net.dense(wide, f"{name}.narrow", 4 * hidden, hidden)]),
            f"{name}.norm2",
        )
    pooled = net.op("Tanh", [net.dense(x, "pooler", hidden, hidden)])
    return net.save(path, net.op("Reshape", [pooled, (rows, tokens, hidden)]))


def word_bag(path: Path, vocabulary: int = 1000, hidden: int = 256, labels: int = 64) -> Path:
    """Labels from the mean of any number of words, in any number of rows; all sizes are open.

    A word outside the vocabulary makes the engine fail in the middle of a run.
    """
    net = Network("word_bag")
    table = net.weight("words", [vocabulary, hidden], 1.0)
    words = net.op("Gather", [table, net.input("ids", [-1, -1], np.int32), 0, 0])
    x = net.op("GeLU", [net.dense(net.op("ReduceMean", [words, (1,), False]), "a", hidden, hidden)])
    return net.save(path, net.dense(x, "b", hidden, labels))


def telling(path: Path, rows: int = 1, hidden: int = 256, parts: int = 8) -> Path:
    """x of ones in, x @ w for each of some weights out, side by side; w0, w1, ... are zeros.

    Weights filled with v / hidden make all outputs v, so that a run tells with which it was made.
    """
    net = Network("telling")
    x = net.input("x", [rows, hidden])
    zeros = np.zeros((hidden, hidden), np.float32)
    names = [net._weight(f"w{part}", zeros) for part in range(parts)]
    products = [net.op("MatMul", [x, name, False, False]) for name in names]
    return net.save(path, net.op("Concat", [net.op("MakeTuple", products)], axis=1))


def equivalent_onnx(mindir: Path, path: Path) -> Path:
    """The same graph as an ONNX file, weights inside: what a user of a peer would have."""
    # a second of imports, of which the processes that only measure need nothing
    import onnx_ir as ir

    from mindspore_lite.graph.from_mindir import from_mindir
    from mindspore_lite.mindir.read import read_file

    ir.save(from_mindir(read_file(mindir)), path)
    return path
