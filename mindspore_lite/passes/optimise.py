"""The passes that a converted model goes through, in order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import onnx_ir as ir

from mindspore_lite.passes.cancel_transposes import cancel_transposes
from mindspore_lite.passes.fold_batchnorm import fold_batchnorm
from mindspore_lite.passes.fold_branches import fold_branches
from mindspore_lite.passes.fold_constants import fold_constants
from mindspore_lite.passes.infer_shapes import infer_shapes
from mindspore_lite.passes.remove_dead import remove_dead
from mindspore_lite.passes.remove_identities import remove_identities

LEVELS = ("none", "general", "gpu_oriented", "ascend_oriented")
MAX_ROUNDS = 10  # each round may open the way for another; real models need two or three

_PASSES: dict[str, Callable[[ir.Model], int]] = {
    "constants folded": fold_constants,
    "branches settled": fold_branches,
    "identities removed": remove_identities,
    "BatchNormalizations folded": fold_batchnorm,
    "Transposes cancelled": cancel_transposes,
    "dead nodes removed": remove_dead,
}


def optimise(
    model: ir.Model, level: str, step: Callable[[str], None] = lambda text: None
) -> dict[str, int]:
    """Optimise in place; returns what was done how often.

    Level none does what writing needs: dead nodes go, shapes are inferred. The others are alike:
    what differs between their devices is decided where the model is built.
    """
    if level not in LEVELS:
        raise ValueError(f"level must be one of {LEVELS}, but got {level!r}")
    done = Counter({"dead nodes removed": remove_dead(model)})
    step("inferring shapes")
    infer_shapes(model)
    for number in range(MAX_ROUNDS if level != "none" else 0):
        step(f"optimising, round {number + 1}")
        found = {what: run(model) for what, run in _PASSES.items()}
        done.update(found)
        if not any(found.values()):
            break
        infer_shapes(model)
    return {what: count for what, count in done.items() if count}
