"""A lone run is wide, one in a crowd is not, and a width that does not pay is left."""

from __future__ import annotations

import itertools

from support.fake_engine import FakeSession

from mindspore_lite.serving.thread_widths import WidthOption, Widths

WIDE, MIDDLE, NARROW = (
    WidthOption(1, FakeSession()),
    WidthOption(4, FakeSession()),
    WidthOption(16, FakeSession()),
)
LANES = (WIDE, MIDDLE, NARROW)


def test_a_lone_run_gets_the_widest_session() -> None:
    assert Widths().choose(LANES, 1) is WIDE


def test_a_crowd_gets_the_widest_that_has_room_for_it() -> None:
    widths = Widths()
    assert [widths.choose(LANES, runs) for runs in (2, 4, 5, 16, 99)] == [
        MIDDLE, MIDDLE, NARROW, NARROW, NARROW,
    ]  # fmt: skip


def test_a_crowd_is_noticed_at_once_and_forgotten_slowly() -> None:
    widths = Widths()
    assert widths.choose(LANES, 16) is NARROW
    found = [widths.choose(LANES, 1) for _ in range(100)]
    assert found[0] is NARROW
    assert found[-1] is WIDE
    changes = [b for a, b in itertools.pairwise(found) if a is not b]
    assert changes == [MIDDLE, WIDE]


def test_a_worker_with_one_session_has_no_choice() -> None:
    widths = Widths()
    widths.note((NARROW,), NARROW, 5)
    assert widths.choose((NARROW,), 1) is NARROW


def test_a_width_that_is_slower_than_one_thread_is_left() -> None:
    widths = Widths(narrow_ns=1000)
    runs = 0
    while widths.choose((WIDE, NARROW), 1) is WIDE:
        widths.note((WIDE, NARROW), WIDE, 2000)
        runs += 1
    assert 2 <= runs <= 16
    found = [widths.choose((WIDE, NARROW), 1) for _ in range(64)]
    assert found.count(WIDE) == 4  # tried again now and then


def test_one_slow_run_does_not_condemn_a_width() -> None:
    widths = Widths(narrow_ns=1700)
    for duration_ns in (5000, *[1000] * 8, 5000, *[1000] * 8):
        widths.note((WIDE, NARROW), WIDE, duration_ns)
        assert widths.choose((WIDE, NARROW), 1) is WIDE


def test_a_trial_that_goes_well_brings_the_width_back() -> None:
    widths = Widths(narrow_ns=1000)
    widths.note((WIDE, NARROW), WIDE, 90000)
    while widths.choose((WIDE, NARROW), 1) is NARROW:
        widths.note((WIDE, NARROW), NARROW, 1000)
    widths.note((WIDE, NARROW), WIDE, 600)
    assert [widths.choose((WIDE, NARROW), 1) for _ in range(5)] == [WIDE] * 5


def test_what_is_not_known_is_tried() -> None:
    widths = Widths()
    widths.note((WIDE, NARROW), WIDE, 9000)
    assert widths.choose((WIDE, NARROW), 1) is WIDE  # nobody knows a better one
