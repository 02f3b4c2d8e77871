"""settings_file.py: the grammar, what sections ask for, and what is refused or ignored aloud."""

from __future__ import annotations

from pathlib import Path

import pytest

from mindspore_lite.conversion.settings_file import (
    SettingsFile,
    read_settings_file,
    truth,
    wishes_of,
)
from mindspore_lite.errors import ModelFileError
from mindspore_lite.settings.read import Sections


def read(tmp_path: Path, content: str | bytes) -> SettingsFile:
    path = tmp_path / "test.cfg"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_settings_file(path)


@pytest.mark.parametrize(
    ("content", "want"),
    [
        ("", {}),
        ("[a]\nk=v\n[b]\nk=w\n", {"a": {"k": "v"}, "b": {"k": "w"}}),
        ("  [ a ]\n\tkey one =  some value \r\n", {"a": {"key one": "some value"}}),
        ("[a]\nk=x=y\n", {"a": {"k": "x=y"}}),
        ('[a]\nk="x:1,2"\nl=a"b"\n', {"a": {"k": "x:1,2", "l": "ab"}}),
        ("# x\n[a]\n  # k=0\nk=1\n", {"a": {"k": "1"}}),
        ("k=v\n[a]\n", {"DEFAULT": {"k": "v"}, "a": {}}),
        ("[a]\nk=1\n[b]\n[a]\nl=2\n", {"a": {"k": "1", "l": "2"}, "b": {}}),
        (b"\xef\xbb\xbf[a]\nk=v\n", {"a": {"k": "v"}}),
    ],
    ids=[
        "empty", "sections", "blanks", "equals sign in a value", "quotes", "comments",
        "before any section", "sections are joined", "BOM",
    ],
)  # fmt: skip
def test_a_file_becomes_sections(tmp_path: Path, content: str | bytes, want: Sections) -> None:
    assert read(tmp_path, content) == SettingsFile(want)


def test_the_last_of_two_equal_keys_counts_and_that_is_said(tmp_path: Path) -> None:
    found = read(tmp_path, "[a]\nk=1\nk=2\n")
    assert found.sections == {"a": {"k": "2"}}
    assert found.warnings == (f"{tmp_path / 'test.cfg'}:3: [a] k comes again; this one counts",)


def test_each_model_param_is_another_model(tmp_path: Path) -> None:
    found = read(
        tmp_path, "[model_param]\nfmk=ONNX\n[micro_param]\ntarget=x\n[model_param]\nfmk=TF\n"
    )
    assert found.models == ({"fmk": "ONNX"}, {"fmk": "TF"})
    assert found.sections == {"micro_param": {"target": "x"}}


def test_every_line_that_means_nothing_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError) as caught:
        read(tmp_path, "[a]\nnonsense\nk=\n=v\n[]\n[b\nfine=1\n")
    for line in (2, 3, 4, 5, 6):
        assert f"line {line}: " in str(caught.value)
    assert "line 7" not in str(caught.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"nowhere\.cfg': No such file"):
        read_settings_file(tmp_path / "nowhere.cfg")
    with pytest.raises(ModelFileError, match="is a directory"):
        read_settings_file(tmp_path)
    with pytest.raises(ModelFileError, match="not UTF-8"):
        read(tmp_path, b"[a]\nk=\xff\n")
    with pytest.raises(ModelFileError, match="more than 100000 lines"):
        read(tmp_path, "k=v\n" * 100_001)


@pytest.mark.parametrize(
    ("section", "key"),
    [
        ("registry", "disable_fusions"),
        ("acl_option_cfg_param", "input_shapes"),
        ("cpu_option_cfg_param", "cores"),
        ("micro_param", "enable"),
        ("om_converter", "names"),
    ],
)
def test_an_unknown_key_of_a_strict_section_is_a_problem(section: str, key: str) -> None:
    assert wishes_of({section: {key: "1"}}).problems == [f"`{key}` is not supported in [{section}]"]


def test_fusion_is_switched_off_by_the_registry() -> None:
    assert wishes_of({"registry": {"disable_fusion": "on"}}).no_fusion
    assert not wishes_of({"registry": {"disable_fusion": "off"}}).no_fusion
    (problem,) = wishes_of({"registry": {"disable_fusion": "yes"}}).problems
    assert "disable_fusion must be on or off, but got 'yes'" in problem


@pytest.mark.parametrize(
    ("section", "text"),
    [
        ("ascend_context", "x:[1,3];y:[2]"),
        ("acl_build_options", "x:1,3;y:2"),
        ("acl_option_cfg_param", "x:1,3;y:2"),
    ],
)
def test_shapes_of_inputs_are_taken_from_sections_of_ascend(section: str, text: str) -> None:
    wishes = wishes_of({section: {"input_shape": text}})
    assert wishes.shapes == {"x": (1, 3), "y": (2,)}
    assert (wishes.problems, wishes.warnings) == ([], [])


def test_the_stronger_section_counts() -> None:
    sections = {
        "ascend_context": {"input_shape": "x:[2]", "input_format": "NHWC"},
        "acl_option_cfg_param": {"input_shape": "x:1", "input_format": "NCHW"},
    }
    wishes = wishes_of(sections)
    assert (wishes.shapes, wishes.input_format) == ({"x": (2,)}, "NHWC")


def test_inputs_with_open_sizes_stay_as_they_are() -> None:
    wishes = wishes_of({"acl_build_options": {"input_shape": "x:-1,3;y:4"}})
    assert wishes.shapes == {"y": (4,)}
    assert wishes.warnings == ["inputs with sizes of -1 stay as they are: x:-1,3"]


def test_layouts_are_checked_and_nd_means_none() -> None:
    assert wishes_of({"ascend_context": {"input_format": "nhwc"}}).input_format == "NHWC"
    assert wishes_of({"acl_build_options": {"input_format": "ND"}}).input_format == ""
    (problem,) = wishes_of({"ascend_context": {"input_format": "NC"}}).problems
    assert "must be NCHW, NHWC or ND, but got 'NC'" in problem


def test_bad_shapes_name_the_section() -> None:
    (problem,) = wishes_of({"ascend_context": {"input_shape": "x:[a]"}}).problems
    assert problem.startswith("[ascend_context] input_shape of 'x'")


@pytest.mark.parametrize(
    ("section", "entries", "words"),
    [
        ("ascend_context", {"precision_mode": "enforce_fp16", "provider": "ge"}, "provider: no"),
        ("acl_init_options", {"a": "1"}, "Ascend compiler"),
        ("ge_graph_options", {"a": "1"}, "Ascend compiler"),
        ("aoe_tuning_options", {"a": "1"}, "Ascend compiler"),
        ("graph_kernel_param", {"opt_level": "2"}, "opt_level: no effect"),
        ("registry", {"plugin_path": "x.so", "disable_fusion": "on"}, "plugin_path: no effect"),
        ("cpu_option_cfg_param", {"architecture": "ARM64"}, "the engine chooses"),
        ("micro_param", {"enable_micro": "False"}, "code generation"),
        ("om_converter", {"input_name_vector": "x"}, "Ascend"),
    ],
)
def test_what_has_no_effect_is_said(section: str, entries: dict[str, str], words: str) -> None:
    wishes = wishes_of({section: entries})
    (warning,) = wishes.warnings
    assert words in warning
    assert wishes.problems == []


def test_unknown_sections_are_said_with_the_one_that_was_meant() -> None:
    assert wishes_of({"full_quant_parm": {}}).warnings == [
        "nothing reads section [full_quant_parm]; did you mean [full_quant_param]?"
    ]
    assert wishes_of({"mine": {"k": "v"}}).warnings == ["nothing reads section [mine]"]


@pytest.mark.parametrize("text", ["true", "True", "maybe"])
def test_code_generation_is_refused(text: str) -> None:
    (problem,) = wishes_of({"micro_param": {"enable_micro": text}}).problems
    assert "not generated here" in problem


def test_quantisation_is_left_to_whoever_knows_it() -> None:
    wishes = wishes_of({"common_quant_param": {"quant_type": "WEIGHT_QUANT"}})
    assert (wishes.problems, wishes.warnings) == ([], [])


def test_truth_has_any_case() -> None:
    assert [truth(text) for text in ("true", "FALSE", "on")] == [True, False, None]


@pytest.mark.parametrize("line", ["x" * 10**6, "[" * 10**6])
def test_a_line_without_end_is_not_shown_in_full(tmp_path: Path, line: str) -> None:
    (tmp_path / "long.cfg").write_text(line)
    with pytest.raises(ModelFileError, match="line 1") as caught:
        read_settings_file(tmp_path / "long.cfg")
    assert len(str(caught.value)) < 1000
