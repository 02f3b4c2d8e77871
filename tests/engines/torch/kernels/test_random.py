"""kernels/random.py: what is drawn has the right shape, type and range, and is new in each run."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
import torch
from support.onnx_graphs import F32, model, node
from support.torch_nodes import CPU, run_lowered

from mindspore_lite.engines.torch.kernels.lower import lower
from mindspore_lite.engines.torch.kernels.table import KERNELS

HERE = torch.device("cpu")
DOUBLE, FLOAT16, INT64 = 11, 10, 7


def kernel(op_type: str, *given: Any, **told: Any) -> Any:
    return KERNELS["", op_type].compute(*given, **told)


@pytest.mark.parametrize("op_type", ["RandomNormal", "RandomUniform"])
def test_nothing_random_is_computed_beforehand(op_type: str) -> None:
    proto = model([node(op_type, [], ["y"], shape=[50])], [], ["y"])
    found = lower(ir.from_proto(proto), [], CPU)
    assert found.dynamic == []
    (one,), (other,) = run_lowered(found, []), run_lowered(found, [])
    assert not torch.equal(one, other)


def test_normal_numbers_have_the_mean_and_scale_that_are_told() -> None:
    drawn = kernel("RandomNormal", shape=[4000], mean=5.0, scale=0.1, dtype=DOUBLE, device=HERE)
    assert drawn.dtype == torch.float64
    assert 4.98 < drawn.mean() < 5.02  # ten times what it usually misses by
    assert 0.08 < drawn.std() < 0.12


def test_uniform_numbers_lie_between_two_others() -> None:
    drawn = kernel("RandomUniform", shape=[1000], low=-3.0, high=-1.0, device=HERE)
    assert drawn.dtype == torch.float32
    assert drawn.min() >= -3
    assert drawn.max() <= -1
    assert drawn.max() - drawn.min() > 1


@pytest.mark.parametrize("op_type", ["RandomNormalLike", "RandomUniformLike"])
def test_a_tensor_lends_its_shape_and_its_type_if_none_is_told(op_type: str) -> None:
    x = torch.zeros(2, 3, dtype=torch.float64)
    assert kernel(op_type, x).shape == (2, 3)
    assert kernel(op_type, x).dtype == torch.float64
    assert kernel(op_type, x, dtype=FLOAT16).dtype == torch.float16


def test_what_is_certain_is_drawn() -> None:
    drawn = kernel("Bernoulli", torch.tensor([0.0, 1.0]), dtype=INT64)
    assert drawn.tolist() == [0, 1]
    assert drawn.dtype == torch.int64


def test_classes_are_drawn_by_their_weights() -> None:
    weights = torch.tensor([[0.0, -200.0, -200.0], [-200.0, -200.0, 0.0]])
    assert kernel("Multinomial", weights, sample_size=4).tolist() == [[0] * 4, [2] * 4]
    assert kernel("Multinomial", weights).dtype == torch.int32


def test_nothing_is_dropped_but_in_training() -> None:
    x = torch.ones(1000)
    found, mask = kernel("Dropout", x, 0.5, outputs=2)
    assert torch.equal(found, x)
    assert bool(mask.all())
    found, mask = kernel("Dropout", x, [0.25], True, outputs=2)
    assert torch.equal(found, mask / 0.75)
    assert 0.5 < mask.float().mean() < 0.95


def test_dropout_of_a_model_is_nothing_to_compute() -> None:
    nodes = [node("Dropout", ["x", "ratio"], ["y"])]
    proto = model(nodes, [("x", F32, (2,))], ["y"], ratio=np.float32(0.5))
    (y,) = run_lowered(lower(ir.from_proto(proto), [(2,)], CPU), [np.ones(2, np.float32)])
    assert y.tolist() == [1, 1]
