"""An update needs neither the model file nor the compile cache, and takes few calls."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from support.models import MINDIR, ONNX, written
from support.onnx_updates import dense, some
from support.split_builder import split
from support.updates import named, outputs, telling_net, told, update, variable, versions
from support.workers import ROOT

import mindspore_lite as mslite

DIGITS = ROOT / "mindspore_lite/cli/data/digits.mindir"
MOST_CALLS = 1500  # of Python and C functions; it was 548 when this was written, 20,445 before
ENGINES = ("onnxruntime", "openvino", "torch")
MINDIR_NAMES, ONNX_NAMES = ("a", "b"), ("w", "b")
X = some(2, 8)


def model_of(path: Path, kind: mslite.ModelType, engine: str, *names: str) -> mslite.Model:
    context = mslite.Context()
    context.cpu.thread_num = 1
    settings = variable(*names) | {"common_context": {"engine": engine}}
    model = mslite.Model()
    model.build_from_file(str(path), kind, context, config_dict=settings)
    return model


def runner_of(
    path: Path, kind: mslite.ModelType, engine: str, *names: str
) -> mslite.ModelParallelRunner:
    context = mslite.Context()
    context.cpu.thread_num = 1  # so that all workers have one session
    context.parallel.workers_num = 2
    context.parallel.config_info = variable(*names) | {"common_context": {"engine": engine}}
    runner = mslite.ModelParallelRunner()
    runner.build_from_file(str(path), context)
    return runner


@pytest.fixture(params=[model_of, runner_of], ids=["Model", "ModelParallelRunner"])
def build(request: pytest.FixtureRequest) -> Callable[..., Any]:
    found: Callable[..., Any] = request.param
    return found


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    if request.param != "onnxruntime":
        pytest.importorskip(request.param)
    return str(request.param)


@pytest.fixture(params=["on", "off"])
def cache_dir(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A compile cache of this test alone, or none."""
    monkeypatch.setenv("MSLITE_CACHE", request.param)
    monkeypatch.setenv("MSLITE_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def remove(*places: Path) -> None:
    for place in places:
        assert place.exists() or place.name == "cache"
        place.unlink() if place.is_file() else shutil.rmtree(place, ignore_errors=True)
        assert not place.exists()


def test_a_mindir_model_whose_files_are_gone(
    tmp_path: Path, cache_dir: Path, engine: str, build: Callable[..., Any]
) -> None:
    (tmp_path / "model").mkdir()
    path = split(telling_net(), tmp_path / "model")
    with build(path, MINDIR, engine, *MINDIR_NAMES) as model:
        remove(path.parent, cache_dir)
        seen = [told(model)]
        for number in (1, 2):
            update(model, versions(number))
            seen.append(told(model))
        model.update_weights([])
        assert [*seen, told(model)] == [0, 1, 2, 0]
        assert not cache_dir.exists()
        assert model.get_model_info("weights_version") == "3"


def test_an_onnx_model_whose_files_are_gone(
    tmp_path: Path, cache_dir: Path, engine: str, build: Callable[..., Any]
) -> None:
    path, new = tmp_path / "m.onnx", some(8, 4)
    beside = {"save_as_external_data": True, "location": "m.data", "size_threshold": 0}
    onnx.save(dense(), path, **beside)
    with build(path, ONNX, engine, *ONNX_NAMES) as model:
        (first,) = outputs(model, X)
        update(model, {"w": new})
        (wanted,) = outputs(model, X)
        remove(path, tmp_path / "m.data", cache_dir)
        for weights, want in ((new * 2, None), (new, wanted)):
            update(model, {"w": weights})
            if want is not None:
                np.testing.assert_allclose(outputs(model, X)[0], want, rtol=1e-6)
        model.update_weights([])
        np.testing.assert_allclose(outputs(model, X)[0], first, rtol=1e-6)
        assert not cache_dir.exists()


def test_a_size_of_a_runner_that_was_met_before(
    tmp_path: Path, cache_dir: Path, engine: str
) -> None:
    path = written(tmp_path / "telling.mindir", telling_net())
    with runner_of(path, MINDIR, engine, *MINDIR_NAMES) as runner:
        assert told(runner, 5) == 0
        remove(path, cache_dir)
        for number in (1, 2):
            update(runner, versions(number))
            assert (told(runner), told(runner, 5)) == (number, number)


# --- what it takes --------------------------------------------------------------------------------


@contextmanager
def counted() -> Iterator[list[int]]:
    """How many functions are called, by this thread and those that it starts."""
    calls = [0]

    def count(frame: Any, event: str, what: Any) -> None:
        calls[0] += event in ("call", "c_call")

    threading.setprofile(count)
    sys.setprofile(count)
    try:
        yield calls
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


_SEEN: list[list[str]] = []  # where the hook notes what is opened; empty: nobody asks


def _see(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and _SEEN and isinstance(arguments[0], str | bytes):
        _SEEN[0].append(os.fsdecode(arguments[0]))


@pytest.fixture(scope="module")
def hook() -> None:
    """Installed once, for it stays as long as the process."""
    sys.addaudithook(_see)


@contextmanager
def opened() -> Iterator[list[str]]:
    """The files that Python opens meanwhile."""
    files: list[str] = []
    _SEEN.append(files)
    try:
        yield files
    finally:
        _SEEN.clear()


@pytest.mark.usefixtures("hook")
def test_one_bias_takes_few_calls_and_opens_no_file(
    build: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSLITE_CACHE_DIR", str(tmp_path / "cache"))
    path = written(tmp_path / "digits.mindir", DIGITS.read_bytes())
    with build(path, MINDIR, "onnxruntime", "head.weight", "head.bias") as model:
        for number in (3, 5):  # the first may load modules
            tensor = named("head.bias", np.eye(10, dtype=np.float32)[number] * 99)
            with opened() as files, counted() as calls:
                model.update_weights([[tensor]])
            (y,) = outputs(model, np.zeros((1, 1, 8, 8), np.float32))
            assert y.argmax() == number
        assert calls[0] < MOST_CALLS
        assert not [name for name in files if str(tmp_path) in name]
