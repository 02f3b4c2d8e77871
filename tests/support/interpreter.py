"""Runs records directly, as Python would: the meaning that a translated graph must have.

Arrays are storages: two names of one array see each other's changes, and loops are recursion.
Knows the few primitives that tests of control flow are made of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mindspore_lite.mindir import records as r


@dataclass(frozen=True)
class Function:
    """A graph with its first arguments."""

    name: str
    arguments: tuple[Any, ...] = ()


def _in_place(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    x += y
    return x


_COMPUTE: dict[str, Callable[..., Any]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Tanh": np.tanh,
    "Less": np.less,
    "Greater": np.greater,
    "ReduceSum": lambda x, axes: np.asarray(x.sum(), x.dtype),
    "InplaceAddExt": lambda x, y, *_: _in_place(x, y),
    "TensorMove": np.copy,
    "Load": lambda x, *_: x,
    "TransposeView": lambda x, *_: x.T,
    "MakeTuple": lambda *items: items,
    "TupleGetItem": lambda items, index: items[index],
    "Partial": lambda function, *arguments: Function(function.name, arguments),
    "Switch": lambda condition, yes, no: yes if condition else no,
}


class Interpreter:
    """One model; every run starts from the weights of the file."""

    def __init__(self, model: r.Model) -> None:
        self.graphs = {model.graph.name: model.graph, **model.functions}
        self.main = model.graph

    def run(self, *inputs: np.ndarray) -> list[np.ndarray]:
        """The outputs, flattened."""
        found = self._graph(self.main, [np.array(i) for i in inputs])
        return [np.array(v) for v in _flat(found)]

    def _graph(self, graph: r.Graph, arguments: Sequence[Any]) -> Any:
        env = {i.name: value for i, value in zip(graph.inputs, arguments, strict=True)}

        def held(name: str) -> Any:
            return env[name] if name in env else Function(name)

        for node in graph.nodes:
            if isinstance(node, r.Constant):
                value = node.value
                env[node.name] = np.array(value.numpy()) if isinstance(value, r.Tensor) else value
                continue
            given = [held(name) for name in node.inputs]
            if isinstance(node.target, r.Primitive):
                env[node.name] = _COMPUTE[node.target.op](*given)
            else:
                function = held(node.target.name)
                called = self.graphs[function.name]
                env[node.name] = self._graph(called, [*function.arguments, *given])
        (output,) = graph.outputs
        return held(output)


def _flat(value: Any) -> list[Any]:
    return [v for item in value for v in _flat(item)] if isinstance(value, tuple) else [value]
