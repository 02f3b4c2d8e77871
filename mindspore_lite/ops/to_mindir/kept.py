"""ONNX operators that are carried as they are on purpose, with the reasons."""

from __future__ import annotations

_QUANTISED = "stays as it is for the int8 kernels"
_RANDOM = "MindSpore draws other numbers"
_TEXT = "MindIR has no tensors of text"
_SEQUENCE = "MindIR has no sequences of any length"
_ASCEND = "MindSpore has it for half floats on Ascend alone"
_FUSED = "stays as it is for the engine's one kernel"

KEPT = {
    op_type: reason
    for reason, op_types in {
        _QUANTISED: (
            "QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "MatMulInteger",
            "ConvInteger", "QLinearMatMul", "QLinearConv",
        ),
        _RANDOM: (
            "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial",
            "Bernoulli",
        ),
        _TEXT: (
            "StringConcat", "StringNormalizer", "StringSplit", "RegexFullMatch", "TfIdfVectorizer",
        ),
        _SEQUENCE: (
            "SequenceAt", "SequenceConstruct", "SequenceEmpty", "SequenceErase", "SequenceInsert",
            "SequenceLength", "SequenceMap", "SplitToSequence", "ConcatFromSequence", "Optional",
            "OptionalGetElement", "OptionalHasElement",
        ),
        _ASCEND: ("GRU",),
        _FUSED: ("Attention", "RotaryEmbedding", "TensorScatter", "DFT", "STFT"),
    }.items()
    for op_type in op_types
}  # fmt: skip
