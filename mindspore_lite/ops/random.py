"""Random numbers: new ones in every run, whatever seed the file holds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx_ir as ir

from mindspore_lite.ops.arguments import elements, same_type
from mindspore_lite.ops.reduce import INT32, INT64
from mindspore_lite.ops.sort import ordered
from mindspore_lite.ops.table import Val, op
from mindspore_lite.ops.tape import Tape, bounded, constant_of, dtype_argument

FLOAT = np.dtype(np.float32)
MAX_NUMBERS = 2**28  # drawn at once; guess, 1 GiB of them


def space(t: Tape, shape: Val) -> Val:
    """What to draw numbers for: a constant shape, else a tensor of the shape known at run time."""
    if constant_of(shape) is None and isinstance(shape, ir.Value):
        return t.op("ConstantOfShape", [t.cast(shape, INT64)])
    dims = elements(t, shape)
    if not dims or any(isinstance(d, ir.Value) for d in dims):
        return t.op("ConstantOfShape", [t.int64s(dims)])
    bounded(math.prod(dims), "random numbers", MAX_NUMBERS)
    return tuple(dims)


def drawn(t: Tape, like: Val, normal: bool = False, **bounds: Any) -> Val:
    """float32 numbers in a shape or that of a tensor: uniform in [0, 1) or normal, unless said."""
    name, dtype = "RandomNormal" if normal else "RandomUniform", t.onnx_type(FLOAT)
    if isinstance(like, tuple):
        return t.op(name, [], shape=like, dtype=dtype, **bounds)
    return t.op(f"{name}Like", [like], dtype=dtype, **bounds)


def typed(t: Tape, x: Val, dtype: Val, like: Val = None) -> Val:
    """In the type that was asked for: else the other tensor's, else float32."""
    if dtype is not None:
        return t.cast(x, dtype_argument(dtype).numpy)
    return t.cast(x, t.result_dtype(x if like is None else like))


def whole_numbers(t: Tape, like: Val, low: Val, high: Val, dtype: np.dtype) -> Val:
    """Integers from low up to, but without, high."""
    low, high = same_type(t, np.dtype(np.float64), low, high)
    share = t.cast(drawn(t, like), np.dtype(np.float64))
    found = t.op("Floor", [t.op("Add", [low, t.op("Mul", [share, t.op("Sub", [high, low])])])])
    last = t.op("Sub", [high, np.asarray(1.0)])  # a share may be rounded up to 1
    return t.cast(t.op("Min", [found, last]), dtype)


@op("UniformReal", "StandardNormal")
def plain(t: Tape, shape: Val, *, seed: Val = 0, seed2: Val = 0) -> Val:
    """Uniform in [0, 1), or normal."""
    return drawn(t, space(t, shape), t.primitive == "StandardNormal")


@op("StandardLaplace")
def laplace(t: Tape, shape: Val, *, seed: Val = 0, seed2: Val = 0) -> Val:
    """Numbers of the double exponential distribution: -sign(u) log(1 - 2 |u|), u within 1/2."""
    u = drawn(t, space(t, shape), low=-0.5, high=0.5)
    rest = t.op("Add", [t.op("Mul", [t.op("Abs", [u]), FLOAT.type(-2)]), FLOAT.type(1)])
    rest = t.op("Max", [rest, np.finfo(FLOAT).tiny])  # u may be -1/2 exactly
    return t.op("Neg", [t.op("Mul", [t.op("Sign", [u]), t.op("Log", [rest])])])


@op("UniformInt")
def uniform_int(t: Tape, shape: Val, low: Val, high: Val, *, seed: Val = 0, seed2: Val = 0) -> Val:
    """int32 from low up to, but without, high."""
    return whole_numbers(t, space(t, shape), low, high, INT32)


@op("RandExt", "Randn")
def rand(
    t: Tape, shape: Val, seed: Val = 0, offset: Val = 0, dtype: Val = None, device: Val = None
) -> Val:
    """Uniform in [0, 1), or normal."""
    return typed(t, drawn(t, space(t, shape), t.primitive == "Randn"), dtype)


@op("RandLikeExt", "RandnLike")
def rand_like(
    t: Tape, x: Val, seed: Val = 0, offset: Val = 0, dtype: Val = None, device: Val = None
) -> Val:
    """The same in the shape of a tensor."""
    return typed(t, drawn(t, x, t.primitive == "RandnLike"), dtype, x)


@op("RandInt")
def rand_int(
    t: Tape, low: Val, high: Val, shape: Val, seed: Val = 0, offset: Val = 0, dtype: Val = None,
    device: Val = None,
) -> Val:  # fmt: skip
    """Integers from low up to, but without, high; int64 unless said otherwise."""
    wanted = INT64 if dtype is None else dtype_argument(dtype).numpy
    return whole_numbers(t, space(t, shape), low, high, wanted)


@op("RandIntLike")
def rand_int_like(
    t: Tape, x: Val, low: Val, high: Val, seed: Val = 0, offset: Val = 0, dtype: Val = None,
    device: Val = None,
) -> Val:  # fmt: skip
    """The same in the shape of a tensor."""
    wanted = t.dtype(x) if dtype is None else dtype_argument(dtype).numpy
    return whole_numbers(t, x, low, high, wanted)


@op("UniformExt")
def uniform_ext(t: Tape, x: Val, a: Val, b: Val, seed: Val = 0, offset: Val = 0) -> Val:
    """Uniform between a and b, in the shape and type of a tensor."""
    a, b = same_type(t, FLOAT, a, b)
    span = t.op("Mul", [drawn(t, x), t.op("Sub", [b, a])])
    return t.cast(t.op("Add", [span, a]), t.dtype(x))


@op("NormalTensorTensor", "NormalTensorFloat", "NormalFloatTensor")
def normal_of(t: Tape, mean: Val, std: Val, seed: Val = 0, offset: Val = 0) -> Val:
    """Normal numbers with a mean and a deviation for each element."""
    dtype = t.result_dtype(mean, std)
    mean, std = same_type(t, dtype, mean, std)
    like = t.op("Add", [mean, std])
    noise = t.cast(drawn(t, like, normal=True), dtype)
    return t.op("Add", [mean, t.op("Mul", [noise, std])])


@op("NormalFloatFloat")
def normal(t: Tape, mean: Val, std: Val, size: Val, seed: Val = 0, offset: Val = 0) -> Val:
    """Normal numbers in a shape."""
    noise = t.op("Mul", [drawn(t, space(t, size), normal=True), t.cast(std, FLOAT)])
    return t.op("Add", [noise, t.cast(mean, FLOAT)])


@op("RandpermExt", "RandpermV2")
def permutation(t: Tape, n: Val, seed: Val = 0, offset: Val = 0, dtype: Val = 35) -> Val:
    """The numbers below n in any order: the ranks of n random ones."""
    order = ordered(t, drawn(t, space(t, (n,))), 0, True)[1]
    return t.cast(order, dtype_argument(dtype).numpy)


@op("RandomShuffle")
def shuffle(t: Tape, x: Val, *, seed: Val = 0, seed2: Val = 0) -> Val:
    """The rows of x in any order."""
    if t.rank(x) == 0:
        return x
    noise = drawn(t, space(t, t.op("Shape", [x], start=0, end=1)))
    return t.op("Gather", [x, ordered(t, noise, 0, True)[1]], axis=0)


@op("Bernoulli")
def bernoulli(t: Tape, x: Val, p: Val, *, seed: Val = -1, offset: Val = 0) -> Val:
    """1 with the probability p, else 0, in the shape and type of x."""
    return t.cast(t.op("Less", [drawn(t, x), t.cast(p, FLOAT)]), t.dtype(x))


@op("BernoulliExt")
def bernoulli_ext(t: Tape, x: Val, seed: Val = 0, offset: Val = 0) -> Val:
    """1 with the probability that each element states, else 0."""
    return bernoulli(t, x, x)


def sampled(t: Tape, weights: Val, samples: Val, replacement: bool) -> Val:
    """Places of the last axis drawn by weight: the first to ring of clocks whose rates they are."""
    count = t.int64s([samples])
    if replacement:  # a row of clocks for each sample
        weights = t.op("Unsqueeze", [t.cast(weights, FLOAT), np.asarray([-2])])
        shape = t.op("Shape", [weights])
        ahead, own = (t.op("Slice", [shape, np.asarray([a]), np.asarray([b])])
                      for a, b in ((0, -2), (-1, 2**62)))  # fmt: skip
        weights = t.op("Expand", [weights, t.op("Concat", [ahead, count, own], axis=0)])
    else:
        weights = t.cast(weights, FLOAT)
    times = t.op("Div", [t.op("Log", [drawn(t, weights)]), weights])  # negative, and -inf for never
    if replacement:
        return t.op("ArgMax", [times], axis=-1, keepdims=0)
    return t.op("TopK", [times, count], outputs=2, axis=-1)[1]


@op("Multinomial")
def multinomial(
    t: Tape, x: Val, num_samples: Val, *, seed: Val = 0, seed2: Val = 0, dtype: Val = 34
) -> Val:
    """Places drawn by weight, again and again."""
    return t.cast(sampled(t, x, num_samples, True), dtype_argument(dtype).numpy)


@op("MultinomialWithReplacement")
def multinomial_with_replacement(
    t: Tape, x: Val, seed: Val = 0, offset: Val = 0, *, numsamples: Val, replacement: Val = False
) -> Val:
    """int64 places drawn by weight; each once unless it may come again, whatever the name says."""
    return sampled(t, x, numsamples, bool(replacement))


@op("RandomCategorical")
def random_categorical(
    t: Tape, logits: Val, num_samples: Val, seed: Val = 0, *, dtype: Val = 35
) -> Val:
    """Places drawn again and again by the softmax of logits."""
    weights = t.op("Softmax", [logits], axis=-1)
    return t.cast(sampled(t, weights, num_samples, True), dtype_argument(dtype).numpy)


@op("MultinomialExt")
def multinomial_ext(
    t: Tape, x: Val, num_samples: Val, replacement: Val = False, seed: Val = 0, offset: Val = 0
) -> Val:
    """Places drawn by weight, each once unless it may come again."""
    return sampled(t, x, num_samples, bool(replacement))


# --- dropout: inference drops nothing, as MindSpore Lite does it ----------------------------------


@op("Dropout")
def dropout(t: Tape, x: Val, *, keep_prob: Val = 0.5, Seed0: Val = 0, Seed1: Val = 0) -> Val:
    """-> (x, ones)."""
    return x, t.op("Expand", [np.asarray(1, t.dtype(x)), t.op("Shape", [x])])


@op("Dropout2D", "Dropout3D")
def dropout_nd(t: Tape, x: Val, *, keep_prob: Val = 0.5) -> Val:
    """-> (x, all true)."""
    return x, t.op("Expand", [np.asarray(True), t.op("Shape", [x])])


@op("DropoutExt")
def dropout_ext(t: Tape, x: Val, p: Val, seed: Val = 0, offset: Val = 0) -> Val:
    """-> (x, nothing in place of the packed mask)."""
    return x, None


@op("DropoutDoMask", "DropoutDoMaskExt")
def dropout_do_mask(t: Tape, x: Val, mask: Val, keep_prob: Val) -> Val:
    """x, whatever the mask says."""
    return x


@op("FuncDropoutExt", "Dropout2dExt")
def func_dropout(
    t: Tape, x: Val, p: Val, training: Val, inplace: Val, seed: Val = 0, offset: Val = 0
) -> Val:
    """x."""
    return x
