"""Random nodes that treat every element alike."""

from __future__ import annotations

import numpy as np
from support.random_nodes import ANY, CODES, NUMERIC, maker, maybe
from support.random_onnx import FLOATS, WHOLE, Builder


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
        (x,) = b.op("Cast", [x], to=CODES[b.rng.choice(kinds)])
