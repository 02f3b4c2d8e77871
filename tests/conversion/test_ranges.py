"""conversion/ranges.py: what calibration data say about activations."""

from __future__ import annotations

import numpy as np
import pytest
from support.quant_nets import mlp, normal
from support.running import run_graph

from mindspore_lite.conversion.ranges import BINS, kl_bins, observe, watching
from mindspore_lite.errors import InputError

SAMPLES = [[normal(5, 64, seed=at)] for at in range(4)]


def hidden(inputs: list[np.ndarray]) -> np.ndarray:
    model = mlp()
    model.graph.outputs.append(model.graph[0].outputs[0])
    return run_graph(model, *inputs)[1]


def test_values_inside_of_a_model_can_be_watched() -> None:
    found = watching(mlp(), ["x", "h", "y"])(SAMPLES[0])
    assert list(found) == ["x", "h", "y"]
    np.testing.assert_array_equal(found["x"], SAMPLES[0][0])
    np.testing.assert_allclose(found["h"], hidden(SAMPLES[0]), rtol=1e-4, atol=1e-4)


def test_min_and_max_are_those_of_all_samples() -> None:
    seen = observe(mlp(), ["x", "h", "r"], [], SAMPLES, "MAX_MIN").ranges
    everything = np.concatenate([hidden(sample) for sample in SAMPLES])
    assert seen["h"] == pytest.approx((everything.min(), everything.max()), rel=1e-4)
    assert seen["r"] == pytest.approx((0, everything.max()), rel=1e-4)
    assert seen["x"] == (min(s[0].min() for s in SAMPLES), max(s[0].max() for s in SAMPLES))


def test_means_are_those_of_all_samples() -> None:
    means = observe(mlp(), ["x"], ["y"], SAMPLES, "MAX_MIN").means
    want = np.mean([run_graph(mlp(), *sample)[0] for sample in SAMPLES], axis=0)
    np.testing.assert_allclose(means["y"], want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("method", ["KL", "REMOVAL_OUTLIER"])
def test_a_single_outlier_is_left_out(method: str) -> None:
    rng = np.random.default_rng(1)
    samples = [[rng.standard_normal((400, 64)).astype(np.float32)] for _ in range(2)]
    samples[0][0][7, 7] = 1000.0
    low, high = observe(mlp(), ["x"], [], samples, method).ranges["x"]
    assert high < 200
    assert low >= -1000 / 8
    plain = observe(mlp(), ["x"], [], samples, "MAX_MIN").ranges["x"]
    assert plain[1] == 1000


@pytest.mark.parametrize("method", ["KL", "REMOVAL_OUTLIER"])
def test_without_outliers_most_of_the_range_stays(method: str) -> None:
    rng = np.random.default_rng(1)
    samples = [[rng.uniform(-2, 3, (50, 64)).astype(np.float32)] for _ in range(2)]
    low, high = observe(mlp(), ["x", "r"], [], samples, method).ranges["x"]
    assert -2 <= low < -1.9
    assert 2.8 < high <= 3


@pytest.mark.parametrize("method", ["MAX_MIN", "KL", "REMOVAL_OUTLIER"])
def test_a_value_that_never_changes_has_a_range(method: str) -> None:
    samples = [[np.full((1, 64), 2, np.float32)]]
    assert observe(mlp(), ["x"], [], samples, method).ranges["x"] == (2, 2)


@pytest.mark.parametrize("steps", [128, 255])
def test_kl_keeps_what_is_evenly_spread_and_cuts_a_long_tail(steps: int) -> None:
    assert kl_bins(np.full(BINS, 100), steps) > BINS - 16
    rng = np.random.default_rng(0)
    tail = np.append(np.abs(rng.standard_normal(100_000)), 60)
    counts = np.histogram(tail, BINS, (0, 60))[0]
    assert steps <= kl_bins(counts, steps) < BINS // 4


def test_half_of_the_numbers_being_zero_does_not_shrink_the_range() -> None:
    rng = np.random.default_rng(2)
    x = np.maximum(rng.uniform(-3, 3, (200, 64)), 0).astype(np.float32)
    assert observe(mlp(), ["x"], [], [[x]], "KL").ranges["x"][1] > 2.8


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_data_that_are_no_numbers_are_told(wrong: float) -> None:
    with pytest.raises(InputError, match="make 'x' infinite or not a number"):
        observe(mlp(), ["x"], [], [[np.full((1, 64), wrong, np.float32)]], "MAX_MIN")


def test_data_without_a_single_number_are_told() -> None:
    with pytest.raises(InputError, match=r"without a single number: \['x'\]"):
        observe(mlp(), ["x"], [], [[np.zeros((0, 64), np.float32)]], "MAX_MIN")
