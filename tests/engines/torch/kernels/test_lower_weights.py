"""engines/torch/kernels/lower.py: weights that may change have the form of those that may not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from onnx import helper
from support.torch_graphs import SIDE, computed, dense, model, program, rows, source, weight

from mindspore_lite.engines.base import Options
from mindspore_lite.engines.torch.engine import TorchEngine
from mindspore_lite.engines.torch.kernels.lower import Lowered, Target, lower

CARD = torch.device("meta")  # not the host, which is all that matters here


def lowered(half: torch.dtype | None, device: torch.device, *variable: str) -> Lowered:
    made = program(dense())._model
    return lower(made, ((2, SIDE),), Target(device, half, frozenset(variable)))


def forms(found: Lowered) -> set[tuple[str, torch.dtype, str]]:
    return {(w.name, w.dtype, w.layout) for w in found.weights.values()}


@pytest.mark.parametrize("half", [None, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("device", [CARD, torch.device("cpu")])
def test_they_have_the_same_types_and_layouts(
    half: torch.dtype | None, device: torch.device
) -> None:
    fixed, changing = lowered(half, device), lowered(half, device, "w", "b")
    assert forms(changing) == forms(fixed)
    assert len(list(changing.module.graph.nodes)) == len(list(fixed.module.graph.nodes))


def test_a_layout_is_that_of_the_kernel_for_each_use() -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["product"]),
        helper.make_node("Add", ["product", "w"], ["y"]),
    ]
    square = [SIDE, SIDE]
    made = program(model(nodes, {"x": square}, {"y": square}, {"w": weight()}))._model
    found = lower(made, (tuple(square),), Target(CARD, None, frozenset({"w"})))
    assert {w.layout for w in found.weights.values()} == {"", "transposed"}


@pytest.mark.parametrize("precision", ["preferred_fp16", "preferred_bf16"])
def test_they_change_in_half_precision_too(tmp_path: Path, precision: str) -> None:
    given = source(tmp_path, dense(), [("w", ""), ("b", "")])
    session = TorchEngine().load(given, Options(precision=precision))
    for factor in (1.0, 3.0):
        session.update({"w": weight(factor)})
        (y,) = session.run([rows(4)])
        assert y.dtype == np.float32
        assert 0 < np.abs(y - computed(rows(4), factor)).max() < 0.2
