"""Targets find their engine, or say what is missing."""

from __future__ import annotations

import importlib.metadata
import sys

import pytest

from mindspore_lite.engines import select
from mindspore_lite.errors import EngineUnavailableError


@pytest.fixture
def no_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    monkeypatch.delitem(sys.modules, "mindspore_lite.engines.onnxruntime", raising=False)


@pytest.mark.parametrize("target", ["cpu", "CPU"])
def test_cpu_is_served_by_onnx_runtime(target: str) -> None:
    assert select.engine_for(target).name == "onnxruntime"


@pytest.mark.parametrize("target", ["gpu", "ascend", "Ascend"])
def test_targets_that_are_not_there_say_what_to_use(target: str) -> None:
    with pytest.raises(EngineUnavailableError, match=f"{target.lower()}.*use target 'cpu'"):
        select.engine_for(target)


@pytest.mark.parametrize("target", ["ascend", "Ascend"])
def test_emulated_ascend_is_served_by_the_engine_of_the_cpu(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSLITE_ASCEND", "emulate")
    assert select.engine_for(target).name == "onnxruntime"


def test_unknown_target_is_refused() -> None:
    with pytest.raises(ValueError, match="'tpu', wanted 'cpu', 'gpu' or 'ascend'"):
        select.engine_for("tpu")


def test_missing_package_names_the_pip_command(no_runtime: None) -> None:
    with pytest.raises(EngineUnavailableError, match="pip install onnxruntime") as caught:
        select.engine_for("cpu")
    assert isinstance(caught.value.__cause__, ImportError)


def test_available_lists_versions_and_reasons() -> None:
    rows = {name: (version, reason) for name, version, reason in select.available()}
    assert rows["onnxruntime"] == (importlib.metadata.version("onnxruntime"), "target cpu")
    assert rows["torch"][0] is None


def test_available_says_what_is_missing(no_runtime: None) -> None:
    name, version, reason = select.available()[0]
    assert (name, version) == ("onnxruntime", None)
    assert "pip install onnxruntime" in reason
