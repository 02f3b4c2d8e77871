"""examples/unet: the network with the inputs of Stable Diffusion's UNet, from ONNX to MindIR."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from support.running import assert_close, run_graph

from mindspore_lite.graph.fix_shapes import fix_shapes
from mindspore_lite.graph.from_mindir import from_mindir
from mindspore_lite.graph.opset import upgraded
from mindspore_lite.graph.optimise import optimise
from mindspore_lite.graph.to_mindir import to_mindir
from mindspore_lite.mindir.read import read_file
from mindspore_lite.mindir.write import write_file

SCRIPT = Path(__file__).parents[2] / "examples/unet/make_model.py"
SHAPES = {"sample": (1, 4, 64, 64), "timestep": (1,), "encoder_hidden_states": (1, 77, 1024)}


@pytest.fixture(scope="module")
def onnx_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    spec = importlib.util.spec_from_file_location("make_model", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    path = tmp_path_factory.mktemp("unet") / "model.onnx"
    ir.save(module.unet(), path)
    return path


def feeds(batch: int) -> list[np.ndarray]:
    rng = np.random.default_rng(4)
    return [
        rng.standard_normal((batch, 4, 64, 64)).astype(np.float32),
        np.array([801]),
        rng.standard_normal((batch, 77, 1024)).astype(np.float32),
    ]


def test_the_model_is_valid_and_listens_to_all_of_its_inputs(onnx_file: Path) -> None:
    onnx.checker.check_model(onnx_file, full_check=True)
    given = feeds(2)
    (wanted,) = run_graph(ir.load(onnx_file), *given)
    assert wanted.shape == (2, 4, 64, 64)
    for index in range(3):
        changed = [x if i != index else x + x.dtype.type(1) for i, x in enumerate(given)]
        (other,) = run_graph(ir.load(onnx_file), *changed)
        assert np.abs(other - wanted).max() > 1e-3 * np.abs(wanted).max()


@pytest.mark.parametrize("shapes", [SHAPES, {}], ids=["fixed", "open"])
def test_it_computes_the_same_as_mindir(
    onnx_file: Path, tmp_path: Path, shapes: dict[str, tuple[int, ...]]
) -> None:
    model = upgraded(ir.load(onnx_file))
    fix_shapes(model, shapes)
    optimise(model, "ascend_oriented")
    written = to_mindir(model)
    assert not written.custom
    (path,) = write_file(written.model, tmp_path / "unet.mindir")
    back = from_mindir(read_file(path))
    batch = 1 if shapes else 2
    assert [str(v.name) for v in back.graph.inputs] == list(SHAPES)
    if shapes:
        assert {str(v.name): tuple(v.shape) for v in back.graph.inputs} == SHAPES
    (got,) = run_graph(back, *feeds(batch))
    assert_close(got, run_graph(ir.load(onnx_file), *feeds(batch))[0])
