"""Random reductions and layers of networks."""

from __future__ import annotations

from typing import Any

import numpy as np
from support.random_nodes import ANY, NUMERIC, axes_op, maker, maybe, some_axes, some_axis
from support.random_onnx import FLOATS, Builder, Val


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
                         "LpNormalization", "MeanVarianceNormalization", "RMSNormalization",
                         "SimplifiedLayerNormalization", "BatchNormalization"])  # fmt: skip
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


# --- what travels as it is ------------------------------------------------------------------------


@maker(2)
def of_the_runtime(b: Builder) -> None:
    """Operators of ONNX Runtime's own."""
    x = b.some(("float32",), 2, 3)
    name = b.rng.choice(["QuickGelu", "FusedMatMul", "Gelu", "FastGelu", "BiasGelu"])
    more = [b.new("float32", x.shape[-1:])] if name == "BiasGelu" else []
    if name == "FusedMatMul":
        b.op(name, [x, x], domain="com.microsoft", transB=1, alpha=0.5)
    else:
        b.op(name, [x, *more], domain="com.microsoft")
