from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from PIL import Image
from support.fake_cards import installed
from support.models import TWO_IN_TWO_OUT, dense_net, written
from support.running import DATA

from mindspore_lite.cli.demo import DIGITS_MODEL, samples
from mindspore_lite.engines import ascend

Run = Callable[..., Any]
OUTPUT = "Default/Softmax-op0"


@pytest.fixture
def digit(tmp_path: Path) -> Path:
    images, _ = samples()
    np.save(tmp_path / "seven.npy", images[7:8])
    return tmp_path / "seven.npy"


@pytest.fixture
def halves(tmp_path: Path) -> Path:
    """y = x / 2 on int32 pairs of a fixed shape."""
    graph = helper.make_graph(
        [helper.make_node("Div", ["x", "two"], ["y"])],
        "halves",
        [helper.make_tensor_value_info("x", onnx.TensorProto.INT32, [2, 3])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.INT32, [2, 3])],
        [helper.make_tensor("two", onnx.TensorProto.INT32, [], [2])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.save(model, tmp_path / "halves.onnx")
    return tmp_path / "halves.onnx"


def test_an_npy_file_is_the_input_and_settles_open_dims(mslite: Run, digit: Path) -> None:
    done = mslite("run", DIGITS_MODEL, "--input", f"x={digit}", "--top", 1)
    assert done.code == 0
    assert f"tensor's name is:{OUTPUT} data size is:40 tensor elements num is:10" in done.out
    assert f"top 1 of {OUTPUT}: 7: 0.95" in done.out
    assert "random" not in done.out


def test_random_inputs_are_said_to_be_random(mslite: Run) -> None:
    done = mslite("run", DIGITS_MODEL, "--shape", "x=2,1,8,8", "--top", 2)
    assert "input x [2, 1, 8, 8] is random" in done.out
    assert f"top 2 of {OUTPUT} row 1:" in done.out


def test_ascend_can_be_emulated(mslite: Run, digit: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ("run", DIGITS_MODEL, "--input", f"x={digit}", "--top", 1, "--target", "ascend")
    refused = mslite(*arguments)
    assert refused.code == 1
    assert "set MSLITE_ASCEND=emulate" in refused.err
    monkeypatch.setenv("MSLITE_ASCEND", "emulate")
    monkeypatch.setattr(ascend, "_untold", [True])
    done = mslite(*arguments)
    assert done.code == 0
    assert f"top 1 of {OUTPUT}: 7: 0.95" in done.out
    assert done.err.startswith("mslite: target 'ascend' is emulated on the CPU with 8 devices")


@pytest.mark.parametrize(("target", "code"), [("gpu", 1), ("tpu", 2)])
def test_a_target_that_is_not_there_is_refused(mslite: Run, target: str, code: int) -> None:
    done = mslite("run", DIGITS_MODEL, "--target", target, "--device", 4096)
    assert done.code == code
    assert target in done.err


def test_a_card_and_its_settings_can_be_named(
    mslite: Run, digit: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cards = installed(monkeypatch)
    config = tmp_path / "half.ini"
    config.write_text("[gpu_context]\nprecision_mode=preferred_fp16\n")
    arguments = ("run", DIGITS_MODEL, "--input", f"x={digit}", "--top", 1)
    done = mslite(*arguments, "--target", "gpu", "--device", 1, "--config", config)
    assert done.code == 0
    assert f"top 1 of {OUTPUT}: 7: 0.95" in done.out
    (options,) = cards.loads
    assert (options.device, options.precision) == ("cuda:1", "preferred_fp16")
    assert mslite(*arguments, "--engine", "torch").code == 0
    assert cards.asked == [("gpu", "", 1), ("cpu", "torch", 0)]


def test_open_dims_become_1_and_that_is_said(mslite: Run) -> None:
    assert "input x is [-1, 1, 8, 8]; taking [1, 1, 8, 8]" in mslite("run", DIGITS_MODEL).out


def test_raw_values_of_the_inputs_type_are_read_from_a_bin_file(
    mslite: Run, halves: Path, tmp_path: Path
) -> None:
    np.arange(6, dtype=np.int32).tofile(tmp_path / "x.bin")
    done = mslite("run", halves, "--input", f"x={tmp_path / 'x.bin'}")
    assert "output data is: 0 0 1 1 2 2\n" in done.out


def test_integer_inputs_are_random_zeros_and_ones(
    mslite: Run, halves: Path, tmp_path: Path
) -> None:
    saved = tmp_path / "out.npz"
    assert f"saved 1 outputs in {saved}" in mslite("run", halves, "--save", saved).out
    with np.load(saved) as file:
        assert file["y"].dtype == np.int32
        assert not file["y"].any()  # 0 // 2 and 1 // 2


def test_outputs_are_saved_in_just_the_file_that_was_named(
    mslite: Run, tmp_path: Path, halves: Path
) -> None:
    model = onnx.load(halves)
    model.graph.output[0].name = model.graph.node[0].output[0] = (
        "file"  # what np.savez calls its own
    )
    onnx.save(model, halves)
    assert mslite("run", halves, "--save", tmp_path / "saved").code == 0
    with np.load(tmp_path / "saved") as file:
        assert file["file"].shape == (2, 3)


def test_threads_are_passed_on(mslite: Run) -> None:
    done = mslite("run", DIGITS_MODEL, "--threads", -1)
    assert done.code == 1
    assert "cpu_thread_num must be a non-negative int" in done.err
    assert mslite("run", DIGITS_MODEL, "--threads", 1).code == 0


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["nowhere.mindir"], "model_path does not exist"),
        ([DIGITS_MODEL, "--input", f"y={DIGITS_MODEL}"], "no input ['y']; its inputs are ['x']"),
        ([DIGITS_MODEL, "--input", "a.npy"], "--input: there is no file 'a.npy'"),
        ([DIGITS_MODEL, "--input", "x=nowhere.npy"], "there is no file 'nowhere.npy'; there is no"),
        (
            [TWO_IN_TWO_OUT, "--input", DIGITS_MODEL],
            "wanted NAME=FILE: the model's inputs are ['a', ",
        ),
        ([DIGITS_MODEL, "--shape", "x=1,one"], "--shape got '1,one', wanted sizes like"),
        ([DIGITS_MODEL, "--shape", "x=1,8"], "has 4 dims"),
        ([DIGITS_MODEL, "--shape", "x=-2,1,8,8"], "every dim must be 1 or more"),
        (["model.ms"], "model_path does not exist"),
    ],
)
def test_bad_arguments_are_one_line_and_exit_code_1(
    mslite: Run, arguments: list[object], wanted: str
) -> None:
    done = mslite("run", *arguments)
    assert done.code == 1
    assert wanted in done.err
    assert "Traceback" not in done.err


def test_pickled_arrays_are_refused(mslite: Run, tmp_path: Path) -> None:
    np.save(tmp_path / "bad.npy", np.array([{}], dtype=object), allow_pickle=True)
    done = mslite("run", DIGITS_MODEL, "--input", f"x={tmp_path / 'bad.npy'}")
    assert done.code == 1
    assert "is no .npy file of plain numbers" in done.err


def test_an_edge_model_is_refused_with_the_way_out(mslite: Run, tmp_path: Path) -> None:
    (tmp_path / "edge.ms").write_bytes(b"MSL2")
    assert "convert" in mslite("run", tmp_path / "edge.ms").err


def test_bfloat16_is_read_and_saved_as_float32(
    mslite: Run, tmp_path: Path, case_path: Callable[[str], Path]
) -> None:
    np.save(tmp_path / "x.npy", np.array([[1, -2, 0.5, 3], [0, 1, 2, 3]], np.float32))
    model, saved = case_path("element_types/floor_bfloat16"), tmp_path / "out.npz"
    done = mslite("run", model, "--input", f"x={tmp_path / 'x.npy'}", "--top", 1, "--save", saved)
    assert done.code == 0, done.err
    assert "is bfloat16; saved as float32" in done.out
    with np.load(saved) as arrays:
        (found,) = arrays.values()
    assert (found.dtype, found.tolist()) == (np.float32, [[1, -2, 0, 3], [0, 1, 2, 3]])
    assert mslite("run", model).code == 0  # random inputs


def test_an_input_of_any_rank_takes_the_shape_of_its_file(mslite: Run, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones((2, 3), np.float32))
    model = DATA / "nets/dyn_rank.mindir"
    assert "elements num is:6" in mslite("run", model, "--input", f"x={tmp_path / 'x.npy'}").out
    assert "input x is [-2]; taking [1]" in mslite("run", model).out


@pytest.mark.parametrize("command", ["run", "inspect", "convert", "bench"])
def test_a_file_that_is_no_model_is_named_for_what_it_is(
    mslite: Run, tmp_path: Path, command: str
) -> None:
    path = tmp_path / "net.onnx"
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 4\n")
    done = mslite(command, path)
    assert done.code
    assert "a pointer of git-lfs" in done.err
    assert "git lfs pull" in done.err


def test_a_picture_is_read_as_the_only_input(mslite: Run, tmp_path: Path) -> None:
    file = tmp_path / "two.png"
    Image.new("RGB", (30, 20), (255, 255, 255)).save(file)
    done = mslite("run", DIGITS_MODEL, "--input", file)
    assert (done.code, done.err) == (0, "")
    assert f"input x is {file} as GRAY, 8 x 8, from 0 to 1" in done.out


def test_a_picture_for_another_kind_of_input_says_what_is_wanted(
    mslite: Run, tmp_path: Path
) -> None:
    file = tmp_path / "two.png"
    Image.new("RGB", (30, 20)).save(file)
    dense = written(tmp_path / "dense.mindir", dense_net())
    done = mslite("run", dense, "--input", file)
    assert "is a picture, and the input has shape [2, 3]" in done.err


def test_a_negative_top_is_refused(mslite: Run) -> None:
    done = mslite("run", DIGITS_MODEL, "--top", -1)
    assert (done.code, done.out) == (2, "")
    assert "--top got -1, wanted how many values" in done.err


@pytest.mark.parametrize(
    ("name", "words"), [("", "is a folder, wanted a file"), ("no/y.npz", "there is no folder for")]
)
def test_a_place_that_cannot_be_written_is_said_before_the_run(
    mslite: Run, tmp_path: Path, name: str, words: str
) -> None:
    done = mslite("run", DIGITS_MODEL, "--save", tmp_path / name)
    assert (done.code, done.out) == (1, "")
    assert words in done.err
