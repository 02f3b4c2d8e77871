"""examples/unet: the network with the inputs of Stable Diffusion's UNet, from ONNX to MindIR."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from support.models import ONNX, arrays, built
from support.onnx_networks import converted
from support.running import assert_close

from mindspore_lite.cli.converter_lite import run
from mindspore_lite.mindir.write import write_file

SCRIPT = Path(__file__).parents[2] / "examples/unet/make_model.py"
SHAPES = "sample:1,4,64,64;timestep:1;encoder_hidden_states:1,77,1024"


@pytest.fixture(scope="module")
def onnx_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    spec = importlib.util.spec_from_file_location("make_model", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    path = tmp_path_factory.mktemp("unet") / "model.onnx"
    ir.save(module.unet(), path)
    return path


def feeds(batch: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(4)
    return {
        "sample": rng.standard_normal((batch, 4, 64, 64)).astype(np.float32),
        "timestep": np.array([801]),
        "encoder_hidden_states": rng.standard_normal((batch, 77, 1024)).astype(np.float32),
    }


def test_the_model_is_valid_and_listens_to_all_of_its_inputs(onnx_file: Path) -> None:
    onnx.checker.check_model(onnx_file, full_check=True)
    given = feeds(1)
    with built(onnx_file, ONNX) as model:
        (wanted,) = arrays(model.predict(given))
        for name, array in given.items():
            (other,) = arrays(model.predict({**given, name: array + array.dtype.type(1)}))
            assert np.abs(other - wanted).max() > 1e-3 * np.abs(wanted).max()


def test_the_command_of_the_guide_converts_it(
    onnx_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """MindSpore Lite's guide for several cards has this command, for SD 2.1."""
    status = run(
        [
            f"--modelFile={onnx_file}",
            "--fmk=ONNX",
            f"--outputFile={tmp_path / 'SD2.1_size512_bs1'}",
            f"--inputShape={SHAPES}",
            "--optimize=ascend_oriented",
        ]
    )
    told = capsys.readouterr()
    # no warning either: every node has become a MindSpore primitive
    assert (status, told.out, told.err) == (0, "CONVERT RESULT SUCCESS:0\n", "")
    given = feeds(1)
    with built(tmp_path / "SD2.1_size512_bs1.mindir") as result, built(onnx_file, ONNX) as source:
        found = {tensor.name: tensor.shape for tensor in result.get_inputs()}
        assert found == {name: list(array.shape) for name, array in given.items()}
        (got,), (wanted,) = arrays(result.predict(given)), arrays(source.predict(given))
    assert_close(got, wanted)


def test_it_becomes_primitives_throughout_with_its_batch_open(
    onnx_file: Path, tmp_path: Path
) -> None:
    written = converted(onnx_file)
    assert not written.custom
    (path,) = write_file(written.model, tmp_path / "unet.mindir")
    given = feeds(2)
    with built(path) as result, built(onnx_file, ONNX) as source:
        assert [tensor.shape for tensor in result.get_inputs()][::2] == [
            [-1, 4, 64, 64],
            [-1, 77, 1024],
        ]
        result.resize(result.get_inputs(), [list(array.shape) for array in given.values()])
        source.resize(source.get_inputs(), [list(array.shape) for array in given.values()])
        (got,), (wanted,) = arrays(result.predict(given)), arrays(source.predict(given))
    assert_close(got, wanted)
