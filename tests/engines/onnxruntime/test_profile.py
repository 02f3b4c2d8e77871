"""profile.py: a Model leaves a trace where it was told to, when it is closed and not before."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from support.models import DIGITS, MINDIR

import mindspore_lite as mslite
from mindspore_lite.errors import EngineError


def profiled(path: Path | str, model: mslite.Model | None = None) -> mslite.Model:
    context = mslite.Context()
    context.cpu.thread_num = 1
    model = model or mslite.Model()
    entries = {"common_context": {"profile": str(path)}}
    model.build_from_file(str(DIGITS), MINDIR, context, config_dict=entries)
    return model


def runs(path: Path) -> int:
    return [event["name"] for event in json.loads(path.read_text())].count("model_run")


def test_the_trace_is_written_by_close(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    model = profiled("trace.json")
    monkeypatch.chdir("/")  # it is about where the program was at the build
    for _ in range(2):
        model.predict([np.zeros((1, 1, 8, 8), np.float32)])
    assert not (folder / "trace.json").exists()
    model.close()
    assert runs(folder / "trace.json") == 2
    model.close()
    assert [path.name for path in folder.iterdir()] == ["trace.json"]


def test_a_trace_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text("before")
    profiled(path).close()
    assert runs(path) == 0


def test_a_path_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"cannot write the profile .*/no/trace\.json"):
        profiled(tmp_path / "no/trace.json")


def test_a_device_is_not_replaced() -> None:
    with pytest.raises(EngineError, match="cannot write the profile '/dev/null': it is no plain"):
        profiled("/dev/null")


def test_a_runner_has_no_single_trace(tmp_path: Path) -> None:
    context = mslite.Context()
    context.parallel.config_info = {"common_context": {"profile": str(tmp_path / "t")}}
    with pytest.raises(EngineError, match="profile is for Model alone"):
        mslite.ModelParallelRunner().build_from_file(str(DIGITS), context)
