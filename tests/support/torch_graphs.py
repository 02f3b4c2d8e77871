"""Small models for tests of the torch engine, as Sources, and programs made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from onnx import TensorProto, helper, numpy_helper
from support.snapshots import snapshot

from mindspore_lite.engines.base import ModelSource, Options
from mindspore_lite.engines.torch.engine import TorchEngine, _prepared
from mindspore_lite.engines.torch.program import Program

SIDE = 16  # a square weight of it is large enough to be stored outside of the graph
FLOAT = TensorProto.FLOAT
Dims = Sequence[Any]


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Dims],
    outputs: Mapping[str, Dims],
    weights: Mapping[str, np.ndarray] | None = None,
    kinds: Mapping[str, int] | None = None,
) -> onnx.ModelProto:
    """A model whose inputs and outputs are float32 unless `kinds` says otherwise."""

    def ends(dims: Mapping[str, Dims]) -> list[onnx.ValueInfoProto]:
        found = dict(kinds or {})
        return [
            helper.make_tensor_value_info(n, found.get(n, FLOAT), list(d)) for n, d in dims.items()
        ]

    tensors = [numpy_helper.from_array(array, name) for name, array in (weights or {}).items()]
    graph = helper.make_graph(list(nodes), "graph", ends(inputs), ends(outputs), tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def dense(factor: float = 1.0, rows: Any = "n") -> onnx.ModelProto:
    """y = relu(x @ w + b), every row for itself; w is factor times a fixed matrix."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["product"]),
        helper.make_node("Add", ["product", "b"], ["sum"]),
        helper.make_node("Relu", ["sum"], ["y"]),
    ]
    ends = {"x": [rows, SIDE]}, {"y": [rows, SIDE]}
    return model(nodes, *ends, {"w": weight(factor), "b": np.ones(SIDE, np.float32)})


def weight(factor: float = 1.0) -> np.ndarray:
    """The weight of `dense`."""
    return np.random.default_rng(0).random((SIDE, SIDE), np.float32) * np.float32(factor)


def computed(x: np.ndarray, factor: float = 1.0) -> np.ndarray:
    """What `dense` gives."""
    return np.maximum(x @ weight(factor) + 1, 0)


def mixing() -> onnx.ModelProto:
    """The first half of all elements, and twice the second: a row depends on where it stands."""
    nodes = [
        helper.make_node("Reshape", ["x", "halves"], ["two"]),
        helper.make_node("Mul", ["two", "factors"], ["more"]),
        helper.make_node("Reshape", ["more", "rows"], ["y"]),
    ]
    numbers = {
        "halves": np.array([2, -1]),
        "rows": np.array([-1, SIDE]),
        "factors": np.array([[1], [2]], np.float32),
    }
    return model(nodes, {"x": ["n", SIDE]}, {"y": ["n", SIDE]}, numbers)


def reshaping() -> onnx.ModelProto:
    """x with the dims that another input says: they depend on data."""
    nodes = [helper.make_node("Reshape", ["x", "dims"], ["y"])]
    ends = {"x": ["n"], "dims": [2]}, {"y": ["a", "b"]}
    return model(nodes, *ends, kinds={"dims": TensorProto.INT64})


def endless() -> onnx.ModelProto:
    """A loop that goes on as long as an input says, which never changes."""
    body = model(
        [
            helper.make_node("Identity", ["goes_on"], ["still"]),
            helper.make_node("Neg", ["v"], ["w"]),
        ],
        {"turn": [], "goes_on": [], "v": ["n"]},
        {"still": [], "w": ["n"]},
        kinds={"turn": TensorProto.INT64, "goes_on": TensorProto.BOOL, "still": TensorProto.BOOL},
    ).graph
    nodes = [helper.make_node("Loop", ["", "c", "x"], ["y"], body=body)]
    return model(nodes, {"x": ["n"], "c": []}, {"y": ["n"]}, kinds={"c": TensorProto.BOOL})


class LateStop:
    """A Stop that is fired when it was asked for the fourth time."""

    asked = 0

    @property
    def fired(self) -> bool:
        self.asked += 1
        return self.asked > 3


def rows(count: int, seed: int = 1) -> np.ndarray:
    """An input of `dense`."""
    return np.random.default_rng(seed).random((count, SIDE), np.float32)


def source(
    folder: Path, made: onnx.ModelProto, variable: Sequence[tuple[str, str]] = (), **more: Any
) -> ModelSource:
    """A ModelSource for a model, written to a folder."""
    (folder / "model.onnx").write_bytes(made.SerializeToString())
    return written(folder, variable, **more)


def written(folder: Path, variable: Sequence[tuple[str, str]] = (), **more: Any) -> ModelSource:
    """A ModelSource for the model that `source` wrote, maybe in another process."""
    path = folder / "model.onnx"
    return ModelSource(snapshot(path), "", lambda: ir.load(path), variable=tuple(variable), **more)


def loaded(folder: Path, made: onnx.ModelProto, **options: Any) -> Any:
    """A session of the torch engine on the host."""
    return TorchEngine().load(source(folder, made), Options(**options))


def program(made: onnx.ModelProto, card: Any = None, **options: Any) -> Program:
    """A model for the host, or for a card."""
    prepared, skeleton = _prepared(ModelSource(snapshot(), "", lambda: ir.from_proto(made)))
    return Program(prepared, skeleton, (), Options(**options), card)
