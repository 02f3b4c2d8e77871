"""settings/read.py: the grammar of files, the checks of dicts, and merging."""

from __future__ import annotations

import copy
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mindspore_lite.core import checks
from mindspore_lite.errors import ModelFileError
from mindspore_lite.settings import read as config


def read(tmp_path: Path, content: str | bytes) -> tuple[dict[str, dict[str, str]], list[str]]:
    """What the file says, and the warnings without the path in front."""
    path = tmp_path / "test.cfg"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sections = config.read_config(str(path))
    assert all(item.category is UserWarning for item in caught)
    assert all(item.filename == __file__ for item in caught)  # the line that asked for the file
    texts = [str(item.message) for item in caught]
    assert all(text.startswith(f"{path}:") for text in texts)
    return sections, [text.removeprefix(f"{path}:") for text in texts]


@pytest.mark.parametrize(
    ("content", "want"),
    [
        ("", {}),
        ("[a]", {"a": {}}),
        ("[a]\nk=v\n[b]\nk=w\n", {"a": {"k": "v"}, "b": {"k": "w"}}),
        ("  [ a b ]  \n\t key one =  some value \n", {"a b": {"key one": "some value"}}),
        ("[a]\nk=x=y=z\n", {"a": {"k": "x=y=z"}}),
        ('[a]\nk="data_type:float16"\n', {"a": {"k": "data_type:float16"}}),
        ('[a]\nk="\nl="a\nm=a"\nn=""\n', {"a": {"k": '"', "l": '"a', "m": 'a"', "n": ""}}),
        ("[a]\nk=\n", {"a": {"k": ""}}),
        ("# x\n[a]\n  # k=0\nk=1\n#k=2\n", {"a": {"k": "1"}}),
        ("[a]\nk=1 # no comment\n", {"a": {"k": "1 # no comment"}}),
        (b"\xef\xbb\xbf[a]\r\nk=v\r\n\r\n", {"a": {"k": "v"}}),
        ("[Ä]\nschlüssel=größe\n", {"Ä": {"schlüssel": "größe"}}),
        ("[a]\nk=x\u2028y\x0bz\n", {"a": {"k": "x\u2028y\x0bz"}}),
    ],
    ids=[
        "empty",
        "bare section",
        "two sections",
        "spaces",
        "first equals sign splits",
        "quotes",
        "half quotes",
        "empty value",
        "comments",
        "no inline comment",
        "BOM and CRLF",
        "not ASCII",
        "odd separators",
    ],
)
def test_a_good_file_reads_without_a_warning(
    tmp_path: Path, content: str | bytes, want: dict[str, dict[str, str]]
) -> None:
    assert read(tmp_path, content) == (want, [])


@pytest.mark.parametrize(
    ("content", "want", "line", "words"),
    [
        ("[a]\nk=1\n\nk=2\n", {"a": {"k": "1"}}, 4, "key 'k' was already there"),
        ("[a]\nk=1\n[a]\nl=2\n", {"a": {"k": "1"}}, 3, "section [a] was already there"),
        ("[a]\n# x\nnonsense\nk=1", {"a": {"k": "1"}}, 3, "'nonsense' is neither [section] nor"),
        ("[a]\nx\n", {"a": {}}, 2, "'x' is neither [section] nor key=value"),
        ("[a]\n=v\n", {"a": {}}, 2, "'=v' is neither [section] nor key=value"),
        ("k=1\n[a]\n", {"a": {}}, 1, "'k=1' stands before the first [section]"),
        ("[a]\nk=1\n[b\nk=2\n[c]\n", {"a": {"k": "1"}, "c": {}}, 3, "'[b' is no [section]"),
        ("[]\nk=2\n[c]\n", {"c": {}}, 1, "'[]' is no [section]"),
    ],
    ids=[
        "key twice",
        "section twice",
        "no equals sign",
        "short line",
        "no key",
        "before any section",
        "open bracket",
        "no section name",
    ],
)
def test_a_line_without_effect_is_told_once_with_its_number(
    tmp_path: Path, content: str, want: dict[str, dict[str, str]], line: int, words: str
) -> None:
    sections, texts = read(tmp_path, content)
    assert sections == want
    assert len(texts) == 1
    assert texts[0].startswith(f"{line}: ")
    assert words in texts[0]


def test_a_section_after_a_second_one_counts_again(tmp_path: Path) -> None:
    sections, texts = read(tmp_path, "[a]\nk=1\n[a]\nk=2\n[b]\nk=3\nbad\n")
    assert sections == {"a": {"k": "1"}, "b": {"k": "3"}}
    assert [text.split(":")[0] for text in texts] == ["3", "7"]


def test_a_file_that_is_not_utf8_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"test\.cfg' is not UTF-8 text: .*0xff") as caught:
        read(tmp_path, b"[a]\nk=\xff\n")
    assert type(caught.value) is ValueError


def test_only_useful_lines_count_towards_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert config.MAX_LINES == 100_000
    monkeypatch.setattr(config, "MAX_LINES", 2)
    assert read(tmp_path, "\n# x\n\n[a]\nk=v\n\n") == ({"a": {"k": "v"}}, [])
    with pytest.raises(ValueError, match="has more than 2 lines"):
        read(tmp_path, "[a]\nk=v\nl=w\n")


def test_a_path_object_is_welcome_and_a_missing_file_is_an_os_error(tmp_path: Path) -> None:
    path = tmp_path / "a.cfg"
    with pytest.raises(FileNotFoundError):
        config.read_config(path)
    path.write_text("[a]\n")
    assert config.read_config(path) == {"a": {}}


@pytest.mark.parametrize("name", ["config_info", "config_dict"])
@pytest.mark.parametrize(
    ("value", "words"),
    [
        (1, " must be dict, but got <class 'int'>."),
        ("x", " must be dict, but got <class 'str'>."),
        (None, " must be dict, but got <class 'NoneType'>."),
        ({5: {}}, "_key must be str, but got <class 'int'>."),
        ({"5": "6"}, "_value must be dict, but got <class 'str'>."),
        ({"5": {3: "2"}}, "_value_key must be str, but got <class 'int'>."),
        ({"5": {"1": 2}}, "_value_value must be str, but got <class 'int'>."),
        ({"ok": {"k": "v"}, "5": {"1": None}}, "_value_value must be str, but got <class 'None"),
    ],
)
def test_every_level_of_a_dict_is_checked(name: str, value: Any, words: str) -> None:
    with pytest.raises(TypeError) as caught:
        checks.sections(name, value)
    assert str(caught.value).startswith(name + words)


def test_checked_sections_are_a_deep_copy() -> None:
    value = {"a": {"k": "v"}, "b": {}}
    found = checks.sections("config_dict", value)
    assert found == value
    found["a"]["k"] = "w"
    found["c"] = {}
    assert value == {"a": {"k": "v"}, "b": {}}


@pytest.mark.parametrize(
    ("value", "want"),
    [
        ({"pids": "1, 2"}, {"ascend_context": {"shareable_weight_pid_list": "1, 2"}}),
        ({"pids": 7}, {"ascend_context": {"shareable_weight_pid_list": "7"}}),
        ({"pids": np.int64(7)}, {"ascend_context": {"shareable_weight_pid_list": "7"}}),
        (
            {"shared_mem_handle": 2**64 - 1},
            {"ascend_context": {"shareable_weight_mem_handle": str(2**64 - 1)}},
        ),
        (
            {"ascend_context": {"provider": "ge"}, "shared_mem_handle": "5"},
            {"ascend_context": {"provider": "ge", "shareable_weight_mem_handle": "5"}},
        ),
        (
            {"shared_mem_handle": "5", "ascend_context": {"provider": "ge"}},
            {"ascend_context": {"provider": "ge", "shareable_weight_mem_handle": "5"}},
        ),
        ({"pids": {"k": "v"}}, {"pids": {"k": "v"}}),  # a section may have any name
    ],
)
def test_the_short_form_of_an_entry_goes_into_its_section(
    value: dict[str, Any], want: dict[str, dict[str, str]]
) -> None:
    assert checks.sections("config_dict", value) == want


@pytest.mark.parametrize("value", [True, None, 1.5, [1, 2]])
def test_the_short_form_takes_texts_and_whole_numbers(value: Any) -> None:
    with pytest.raises(TypeError, match="config_dict_value must be str"):
        checks.sections("config_dict", {"pids": value})


def test_merging_prefers_the_second_and_changes_neither() -> None:
    base = {"a": {"k": "1", "l": "2"}, "b": {"m": "3"}}
    over = {"a": {"k": "9"}, "c": {"n": "4"}}
    before = copy.deepcopy((base, over))
    found = config.merged(base, over)
    assert found == {"a": {"k": "9", "l": "2"}, "b": {"m": "3"}, "c": {"n": "4"}}
    for entries in found.values():
        entries["changed"] = "x"
    assert (base, over) == before


def test_a_file_without_an_end_is_refused() -> None:
    with pytest.raises(ValueError, match="'/dev/zero': it is a device, wanted a plain file"):
        config.read_config("/dev/zero")


def test_a_file_that_is_too_long_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "long.cfg"
    path.touch()
    os.truncate(path, 100 << 30)  # a hole: it takes no room on the disk
    with pytest.raises(ValueError, match="has more than 16777216 bytes"):
        config.read_config(path)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.cfg")
    with pytest.raises(ModelFileError, match=r"pipe\.cfg': it is a pipe, wanted a plain file"):
        config.read_layers("build_from_file", str(tmp_path / "pipe.cfg"), None)


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ModelFileError, match="it is a directory, wanted a plain file; give the path of a text"
    ):
        config.read_layers("build_from_file", str(tmp_path), None)


def test_a_dict_counts_before_a_file_and_each_says_where_it_came_from(tmp_path: Path) -> None:
    file = tmp_path / "a.cfg"
    file.write_text("[a]\nk=v\n")
    found = config.read_layers("build", str(file), {"b": {"k": "w"}})
    assert [(layer.source, layer.sections, layer.path) for layer in found] == [
        ("config_dict", {"b": {"k": "w"}}, ""),
        (f"config file {file}", {"a": {"k": "v"}}, str(file)),
    ]
    assert config.read_layers("build", "", None) == ()
