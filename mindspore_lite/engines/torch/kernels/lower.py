"""Lowers an onnx-ir graph to a torch FX graph of kernels.

The graph is walked with the shapes of a request. What follows from them and from constants is
computed at once on the host. Everything else becomes one FX node that calls a kernel, with plain
numbers for sizes. Such a graph is static: it can be compiled for these shapes, and captured. Where
a size depends on data, the node asks for it at run time (`to_numbers`) and the graph is dynamic: it
runs step by step. Without shapes all of it is lowered so.
"""

from __future__ import annotations

import functools
import hashlib
import keyword
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from operator import getitem
from typing import Any

import numpy as np
import onnx_ir as ir
import torch
from torch import fx
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
    UnsupportedFakeTensorException,
)
from torch.utils._pytree import tree_map

from mindspore_lite.core.boundary import engine_failure
from mindspore_lite.engines.torch.kernels import families  # noqa: F401 - fills the table
from mindspore_lite.engines.torch.kernels.code_text import forget_with
from mindspore_lite.engines.torch.kernels.precision import narrow, widen
from mindspore_lite.engines.torch.kernels.run_time import on_one_device, to_numbers
from mindspore_lite.engines.torch.kernels.table import KERNELS, Kernel, Layout
from mindspore_lite.engines.torch.kernels.types import of_numpy, to_numpy, torch_type
from mindspore_lite.errors import EngineError, LiteError, UnsupportedOpError
from mindspore_lite.passes.edit import is_op, tensor_of

_OPEN_SIZES = (
    DataDependentOutputException,
    DynamicOutputShapeException,
    UnsupportedFakeTensorException,
)
_LARGE_BYTES = 64 << 20  # what grows beyond by being computed beforehand is computed at run time
_ON_HOST = 1024  # elements of a constant that a dynamic graph keeps on the host: shapes, indices


@dataclass(frozen=True)
class Weight:
    """A parameter of the FX graph: a weight or constant of the model, as the kernels want it."""

    name: str  # of the value in the model, and a digest where it was computed here
    dtype: torch.dtype
    layout: Layout = ""
    on_host: bool = False


@dataclass
class Lowered:
    """A model as FX graph. Its parameters are empty until they are filled in to run it."""

    module: fx.GraphModule  # (inputs) -> tuple of outputs
    weights: dict[str, Weight]  # attribute of the module -> what it is
    constants: dict[str, torch.Tensor]  # values of those that are no weights that may change
    bodies: dict[str, Lowered]  # by the attribute of the module: the bodies of its nodes
    dynamic: list[str] = field(default_factory=list)  # why it is not static; empty when it is


@dataclass(frozen=True)
class Target:
    """What is lowered for."""

    device: torch.device
    half: torch.dtype | None = None  # float16 or bfloat16, where static graphs compute in it
    variable: frozenset[str] = frozenset()  # weights that may change: never computed with here

    @property
    def laid_out(self) -> bool:
        """Whether weights are laid out for a card."""
        return bool(self.device.type != "cpu")


@dataclass
class Known:
    """A value that is known now, on the host."""

    value: Any  # a tensor, or a list of tensors
    name: str
    computed: bool = True  # by a kernel, here: another lowering may find another value

    @functools.cached_property
    def unique_name(self) -> str:
        """A name under which there is no other value, whatever shapes a model is lowered for."""
        if not self.computed:
            return self.name
        array = np.ascontiguousarray(to_numpy(self.value)).reshape(-1)
        found = hashlib.blake2b(f"{array.dtype}{self.value.shape}".encode(), digest_size=8)
        found.update(array.view(np.uint8).data)
        return f"{self.name}#{found.hexdigest()}"


@dataclass
class Made:
    """A value that an FX node makes; `fake` has its shape and type, None if they are open."""

    node: fx.Node
    fake: Any
    weight: Weight | None = None  # where it is no more than a weight that may change


Held = Known | Made | None
Shapes = Sequence[Sequence[int]]


def lower(model: ir.Model, shapes: Shapes | None, target: Target) -> Lowered:
    """Lower a model for inputs of these shapes, or of any shapes.

    Raises:
        UnsupportedOpError: Operators without a kernel; all of them are named.
        EngineError: A node that cannot be computed with these shapes.
    """
    check_operators(model)
    with _unheard():
        found = Lowering(target).model(model.graph, shapes)
        if found.dynamic and target.half is not None:  # types are not known any more from there on
            found = Lowering(replace(target, half=None)).model(model.graph, shapes)
    return found


@contextmanager
def _unheard() -> Iterator[None]:
    """Keep torch from logging, with all its frames, what becomes an error of ours."""
    log = logging.getLogger(FakeTensorMode.__module__)
    own = logging.Filter("nothing")  # lets no record pass; one for each thread that is here
    log.addFilter(own)
    try:
        yield
    finally:
        log.removeFilter(own)


def check_operators(model: ir.Model) -> None:
    """Raise UnsupportedOpError with all operators that have no kernel."""
    missing: dict[str, str] = {}
    for node in model.graph.all_nodes():
        if is_op(node, *_CONTROL) or _is_constant(node):
            continue
        if (node.domain, node.op_type) not in KERNELS:
            op = f"{node.domain}::{node.op_type}".removeprefix("::")
            missing.setdefault(op, node.name or "?")
    if missing:
        rows = ", ".join(f"{op} (node {name!r})" for op, name in missing.items())
        raise UnsupportedOpError(
            f"the torch engine has no kernel for {rows}; use engine=onnxruntime on target 'cpu', "
            "or export the model with other operators"
        )


class Lowering:
    """One FX graph under construction: the main graph, or the body of a node."""

    def __init__(self, target: Target, outer: Lowering | None = None) -> None:
        self.target = target
        self.graph = fx.Graph()
        self.root = torch.nn.Module()
        self.mode = FakeTensorMode(allow_non_fake_inputs=True)
        self.values: dict[ir.Value, Held] = {}
        self.weights: dict[str, Weight] = {}
        self.constants: dict[str, torch.Tensor] = {} if outer is None else outer.constants
        self.bodies: dict[str, Lowered] = {}
        self.dynamic: list[str] = []
        self.outer = outer
        self.captured: dict[ir.Value, fx.Node] = {}  # values of outer graphs that a body uses
        self._nodes: dict[Weight, fx.Node] = {}

    # --- whole graphs ---

    def model(self, graph: ir.Graph, shapes: Shapes | None) -> Lowered:
        """Lower the main graph."""
        if shapes is None:
            self.dynamic.append("its sizes are open")
        for at, value in enumerate(graph.inputs):
            self.placeholder(value, None if shapes is None else shapes[at])
        self.nodes(graph)
        self.graph.output(tuple(self.result(value) for value in graph.outputs))
        return self.finished()

    def placeholder(self, value: ir.Value, shape: Sequence[int] | None) -> None:
        """Add an input."""
        node = self.graph.placeholder(_plain(value.name or "input"))
        fake = None
        if shape is not None and isinstance(value.type, ir.TensorType):
            with self.mode:
                fake = torch.empty(tuple(shape), dtype=torch_type(int(value.type.dtype)))
        self.values[value] = Made(node, fake)

    def nodes(self, graph: ir.Graph) -> None:
        """Lower every node."""
        for node in graph:
            if _is_constant(node):
                continue  # found by its users, under its own name
            with _naming(node):
                held = self.node(node)
            self.values.update(zip(node.outputs, held, strict=False))

    def node(self, node: ir.Node) -> Sequence[Held]:
        """Lower one node; what it makes."""
        if is_op(node, *_CONTROL):
            from mindspore_lite.engines.torch.kernels.control import (
                lowered,  # which lowers bodies with this
            )

            return lowered(self, node)
        row = KERNELS[node.domain, node.op_type]
        held = [None if value is None else self.held(value) for value in node.inputs]
        attributes = attributes_of(node, row)
        return self.called(row, held, attributes, [v.name or "" for v in node.outputs])

    def called(
        self, row: Kernel, held: Sequence[Held], attributes: dict[str, Any], names: Sequence[str]
    ) -> Sequence[Held]:
        """Compute a kernel now, if all is known, else let a node do it."""
        if "outputs" in row.told:
            attributes = attributes | {"outputs": len(names)}
        if not row.random and not any(isinstance(h, Made) for h in held):
            found = self._computed(row, held, attributes, names)
            if found is not None:
                return found
        known = _shape_of(row, held, attributes)
        if known is not None:
            return [Known(known, names[0])]
        return self._emitted(row, held, attributes, names)

    # --- values ---

    def held(self, value: ir.Value) -> Held:
        """What is known of a value: made before, a constant, or one of an outer graph."""
        if value in self.values:
            return self.values[value]
        tensor = tensor_of(value)
        if tensor is not None and value.name not in self.target.variable:
            found: Held = Known(of_numpy(tensor.numpy()), value.name or "", computed=False)
        elif tensor is not None:
            found = self._variable(value, tensor)
        elif self.outer is not None:
            found = self._captured(value)
        else:
            raise EngineError(f"value {value.name!r} is used before it is made")
        self.values[value] = found
        return found

    def _variable(self, value: ir.Value, tensor: ir.TensorProtocol) -> Made:
        """A weight that may change: like an input, but a parameter of the module."""
        weight = Weight(value.name or "", torch_type(int(tensor.dtype)))
        with self.mode:
            fake = torch.empty(tuple(tensor.shape.numpy()), dtype=weight.dtype)
        return Made(self.parameter(weight), fake, weight)

    def _captured(self, value: ir.Value) -> Held:
        assert self.outer is not None
        outside = self.outer.held(value)
        if isinstance(outside, Known):
            return outside
        node = self.graph.placeholder(_plain(value.name or "outer"))
        self.captured[value] = node
        return Made(node, None)

    def result(self, value: ir.Value) -> fx.Node:
        """The node of an output, in the type that the model declares."""
        held = self.held(value)
        node = self.tensor(held, None)
        declared = value.dtype
        if isinstance(held, Made) and isinstance(held.fake, torch.Tensor) and declared is not None:
            wanted = torch_type(int(declared))
            if held.fake.dtype != wanted:
                return self.graph.call_function(torch.Tensor.to, (node, wanted))
        return node

    def tensor(self, held: Held, weight: Weight | None) -> Any:
        """What an FX node gets for a value: another node, None, or a list of them."""
        if held is None or (isinstance(held, Known) and held.value is None):
            return None  # an input that is left out, or an optional that holds nothing
        if isinstance(held, Made):
            return held.node
        if isinstance(held.value, list):
            return [
                self.tensor(Known(one, f"{held.name}.{at}"), None)
                for at, one in enumerate(held.value)
            ]
        name = held.unique_name if weight is None else weight.name
        self.constants.setdefault(name, held.value)
        on_host = bool(self.dynamic) and held.value.numel() <= _ON_HOST
        floating = held.value.is_floating_point()
        return self.parameter(
            weight or Weight(name, held.value.dtype, "", on_host and not floating)
        )

    def parameter(self, weight: Weight) -> fx.Node:
        """The node of a parameter, which exists once however many use it."""
        if weight not in self._nodes:
            name = _plain(weight.name)
            while name in self.weights or hasattr(self.root, name):
                name += "_"
            self.weights[name] = weight
            setattr(self.root, name, torch.nn.Parameter(torch.empty(0), requires_grad=False))
            self._nodes[weight] = self.graph.get_attr(name)
        return self._nodes[weight]

    # --- kernels ---

    def _computed(
        self, row: Kernel, held: Sequence[Held], attributes: dict[str, Any], names: Sequence[str]
    ) -> list[Held] | None:
        """What a kernel gives for constants; None where that is better left to run time."""
        given = [h.value if isinstance(h, Known) else None for h in held]
        args = [
            to_numbers(value) if row.input_name(at) in row.numbers else value
            for at, value in enumerate(given)
        ]
        more = {"device": torch.device("cpu")} if "device" in row.told else {}
        fake = self._fake_results(row, list(map(self._faked, args)), attributes) or ()
        before = sum(v.nbytes for v in given if isinstance(v, torch.Tensor))
        after = sum(v.nbytes for v in fake if isinstance(v, torch.Tensor))
        if after > max(_LARGE_BYTES, 4 * before):
            return None
        with torch.inference_mode(False), torch.no_grad():
            made = _results(row.compute(*args, **attributes, **more))
        return [Known(value, name) for value, name in zip(made, names, strict=False)]

    def _emitted(
        self, row: Kernel, held: Sequence[Held], attributes: dict[str, Any], names: Sequence[str]
    ) -> Sequence[Held]:
        """An FX node that calls a kernel, and what it makes."""
        if "device" in row.told:
            attributes = attributes | {"device": self.target.device}
        held = list(self._in_half(row, held))
        args: list[Any] = []
        fakes: list[Any] | None = []
        for at, one in enumerate(held):
            arg, fake = self._argument(row, at, one, held, attributes)
            args.append(arg)
            if fakes is None or fake is _OPEN or (isinstance(one, Made) and one.fake is None):
                fakes = None
            else:
                fakes.append(fake)
        compute = row.compute
        if self.dynamic and self.target.device.type != "cpu":
            compute = on_one_device(row)
        keywords = {
            name: self.tensor(Known(value, f"{names[0]}.{name}"), None)
            if isinstance(value, torch.Tensor)
            else value
            for name, value in attributes.items()
        }
        if row.tables is not None and fakes is not None and not self.dynamic:
            found = row.tables(*fakes, **attributes)
            told = tree_map(lambda table: self._table(table, names[0]), found)
            keywords["tables"] = told
        node = self.graph.create_node(
            "call_function", compute, tuple(args), keywords, name=_plain(names[0])
        )
        found = None if fakes is None else self._fake_results(row, fakes, attributes)
        if found is None and not self.dynamic:
            self.dynamic.append(f"{row.op_type} {names[0]!r} has sizes that depend on data")
        if len(names) == 1:
            return [Made(node, None if found is None else found[0])]
        return [
            Made(
                self.graph.call_function(getitem, (node, at)), None if found is None else found[at]
            )
            for at in range(len(names))
        ]

    def _argument(
        self, row: Kernel, at: int, one: Held, held: Sequence[Held], attributes: Mapping[str, Any]
    ) -> tuple[Any, Any]:
        """What a node gets for an input, and what the same is for a run on fakes."""
        name = row.input_name(at)
        if one is None:
            return None, None
        if name in row.numbers:
            if isinstance(one, Known):
                numbers = to_numbers(one.value)
                return numbers, numbers
            if not self.dynamic:
                self.dynamic.append(f"{row.op_type} asks for {name!r}, which depends on data")
            return self.graph.call_function(to_numbers, (one.node,)), _OPEN
        if isinstance(one, Made):
            if one.weight is None:
                return one.node, one.fake
            found = self._as_wanted(row, name, one.weight, one.fake, held, attributes)
            return self.parameter(found), one.fake.to(found.dtype)
        if name == row.place and one.value.numel() == 1 and one.value.dim() <= 1:
            number = to_numbers(one.value)
            return number, number
        if row.scalars and (number := _scalar(one, held)) is not None:
            return number, number
        if not isinstance(one.value, torch.Tensor):
            return self.tensor(one, None), self._faked(one.value)
        now = Weight(one.unique_name, one.value.dtype)
        wanted = self._as_wanted(row, name, now, one.value, held, attributes)
        arg = self.tensor(one, None if wanted == now else wanted)
        return arg, self._faked(one.value).to(wanted.dtype)

    def _as_wanted(
        self,
        row: Kernel,
        name: str,
        weight: Weight,
        value: torch.Tensor,
        held: Sequence[Held],
        attributes: Mapping[str, Any],
    ) -> Weight:
        """A weight in the type and the layout that are best for an input of a kernel."""
        layout = row.layout(name, attributes) if self.target.laid_out else ""
        dtype = self._constant_type(row, value, held)
        return replace(weight, dtype=dtype, layout=layout if _fits(layout, value) else "")

    def _table(self, table: Any, name: str) -> Any:
        """A table that a kernel looks up, as a parameter."""
        if not isinstance(table, torch.Tensor):
            return table
        return self.tensor(Known(table, f"{name}.table"), None)

    def _fake_results(
        self, row: Kernel, fakes: list[Any], attributes: dict[str, Any]
    ) -> list[Any] | None:
        """Shapes and types of what a kernel makes; None where they depend on data."""
        if "device" in row.told:
            attributes = attributes | {"device": torch.device("cpu")}
        try:
            with self.mode:
                return _results(row.compute(*fakes, **attributes))
        except _OPEN_SIZES:
            return None

    def _faked(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self.mode.from_tensor(value)
        return value

    # --- half precision ---

    def _in_half(self, row: Kernel, held: Sequence[Held]) -> Iterator[Held]:
        """The inputs, cast where a static graph computes in a half precision."""
        half = self.target.half
        if half is None or self.dynamic:
            yield from held
            return
        types = {_float_type(h) for h in held if _computed(h)} & {half, torch.float32}
        for one in held:
            have = _float_type(one) if _computed(one) else None
            if not isinstance(one, Made) or have is None:
                yield one
            elif have is torch.float32 and row.half == "narrow":
                yield self._cast(one, narrow, half)
            elif have is half and (row.half == "wide" or (row.half == "alike" and len(types) > 1)):
                yield self._cast(one, widen)
            else:
                yield one

    def _cast(self, one: Made, how: Any, *more: Any) -> Made:
        with self.mode:
            fake = how(one.fake, *more)
        return Made(self.graph.call_function(how, (one.node, *more)), fake)

    def _constant_type(self, row: Kernel, value: torch.Tensor, held: Sequence[Held]) -> torch.dtype:
        """The type that a constant has among the other inputs."""
        half = self.target.half
        if half is None or self.dynamic or value.dtype is not torch.float32:
            return value.dtype
        if row.half == "narrow":
            return half
        types = {_float_type(h) for h in held if _computed(h)}
        return half if row.half == "alike" and half in types else value.dtype

    # --- the end ---

    def finished(self) -> Lowered:
        """The module, without unused nodes."""
        self.graph.eliminate_dead_code(lambda node: node.op in ("placeholder", "output"))
        used = {node.target for node in self.graph.nodes if node.op == "get_attr"}
        module = fx.GraphModule(self.root, self.graph)
        forget_with(module)
        weights = {name: weight for name, weight in self.weights.items() if name in used}
        for name in self.weights.keys() - weights.keys():
            if hasattr(module, name):
                delattr(module, name)
        return Lowered(module, weights, self.constants, self.bodies, self.dynamic)


_CONTROL = ("If", "Loop", "Scan", "SequenceMap")
_OPEN = object()  # a number that is known only at run time


def _is_constant(node: ir.Node) -> bool:
    """Whether a node is a tensor, and nothing to compute."""
    return is_op(node, "Constant") and tensor_of(node.outputs[0]) is not None


def attributes_of(node: ir.Node, row: Kernel) -> dict[str, Any]:
    """The attributes of a node as Python values, those that its kernel knows.

    Raises:
        UnsupportedOpError: It has one that the kernel does not know, and that is not ignorable.
    """
    found: dict[str, Any] = {}
    for name, attribute in node.attributes.items():
        if attribute.type is ir.AttributeType.TYPE_PROTO:
            continue  # of an optional: says what tensors say themselves
        if name not in row.attributes:
            raise UnsupportedOpError(
                f"attribute {name!r} of {node.op_type} is not known to the torch engine"
            )
        value = attribute.value
        if attribute.type is ir.AttributeType.TENSOR:
            value = of_numpy(value.numpy())
        elif attribute.type in _LISTS:
            value = list(value)
        found[name] = value
    return found


_OF_FAKES = ("Shape", "Size", "SequenceLength")
_LISTS = (ir.AttributeType.INTS, ir.AttributeType.FLOATS, ir.AttributeType.STRINGS)


def _shape_of(row: Kernel, held: Sequence[Held], attributes: Mapping[str, Any]) -> Any:
    """The result of Shape and its like, which need no more than a fake."""
    if row.op_type not in _OF_FAKES or row.domain or not isinstance(held[0], Made):
        return None
    fake = held[0].fake
    return None if fake is None else row.compute(fake, **attributes)


def _float_type(held: Held) -> torch.dtype | None:
    value = held.fake if isinstance(held, Made) else getattr(held, "value", None)
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        return value.dtype
    return None


_REAL = frozenset({torch.float32, torch.float16, torch.bfloat16})  # alike to a half precision


def _scalar(one: Known, held: Sequence[Held]) -> Any:
    """A constant of one element as a Python number, if no shape depends on it, nor the type."""
    value = one.value
    if not isinstance(value, torch.Tensor) or value.numel() != 1:
        return None
    others = [h.fake for h in held if isinstance(h, Made)]
    if not all(isinstance(o, torch.Tensor) and o.dim() >= value.dim() for o in others):
        return None
    alike = any(o.dtype == value.dtype or {o.dtype, value.dtype} <= _REAL for o in others)
    return value.item() if alike and value.dtype is not torch.bool else None


def _computed(held: Held) -> bool:
    """Whether a value is made at run time, and is no weight."""
    return isinstance(held, Made) and held.weight is None


def _fits(layout: Layout, value: torch.Tensor) -> bool:
    rank = value.dim()
    return rank == 2 if layout == "transposed" else rank in (4, 5)


def _results(found: Any) -> list[Any]:
    """What a kernel returned, as a list: a tuple are several results, a list is a sequence."""
    return list(found) if isinstance(found, tuple) else [found]


# what a name must not be: words of Python, and attributes that every module has already
_TAKEN = frozenset({*keyword.kwlist, *dir(fx.GraphModule(torch.nn.Module(), fx.Graph())), "self"})


def _plain(name: str) -> str:
    """A name as FX and Python want it."""
    found = re.sub(r"\W", "_", name, flags=re.ASCII)
    return found if found[:1].isalpha() and found not in _TAKEN else f"v{found}"


@contextmanager
def _naming(node: ir.Node) -> Iterator[None]:
    """Says of which node an error speaks."""
    where = f"node {node.name!r} ({node.op_type}): "
    try:
        yield
    except LiteError as exc:
        if str(exc).startswith("node "):
            raise
        raise exc.prefixed(where) from exc.__cause__
    except Exception as exc:  # torch raises anything
        raise engine_failure(f"{where}torch cannot compute it: {exc}", exc) from exc
