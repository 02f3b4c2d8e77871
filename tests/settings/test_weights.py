"""settings/weights.py: what a configuration says about weights."""

from __future__ import annotations

from pathlib import Path

import pytest

from mindspore_lite.core import checks
from mindspore_lite.errors import EngineError, ModelFileError
from mindspore_lite.settings.read import Layer, Sections, read_config
from mindspore_lite.settings.spec import settle
from mindspore_lite.settings.text import request_of
from mindspore_lite.settings.weights import Entry, WeightSettings

MAX = str(2**64 - 1)
SECTIONS = ("ascend_context", "common_context")


def weight_settings(sections: Sections, config_path: str = "") -> WeightSettings:
    """What a configuration says about weights; as if it came from a file of this path."""
    return settle(None, [Layer("", sections, config_path)]).weights


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of names in a folder where nobody works."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    path = tmp_path / "elsewhere/names.txt"
    path.write_text("fc.weight\nup,/enc/fc1\n")
    return path


LISTED = (("fc.weight", ""), ("up", "/enc/fc1"))


@pytest.mark.parametrize(
    "sections", [{}, {"ascend_context": {}}, {"other": {"variable_weights_file": "x"}}]
)
def test_nothing_said_is_nothing_changed(sections: Sections) -> None:
    assert weight_settings(sections) == WeightSettings()


@pytest.mark.parametrize("section", SECTIONS)
@pytest.mark.parametrize(
    ("key", "text", "want"),
    [
        ("variable_weights_list", "a, b,,c ", {"variable": (("a", ""), ("b", ""), ("c", ""))}),
        ("variable_weights_mode", "delta", {"mode": "delta"}),
        ("variable_weights_mode", "replace", {"mode": "replace"}),
        ("shareable_weight_pid_list", "12, 34", {"pids": (12, 34)}),
        ("shareable_weight_pid_list", " 12 ,34, ", {"pids": (12, 34)}),
        ("shareable_weight_pid_list", "0, 7", {"pids": (7,)}),
        ("shareable_weight_pid_list", "0", {"pids": ()}),
        ("shareable_weight_mem_handle", "281473", {"handle": 281473}),
        ("shareable_weight_mem_handle", MAX, {"handle": 2**64 - 1}),
        ("shareable_weight_mem_handle", f"000{MAX}", {"handle": 2**64 - 1}),
    ],
)
@pytest.mark.parametrize("around", ["{}", '"{}"', '  "{}" '])
def test_every_entry_is_read_in_both_sections(
    section: str, key: str, text: str, want: dict[str, object], around: str
) -> None:
    found = weight_settings({section: {key: around.format(text)}})
    assert found == WeightSettings(**want)  # type: ignore[arg-type]


@pytest.mark.parametrize("section", SECTIONS)
def test_a_file_of_names_is_read(names: Path, section: str) -> None:
    found = weight_settings({section: {"variable_weights_file": f'"{names}"'}})
    assert found == WeightSettings(variable=LISTED)  # type: ignore[arg-type]


def test_of_both_sections_the_first_one_counts(names: Path) -> None:
    sections = {
        "common_context": {"variable_weights_mode": "replace", "variable_weights_list": "a"},
        "ascend_context": {"variable_weights_mode": "delta", "variable_weights_list": ""},
    }
    assert weight_settings(sections) == WeightSettings(variable=(("a", ""),), mode="delta")  # type: ignore[arg-type]


def test_file_and_list_add_up(names: Path) -> None:
    entries = {"variable_weights_file": str(names), "variable_weights_list": "conv.weight"}
    found = weight_settings({"ascend_context": entries})
    assert found.variable == (*LISTED, ("conv.weight", ""))


# --- where the file lies --------------------------------------------------------------------------

RELATIVE = {"ascend_context": {"variable_weights_file": "names.txt"}}


def test_a_file_beside_the_configuration_is_found(names: Path) -> None:
    assert weight_settings(RELATIVE, str(names.with_name("config.ini"))).variable == LISTED
    assert weight_settings(RELATIVE, "../elsewhere/config.ini").variable == LISTED


def test_one_in_the_working_directory_comes_first(names: Path) -> None:
    Path("names.txt").write_text("mine")
    found = weight_settings(RELATIVE, str(names.with_name("config.ini")))
    assert found.variable == (("mine", ""),)


@pytest.mark.parametrize("config_path", ["", "config.ini", "../config.ini"])
def test_a_missing_file_is_an_error(names: Path, config_path: str) -> None:
    with pytest.raises(ModelFileError, match=r"name list is not exists: 'names\.txt'"):
        weight_settings(RELATIVE, config_path)


def test_a_path_that_no_file_can_have_is_an_error(names: Path) -> None:
    for file in ("x" * 5000, "a\0b"):
        with pytest.raises(ModelFileError, match="name list is not exists"):
            weight_settings({"ascend_context": {"variable_weights_file": file}}, "config.ini")


def test_the_lines_of_the_guide_are_understood(names: Path) -> None:
    config = names.with_name("config.ini")
    config.write_text('[ascend_context]\nvariable_weights_file="names.txt"\n')
    assert weight_settings(read_config(config), str(config)).variable == LISTED


def test_the_lines_of_a_file_may_be_given_instead_of_it() -> None:
    sections = {"common_context": {"variable_weights_lines": "fc.weight\n up , /enc/fc1 \n"}}
    assert weight_settings(sections).variable == LISTED


@pytest.mark.parametrize("text", ["a,b,c", "a\n\nb", "a\n,b"])
def test_lines_that_mean_nothing_are_refused(text: str) -> None:
    with pytest.raises(ModelFileError, match=r"variable_weights_lines:\d: only support 1 or 2 row"):
        weight_settings({"ascend_context": {"variable_weights_lines": text}})


def test_spelled_out_it_is_the_same_without_the_file(names: Path) -> None:
    config = str(names.with_name("config.ini"))
    sections = {
        "ascend_context": {"variable_weights_file": "names.txt", "provider": "ge"},
        "common_context": {"variable_weights_list": "x", "variable_weights_mode": "delta"},
        "batching": {"max_batch_rows": "8"},
    }
    spec = settle(None, [Layer("", sections, config)])
    names.unlink()
    settings, found = request_of(spec)
    assert settings == {}
    assert weight_settings(found) == spec.weights
    assert spec.weights.variable == (*LISTED, ("x", ""))
    assert found["ascend_context"].keys() == {"variable_weights_lines"}
    assert found["batching"] == sections["batching"]
    assert sections["ascend_context"]["variable_weights_file"] == "names.txt"


def test_one_line_of_two_names_stays_one() -> None:
    """With commas between names, it would be two."""
    lines = {"ascend_context": {"variable_weights_lines": "up,/enc/fc1"}}
    _, found = request_of(settle(None, [Layer("", lines)]))
    assert weight_settings(found) == WeightSettings((Entry("up", "/enc/fc1"),))


def test_where_nothing_may_change_nothing_is_added() -> None:
    assert request_of(settle()) == ({}, {})


# --- what makes no sense --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("variable_weights_mode", "add"),
        ("variable_weights_mode", "Delta"),
        *(
            ("shareable_weight_pid_list", text)
            for text in ("a", "1;2", "1 2", "-1", ",1", "1,,2", "[1, 2]", "1.5", "٣", "9" * 5000)
        ),
        *(
            ("shareable_weight_mem_handle", text)
            for text in ("0", "a", "-1", "0x10", "1.0", "1 2", "٣", str(2**64), "9" * 5000)
        ),
        ("shareable_weight_mem_handle", f"{'0' * 20}1{MAX}"),
    ],
)
def test_a_value_that_means_nothing_is_refused(key: str, text: str) -> None:
    with pytest.raises(EngineError, match=key) as caught:
        weight_settings({"ascend_context": {key: text}})
    assert text[:20] in str(caught.value)


def test_weights_are_shared_or_taken_not_both() -> None:
    sections = {
        "ascend_context": {"shareable_weight_pid_list": "1"},
        "common_context": {"shareable_weight_mem_handle": "2"},
    }
    with pytest.raises(EngineError, match="are both set"):
        weight_settings(sections)


@pytest.mark.parametrize("key", ["shareable_weight_pid_list", "shareable_weight_mem_handle"])
def test_weights_that_may_change_are_not_shared(key: str) -> None:
    with pytest.raises(EngineError, match="cannot be shared"):
        weight_settings({"ascend_context": {key: "1", "variable_weights_list": "a"}})


@pytest.mark.parametrize(
    ("short", "want"),
    [
        ({"pids": "12, 34"}, WeightSettings(pids=(12, 34))),
        ({"pids": 12}, WeightSettings(pids=(12,))),
        ({"shared_mem_handle": "9"}, WeightSettings(handle=9)),
        ({"shared_mem_handle": 2**64 - 1}, WeightSettings(handle=2**64 - 1)),
    ],
)
def test_the_short_form_of_the_guide_is_understood(
    short: dict[str, object], want: WeightSettings
) -> None:
    assert weight_settings(checks.sections("config_dict", short)) == want


@pytest.mark.parametrize("text", ["", " ", '""'])
@pytest.mark.parametrize("key", ["shareable_weight_pid_list", "shareable_weight_mem_handle"])
def test_nobody_builds_unshared_by_an_empty_setting(key: str, text: str) -> None:
    with pytest.raises(EngineError, match=f"{key} is ''"):
        weight_settings({"common_context": {key: text}})
