"""conversion/measure.py: how far two models are apart."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir
import pytest
from onnx import helper
from support.quant_nets import FLOAT, INT64, embedding, mlp, model_of, normal

from mindspore_lite.conversion.measure import (
    MAX_REQUESTS,
    compared,
    cosine,
    inputs_of,
    made_up_inputs,
    top_one,
)
from mindspore_lite.conversion.quant_report import TopOne


def scaled(factor: float, op: str = "Mul") -> ir.Model:
    """y = x op factor."""
    node = helper.make_node(op, ["x", "f"], ["y"])
    return model_of([node], {"x": (FLOAT, ["n", 3])}, ["y"], {"f": np.float32(factor)})


SAMPLES = [[np.array([[1, -4, 2]], np.float32)], [np.array([[0, 1, 0]], np.float32)]]


def test_the_difference_is_relative_to_the_largest_output() -> None:
    found = compared(scaled(1), scaled(1.25), SAMPLES)
    assert found.largest == pytest.approx(0.25)
    assert found.cosine == pytest.approx(1)
    assert found.outputs == (("y", found.cosine),)
    assert found.compared_on == "calibration data"


def test_equal_models_do_not_differ() -> None:
    found = compared(mlp(), mlp(), None)
    assert (found.largest, found.compared_on) == (0, "random inputs")
    assert found.cosine == pytest.approx(1)


def test_the_worst_output_counts() -> None:
    def two(factor: float) -> ir.Model:
        nodes = [helper.make_node("Mul", ["x", n], [f"y_{n}"]) for n in "ab"]
        weights = {"a": np.float32(1), "b": np.array([1, 1, factor], np.float32)}
        return model_of(nodes, {"x": (FLOAT, ["n", 3])}, ["y_a", "y_b"], weights)

    found = compared(two(1), two(-1), SAMPLES)
    assert found.largest == pytest.approx(1)
    assert [name for name, _ in found.outputs] == ["y_a", "y_b"]
    assert found.cosine == found.outputs[1][1] < found.outputs[0][1]


def test_whole_numbers_are_not_judged_beside_floats() -> None:
    def with_label(factor: float) -> ir.Model:
        nodes = [
            helper.make_node("Mul", ["x", "f"], ["y"]),
            helper.make_node("ArgMax", ["y"], ["at"], axis=1),
        ]
        model = model_of(nodes, {"x": (FLOAT, ["n", 3])}, ["y"], {"f": np.float32(factor)})
        label = model.graph[1].outputs[0]
        label.type, label.shape = ir.TensorType(ir.DataType.INT64), ir.Shape([None, 1])
        model.graph.outputs.append(label)
        return model

    found = compared(with_label(1), with_label(1.01), SAMPLES)
    assert [name for name, _ in found.outputs] == ["y"]


def test_numbers_that_become_infinite_are_a_difference_without_end() -> None:
    found = compared(scaled(2, "Div"), scaled(0, "Div"), SAMPLES[:1])
    assert found.largest == math.inf
    assert math.isnan(found.cosine)


def test_numbers_that_were_infinite_before_do_not_count() -> None:
    found = compared(scaled(0, "Div"), scaled(0, "Div"), SAMPLES)
    assert found.largest == 0


def test_only_some_requests_are_compared() -> None:
    taken = []

    def endless() -> object:
        while True:
            taken.append(1)
            yield SAMPLES[0]

    compared(scaled(1), scaled(1), endless())  # type: ignore[arg-type]
    assert len(taken) == MAX_REQUESTS


def test_a_model_that_takes_no_random_inputs_is_no_failure() -> None:
    node = helper.make_node("Reshape", ["x", "s"], ["y"])
    wrong = model_of([node], {"x": (FLOAT, ["n", 3]), "s": (INT64, [2])}, ["y"], {})
    found = compared(wrong, wrong, None)
    assert math.isnan(found.largest)
    assert found.compared_on.startswith("nothing: the model does not run on random inputs (ONNX")


def test_inputs_are_known_without_running() -> None:
    (ids,) = inputs_of(embedding())
    assert (ids.name, ids.dtype, ids.shape) == ("ids", np.int64, (-1, 5))
    model = mlp()
    model.graph.inputs.append(model.graph.initializers["b1"])
    assert [info.name for info in inputs_of(model)] == ["x"]


def test_made_up_inputs_are_the_same_each_time() -> None:
    for model in (mlp(), embedding()):
        infos = inputs_of(model)
        (first,), (second,), (other,) = (made_up_inputs(infos, seed) for seed in (1, 1, 2))
        np.testing.assert_array_equal(first, second)
        assert first.dtype == infos[0].dtype
        assert not np.array_equal(first, other)


@pytest.mark.parametrize(
    ("first", "second", "value"),
    [
        ([1, 0], [0, 1], 0),
        ([1, 2], [2, 4], 1),
        ([1, 2], [-1, -2], -1),
        ([0, 0], [0, 0], 1),
        ([0, 0], [0, 1], 0),
    ],
)
def test_cosine(first: list[float], second: list[float], value: float) -> None:
    found = cosine([np.array(first, np.float32)], [np.array(second, np.float32)])
    assert found == pytest.approx(value)


def test_normal_numbers_are_used() -> None:
    (array,) = made_up_inputs(inputs_of(mlp()), 0)
    assert array.min() < 0 < array.max()
    assert normal(1, 64).dtype == array.dtype


def test_the_top_class_is_compared_row_by_row() -> None:
    want = [np.array([[1.0, 2.0], [3.0, 0.0]]), np.array([[0.0, 1.0]])]
    have = [np.array([[1.0, 0.5], [3.0, 0.0]]), np.array([[0.0, 1.0]])]
    assert top_one("y", want, have) == TopOne("y", agreed=2, rows=3)


@pytest.mark.parametrize("shape", [(3,), (2, 1), (1, 3, 2, 2)])
def test_what_has_no_rows_of_classes_has_no_top_class(shape: tuple[int, ...]) -> None:
    assert top_one("y", [np.zeros(shape)], [np.zeros(shape)]) is None
    assert top_one("y", [np.zeros((2, 3))], [np.zeros((2, 4))]) is None
