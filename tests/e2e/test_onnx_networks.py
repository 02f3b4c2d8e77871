"""Whole networks that PyTorch exported as ONNX: converted, written, read back, computed.

tests/data/onnx_nets: NAME.onnx beside NAME.npz with inputs i0, i1, ... and the outputs o0, o1, ...
that MindSpore computed with the MindIR file that the converter had written. The files are made by
scripts/fixtures/onnx_networks.py and network_outputs.py.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime as ort
import pytest
from support.onnx_networks import converted, inputs_of, run_onnx
from support.running import DATA, assert_close, fixture_arrays

import mindspore_lite as mslite
from mindspore_lite.engines.onnxruntime.engine import fit
from mindspore_lite.graph.from_mindir import from_mindir
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


@pytest.mark.parametrize(
    ("name", "op_types"),
    [
        ("bert", ["LayerNormalization", "SkipLayerNormalization", "BiasGelu"]),
        ("efficientnet", ["FusedConv", "Conv", "GlobalAveragePool", "ReorderInput"]),
        ("gpt2", ["LayerNormalization", "SkipLayerNormalization", "FastGelu"]),
        ("resnet", ["FusedConv", "Conv", "GlobalAveragePool"]),
        ("unet", ["ConvTranspose", "Add", "Conv"]),
        ("vit", ["LayerNormalization", "SkipLayerNormalization", "BiasGelu", "Gelu", "MatMul"]),
        ("yolo", ["Upsample", "Resize", "Conv", "ReorderOutput"]),
    ],
)
def test_onnx_runtime_executes_the_operators_that_it_does_directly(
    name: str, op_types: list[str], tmp_path: Path
) -> None:
    """No fusion is lost on the way: LayerNormalization, Gelu, layouts of convolutions."""
    path = DATA / f"onnx_nets/{name}.onnx"
    back = from_mindir(converted(path).model)
    fit(back)
    directly = executed(onnx.load(path), tmp_path)
    found = executed(ir.to_proto(back), tmp_path)
    assert {op: found[op] for op in op_types} == {op: directly[op] for op in op_types}
    assert sum(found.values()) <= 1.1 * sum(directly.values())


def executed(model: onnx.ModelProto, folder: Path) -> Counter[str]:
    """How often each operator stands in what ONNX Runtime makes of a model."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.optimized_model_filepath = str(folder / "optimised.onnx")
    ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return Counter(n.op_type for n in onnx.load(folder / "optimised.onnx").graph.node)
