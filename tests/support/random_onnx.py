"""Makes small random ONNX models out of a seed; every one is a model that ONNX Runtime runs.

A node is computed on its own as soon as it is made: what ONNX Runtime refuses is left out, and
everything after it knows the numbers that it works with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper, numpy_helper

OPSETS = (9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 21, 21, 22, 23, 24)
FLOATS = ("float32", "float32", "float32", "float16", "float64")
WHOLE = ("int64", "int64", "int32", "int8", "uint8")
_EXACT = ort.SessionOptions()
_EXACT.log_severity_level = 4
_EXACT.intra_op_num_threads = 1
_EXACT.inter_op_num_threads = 1
_EXACT.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL


class NotThisTime(Exception):
    """The node that was tried makes no sense here."""


@dataclass(frozen=True, eq=False)
class Val:
    """A value of the model and what it is when the model is run."""

    name: str
    array: np.ndarray
    const: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def rank(self) -> int:
        return self.array.ndim

    @property
    def dtype(self) -> str:
        return self.array.dtype.name


@dataclass
class Made:
    """A model with numbers to run it on."""

    model: onnx.ModelProto
    feeds: dict[str, np.ndarray]
    larger: dict[str, np.ndarray] = field(default_factory=dict)  # with other sizes of open dims


def onnx_type(array: np.ndarray) -> int:
    return int(helper.np_dtype_to_tensor_dtype(array.dtype))


def session(model: onnx.ModelProto) -> ort.InferenceSession:
    """One that computes every node as it stands."""
    return ort.InferenceSession(model.SerializeToString(), _EXACT, ["CPUExecutionProvider"])


class Builder:
    """A graph in the making; one with a parent is the body of a node."""

    def __init__(self, rng: Random, opset: int, parent: Builder | None = None) -> None:
        self.rng, self.opset, self.parent = rng, opset, parent
        self.numbers = np.random.default_rng(rng.randrange(2**32))
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.inputs: list[Val] = []
        self.pool: list[Val] = []
        self.used: list[Val] = []  # of the parent
        self.counter: list[int] = parent.counter if parent else [0]
        self.share: float = parent.share if parent else rng.choice([0.1, 0.35, 0.35, 0.9])

    # --- names and values -----------------------------------------------------------------------

    def fresh(self, stem: str = "v") -> str:
        """A new name; bodies of one level reuse each other's, as ONNX allows."""
        if self.parent and self.rng.random() < 0.5:
            taken = {v.name for b in self.lineage() for v in b.pool} | set(self.own_names())
            name = f"{stem}_{len(self.nodes)}"
            if name not in taken:
                return name
        self.counter[0] += 1
        return f"{stem}{self.counter[0]}"

    def lineage(self) -> list[Builder]:
        return [self, *(self.parent.lineage() if self.parent else [])]

    def own_names(self) -> list[str]:
        made = [name for node in self.nodes for name in node.output]
        return [*made, *(w.name for w in self.weights), *(v.name for v in self.inputs)]

    def numbers_of(self, dtype: str, shape: Sequence[int]) -> np.ndarray:
        kind = np.dtype(dtype)
        if kind.kind == "b":
            return self.numbers.random(shape) < 0.5
        if kind.kind == "f":
            return (self.numbers.standard_normal(shape) * 1.5).astype(kind)
        low = 0 if kind.kind == "u" else -4
        return self.numbers.integers(low, 7, shape).astype(kind)

    def weight(self, array: np.ndarray, stem: str = "w") -> Val:
        """A constant: a weight, or a Constant node."""
        array = np.asarray(array)
        name = self.fresh(stem)
        if self.rng.random() < 0.6:
            self.weights.append(numpy_helper.from_array(array, name))
        else:
            held = numpy_helper.from_array(array)
            self.nodes.append(helper.make_node("Constant", [], [name], value=held))
        return Val(name, array, const=True)

    def input(self, array: np.ndarray, stem: str = "x") -> Val:
        if self.parent:  # bodies have the inputs that their node gives them
            return self.weight(array)
        made = Val(self.fresh(stem), array)
        self.inputs.append(made)
        return made

    def setting(self, numbers: Any, dtype: str = "int64") -> Val:
        """Numbers that decide what a node does: constant, computed from constants, or given."""
        array = np.asarray(numbers, dtype)
        chance = self.rng.random()
        if chance < 0.65:
            return self.weight(array, "c")
        if chance < 0.8:
            zero = self.weight(np.zeros((), dtype), "zero")
            return self.op("Add", [self.weight(array, "c"), zero])[0]
        if chance < 0.9:
            return self.op("Identity", [self.weight(array, "c")])[0]
        return self.input(array, "given") if array.size else self.weight(array, "c")

    def shape(self, low: int = 0, high: int = 4) -> tuple[int, ...]:
        return tuple(self.rng.randint(1, 4) for _ in range(self.rng.randint(low, high)))

    def new(self, dtype: str, shape: Sequence[int] | None = None) -> Val:
        """A new input or weight."""
        array = self.numbers_of(dtype, self.shape() if shape is None else shape)
        made = self.weight(array) if self.rng.random() < self.share else self.input(array)
        self.pool.append(made)
        return made

    def some(self, dtypes: Sequence[str] = FLOATS, low: int = 0, high: int = 5) -> Val:
        """A value of one of the types with so many axes, rather an old one than a new one."""
        wanted = self.rng.choice(dtypes)
        for kinds in ((wanted,), dtypes):
            fits = [v for v in self.visible() if v.dtype in kinds and low <= v.rank <= high
                    and 0 < v.array.size < 5000]  # fmt: skip
            if fits and self.rng.random() < 0.75:
                return self.take(fits[-1] if self.rng.random() < 0.4 else self.rng.choice(fits))
        return self.new(wanted, self.shape(low, min(high, 4)))

    def visible(self) -> list[Val]:
        outer = self.parent.visible() if self.parent else []
        own = {v.name for v in self.pool}
        return [*(v for v in outer if v.name not in own), *self.pool]

    def take(self, value: Val) -> Val:
        """Note what comes from outside."""
        if self.parent and value not in self.pool and value not in self.inputs:
            self.used.append(value)
            self.parent.take(value)
        return value

    def like(self, x: Val) -> Val:
        """A value that broadcasts with x."""
        fits = [v for v in self.visible() if v.dtype == x.dtype and _broadcasts(v.shape, x.shape)]
        if fits and self.rng.random() < 0.5:
            return self.take(self.rng.choice(fits))
        shape = [1 if self.rng.random() < 0.3 else d for d in x.shape]
        return self.new(x.dtype, shape[self.rng.randint(0, len(shape)) :])

    # --- nodes ----------------------------------------------------------------------------------

    def op(
        self, op_type: str, inputs: Sequence[Val | None], count: int = 1, **attributes: Any
    ) -> list[Val]:
        """A node of its own; NotThisTime where ONNX Runtime does not take it."""
        attributes = {k: v for k, v in attributes.items() if v is not None}
        given = list(inputs)
        while given and given[-1] is None:
            given.pop()
        names = [self.fresh() for _ in range(count)]
        label = self.fresh("node") if self.rng.random() < 0.7 else ""
        node = helper.make_node(
            op_type, [v.name if v else "" for v in given], names, label, **attributes
        )
        arrays = computed(node, {v.name: v.array for v in given if v}, self.opset)
        self.nodes.append(node)
        made = [Val(name, a) for name, a in zip(names, arrays, strict=True)]
        self.pool.extend(v for v in made if isinstance(v.array, np.ndarray))
        return made

    def body(self, outputs: Sequence[Val], inputs: Sequence[Val] = ()) -> onnx.GraphProto:
        """This graph as the body of a node; its outputs have to be made in it."""
        return helper.make_graph(
            self.nodes,
            self.fresh("body"),
            [_info(v.name, v.array, v.shape if v.rank == 0 else None) for v in inputs],
            [_info(v.name, v.array, None) for v in outputs],
            self.weights,
        )

    def add(self, node: onnx.NodeProto, used: Sequence[Val]) -> None:
        """A node with bodies, which is computed with what they take from outside."""
        arrays = computed(node, {v.name: v.array for v in used}, self.opset)
        self.nodes.append(node)
        self.pool.extend(
            Val(name, a)
            for name, a in zip(node.output, arrays, strict=True)
            if name and isinstance(a, np.ndarray)
        )

    def attempt(self, make: Callable[[Builder], Any]) -> bool:
        """Let a function add nodes; all it did is taken back where it fails."""
        lists = (self.nodes, self.weights, self.inputs, self.pool)
        before = [len(items) for items in lists]
        try:
            make(self)
        except (NotThisTime, IndexError, ValueError, ZeroDivisionError):
            for items, count in zip(lists, before, strict=True):
                del items[count:]  # type: ignore[attr-defined]
            return False
        return True


def computed(node: onnx.NodeProto, given: dict[str, np.ndarray], opset: int) -> list[np.ndarray]:
    """What ONNX Runtime makes of one node."""
    graph = helper.make_graph(
        [node],
        "one",
        [_info(name, a, a.shape) for name, a in given.items()],
        [helper.make_empty_tensor_value_info(name) for name in node.output if name],
    )
    try:
        found: list[np.ndarray] = session(_model(graph, opset)).run(None, given)
    except Exception as exc:  # ONNX Runtime raises anything
        raise NotThisTime(str(exc)) from exc
    for array in found:
        if not isinstance(array, np.ndarray) or array.size > 20_000:
            raise NotThisTime("no tensor, or a large one")
        if array.dtype.kind == "f" and not (np.abs(array) < 1e4).all():
            raise NotThisTime("numbers that rounding would blow up")
    return found


def _model(graph: onnx.GraphProto, opset: int, old: bool = False) -> onnx.ModelProto:
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    version = 3 if old else {23: 11, 24: 12}.get(opset, 10)
    return helper.make_model(graph, opset_imports=opsets, ir_version=version)


def _info(name: str, array: np.ndarray, dims: Sequence[Any] | None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, onnx_type(array), dims)


def _broadcasts(shape: Sequence[int], other: Sequence[int]) -> bool:
    if len(shape) > len(other):
        return False
    return all(a in (1, b) for a, b in zip(shape[::-1], other[::-1], strict=False))


# --- whole models ---------------------------------------------------------------------------------


def random_model(
    seed: int, makers: Sequence[Callable[[Builder], Any]], weights: Sequence[int]
) -> Made:
    """The model of a seed, out of these kinds of nodes."""
    rng = Random(seed)
    b = Builder(rng, rng.choice(OPSETS))
    for _ in range(rng.randint(2, 11)):
        b.attempt(rng.choices(makers, weights)[0])
    while not b.nodes:
        b.attempt(rng.choices(makers, weights)[0])
    return finished(b)


def finished(b: Builder) -> Made:
    """The graph with some of its values as outputs and some dims left open."""
    rng = b.rng
    made = [v for v in b.pool if v not in b.inputs and not v.const]
    handed = [v for v in (*b.inputs, *b.pool) if v not in made]
    outputs = {v.name: v for v in rng.sample(made, min(len(made), rng.randint(1, 4)))}
    if made:
        outputs[made[-1].name] = made[-1]
    if handed and (not outputs or rng.random() < 0.1):
        value = rng.choice(handed)
        outputs[value.name] = value
    listed = list(outputs.values())
    rng.shuffle(listed)
    names, inputs = _open_names(b), []
    for v in b.inputs:
        dims = [
            names.get(d, d) if rng.random() < 0.9 else f"{v.name}_{i}"
            for i, d in enumerate(v.shape)
        ]
        inputs.append(_info(v.name, v.array, dims if names else v.shape))
    old = b.opset < 10 and rng.random() < 0.5  # weights stood among the inputs then
    if old:
        inputs += [_info(w.name, numpy_helper.to_array(w), w.dims) for w in b.weights]
    graph = helper.make_graph(
        b.nodes, "random", inputs, [_info(v.name, v.array, None) for v in listed], b.weights
    )
    feeds = {v.name: v.array for v in b.inputs}
    return Made(_model(graph, b.opset, old), feeds, _larger(b, names) if names else {})


def _open_names(b: Builder) -> dict[int, str]:
    """Which sizes have a name instead."""
    if b.rng.random() < 0.5:
        return {}
    return {size: f"n{size}" for size in (2, 3, 4) if b.rng.random() < 0.6}


def _larger(b: Builder, names: dict[int, str]) -> dict[str, np.ndarray]:
    """Inputs whose open dims have other sizes; many models will not take them."""
    sizes = {size: size + 1 for size in names}
    return {
        v.name: b.numbers_of(v.dtype, [sizes.get(d, d) for d in v.shape])
        if not v.name.startswith("given")
        else v.array
        for v in b.inputs
    }
