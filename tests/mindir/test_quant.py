"""mindir/quant.py: quantised weights become the numbers they stand for."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.mindir_builder import Net, tensor, to_proto
from support.running import run

from mindspore_lite.errors import ModelFileError
from mindspore_lite.mindir import mindir_pb2 as pb
from mindspore_lite.mindir.encode import value as fill_value
from mindspore_lite.mindir.quant import Quant, dequantised, quant_of
from mindspore_lite.mindir.read import read

Q = np.arange(-6, 6, dtype=np.int8).reshape(3, 4)


def model_of(stored: np.ndarray, algorithm: str, **lists: Any) -> memoryview:
    """x + w, with w quantised."""
    net = Net()
    model = net.model(net.call("Add", net.input("x", stored.shape), net.weight("w", stored)))
    proto = to_proto(model)
    how = proto.graph.parameter[0].quant_params.add(quant_algo_name=algorithm)
    for name, value in lists.items():
        fill_value(how.attribute.add(name=name), value)
    return memoryview(proto.SerializeToString())


def weight_of(stored: np.ndarray, algorithm: str = "linear_quant", **lists: Any) -> np.ndarray:
    """What the network sees as w."""
    model = read(model_of(stored, algorithm, **lists))
    (got,) = run(model, np.zeros(stored.shape, np.float32))
    np.testing.assert_array_equal(got, dequantised(model.graph.parameters[0]))
    return got


def test_one_scale_serves_all() -> None:
    lists = {"scale_list": [0.5], "zero_point_list": [2], "num_bit_list": [8]}
    np.testing.assert_allclose(weight_of(Q, **lists), 0.5 * (Q.astype(float) - 2))


def test_several_scales_belong_to_the_channels() -> None:
    scales, zeros = [0.5, 1.0, 2.0], [0, 1, -1]
    got = weight_of(Q, scale_list=scales, zero_point_list=zeros)
    want = (Q.astype(float) - np.array(zeros)[:, None]) * np.array(scales)[:, None]
    np.testing.assert_allclose(got, want)


@pytest.mark.parametrize("axis", [1, -1, [1], (1,)])
def test_the_file_may_say_which_axis_has_the_channels(axis: Any) -> None:
    square = np.arange(9, dtype=np.int8).reshape(3, 3)
    got = weight_of(square, scale_list=[1.0, 2.0, 3.0], channel_axis=axis)
    np.testing.assert_allclose(got, square * np.array([1.0, 2.0, 3.0]))
    first = weight_of(square, scale_list=[1.0, 2.0, 3.0])
    np.testing.assert_allclose(first, square * np.array([[1.0], [2.0], [3.0]]))


def test_an_axis_that_fits_is_found_when_the_first_does_not() -> None:
    got = weight_of(Q, scale_list=[1.0, 2.0, 3.0, 4.0])
    np.testing.assert_allclose(got, Q * np.array([1.0, 2.0, 3.0, 4.0]))


def test_channels_are_corrected() -> None:
    got = weight_of(
        Q, scale_list=[1.0, 2.0, 4.0], var_corr_list=[1.5, 99.0, -1.0],
        mean_corr_list=[0.0, 0.25, -0.5],
    )  # fmt: skip
    want = Q * np.array([[1.5], [2.0], [4.0]]) + np.array([[0], [0.25], [-0.5]])
    np.testing.assert_allclose(got, want)


def test_one_scale_is_not_corrected() -> None:
    """As MindSpore Lite does it."""
    got = weight_of(Q, scale_list=[2.0], var_corr_list=[3.0], mean_corr_list=[1.0])
    np.testing.assert_allclose(got, Q * 2.0)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int32])
def test_other_integers_may_be_stored(dtype: Any) -> None:
    stored = np.array([0, 1, 200], dtype)
    got = weight_of(stored, scale_list=[0.5], zero_point_list=[100])
    np.testing.assert_allclose(got, [-50, -49.5, 50])


def test_clusters_are_counted_from_the_lowest_number() -> None:
    stored = np.array([-128, -126, -127, -128], np.int8)
    got = weight_of(stored, "cluster_quant", cluster_centroid_list=[0.5, -1.0, 7.0])
    np.testing.assert_allclose(got, [0.5, 7.0, -1.0, 0.5])


def test_four_bits_are_unpacked_first() -> None:
    proto = pb.Model.FromString(bytes(model_of(Q, "linear_quant", scale_list=[0.5])))
    weight = proto.graph.parameter[0]
    weight.data_type, weight.raw_data = 18, bytes([0x10, 0xF2, 0x8F, 0, 0, 0])
    (found,) = read(memoryview(proto.SerializeToString())).graph.parameters
    assert dequantised(found).reshape(-1)[:6].tolist() == [0, 0.5, 1, -0.5, -0.5, -4]


def test_the_record_tells_what_the_file_said() -> None:
    data = model_of(Q, "linear_quant", scale_list=[0.5, 1.0, 2.0], num_bit_list=[7, 7, 7])
    (found,) = read(data).graph.parameters
    assert found.quant == Quant((0.5, 1.0, 2.0), (0, 0, 0), 7, 0, (1.0,) * 3, (0.0,) * 3)


def test_a_plain_tensor_has_none() -> None:
    with pytest.raises(ValueError, match="'t' is not quantised"):
        dequantised(tensor("t", Q))


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("other", {}, "quantised by 'other', wanted linear_quant or cluster_quant"),
    ("linear_quant", {}, "holds no scale"),
    ("linear_quant", {"scale_list": ["a"]}, "'scale_list' that is no list of numbers"),
    ("linear_quant", {"scale_list": 5}, "'scale_list' that is no list of numbers"),
    ("linear_quant", {"scale_list": [1.0, 2.0]}, "2 scales, but its shape [3, 4] has no axis"),
    ("linear_quant", {"scale_list": [1.0] * 3, "channel_axis": 1}, "has no axis of as many"),
    ("linear_quant", {"scale_list": [1.0] * 3, "zero_point_list": [0]}, "but 1 in 'zero_point"),
    ("linear_quant", {"scale_list": [1.0] * 3, "mean_corr_list": [0.0] * 4}, "4 in 'mean_corr"),
    ("linear_quant", {"scale_list": [1.0], "num_bit_list": [99]}, "99 bits, wanted 1 to 16"),
    ("linear_quant", {"scale_list": [1.0], "zero_point_list": [0.5]}, "zero point that is no"),
    ("cluster_quant", {}, "holds no centroids"),
]


@pytest.mark.parametrize(("algorithm", "lists", "words"), WRONG, ids=[w for _, _, w in WRONG])
def test_what_makes_no_sense_is_refused(algorithm: str, lists: dict[str, Any], words: str) -> None:
    with pytest.raises(ModelFileError) as caught:
        read(model_of(Q, algorithm, **lists))
    assert words in str(caught.value)
    assert str(caught.value).startswith("tensor 'net:w': ")


def test_a_centroid_that_is_not_there_is_refused() -> None:
    quant = quant_of("cluster_quant", {"cluster_centroid_list": [1.0]}, (1,))
    weight = replace(tensor("t", np.array([-127], np.int8)), quant=quant)
    with pytest.raises(ModelFileError, match="chooses centroid 1, the file holds 1"):
        dequantised(weight)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.bool_])
def test_a_record_at_numbers_that_are_real_already_counts_for_nothing(dtype: Any) -> None:
    (found,) = read(model_of(np.ones(3, dtype), "linear_quant", scale_list=[5.0])).graph.parameters
    assert found.quant is None


NUMBERS = st.one_of(st.integers(-(2**63), 2**63 - 1), st.floats(width=32), st.booleans(), st.text())


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    st.sampled_from(["linear_quant", "cluster_quant"]),
    st.dictionaries(
        st.sampled_from(
            ["scale_list", "zero_point_list", "num_bit_list", "var_corr_list", "mean_corr_list",
             "cluster_centroid_list", "channel_axis"]
        ),
        st.one_of(NUMBERS, st.lists(NUMBERS, max_size=4), st.lists(st.floats(width=32), min_size=3,
                                                                    max_size=3)),
    ),
)  # fmt: skip
def test_any_record_ends_in_our_error_or_in_numbers(algorithm: str, lists: dict[str, Any]) -> None:
    with contextlib.suppress(ModelFileError):
        (found,) = read(model_of(Q, algorithm, **lists)).graph.parameters
        assert dequantised(found).dtype == np.float32
