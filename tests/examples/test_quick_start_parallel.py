from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np

from mindspore_lite.core import cores

ROOT = Path(__file__).parent.parent.parent
MAIN = ROOT / "examples/quick_start_parallel/main.py"
_SECONDS = r"\d+\.\d+(e-\d+)?  s"
_FIRST = re.compile(rf"parallel id:  (\d)  \| task index:  (\d)  \| run once time:  {_SECONDS}")
_VALUES = "output data is: "


def run(*arguments: object) -> tuple[list[list[str]], str, str]:
    """The blocks of three lines, one per request; the last line; the warnings."""
    command = [sys.executable, str(MAIN), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    *lines, last = done.stdout.splitlines()
    return [lines[at : at + 3] for at in range(0, len(lines), 3)], last, done.stderr


def test_five_clients_print_the_originals_labels_in_whole_blocks() -> None:
    blocks, last, _ = run()
    asked = Counter()
    for first, second, third in blocks:
        found = _FIRST.fullmatch(first)
        assert found is not None, first
        asked[int(found[1]), int(found[2])] += 1
        assert second == (
            "tensor name is:Default/Softmax-op0 tensor size is:40 tensor elements num is:10"
        )
        assert third == blocks[0][2]
        assert len(third.removeprefix(_VALUES).split()) == 5
    assert asked == {(client, task): 1 for client in range(5) for task in (1, 2)}
    assert re.fullmatch(f"total run time:  {_SECONDS}", last)


def test_a_machine_with_fewer_cores_than_workers_is_told_so() -> None:
    _, _, warnings = run()
    if cores.usable().limit < 3:
        assert "UserWarning: 3 workers of 1 threads make 3 threads" in warnings
    else:
        assert warnings == ""


def test_it_takes_a_model_and_an_input_of_ones_own(tmp_path: Path) -> None:
    model = ROOT / "tests/data/models/mobilenet_v3_mini.mindir"
    with np.load(model.with_suffix(".npz")) as file:
        file["in0"].tofile(tmp_path / "input.bin")
        wanted = file["out0"].reshape(-1)
    blocks, _, _ = run(model, tmp_path / "input.bin")
    assert len(blocks) == 10
    for _, _, third in blocks:
        got = np.array(third.removeprefix(_VALUES).split(), np.float32)
        np.testing.assert_allclose(got, wanted[:5], atol=1e-4 * np.abs(wanted).max())
