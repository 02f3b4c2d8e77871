"""passes/reshape_sizes.py: targets of Reshape for other sizes of its input."""

from __future__ import annotations

import pytest

from mindspore_lite.passes.reshape_sizes import AmbiguousError, followed

TWO_TO_ONE = {2: frozenset({1})}


@pytest.mark.parametrize(
    ("target", "old", "new", "want"),
    [
        ([2, 12], [2, 3, 4], [1, 3, 4], [1, 12]),
        ([2, -1], [2, 3, 4], [1, 3, 4], [1, 12]),
        ([-1, 12], [2, 3, 4], [1, 3, 4], [1, 12]),
        ([0, 12], [2, 3, 4], [1, 3, 4], [1, 12]),
        ([24], [2, 3, 4], [1, 3, 4], [12]),
        ([6, 4], [2, 3, 4], [1, 3, 4], [3, 4]),
        ([2, 96], [2, 96, 1, 1], [1, 96, 1, 1], [1, 96]),
        ([2, 7, 3, 5], [14, 15], [7, 15], [1, 7, 3, 5]),  # the one that changed is split off
        ([-1, 7, 15], [14, 15], [21, 15], [3, 7, 15]),
        ([1, 24], [24], [30], [1, 30]),
        ([8, 6], [2, 24], [1, 24], [4, 6]),  # heads: the batch is the first part of the 8
        ([11, 8, 6], [11, 2, 24], [11, 5, 24], [11, 20, 6]),
        ([4, 6], [1, 24], [3, 24], [12, 6]),
        ([2, 3], [2, 1, 3], [2, 5, 3], [10, 3]),  # a size that is left out goes to the front
        ([11, 24], [1, 11, 24], [3, 11, 24], [33, 24]),
        ([2, 1, 3], [2, 3], [1, 3], [1, 1, 3]),
        ([1, 1, 10], [1, 10], [4, 10], [4, 1, 10]),
        ([1, 10], [1, 1, 10], [1, 4, 10], [4, 10]),
        ([3, 4], [4, 3], [8, 3], None),  # no factors in common
        ([3, 4], [2, 3, 4], [1, 3, 4], None),  # it never fitted
        ([0, 0, 0, 0], [2, 3], [1, 3], None),
        ([7, 2, 5], [70], [30], None),  # no number of it follows
    ],
)
def test_targets_follow(
    target: list[int], old: list[int], new: list[int], want: list[int] | None
) -> None:
    changes = {2: frozenset({1}), 24: frozenset({30})}
    assert followed(target, old, new, changes) == want


def test_a_size_of_one_becomes_larger() -> None:
    assert followed([1, 12], [1, 3, 4], [5, 3, 4], {1: frozenset({5})}) == [5, 12]


def test_two_answers_are_none() -> None:
    with pytest.raises(AmbiguousError):
        followed([2, 2, 8], [4, 8], [2, 8], TWO_TO_ONE)


def test_sizes_that_changed_places_are_not_taken_as_they_were() -> None:
    turned = {4: frozenset({6}), 6: frozenset({4})}
    with pytest.raises(AmbiguousError):
        followed([1, 5, 4, 6], [1, 5, 24], [1, 5, 24], turned)
    assert followed([1, 24, 5], [1, 24, 5], [1, 24, 5], turned) == [1, 24, 5]


def test_many_numbers_are_not_tried_in_all_ways() -> None:
    sizes = [2] * 14
    assert followed(sizes, [2**14], [3**5 * 7], {2: frozenset({3, 5, 7})}) is None
