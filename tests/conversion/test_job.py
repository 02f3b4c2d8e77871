"""job.py: what is wrong with a job is told at once, and what its settings add to it."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.conversion import job

from mindspore_lite.conversion.job import (
    Job,
    Reading,
    decryption,
    encryption_key,
    hex_key,
    level_of,
    output_path,
    refuse,
    settled,
)
from mindspore_lite.errors import ModelFileError, SettingsError
from mindspore_lite.mindir.decrypt import Key

DIGITS = "00112233445566778899AaBbCcDdEeFf"


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("x", "x.mindir"),
        ("x.mindir", "x.mindir"),
        ("model.tflite", "model.tflite.mindir"),
        ("a/b.c/net", "a/b.c/net.mindir"),
        (".mindir", ".mindir"),
    ],
)
def test_the_suffix_is_added_once(text: str, want: str) -> None:
    assert output_path(text) == Path(want)


@pytest.mark.parametrize("text", ["", "x/", "folder\\"])
def test_an_output_must_name_a_file(text: str) -> None:
    with pytest.raises(ValueError, match="output_file must be the path of a file"):
        output_path(text)


def test_a_key_may_have_letters_of_either_case() -> None:
    assert hex_key(DIGITS, "k") == bytes.fromhex(DIGITS.lower()) == hex_key(DIGITS.upper(), "k")


@pytest.mark.parametrize("text", ["", "0", "0g", "00 11", "0x00", "ä0"])
def test_a_key_that_is_not_hexadecimal_is_refused_and_not_shown(text: str) -> None:
    with pytest.raises(ValueError, match=r"^decrypt_key must be hexadecimal") as caught:
        hex_key(text, "decrypt_key")
    assert f"{len(text)} characters" in str(caught.value)
    assert len(text) < 3 or text not in str(caught.value)


def test_a_key_alone_encrypts_unless_encryption_is_off() -> None:
    secret = bytes.fromhex(DIGITS)
    assert encryption_key(DIGITS, None) == encryption_key(DIGITS, True) == secret
    assert encryption_key(DIGITS, False) is None
    assert encryption_key("", None) is None
    with pytest.raises(ValueError, match="no encrypt_key"):
        encryption_key("", True)


def test_a_source_is_decrypted_only_with_a_key() -> None:
    assert decryption("", "AES-CBC") is None
    assert decryption("00", "AES-CBC") == Key(b"\0", "AES-CBC")


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("none", "none"),
        ("general", "general"),
        ("gpu_oriented", "gpu_oriented"),
        ("ascend_oriented", "ascend_oriented"),
        ("ascend_oriented:910b", "ascend_oriented"),
        ("ascend_oriented:Ascend310P3", "ascend_oriented"),
    ],
)
def test_levels_are_read_without_their_chip(text: str, want: str) -> None:
    assert level_of(text) == want


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "optimize must be none|general|gpu_oriented|ascend_oriented"),
        ("General", "optimize must be"),
        ("general:910b", "optimize must be"),
        ("my_ascend_oriented", "optimize must be"),
        ("ascend_oriented:", "chip_name must be in"),
        ("ascend_oriented:a:b", "chip_name must be single"),
        ("ascend_oriented:910c", "chip_name must be in [default, 910b], but got '910c'"),
    ],
)
def test_bad_levels(text: str, words: str) -> None:
    with pytest.raises(ValueError, match="must be") as caught:
        level_of(text, ("default", "910b"))
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"framework": "KERAS"}, "fmk_type must be TF|TFLITE|CAFFE|MINDIR|ONNX|PYTORCH, but got"),
        ({"optimize": "fast"}, "optimize must be none|general|gpu_oriented|ascend_oriented"),
        ({"input_format": "NC"}, "input_format must be NCHW|NHWC, but got 'NC'"),
        ({"output_format": "ND"}, "output_format must be NCHW|NHWC, but got 'ND'"),
        ({"input_type": "BOOL"}, "input_data_type must be float32|float16|"),
        ({"output_type": "BOOL"}, "output_data_type must be"),
        ({"output_type": "int64"}, "output_data_type must be FLOAT16, FLOAT32, INT8 or UINT8"),
        ({"save_type": "MS"}, "save_type must be MINDIR|MINDIR_LITE, but got 'MS'"),
        ({"save_type": "MINDIR_LITE"}, "cannot be written; use MINDIR"),
        ({"shapes": {"x": (1, 0)}}, "input_shape of 'x' has the size 0"),
        ({"shapes": {"x": (1, -1)}}, "Unsupported dim < 0"),
        ({"weights": Path("w.caffemodel")}, "weight_file is not a valid flag"),
        ({"decrypt": Key(bytes(16))}, "decrypt_key is for MINDIR alone"),
        ({"decrypt": Key(bytes(16), "DES")}, "decrypt_mode must be AES-GCM|AES-CBC|SM4-CBC"),
        ({"encrypt_key": bytes(15)}, "encrypt_key must have 16 bytes"),
        ({"encrypt_key": bytes(32)}, "but got 32 bytes"),
        ({"external_above": -1}, "must be 0 or more, but got -1"),
        ({"settings": {"registry": {"x": "1"}}}, "`x` is not supported in [registry]"),
        ({"settings": {"common_quant_param": {"bit": "8"}}}, "`bit` is not supported in"),
        ({"settings": {"common_quant_param": {"quant_type": "ALL"}}}, "quant_type"),
    ],
)
def test_settings_that_make_no_sense(
    tmp_path: Path, settings: dict[str, object], words: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        refuse(job(tmp_path, **settings))
    assert any(words in problem for problem in caught.value.problems), caught.value
    assert words in str(caught.value)


def test_a_key_is_not_shown(tmp_path: Path) -> None:
    secret = job(tmp_path, encrypt_key=b"very secret key!", decrypt=Key(b"another secret!!"))
    assert "secret" not in repr(secret)


def test_a_missing_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"^model_file does not exist: .*nowhere\.onnx"):
        refuse(job(tmp_path, model=tmp_path / "nowhere.onnx"))


def test_the_model_is_never_overwritten(tmp_path: Path) -> None:
    for name in ("net.mindir", "net_graph.mindir"):
        (tmp_path / name).touch()
        with pytest.raises(ModelFileError, match="would overwrite the model"):
            refuse(job(tmp_path, framework="MINDIR", model=tmp_path / name))


def test_an_output_that_is_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "net.mindir").mkdir()
    with pytest.raises(ModelFileError, match="output_file is a directory"):
        refuse(job(tmp_path))


def test_missing_weights_are_named(tmp_path: Path) -> None:
    (tmp_path / "net.prototxt").touch()
    wanted = job(
        tmp_path,
        framework="CAFFE",
        model=tmp_path / "net.prototxt",
        weights=tmp_path / "net.caffemodel",
    )
    with pytest.raises(ModelFileError, match="weight_file does not exist"):
        refuse(wanted)


def test_every_problem_is_told_at_once() -> None:
    wrong = Job(
        model=Path("nowhere.onnx"),
        output=Path("x.mindir"),
        optimize="fast",
        save_type="MINDIR_LITE",
        shapes={"x": (0,)},
        settings={"registry": {"x": "1"}, "common_quant_param": {"bit": "8"}},
    )
    with pytest.raises(SettingsError) as caught:
        refuse(wrong, ["something before"])
    assert len(caught.value.problems) == 7
    assert caught.value.problems[0] == "something before"
    assert str(caught.value).startswith("7 problems:\n  something before\n")


def test_reading_goes_on_after_a_problem() -> None:
    reading = Reading()
    assert reading.take(0, int, "12") == 12
    assert reading.take(7, int, "twelve") == 7
    assert reading.take(Path(), output_path, "") == Path()
    assert len(reading.problems) == 2


def test_settings_add_to_the_job(tmp_path: Path) -> None:
    sections = {
        "acl_build_options": {"input_shape": "x:2,16", "input_format": "NHWC"},
        "registry": {"disable_fusion": "on", "plugin_path": "a.so"},
    }
    made, warnings = settled(job(tmp_path, settings=sections))
    assert made.shapes == {"x": (2, 16)}
    assert (made.optimize, made.input_format) == ("none", "NHWC")
    assert len(warnings) == 1


def test_what_is_said_twice_must_be_the_same(tmp_path: Path) -> None:
    sections = {"ascend_context": {"input_shape": "x:[2,16]", "input_format": "NHWC"}}
    same = job(tmp_path, settings=sections, shapes={"x": (2, 16)}, input_format="NHWC")
    assert settled(same)[0].shapes == {"x": (2, 16)}
    other = job(tmp_path, settings=sections, shapes={"x": (1, 16)}, input_format="NCHW")
    with pytest.raises(SettingsError) as caught:
        settled(other)
    shapes, layout = caught.value.problems
    assert "input_shape is 'x:1,16', but the configuration says 'x:2,16'" in shapes
    assert "input_format is NCHW, but the configuration says NHWC" in layout


@pytest.mark.parametrize("name", ["net", "n" * 248, "n" * 300])
def test_names_that_no_file_can_have_are_left_to_the_writing(tmp_path: Path, name: str) -> None:
    refuse(job(tmp_path, output=tmp_path / f"{name}.mindir"))


def test_a_model_whose_name_no_file_can_have_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="model_file does not exist"):
        refuse(job(tmp_path, model=tmp_path / ("n" * 300)))


def test_a_mode_that_does_not_exist_is_refused_even_without_a_key() -> None:
    with pytest.raises(ValueError, match="decrypt_mode must be"):
        decryption("", "ROT13")
