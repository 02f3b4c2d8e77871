from __future__ import annotations

from pathlib import Path

import pytest
from support.models import DIGITS

import mindspore_lite as mslite
from mindspore_lite.bench.result import Point
from mindspore_lite.bench.winner import entries, ini_text, python_text, remember
from mindspore_lite.engines.choice import Evidence
from mindspore_lite.settings.read import read_config

CHOSEN = Point("onnxruntime", 2, 1, 8, 16, 100.0, 1.0)
AUTOMATIC = Point("onnxruntime", 0, 0, 0, 1, 100.0, 1.0)


def test_the_file_is_one_that_a_context_takes(tmp_path: Path) -> None:
    file = tmp_path / "best.ini"
    file.write_text(ini_text(CHOSEN))
    assert read_config(file) == entries(CHOSEN)
    context = mslite.Context()
    context.parallel.config_path = str(file)
    with mslite.ModelParallelRunner() as runner:
        runner.build_from_file(str(DIGITS), context)
        layout = runner.statistics().layout
    assert (layout.workers, layout.threads) == (2, 1)


def test_the_program_builds_the_model_so() -> None:
    names: dict[str, mslite.ModelParallelRunner] = {}
    exec(python_text(CHOSEN, str(DIGITS)), names)
    runner = names["runner"]
    assert runner.statistics().layout.workers == 2
    assert runner._loaded is not None
    assert runner._loaded.pool._scheduler.batching.max_rows == 8
    runner.close()


def test_automatic_settings_are_left_out() -> None:
    assert entries(AUTOMATIC) == {"common_context": {"engine": "onnxruntime"}}
    assert "num" not in python_text(AUTOMATIC, "m.mindir")


def test_the_choice_is_what_engine_auto_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSLITE_CACHE_DIR", str(tmp_path))
    assert remember(DIGITS, "MINDIR", CHOSEN, Evidence(1000, 7, 1.5))
    context = mslite.Context()
    context.parallel.config_info = {"common_context": {"engine": "auto"}}
    with mslite.ModelParallelRunner() as runner:
        runner.build_from_file(str(DIGITS), context)
        assert runner.statistics().layout.workers == 2
        assert runner._loaded is not None
        assert runner._loaded.pool._scheduler.batching.max_rows == 8
