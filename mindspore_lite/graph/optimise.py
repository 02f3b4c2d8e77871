"""Passes in their order: a model as it was exported goes in, one worth writing comes out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import onnx_ir as ir

from mindspore_lite.graph.infer_shapes import infer_shapes
from mindspore_lite.graph.remove_dead import remove_dead

LEVELS = ("none", "general", "gpu_oriented", "ascend_oriented")


def optimise(
    model: ir.Model, level: str, step: Callable[[str], None] = lambda text: None
) -> dict[str, int]:
    """Optimise in place; returns what was done how often.

    Level none does what writing needs: dead nodes go, shapes are inferred. The others are alike:
    what differs between their devices is decided where the model is built.
    """
    if level not in LEVELS:
        raise ValueError(f"level must be one of {LEVELS}, but got {level!r}")
    done: Counter[str] = Counter()
    step("inferring shapes")
    done["dead nodes removed"] += remove_dead(model)
    infer_shapes(model)
    return {what: count for what, count in done.items() if count}
