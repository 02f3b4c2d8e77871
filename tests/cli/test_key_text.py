from __future__ import annotations

from pathlib import Path

import pytest

from mindspore_lite.cli.key_text import key_text


def test_digits_are_the_key() -> None:
    assert key_text("00ff") == "00ff"
    assert key_text("") == ""


def test_a_file_holds_the_key(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(" 00ff\n")
    assert key_text(f"@{tmp_path / 'key'}") == "00ff"


def test_the_environment_holds_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "00ff\n")
    assert key_text("env:MY_KEY") == "00ff"


def test_a_key_that_is_not_there_is_said(tmp_path: Path) -> None:
    (tmp_path / "raw").write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match=r"cannot read the key in '.*nowhere': No such file"):
        key_text(f"@{tmp_path / 'nowhere'}")
    with pytest.raises(ValueError, match="it is no text"):
        key_text(f"@{tmp_path / 'raw'}")
    with pytest.raises(ValueError, match="the environment has no key in 'MSLITE_NO_SUCH_KEY'"):
        key_text("env:MSLITE_NO_SUCH_KEY")


def test_a_file_without_an_end_is_no_key() -> None:
    with pytest.raises(ValueError, match="'/dev/zero': it has more than 1024 bytes"):
        key_text("@/dev/zero")
