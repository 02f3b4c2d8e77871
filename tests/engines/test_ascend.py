"""engines/ascend.py: what MSLITE_ASCEND may say, and that people are told of it once."""

from __future__ import annotations

import io
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from mindspore_lite.engines import ascend
from mindspore_lite.errors import EngineError, EngineUnavailableError

NOTICE = "mslite: target 'ascend' is emulated on the CPU with 8 devices (MSLITE_ASCEND)\n"


@pytest.fixture(autouse=True)
def untold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ascend, "_untold", [True])


@pytest.mark.parametrize(
    ("text", "count"),
    [("", 0), ("emulate", 8), ("emulate:1", 1), ("emulate:2", 2), ("emulate:9999", 9999)],
)
def test_the_variable_says_how_many_devices_there_are(
    text: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSLITE_ASCEND", text)
    assert ascend.emulated() == count


def test_without_the_variable_there_are_none() -> None:
    assert ascend.emulated() == 0


@pytest.mark.parametrize(
    "text",
    [
        "1", "on", "Emulate", "emulate:", "emulate:0", "emulate:-1", "emulate:x", "emulate:1.5",
        "emulate:10000", "emulate:²", "emulate:2\n", " emulate", "emulate:2:3", "emulate" * 500,
    ],
)  # fmt: skip
def test_anything_else_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSLITE_ASCEND", text)
    with pytest.raises(EngineError, match=r"MSLITE_ASCEND is .*, wanted 'emulate' for 8"):
        ascend.emulated()


def test_who_has_no_device_is_told_both_ways_out() -> None:
    words = r"'ascend' needs .*pip install torch_npu.*; set MSLITE_ASCEND=emulate .*'cpu'"
    with pytest.raises(EngineUnavailableError, match=words):
        ascend.require()


@pytest.mark.parametrize(
    ("text", "number", "devices"),
    [("emulate", 8, "devices 0 to 7"), ("emulate:2", 7, "devices 0 to 1"),
     ("emulate:1", 1, "device 0 alone")],
)  # fmt: skip
def test_a_device_that_is_not_there_is_refused(
    text: str, number: int, devices: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSLITE_ASCEND", text)
    ascend.check_device("it", 0)
    words = f"it asks for device {number}, but MSLITE_ASCEND emulates {devices}; take one of these"
    with pytest.raises(EngineUnavailableError, match=words):
        ascend.check_device("it", number)


def test_a_process_is_told_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MSLITE_ASCEND", "emulate")
    with ThreadPoolExecutor(8) as callers:
        assert set(callers.map(lambda _: ascend.require(), range(64))) == {8}
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", NOTICE)


def test_asking_for_the_number_tells_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MSLITE_ASCEND", "emulate")
    assert ascend.emulated() == 8
    assert capsys.readouterr().err == ""


def test_a_child_of_one_who_told_can_be_kept_quiet(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MSLITE_ASCEND", "emulate")
    monkeypatch.setenv("MSLITE_ASCEND_QUIET", "1")
    assert ascend.require() == 8
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("closed", [True, False])
def test_nothing_fails_where_nobody_can_be_told(
    closed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = io.StringIO()
    stream.close()
    monkeypatch.setattr(sys, "stderr", stream if closed else None)
    monkeypatch.setenv("MSLITE_ASCEND", "emulate")
    assert ascend.require() == 8
