"""Random ONNX models compute the same after a conversion; scripts/fuzz_convert runs more."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.converting import NotRun, check
from support.random_models import model_of, operators

SEEDS = range(96)
EACH = 8  # models per test: a test of its own for each would take longer to report than to run


@pytest.mark.parametrize("first", SEEDS[::EACH])
def test_random_models_compute_the_same_through_mindir(first: int, tmp_path: Path) -> None:
    level = ("general", "none", "gpu_oriented", "ascend_oriented")[first // EACH % 4]
    ran = 0
    for seed in range(first, first + EACH):
        try:
            check(model_of(seed), tmp_path, optimize=level)
            ran += 1
        except NotRun:
            continue
        except Exception as exc:
            raise AssertionError(f"the model of seed {seed} at level {level}") from exc
    assert ran > EACH // 2


def test_random_models_are_of_many_kinds() -> None:
    found = [operators(model_of(seed).model) for seed in SEEDS[:60]]
    assert len(set.union(*found)) > 90
    assert any("Loop" in kinds for kinds in found)
    assert any("If" in kinds for kinds in found)


def test_a_seed_always_gives_the_same_model() -> None:
    assert model_of(7).model == model_of(7).model
