from __future__ import annotations

import pytest

from mindspore_lite.core.budget import DEFAULT, Budget, budget_of
from mindspore_lite.errors import EngineError


def test_nothing_said_is_the_default() -> None:
    assert budget_of({}) == budget_of({"build": {}}) == DEFAULT


def test_every_key_is_read() -> None:
    said = {"max_nodes": "7", "max_fold_bytes": "2m", "max_seconds": " 9 ", "sandbox": "ON"}
    assert budget_of({"build": said}) == Budget(7, 2 << 20, 9, True)


@pytest.mark.parametrize(
    ("key", "text", "words"),
    [
        ("max_node", "7", "no key 'max_node', wanted one of max_nodes"),
        ("max_nodes", "0", "max_nodes is '0', wanted a number of 1 or more"),
        ("max_seconds", "-1", "max_seconds is '-1'"),
        ("max_fold_bytes", "1T", "may end in K, M or G"),
        ("sandbox", "maybe", "sandbox is 'maybe', wanted on or off"),
    ],
)
def test_what_means_nothing_is_an_error(key: str, text: str, words: str) -> None:
    with pytest.raises(EngineError, match=words):
        budget_of({"build": {key: text}})
