"""What the ops on shapes, places and matrices refuse, always in words that say what is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from support.mindir_builder import Net
from support.op_case import Case, K, S, T
from support.refusal import Row, assert_refused, named

from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.graph.from_mindir import from_mindir

HUGE = 2**40
ROWS = np.array([0, 1], np.int64)

OPTIONS: list[Row] = [
    ("Gather", [(2, 3), np.zeros((2, 2), np.int64), K(0), K(1)], {}, "before batch_dims 1"),
    ("Embedding", [ROWS, (3, 4), K(None), K(1.0), K(2.0), K(False)], {}, "max_norm"),
    ("Index", [(3,), T(ROWS, ROWS)], {}, "2 indices for a tensor of 1 dims"),
    ("Index", [(3,), T(K(None))], {}, "1 indices for a tensor of 1 dims"),
    ("PadV3", [(2, 3), K((1, 2, 3))], {}, "3 pads for a tensor of 2 dims"),
    ("PadV3", [(2, 3), K((1,) * 6)], {}, "6 pads for a tensor of 2 dims"),
    ("PadV3", [(2, 3), K((1, 1))], {"mode": "wobble"}, "padding mode 'wobble'"),
    ("MirrorPad", [(3,), K(((1, 1),))], {"mode": "EDGE"}, "padding mode 'EDGE'"),
    ("Meshgrid", [T((3,), (2,))], {"indexing": "ji"}, "indexing 'ji'"),
    ("Scatter", [(3,), K(0), ROWS, (2,), K(7)], {}, "reduce 7"),
    ("TensorScatterElements", [(3,), ROWS, (2,)], {"reduce": "mean"}, "reduce 'mean'"),
    ("Cross", [(2, 2), (2, 2)], {}, "an axis of size 3"),
    ("MatrixDiagPartV3", [(2, 3), K((-5, 0)), K(0.0)], {}, "diagonals (-5, 0) of a 2 x 3 matrix"),
    ("MatrixDiagPartV3", [(2, 3), K((1, 0)), K(0.0)], {}, "diagonals (1, 0) of a 2 x 3 matrix"),
    ("AsStrided", [(3,), T(S(2)), K((1,)), K(0)], {}, "size must be constant"),
]  # fmt: skip


@pytest.mark.parametrize("row", OPTIONS, ids=named)
def test_an_option_without_meaning_here_is_refused_in_words(row: Row) -> None:
    assert_refused(row)


ABSURD: list[tuple[str, Sequence[Any], Mapping[str, Any], str]] = [
    ("Zeros", [K((HUGE, 2)), K(43)], {}, "elements of a tensor"),
    ("NewFull", [(2,), K((HUGE,)), K(1.0), K(None)], {}, "elements of a tensor"),
    ("ScatterNd", [ROWS[:, None], (2,), K((HUGE,))], {}, "elements of a tensor"),
    ("BroadcastTo", [(1,), K((HUGE,))], {}, "elements of a tensor"),
    ("Tile", [(2,), K((HUGE,))], {}, "repeats"),
    ("RepeatInterleaveInt", [(2,), K(HUGE), K(0), K(None)], {}, "repeats"),
    ("RepeatInterleaveTensor", [(1,), K(np.array([HUGE])), K(0), K(None)], {}, "repeats"),
    ("ConstantPadND", [(2,), K((0, HUGE)), K(0.0)], {}, "elements of padding"),
    ("Range", [K(0), K(HUGE), K(1)], {}, "numbers of a range"),
    ("LinSpaceExt", [K(0), K(1), K(HUGE), K(None)], {}, "numbers of a range"),
    ("SequenceMask", [ROWS, K(HUGE)], {}, "numbers of a range"),
    ("HannWindow", [K(HUGE)], {}, "places of a window"),
    ("Eye", [K(HUGE), K(2), K(43)], {}, "elements of a table"),
    ("TrilIndices", [], {"row": HUGE, "col": 2}, "elements of a table"),
    ("AsStrided", [(3,), K((HUGE,)), K((0,)), K(0)], {}, "elements of a strided view"),
    ("MatrixDiagV3", [(2,), K(0), K(HUGE), K(HUGE), K(0.0)], {}, "elements of a table"),
    ("UnsortedSegmentSum", [(2,), ROWS, K(HUGE)], {}, "segments"),
    ("Meshgrid", [T(*[(1,)] * 40)], {}, "axes of a grid"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("primitive", "inputs", "attributes", "words"), ABSURD, ids=[a[0] for a in ABSURD]
)
def test_absurd_sizes_are_refused_before_any_work(
    primitive: str, inputs: Sequence[Any], attributes: Mapping[str, Any], words: str
) -> None:
    case = Case(primitive, inputs, lambda *_: np.zeros(1, np.float32), attributes=attributes)
    model, _ = next(form.build() for _, form in case.forms() if not form.typed)
    with pytest.raises(UnsupportedOpError, match=f"{words}, at most"):
        from_mindir(model)


@pytest.mark.parametrize("primitive", ["MatrixDiagPartV3", "FillDiagonal"])
def test_a_table_for_matrices_of_unknown_size_is_refused(primitive: str) -> None:
    net = Net()
    arguments = [net.constant(0), net.constant(0.0)] if primitive == "MatrixDiagPartV3" else []
    made = net.call(primitive, net.input("x", (-1, 3)), *arguments, fill_value=1.0)
    with pytest.raises(UnsupportedOpError, match="the matrices need a fixed size"):
        from_mindir(net.model(made))
