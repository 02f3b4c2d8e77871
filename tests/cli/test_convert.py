"""mslite convert: what it tells about a conversion, and what it refuses."""

from __future__ import annotations

import re
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from support.conversion import dense_onnx, unusual_onnx
from support.models import built

from mindspore_lite.cli.convert import show_report
from mindspore_lite.cli.demo import DIGITS_MODEL, samples
from mindspore_lite.conversion import convert as pipeline
from mindspore_lite.conversion.check import Difference
from mindspore_lite.conversion.convert import Report
from mindspore_lite.conversion.job import Job
from mindspore_lite.conversion.quant_report import QuantReport
from mindspore_lite.errors import EngineError

Run = Callable[..., Any]
KEY = "00112233445566778899AABBCCDDEEFF"


@pytest.fixture
def net(tmp_path: Path) -> Path:
    return dense_onnx(tmp_path / "net.onnx")


def test_the_result_lies_beside_its_source(mslite: Run, net: Path) -> None:
    done = mslite("convert", net)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"{net.with_suffix('.mindir')}, ")
    assert "2 operators became" in done.out
    assert "1 Relu" in done.out
    assert "1 ReLU" in done.out
    assert "largest difference" not in done.out


def test_an_output_can_be_named(mslite: Run, net: Path, tmp_path: Path) -> None:
    assert mslite("convert", net, tmp_path / "a/b").code == 0
    assert (tmp_path / "a/b.mindir").is_file()


def test_a_shape_is_fixed_and_the_result_compared(mslite: Run, net: Path) -> None:
    done = mslite("convert", net, "--shape", "x=2,16", "--check", "--infer", "--fp16")
    assert done.code == 0, done.err
    assert "weights stored as float16 1" in done.out
    assert "largest difference between source and result: " in done.out
    assert "of the largest value, in y" in done.out
    with built(net.with_suffix(".mindir")) as model:
        assert model.get_inputs()[0].shape == [2, 16]


def test_a_comparison_that_fails_does_not_hide_the_conversion(
    mslite: Run, net: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise EngineError("the source does not run")

    monkeypatch.setattr(pipeline, "check", fails)
    done = mslite("convert", net, "--check")
    assert done.code == 1
    assert "2 operators became" in done.out
    assert "converted, but cannot be compared: the source does not run" in done.err


def test_a_node_without_equivalent_is_told_with_its_place(mslite: Run, tmp_path: Path) -> None:
    done = mslite("convert", unusual_onnx(tmp_path / "odd.onnx"))
    assert "travel as Custom, which only this package runs:" in done.out
    assert "QuickGelu" in done.out
    assert "(at the_only)" in done.out


def test_weights_in_a_file_of_their_own_are_told(mslite: Run, net: Path) -> None:
    done = mslite("convert", net, "--external-above", 100)
    assert "net_graph.mindir, " in done.out
    assert "  and " in done.out
    assert "net_variables/data_0" in done.out


def test_a_configuration_is_read_and_what_has_no_effect_is_said(
    mslite: Run, net: Path, tmp_path: Path
) -> None:
    (tmp_path / "my.cfg").write_text(
        "[acl_build_options]\ninput_shape=x:3,16\nge.x=1\nge.x=2\n[other]\n"
    )
    done = mslite("convert", net, "--config", tmp_path / "my.cfg")
    assert done.code == 0, done.err
    assert "warning: [acl_build_options] ge.x: no effect" in done.out
    assert "warning: nothing reads section [other]" in done.out
    assert "ge.x comes again" in done.out
    with built(net.with_suffix(".mindir")) as model:
        assert model.get_inputs()[0].shape == [3, 16]


def test_every_problem_is_told_at_once(mslite: Run, net: Path) -> None:
    done = mslite(
        "convert", net, "a/", "--shape", "x=0,a", "--shape", "y", "--shape", "z=1", "--shape",
        "z=2", "--optimize", "fast", "--encrypt-key", "zz", "--decrypt-key", "00",
        "--input-type", "text", "--output-type", "int64", "--external-above=-1",
    )  # fmt: skip
    assert done.code == 1
    for words in (
        "optimize must be none|",
        "OUTPUT must be the path of a file",
        "--shape of 'x' has the size 0",
        "--shape of 'x' has the size 'a'",
        "--shape got 'y', wanted NAME=1,3,224,224",
        "--shape got 'z=2'",
        "--encrypt-key must be hexadecimal",
        "--decrypt-key is for MINDIR alone",
        "--input-type must be",
        "--output-type must be",
        "must be 0 or more, but got -1",
    ):
        assert words in done.err
    assert not net.with_suffix(".mindir").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere.onnx"], "MODEL does not exist: 'nowhere.onnx'"),
        (
            ["net.onnx", "--framework", "keras"],
            "--framework must be TF|TFLITE|CAFFE",
        ),
        (["net.onnx", "--framework", "tf"], "TF has .pb"),
        (["net.onnx", "--config", "nowhere.cfg"], "cannot read the configuration 'nowhere.cfg'"),
        (["net.onnx", "--shape", "z=1,16"], "z"),
        (["net.unknown"], "net.unknown"),
        (["."], "OUTPUT must be the path of a file"),
        (["net.onnx", "--encrypt-key", "env:MSLITE_NO_SUCH_KEY"], "MSLITE_NO_SUCH_KEY"),
    ],
)
def test_a_failure_is_told_and_exit_code_1(
    mslite: Run,
    net: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    words: str,
) -> None:
    monkeypatch.chdir(net.parent)
    done = mslite("convert", *arguments)
    assert done.code == 1
    assert words in done.err
    assert "Traceback" not in done.err
    assert not net.with_suffix(".mindir").exists()


@pytest.mark.parametrize("arguments", [[], ["a", "b", "c"], ["a", "--quantise", "hard"]])
def test_wrong_usage_is_exit_code_2(mslite: Run, arguments: list[str]) -> None:
    assert mslite("convert", *arguments).code == 2


def test_the_source_is_not_overwritten(mslite: Run, net: Path) -> None:
    assert mslite("convert", net).code == 0
    done = mslite("convert", net.with_suffix(".mindir"))
    assert done.code == 1
    assert "would overwrite the model" in done.err


def test_the_source_is_replaced_where_it_is_named(mslite: Run, net: Path) -> None:
    assert mslite("convert", net).code == 0
    name = net.with_suffix(".mindir")
    done = mslite("convert", name, name, "--shape", "x=2,16")
    assert (done.code, done.err) == (0, "")
    with built(name) as model:
        assert model.get_inputs()[0].shape == [2, 16]
    done = mslite("convert", name, name, "--sandbox", "--shape", "x=5,16")
    assert (done.code, done.err) == (0, "")
    with built(name) as model:
        assert model.get_inputs()[0].shape == [5, 16]


@pytest.mark.parametrize("more", [[], ["--sandbox"]])
def test_a_source_that_is_gone_cannot_be_compared(mslite: Run, net: Path, more: list[str]) -> None:
    assert mslite("convert", net).code == 0
    name = net.with_suffix(".mindir")
    before = name.read_bytes()
    done = mslite("convert", name, name, "--check", *more)
    assert done.code == 1
    assert "--check compares with the source" in done.err
    assert name.read_bytes() == before


def test_a_report_shows_the_most_frequent_operators(capsys: pytest.CaptureFixture[str]) -> None:
    many = Counter({f"Op{number:02}": 20 - number for number in range(15)})
    report = Report(
        Job(), many, Counter(MatMul=1), {"constants folded": 12}, {}, None, ("careful",),
        (Path("net.mindir"),), 2048, 1024,
    )  # fmt: skip
    show_report(report, Difference(0.125, "y"))
    out = capsys.readouterr().out
    assert "net.mindir, 1.0 KiB (source: 2.0 KiB)" in out
    assert "20 Op00" in out
    assert "Op12" not in out
    assert f"{8 + 7 + 6} of other kinds" in out
    assert "done: constants folded 12" in out
    assert "warning: careful" in out
    assert "largest difference between source and result: 0.12 of the largest value, in y" in out


@pytest.mark.parametrize(
    ("apart", "words"),
    [
        (0.01, "largest difference 0.01 of the largest value, cosine 0.999000, on random inputs"),
        (float("nan"), "not compared: random inputs"),
    ],
)
def test_a_report_tells_what_quantisation_did(
    capsys: pytest.CaptureFixture[str], apart: float, words: str
) -> None:
    found = QuantReport(
        "WEIGHT_QUANT", 3, {"too small": 2}, 4096, 1024, apart, 0.999, "random inputs"
    )
    show_report(
        Report(Job(), Counter(), Counter(), {}, {}, found, (), (Path("net.mindir"),), 1, 1), None
    )
    out = capsys.readouterr().out
    assert "quantised (WEIGHT_QUANT): 3 weights, 4.0 KiB became 1.0 KiB" in out
    assert "left as they were: 2, too small" in out
    assert words in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["net.onnx", "--shape", "x=0,3"], "--shape"),
        (["net.onnx", "--decrypt-key", "xx"], "--decrypt-key must be hexadecimal digits"),
        (["net.onnx", "--external-above", "-1"], "--external-above"),
        (["net.onnx", "--optimize", "fast"], "--optimize must be none|general|"),
        (["net.h5"], "or say by --framework which framework it belongs to"),
        (["net.ms"], "'net.ms': an .ms file is made for the runtime of mobile devices"),
        (["net.om"], "'net.om': an OM file holds machine code compiled for Ascend"),
        (["net.pt"], "set --trust-pickle and give the shapes of its inputs (--shape)"),
        (["net.pt", "--trust-pickle"], "give their shapes, in their order (--shape), or export"),
    ],
)
@pytest.mark.parametrize("more", [[], ["--sandbox"]])
def test_an_error_names_the_flags_of_this_command(
    mslite: Run,
    arguments: list[str],
    words: str,
    more: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if "--trust-pickle" in arguments:
        pytest.importorskip("torch")  # which is asked for first
    monkeypatch.chdir(tmp_path)
    for name in ("net.onnx", "net.h5", "net.ms", "net.om"):
        (tmp_path / name).write_bytes(b"x")
    with zipfile.ZipFile(tmp_path / "net.pt", "w") as archive:
        archive.writestr("net/data.pkl", b"x")
    done = mslite("convert", *arguments, *more)
    assert done.code in (1, 2)
    assert words in done.err
    for other in ("--inputShape", "inputShape", "trustPickle", "outputFile", "fmk", "MSLITE"):
        assert other not in done.err


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    """Ten digits as .npy, .npz and pictures."""
    images, _ = samples()
    for kind in ("npy", "npz", "png"):
        (tmp_path / kind).mkdir()
    for at, image in enumerate(images):
        np.save(tmp_path / f"npy/{at}.npy", image[None])
        np.savez(tmp_path / f"npz/{at}.npz", x=image[None])
        Image.fromarray((image[0] * 255).astype(np.uint8)).save(tmp_path / f"png/{at}.png")
    return tmp_path


@pytest.mark.parametrize("kind", ["npy", "npz", "png"])
def test_full_quantisation_in_one_step_reports_what_was_lost(
    mslite: Run, folders: Path, kind: str
) -> None:
    flags = ("--quantise", "full", "--samples", folders / kind)
    done = mslite("convert", DIGITS_MODEL, folders / "small", *flags)
    assert (done.code, done.err) == (0, "")
    assert "quantised (FULL_QUANT): 32 weights" in done.out
    assert "on 2 samples that were held out" in done.out
    assert "the same top class in 100.0% of 2 rows, if Default/Softmax-op0 holds" in done.out
    losses = re.findall(r"^ +([\d.]+)%  Conv  Default/features", done.out, re.M)
    assert len(losses) == 5
    assert losses == sorted(losses, key=float, reverse=True)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--quantise", "full"], "--quantise full wants --samples FOLDER, with inputs as they"),
        (["--samples", "npy"], "--samples goes with --quantise"),
        (["--quantise", "full", "--samples", "npy", "--std", "0"], "--std got '0', wanted numbers"),
        (["--quantise", "full", "--samples", "npy", "--mean", "1,2"], "--mean got '1,2', wanted 1"),
        (["--mean", "1"], "--mean is for the images of --samples"),
        (["--quantise", "full", "--samples", "npy", "--samples", "npz"], "wanted one FOLDER"),
        (["--quantise", "full", "--samples", "y=npy"], "'y', which is no input of the model"),
        (["--quantise", "full", "--samples", "none"], "'none', which is no folder"),
    ],
)
def test_samples_that_make_no_sense(
    mslite: Run, folders: Path, flags: list[str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folders)
    done = mslite("convert", DIGITS_MODEL, "small", *flags)
    assert done.code == 1
    assert words in done.err
    assert "INPUT ILLEGAL" not in done.err
    assert "data_preprocess_param" not in done.err


def test_too_few_samples_to_hold_some_out_is_said(mslite: Run, folders: Path) -> None:
    for at in range(4, 10):
        (folders / f"npy/{at}.npy").unlink()
    flags = ("--quantise", "full", "--samples", f"x={folders / 'npy'}")
    out = mslite("convert", DIGITS_MODEL, folders / "small", *flags).out
    assert "which calibrated the model; with 5 samples or more, some are held out instead" in out
