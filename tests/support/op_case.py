"""One row of the op tests, and how it becomes a one-op model in each form that files have.

    Case("BiasAdd", [(2, 3, 4, 4), (3,)], lambda x, b: x + b.reshape(3, 1, 1), {"data_format": 0})

The inputs stand in the order of the primitive's signature: a shape is a random float32 tensor, an
array a tensor that is given at run time, K(...) a constant of the file, W(...) a weight, S(...) a
Python number known only at run time, T(...) a tuple of any of those. `wants` receives all but the
constants. `init` holds the init arguments in the order of the signature, as MindIR 2 and newer
write them (enumerations as numbers); they are tried as trailing inputs and as attributes.
`attributes` holds what every version keeps as an attribute.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from support.mindir_builder import Net, tensor_type

from mindspore_lite.mindir import records as r

FORMATS = {0: "NCHW", 1: "NHWC", 14: "NCDHW"}
PAD_MODES = {0: "pad", 1: "same", 2: "valid"}


@dataclass(frozen=True)
class K:
    """A constant of the file."""

    value: Any


@dataclass(frozen=True, eq=False)
class W:
    """A weight of the model."""

    array: np.ndarray


@dataclass(frozen=True)
class S:
    """A Python number that is given at run time."""

    value: int | float | bool


class T(tuple[Any, ...]):
    """A tuple of inputs, made by MakeTuple."""

    __slots__ = ()

    def __new__(cls, *items: Any) -> T:
        return super().__new__(cls, items)


@dataclass(frozen=True, eq=False)
class Case:
    """One row."""

    primitive: str
    inputs: Sequence[Any]
    wants: Callable[..., Any]
    init: Mapping[str, Any] = field(default_factory=dict)
    attributes: Mapping[str, Any] = field(default_factory=dict)
    pick: int | None = None  # element of a result that is a tuple
    untyped: bool = True  # also without declared types; False where the op cannot know its type
    dynamic: bool = False  # also with every dim of the inputs unknown
    loose: float = 1.0  # factor on the tolerance

    def forms(self) -> Iterator[tuple[str, Form]]:
        """The ways in which a file may hold this row."""
        as_attributes = ["inputs", "attributes"] if self.init else ["inputs"]
        for init in as_attributes:
            for typed in [True, False] if self.untyped else [True]:
                for dynamic in [False, True] if self.dynamic else [False]:
                    words = [init, "typed" if typed else "untyped", "dynamic" if dynamic else ""]
                    name = "-".join(word for word in words if word)
                    yield name, Form(self, init == "attributes", typed, dynamic)

    def wanted(self) -> list[np.ndarray]:
        """The outputs that the model must have."""
        given = [self.given(i) for i in self.tensors if not isinstance(i, K)]
        with np.errstate(all="ignore"):
            found = self.wants(*given)
        return [np.asarray(f) for f in (found if isinstance(found, tuple) else (found,))]

    @functools.cached_property
    def tensors(self) -> list[Any]:
        """The inputs, shapes replaced by random numbers that are the same in every run."""
        rng = np.random.default_rng(sum(self.primitive.encode()))
        return [_filled(i, rng) for i in self.inputs]

    def given(self, value: Any) -> Any:
        """An input as `wants` sees it."""
        if isinstance(value, T):
            return [self.given(v) for v in value if not isinstance(v, K)]
        if isinstance(value, W):
            return value.array
        return value.value if isinstance(value, S) else value


@dataclass(frozen=True, eq=False)
class Form:
    """One way of writing a row into a file."""

    case: Case
    as_attributes: bool
    typed: bool
    dynamic: bool

    def build(self) -> tuple[r.Model, list[np.ndarray]]:
        """The model, and the arrays to run it with."""
        net, feeds = Net(), []  # type: tuple[Net, list[np.ndarray]]
        names = [self._name(net, value, feeds) for value in self.case.tensors]
        attributes = dict(self.case.attributes)
        for key, value in self.case.init.items():
            if self.as_attributes:
                attributes.update(dict([as_attribute(key, value)]))
            else:
                names.append(net.constant(value))
        made = net.call(
            self.case.primitive, *names, type=self._type(), scope="Default/op", **attributes
        )
        if self.case.pick is not None:
            made = net.call("TupleGetItem", made, net.constant(self.case.pick))
        return net.model(made), feeds

    def _name(self, net: Net, value: Any, feeds: list[np.ndarray]) -> str:
        if isinstance(value, K):
            return net.constant(value.value)
        if isinstance(value, W):
            return net.weight(f"weight{len(net.weights)}", value.array)
        if isinstance(value, T):
            return net.tuple(*[self._name(net, v, feeds) for v in value])
        if isinstance(value, S):
            types = {bool: np.bool_, int: np.int64, float: np.float32}
            value = np.asarray(value.value, types[type(value.value)])
        shape = [-1] * value.ndim if self.dynamic else value.shape
        feeds.append(value)
        return net.input(f"x{len(feeds)}", shape, value.dtype)

    def _type(self) -> r.Type | None:
        if not self.typed:
            return None
        wanted = self.case.wanted()
        shapes = [[-1] * w.ndim if self.dynamic else w.shape for w in wanted]
        types = [tensor_type(s, w.dtype) for s, w in zip(shapes, wanted, strict=True)]
        if self.case.pick is not None:
            return r.SequenceType((r.OtherType("NONE"),) * self.case.pick + tuple(types))
        return types[0] if len(types) == 1 else r.SequenceType(tuple(types))


def as_attribute(key: str, value: Any) -> tuple[str, Any]:
    """Spec 2.4: attributes keep the words, and data_format is called format."""
    if key == "data_format":
        return "format", FORMATS.get(value, value)
    if key == "pad_mode":
        return key, PAD_MODES[value].upper()
    return key, value


def _filled(value: Any, rng: np.random.Generator) -> Any:
    if isinstance(value, T):
        return T(*[_filled(v, rng) for v in value])
    if isinstance(value, tuple):
        return rng.uniform(-2, 2, value).astype(np.float32)
    return value


def numbers(
    *shape: int, low: float = -2, high: float = 2, dtype: Any = np.float32, seed: int = 0
) -> np.ndarray:
    """Random numbers within bounds, the same in every run."""
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind in "iu":
        return rng.integers(int(low), int(high), shape).astype(dtype)
    return rng.uniform(low, high, shape).astype(dtype)


def truths(*shape: int, seed: int = 0) -> np.ndarray:
    """Random truth values."""
    return np.random.default_rng(seed).random(shape) < 0.5
