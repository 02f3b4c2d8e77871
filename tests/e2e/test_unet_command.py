"""The conversion that MindSpore Lite's guide for several cards shows, on a UNet of its inputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.models import ONNX, arrays, built
from support.unet import unet_onnx

from mindspore_lite.cli.converter_lite import run

SHAPES = "sample:1,4,64,64;timestep:1;encoder_hidden_states:1,77,1024"


def test_the_command_of_the_guide_converts_a_unet(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = unet_onnx(tmp_path / "model.onnx")
    status = run(
        [
            f"--modelFile={model}",
            "--fmk=ONNX",
            f"--outputFile={tmp_path / 'SD2.1_size512_bs1'}",
            f"--inputShape={SHAPES}",
            "--optimize=ascend_oriented",
        ]
    )
    told = capsys.readouterr()
    # no warning either: every node has become a MindSpore primitive
    assert (status, told.out, told.err) == (0, "CONVERT RESULT SUCCESS:0\n", "")

    rng = np.random.default_rng(1)
    inputs = {
        "sample": rng.normal(size=(1, 4, 64, 64)).astype(np.float32),
        "timestep": np.array([981], np.int64),
        "encoder_hidden_states": rng.normal(size=(1, 77, 1024)).astype(np.float32),
    }
    with built(tmp_path / "SD2.1_size512_bs1.mindir") as result, built(model, ONNX) as source:
        found = {tensor.name: tensor.shape for tensor in result.get_inputs()}
        assert found == {name: list(array.shape) for name, array in inputs.items()}
        (got,) = arrays(result.predict(inputs))
        (want,) = arrays(source.predict(inputs))
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4 * np.abs(want).max())
