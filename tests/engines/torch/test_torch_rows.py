"""Rows of a batch: counting, choosing, and telling independent ones from others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.torch_graphs import dense, mixing, program, reshaping

from mindspore_lite.core.tensor_info import TensorInfo
from mindspore_lite.engines.torch import rows


def request(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    return [np.zeros(shape) for shape in shapes]


@pytest.mark.parametrize(
    "requests, wanted",
    [
        ([request((2, 3), (2,))], [2]),
        ([request((2, 3)), request((5, 3))], [2, 5]),
        ([request((2, 3), (3,))], None),  # inputs that do not agree
        ([request((2, 3)), request((2, 4))], None),
        ([request((0, 3))], None),
    ],
)
def test_rows_are_counted_where_requests_can_be_joined(requests: Any, wanted: Any) -> None:
    assert rows.counts(requests) == wanted


def test_the_smallest_batch_that_fits_is_taken() -> None:
    assert [rows.fitting((1, 4, 8), n) for n in (1, 2, 4, 5, 8, 9)] == [1, 4, 4, 8, 8, 8]


def test_only_an_open_first_axis_counts() -> None:
    def infos(*shapes: tuple[int, ...]) -> list[TensorInfo]:
        return [TensorInfo("x", np.dtype(np.float32), shape) for shape in shapes]

    assert rows.is_open(infos((-1, 3), (-1,)))
    assert not rows.is_open(infos((-1, 3), (1, 3)))
    assert not rows.is_open(infos((-1, 3), ()))
    assert not rows.is_open([])


def test_independent_rows_are_told_from_others() -> None:
    assert program(dense()).rows_are_independent(((1, 16),))
    assert not program(mixing()).rows_are_independent(((1, 16),))
    assert not program(reshaping()).rows_are_independent(((1,), (2,)))  # takes no made-up input


def test_a_result_that_depends_on_the_number_of_rows_is_noticed() -> None:
    info = [TensorInfo("x", np.dtype(np.float32), (-1, 2))]

    def mean(arrays: rows.Arrays) -> rows.Arrays:
        return [arrays[0] / len(arrays[0])]

    def same(arrays: rows.Arrays) -> rows.Arrays:
        return arrays

    def lost(arrays: rows.Arrays) -> rows.Arrays:
        return [arrays[0] * np.float32(np.nan if len(arrays[0]) > 1 else 1)]

    def fixed(arrays: rows.Arrays) -> rows.Arrays:
        return [arrays[0][:1]]

    assert rows.independent(info, [(1, 2)], same, same)
    for compute in (mean, lost, fixed):
        assert not rows.independent(info, [(1, 2)], compute, compute)


def test_made_up_numbers_are_indices_of_any_table() -> None:
    info = [TensorInfo("x", np.dtype(np.int64), (-1, 50))]
    (array,) = rows.made_up(info, [(4, 50)], 1)
    assert set(np.unique(array)) == {0, 1}
