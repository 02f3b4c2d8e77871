from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parent.parent.parent
MAIN = ROOT / "examples/quick_start/main.py"


def run(*arguments: object) -> str:
    command = [sys.executable, str(MAIN), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout


def test_the_quick_start_prints_the_originals_labels_and_a_seven() -> None:
    first, second = run().splitlines()
    assert first == "tensor's name is:Default/Softmax-op0 data size is:40 tensor elements num is:10"
    values = np.array(second.removeprefix("output data is: ").split(), np.float32)
    assert values.shape == (10,)
    assert values.argmax() == 7


def test_the_quick_start_takes_a_model_and_an_input_of_ones_own(tmp_path: Path) -> None:
    model = ROOT / "tests/data/models/mobilenet_v3_mini.mindir"
    with np.load(model.with_suffix(".npz")) as file:
        file["in0"].tofile(tmp_path / "input.bin")
        wanted = file["out0"].reshape(-1)
    line = run(model, tmp_path / "input.bin").splitlines()[1]
    got = np.array(line.removeprefix("output data is: ").split(), np.float32)
    np.testing.assert_allclose(got, wanted, atol=1e-4 * np.abs(wanted).max())
