"""A little of what scripts/fuzz does for hours: the same few cases of every entry each time."""

from __future__ import annotations

from pathlib import Path

import pytest
from fuzzing.case import run_case, warm_up
from fuzzing.entries import ENTRIES
from fuzzing.ground import Ground

SEED = 27
# as many as take about a second; those that need PyTorch or OpenVINO pay for its import already
CASES = {
    "mindir": 150,
    "onnx": 60,
    "run-onnxruntime": 30,
    "run-openvino": 10,
    "run-torch": 10,
    "convert": 25,
    "quantise": 25,
    "weights": 200,
    "lora": 200,
    "config": 60,
    "pt2": 12,
    "repository": 200,
    "wire-server": 25,
    "wire-client": 100,
}


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path / "ground")


def test_every_entry_is_tried() -> None:
    assert sorted(CASES) == sorted(ENTRIES)


@pytest.mark.parametrize("name", CASES)
def test_damage_ends_in_our_error_or_in_none(name: str, ground: Ground) -> None:
    entry = ENTRIES[name]
    warm_up(entry, ground)  # undamaged, it must be taken
    found = []
    for number in range(CASES[name]):
        for trouble in run_case(entry, SEED, number, ground).troubles:
            found.append(f"{SEED}:{number} {trouble.what} in {trouble.place}\n{trouble.text}")
    assert not found, "\n".join(found)
