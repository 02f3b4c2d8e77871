"""core/layouts.py: which shapes are taken as they lie, and what the others are told."""

from __future__ import annotations

import doctest
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindspore_lite.core import layouts

Shape = tuple[int, ...]


def test_the_examples_run() -> None:
    assert doctest.testmod(layouts).failed == 0


@pytest.mark.parametrize(
    ("wanted", "got"),
    [
        ((1, 3, 8, 8), (192,)),
        ((1, 3, 8, 8), (3, 8, 8)),
        ((1, 3, 8, 8), (3, 64)),
        ((1, 3, 8, 8), (1, 1, 3, 8, 8)),
        ((1, 192), (3, 8, 8)),
        ((), (1,)),
        ((1,), ()),
        ((0, 3), (0,)),
    ],
)
def test_taken(wanted: Shape, got: Shape) -> None:
    assert layouts.taken_as_it_lies(wanted, got)


@pytest.mark.parametrize(
    ("wanted", "got"),
    [
        ((1, 3, 8, 8), (1, 8, 8, 3)),
        ((1, 3, 8, 8), (8, 8, 3)),
        ((2, 3), (3, 2)),
        ((1, 6), (6, 1)),
        ((4, 6), (2, 3, 4)),
        ((2, 3), (5,)),
    ],
)
def test_refused(wanted: Shape, got: Shape) -> None:
    assert not layouts.taken_as_it_lies(wanted, got)


@given(st.lists(st.integers(1, 4), max_size=5), st.permutations(range(5)))
def test_exchanged_axes_are_never_taken_as_they_lie(shape: list[int], order: list[int]) -> None:
    """Unless nothing moves in memory, as axes of size 1 may."""
    array = np.arange(math.prod(shape)).reshape(shape)
    moved = array.transpose([at for at in order if at < len(shape)])
    if layouts.taken_as_it_lies(shape, moved.shape):
        assert moved.shape == array.shape or (moved.ravel() == array.ravel()).all()


@pytest.mark.parametrize(
    ("wanted", "got", "words"),
    [
        ((1, 3, 8, 8), (1, 8, 8, 3), "array.transpose(0, 3, 1, 2)"),
        ((-1, 3, -1, -1), (4, 9, 7, 3), "array.transpose(0, 3, 1, 2)"),
        ((1, 8, 8, 3), (1, 3, 8, 8), "array.transpose(0, 2, 3, 1)"),
        ((1, 3, 4, 8, 8), (1, 4, 8, 8, 3), "array.transpose(0, 4, 1, 2, 3)"),
        ((1, 3, 8, 8), (1, 3, 8, 8), ""),
        ((-1, -1, -1, -1), (1, 8, 8, 3), ""),
        ((1, 3, 224, 320), (1, 3, 320, 224), ""),
        ((2, 3), (3, 2), ""),
    ],
)
def test_exchanged_layouts_are_named(wanted: Shape, got: Shape, words: str) -> None:
    found = layouts.exchanged(wanted, got)
    assert (words in found) if words else not found


def test_the_named_transposition_gives_the_wanted_shape() -> None:
    for wanted, got in (((1, 3, 8, 8), (1, 8, 8, 3)), ((1, 3, 4, 8, 9), (1, 4, 8, 9, 3))):
        text = layouts.exchanged(wanted, got)
        order = eval(text.partition("transpose")[2])
        assert np.zeros(got).transpose(order).shape == wanted
