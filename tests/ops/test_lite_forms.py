"""ops/lite_forms.py: which form a node has, and the forms whose usual twin has rows elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.mindir_builder import tensor_type
from support.op_case import Case, K, W, numbers
from support.running import assert_close, run

from mindspore_lite.mindir import records as r
from mindspore_lite.ops.lite_forms import FORMS, row_of

I32, F32 = np.int32, np.float32


def sigmoid(x: np.ndarray) -> Any:
    return 1 / (1 + np.exp(-x))


def lstm(x: np.ndarray, w: Any, r: Any, b: Any, h: Any, c: Any) -> tuple[Any, ...]:
    """The gates are (input, output, forget, cell)."""
    ways = []
    for d in range(w.shape[0]):
        hidden, cell = (s.reshape(w.shape[0], *s.shape[-2:])[d] for s in (h, c))
        steps = []
        for row in x if d == 0 else x[::-1]:
            i, o, f, g = np.split(row @ w[d].T + hidden @ r[d].T + sum(np.split(b[d], 2)), 4, -1)
            cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
            hidden = sigmoid(o) * np.tanh(cell)
            steps.append(hidden)
        ways.append((np.stack(steps if d == 0 else steps[::-1]), hidden, cell))
    y, hidden, cell = zip(*ways, strict=True)
    return np.stack(y, 1), np.stack(hidden), np.stack(cell)


def recurrent(directions: int) -> list[W]:
    shapes = [(directions, 16, 3), (directions, 16, 4), (directions, 32)]
    return [W(numbers(*shape, seed=i, low=-1, high=1)) for i, shape in enumerate(shapes)]


def instance_norm(x: np.ndarray, g: np.ndarray, b: np.ndarray) -> Any:
    centred = x - x.mean((1, 2), keepdims=True)
    return centred / np.sqrt((centred**2).mean((1, 2), keepdims=True) + 1e-3) * g + b


def batch_norm(x: np.ndarray, m: np.ndarray, v: np.ndarray) -> Any:
    return (x - m) / np.sqrt(v + np.float32(1e-3))


def space_to_batch(x: np.ndarray, block: Any, pads: Any) -> np.ndarray:
    x = np.pad(x, [(0, 0), *pads, (0, 0)])
    parts = [x[:, i :: block[0], j :: block[1]] for i in range(block[0]) for j in range(block[1])]
    return np.concatenate(parts)


def batch_to_space(x: np.ndarray, block: Any, crops: Any) -> np.ndarray:
    count = x.shape[0] // (block[0] * block[1])
    y = np.zeros((count, x.shape[1] * block[0], x.shape[2] * block[1], x.shape[3]), x.dtype)
    for k, part in enumerate(np.split(x, block[0] * block[1])):
        y[:, k // block[1] :: block[0], k % block[1] :: block[1]] = part
    (top, bottom), (left, right) = crops
    return y[:, top : y.shape[1] - bottom, left : y.shape[2] - right]


PAIRS = [[1, 0], [2, 1]]
LITE = {"primitive_function": False, "format": 1}

ROWS = [
    Case("SpaceToBatchND", [(2, 3, 3, 2)], lambda x: space_to_batch(x, (2, 3), PAIRS),
         attributes={"block_shape": [2, 3], "paddings": PAIRS, **LITE}, dynamic=True),
    Case("SpaceToBatch", [(1, 3, 1, 2)], lambda x: space_to_batch(x, (2, 2), PAIRS),
         attributes={"block_size": [2, 2], "paddings": PAIRS, **LITE}),
    Case("BatchToSpaceND", [(12, 3, 3, 2)], lambda x: batch_to_space(x, (2, 3), PAIRS),
         attributes={"block_shape": [2, 3], "crops": PAIRS, **LITE}, dynamic=True),
    Case("BatchToSpace", [(4, 3, 3, 2)], lambda x: batch_to_space(x, (2, 2), [[0, 0], [0, 1]]),
         attributes={"block_size": [2, 2], "crops": [[0, 0], [0, 1]], **LITE}),
    Case("Fill", [np.array(2.5, F32), K(np.array([2, 3], I32))], lambda v: np.full((2, 3), v)),
    Case("Fill", [np.array(2, I32), np.array([2, 3], I32)], lambda v, s: np.full((2, 3), v)),
    Case("LSTM", [(5, 2, 3), *recurrent(1), numbers(1, 2, 4), numbers(1, 2, 4)], lstm,
         attributes={"bidirectional": False, "has_bias": True}),
    Case("LSTM", [(5, 2, 3), *recurrent(1), numbers(2, 4), numbers(2, 4)], lstm),
    Case("LSTM", [(5, 2, 3), *recurrent(2), numbers(2, 2, 4), numbers(2, 2, 4)], lstm,
         attributes={"bidirectional": True}),
    Case("InstanceNorm", [(2, 4, 5, 3), W(numbers(3)), W(numbers(3, seed=1))], instance_norm,
         attributes={"epsilon": 1e-3, "format": 1}),
    Case("BatchNorm", [(2, 4, 4, 3), W(numbers(3)), W(numbers(3, low=0.5))], batch_norm,
         attributes={"epsilon": 1e-3, "format": 1, "is_training": False}, untyped=False),
    Case("BatchNorm", [(2, 3), W(numbers(3)), W(numbers(3, low=0.5))], batch_norm,
         attributes={"epsilon": 1e-3}, untyped=False, dynamic=True),
]  # fmt: skip


@pytest.mark.parametrize("case", ROWS, ids=lambda c: c.primitive)
def test_a_form_computes_what_numpy_computes(case: Case) -> None:
    for name, form in case.forms():
        model, feeds = form.build()
        for got, wanted in zip(run(model, *feeds), case.wanted(), strict=True):
            assert_close(got, wanted, name)


TUPLE = r.SequenceType((tensor_type((2,)),))


@pytest.mark.parametrize(
    ("primitive", "values", "attributes", "declared"),
    [
        ("StridedSlice", [None] * 4, {}, None),
        ("StridedSlice", [None] * 9, {}, None),
        ("Split", [None], {"size_splits": [2, 2], "output_num": 2}, None),
        ("Split", [None], {"size_splits": [], "output_num": 2}, None),
        ("Shape", [None], {}, TUPLE),
        ("Shape", [None], {}, None),
        ("Flatten", [None], {}, None),
        ("OneHot", [None] * 5, {}, None),
        ("LRN", [None], {"format": "NCHW"}, None),
        ("DepthToSpace", [None], {"block_size": 2}, None),
        ("LSTM", [None] * 4, {}, None),
        ("InstanceNorm", [None] * 5, {}, None),
        ("BatchNorm", [None] * 5, {"is_training": False}, TUPLE),
        ("Cast", [None, 43], {}, None),
        ("Reshape", [None, (2, 3)], {}, None),
        ("ReLU", [None], {}, None),
        ("SpaceToBatchND", [None], {"block_shape": [2, 2], "paddings": PAIRS}, None),
        ("SpaceToBatchND", [None], {"primitive_function": False, "format": 0}, None),
        ("ROIAlign", [None] * 2, {}, None),
    ],
)
def test_what_mindspore_writes_keeps_its_usual_meaning(
    primitive: str, values: Any, attributes: Any, declared: Any
) -> None:
    assert row_of(primitive, values, attributes, declared) is None


def test_every_form_says_in_a_line_what_it_does() -> None:
    assert [name for name, (_, row) in FORMS.items() if not row.meaning.__doc__] == []
