"""Whole networks all of whose weights may change, and the program of the documentation."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest
from support.models import MINDIR, MOBILENET, ONNX, SWIN, written
from support.running import DATA, assert_close, fixture_arrays
from support.updates import assert_same_bits, changeable, outputs, telling_net, update
from support.workers import ROOT

from mindspore_lite.graph.source import ModelInput, source_of

FLOATS = ("FLOAT", "FLOAT16")
NETWORKS = [
    MOBILENET,
    SWIN,
    *(DATA / f"networks/{name}.mindir" for name in ("recurrent", "tagger_open", "transformer")),
    *(DATA / f"onnx_nets/{name}.onnx" for name in ("bert", "convnext", "gpt2", "lstm", "unet")),
]
# parts of it are computed in float32 or rounded to float16 between, as the optimiser likes
ROUNDED = [DATA / "nets/fp16.mindir", DATA / "nets/fp16_params.mindir"]


def translated(path: Path) -> ir.Model:
    return source_of(ModelInput("ONNX" if path.suffix == ".onnx" else "MINDIR", path)).translate()


def weights_of(graph: ir.Model) -> dict[str, np.ndarray]:
    """All real numbers among its constants."""
    tensors = {n: v.const_value for n, v in graph.graph.initializers.items() if v.uses()}
    return {n: t.numpy() for n, t in tensors.items() if t is not None and t.dtype.name in FLOATS}


@pytest.mark.parametrize("path", [*NETWORKS, *ROUNDED], ids=lambda p: p.stem)
def test_a_network_all_of_whose_weights_change_computes_what_a_fixed_one_does(
    path: Path, tmp_path: Path
) -> None:
    compare = assert_same_bits if path in NETWORKS else assert_all_close
    kind = ONNX if path.suffix == ".onnx" else MINDIR
    inputs, _ = fixture_arrays(path.with_suffix(".npz"))
    graph = translated(path)
    weights = weights_of(graph)
    assert len(weights) > 7
    model = changeable(path, *weights, kind=kind)
    first = outputs(changeable(path, kind=kind), *inputs)
    compare(outputs(model, *inputs), first)

    new = {name: np.asarray(w * w.dtype.type(0.75)) for name, w in weights.items()}
    for name, array in new.items():
        graph.graph.initializers[name].const_value = ir.tensor(array, name=name)
    ir.save(graph, tmp_path / "new.onnx")
    wanted = outputs(changeable(tmp_path / "new.onnx", kind=ONNX), *inputs)
    update(model, new)
    compare(outputs(model, *inputs), wanted)
    assert any((a != b).any() for a, b in zip(first, wanted, strict=True))

    model.update_weights([])
    compare(outputs(model, *inputs), first)


def assert_all_close(found: list[np.ndarray], wanted: list[np.ndarray]) -> None:
    for got, want in zip(found, wanted, strict=True):
        assert_close(got, want)


# the text of the documentation, but for the model's path and `data`; what is after is the test's
PROGRAM = """
import numpy as np
import mindspore_lite as mslite

# init context, and set target is gpu.
context = mslite.Context()
context.target = ["ascend"]
context.gpu.device_id = 0

# build model from file
MODEL_PATH = "telling.mindir"
model = mslite.Model()
model.build_from_file(MODEL_PATH, mslite.ModelType.MINDIR, context,  "config.ini")

data = np.full((8, 8), 5 / 8, np.float32)
new_weight = mslite.Tensor(data)
new_weights = [new_weight]
model.update_weights([new_weights])

(output,) = model.predict([np.ones((2, 8), np.float32)])
print(output.get_data_to_numpy()[:, ::8].tolist(), model.get_model_info("weights_version"))
"""


def test_the_program_of_the_documentation_runs_on_an_emulated_ascend(tmp_path: Path) -> None:
    written(tmp_path / "telling.mindir", telling_net())
    written(tmp_path / "update_weight_name_list.txt", b"a\n")
    config = b'[ascend_context]\nvariable_weights_file="update_weight_name_list.txt"\n'
    written(tmp_path / "config.ini", config)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "MSLITE_ASCEND": "emulate"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "[[5.0, 0.0], [5.0, 0.0]] 1\n"), done.stderr
    assert done.stderr.startswith("mslite: target 'ascend' is emulated on the CPU")
