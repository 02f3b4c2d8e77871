"""Builds small MindIR models for tests: as records, and as the bytes of a file.

net = Net()
x = net.input("x", (2, 3))
y = net.call("Add", x, net.weight("w", np.ones(3, np.float32)))
model = net.model(y)        # mindspore_lite.mindir.records.Model
data = encode(model)        # what MindSpore would have written
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mindspore_lite.core import dtypes
from mindspore_lite.mindir import mindir_pb2 as pb
from mindspore_lite.mindir import records as r
from mindspore_lite.mindir.write import pieces


def tensor(name: str, array: np.ndarray) -> r.Tensor:
    """An array as a weight or constant of a file."""
    dtype = dtypes.from_numpy(array.dtype)
    assert dtype is not None
    return r.Tensor(name, dtype, array.shape, memoryview(array.tobytes()))


def tensor_type(shape: Sequence[int] | None, dtype: Any = np.float32, **more: Any) -> r.TensorType:
    """The type of a tensor value."""
    found = dtypes.from_numpy(np.dtype(dtype))
    assert found is not None
    return r.TensorType(found, None if shape is None else tuple(shape), **more)


class Net:
    """One graph in the making; values are named, and calls take those names."""

    def __init__(self, name: str = "net") -> None:
        self.name = name
        self.inputs: list[r.Input] = []
        self.nodes: list[r.Node] = []
        self.weights: list[r.Tensor] = []
        self.count = 0

    def input(
        self,
        name: str,
        shape: Sequence[int] | None = (),
        dtype: Any = np.float32,
        *,
        type: r.Type | None = None,
        given_name: str = "",
        **more: Any,
    ) -> str:
        """A graph input; its type is a tensor's unless said otherwise."""
        full = f"{self.name}:{name}"
        kind = type if type is not None else tensor_type(shape, dtype, **more)
        self.inputs.append(r.Input(full, kind, given_name))
        return full

    def weight(self, name: str, array: np.ndarray) -> str:
        """A parameter of the model."""
        full = f"{self.name}:{name}"
        self.weights.append(tensor(full, array))
        return full

    def constant(self, value: Any) -> str:
        """A constant; arrays become tensors, wherever they stand in a tuple."""
        name = f"const_{self.name}_{self._next()}"
        self.nodes.append(r.Constant(name, _plain(value)))
        return name

    def call(
        self,
        target: str | r.GraphRef | r.ValueRef,
        *inputs: str,
        type: r.Type | None = None,
        scope: str = "",
        **attributes: Any,
    ) -> str:
        """A node; a text as target is a primitive, with the given attributes."""
        name = f"{self.name}:node:{self._next()}"
        if isinstance(target, str):
            held = {key: _plain(value) for key, value in attributes.items()}
            target = r.Primitive(target, held)
        self.nodes.append(r.Call(name, target, inputs, type, scope))
        return name

    def tuple(self, *inputs: str) -> str:
        """Several values as one."""
        return self.call("MakeTuple", *inputs)

    def monad(self) -> str:
        """The token that starts a chain of effects."""
        return self.constant(r.Monad.MEMORY)

    def graph(self, *outputs: str) -> r.Graph:
        """What was built, returning these values."""
        return r.Graph(
            self.name, tuple(self.inputs), tuple(self.nodes), outputs, tuple(self.weights)
        )

    def model(self, *outputs: str, functions: Sequence[r.Graph] = (), **more: Any) -> r.Model:
        """A whole file with this graph as the main one."""
        about = {"producer": "MindSpore", "producer_version": "2.10.0", "mind_ir_version": 3}
        return r.Model(self.graph(*outputs), {g.name: g for g in functions}, **{**about, **more})

    def _next(self) -> int:
        self.count += 1
        return self.count


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return tensor("value0", value)
    if isinstance(value, tuple | list):
        return type(value)(_plain(v) for v in value)
    return value


# --- bytes ------------------------------------------------------------------------------------


def encode(model: r.Model) -> bytes:
    """The bytes of a file with these records."""
    return b"".join(pieces(replace(model, ir_version=model.ir_version or "1.1")))


def to_proto(model: r.Model) -> pb.Model:
    """The records as a protobuf message, to be changed before it is written."""
    return pb.Model.FromString(encode(model))
