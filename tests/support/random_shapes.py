"""Random nodes that move, choose and repeat elements."""

from __future__ import annotations

import numpy as np
from onnx import helper
from support.random_nodes import ANY, NUMERIC, axes_op, maker, maybe, some_axes, some_axis
from support.random_onnx import FLOATS, Builder, Val


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
