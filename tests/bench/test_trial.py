from __future__ import annotations

import numpy as np
import pytest
from support.bench_world import Silent
from support.models import DIGITS

from mindspore_lite.bench import trial as trial_module
from mindspore_lite.bench.compare import ComparePlan
from mindspore_lite.bench.trial import Trial, engines
from mindspore_lite.bench.tune import Setting
from mindspore_lite.errors import EngineError, LiteError

ONE = Setting("onnxruntime", 1, 1)


def trial(shape: tuple[int, ...] = (1, 1, 8, 8)) -> Trial:
    return Trial(DIGITS, {"x": np.zeros(shape, np.float32)}, ComparePlan(0.06, 0.0), Silent())


def test_a_setting_is_built_and_measured() -> None:
    made = trial()
    with made.opened(ONE) as score:
        found = score(2)
    assert found.throughput > 0
    assert found.p99_ms > 0
    assert made.runs[ONE, 2].clients == 2
    assert made.layouts[ONE].workers == 1


def test_finalists_take_turns() -> None:
    made, other = trial(), Setting("onnxruntime", 1, 1, 4)
    scores = made.again([(ONE, 1), (other, 2), (ONE, 2)])
    assert all(score.throughput > 0 for score in scores)
    assert set(made.runs) == {(ONE, 1), (other, 2), (ONE, 2)}


def test_a_setting_that_answers_nothing_has_no_score() -> None:
    with pytest.raises(EngineError, match="predict failed"), trial((1, 2)).opened(ONE) as score:
        score(1)


def test_a_setting_that_cannot_be_built_is_an_error() -> None:
    with pytest.raises(LiteError, match="magic"), trial().opened(Setting("magic")):
        pass


def test_ctrl_c_in_a_try_ends_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial_module, "turns", lambda *_: ({"mslite": []}, True))
    with pytest.raises(KeyboardInterrupt), trial().opened(ONE) as score:
        score(1)


def test_engines_are_those_that_are_known_and_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert engines()[0] == "onnxruntime"
    monkeypatch.setattr(trial_module, "installed", lambda name: True)
    assert engines() == ["onnxruntime", "openvino"]
    monkeypatch.setattr(trial_module, "installed", lambda name: False)
    assert engines() == []
