"""Targets find their engine, or say what is missing."""

from __future__ import annotations

import importlib.metadata
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest

from mindspore_lite.engines import select
from mindspore_lite.errors import EngineError, EngineUnavailableError


@pytest.fixture
def no_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    monkeypatch.delitem(sys.modules, "mindspore_lite.engines.onnxruntime.engine", raising=False)


@pytest.mark.parametrize("target", ["cpu", "CPU"])
def test_cpu_is_served_by_onnx_runtime(target: str) -> None:
    assert select.engine_for(target).name == "onnxruntime"


@pytest.mark.parametrize("target", ["ascend", "Ascend"])
def test_ascend_that_is_not_there_says_what_to_use(target: str) -> None:
    words = "'ascend'.*pip install torch_npu.*use target 'cpu'"
    with pytest.raises(EngineUnavailableError, match=words):
        select.engine_for(target)


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Cards that are there, whatever the machine has: those that were asked for."""
    found: list[str] = []
    monkeypatch.setattr("mindspore_lite.engines.torch.cards.check", found.append)
    return found


@pytest.mark.parametrize("target", ["gpu", "GPU"])
def test_a_card_is_served_by_torch_if_it_is_there(checked: list[str], target: str) -> None:
    assert select.engine_for(target, device=2).name == "torch"
    assert select.engine_for(target, "torch").name == "torch"
    assert checked == ["cuda:2", "cuda:0"]


def test_ascend_is_served_by_torch_where_torch_npu_is(
    checked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch_npu", ModuleType("torch_npu"))
    sys.modules["torch_npu"].__spec__ = ModuleSpec("torch_npu", None)
    assert select.engine_for("ascend", device=1).name == "torch"
    assert checked == ["npu:1"]


def test_a_card_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(device: str) -> None:
        raise EngineUnavailableError(f"there is no {device}")

    monkeypatch.setattr("mindspore_lite.engines.torch.cards.check", missing)
    with pytest.raises(EngineUnavailableError, match="there is no cuda:1"):
        select.engine_for("gpu", device=1)


@pytest.mark.parametrize("engine", ["onnxruntime", "openvino"])
@pytest.mark.parametrize("target", ["gpu", "ascend"])
def test_engines_of_the_cpu_serve_no_card(checked: list[str], target: str, engine: str) -> None:
    words = f"engine is '{engine}', but target '{target}' is served by engine 'torch' alone"
    with pytest.raises(EngineError, match=words):
        select.engine_for(target, engine)


def test_openvino_serves_the_cpu_when_asked_to() -> None:
    assert select.engine_for("cpu", "openvino").name == "openvino"
    assert select.engine_for("cpu", select.AUTO).name == "onnxruntime"  # nothing was measured


def test_openvino_that_is_missing_names_the_pip_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openvino", None)
    with pytest.raises(EngineUnavailableError, match=r"pip install 'mslite\[openvino\]'"):
        select.engine_for("cpu", "openvino")
    assert select.available()[1][:2] == ("openvino", None)


@pytest.mark.parametrize("target", ["cpu", "ascend"])
def test_torch_serves_the_cpu_when_asked_to(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSLITE_ASCEND", "emulate")
    assert select.engine_for(target, "torch").name == "torch"


def test_torch_that_is_missing_names_the_pip_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    for target, engine in (("cpu", "torch"), ("gpu", "")):
        with pytest.raises(EngineUnavailableError, match=r"pip install 'mslite\[gpu\]'"):
            select.engine_for(target, engine)
    assert select.available()[2][:2] == ("torch", None)


def test_torch_whose_libraries_are_missing_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "torch.py").write_text("raise OSError('libcudart.so: cannot open')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    for target, engine in (("cpu", "torch"), ("gpu", "")):
        with pytest.raises(EngineUnavailableError, match=r"imported \(libcudart"):
            select.engine_for(target, engine)
    assert "libcudart.so" in select.available()[2][2]


def test_targets_without_a_driver_are_not_usable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(select, "has_driver", lambda: False)
    assert select.usable_targets() == ["cpu"]
    monkeypatch.setenv("MSLITE_ASCEND", "emulate")
    assert select.usable_targets() == ["cpu", "ascend"]


def test_a_card_makes_target_gpu_usable(
    checked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(select, "has_driver", lambda: True)
    assert select.usable_targets() == ["cpu", "gpu"]


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
    version, served = rows["openvino"]
    assert version == importlib.metadata.version("openvino")
    assert served == "target cpu with engine=openvino"
    assert rows["torch"] == (
        importlib.metadata.version("torch"),
        "targets gpu and ascend, cpu with engine=torch",
    )


def test_available_says_what_is_missing(no_runtime: None) -> None:
    name, version, reason = select.available()[0]
    assert (name, version) == ("onnxruntime", None)
    assert "pip install onnxruntime" in reason
