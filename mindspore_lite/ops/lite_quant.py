"""converter_lite's integer tensors: quantised and dequantised where the file says so.

A fully quantised file computes on int8 tensors and keeps scale and zero point of each result in the
primitive that makes it. Here every such op computes on real numbers, and its result is rounded.

There is no DequantizeLinear, which would let ONNX Runtime put integer kernels in: it then quantises
weights that are real here a second time by scales of its own, and up to 1.31 a Reshape between two
int8 tensors ends in a graph that it refuses (microsoft/onnxruntime issue 25526).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx_ir as ir

from mindspore_lite.core.dtypes import BY_TYPE_ID
from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.mindir.records import SequenceType, TensorType, Type
from mindspore_lite.ops.table import Val, op
from mindspore_lite.ops.tape import Tape, constant_of, dtype_argument

_FULLY = (1, 3, 5)  # trained so, quantised after training, the same in newer releases
_QUANTISED = (np.dtype(np.int8), np.dtype(np.uint8), np.dtype(np.int16), np.dtype(np.uint16))


def is_quantised(attributes: Mapping[str, Any]) -> bool:
    """Whether an op computes on integers that stand for real numbers, not just its weights."""
    return attributes.get("quant_type") in _FULLY


def scale_and_zero(record: Mapping[str, Any], dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """The parameters of a record, of rank 0 where they hold for the whole tensor."""
    scales, zeros = record.get("scale_list"), record.get("zero_point_list")
    if not scales or not zeros or len(scales) != len(zeros):
        raise UnsupportedOpError("a quantised tensor has no scale and zero point")
    limits = np.iinfo(dtype)
    if min(scales) <= 0 or min(zeros) < limits.min or max(zeros) > limits.max:
        raise UnsupportedOpError("a scale or zero point of a quantised tensor makes no sense")
    scale, zero = np.asarray(scales, np.float32), np.asarray(zeros, dtype)
    return (scale[0], zero[0]) if len(scales) == 1 else (scale, zero)


def dequantised(t: Tape, x: Val, record: Mapping[str, Any] | None = None) -> Val:
    """Real numbers behind a quantised tensor: by its record, else as it was quantised here."""
    if t.dtype(x) not in _QUANTISED:
        return x
    axis, maker = 0, x.producer()
    if record is not None:
        scale, zero = scale_and_zero(record, t.dtype(x))
    elif maker is not None and maker.op_type == "QuantizeLinear":
        scale, zero = (np.asarray(constant_of(v)) for v in maker.inputs[1:])
        axis = maker.attributes.get_int("axis", 0)
    else:
        raise UnsupportedOpError(f"{x.name!r} is quantised, and its scale is not known")
    if np.ndim(scale):
        shape = [-1] + [1] * (t.rank(x) - 1 - axis)
        scale, zero = np.reshape(scale, shape), np.reshape(zero, shape)
    float32 = np.dtype(np.float32)
    centred = t.op("Sub", [t.cast(x, float32), zero.astype(float32)])
    return t.op("Mul", [centred, scale])


def real_inputs(t: Tape, attributes: Mapping[str, Any], values: Sequence[Val]) -> list[Val]:
    """The inputs of an op of a quantised file as real numbers."""
    record = attributes.get("graph_input_quant_param")

    def real(x: Val) -> Val:
        if isinstance(x, tuple | list):
            return tuple(real(v) for v in x)
        if not isinstance(x, ir.Value) or x.const_value is not None:
            return x  # weights are real numbers already
        return dequantised(t, x, record if x.producer() is None else None)

    return [real(x) for x in values]


def real_type(declared: Type | None) -> Type | None:
    """What an op returns before its result is quantised."""
    if isinstance(declared, SequenceType):
        return replace(declared, items=tuple(real_type(i) or i for i in declared.items))
    if isinstance(declared, TensorType) and declared.dtype.numpy in _QUANTISED:
        return replace(declared, dtype=BY_TYPE_ID[43])
    return declared


def requantised(t: Tape, attributes: Mapping[str, Any], result: Val, declared: Type | None) -> Val:
    """The result of such an op as the file declares it, quantised by the records of the op."""
    records = list(attributes.get("quant_param") or [])
    if not isinstance(result, tuple):
        return _requantised(t, result, declared, records)
    kinds = declared.items if isinstance(declared, SequenceType) else ()
    pairs = itertools.zip_longest(result, kinds[: len(result)])
    return tuple(_requantised(t, y, kind, records) for y, kind in pairs)


def _requantised(t: Tape, y: Val, declared: Type | None, records: list[Any]) -> Val:
    """Takes its record from the list, which has one for each result that is quantised."""
    wanted = declared.dtype.numpy if isinstance(declared, TensorType) else None
    if wanted not in _QUANTISED or t.dtype(y) == wanted:
        return y
    if not records:
        raise UnsupportedOpError("the result is quantised, and its scale is not known")
    return t.op("QuantizeLinear", [y, *scale_and_zero(records.pop(0), wanted)])


@op("QuantDTypeCast")
def quant_dtype_cast(
    t: Tape,
    x: Val,
    *,
    src_t: Val = 43,
    dst_t: Val = 32,
    axis: int = 0,
    quant_param: Val = (),
    graph_input_quant_param: Val = None,
) -> Val:
    """Real numbers to quantised ones or back."""
    wanted = dtype_argument(dst_t).numpy
    known = graph_input_quant_param if x.producer() is None else None
    real = dequantised(t, x, known)
    if wanted not in _QUANTISED:
        return t.cast(real, wanted)
    if not quant_param:
        raise UnsupportedOpError("QuantDTypeCast without scale and zero point")
    scale, zero = scale_and_zero(quant_param[0], wanted)
    along = axis if np.ndim(scale) else None
    return t.op("QuantizeLinear", [real, scale, zero], axis=along)
