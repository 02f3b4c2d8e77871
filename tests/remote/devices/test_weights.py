"""weights.py: what a worker that starts again must be told of all updates so far."""

from __future__ import annotations

import numpy as np

from mindspore_lite.remote.devices.weights import Weights

Pairs = list[tuple[str, float]]


def updated(*updates: list[Pairs]) -> Weights:
    found = Weights()
    for groups in updates:
        found = found.after([[(name, np.array(value)) for name, value in g] for g in groups])
    return found


def kept(weights: Weights) -> list[Pairs]:
    return [[(name, float(array)) for name, array in group] for group in weights.groups]


def test_at_first_there_is_nothing_to_tell() -> None:
    assert (Weights().version, kept(Weights())) == (0, [])


def test_every_update_counts_also_one_that_restores() -> None:
    assert updated([[("a", 1)]], [[("a", 2)]], []).version == 3


def test_of_a_weight_that_changed_twice_the_last_value_is_kept() -> None:
    assert kept(updated([[("a", 1), ("b", 1)]], [[("a", 2)]])) == [[("b", 1)], [("a", 2)]]


def test_a_group_of_which_everything_was_changed_again_is_forgotten() -> None:
    assert kept(updated([[("a", 1), ("b", 1)]], [[("b", 2)]], [[("a", 2)]])) == [
        [("b", 2)],
        [("a", 2)],
    ]


def test_the_same_update_again_and_again_is_kept_once() -> None:
    assert kept(updated(*[[[("a", n), ("b", n)]] for n in range(9)])) == [[("a", 8), ("b", 8)]]


def test_unnamed_weights_keep_their_places() -> None:
    """Or the second would become the first."""
    assert kept(updated([[("", 1), ("", 2)]], [[("", 3)]])) == [[("", 1), ("", 2)], [("", 3)]]
    assert kept(updated([[("", 1)]], [[("", 3), ("", 4)]])) == [[("", 3), ("", 4)]]


def test_a_weight_may_be_named_and_counted_in_turn() -> None:
    """Nobody here knows that they are the same: both are told, in their order."""
    found = updated([[("a", 1)]], [[("", 2)]], [[("a", 3)]])
    assert kept(found) == [[("", 2)], [("a", 3)]]


def test_nothing_of_the_present_update_is_left_out() -> None:
    """The model shall judge all of it; the next update forgets what it need not keep."""
    found = updated([[("a", 1), ("b", 1)]], [[("a", 2)], [("a", 3)], []])
    assert kept(found) == [[("b", 1)], [("a", 2)], [("a", 3)], []]
    assert kept(found.after([[("c", np.array(4))]])) == [[("b", 1)], [("a", 3)], [("c", 4)]]


def test_restored_weights_are_those_of_the_file() -> None:
    found = updated([[("a", 1)]], [])
    assert (kept(found), found.version) == ([], 2)
    assert kept(found.after([[("b", np.array(1))]])) == [[("b", 1)]]
