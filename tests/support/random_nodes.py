"""The kinds of nodes that random models are made of: the list, and what all kinds share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onnx import TensorProto
from support.random_onnx import FLOATS, WHOLE, Builder, NotThisTime, Val

Maker = Callable[[Builder], Any]
MAKERS: list[Maker] = []
WEIGHTS: list[int] = []
NUMERIC = (*FLOATS, *WHOLE)
ANY = (*NUMERIC, "bool")
CODES = {
    "float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16, "float64": TensorProto.DOUBLE,
    "int64": TensorProto.INT64, "int32": TensorProto.INT32, "int8": TensorProto.INT8,
    "uint8": TensorProto.UINT8, "bool": TensorProto.BOOL,
}  # fmt: skip


def maker(weight: int = 2) -> Callable[[Maker], Maker]:
    """Register a kind of nodes."""

    def add(fn: Maker) -> Maker:
        MAKERS.append(fn)
        WEIGHTS.append(weight)
        return fn

    return add


def some_axis(b: Builder, x: Val) -> int:
    if not x.rank:
        raise NotThisTime
    return b.rng.randrange(-x.rank, x.rank)


def some_axes(b: Builder, x: Val) -> list[int]:
    found = [i for i in range(x.rank) if b.rng.random() < 0.5]
    b.rng.shuffle(found)
    return [i - x.rank if b.rng.random() < 0.3 else i for i in found]


def maybe(b: Builder, value: Any, chance: float = 0.5) -> Any:
    return value if b.rng.random() < chance else None


def axes_op(b: Builder, name: str, x: Val, axes: list[int], since: int, **attributes: Any) -> Val:
    """A node whose axes were an attribute before an opset."""
    if b.opset < since:
        return b.op(name, [x], axes=axes, **attributes)[0]
    return b.op(name, [x, b.setting(axes)], **attributes)[0]
