"""converter.py: attributes with their checks, and conversions that leave nothing behind."""

from __future__ import annotations

import doctest
from pathlib import Path
from typing import Any

import pytest
from support.conversion import dense_onnx, unusual_onnx
from support.encryption import encrypt
from support.models import built, dense_net, written

import mindspore_lite as mslite
from mindspore_lite import converter as module
from mindspore_lite.conversion import convert as pipeline
from mindspore_lite.conversion.convert import Report
from mindspore_lite.conversion.job import Job
from mindspore_lite.core import attributes as settings

ONNX = mslite.FmkType.ONNX
KEY = "00112233445566778899AABBCCDDEEFF"


@pytest.fixture
def net(tmp_path: Path) -> str:
    return str(dense_onnx(tmp_path / "net.onnx"))


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> list[Job]:
    """Every job that a conversion is asked for; nothing is converted."""
    asked: list[Job] = []

    def convert(job: Job) -> Report:
        asked.append(job)
        return Report(job, *([{}] * 4), None, (), (), 0, 0)  # type: ignore[arg-type]

    monkeypatch.setattr(pipeline, "convert", convert)
    return asked


def test_the_numbers_of_frameworks_are_the_documented_ones() -> None:
    assert {member.name: member.value for member in mslite.FmkType} == {
        "TF": 0, "CAFFE": 1, "ONNX": 2, "MINDIR": 3, "TFLITE": 4, "PYTORCH": 5,
    }  # fmt: skip


def test_the_defaults_are_the_documented_ones() -> None:
    assert str(mslite.Converter()) == (
        "config_info: {},\n"
        "weight_fp16: False,\n"
        "input_shape: {},\n"
        "input_format: Format.NHWC,\n"
        "input_data_type: DataType.FLOAT32,\n"
        "output_data_type: DataType.FLOAT32,\n"
        "save_type: ModelType.MINDIR,\n"
        "enable_encryption: False,\n"
        "infer: False,\n"
        "optimize: general,\n"
        "device: ."
    )
    converter = mslite.Converter()
    assert converter.decrypt_mode == "AES-GCM"
    assert (converter.device_id, converter.rank_id, converter.trust_pickle) == (0, 0, False)
    assert converter.get_config_info() == {}


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("weight_fp16", "1", "weight_fp16 must be bool, but got <class 'str'>."),
        ("input_shape", "x", "input_shape must be dict"),
        ("input_shape", {1: [1]}, "input_shape key must be str"),
        ("input_shape", {"x": "1"}, "input_shape value must be list, but got .* at key x"),
        ("input_shape", {"x": (1, 2)}, "input_shape value must be list"),
        ("input_shape", {"x": [1, "112"]}, "value's element must be int, but got .* at index 1"),
        ("input_shape", {"x": [True]}, "input_shape value's element must be int"),
        ("input_format", 1, "input_format must be Format"),
        ("input_data_type", 1, "input_data_type must be DataType"),
        ("output_data_type", 1, "output_data_type must be DataType"),
        ("save_type", 1, "save_type must be ModelType"),
        ("decrypt_key", 1, "decrypt_key must be str"),
        ("decrypt_mode", 1, "decrypt_mode must be str"),
        ("encrypt_key", 1, "encrypt_key must be str"),
        ("enable_encryption", "", "enable_encryption must be bool"),
        ("infer", "1", "infer must be bool"),
        ("optimize", 1, "optimize must be str"),
        ("device", 1, "device must be str"),
        ("device_id", "0", "device_id must be int"),
        ("rank_id", "0", "rank_id must be int"),
        ("trust_pickle", 1, "trust_pickle must be bool"),
    ],
)
def test_a_wrong_type_is_refused(name: str, value: object, words: str) -> None:
    converter = mslite.Converter()
    before = str(converter)
    with pytest.raises(TypeError, match=words):
        setattr(converter, name, value)
    assert str(converter) == before


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("input_format", mslite.Format.HW, "input_format must be in"),
        ("input_data_type", mslite.DataType.INVALID, "input_data_type must be in"),
        ("input_data_type", mslite.DataType.INT64, "input_data_type must be in"),
        ("output_data_type", mslite.DataType.INVALID, "output_data_type must be in"),
        ("decrypt_mode", "1", "decrypt_mode must be in"),
        ("decrypt_mode", "SM4-CBC", "decrypt_mode must be in"),
        ("device", "INVALID", "device must be in"),
        ("device", "GPU", "device must be in"),
        ("optimize", "fast", "optimize must be 'none', 'general', 'gpu_oriented', 'ascend_or"),
        ("optimize", "my_ascend_oriented", "optimize must be 'none', 'general'"),
        ("optimize", "general:910b", "optimize must be"),
        ("optimize", "ascend_oriented:910c", r"chip_name must be in \[default, 910b\]"),
        ("optimize", "ascend_oriented:a:b", "chip_name must be single"),
    ],
)
def test_a_wrong_value_is_refused(name: str, value: object, words: str) -> None:
    converter = mslite.Converter()
    before = str(converter)
    with pytest.raises(ValueError, match=words):
        setattr(converter, name, value)
    assert str(converter) == before


@pytest.mark.parametrize("name", ["decrypt_key", "encrypt_key"])
def test_keys_cannot_be_read(name: str) -> None:
    converter = mslite.Converter()
    setattr(converter, name, KEY)
    with pytest.raises(TypeError, match=rf"{name} is write-only\."):
        getattr(converter, name)
    assert KEY not in str(converter) + repr(converter)


@pytest.mark.parametrize(
    ("text", "level", "device"),
    [
        ("none", "none", ""),
        ("gpu_oriented", "gpu_oriented", "GPU"),
        ("ascend_oriented", "ascend_oriented", "Ascend"),
        ("ascend_oriented:910b", "ascend_oriented", "Ascend"),
    ],
)
def test_the_device_follows_from_the_level(text: str, level: str, device: str) -> None:
    converter = mslite.Converter()
    converter.optimize = text
    assert (converter.optimize, converter.device) == (level, device)
    converter.optimize = "general"
    assert converter.device == ""


def test_an_unknown_attribute_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "_warned", set())
    with pytest.warns(UserWarning, match="converter has no setting 'optimise'"):
        mslite.Converter().optimise = "none"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((2, {}), "section must be str"),
        (("s", []), "config_info must be dict"),
        (("s", {2: "3"}), "config_info key must be str"),
        (("s", {"device_id": 3}), "config_info val must be str"),
    ],
)
def test_wrong_configuration_is_refused(arguments: Any, words: str) -> None:
    converter = mslite.Converter()
    with pytest.raises(TypeError, match=words):
        converter.set_config_info(*arguments)
    assert converter.get_config_info() == {}


def test_configuration_is_replaced_by_section_and_copied() -> None:
    converter = mslite.Converter()
    entries = {"device_id": "3"}
    converter.set_config_info("acl_param", entries)
    entries["more"] = "1"
    converter.get_config_info()["acl_param"]["other"] = "2"
    assert "config_info: {'acl_param': {'device_id': '3'}}" in str(converter)
    converter.set_config_info("acl_param", {"a": "b"})
    converter.set_config_info("", {"c": "d"})
    converter.set_config_info("acl_param")
    assert converter.get_config_info() == {"acl_param": {"a": "b"}}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("", "m", "o"), "fmk_type must be FmkType"),
        ((ONNX, 1, "o"), "model_file must be str"),
        ((ONNX, "m", 1), "output_file must be str"),
        ((ONNX, "m", "o", 1), "weight_file must be str"),
        ((ONNX, "m", "o", "", 1), "config_file must be str"),
    ],
)
def test_types_are_checked_before_files(arguments: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        mslite.Converter().convert(*arguments)


def test_missing_files_are_named(net: str) -> None:
    converter = mslite.Converter()
    with pytest.raises(RuntimeError, match="convert method failed, model_file does not exist"):
        converter.convert(ONNX, "nowhere.onnx", "o")
    with pytest.raises(RuntimeError, match="convert method failed, weight_file does not exist"):
        converter.convert(ONNX, net, "o", weight_file="nowhere")
    with pytest.raises(RuntimeError, match="convert method failed, config_file does not exist"):
        converter.convert(ONNX, net, "o", config_file="nowhere")


def test_a_model_is_converted(net: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    converter = mslite.Converter()
    converter.input_shape = {"x": [2, 16]}
    converter.infer = True
    converter.convert(ONNX, net, str(tmp_path / "result"))
    assert capsys.readouterr().out == "CONVERT RESULT SUCCESS:0\n"
    with built(tmp_path / "result.mindir") as model:
        assert model.get_inputs()[0].shape == [2, 16]
    assert "optimize: general" in str(converter)


@pytest.mark.parametrize("level", ["none", "gpu_oriented", "ascend_oriented:910b"])
def test_every_level_converts(net: str, tmp_path: Path, level: str) -> None:
    converter = mslite.Converter()
    converter.optimize = level
    converter.convert(ONNX, net, str(tmp_path / "result.mindir"))
    built(tmp_path / "result.mindir").close()


def test_a_failure_says_why_and_prints_no_success(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.onnx").write_bytes(b"nonsense")
    with pytest.raises(RuntimeError, match=r"Converter model failed! error is .*bad\.onnx"):
        mslite.Converter().convert(ONNX, str(tmp_path / "bad.onnx"), str(tmp_path / "o"))
    assert capsys.readouterr().out == ""
    assert not (tmp_path / "o.mindir").exists()


def test_every_problem_is_told_at_once(net: str) -> None:
    converter = mslite.Converter()
    converter.save_type = mslite.ModelType.MINDIR_LITE
    converter.input_shape = {"x": [0]}
    converter.decrypt_key = "no"
    converter.enable_encryption = True
    with pytest.raises(RuntimeError, match="Converter model failed! error is 5 problems") as caught:
        converter.convert(ONNX, net, "out/")
    for words in ("MINDIR_LITE", "size 0", "decrypt_key", "no encrypt_key", "path of a file"):
        assert words in str(caught.value)


def test_what_was_never_set_changes_nothing(net: str, jobs: list[Job]) -> None:
    mslite.Converter().convert(ONNX, net, "o")
    (job,) = jobs
    assert job == Job(model=Path(net), output=Path("o.mindir"), may_replace=True)


def test_what_was_set_is_asked_for(net: str, jobs: list[Job]) -> None:
    converter = mslite.Converter()
    converter.input_format = mslite.Format.NHWC
    converter.input_data_type = mslite.DataType.FLOAT32
    converter.output_data_type = mslite.DataType.UNKNOWN
    converter.optimize = "ascend_oriented:910b"
    converter.weight_fp16 = converter.infer = converter.trust_pickle = True
    converter.convert(ONNX, net, "o")
    (job,) = jobs
    assert (job.input_format, job.input_type, job.output_type) == ("NHWC", "float32", "")
    assert job.optimize == "ascend_oriented"
    assert job.weight_fp16 and job.infer and job.trust_pickle


def test_a_device_counts_before_the_level(net: str, jobs: list[Job]) -> None:
    converter = mslite.Converter()
    converter.device = "Ascend"
    converter.optimize = "none"
    converter.convert(ONNX, net, "o")
    assert (converter.device, jobs[0].optimize) == ("Ascend", "ascend_oriented")


def test_file_and_program_both_configure_and_the_program_counts_first(
    net: str, tmp_path: Path, jobs: list[Job]
) -> None:
    file = tmp_path / "my.cfg"
    file.write_text("[registry]\ndisable_fusion=on\nplugin_path=a.so\n[b]\nk=file\n")
    converter = mslite.Converter()
    converter.set_config_info("registry", {"disable_fusion": "off"})
    converter.set_config_info("c", {"k": "program"})
    converter.convert(ONNX, net, "o", config_file=str(file))
    converter.convert(ONNX, net, "o")
    first, second = jobs
    assert first.settings == {
        "registry": {"disable_fusion": "off", "plugin_path": "a.so"},
        "b": {"k": "file"},
        "c": {"k": "program"},
    }
    assert second.settings == converter.get_config_info()  # the file does not stick


def test_ascend_context_of_a_program_applies(net: str, tmp_path: Path) -> None:
    converter = mslite.Converter()
    converter.set_config_info("ascend_context", {"input_shape": "x:[3,16]"})
    converter.convert(ONNX, net, str(tmp_path / "o"))
    with built(tmp_path / "o.mindir") as model:
        assert model.get_inputs()[0].shape == [3, 16]


def test_a_setting_without_effect_is_warned_of_where_the_caller_stands(
    net: str, tmp_path: Path
) -> None:
    converter = mslite.Converter()
    converter.set_config_info("acl_param", {"device_id": "3"})
    with pytest.warns(UserWarning, match=r"nothing reads section \[acl_param\]") as caught:
        converter.convert(ONNX, net, str(tmp_path / "o"))
    assert caught[0].filename == __file__


def test_a_node_without_equivalent_is_warned_of(tmp_path: Path) -> None:
    model = str(unusual_onnx(tmp_path / "unusual.onnx"))
    with pytest.warns(UserWarning, match="the_only"):
        mslite.Converter().convert(ONNX, model, str(tmp_path / "o"))


def test_keys_are_forgotten_after_each_conversion(net: str, jobs: list[Job]) -> None:
    converter = mslite.Converter()
    converter.encrypt_key = KEY
    converter.convert(ONNX, net, "o")
    converter.convert(ONNX, net, "o")
    converter.encrypt_key = converter.decrypt_key = KEY
    with pytest.raises(RuntimeError, match="decrypt_key is for MINDIR alone"):
        converter.convert(ONNX, net, "o")
    converter.convert(ONNX, net, "o")
    assert [job.encrypt_key for job in jobs] == [bytes.fromhex(KEY), None, None]


def test_encryption_can_be_switched_off(net: str, jobs: list[Job]) -> None:
    converter = mslite.Converter()
    converter.enable_encryption = False
    converter.encrypt_key = KEY
    converter.convert(ONNX, net, "o")
    assert jobs[0].encrypt_key is None


def test_two_converters_share_nothing(net: str, jobs: list[Job]) -> None:
    one, other = mslite.Converter(), mslite.Converter()
    one.input_shape = {"x": [2, 16]}
    one.set_config_info("registry", {"disable_fusion": "on"})
    one.encrypt_key = KEY
    other.convert(ONNX, net, "o")
    (job,) = jobs
    assert (job.shapes, job.settings, job.encrypt_key) == ({}, {}, None)


@pytest.mark.parametrize("mode", ["AES-GCM", "AES-CBC"])
def test_an_encrypted_model_is_decrypted_with_its_key(tmp_path: Path, mode: str) -> None:
    secret = written(tmp_path / "a.mindir", encrypt(dense_net(), bytes.fromhex(KEY), mode))
    converter = mslite.Converter()
    converter.decrypt_mode = mode
    with pytest.raises(RuntimeError, match=r"error is .* is encrypted"):
        converter.convert(mslite.FmkType.MINDIR, str(secret), str(tmp_path / "o"))
    converter.decrypt_key = KEY
    converter.convert(mslite.FmkType.MINDIR, str(secret), str(tmp_path / "o"))
    with built(tmp_path / "o.mindir") as model:
        assert model.get_inputs()[0].shape == [2, 3]


def test_a_plain_mindir_is_converted(tmp_path: Path) -> None:
    model_file = written(tmp_path / "a.mindir", dense_net())
    mslite.Converter().convert(mslite.FmkType.MINDIR, str(model_file), str(tmp_path / "o"))
    with built(tmp_path / "o.mindir") as model:
        assert model.get_inputs()[0].shape == [2, 3]


def test_the_examples_of_the_docstrings_run() -> None:
    assert doctest.testmod(module).failed == 0
