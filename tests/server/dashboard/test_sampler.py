from __future__ import annotations

import logging
import threading
from typing import Any

import pytest
from support.fake_engine import LIMIT_S
from support.fake_numbers import model, numbers

from mindspore_lite.server.core import Core
from mindspore_lite.server.dashboard import sampler
from mindspore_lite.server.dashboard.sampler import Sampler


def test_samples_go_on_after_one_that_failed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    core, heard, looks = Core(), threading.Event(), []
    core.history.follow(lambda data: heard.set())

    def look(asked: Core) -> dict[str, Any]:
        looks.append(asked)
        if len(looks) < 3:
            raise RuntimeError("the model is being closed")
        return numbers(model())

    monkeypatch.setattr(sampler, "numbers", look)
    monkeypatch.setattr(sampler, "_EVERY_S", 0.001)
    found = Sampler(core)
    with caplog.at_level(logging.WARNING):
        found.start()
        assert heard.wait(LIMIT_S)
        found.stop()
        found.stop()
    assert looks[0] is core
    assert [row.message for row in caplog.records] == [
        "a sample of the server's numbers failed"
    ] * 2


def test_a_sampler_that_never_ran_can_be_stopped() -> None:
    Sampler(Core()).stop()
