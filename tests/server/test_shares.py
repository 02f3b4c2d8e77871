from __future__ import annotations

import pytest

from mindspore_lite.server.shares import Shares


def test_what_the_server_was_told_comes_before_what_a_model_says() -> None:
    shares = Shares({"a": 3})
    assert (shares.of("a", 2.0), shares.of("b", 2.0), shares.of("b")) == (3.0, 2.0, 1.0)


@pytest.mark.parametrize(
    ("given", "share", "nice"),
    [
        ({}, 1.0, 0),
        ({}, 5.0, 0),  # there is nobody to give way to
        ({}, 0.5, 3),
        ({"a": 2.0}, 2.0, 0),
        ({"a": 2.0}, 1.0, 3),
        ({"a": 8}, 1.0, 9),
        ({"a": 1000}, 0.001, 19),
        ({"a": 0.1}, 0.1, 10),  # next to the others, which have 1
    ],
)
def test_processes_give_way_by_their_shares(
    given: dict[str, float], share: float, nice: int
) -> None:
    assert Shares(given).niceness(share) == nice


def test_names_are_those_that_it_was_told() -> None:
    assert Shares({"x": 1, "a": 2}).names == ["x", "a"]
    assert Shares().names == []
