"""Random numbers: their range and moments, and that no two runs draw the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import onnxruntime as ort
import pytest
from support.mindir_builder import Net
from support.running import run

from mindspore_lite.graph.from_mindir import from_mindir

MANY = (100, 100)
SEEDS = (1, 2)


def drawn(primitive: str, *arguments: Any, x: np.ndarray | None = None, **attributes: Any) -> Any:
    net = Net()
    inputs = [] if x is None else [net.input("x", x.shape, x.dtype)]
    made = net.call(primitive, *inputs, *(net.constant(a) for a in arguments), **attributes)
    (found,) = run(net.model(made), *([] if x is None else [x]))
    return found


@pytest.mark.parametrize(
    ("primitive", "arguments"), [("UniformReal", (MANY,)), ("RandExt", (MANY, *SEEDS, 43, None))]
)
def test_uniform_numbers_fill_the_unit_interval(primitive: str, arguments: Any) -> None:
    found = drawn(primitive, *arguments)
    assert found.shape == MANY
    assert 0 <= found.min() < 0.01 < 0.99 < found.max() < 1
    assert abs(found.mean() - 0.5) < 0.02


@pytest.mark.parametrize(
    ("primitive", "arguments"), [("StandardNormal", (MANY,)), ("Randn", (MANY, *SEEDS, 43, None))]
)
def test_normal_numbers_have_mean_zero_and_deviation_one(primitive: str, arguments: Any) -> None:
    found = drawn(primitive, *arguments)
    assert abs(found.mean()) < 0.05
    assert abs(found.std() - 1) < 0.05


def test_laplace_numbers_have_deviation_root_two() -> None:
    found = drawn("StandardLaplace", MANY)
    assert abs(found.mean()) < 0.06
    assert abs(found.std() - 2**0.5) < 0.1
    assert np.isfinite(found).all()


def test_whole_numbers_take_every_value_but_the_last() -> None:
    assert set(drawn("RandInt", -1, 3, MANY, *SEEDS, None, None).ravel()) == {-1, 0, 1, 2}


def test_moments_are_those_asked_for() -> None:
    found = drawn("NormalFloatFloat", 3.0, 2.0, MANY, *SEEDS)
    assert abs(found.mean() - 3) < 0.1
    assert abs(found.std() - 2) < 0.1


def test_chances_are_those_asked_for() -> None:
    found = drawn("BernoulliExt", *SEEDS, x=np.full(MANY, 0.3, np.float32))
    assert set(found.ravel()) == {0, 1}
    assert abs(found.mean() - 0.3) < 0.03


def test_samples_follow_the_weights() -> None:
    found = drawn("Multinomial", 20_000, x=np.array([1, 0, 3], np.float32))
    assert np.bincount(found, minlength=3)[1] == 0
    assert abs((found == 2).mean() - 0.75) < 0.02


def test_samples_without_replacement_are_distinct() -> None:
    found = drawn("MultinomialExt", 5, False, *SEEDS, x=np.ones((50, 5), np.float32))
    assert (np.sort(found) == np.arange(5)).all()
    assert len({tuple(row) for row in found}) > 10


def test_a_permutation_holds_every_number_once() -> None:
    found = drawn("RandpermExt", 1000, *SEEDS, 35)
    assert (np.sort(found) == np.arange(1000)).all()
    assert (found != np.arange(1000)).any()


def test_two_runs_draw_differently() -> None:
    net = Net()
    made = from_mindir(net.model(net.call("StandardNormal", net.constant(MANY))))
    session = ort.InferenceSession(ir.to_proto(made).SerializeToString())
    first, second = (session.run(None, {})[0] for _ in range(2))
    assert (first != second).any()
