"""tests/support/archives.py and scripts/fixtures/unpack.py: the cases in tests/data."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support import archives
from support.archives import DATA

SCRIPT = Path(__file__).parents[1] / "scripts/fixtures/unpack.py"


def unpack(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.parametrize("path", sorted(DATA.glob("*.zip")), ids=lambda path: path.stem)
def test_an_archive_is_what_would_be_written_again(path: Path, tmp_path: Path) -> None:
    members = archives.unpacked(path.read_bytes())
    again = tmp_path / path.name
    archives.add(again, dict(reversed(members.items())))
    assert again.read_bytes() == path.read_bytes()


def test_every_case_has_both_files() -> None:
    for path in DATA.glob("*.zip"):
        names = archives.unpacked(path.read_bytes()).keys()
        stems = {name.removesuffix(".mindir") for name in names if name.endswith(".mindir")}
        assert names == {f"{stem}{suffix}" for stem in stems for suffix in (".mindir", ".npz")}


def test_a_family_is_a_folder_or_an_archive() -> None:
    assert not [path for path in DATA.glob("*.zip") if path.with_suffix("").exists()]


def test_adding_replaces_a_member_and_keeps_the_others(tmp_path: Path) -> None:
    archives.add(tmp_path / "a.zip", {"b": b"1", "c": b"2"})
    archives.add(tmp_path / "a.zip", {"c": b"3", "a": b"4"})
    members = archives.unpacked((tmp_path / "a.zip").read_bytes())
    assert list(members.items()) == [("a", b"4"), ("b", b"1"), ("c", b"3")]


def test_only_the_case_that_is_asked_for_is_extracted(tmp_path: Path) -> None:
    path = archives.extracted("conv/conv2d_bias", tmp_path)
    assert path.read_bytes() == archives.content("conv/conv2d_bias.mindir")
    with np.load(path.with_suffix(".npz")) as arrays:
        assert arrays.files
    files = sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*.*"))
    assert files == ["conv/conv2d_bias.mindir", "conv/conv2d_bias.npz"]


def test_a_case_in_a_folder_stays_where_it_is(tmp_path: Path) -> None:
    path = archives.extracted("nets/dyn_batch", tmp_path)
    assert path == DATA / "nets/dyn_batch.mindir"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("name", "count"), [("conv/conv2d_bias", 1), ("deformable", 4)])
def test_the_script_extracts_a_case_or_a_family(name: str, count: int, tmp_path: Path) -> None:
    done = unpack(name, "--into", tmp_path)
    assert done.returncode == 0, done.stderr
    paths = [Path(line) for line in done.stdout.splitlines()]
    assert len(paths) == count
    assert all(p.is_file() and p.with_suffix(".npz").is_file() for p in paths)


def test_the_script_names_the_families_when_there_is_no_such_case(tmp_path: Path) -> None:
    done = unpack("convolution", "--into", tmp_path)
    assert done.returncode == 2
    assert "no case or family 'convolution'" in done.stderr
    assert "'conv'" in done.stderr
