"""Whole networks that PyTorch exported as ONNX: converted, written, read back, computed.

tests/data/onnx_nets: NAME.onnx beside NAME.npz with inputs i0, i1, ... and the outputs o0, o1, ...
that MindSpore computed with the MindIR file that the converter had written. The files are made by
scripts/fixtures/onnx_networks.py and network_outputs.py.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.onnx_networks import converted, inputs_of, run_onnx
from support.running import DATA, assert_close, fixture_arrays

import mindspore_lite as mslite
from mindspore_lite.mindir.write import write_file

FILES = sorted(DATA.glob("onnx_nets/*.onnx"))
CARRIED = {"gru": {"GRU"}}  # operators that MindSpore does not have
FEW_THREADS = mslite.Context()
FEW_THREADS.cpu.thread_num = 1


def run_mindir(path: Path, inputs: list[np.ndarray]) -> list[np.ndarray]:
    with mslite.Model() as model:
        model.build_from_file(str(path), mslite.ModelType.MINDIR, FEW_THREADS)
        model.resize(model.get_inputs(), [list(array.shape) for array in inputs])
        return [output.get_data_to_numpy() for output in model.predict(inputs)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_network_computes_the_same_through_mindir(path: Path, tmp_path: Path) -> None:
    written = converted(path)
    assert {reason.split(":")[0] for reason in written.custom} == CARRIED.get(path.stem, set())
    (mindir,) = write_file(written.model, tmp_path / "net.mindir")
    inputs, by_mindspore = fixture_arrays(path.with_suffix(".npz"))
    got, by_onnxruntime = run_mindir(mindir, list(inputs)), run_onnx(path, inputs)
    for ours, wanted in zip(got, by_onnxruntime, strict=True):
        assert_close(ours, wanted, f"{path.stem} against ONNX Runtime")
    if path.stem in CARRIED:
        return
    for ours, wanted in zip(got, by_mindspore, strict=True):
        assert_close(ours, wanted, f"{path.stem} against MindSpore")


@pytest.mark.parametrize("name", ["resnet", "convnext", "bert", "lstm"])
def test_an_open_batch_stays_open(name: str, tmp_path: Path) -> None:
    path = DATA / f"onnx_nets/{name}.onnx"
    (mindir,) = write_file(converted(path).model, tmp_path / "net.mindir")
    larger = [np.concatenate([x, x[::-1], x[:1]]) for x in inputs_of(path)]
    for ours, wanted in zip(run_mindir(mindir, larger), run_onnx(path, larger), strict=True):
        assert_close(ours, wanted, name)


def test_every_kind_of_network_is_there() -> None:
    assert {"resnet", "unet", "vit", "bert", "lstm"} <= {path.stem for path in FILES}
    assert len(FILES) >= 15
