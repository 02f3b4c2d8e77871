"""weights/names.py: the file that says which weights may change."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mindspore_lite.errors import ModelFileError
from mindspore_lite.settings.weights import Entry, read_names
from mindspore_lite.weights.names import SHOWN, Near, shortened


def read(tmp_path: Path, text: str | bytes) -> tuple[Entry, ...]:
    path = tmp_path / "names.txt"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_names(path)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("fc.weight", [("fc.weight", "")]),
        ("a\nb\n", [("a", ""), ("b", "")]),
        ("a,/enc/MatMul", [("a", "/enc/MatMul")]),
        ("\n  # attention\n\t a , b \n\n#c\n", [("a", "b")]),
        (b"\xef\xbb\xbfa\r\nb,c\r\n", [("a", ""), ("b", "c")]),
        ("onnx::MatMul_1\n/blocks.0/größe", [("onnx::MatMul_1", ""), ("/blocks.0/größe", "")]),
        ("b\na\nb\nb,x", [("b", ""), ("a", ""), ("b", "x")]),
    ],
    ids=["one", "two", "two columns", "blanks", "BOM and CRLF", "any characters", "each once"],
)
def test_a_line_is_a_weight(tmp_path: Path, text: str | bytes, want: list[Entry]) -> None:
    assert read(tmp_path, text) == tuple(want)


@pytest.mark.parametrize("line", ["a,b,c", "a,", ",b", ",", "a,,b"])
def test_other_numbers_of_columns_are_refused(tmp_path: Path, line: str) -> None:
    with pytest.raises(ModelFileError, match=r"names\.txt:2: only support 1 or 2 row name list"):
        read(tmp_path, f"# weights\n{line}\n")


@pytest.mark.parametrize("text", ["", "\n\n", "# only this\n"])
def test_a_file_without_names_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ModelFileError, match="holds no names"):
        read(tmp_path, text)


@pytest.mark.parametrize("name", ["missing.txt", "x" * 5000, "a\0b"])
def test_a_missing_file_is_told_in_the_words_of_the_original(tmp_path: Path, name: str) -> None:
    with pytest.raises(ModelFileError, match="variable weight name list is not exists"):
        read_names(tmp_path / name)


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"cannot be read: .*UTF-8"):
        read(tmp_path, b"a\nb\xff\n")
    with pytest.raises(ModelFileError, match="is no plain file"):
        read_names(tmp_path)


def test_near_names_are_told() -> None:
    near = Near(["fc1.weight", "fc2.weight", "conv"])
    assert near("fc1.weihgt") == ", but 'fc1.weight' or 'fc2.weight'"
    assert near("zzz") == ""


def test_only_the_first_names_are_compared() -> None:
    near = Near(["fc1.weight"])
    assert [bool(near("fc1.weihgt")) for _ in range(SHOWN + 1)] == [True] * SHOWN + [False]


def test_many_texts_are_cut() -> None:
    texts = list("abcdefghijkl")
    assert shortened(texts[:10]) == "a, b, c, d, e, f, g, h, i, j"
    assert shortened(texts, "; ") == "a; b; c; d; e; f; g; h; i; j; and 2 more"


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "names")
    with pytest.raises(ModelFileError, match="is no plain file"):
        read_names(tmp_path / "names")
