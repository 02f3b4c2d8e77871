"""inspection/layout.py: layers, order, and places that do not overlap."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindspore_lite.inspection import layout
from mindspore_lite.inspection.layout import GAP_X, GAP_Y, arrange


def test_nothing_takes_no_room() -> None:
    assert arrange([], []).places == []


def test_a_chain_hangs_straight() -> None:
    made = arrange([(100, 20), (50, 20), (80, 20)], [(0, 1), (1, 2)])
    middles = [x + w / 2 for (x, _), w in zip(made.places, (100, 50, 80), strict=True)]
    assert middles == [50, 50, 50]
    assert [y for _, y in made.places] == [0, 20 + GAP_Y, 2 * (20 + GAP_Y)]
    assert (made.width, made.height) == (100, 60 + 2 * GAP_Y)


def test_two_branches_stand_on_both_sides_of_their_source() -> None:
    made = arrange([(60, 20)] * 4, [(0, 1), (0, 2), (1, 3), (2, 3)])
    (top, _), (left, _), (right, _), (bottom, _) = made.places
    assert left < top == bottom < right
    assert right - left == 60 + GAP_X


def test_an_edge_over_layers_bends_around_what_stands_between() -> None:
    made = arrange([(60, 20)] * 3, [(0, 1), (0, 2), (1, 2)])
    (x, _) = made.places[1]
    long = made.routes[1]
    assert len(long) == 4
    assert all(not x <= px <= x + 60 for px, _ in long[1:-1])


def test_a_source_without_inputs_stands_right_above_its_reader() -> None:
    made = arrange([(60, 20)] * 4, [(0, 1), (1, 3), (2, 3)])
    assert made.places[2][1] == made.places[1][1]


def test_an_edge_that_leads_backwards_is_left_out() -> None:
    assert (
        arrange([(60, 20)] * 2, [(1, 0), (0, 1)]).routes == arrange([(60, 20)] * 2, [(0, 1)]).routes
    )


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[tuple[float, float]], list[tuple[int, int]]]:
    count = draw(st.integers(1, 30))
    sizes = [(draw(st.integers(10, 300)), draw(st.integers(10, 200))) for _ in range(count)]
    ends = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1))
    edges = draw(st.lists(ends.filter(lambda e: e[0] < e[1]), max_size=60, unique=True))
    return [(float(w), float(h)) for w, h in sizes], edges


@given(graphs())
def test_blocks_never_overlap_and_edges_lead_down(
    graph: tuple[list[tuple[float, float]], list[tuple[int, int]]],
) -> None:
    sizes, edges = graph
    made = arrange(sizes, edges)
    boxes = [(x, y, x + w, y + h) for (x, y), (w, h) in zip(made.places, sizes, strict=True)]
    for number, a in enumerate(boxes):
        assert a[0] >= -1e-6 and a[2] <= made.width + 1e-6 and a[3] <= made.height + 1e-6
        for b in boxes[number + 1 :]:
            apart = a[2] <= b[0] + 1e-6 or b[2] <= a[0] + 1e-6 or a[3] <= b[1] or b[3] <= a[1]
            assert apart
    assert len(made.routes) == len(edges)
    for route in made.routes:
        assert all(upper[1] <= lower[1] for upper, lower in pairwise(route))


def test_beyond_the_limit_of_bends_edges_are_straight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "MAX_BENDS", 2)
    count = 10
    chain = [(i, i + 1) for i in range(count - 1)]
    made = arrange([(60.0, 20.0)] * count, [*chain, (0, count - 1)])
    assert len(made.routes[-1]) == 2


def test_thousands_of_blocks_take_seconds_at_most() -> None:
    count = 3000
    edges = [(i, i + 1) for i in range(count - 1)] + [(i, i + 40) for i in range(0, count - 40, 4)]
    begin = time.process_time()
    arrange([(100.0, 24.0)] * count, edges)
    assert time.process_time() - begin < 20  # about 1 s here; a quadratic step would take minutes
