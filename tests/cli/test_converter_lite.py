"""converter_lite: the lines and exit codes that programs rely on, for every bad flag and file."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from cli.conftest import Done
from support.conversion import dense_onnx, unusual_onnx
from support.encryption import encrypt
from support.models import DIGITS, built, written

from mindspore_lite.cli import converter_lite
from mindspore_lite.conversion import convert as pipeline
from mindspore_lite.errors import (
    EngineError,
    EngineUnavailableError,
    LiteError,
    ModelFileError,
    UnsupportedOpError,
)

Run = Callable[..., Done]
ROOT = Path(__file__).parents[2]
KEY = "00112233445566778899AABBCCDDEEFF"


@pytest.fixture
def tool(script: Callable[[Callable[[], None]], Run]) -> Run:
    """Call `tool(*arguments)`, which is converter_lite."""
    return script(converter_lite.main)


@pytest.fixture
def convert(tool: Run, tmp_path: Path) -> Run:
    """Call `convert(*flags)` with the three that are needed in front."""
    model = dense_onnx(tmp_path / "net.onnx")

    def run(*flags: object) -> Done:
        return tool("--fmk=ONNX", f"--modelFile={model}", f"--outputFile={tmp_path / 'o'}", *flags)

    return run


def test_the_command_is_installed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["scripts"]["converter_lite"] == f"{converter_lite.__name__}:main"


def test_a_model_is_converted(convert: Run, tmp_path: Path) -> None:
    done = convert("--inputShape=x:2,16", "--infer")
    assert (done.code, done.out, done.err) == (0, "CONVERT RESULT SUCCESS:0\n", "")
    with built(tmp_path / "o.mindir") as model:
        assert model.get_inputs()[0].shape == [2, 16]


def test_a_batch_that_the_file_fixed_is_replaced(tool: Run, tmp_path: Path) -> None:
    """The guide's own example: the model has batch 2, and shall have 1."""
    model = dense_onnx(tmp_path / "net.onnx", rows=2)
    done = tool(
        "--fmk=ONNX",
        f"--modelFile={model}",
        f"--outputFile={tmp_path / 'o'}",
        "--inputShape=x:1,16",
    )
    assert (done.code, done.err) == (0, "")
    with built(tmp_path / "o.mindir") as result:
        assert (result.get_inputs()[0].shape, result.get_outputs()[0].shape[0]) == ([1, 16], 1)


def test_a_mindir_is_converted_under_its_own_name(convert: Run, tool: Run, tmp_path: Path) -> None:
    assert convert().code == 0
    name = tmp_path / "o.mindir"
    for output in (name, tmp_path / "o"):
        done = tool(
            "--fmk=MINDIR", f"--modelFile={name}", f"--outputFile={output}", "--inputShape=x:3,16"
        )
        assert (done.code, done.err) == (0, "")
    with built(name) as model:
        assert model.get_inputs()[0].shape == [3, 16]


def test_a_list_of_models_replaces_none_that_it_does_not_name(
    convert: Run, tool: Run, tmp_path: Path
) -> None:
    assert convert().code == 0
    settings = written(
        tmp_path / "c.cfg", f"[model_param]\nfmk=MINDIR\nmodelFile={tmp_path}/o.mindir\n".encode()
    )
    done = tool(f"--configFile={settings}")
    assert done.code == 255
    assert "would overwrite the model" in done.err + done.out


def test_values_may_stand_after_a_blank(tool: Run, tmp_path: Path) -> None:
    model = dense_onnx(tmp_path / "net.onnx")
    done = tool(
        *("--fmk", "ONNX", "--modelFile", model, "--outputFile", tmp_path / "o.mindir"),
        *("--infer", "false", "--optimize", "none"),
    )
    assert done.code == 0, done.err
    assert (tmp_path / "o.mindir").is_file()
    assert not (tmp_path / "o.mindir.mindir").exists()


@pytest.mark.parametrize(
    "flags",
    [
        ["--optimize=none"],
        ["--optimize=gpu_oriented"],
        ["--optimize=ascend_oriented"],
        ["--optimize=ascend_oriented:Ascend310P3"],
        ["--device=Ascend310P", "--optimize=nonsense"],
        ["--device=GPU"],
        ["--inputDataType=FLOAT", "--outputDataType=FLOAT32"],
        ["--inputDataType=DEFAULT"],
        ["--inputDataFormat=NCHW", "--outputDataFormat=NHWC"],
        ["--fp16=on"],
        ["--fp16=off"],
        ["--saveType=MINDIR"],
        ["--encryption=false", f"--encryptKey={KEY}"],
        ["--no-encryption"],
        ["--no-infer", "--trainModel=false"],
    ],
)
def test_legal_flags_are_taken(convert: Run, flags: list[str]) -> None:
    done = convert(*flags)
    assert (done.code, done.out) == (0, "CONVERT RESULT SUCCESS:0\n"), done.err


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["nonsense"], "Failed: flag nonsense is not valid."),
        (["--nonsense=1"], "nonsense is not a valid flag"),
        (["--fmk=TF"], "Failed: already parsed flag: fmk"),
        (["--fp16"], "No value provided for non-boolean type: fp16"),
        (["--infer=maybe"], "infer must be true or false"),
        (["--encryption=on"], "encryption must be true or false"),
        (["--optimizeTransformer=2"], "optimizeTransformer must be true or false"),
        (["--trainModel=2"], "trainModel must be true or false"),
    ],
)
def test_arguments_that_cannot_be_parsed(convert: Run, flags: list[str], words: str) -> None:
    done = convert(*flags)
    assert done.code == 168
    assert done.out == "Flags PreInit failed. Ret: -600\n"
    assert words in done.err
    assert "Usage: converter_lite" in done.err


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--optimize=fast"], "optimize must be none|general|gpu_oriented|ascend_oriented"),
        (["--optimize=ascend_oriented:a:b"], "chip_name must be single"),
        (["--device=TPU"], "device must be Ascend|Ascend310|Ascend310P|GPU"),
        (["--saveType=MS"], "saveType must be MINDIR|MINDIR_LITE"),
        (["--saveType=MINDIR_LITE"], "cannot be written; use MINDIR"),
        (["--inputDataFormat=ND"], "inputDataFormat must be NCHW|NHWC"),
        (["--outputDataFormat=nhwc"], "outputDataFormat must be NCHW|NHWC"),
        (["--inputDataType=BOOL"], "inputDataType must be"),
        (["--outputDataType=INT64"], "outputDataType must be FLOAT16, FLOAT32, INT8 or UINT8"),
        (["--weightFile=w.caffemodel"], "weight_file is not a valid flag"),
        (["--inputShape=x:0,16"], "inputShape of 'x' has the size 0"),
        (["--inputShape=x:-1,16"], "Unsupported dim < 0"),
        (["--inputShape=x:1,16junk"], "the size '16junk'"),
        (["--inputShape=x"], "wanted name:1,3,224,224"),
        (["--encryption"], "encryption is on, but there is no encryptKey"),
        (["--encryptKey=00"], "encryptKey must have 16 bytes"),
        (["--encryptKey=xyz"], "encryptKey must be hexadecimal digits"),
        (["--encryptKey=@nowhere"], "cannot read the key in 'nowhere'"),
        (["--decryptKey=00"], "decryptKey is for MINDIR alone"),
        (["--decryptKey=00", "--decryptMode=DES"], "decryptMode must be"),
    ],
)
def test_values_that_make_no_sense(
    convert: Run, tmp_path: Path, flags: list[str], words: str
) -> None:
    done = convert(*flags)
    assert done.code == 168
    assert done.out == "Flags Init failed. Ret: -600\n"
    assert words in done.err
    assert all(line.startswith("INPUT ILLEGAL: ") for line in done.err.splitlines())
    assert not (tmp_path / "o.mindir").exists()


def test_a_bad_precision_has_its_own_line(convert: Run) -> None:
    done = convert("--fp16=maybe")
    assert (done.code, done.out) == (168, "Flags Init failed. Ret: -600\n")
    assert done.err.startswith("Init save_fp16 failed. ")


def test_a_framework_that_does_not_exist(tool: Run) -> None:
    done = tool("--fmk=onnx", "--modelFile=x.onnx", "--outputFile=y")
    assert done.code == 168
    assert "INPUT ILLEGAL: fmk must be TF|TFLITE|CAFFE|MINDIR|ONNX" in done.err


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--modelFile=m.onnx", "--outputFile=o"], "INPUT MISSING: fmk is necessary"),
        (["--fmk=ONNX", "--outputFile=o"], "INPUT MISSING: model file path is necessary"),
        (["--fmk=ONNX", "--modelFile=m.onnx"], "INPUT MISSING: output file path is necessary"),
    ],
)
def test_a_needed_flag_is_missing(tool: Run, given: list[str], words: str) -> None:
    done = tool(*given)
    assert (done.code, done.out) == (168, "Flags Init failed. Ret: -600\n")
    assert words in done.err


def test_an_output_that_is_a_folder(tool: Run, tmp_path: Path) -> None:
    model = dense_onnx(tmp_path / "net.onnx")
    done = tool("--fmk=ONNX", f"--modelFile={model}", f"--outputFile={tmp_path}/")
    assert done.code == 168
    assert "outputFile must be the path of a file" in done.err


def test_every_problem_is_told_at_once(convert: Run) -> None:
    done = convert("--optimize=fast", "--saveType=MS", "--inputShape=x:0;y", "--fp16=1")
    assert len(done.err.splitlines()) == 5


@pytest.mark.parametrize("flags", [[], ["--fmk=ONNX"], ["--modelFile=x.onnx"]])
def test_too_few_flags(tool: Run, flags: list[str]) -> None:
    done = tool(*flags)
    assert done.code == 253
    assert done.out.endswith("Convert failed. Ret: Invalid parameter.\n")
    assert ("Usage:" in done.out) == (not flags)
    assert done.err.startswith("Flag missing: ")


def test_help_is_no_failure(tool: Run) -> None:
    done = tool("--help")
    assert (done.code, done.err) == (0, "")
    assert all(f"--{name} " in done.out for name in converter_lite.FLAGS)
    assert "Example: converter_lite --fmk=ONNX" in done.out


@pytest.mark.parametrize(
    ("framework", "name", "content", "words"),
    [
        ("ONNX", "nowhere.onnx", None, "modelFile does not exist"),
        ("ONNX", "net.pb", b"x", "ONNX has .onnx"),
        ("TF", "net.onnx", b"x", "TF has .pb"),
        ("ONNX", "bad.onnx", b"nonsense", "bad.onnx"),
        ("ONNX", "empty.onnx", b"", "empty.onnx"),
        ("MINDIR", "bad.mindir", b"nonsense", "bad.mindir"),
        ("PYTORCH", "net.pt", b"x", "may run code"),
    ],
)
def test_files_that_cannot_be_converted(
    tool: Run, tmp_path: Path, framework: str, name: str, content: bytes | None, words: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    done = tool(
        f"--fmk={framework}", f"--modelFile={tmp_path / name}", f"--outputFile={tmp_path / 'o'}"
    )
    assert (done.code, done.out) == (255, "Convert failed. Ret: Common error code.\n")
    assert words in done.err
    assert "Traceback" not in done.err


def test_a_caffe_model_is_not_supported(tool: Run, tmp_path: Path) -> None:
    (tmp_path / "net.prototxt").touch()
    done = tool(
        "--fmk=CAFFE", f"--modelFile={tmp_path / 'net.prototxt'}", f"--outputFile={tmp_path / 'o'}"
    )
    assert (done.code, done.out) == (249, "Convert failed. Ret: Fail to support.\n")
    assert "Caffe models cannot be converted" in done.err


@pytest.mark.parametrize("framework", ["OM", "MSLITE"])
def test_frameworks_that_are_not_here(tool: Run, framework: str) -> None:
    done = tool(f"--fmk={framework}", "--modelFile=x", "--outputFile=y")
    assert (done.code, done.out) == (249, "Convert failed. Ret: Fail to support.\n")
    assert framework in done.err


def test_training_is_not_here(convert: Run) -> None:
    done = convert("--trainModel")
    assert (done.code, done.out) == (249, "Convert failed. Ret: Fail to support.\n")


def test_a_shape_of_no_input(convert: Run) -> None:
    done = convert("--inputShape=z:1,16")
    assert (done.code, done.out) == (168, "Convert failed. Ret: Invalid input param by user.\n")
    assert "z" in done.err


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (ModelFileError("why"), 255, "Common error code."),
        (EngineError("why"), 255, "Common error code."),
        (EngineUnavailableError("why"), 249, "Fail to support."),
        (UnsupportedOpError("why", {"Odd": ["a", "b"]}), 212, "Failed to find operator."),
    ],
)
def test_the_exit_code_tells_what_failed(
    convert: Run, monkeypatch: pytest.MonkeyPatch, error: LiteError, code: int, text: str
) -> None:
    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr(pipeline, "convert", fails)
    done = convert()
    assert (done.code, done.out) == (code, f"Convert failed. Ret: {text}\n")
    assert done.err.startswith("why\n")
    block = "UNSUPPORTED OP LIST:\nFMKTYPE: ONNX, OP TYPE: Odd\n"
    assert (block in done.err) == isinstance(error, UnsupportedOpError)


def test_an_interrupt_ends_quietly(convert: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(pipeline, "convert", interrupted)
    assert convert().code == 130


def test_what_has_no_effect_is_said(convert: Run, tmp_path: Path) -> None:
    (tmp_path / "my.cfg").write_text("[ascend_context]\nprovider=ge\n")
    done = convert(f"--configFile={tmp_path / 'my.cfg'}", "--optimizeTransformer")
    assert done.code == 0
    assert "WARNING: [ascend_context] provider: no effect" in done.err
    assert "WARNING: optimizeTransformer has no effect" in done.err


def test_a_node_without_equivalent_is_said(tool: Run, tmp_path: Path) -> None:
    model = unusual_onnx(tmp_path / "net.onnx")
    done = tool("--fmk=ONNX", f"--modelFile={model}", f"--outputFile={tmp_path / 'o'}")
    assert done.code == 0
    assert "WARNING: 1 node(s) travel as Custom" in done.err


@pytest.mark.parametrize(
    ("content", "code", "words"),
    [
        ("nonsense\n", 255, "line 1: 'nonsense' is not key=value"),
        ("[registry]\nx=1\n", 168, "INPUT ILLEGAL: `x` is not supported in [registry]"),
        ("[common_quant_param]\nx=1\n", 168, "`x` is not supported in [common_quant_param]"),
        ("[registry]\ndisable_fusion=1\n", 168, "disable_fusion must be on or off"),
        ("[acl_build_options]\ninput_shape=x:1\n", 168, "the configuration says 'x:1'"),
    ],
)
def test_bad_configurations(
    convert: Run, tmp_path: Path, content: str, code: int, words: str
) -> None:
    (tmp_path / "my.cfg").write_text(content)
    done = convert(f"--configFile={tmp_path / 'my.cfg'}", "--inputShape=x:2,16")
    assert done.code == code
    assert words in done.err
    assert done.err.count("INPUT ILLEGAL") == (code == 168)


def test_a_missing_configuration(convert: Run) -> None:
    done = convert("--configFile=nowhere.cfg")
    assert (done.code, done.out) == (255, "Convert failed. Ret: Common error code.\n")


def test_an_encrypted_source_needs_its_key(tool: Run, tmp_path: Path) -> None:
    secret = written(tmp_path / "a.mindir", encrypt(DIGITS.read_bytes(), bytes.fromhex(KEY)))
    flags = ["--fmk=MINDIR", f"--modelFile={secret}", f"--outputFile={tmp_path / 'o'}"]
    assert tool(*flags).code == 255
    assert tool(*flags, f"--decryptKey={'11' * 16}").code == 255
    (tmp_path / "key").write_text(KEY)
    assert tool(*flags, f"--decryptKey=@{tmp_path / 'key'}").code == 0


def test_several_models_come_from_a_configuration(tool: Run, tmp_path: Path) -> None:
    for name in ("a", "b"):
        dense_onnx(tmp_path / f"{name}.onnx")
    (tmp_path / "all.cfg").write_text(
        f"[model_param]\nfmk=ONNX\nmodelFile={tmp_path}/a.onnx\ninputShape=x:2,16\n"
        f"[model_param]\nfmk=ONNX\nmodelFile={tmp_path}/b.onnx\noutputFile={tmp_path}/c\n"
        "NoFusion=true\ninfer=false\n"
    )
    done = tool(f"--configFile={tmp_path / 'all.cfg'}")
    assert (done.code, done.out, done.err) == (0, "CONVERT RESULT SUCCESS:0\n", "")
    with built(tmp_path / "a.mindir") as model:
        assert model.get_inputs()[0].shape == [2, 16]
    assert (tmp_path / "c.mindir").is_file()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "configFile has no [model_param]"),
        ("[model_param]\nfmk=ONNX\n", "INPUT MISSING: model file path is necessary"),
        ("[model_param]\nsaveType=MINDIR\n", "`saveType` is not supported in [model_param]"),
        ("[model_param]\ninfer=1\n", "infer must be true or false, but got '1'"),
        ("[model_param]\noutputFile=a\n" * 2, "two models go to outputFile 'a'"),
        ("[model_param]\nfmk=ONNX\nmodelFile=x.onnx\n[micro_param]\nenable_micro=true\n", "C code"),
    ],
)
def test_bad_lists_of_models(tool: Run, tmp_path: Path, content: str, words: str) -> None:
    (tmp_path / "all.cfg").write_text(content)
    done = tool(f"--configFile={tmp_path / 'all.cfg'}")
    assert (done.code, done.out) == (168, "Flags Init failed. Ret: -600\n")
    assert words in done.err


def test_what_nobody_foresaw_is_a_line_and_no_traceback(
    convert: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def surprised(*_: object) -> None:
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr(converter_lite, "say", surprised)
    done = convert()
    assert (done.code, done.out) == (255, "")
    assert done.err.splitlines()[-1] == "BrokenPipeError: [Errno 32] Broken pipe"
    assert "Traceback" not in done.err


def test_a_decryption_that_does_not_exist(convert: Run) -> None:
    done = convert("--decryptMode=ROT13")
    assert (done.code, done.out) == (168, "Flags Init failed. Ret: -600\n")
    assert "INPUT ILLEGAL: decryptMode must be AES-GCM|AES-CBC|SM4-CBC" in done.err
