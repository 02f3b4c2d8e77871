"""convert.py: from a job to a file in its place, and what is told about it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from support.conversion import WEIGHTS, job, save, unusual_onnx
from support.models import DIGITS, arrays, built
from support.running import DATA

import mindspore_lite as mslite
from mindspore_lite.conversion import convert as module
from mindspore_lite.conversion import quantise
from mindspore_lite.conversion.check import run_once
from mindspore_lite.conversion.convert import carried, check, convert
from mindspore_lite.core import snapshot
from mindspore_lite.errors import (
    EngineError,
    ModelFileError,
    SettingsError,
    ShapeError,
    UnsupportedOpError,
)
from mindspore_lite.graph import onnx_scan
from mindspore_lite.mindir import scan
from mindspore_lite.mindir.decrypt import encrypted_by

X = np.linspace(-1, 1, 32, dtype=np.float32).reshape(2, 16)


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_an_onnx_model_becomes_a_mindir_of_the_same_meaning(tmp_path: Path) -> None:
    report = convert(job(tmp_path))
    assert report.files == (tmp_path / "net.mindir",)
    with built(tmp_path / "net.mindir") as model:
        assert [i.name for i in model.get_inputs()] == ["x"]
        assert [o.name for o in model.get_outputs()] == ["y"]
        assert model.get_inputs()[0].shape == [-1, 16]
        (y,) = arrays(model.predict([X]))
    np.testing.assert_allclose(y, np.maximum(X @ WEIGHTS, 0), rtol=1e-5, atol=1e-6)


def test_the_report_counts(tmp_path: Path) -> None:
    wanted = job(tmp_path)
    report = convert(wanted)
    assert report.before == {"MatMul": 1, "Relu": 1}
    assert report.after["ReLU"] == 1
    assert report.custom == {}
    assert report.source_bytes == wanted.model.stat().st_size
    assert report.written_bytes == wanted.output.stat().st_size
    assert (report.warnings, report.quantised) == ((), None)
    assert carried(report) == []


def test_stages_are_told_in_order(tmp_path: Path) -> None:
    told: list[str] = []
    convert(job(tmp_path, infer=True, shapes={"x": (1, 16)}), told.append)
    assert told[0] == "reading net.onnx"
    assert told[-2:] == ["writing net.mindir", "running the result once"]


def test_folders_of_the_output_are_made(tmp_path: Path) -> None:
    report = convert(job(tmp_path, output=tmp_path / "a/b/net.mindir"))
    assert report.files[0].is_file()


def test_shapes_are_fixed(tmp_path: Path) -> None:
    convert(job(tmp_path, shapes={"x": (3, 16)}))
    with built(tmp_path / "net.mindir") as model:
        assert model.get_inputs()[0].shape == [3, 16]


def test_shapes_of_the_configuration_are_fixed(tmp_path: Path) -> None:
    sections = {"ascend_context": {"input_shape": "x:[3,16]"}}
    report = convert(job(tmp_path, settings=sections))
    assert report.job.shapes == {"x": (3, 16)}
    with built(tmp_path / "net.mindir") as model:
        assert model.get_inputs()[0].shape == [3, 16]


def test_a_shape_of_no_input_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ShapeError, match="z"):
        convert(job(tmp_path, shapes={"z": (3, 16)}))
    assert files(tmp_path) == {"net.onnx"}


def test_weights_become_half_as_large(tmp_path: Path) -> None:
    report = convert(job(tmp_path, weight_fp16=True))
    assert report.done["weights stored as float16"] == 1
    assert report.written_bytes < WEIGHTS.nbytes
    with built(tmp_path / "net.mindir") as model:
        (y,) = arrays(model.predict([X]))
    assert y.dtype == np.float32
    np.testing.assert_allclose(y, np.maximum(X @ WEIGHTS, 0), rtol=2e-3, atol=2e-3)


def test_large_weights_go_to_a_file_of_their_own(tmp_path: Path) -> None:
    report = convert(job(tmp_path, external_above=100, infer=True, shapes={"x": (2, 16)}))
    assert report.files == (tmp_path / "net_graph.mindir", tmp_path / "net_variables/data_0")
    assert files(tmp_path) == {"net.onnx", "net_graph.mindir", "net_variables/data_0"}
    assert check(report).relative < 1e-6


def test_layouts_and_types_are_changed_at_the_border(tmp_path: Path) -> None:
    report = convert(
        job(
            tmp_path,
            framework="MINDIR",
            model=DIGITS,
            input_format="NHWC",
            input_type="float16",
            output_type="float16",
        )
    )
    assert check(report).relative < 1e-3
    with built(tmp_path / "net.mindir") as model:
        (x,), (y,) = model.get_inputs(), model.get_outputs()
        assert (x.shape, x.dtype) == ([-1, 8, 8, 1], mslite.DataType.FLOAT16)
        assert y.dtype is mslite.DataType.FLOAT16


@pytest.mark.parametrize("kind", ["WEIGHT_QUANT", "DYNAMIC_QUANT", "FULL_QUANT"])
def test_a_model_is_quantised_as_the_settings_say(tmp_path: Path, kind: str) -> None:
    sections = {"common_quant_param": {"quant_type": kind}}
    if kind == "FULL_QUANT":
        (tmp_path / "samples").mkdir()
        np.save(tmp_path / "samples/0.npy", X)
        data = {"calibrate_path": f"x:{tmp_path / 'samples'}", "input_type": "BIN"}
        sections["data_preprocess_param"] = data
    report = convert(job(tmp_path, settings=sections, shapes={"x": (2, 16)}, infer=True))
    assert report.quantised is not None
    assert (report.quantised.kind, report.quantised.quantised) == (kind, 1)
    assert 0 < check(report).relative < 0.05


def test_calibration_data_lie_as_the_inputs_shall(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[Any] = []
    monkeypatch.setattr(quantise, "quantise", lambda *given: found.append(given[1]))
    data = {"calibrate_path": "x:samples", "input_type": "BIN"}
    sections = {
        "common_quant_param": {"quant_type": "FULL_QUANT"},
        "data_preprocess_param": data,
    }
    for layout in ("", "NCHW"):
        with pytest.raises(ModelFileError, match="TypeError"):  # the stand-in returns nothing
            convert(job(tmp_path, settings=sections, input_format=layout))
    assert [settings.data.layout for settings in found] == ["NHWC", "NCHW"]


@pytest.mark.parametrize("external_above", [2**30, 100])
def test_a_key_encrypts_all_that_is_written(tmp_path: Path, external_above: int) -> None:
    secret = job(
        tmp_path,
        encrypt_key=bytes(range(16)),
        external_above=external_above,
        infer=True,
        shapes={"x": (2, 16)},
    )
    report = convert(secret)
    for file in report.files:
        assert encrypted_by(memoryview(file.read_bytes())) == "AES-GCM"
        assert WEIGHTS.tobytes()[:64] not in file.read_bytes()
    assert check(report).relative < 1e-6
    with pytest.raises(ModelFileError, match="is encrypted"):
        run_once(report.files[0], None)


def test_a_missing_cipher_is_noticed_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> None:
        raise ModelFileError("install it")

    monkeypatch.setattr(module, "check_library", missing)
    monkeypatch.setattr(module, "load", None)
    with pytest.raises(ModelFileError, match="install it"):
        convert(job(tmp_path, encrypt_key=bytes(16)))


def test_a_mindir_is_converted_again(tmp_path: Path) -> None:
    report = convert(job(tmp_path, framework="MINDIR", model=DIGITS))
    assert check(report).relative < 1e-5


def test_inputs_of_any_rank_need_a_shape(tmp_path: Path) -> None:
    wanted = job(tmp_path, framework="MINDIR", model=DATA / "nets/dyn_rank.mindir")
    with pytest.raises(UnsupportedOpError, match=r"\['x'\] have no fixed number of dims"):
        convert(wanted)
    report = convert(replace(wanted, shapes={"x": (2, 3)}))
    assert check(report).relative < 1e-6
    with built(report.files[0]) as model:
        assert model.get_inputs()[0].shape == [2, 3]


def test_what_mindspore_does_not_know_travels_and_is_told(tmp_path: Path) -> None:
    report = convert(job(tmp_path, model=unusual_onnx(tmp_path / "unusual.onnx"), infer=True))
    ((reason, nodes),) = report.custom.items()
    assert "QuickGelu" in reason
    assert nodes == ["the_only"]
    (text,) = carried(report)
    assert text.startswith("1 node(s) travel as Custom, which only this package runs: ")
    assert check(report).relative < 1e-6


def test_source_and_result_are_compared(tmp_path: Path) -> None:
    wanted = job(tmp_path, weight_fp16=True, shapes={"x": (2, 16)})
    found = check(convert(wanted))
    assert 0 < found.relative < 1e-3
    assert found.output == "y"


@pytest.mark.parametrize("infer", [False, True])
def test_a_failure_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, infer: bool
) -> None:
    wanted = job(tmp_path, infer=infer, output=tmp_path / "out/net.mindir")
    (tmp_path / "out").mkdir()
    (tmp_path / "out/net.mindir").write_bytes(b"what was there before")

    def fails(*_: object) -> None:
        raise EngineError("it broke")

    monkeypatch.setattr(module, "run_once" if infer else "to_mindir", fails)
    with pytest.raises(EngineError, match="it broke"):
        convert(wanted)
    assert files(tmp_path / "out") == {"net.mindir"}
    assert (tmp_path / "out/net.mindir").read_bytes() == b"what was there before"


def test_an_output_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ModelFileError, match=r"cannot write '.*file/net.mindir': "):
        convert(job(tmp_path, output=tmp_path / "file/net.mindir"))


def test_open_sizes_are_not_inferred(tmp_path: Path) -> None:
    assert "infer was left out" in convert(job(tmp_path, infer=True)).warnings[0]


def test_a_job_is_checked_before_anything_is_read(tmp_path: Path) -> None:
    (tmp_path / "bad.onnx").write_bytes(b"nonsense")
    with pytest.raises(SettingsError, match="MINDIR_LITE"):
        convert(job(tmp_path, model=tmp_path / "bad.onnx", save_type="MINDIR_LITE"))
    with pytest.raises(ModelFileError, match=r"bad\.onnx"):
        convert(job(tmp_path, model=tmp_path / "bad.onnx"))


@pytest.mark.parametrize("place", ["o.mindir", "o_graph.mindir", "o_variables/data_0"])
def test_external_data_of_the_source_is_never_overwritten(tmp_path: Path, place: str) -> None:
    asked = job(tmp_path)
    (tmp_path / place).parent.mkdir(exist_ok=True)
    model = onnx.load(asked.model)
    onnx.save(model, asked.model, save_as_external_data=True, location=place, size_threshold=0)
    before = (tmp_path / place).read_bytes()
    with pytest.raises(ModelFileError, match="would overwrite the model"):
        convert(replace(asked, output=tmp_path / "o.mindir"))
    assert (tmp_path / place).read_bytes() == before


def test_what_nobody_foresaw_is_told_as_a_problem_of_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def surprised(*_: object) -> None:
        raise KeyError("body")

    monkeypatch.setattr(module, "to_mindir", surprised)
    with pytest.raises(ModelFileError, match="KeyError while translating to MindIR: 'body'") as e:
        convert(job(tmp_path))
    assert isinstance(e.value.__cause__, KeyError)


def test_an_output_that_says_no_shape_gets_a_layout_too(tmp_path: Path) -> None:
    port = helper.make_tensor_value_info
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    graph = helper.make_graph(nodes, "net", [port("x", 1, [1, 2, 3, 4])], [port("y", 1, None)])
    save(tmp_path / "net.onnx", graph)
    convert(job(tmp_path, output_format="NHWC"))
    with built(tmp_path / "net.mindir") as model:
        assert model.get_outputs()[0].shape == [1, 3, 4, 2]


@pytest.mark.parametrize("settings", [{}, {"external_above": 100}, {"weight_fp16": True}])
def test_weights_that_are_read_later_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any]
) -> None:
    """The file is new, so its weights are read at once; where it is older, when they are needed."""
    weights = np.random.default_rng(1).normal(size=(16, 300)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [2, 16])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [2, 300])],
        [onnx.numpy_helper.from_array(weights, "w")],
    )
    save(tmp_path / "net.onnx", graph)
    at_once = convert(job(tmp_path, output=tmp_path / "a" / "net.mindir", **settings)).files
    monkeypatch.setattr(snapshot, "RACY_NS", 0)
    later = convert(job(tmp_path, output=tmp_path / "b" / "net.mindir", **settings)).files
    assert [f.read_bytes() for f in later] == [f.read_bytes() for f in at_once]


def test_weights_stay_in_an_older_file_until_they_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "RACY_NS", 0)
    monkeypatch.setattr(scan, "MAPPED_BYTES", 100)
    monkeypatch.setattr(onnx_scan, "MAPPED_BYTES", 100)
    monkeypatch.setattr(snapshot.Unread, "read", lambda self: pytest.fail("kept in memory"))
    convert(job(tmp_path))
    with built(tmp_path / "net.mindir") as model:
        (y,) = arrays(model.predict([X]))
    np.testing.assert_allclose(y, np.maximum(X @ WEIGHTS, 0), rtol=1e-5, atol=1e-6)
