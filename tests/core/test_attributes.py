"""core/attributes.py: checked when set, copied when read, never lost in silence."""

from __future__ import annotations

import warnings

import pytest

from mindspore_lite.core import attributes as module
from mindspore_lite.core import checks
from mindspore_lite.core.attributes import Setting, Settings


class Lamp(Settings):
    _path = "lamp"
    _prefix = "lamp_"

    watts = Setting(checks.positive, 60)
    colours = Setting[list[int]](checks.integers, [])


def test_a_value_is_checked_under_its_label() -> None:
    lamp = Lamp()
    lamp.watts = 40
    with pytest.raises(ValueError, match="lamp_watts must be a positive int, but got 0"):
        lamp.watts = 0
    assert (lamp.watts, Lamp().watts) == (40, 60)


def test_what_is_read_is_a_copy() -> None:
    lamp = Lamp()
    lamp.colours.append(1)
    assert (lamp.colours, Lamp().colours) == ([], [])


def test_an_unknown_name_is_kept_and_warned_of_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_warned", set())
    lamp = Lamp()
    with pytest.warns(UserWarning, match=r"lamp has no setting 'wats'.*watts, colours"):
        lamp.wats = 3  # type: ignore[attr-defined]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lamp.wats = 4  # type: ignore[attr-defined]
    assert lamp.__dict__["wats"] == 4
