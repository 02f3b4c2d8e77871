from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mindspore_lite.cli import doctor as doctor_module
from mindspore_lite.engines import select
from mindspore_lite.errors import EngineUnavailableError

Run = Callable[..., Any]


def test_doctor_tells_versions_cores_cache_and_that_a_model_runs(
    mslite: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MSLITE_CACHE_DIR", str(tmp_path / "here"))
    done = mslite("doctor")
    assert done.code == 0
    for words in (
        "onnxruntime: ",
        "usable: ",
        "limit: ",
        f"place: {tmp_path / 'here'}",
        "0 models",
    ):
        assert words in done.out
    assert "self-test: the embedded model runs, 10 of 10 digits right" in done.out
    assert "1 models" in mslite("doctor").out


def test_doctor_exits_with_1_when_no_engine_is_there(
    mslite: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(_: str) -> None:
        raise EngineUnavailableError("target 'cpu' needs ONNX Runtime: pip install onnxruntime")

    monkeypatch.setattr("mindspore_lite.build.engine_for", missing)
    monkeypatch.setattr(select, "available", lambda: [("onnxruntime", None, "not installed")])
    done = mslite("doctor")
    assert done.code == 1
    assert "onnxruntime: not available (not installed)" in done.out
    assert "no model can run" in done.err
    assert "pip install onnxruntime" in done.err


def test_devices_are_named_and_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("proc/cpuinfo", "dev/nvidia0", "dev/nvidia1", "dev/nvidiactl", "dev/null"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("processor : 0\nmodel name : Fast CPU\nflags : avx\n")
    doctor_module._show_devices(tmp_path)
    assert capsys.readouterr().out.splitlines()[1:] == [
        "  cpu: Fast CPU",
        "  gpu: 2 found, not used in this version",
        "  ascend: none found",
    ]
    assert doctor_module._cpu_name(tmp_path / "nowhere")


def test_doctor_says_why_the_cache_is_not_used(
    mslite: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSLITE_CACHE", "off")
    assert "not used: switched off by MSLITE_CACHE" in mslite("doctor").out


def test_a_missing_package_is_named_with_the_way_to_install_it() -> None:
    assert doctor_module._version("no-such-package") == "missing: pip install no-such-package"


@pytest.mark.parametrize(
    ("ids", "text"), [((0,), "0"), ((0, 1, 2, 5), "0-2,5"), ((1, 3, 4), "1,3-4")]
)
def test_core_ids_are_shown_as_ranges(ids: tuple[int, ...], text: str) -> None:
    assert doctor_module._ranges(ids) == text
