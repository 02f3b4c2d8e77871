"""What it takes an engine to compute one node ahead of time, beyond its inputs and its results.

A convolution on constants may unfold them into gigabytes, and return a single number. An operator
is in one of two lists: SIMPLE for those whose working memory and time grow with inputs and results
alone, or _COSTS for those with a measure of their own. One that is in neither, as all of other
domains are, has no known cost: nobody has to remember an operator for it to be bounded.

Measures are upper bounds: elements count as 8 bytes, and no kernel is thought to be clever.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import onnx_ir as ir

from mindspore_lite.passes.edit import attribute

Dims = tuple[int, ...]
_BYTES = 8  # of an element, at most
_FFT_STEPS = 512  # per element and power of two; ONNX Runtime was measured with odd lengths
_THREADS = 64  # that have memory of their own at once; guess


class Cost(NamedTuple):
    """Bytes of working memory, and steps of about a nanosecond each."""

    scratch_bytes: int = 0
    steps: int = 0


SIMPLE = {
    "Abs", "Acos", "Acosh", "Add", "AffineGrid", "And", "ArgMax", "ArgMin", "Asin", "Asinh", "Atan",
    "Atanh", "BatchNormalization", "BitCast", "BitShift", "BitwiseAnd", "BitwiseNot", "BitwiseOr",
    "BitwiseXor", "BlackmanWindow", "Cast", "CastLike", "Ceil", "Celu", "CenterCropPad", "Clip",
    "Col2Im", "Compress", "Concat", "ConcatFromSequence", "ConstantOfShape", "Cos", "Cosh",
    "CumProd", "CumSum", "DepthToSpace", "DequantizeLinear", "Div", "Dropout",
    "DynamicQuantizeLinear", "Elu", "Equal", "Erf", "Exp", "Expand", "EyeLike", "Flatten", "Floor",
    "Gather", "GatherElements", "GatherND", "Gelu", "GlobalAveragePool", "GlobalLpPool",
    "GlobalMaxPool", "Greater", "GreaterOrEqual", "GridSample", "GroupNormalization",
    "HammingWindow", "HannWindow", "HardSigmoid", "HardSwish", "Hardmax", "Identity",
    "InstanceNormalization", "IsInf", "IsNaN", "LayerNormalization", "LeakyRelu", "Less",
    "LessOrEqual", "Log", "LogSoftmax", "LpNormalization", "Max", "MaxUnpool", "Mean",
    "MeanVarianceNormalization", "MelWeightMatrix", "Min", "Mish", "Mod", "Mul", "Neg",
    "NegativeLogLikelihoodLoss", "NonZero", "Not", "OneHot", "Optional", "OptionalGetElement",
    "OptionalHasElement", "Or", "PRelu", "Pad", "Pow", "QuantizeLinear", "RMSNormalization",
    "Range", "Reciprocal", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax",
    "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare", "Relu", "Reshape",
    "Resize", "ReverseSequence", "RotaryEmbedding", "Round", "Scatter", "ScatterElements",
    "ScatterND", "Selu", "SequenceAt", "SequenceConstruct", "SequenceEmpty", "SequenceErase",
    "SequenceInsert", "SequenceLength", "Shape", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh", "Size",
    "Slice", "Softmax", "SoftmaxCrossEntropyLoss", "Softplus", "Softsign", "SpaceToDepth", "Split",
    "SplitToSequence", "Sqrt", "Squeeze", "Sub", "Sum", "Swish", "Tan", "Tanh", "TensorScatter",
    "ThresholdedRelu", "Tile", "TopK", "Transpose", "Trilu", "Unsqueeze", "Upsample",
    "Where", "Xor",
}  # fmt: skip
_SIMPLE_ELSEWHERE = {
    ("com.microsoft", "DequantizeLinear"), ("com.microsoft", "QuantizeLinear"),
    ("com.microsoft", "Gelu"), ("com.microsoft", "QuickGelu"),
}  # fmt: skip


def cost_of(node: ir.Node, inputs: Sequence[Dims | None], outputs: Sequence[Dims]) -> Cost | None:
    """The cost of a node with inputs and results of these dims; None where nothing bounds it.

    An input that is left out has the dims None.
    """
    if node.domain != "":
        return Cost() if (node.domain, node.op_type) in _SIMPLE_ELSEWHERE else None
    if node.op_type in SIMPLE:
        return Cost()
    measure = _COSTS.get(node.op_type)
    if measure is None:
        return None
    try:
        return measure(node, [() if dims is None else dims for dims in inputs], outputs)
    except (LookupError, TypeError, ValueError, AttributeError):  # a node that makes no sense
        return None


_Measure = Callable[[ir.Node, Sequence[Dims], Sequence[Dims]], Cost | None]


def _convolved(weight_at: int) -> _Measure:
    """Every window of the input, laid out as a column."""

    def measure(node: ir.Node, inputs: Sequence[Dims], outputs: Sequence[Dims]) -> Cost:
        weight, made = inputs[weight_at], outputs[0]
        columns = inputs[0][1] * math.prod(weight[2:]) * math.prod(made[2:])
        steps = math.prod(made) * math.prod(weight[1:])
        return Cost(_BYTES * columns, steps)

    return measure


def _conv_transpose(node: ir.Node, inputs: Sequence[Dims], outputs: Sequence[Dims]) -> Cost:
    """Every element of the input becomes a column."""
    x, weight = inputs[:2]
    columns = math.prod(weight[1:]) * math.prod(x[2:])
    return Cost(_BYTES * columns, math.prod(x) * math.prod(weight[1:]))


def _matmul(node: ir.Node, inputs: Sequence[Dims], outputs: Sequence[Dims]) -> Cost:
    return Cost(0, math.prod(outputs[0]) * max(inputs[0], default=1))


def _det(node: ir.Node, inputs: Sequence[Dims], outputs: Sequence[Dims]) -> Cost:
    return Cost(0, math.prod(inputs[0]) * inputs[0][-1])


def _einsum(node: ir.Node, inputs: Sequence[Dims], outputs: Sequence[Dims]) -> Cost | None:
    """Two operands become one, from left to right: labels that nobody needs any more are summed."""
    equation = attribute(node, "equation")
    if not isinstance(equation, str):
        return None
    left, _, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(inputs):
        return None
    sizes: dict[str, int] = {}
    needed = [_labels(term, dims, sizes) for term, dims in zip(terms, inputs, strict=True)]
    kept = set(sizes)
    if "->" in equation:
        kept = {label for label in sizes if label in right or label.startswith(".")}
    scratch = steps = 0
    held = needed[0]
    for at in range(1, len(needed) + 1):
        one = needed[at] if at < len(needed) else set()
        later = kept.union(*needed[at + 1 :])
        made = (held | one) & later
        scratch = max(scratch, sum(_size(labels, sizes) for labels in (held, one, made)))
        steps += _size(held | one, sizes)
        held = made
    return Cost(2 * _BYTES * scratch, steps)


def _labels(term: str, dims: Dims, sizes: dict[str, int]) -> set[str]:
    """The labels of an operand; dims of an ellipsis are labelled by their place from its end."""
    before, dots, after = term.partition("...")
    rest = len(dims) - len(before) - len(after)
    if rest < 0 or (rest and not dots):
        raise ValueError(f"{term!r} has not the rank {len(dims)}")
    labels = [*before, *(f"...{rest - at}" for at in range(rest)), *after]
    for label, size in zip(labels, dims, strict=True):
        sizes[label] = max(sizes.get(label, 1), size)
    return set(labels)


def _size(labels: set[str], sizes: dict[str, int]) -> int:
    return math.prod(sizes[label] for label in labels)


def _attention(node: ir.Node, inputs: Sequence[Dims], outputs: Sequence[Dims]) -> Cost:
    """A score of each query and key, in four copies."""
    query, key = inputs[:2]
    past = inputs[4][-2] if len(inputs) > 4 and inputs[4] else 0
    heads = query[1] if len(query) == 4 else int(attribute(node, "q_num_heads"))
    scores = query[0] * max(1, heads) * query[-2] * (key[-2] + past)
    return Cost(2 * _BYTES * scores, scores * (query[-1] + inputs[2][-1]))


def _recurrent(node: ir.Node, inputs: Sequence[Dims], outputs: Sequence[Dims]) -> Cost:
    """The gates of all steps."""
    x, weight, again = inputs[:3]
    gates = x[0] * x[1] * math.prod(weight[:2])
    steps = x[0] * x[1] * (math.prod(weight) + math.prod(again))
    return Cost(2 * _BYTES * gates, steps)


def _pooled(node: ir.Node, inputs: Sequence[Dims], outputs: Sequence[Dims]) -> Cost:
    return Cost(0, math.prod(outputs[0]) * math.prod(attribute(node, "kernel_shape")))


def _lrn(node: ir.Node, inputs: Sequence[Dims], outputs: Sequence[Dims]) -> Cost:
    """The squares of one image, with channels added at both ends."""
    _, channels, *sides = inputs[0]
    size = abs(int(attribute(node, "size")))
    return Cost(2 * _BYTES * (channels + size) * math.prod(sides), math.prod(inputs[0]))


def _roi_align(node: ir.Node, inputs: Sequence[Dims], outputs: Sequence[Dims]) -> Cost | None:
    """A table of the samples of a box."""
    ratio = int(attribute(node, "sampling_ratio", 0))
    if ratio <= 0:  # then the numbers of the boxes decide
        return None
    boxes, _, *sides = outputs[0]
    table = math.prod(sides) * ratio * ratio
    return Cost(4 * _BYTES * table * min(boxes, _THREADS), math.prod(outputs[0]) * ratio * ratio)


def _max_roi_pool(node: ir.Node, inputs: Sequence[Dims], outputs: Sequence[Dims]) -> Cost:
    return Cost(0, inputs[1][0] * math.prod(inputs[0][1:]) + math.prod(outputs[0]))


def _boxes(node: ir.Node, inputs: Sequence[Dims], outputs: Sequence[Dims]) -> Cost:
    """Every box is held against every other, for each class."""
    boxes = inputs[0][-2]
    return Cost(2 * _BYTES * boxes, math.prod(inputs[1]) * boxes)


def _unique(node: ir.Node, inputs: Sequence[Dims], outputs: Sequence[Dims]) -> Cost:
    """A tree with a node for each element; ONNX Runtime was measured with 140 bytes."""
    elements = math.prod(inputs[0])
    return Cost(20 * _BYTES * elements, elements * elements.bit_length())


def _fourier(node: ir.Node, inputs: Sequence[Dims], outputs: Sequence[Dims]) -> Cost:
    """One of any length is made of three whose length is a power of two."""
    made = math.prod(outputs[0])
    return Cost(4 * 4 * _BYTES * made, _FFT_STEPS * made * max(1, made.bit_length()))


_COSTS: dict[str, _Measure] = {
    "Attention": _attention,
    "AveragePool": _pooled,
    "Conv": _convolved(1),
    "ConvInteger": _convolved(1),
    "ConvTranspose": _conv_transpose,
    "DFT": _fourier,
    "DeformConv": _convolved(1),
    "Det": _det,
    "Einsum": _einsum,
    "GRU": _recurrent,
    "Gemm": _matmul,
    "LRN": _lrn,
    "LSTM": _recurrent,
    "LpPool": _pooled,
    "MatMul": _matmul,
    "MatMulInteger": _matmul,
    "MaxPool": _pooled,
    "MaxRoiPool": _max_roi_pool,
    "NonMaxSuppression": _boxes,
    "QLinearConv": _convolved(3),
    "QLinearMatMul": _matmul,
    "RNN": _recurrent,
    "RoiAlign": _roi_align,
    "STFT": _fourier,
    "Unique": _unique,
}
