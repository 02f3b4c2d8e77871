"""Primitives that converter_lite writes in a form of its own, under the name MindSpore uses too.

Each form says how it differs from the usual one: by its number of inputs, by attributes that only
the converter writes, or by what the file declares as the result.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.mindir.records import TensorType, Type
from mindspore_lite.ops.arguments import axis_of, elements, ints, layout, number
from mindspore_lite.ops.lite_conv import channels_first, restored
from mindspore_lite.ops.lite_shape import cut, new_shape
from mindspore_lite.ops.table import Meaning, Op, Val
from mindspore_lite.ops.tape import MAX_TABLE, Tape, bounded, constant_of, dtype_argument

# (inputs, attributes, declared result) -> whether a node has this form
When = Callable[[Sequence[Val], Mapping[str, Any], Type | None], bool]
FORMS: dict[str, tuple[When, Op]] = {}


def form(*primitives: str, when: When) -> Callable[[Meaning], Meaning]:
    """Register one function as what the primitives mean when a node has this form."""

    def add(meaning: Meaning) -> Meaning:
        _, *params = inspect.signature(meaning).parameters.values()
        call = tuple(p for p in params if p.kind is not inspect.Parameter.KEYWORD_ONLY)
        init = tuple(p for p in params if p.kind is inspect.Parameter.KEYWORD_ONLY)
        for name in primitives:
            FORMS[name] = (when, Op(name, meaning, call, init))
        return meaning

    return add


def row_of(
    primitive: str, values: Sequence[Val], attributes: Mapping[str, Any], declared: Type | None
) -> Op | None:
    """The row of a node that has converter_lite's form, or None."""
    when, row = FORMS.get(primitive, (None, None))
    return row if when is not None and when(values, attributes, declared) else None


def is_converted(
    values: Sequence[Val], attributes: Mapping[str, Any], declared: Type | None
) -> bool:
    """converter_lite marks every primitive so, and nothing else does."""
    return attributes.get("primitive_function") is False


def _has_inputs(*counts: int) -> When:
    return lambda values, attributes, declared: len(values) in counts


def _is_channels_last(
    values: Sequence[Val], attributes: Mapping[str, Any], declared: Type | None
) -> bool:
    return attributes.get("format", attributes.get("OriginalFormat")) in (1, "NHWC")


def _returns_a_tensor(
    values: Sequence[Val], attributes: Mapping[str, Any], declared: Type | None
) -> bool:
    return isinstance(declared, TensorType)


# --- shapes ---------------------------------------------------------------------------------------


@form("Shape", when=_returns_a_tensor)
def shape(t: Tape, x: Val) -> Val:
    """The sizes as a tensor, where MindSpore has a tuple."""
    assert isinstance(t.result, TensorType)
    dims = t.shape(x)
    whole = t.op("Shape", [x]) if None in dims else np.asarray(dims)
    return t.cast(whole, t.result.dtype.numpy)


def _keeps_sizes(
    values: Sequence[Val], attributes: Mapping[str, Any], declared: Type | None
) -> bool:
    """A 0 in a constant shape means 'as before' in converted files, and where no size is zero."""
    if len(values) != 2 or not isinstance(values[0], ir.Value):
        return False
    wanted = values[1] if isinstance(values[1], tuple | list) else constant_of(values[1])
    if wanted is None or not any(isinstance(d, int | np.integer) and d == 0 for d in wanted):
        return False
    sizes = values[0].shape
    return is_converted(values, attributes, declared) or (
        sizes is not None and all(isinstance(d, int) and d > 0 for d in sizes)
    )


@form("Reshape", when=_keeps_sizes)
def reshape(t: Tape, x: Val, shape: Val) -> Val:
    """A 0 keeps the size at its place."""
    return t.op("Reshape", [x, t.int64s(elements(t, shape))])


@form("Flatten", when=lambda values, attributes, declared: attributes.get("axis", 1) != 1)
def flatten(t: Tape, x: Val, *, axis: int = 1) -> Val:
    """The axes before one in one, and the others in one."""
    return t.op("Flatten", [x], axis=axis_of(t, x, axis))


def _has_uneven_sizes(
    values: Sequence[Val], attributes: Mapping[str, Any], declared: Type | None
) -> bool:
    return len(set(attributes.get("size_splits") or ())) > 1


@form("Split", when=_has_uneven_sizes)
def split(t: Tape, x: Val, *, size_splits: Val, axis: int = 0) -> Val:
    """-> a tuple of parts of these sizes, one of which may be -1."""
    sizes, along = list(ints(size_splits, "size_splits")), axis_of(t, x, axis)
    if -1 in sizes:
        length = t.shape(x)[along]
        if length is None:
            raise UnsupportedOpError("Split with a size of -1 needs a fixed size on its axis")
        sizes[sizes.index(-1)] = length - sum(s for s in sizes if s > 0)
    return t.op("Split", [x, t.int64s(sizes)], outputs=len(sizes), axis=along)


@form("StridedSlice", when=_has_inputs(5))
def strided_slice(t: Tape, x: Val, begin: Val, end: Val, axes: Val, steps: Val) -> Val:
    """A slice of the named axes, as ONNX has it; no axes are the first ones."""
    starts = elements(t, begin)
    along = [axis_of(t, x, a) for a in elements(t, axes)] or list(range(len(starts)))
    return cut(t, x, along, starts, elements(t, end), elements(t, steps))


@form("Fill", when=_has_inputs(2))
def fill(t: Tape, value: Val, shape: Val) -> Val:
    """One number in every place; the shape comes second."""
    return t.op("Expand", [value, new_shape(t, shape)])


@form("Cast", when=lambda values, attributes, declared: _type_in_a_tensor(values, attributes))
def cast(t: Tape, x: Val, dtype: Val = None, *, dst_type: Val = None) -> Val:
    """To the type whose number stands in a tensor or an attribute."""
    wanted = dst_type if dtype is None else int(number(dtype, "type"))
    return t.cast(x, dtype_argument(wanted).numpy)


def _type_in_a_tensor(values: Sequence[Val], attributes: Mapping[str, Any]) -> bool:
    if len(values) == 1:
        return "dst_type" in attributes
    return isinstance(values[1], ir.Value)


@form("OneHot", when=_has_inputs(3))
def one_hot(t: Tape, indices: Val, depth: Val, values: Val, *, axis: int = -1) -> Val:
    """The third input is (off, on); an index outside gives a row of `off` alone."""
    size = bounded(int(number(depth, "depth")), "classes", MAX_TABLE)
    off, on = (t.op("Gather", [values, np.asarray(i)]) for i in range(2))
    rank = t.rank(indices) + 1
    along = int(axis) % rank
    wanted = t.op("Unsqueeze", [t.cast(indices, np.dtype(np.int64)), np.asarray([along])])
    classes = np.arange(size).reshape([size if i == along else 1 for i in range(rank)])
    return t.op("Where", [t.op("Equal", [wanted, classes]), on, off])


# --- images with channels last --------------------------------------------------------------------


@form("DepthToSpace", "SpaceToDepth", when=_is_channels_last)
def depth_space(t: Tape, x: Val, *, block_size: int, mode: str = "DCR") -> Val:
    """Blocks of pixels against channels."""
    turned = channels_first(t, x, "NHWC")
    order = mode if t.primitive == "DepthToSpace" else None
    return restored(t, t.op(t.primitive, [turned], blocksize=block_size, mode=order), "NHWC")


@form("InstanceNorm", when=_has_inputs(3))
def instance_norm(
    t: Tape, x: Val, gamma: Val, beta: Val, *, epsilon: float = 1e-5, data_format: Val = "NCHW"
) -> Val:
    """Every image and channel by its own mean and variance."""
    inputs = [channels_first(t, x, data_format), gamma, beta]
    y = t.op("InstanceNormalization", inputs, epsilon=float(epsilon))
    return restored(t, y, data_format)


@form("ROIAlign", "GridSampler2D", when=_is_channels_last)
def other_layout(t: Tape, values: Val = ()) -> Val:
    """Refused: the usual meaning takes channels to be second."""
    raise UnsupportedOpError(f"{t.primitive} with channels last is not supported")


def _infers_a_tensor(
    values: Sequence[Val], attributes: Mapping[str, Any], declared: Type | None
) -> bool:
    return isinstance(declared, TensorType) and not attributes.get("is_training")


@form("FusedBatchNorm", "BatchNorm", when=_infers_a_tensor)
def batch_norm(
    t: Tape,
    x: Val,
    scale: Val,
    bias: Val,
    mean: Val = None,
    variance: Val = None,
    *,
    epsilon: float = 1e-4,
    data_format: Val = "NCHW",
) -> Val:
    """-> y alone. With three inputs, as Caffe has it, they are x, mean and variance."""
    if mean is None:
        mean, variance = scale, bias
        ones = t.op("Expand", [np.asarray(1, t.dtype(mean)), t.op("Shape", [mean])])
        scale, bias = ones, t.op("Sub", [mean, mean])
    last = layout(data_format) if t.rank(x) > 2 else "NCHW"
    inputs = [channels_first(t, x, last), scale, bias, mean, variance]
    return restored(t, t.op("BatchNormalization", inputs, epsilon=float(epsilon)), last)


# --- recurrent ------------------------------------------------------------------------------------


@form("LSTM", when=_has_inputs(6))
def lstm(
    t: Tape,
    x: Val,
    w: Val,
    r: Val,
    b: Val,
    h: Val,
    c: Val,
    *,
    bidirectional: bool = False,
) -> Val:
    """-> (y [time, direction, batch, hidden], h, c); gates and layout are ONNX's."""
    states = [t.op("Unsqueeze", [s, np.asarray([0])]) if t.rank(s) == 2 else s for s in (h, c)]
    direction = "bidirectional" if bidirectional else "forward"
    inputs = [x, w, r, b, None, *states]
    return t.op("LSTM", inputs, outputs=3, direction=direction, hidden_size=t.shape(r)[-1])
