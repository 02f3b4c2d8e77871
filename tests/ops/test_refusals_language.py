"""What the ops of norms, products, transforms, recurrent nets and attention refuse, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from ops.cases_complex import complexes
from support.op_case import Case, K, T, W, numbers

from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.graph.from_mindir import from_mindir

C = complexes(2, 3)
I8 = np.int8
LSTM = {"input_size": 3, "hidden_size": 2, "num_layers": 1, "has_bias": True,
        "bidirectional": False, "dropout": 0.0, "proj_size": 0}  # fmt: skip
STATES = [(1, 2, 2), (1, 2, 2)]
RNN = [(4, 2, 3), (5, 8), (8,), K(None), *STATES]
SCORE = {"head_num": 2, "scale_value": 1.0, "input_layout": "BSH", "sparse_mode": 0}
QKV = [(1, 4, 8)] * 3
HEADS = {"num_heads": 2, "input_layout": "BSH"}

ROWS: list[tuple[str, Sequence[Any], Mapping[str, Any], str]] = [
    ("ReLU", [C], {}, "a complex value cannot be used as a tensor here"),
    ("Greater", [C, C], {}, "a complex value cannot be used"),
    ("RFFT", [C], {}, "rfft of complex numbers"),
    ("FFT", [(2, 3), K(None), K(-1), K(7)], {}, "7 is no way to scale a Fourier transform"),
    ("FFT2", [(2, 3), K((2,)), K((0, 1)), K(None)], {}, "1 lengths for 2 axes"),
    ("IRFFT", [(2, 3), K(2**24)], {}, "factors of a Fourier transform"),
    ("FFTFreq", [K(2**30)], {}, "1073741824 frequencies"),
    ("DCT", [(2, 3), K(3)], {}, "a cosine transform of type 3"),
    ("STFT", [(2, 30), (8,)],
     {"n_fft": 2**20, "hop_length": 1, "win_length": 8, "normalized": False, "onesided": True,
      "return_complex": True}, "factors of a Fourier transform"),
    ("LSTM", [(4, 2, 3), *STATES, (48, 1, 1)], {**LSTM, "proj_size": 1}, "proj_size"),
    ("LSTM", [(4, 2, 3), *STATES, (47, 1, 1)], LSTM, "LSTM has 47 weights, wanted 48"),
    ("LSTM", [(4, 2, 3), *STATES, (48, 1, 1)], {**LSTM, "num_layers": 2**30}, "layers of an LSTM"),
    ("DynamicRNN", [*RNN[:3], np.array([4, 4]), *STATES], {}, "seq_length"),
    ("DynamicRNN", RNN, {"direction": "BIDIRECTIONAL"}, "direction 'BIDIRECTIONAL'"),
    ("DynamicGRUV2", [(4, 2, 3), (3, 6), (2, 6), (6,), (6,), K(None), (2, 2)],
     {"gate_order": "hzr"}, "gates 'hzr'"),
    ("FlashAttentionScore", QKV, {**SCORE, "keep_prob": 0.9}, "call set_train(False)"),
    ("FlashAttentionScore", QKV, {**SCORE, "sparse_mode": 5}, "sparse_mode 5"),
    ("FlashAttentionScore", QKV, {**SCORE, "input_layout": "TH"}, "layout 'TH'"),
    ("FlashAttentionScore", [(1, 4, 12), (1, 4, 8), (1, 4, 8)], {**SCORE, "head_num": 3},
     "3 heads cannot share 2 heads"),
    ("PromptFlashAttention", [*QKV, *[K(None)] * 3, (1, 2, 4, 4)], HEADS, "with pse_shift"),
    ("IncreFlashAttention", [(1, 1, 8), T((1, 4, 8), (1, 4, 8)), T((1, 4, 8), (1, 4, 8))], HEADS,
     "with 2 keys"),
    ("RotaryPositionEmbedding", [(1, 1, 2, 4)] * 3 + [K(2)], {}, "mode 2"),
    ("ApplyRotaryPosEmb", [(1, 2, 4), (1, 2, 4), (2, 4), (2, 4), np.arange(2)], {"cos_format": 4},
     "cos_format 4"),
    ("KVCacheScatterUpdate", [W(numbers(1, 2, 4, 3)), np.array([1]), (1, 2, 1, 3), K(-2)], {},
     "keeps state between runs"),
    ("MoeGatingTopKSoftmax", [(3, 4), np.array([True] * 3), K(2)], {}, "without finished"),
    ("MoeTokenPermute", [(3, 4), np.array([0, 1, 1]), K(None), K(True)], {}, "padded_mode"),
    ("QuantBatchMatmul", [numbers(2, 3, dtype=I8), numbers(3, 2, dtype=I8), np.array([1, 2])], {},
     "a packed scale that is no constant"),
    ("WeightQuantBatchMatmul", [(2, 3), numbers(3, 2, dtype=I8), (2,)],
     {"antiquant_group_size": 32}, "a scale for each column"),
    ("GroupedMatmul", [T((2, 3)), T((3, 2))], {"split_item": 2, "group_type": 2}, "group_type 2"),
    ("GroupedMatmul", [T((2, 3)), T((2**20, 3, 2)), *[K(None)] * 5, np.array([1])],
     {"split_item": 3, "group_type": 0}, "1048576 matrices"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("primitive", "inputs", "attributes", "words"), ROWS, ids=[f"{r[0]}-{r[3]}" for r in ROWS]
)
def test_an_option_that_is_not_implemented_is_refused_in_words(
    primitive: str, inputs: Sequence[Any], attributes: Mapping[str, Any], words: str
) -> None:
    if primitive == "GroupedMatmul" and "matrices" in words:
        inputs = [*inputs[:1], T(np.broadcast_to(np.float32(0), (2**20, 3, 2))), *inputs[2:]]
    case = Case(primitive, inputs, lambda *_: np.zeros(1, np.float32), attributes=attributes)
    (model, _), *_ = [form.build() for _, form in case.forms() if not form.typed]
    with pytest.raises(UnsupportedOpError) as caught:
        from_mindir(model)
    assert words in str(caught.value)


def test_a_half_transform_of_unknown_length_says_what_it_needs() -> None:
    case = Case("IRFFT", [C], lambda x: x, dynamic=True)
    model, _ = next(f.build() for _, f in case.forms() if f.dynamic and not f.typed)
    with pytest.raises(UnsupportedOpError, match="IRFFT needs a fixed size of axis 1"):
        from_mindir(model)
