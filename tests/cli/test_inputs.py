"""cli/inputs.py: what --input and --shape say, and slips of the pen in them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mindspore_lite.cli.demo import DIGITS_MODEL
from mindspore_lite.cli.inputs import check_files, read_pairs
from mindspore_lite.errors import InputError


@pytest.mark.parametrize(
    ("flag", "words"),
    [("--input", "wanted NAME=FILE, such as x=cat.npy"), ("--shape", "wanted NAME=SIZES, such as")],
)
def test_a_flag_without_a_name_says_what_is_wanted(flag: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read_pairs(flag, ["cat.npy"])


def test_a_file_that_is_not_there_says_where_it_was_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cat.npy").touch()
    with pytest.raises(InputError) as caught:
        check_files({"x": "cta.npy"})
    assert str(caught.value) == (
        f"--input x: there is no file 'cta.npy'; there is no 'cta.npy' in {str(tmp_path)!r}; did "
        "you mean 'cat.npy'?"
    )
    with pytest.raises(
        InputError, match=r"there is no file 'no/such/folder\.npy'; there is no 'no'"
    ):
        check_files({"x": "no/such/folder.npy"})
    check_files({"x": "cat.npy"})


def test_a_picture_is_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "cat.JPG").touch()
    with pytest.raises(InputError, match=r"is a picture, wanted numbers .*numpy\.save"):
        check_files({"x": str(tmp_path / "cat.JPG")}, pictures=False)


@pytest.mark.parametrize("command", [["run"], ["bench", "--clients", "1"]])
def test_commands_say_it_before_they_build(
    mslite: Callable[..., Any], command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "mindspore_lite.model.Model.build_from_file", lambda *_: pytest.fail("it was built")
    )
    done = mslite(command[0], DIGITS_MODEL, *command[1:], "--input", "x=nope.npy")
    assert done.code == 1
    assert done.err.startswith("mslite: --input x: there is no file 'nope.npy'; there is no ")


def test_a_name_that_is_given_twice_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"--input got 'x' twice, 'a\.npy' and 'b\.npy'"):
        read_pairs("--input", ["x=a.npy", "x=b.npy"])
