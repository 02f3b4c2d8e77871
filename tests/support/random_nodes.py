"""The kinds of nodes that random models are made of: functions that add some to a Builder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper
from support.random_onnx import FLOATS, WHOLE, Builder, Made, NotThisTime, Val, random_model

Maker = Callable[[Builder], Any]
MAKERS: list[Maker] = []
WEIGHTS: list[int] = []
NUMERIC = (*FLOATS, *WHOLE)
ANY = (*NUMERIC, "bool")
_CODES = {
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


def model_of(seed: int) -> Made:
    """The model of a seed."""
    return random_model(seed, MAKERS, WEIGHTS)


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


# --- elementwise ----------------------------------------------------------------------------------


@maker(6)
def unary(b: Builder) -> None:
    names = ["Abs", "Neg", "Relu", "Sigmoid", "Tanh", "Exp", "Erf", "Sqrt", "Sign", "Floor", "Ceil",
             "Softplus", "Softsign", "Identity", "Round", "Reciprocal", "Log", "Sin", "Cos", "Tan",
             "Sinh", "Cosh", "Asin", "Acos", "Atan", "Asinh", "Acosh", "Atanh", "IsNaN", "Mish",
             "HardSwish"]  # fmt: skip
    name = b.rng.choice(names)
    x = b.some(NUMERIC if name in ("Abs", "Neg", "Relu", "Sign", "Identity") else FLOATS)
    b.op(name, [x])


@maker(4)
def activation(b: Builder) -> None:
    x, number = b.some(), b.rng.choice([0.1, 0.5, 1.0, 1.7, 0.2])
    name = b.rng.choice(["Elu", "Selu", "LeakyRelu", "HardSigmoid", "ThresholdedRelu", "Celu",
                         "Gelu", "Shrink", "Swish", "PRelu"])  # fmt: skip
    if name == "PRelu":
        b.op(name, [x, b.like(x)])
    elif name == "Gelu":
        b.op(name, [x], approximate=b.rng.choice(["none", "tanh", None]))
    elif name == "HardSigmoid":
        b.op(name, [x], alpha=b.rng.choice([None, 1 / 6, 0.3]), beta=b.rng.choice([None, 0.4]))
    elif name == "Shrink":
        b.op(name, [x], lambd=maybe(b, number), bias=maybe(b, b.rng.choice([0.0, number, 0.3])))
    elif name == "Selu":
        b.op(name, [x], alpha=maybe(b, number), gamma=maybe(b, 1.3))
    else:
        b.op(name, [x], alpha=maybe(b, number))


@maker(8)
def binary(b: Builder) -> None:
    name = b.rng.choice(["Add", "Sub", "Mul", "Div", "Add", "Mul", "Pow", "Mod", "Max", "Min"])
    x = b.some(NUMERIC)
    y = b.like(x)
    pair = [x, y] if b.rng.random() < 0.6 else [y, x]
    if name in ("Div", "Mod") and x.dtype not in FLOATS:
        pair[1] = b.weight(
            np.asarray(
                b.rng.choice([1, 2, 3, -2, -3] if x.dtype != "uint8" else [1, 2, 3]), x.dtype
            )
        )
    if name == "Pow":
        exponent = b.rng.choice([2, 3, 0.5, 1, 0, -1])
        kind = b.rng.choice([x.dtype, "float32", "int64"])
        pair = [x, b.setting(np.asarray(exponent), kind)]
    b.op(
        name,
        pair,
        fmod=1 if name == "Mod" and (x.dtype in FLOATS or b.rng.random() < 0.4) else None,
    )


@maker(3)
def neutral(b: Builder) -> None:
    """Additions of zero and products with one, of every rank."""
    x = b.some(NUMERIC)
    name, number = b.rng.choice([("Add", 0), ("Sub", 0), ("Mul", 1), ("Div", 1), ("Mul", 0),
                                 ("Sub", 1), ("Pow", 1)])  # fmt: skip
    shape = b.rng.choice([(), (1,), (1, 1), (1, 1, 1), (1,) * (x.rank + 1), x.shape])
    y = b.weight(np.full(shape, number, x.dtype))
    b.op(name, [x, y] if b.rng.random() < 0.6 else [y, x])


@maker(3)
def variadic(b: Builder) -> None:
    x = b.some(NUMERIC if b.rng.random() < 0.3 else FLOATS)
    others = [b.like(x) for _ in range(b.rng.randint(0, 3))]
    b.op(b.rng.choice(["Sum", "Mean", "Max", "Min"]), [x, *others])


@maker(3)
def comparison(b: Builder) -> None:
    name = b.rng.choice(["Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual"])
    x = b.some(NUMERIC)
    b.op(name, [x, b.like(x)])


@maker(3)
def logic(b: Builder) -> None:
    x = b.some(("bool",))
    name = b.rng.choice(["And", "Or", "Xor", "Not", "Where", "Where", "Where"])
    if name == "Not":
        b.op(name, [x])
    elif name == "Where":
        y = b.some(ANY)
        b.op(name, [x, y, b.like(y)])
    else:
        b.op(name, [x, b.like(x)])


@maker(2)
def bits(b: Builder) -> None:
    name = b.rng.choice(["BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot", "BitShift"])
    x = b.some(("uint8",) if name == "BitShift" else WHOLE)
    if name == "BitwiseNot":
        b.op(name, [x])
    else:
        direction = b.rng.choice(["LEFT", "RIGHT"]) if name == "BitShift" else None
        b.op(name, [x, b.like(x)], direction=direction)


@maker(4)
def clip(b: Builder) -> None:
    x = b.some(NUMERIC)
    low, high = b.rng.choice([(0, 6), (-1, 1), (0, None), (None, 3), (None, None), (2, 1)])
    if x.dtype == "uint8" and low is not None:
        low = max(low, 0)
    if b.opset < 11:
        low, high = (None if v is None else float(v) for v in (low, high))
        b.op("Clip", [x], min=low, max=high)
        return
    b.op("Clip", [x, *(None if v is None else b.setting(v, x.dtype) for v in (low, high))])


@maker(4)
def cast(b: Builder) -> None:
    x = b.some(ANY)
    for _ in range(b.rng.randint(1, 3)):
        kinds = ANY if x.dtype not in FLOATS else (*FLOATS, "int64", "int32", "bool")
        (x,) = b.op("Cast", [x], to=_CODES[b.rng.choice(kinds)])


# --- shape ----------------------------------------------------------------------------------------


@maker(6)
def transpose(b: Builder) -> None:
    x = b.some(ANY, 1)
    for _ in range(b.rng.randint(1, 3)):
        perm = list(range(x.rank))
        b.rng.shuffle(perm)
        (x,) = b.op("Transpose", [x], perm=maybe(b, perm, 0.85))
        if b.rng.random() < 0.5 and x.dtype in FLOATS:
            name = b.rng.choice(["Relu", "Mul", "Add", "Sigmoid", "Clip"])
            if name in ("Mul", "Add"):
                (x,) = b.op(name, [x, b.rng.choice([b.like(x), x])])
            else:
                (x,) = b.op(name, [x])


@maker(3)
def transposed_and_back(b: Builder) -> None:
    x = b.some(FLOATS, 2)
    perm = list(range(x.rank))
    b.rng.shuffle(perm)
    inverse = [perm.index(i) for i in range(x.rank)]
    (y,) = b.op("Transpose", [x], perm=perm)
    for _ in range(b.rng.randint(0, 3)):
        name = b.rng.choice(["Relu", "Sigmoid", "Add", "Mul", "Max", "Where"])
        number = b.weight(b.numbers_of(x.dtype, b.rng.choice([(), (1,), (1, 1)])))
        (other,) = b.op("Transpose", [b.some((x.dtype,), x.rank, x.rank)], perm=perm)
        second = b.rng.choice([number, other, y])
        if name == "Where":
            (y,) = b.op(name, [b.op("Greater", [y, number])[0], y, second])
        else:
            (y,) = b.op(name, [y] if name in ("Relu", "Sigmoid") else [y, second])
    b.op("Transpose", [y], perm=inverse)


@maker(6)
def reshape(b: Builder) -> None:
    x = b.some(ANY)
    for _ in range(b.rng.randint(1, 2)):
        (x,) = b.op("Reshape", [x, _target(b, x)])


def _target(b: Builder, x: Val) -> Val:
    """A shape of as many elements, as exporters write them."""
    factors, left = [], x.array.size
    while left > 1 and len(factors) < 3:
        factor = b.rng.choice([d for d in range(1, left + 1) if left % d == 0])
        factors.append(factor)
        left //= factor
    factors.append(left)
    if b.rng.random() < 0.3:
        factors = list(x.shape)
    if factors and b.rng.random() < 0.4:
        factors[b.rng.randrange(len(factors))] = -1
    if b.rng.random() < 0.5 and b.opset >= 10 and x.rank:
        parts = []
        (sizes,) = b.op("Shape", [x])
        for at, factor in enumerate(factors):
            if at < x.rank and x.shape[at] == factor:
                (one,) = b.op("Gather", [sizes, b.weight(np.asarray([at]))], axis=0)
                parts.append(one)
            else:
                parts.append(b.weight(np.asarray([factor])))
        if not parts:
            return b.weight(np.asarray([], np.int64))
        return b.op("Concat", parts, axis=0)[0]
    zeros = [0 if at < x.rank and x.shape[at] == f and b.rng.random() < 0.4 else f
             for at, f in enumerate(factors)]  # fmt: skip
    return b.setting(zeros)


def axes_op(b: Builder, name: str, x: Val, axes: list[int], since: int, **attributes: Any) -> Val:
    """A node whose axes were an attribute before an opset."""
    if b.opset < since:
        return b.op(name, [x], axes=axes, **attributes)[0]
    return b.op(name, [x, b.setting(axes)], **attributes)[0]


@maker(3)
def squeeze(b: Builder) -> None:
    x = b.some(ANY)
    if b.rng.random() < 0.5:
        rank = x.rank + 2
        axes = b.rng.sample(range(rank), 2)
        axes = [a - rank if b.rng.random() < 0.3 else a for a in axes]
        x = axes_op(b, "Unsqueeze", x, axes, 13)
    if b.rng.random() < 0.2:
        b.op("Squeeze", [x])
        return
    ones = [i for i, d in enumerate(x.shape) if d == 1]
    axes_op(b, "Squeeze", x, b.rng.sample(ones, b.rng.randint(0, len(ones))) or ones, 13)


@maker(2)
def flatten(b: Builder) -> None:
    x = b.some(ANY)
    b.op("Flatten", [x], axis=maybe(b, b.rng.randint(-x.rank if b.opset > 10 else 0, x.rank), 0.8))


@maker(3)
def expand(b: Builder) -> None:
    x = b.some(ANY)
    if b.rng.random() < 0.4:
        b.op("Tile", [x, b.setting([b.rng.randint(1, 2) for _ in x.shape])])
        return
    shape = [b.rng.randint(1, 3) if d == 1 else b.rng.choice([1, d]) for d in x.shape]
    if b.rng.random() < 0.3:
        shape = [b.rng.randint(1, 2), *shape]
    if b.rng.random() < 0.3:
        (sizes,) = b.op("Shape", [b.like(x)])
        b.op("Expand", [x, sizes])
        return
    b.op("Expand", [x, b.setting(shape[b.rng.randint(0, 1) :])])


@maker(4)
def concat(b: Builder) -> None:
    x = b.some(ANY, 1)
    axis = some_axis(b, x)
    parts = [x]
    for _ in range(b.rng.randint(0, 2)):
        shape = list(x.shape)
        shape[axis] = b.rng.randint(1, 3)
        same = [v for v in b.visible() if v.dtype == x.dtype and v.shape == tuple(shape)]
        parts.append(b.take(b.rng.choice(same)) if same else b.new(x.dtype, shape))
    b.rng.shuffle(parts)
    b.op("Concat", parts, axis=axis)


@maker(3)
def split(b: Builder) -> None:
    x = b.some(NUMERIC, 1)
    axis = some_axis(b, x)
    size = x.shape[axis]
    count = b.rng.randint(1, min(size, 3))
    cuts = sorted(b.rng.sample(range(1, size), count - 1))
    sizes = [hi - lo for lo, hi in zip([0, *cuts], [*cuts, size], strict=True)]
    if b.rng.random() < 0.5:
        more = count if b.opset >= 18 else None
        b.op("Split", [x], count, axis=axis, num_outputs=more)
    elif b.opset < 13:
        b.op("Split", [x], count, axis=axis, split=sizes)
    else:
        b.op("Split", [x, b.setting(sizes)], count, axis=axis)


@maker(5)
def slice_(b: Builder) -> None:
    x = b.some(ANY, 1)
    axes = some_axes(b, x) or [0]
    starts, ends, steps = [], [], []
    for axis in axes:
        size = x.shape[axis]
        step = b.rng.choice([1, 1, 1, 2, -1, -2]) if b.opset >= 10 else 1
        far = b.rng.choice([size, 2**31 - 1, 2**63 - 1, size + 3])
        if step > 0:
            starts.append(b.rng.choice([0, 0, b.rng.randint(-size, size), -size - 2]))
            ends.append(b.rng.choice([far, far, b.rng.randint(-size, size)]))
        else:
            starts.append(b.rng.choice([far, -1, b.rng.randint(-size, size - 1)]))
            ends.append(
                b.rng.choice([-(2**31), -(2**63) + 1, -size - 1, b.rng.randint(-size, size)])
            )
        steps.append(step)
    if b.opset < 10:
        b.op("Slice", [x], starts=starts, ends=ends, axes=axes)
        return
    plain = axes == list(range(len(axes)))
    given = [b.setting(starts), b.setting(ends)]
    given += [None if plain and b.rng.random() < 0.5 else b.setting(axes)]  # type: ignore[list-item]
    if any(s != 1 for s in steps) or b.rng.random() < 0.3:
        given.append(b.setting(steps))
    b.op("Slice", [x, *given])


@maker(5)
def gather(b: Builder) -> None:
    x = b.some(ANY, 1)
    axis = some_axis(b, x)
    size, kind = x.shape[axis], b.rng.choice(["int64", "int64", "int32"])
    low = -size if b.rng.random() < 0.4 and b.opset >= 11 else 0
    name = b.rng.choice(["Gather", "Gather", "GatherElements", "GatherND", "ScatterElements",
                         "ScatterND"])  # fmt: skip
    if name == "Gather":
        at = b.numbers.integers(low, size, b.shape(0, 2))
        b.op(name, [x, b.setting(at, kind)], axis=axis)
    elif name in ("GatherElements", "ScatterElements"):
        shape = [b.rng.randint(1, d) for d in x.shape]
        if name == "ScatterElements":  # each place once, as the order of writing is open
            shape[axis] = b.rng.randint(1, size)
            at = np.argsort(b.numbers.random(x.shape), axis)[tuple(slice(n) for n in shape)]
        else:
            at = b.numbers.integers(low, size, shape)
        more = [b.new(x.dtype, shape)] if name == "ScatterElements" else []
        reduction = b.rng.choice(["none", "add", "mul", "max", "min"])
        given = maybe(b, reduction) if more and b.opset >= 18 and x.dtype != "bool" else None
        b.op(name, [x, b.setting(at, kind), *more], axis=axis, reduction=given)
    else:
        _by_coordinates(b, x, name, b.opset >= 11 and b.rng.random() < 0.4)


def _by_coordinates(b: Builder, x: Val, name: str, negative: bool) -> None:
    depth = b.rng.randint(1, x.rank)
    every = np.stack(np.meshgrid(*[np.arange(d) for d in x.shape[:depth]], indexing="ij"), -1)
    rows = every.reshape(-1, depth)
    at = rows[b.numbers.permutation(len(rows))[: b.rng.randint(1, len(rows))]]
    if negative:
        at = at - np.asarray(x.shape[:depth]) * b.numbers.integers(0, 2, at.shape)
    if name == "GatherND":
        if b.opset >= 12 and x.rank > 1 and b.rng.random() < 0.3:
            at = b.numbers.integers(0, x.shape[1], (x.shape[0], 1))
            b.op(name, [x, b.setting(at)], batch_dims=1)
            return
        b.op(name, [x, b.setting(at)])
    else:
        updates = b.new(x.dtype, (len(at), *x.shape[depth:]))
        reduction = b.rng.choice([None, "add", "mul", "max", "min"])
        given = reduction if b.opset >= 18 and x.dtype != "bool" else None
        b.op(name, [x, b.setting(at), updates], reduction=given)


@maker(3)
def pad(b: Builder) -> None:
    x = b.some(NUMERIC, 1, 4)
    mode = b.rng.choice(["constant", "constant", "reflect", "edge", "wrap", None])
    low = -1 if b.rng.random() < 0.2 else 0
    pads = [b.rng.choice([0, 0, 1, low, 2]) for _ in range(2 * x.rank)]
    if mode == "wrap" and b.opset < 19:
        mode = None
    if b.opset < 11:
        b.op("Pad", [x], pads=pads, mode=mode, value=maybe(b, 1.5))
        return
    value = maybe(b, b.setting(2, x.dtype)) if mode in (None, "constant") else None
    if b.opset >= 18 and b.rng.random() < 0.3:
        axes = some_axes(b, x) or [0]
        pads = [b.rng.choice([0, 1, low]) for _ in range(2 * len(axes))]
        b.op("Pad", [x, b.setting(pads), value, b.setting(axes)], mode=mode)
        return
    b.op("Pad", [x, b.setting(pads), value], mode=mode)


@maker(3)
def about_shape(b: Builder) -> None:
    x = b.some(ANY)
    name = b.rng.choice(["Shape", "Shape", "Size", "ConstantOfShape", "Range", "EyeLike", "NonZero",
                         "OneHot", "Compress", "Trilu", "Unique"])  # fmt: skip
    if name == "Shape" and b.opset >= 15:
        b.op(name, [x], start=maybe(b, b.rng.randint(-2, 2)), end=maybe(b, b.rng.randint(-2, 3)))
    elif name == "ConstantOfShape":
        value = helper.make_tensor("v", b.rng.choice([1, 7, 10, 11]), [1], [2])
        b.op(name, [b.setting(b.shape(0, 3))], value=maybe(b, value))
    elif name == "Range":
        kind = b.rng.choice(["int64", "float32", "int32", "float64"])
        numbers = b.rng.choice([(0, 5, 1), (3, -4, -2), (1, 9, 3), (2, 2, 1)])
        b.op(name, [b.setting(n, kind) for n in numbers])
    elif name == "EyeLike":
        x = b.some(NUMERIC, 2, 2)
        b.op(name, [x], k=maybe(b, b.rng.randint(-1, 1)), dtype=maybe(b, b.rng.choice([1, 7])))
    elif name == "OneHot":
        at = b.setting(b.numbers.integers(-3, 5, b.shape(0, 2)))
        depth, kind = b.setting(b.rng.choice([4, [4]])), b.rng.choice(["float32", "int64"])
        b.op(name, [at, depth, b.setting([0, 3], kind)], axis=maybe(b, b.rng.randint(-1, 0)))
    elif name == "Compress":
        x = b.some(NUMERIC, 1)
        axis = maybe(b, some_axis(b, x))
        size = x.array.size if axis is None else x.shape[axis]
        keep = b.numbers.random(size) < 0.6
        b.op(name, [x, b.setting(keep, "bool")], axis=axis)
    elif name == "Trilu":
        x = b.some(NUMERIC, 2)
        b.op(name, [x, maybe(b, b.setting(b.rng.randint(-1, 1)))], upper=maybe(b, 0))
    elif name == "Unique":
        b.op(name, [b.some(NUMERIC, 1)], b.rng.randint(1, 4), sorted=maybe(b, b.rng.randint(0, 1)),
             axis=maybe(b, 0, 0.3))  # fmt: skip
    else:
        b.op(name, [x])


# --- reductions and orders ------------------------------------------------------------------------


@maker(6)
def reduction(b: Builder) -> None:
    name = b.rng.choice(["Mean", "Sum", "Max", "Min", "Prod", "L1", "L2", "SumSquare", "LogSum",
                         "LogSumExp"])  # fmt: skip
    x = b.some(NUMERIC if name in ("Sum", "Max", "Min", "Mean", "SumSquare") else FLOATS)
    keep = maybe(b, b.rng.randint(0, 1))
    since = 13 if name == "Sum" else 18
    if b.rng.random() < 0.2:
        noop = maybe(b, 1, 0.3) if b.opset >= since else None
        b.op(f"Reduce{name}", [x], keepdims=keep, noop_with_empty_axes=noop)
    else:
        axes_op(b, f"Reduce{name}", x, some_axes(b, x) or [0], since, keepdims=keep)


@maker(3)
def order(b: Builder) -> None:
    x = b.some(NUMERIC, 1)
    axis = some_axis(b, x) if b.opset >= 11 else b.rng.randrange(x.rank)
    name = b.rng.choice(["ArgMax", "ArgMin", "TopK", "CumSum", "ReverseSequence", "Hardmax"])
    if name == "TopK":
        k = b.rng.randint(1, x.shape[axis])
        if b.opset < 10:
            b.op(name, [x], 2, k=k, axis=axis)
            return
        b.op(name, [x, b.setting([k])], 2, axis=axis,
             largest=maybe(b, b.rng.randint(0, 1)) if b.opset >= 11 else None)  # fmt: skip
    elif name == "CumSum":
        b.op(name, [x, b.setting(axis)], exclusive=maybe(b, 1), reverse=maybe(b, 1))
    elif name == "ReverseSequence":
        x = b.some(FLOATS, 2)
        time = b.rng.randint(0, 1)
        lengths = b.numbers.integers(1, x.shape[time] + 1, x.shape[1 - time])
        b.op(name, [x, b.setting(lengths)], time_axis=time, batch_axis=1 - time)
    elif name == "Hardmax":
        b.op(name, [b.some(FLOATS, 1)], axis=maybe(b, axis))
    else:
        last = maybe(b, 1, 0.3) if b.opset >= 12 else None
        b.op(name, [x], axis=axis, keepdims=maybe(b, 0), select_last_index=last)


@maker(4)
def softmax(b: Builder) -> None:
    x = b.some(FLOATS, 1)
    axis = some_axis(b, x) if b.opset >= 11 else b.rng.randrange(x.rank)
    b.op(b.rng.choice(["Softmax", "LogSoftmax"]), [x], axis=maybe(b, axis, 0.8))


@maker(3)
def norm(b: Builder) -> None:
    x = b.some(FLOATS, 2)
    channels, kind = x.shape[1], x.dtype
    name = b.rng.choice(["LayerNormalization", "InstanceNormalization", "GroupNormalization", "LRN",
                         "LpNormalization", "MeanVarianceNormalization", "RMSNormalization", "SimplifiedLayerNormalization",
                         "BatchNormalization"])  # fmt: skip
    if name in ("LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization"):
        axis = some_axis(b, x)
        shape = x.shape[axis:]
        more = [b.new(kind, shape)]
        if name[0] == "L" and b.rng.random() < 0.7:
            more.append(b.new(kind, shape))
        b.op(name, [x, *more], b.rng.choice([1, 1, 3]) if name[0] == "L" else 1, axis=axis,
             epsilon=maybe(b, 1e-3))  # fmt: skip
    elif name == "InstanceNormalization":
        b.op(name, [x, b.new(kind, [channels]), b.new(kind, [channels])])
    elif name == "GroupNormalization":
        groups = b.rng.choice([g for g in range(1, channels + 1) if channels % g == 0])
        size = channels if b.opset >= 21 else groups
        b.op(name, [x, b.new(kind, [size]), b.new(kind, [size])], num_groups=groups)
    elif name == "LRN":
        b.op(name, [x], size=b.rng.choice([3, 5, 2]), alpha=maybe(b, 0.1))
    elif name == "LpNormalization":
        b.op(name, [x], axis=some_axis(b, x), p=b.rng.choice([1, 2]))
    elif name == "MeanVarianceNormalization":
        b.op(name, [x], axes=[0, 1] if x.rank != 4 else maybe(b, [1, 3]))
    else:
        batch_norm(b, x)


def batch_norm(b: Builder, x: Val) -> Val:
    channels = x.shape[1]
    scale, bias, mean = (b.new(x.dtype, [channels]) for _ in range(3))
    spread = (b.numbers.random(channels) + 0.5).astype(x.dtype)
    variance = b.weight(spread) if b.rng.random() < 0.8 else b.input(spread)
    return b.op("BatchNormalization", [x, scale, bias, mean, variance], epsilon=maybe(b, 1e-3))[0]


# --- layers ---------------------------------------------------------------------------------------


@maker(4)
def conv(b: Builder) -> None:
    dims = b.rng.choice([1, 2, 2, 2, 3])
    groups, each, out = b.rng.choice([(1, 3, 2), (1, 1, 4), (2, 1, 2), (3, 1, 3), (2, 2, 4)])
    kind = b.rng.choice(["float32", "float32", "float16", "float64"])
    x = b.new(
        kind, (b.rng.randint(1, 2), groups * each, *(b.rng.randint(4, 7) for _ in range(dims)))
    )
    if b.rng.random() < 0.4:
        (x,) = b.op(b.rng.choice(["Relu", "Transpose", "Identity"]), [x])
    kernel = [b.rng.randint(1, 3) for _ in range(dims)]
    how: dict[str, Any] = {"group": groups, "kernel_shape": maybe(b, kernel)}
    how["strides"] = maybe(b, [b.rng.randint(1, 2) for _ in range(dims)])
    how["dilations"] = maybe(b, [b.rng.randint(1, 2) for _ in range(dims)], 0.3)
    if b.rng.random() < 0.3:
        how["auto_pad"] = b.rng.choice(["SAME_UPPER", "SAME_LOWER", "VALID"])
    else:
        how["pads"] = maybe(b, [b.rng.randint(0, 1) for _ in range(2 * dims)])
    if b.rng.random() < 0.7:
        w = b.new(kind, (out, each, *kernel))
        (y,) = b.op("Conv", [x, w, maybe(b, b.new(kind, [out]))], **how)
    else:
        w = b.new(kind, (groups * each, out, *kernel))
        how["output_padding"] = maybe(b, [b.rng.randint(0, 1) for _ in range(dims)], 0.3)
        (y,) = b.op("ConvTranspose", [x, w, maybe(b, b.new(kind, [out * groups]))], **how)
    if b.rng.random() < 0.6:
        y = batch_norm(b, y)
    if b.rng.random() < 0.4:
        b.op("Relu", [y])


@maker(4)
def gemm(b: Builder) -> None:
    x = b.some(("float32", "float32", "float64", "float16"), 2, 2)
    turned = b.rng.randint(0, 1)
    rows, inner = x.shape[::-1] if turned else x.shape
    columns, flipped = b.rng.randint(1, 4), b.rng.randint(0, 1)
    w = b.new(x.dtype, (columns, inner) if flipped else (inner, columns))
    shape = b.rng.choice([(), (1,), (columns,), (1, columns), (rows, 1), (rows, columns)])
    bias = maybe(b, b.new(x.dtype, shape), 0.7 if b.opset >= 11 else 1)
    (y,) = b.op("Gemm", [x, w, bias], transA=maybe(b, turned, 1 if turned else 0.5),
                transB=flipped, alpha=maybe(b, 0.5, 0.3), beta=maybe(b, 2.0, 0.3))  # fmt: skip
    if b.rng.random() < 0.5:
        batch_norm(b, y)


@maker(5)
def matmul(b: Builder) -> None:
    x = b.some(("float32", "float32", "float64", "float16", "int32", "int64"), 1)
    inner, rank = x.shape[-1], b.rng.randint(1, 4)
    lead = [b.rng.choice([1, *x.shape[:1]]) for _ in range(max(rank - 2, 0))]
    if x.rank > 2 and b.rng.random() < 0.5:
        lead = list(x.shape[:-2])
    shape = [inner] if rank == 1 else [*lead, inner, b.rng.randint(1, 4)]
    (y,) = b.op("MatMul", [x, b.new(x.dtype, shape)])
    if b.rng.random() < 0.5:
        (y,) = b.op("Add", [y, b.like(y)])
    if b.rng.random() < 0.3 and y.rank == 2 and y.dtype in FLOATS:
        batch_norm(b, y)


@maker(2)
def einsum(b: Builder) -> None:
    equation = b.rng.choice(["ij,jk->ik", "bij,bjk->bik", "ij,kj->ik", "bhid,bhjd->bhij", "ij->ji",
                             "ii->i", "ij,ij->", "bij,jk->bik", "ij,jk->ki", "...ij,...jk->...ik",
                             "i,j->ij", "ij, jk"])  # fmt: skip
    sizes = {c: b.rng.randint(1, 3) for c in "bhijkd"}
    terms = equation.replace(" ", "").split("->")[0].split(",")
    given = [b.new("float32", [sizes[c] for c in t.replace("...", "b")]) for t in terms]
    b.op("Einsum", given, equation=equation)


@maker(4)
def pool(b: Builder) -> None:
    dims = b.rng.choice([1, 2, 2, 2, 3])
    kind = b.rng.choice(["float32", "float32", "float64", "float16"])
    x = b.new(
        kind,
        (b.rng.randint(1, 2), b.rng.randint(1, 3), *(b.rng.randint(4, 7) for _ in range(dims))),
    )
    if b.rng.random() < 0.2:
        b.op(b.rng.choice(["GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"]), [x])
        return
    name = b.rng.choice(["MaxPool", "MaxPool", "AveragePool", "AveragePool", "LpPool"])
    kernel = [b.rng.randint(1, 3) for _ in range(dims)]
    how: dict[str, Any] = {"kernel_shape": kernel}
    how["strides"] = maybe(b, [b.rng.randint(1, 2) for _ in range(dims)])
    if b.opset >= 10 and name != "LpPool":
        how["ceil_mode"] = maybe(b, 1, 0.3)
    if b.opset >= {"MaxPool": 10, "AveragePool": 19, "LpPool": 18}[name]:
        how["dilations"] = maybe(b, [b.rng.randint(1, 2) for _ in range(dims)], 0.2)
    if b.rng.random() < 0.3:
        how["auto_pad"] = b.rng.choice(["SAME_UPPER", "SAME_LOWER", "VALID"])
    else:
        how["pads"] = maybe(b, [b.rng.randint(0, max(k - 1, 0)) for k in kernel * 2])
    if name == "AveragePool":
        how["count_include_pad"] = maybe(b, 1)
    b.op(name, [x], 2 if name == "MaxPool" and b.rng.random() < 0.3 else 1, **how)


@maker(3)
def resize(b: Builder) -> None:
    dims = b.rng.choice([1, 2, 2, 2, 3])
    x = b.new(
        "float32",
        (b.rng.randint(1, 2), b.rng.randint(1, 3), *(b.rng.randint(2, 5) for _ in range(dims))),
    )
    mode = b.rng.choice(["nearest", "linear", "linear", "cubic" if dims == 2 else "nearest"])
    factors = [1, 1, *(b.rng.choice([2.0, 1.5, 0.5, 3.0, 1.0]) for _ in range(dims))]
    if b.opset < 11:
        scales = b.setting(factors, "float32")
        b.op(
            "Resize" if b.opset == 10 else "Upsample",
            [x, scales],
            mode=b.rng.choice(["nearest", "linear"]),
        )
        return
    where = b.rng.choice(["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", None])
    how = {"mode": mode, "coordinate_transformation_mode": where}
    if mode == "nearest":
        how["nearest_mode"] = b.rng.choice(
            ["floor", "ceil", "round_prefer_floor", "round_prefer_ceil", None]
        )
    roi = b.weight(np.zeros(0, np.float32)) if b.opset < 13 else None
    if b.rng.random() < 0.5:
        b.op("Resize", [x, roi, b.setting(factors, "float32")], **how)
    else:
        sizes = [int(d * f) or 1 for d, f in zip(x.shape, factors, strict=True)]
        none = b.weight(np.zeros(0, np.float32)) if b.opset < 13 else None
        b.op("Resize", [x, roi, none, b.setting(sizes)], **how)


@maker(2)
def blocks(b: Builder) -> None:
    x = b.new("float32", (b.rng.randint(1, 2), 8, b.rng.choice([2, 4]), 4))
    if b.rng.random() < 0.5:
        mode = maybe(b, b.rng.choice(["DCR", "CRD"])) if b.opset >= 11 else None
        b.op("DepthToSpace", [x], blocksize=2, mode=mode)
    else:
        b.op("SpaceToDepth", [x], blocksize=2)


@maker(3)
def recurrent(b: Builder) -> None:
    steps, batch, size, hidden = (b.rng.randint(1, 4) for _ in range(4))
    name = b.rng.choice(["LSTM", "GRU", "RNN"])
    way = b.rng.choice(["forward", "reverse", "bidirectional"])
    gates, ways = {"LSTM": 4, "GRU": 3, "RNN": 1}[name], 2 if way == "bidirectional" else 1
    x = b.new("float32", (steps, batch, size))
    w, r = (
        b.new("float32", (ways, gates * hidden, size)),
        b.new("float32", (ways, gates * hidden, hidden)),
    )
    bias = maybe(b, b.new("float32", (ways, 2 * gates * hidden)))
    lengths = maybe(b, b.setting(b.numbers.integers(1, steps + 1, batch), "int32"), 0.3)
    first = maybe(b, b.new("float32", (ways, batch, hidden)))
    more = [maybe(b, b.new("float32", (ways, batch, hidden)))] if name == "LSTM" else []
    how = {"hidden_size": hidden, "direction": way}
    if name == "GRU":
        how["linear_before_reset"] = maybe(b, 1)
    made = b.op(name, [x, w, r, bias, lengths, first, *more], 3 if name == "LSTM" else 2, **how)
    if b.rng.random() < 0.5:
        (y,) = b.op("Transpose", [made[0]], perm=[0, 2, 1, 3])
        b.op("Reshape", [y, b.weight(np.asarray([0, 0, -1]))])


@maker(3)
def quantised(b: Builder) -> None:
    x = b.some(("float32",))
    kind = b.rng.choice(["uint8", "int8"])
    scale = b.setting(0.05, "float32")
    zero = maybe(b, b.setting(3, kind), 0.8)
    if b.rng.random() < 0.2:
        b.op("DynamicQuantizeLinear", [x], 3)
        return
    (q,) = b.op("QuantizeLinear", [x, scale, zero])
    if b.rng.random() < 0.7:
        b.op("DequantizeLinear", [q, scale, zero])
    elif q.rank > 1:
        b.op("MatMulInteger", [q, b.new("uint8", (q.shape[-1], 3)), zero])


@maker(2)
def dropout(b: Builder) -> None:
    x = b.some()
    count = b.rng.choice([1, 1, 2]) if b.opset >= 12 else 1
    b.op(
        "Dropout",
        [x, *([b.setting(0.5, "float32")] if b.opset >= 12 and b.rng.random() < 0.5 else [])],
        count,
    )


@maker(3)
def identities(b: Builder) -> None:
    x = b.some(ANY)
    for _ in range(b.rng.randint(1, 3)):
        (x,) = b.op("Identity", [x])


@maker(2)
def patterns(b: Builder) -> None:
    """Layer normalisation and Gelu as exporters spell them out."""
    x = b.some(("float32", "float64", "float16"), 1)
    if b.rng.random() < 0.5:
        (mean,) = [axes_op(b, "ReduceMean", x, [-1], 18, keepdims=1)]
        (centred,) = b.op("Sub", [x, mean])
        (square,) = b.op("Pow", [centred, b.weight(np.asarray(2, x.dtype))])
        variance = axes_op(b, "ReduceMean", square, [-1], 18, keepdims=1)
        (wide,) = b.op("Add", [variance, b.weight(np.asarray(1e-5, x.dtype))])
        (normal,) = b.op("Div", [centred, b.op("Sqrt", [wide])[0]])
        (scaled,) = b.op("Mul", [normal, b.weight(b.numbers_of(x.dtype, x.shape[-1:]))])
        b.op("Add", [scaled, b.weight(b.numbers_of(x.dtype, x.shape[-1:]))])
    else:
        (part,) = b.op("Div", [x, b.weight(np.asarray(2**0.5, x.dtype))])
        (bell,) = b.op("Erf", [part])
        (more,) = b.op("Add", [bell, b.weight(np.asarray(1, x.dtype))])
        (both,) = b.op("Mul", [x, more])
        b.op("Mul", [both, b.weight(np.asarray(0.5, x.dtype))])


# --- bodies ---------------------------------------------------------------------------------------


def inside(b: Builder, least: int = 1) -> Builder:
    """A body with some nodes."""
    if len(b.lineage()) > 2:
        raise NotThisTime
    child = Builder(b.rng, b.opset, b)
    for _ in range(b.rng.randint(least, 3)):
        child.attempt(b.rng.choices(MAKERS, WEIGHTS)[0])
    return child


def made_in(child: Builder, value: Val) -> Val:
    """A result of a body: something that a node of it made."""
    return (
        child.op("Identity", [child.take(value)])[0]
        if child.rng.random() < 0.3 or value not in [v for v in child.pool if not v.const]
        else value
    )


@maker(3)
def branch(b: Builder) -> None:
    kind = b.rng.choice(FLOATS)
    graphs, used, count = [], [], b.rng.randint(1, 2)
    for _ in range(2):
        child = inside(b, 0)
        outputs = [made_in(child, child.some((kind,))) for _ in range(count)]
        if len({v.name for v in outputs}) < count:
            raise NotThisTime
        graphs.append(child.body(outputs))
        used += child.used
    flag = b.setting(b.rng.random() < 0.5, "bool")
    names = [b.fresh() for _ in range(count)]
    node = helper.make_node("If", [flag.name], names, b.fresh("if"), then_branch=graphs[0],
                            else_branch=graphs[1])  # fmt: skip
    b.add(node, _unique([flag, *used]))


def _unique(values: list[Val]) -> list[Val]:
    return list({v.name: v for v in values}.values())


@maker(3)
def loop(b: Builder) -> None:
    states = [
        b.some(("float32", "float32", "int64", "float64")) for _ in range(b.rng.randint(1, 2))
    ]
    child = inside(b, 0)
    turn, going = (
        Val(child.fresh("turn"), np.asarray(0)),
        Val(child.fresh("going"), np.asarray(True)),
    )
    inner = [Val(child.fresh("state"), s.array) for s in states]
    child.inputs += [turn, going, *inner]
    child.pool += inner
    results = [_next(child, v) for v in inner]
    scans = [made_in(child, child.some(("float32",)))] if b.rng.random() < 0.4 else []
    if b.rng.random() < 0.3 and child.opset >= 9:
        (again,) = child.op("Less", [turn, child.weight(np.asarray(b.rng.randint(0, 4)))])
    else:
        (again,) = child.op("Identity", [going])
    outputs = [again, *results, *scans]
    if len({v.name for v in outputs}) < len(outputs):
        raise NotThisTime
    graph = child.body(outputs, [turn, going, *inner])
    count = b.setting(b.rng.randint(0, 4) if b.rng.random() < 0.8 else [2])
    flag = maybe(b, b.setting(b.rng.random() < 0.9, "bool"))
    names = [b.fresh() for _ in outputs[1:]]
    node = helper.make_node("Loop", [count.name, flag.name if flag else "", *(s.name for s in states)],
                            names, b.fresh("loop"), body=graph)  # fmt: skip
    b.add(node, _unique([count, *([flag] if flag else []), *states, *child.used]))


def _next(child: Builder, state: Val) -> Val:
    """What a state becomes: of the same shape and type, and not far away."""
    rng = child.rng
    value = state
    for _ in range(rng.randint(1, 2)):
        name = rng.choice(["Add", "Sub", "Mul", "Max", "Tanh"])
        if name == "Tanh" and state.dtype in FLOATS:
            (value,) = child.op(name, [value])
        else:
            other = child.like(value)
            (value,) = child.op("Max" if name == "Tanh" else name, [value, other])
    return value


@maker(2)
def scan(b: Builder) -> None:
    if b.opset < 9:
        raise NotThisTime
    rows = b.some(("float32",), 2)
    state = b.new("float32", rows.shape[1:])
    child = inside(b, 0)
    inner = Val(child.fresh("state"), state.array)
    row = Val(child.fresh("row"), rows.array[0])
    child.inputs += [inner, row]
    child.pool += [inner, row]
    (mixed,) = child.op("Add", [inner, row])
    (following,) = child.op("Tanh", [mixed])
    (kept,) = child.op("Identity", [mixed])
    graph = child.body([following, kept], [inner, row])
    names = [b.fresh(), b.fresh()]
    backwards = [b.rng.randint(0, 1)]
    node = helper.make_node("Scan", [state.name, rows.name], names, b.fresh("scan"), body=graph,
                            num_scan_inputs=1, scan_input_directions=backwards)  # fmt: skip
    b.add(node, _unique([state, rows, *child.used]))


def operators(model: onnx.ModelProto) -> set[str]:
    """The operators of a model, those of bodies included."""
    found, graphs = set(), [model.graph]
    while graphs:
        for node in graphs.pop().node:
            found.add(node.op_type)
            graphs += [a.g for a in node.attribute if a.type == onnx.AttributeProto.GRAPH]
    return found
