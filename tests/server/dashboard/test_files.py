from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from mindspore_lite.server.dashboard import files
from mindspore_lite.server.dashboard.files import FILES, content_of

PAGE = Path(files.__file__).parent / "page"
OURS = [file for file in FILES if file.is_ours]


def test_every_file_of_the_folder_is_served() -> None:
    assert {file.name for file in OURS} == {path.name for path in PAGE.iterdir()}


@pytest.mark.parametrize("file", OURS, ids=lambda file: file.name)
def test_nothing_is_loaded_from_elsewhere(file: files.File) -> None:
    text = (content_of(file) or b"").decode()
    found = set(re.findall(r"https?://[^\s\"'`)]+", text))
    assert found <= {"http://www.w3.org/2000/svg"}  # a name, not an address


@pytest.mark.parametrize("file", OURS, ids=lambda file: file.name)
def test_the_policy_is_kept_to(file: files.File) -> None:
    """Nothing inline, and no text that is read as HTML."""
    text = (content_of(file) or b"").decode()
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", text)
    if file.name.endswith(".html"):
        assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\son\w+=|\sstyle=", text)


@pytest.mark.parametrize("file", OURS, ids=lambda file: file.name)
def test_files_are_short(file: files.File) -> None:
    text = (content_of(file) or b"").decode()
    assert text.count("\n") <= 600
    assert max(map(len, text.splitlines())) <= 100
    assert "\t" not in text and text.endswith("\n")


def test_every_import_leads_to_a_file() -> None:
    names = {file.name for file in OURS}
    for file in OURS:
        for name in re.findall(r'from "\./([^"]+)"', (content_of(file) or b"").decode()):
            assert name in names, (file.name, name)


def test_the_chart_library_is_found_without_importing_it() -> None:
    code = (
        "import sys\nfrom mindspore_lite.server.dashboard.files import FILES, content_of\n"
        "found = [content_of(file) for file in FILES if not file.is_ours]\n"
        "assert all(found), 'pip install uplot-python'\n"
        "assert b'uPlot' in found[0] and b'.uplot' in found[1]\n"
        "assert not {'uplot', 'IPython'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_missing_chart_library_is_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_uplot_folder", lambda: None)
    assert content_of.__wrapped__(next(file for file in FILES if not file.is_ours)) is None
