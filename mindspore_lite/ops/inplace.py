"""Operators that write into their first input; each computes what a plain one does."""

from __future__ import annotations

import numpy as np

from mindspore_lite.ops import activation, arithmetic, compare, special  # noqa: F401 - their twins
from mindspore_lite.ops.random import bernoulli, normal_of, uniform_ext
from mindspore_lite.ops.table import OPS, Val, op
from mindspore_lite.ops.tape import Tape

for primitive, twin in {
    "InplaceAddExt": "AddExt", "InplaceAddsExt": "AddScalar", "InplaceSubExt": "SubExt",
    "InplaceSubScalar": "SubScalar", "InplaceMul": "Mul", "InplaceMuls": "Muls",
    "InplaceDiv": "Div", "InplaceDivs": "Divs", "InplaceDivMod": "DivMod",
    "InplaceDivMods": "DivMods", "InplaceFloorDivide": "FloorDiv",
    "InplaceFloorDivides": "FloorDivScalar",
    "InplaceRemainderTensorTensor": "RemainderTensorTensor",
    "InplaceRemainderTensorScalar": "RemainderTensorScalar", "InplaceExp": "Exp",
    "InplaceLog": "Log", "InplaceFloor": "Floor", "InplaceSign": "Sign", "InplaceErfinv": "Erfinv",
    "InplaceReLU": "ReLU", "InplaceSiLU": "SiLU", "InplaceSigmoid": "Sigmoid",
    "InplaceTanh": "Tanh", "InplaceElu": "Elu", "InplaceThreshold": "Threshold",
    "InplaceHardtanh": "Hardtanh", "InplaceClampScalar": "ClampScalar",
    "InplaceClampTensor": "ClampTensor", "InplaceMaskedFillScalar": "MaskedFillScalar",
    "InplaceMaskedFillTensor": "MaskedFill",
}.items():  # fmt: skip
    op(primitive, writes=True)(OPS[twin].meaning)


@op("InplaceCopy", writes=True)
def inplace_copy(t: Tape, x: Val, src: Val, non_blocking: Val = False) -> Val:
    """src in the shape and type of x."""
    return t.op("Expand", [t.cast(src, t.dtype(x)), t.op("Shape", [x])])


@op("InplaceFillScalar", "InplaceFillTensor", writes=True)
def inplace_fill(t: Tape, x: Val, value: Val) -> Val:
    """One number everywhere."""
    return inplace_copy(t, x, value)


@op("InplaceZero", writes=True)
def inplace_zero(t: Tape, x: Val) -> Val:
    """Zeros."""
    return inplace_copy(t, x, np.asarray(0, t.dtype(x)))


@op("InplaceNormal", "InplaceUniform", writes=True)
def inplace_draw(t: Tape, x: Val, a: Val, b: Val, seed: Val = 0, offset: Val = 0) -> Val:
    """Normal numbers of a mean and a deviation, or uniform ones between two bounds."""
    if t.primitive == "InplaceUniform":
        return uniform_ext(t, x, a, b)
    return t.cast(normal_of(t, inplace_copy(t, x, a), b), t.dtype(x))


@op("InplaceBernoulliScalar", "InplaceBernoulliTensor", writes=True)
def inplace_bernoulli(t: Tape, x: Val, p: Val, seed: Val = 0, offset: Val = 0) -> Val:
    """1 with the probability p, else 0."""
    return bernoulli(t, x, p)


@op("Assign", writes=True)
def assign(t: Tape, variable: Val, value: Val) -> Val:
    """A parameter's new value; what the next run reads of it, a Model keeps."""
    return t.cast(value, t.dtype(variable))


@op("AssignAdd", "AssignSub", writes=True)
def assign_add(t: Tape, variable: Val, value: Val) -> Val:
    """A parameter and a value added, or subtracted."""
    return t.op(t.primitive.removeprefix("Assign"), [variable, t.cast(value, t.dtype(variable))])
