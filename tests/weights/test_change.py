"""weights/change.py: what an update asks for is checked as a whole, then made into new arrays."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mindspore_lite.errors import InputError
from mindspore_lite.weights.change import changed
from mindspore_lite.weights.records import Variable


def variable(name: str, first: np.ndarray, *aliases: str) -> Variable:
    first = first.copy()
    first.flags.writeable = False
    return Variable(name, aliases, first.dtype, first.shape, first)


def filled(value: float, dtype: Any = np.float32) -> np.ndarray:
    return np.full((2, 3), value, dtype)


Q = variable("onnx::MatMul_1", filled(1), "q", "/enc/attn/q/MatMul", "/enc/attn/q")
K = variable("k.weight", filled(2), "/k/k.0/MatMul", "/k/k.0")
N = variable("n", np.ones(4, np.int32))
ALL = (Q, K, N)


def test_a_named_array_takes_the_place_of_its_weight_alone() -> None:
    found = changed(ALL, [[("k.weight", filled(5))]], "replace", {})
    assert found.keys() == {"k.weight"}
    np.testing.assert_array_equal(found["k.weight"], filled(5))


@pytest.mark.parametrize(
    ("name", "weight"),
    [
        ("onnx::MatMul_1", "onnx::MatMul_1"),
        ("q", "onnx::MatMul_1"),
        ("/enc/attn/q", "onnx::MatMul_1"),
        ("enc.attn.q.weight", "onnx::MatMul_1"),
        ("base_model.model.enc.attn.q.lora_A.weight", "onnx::MatMul_1"),
        ("k.lora_down.weight", "k.weight"),  # by the weight's own name
        ("k.0.weight", "k.weight"),  # by its node, /k/k.0
    ],
)
def test_any_of_its_names_will_do(name: str, weight: str) -> None:
    assert changed(ALL, [[(name, filled(5))]], "replace", {}).keys() == {weight}


def test_a_path_that_leads_to_two_weights_leads_to_none() -> None:
    both = variable("a.weight", filled(0)), variable("a.alpha", filled(0))
    assert changed(both, [[("a.alpha", filled(1))]], "replace", {}).keys() == {"a.alpha"}
    with pytest.raises(InputError, match=r"no weight 'a\.lora_up\.weight' may change"):
        changed(both, [[("a.lora_up.weight", filled(1))]], "replace", {})


def test_arrays_without_names_go_by_their_place() -> None:
    group = [("", filled(5)), ("", filled(6)), ("n", np.zeros(4, np.int32))]
    found = changed(ALL, [group], "replace", {})
    assert {name: array.flat[0] for name, array in found.items()} == {
        "onnx::MatMul_1": 5,
        "k.weight": 6,
        "n": 0,
    }


def test_of_several_lists_the_last_word_counts() -> None:
    groups = [[("q", filled(5)), ("k.weight", filled(6))], [("", filled(7))]]
    found = changed(ALL, groups, "replace", {"n": np.zeros(4, np.int32)})
    assert {name: array.flat[0] for name, array in found.items()} == {
        "onnx::MatMul_1": 7,
        "k.weight": 6,
        "n": 0,
    }


def test_a_weight_that_is_not_named_stays_as_it_is() -> None:
    present = {"k.weight": filled(9)}
    found = changed(ALL, [[("q", filled(5))]], "replace", present)
    assert found["k.weight"] is present["k.weight"]
    assert present.keys() == {"k.weight"}


def test_no_lists_restore_what_was_first() -> None:
    assert changed(ALL, [], "replace", {"k.weight": filled(9)}) == {}


@pytest.mark.parametrize("mode", ["replace", "delta"])
@pytest.mark.parametrize(
    "given",
    [filled(5), np.asfortranarray(filled(5)), filled(5)[::-1], np.broadcast_to(5.0, (2, 3))],
)
def test_the_arrays_are_copies(mode: str, given: np.ndarray) -> None:
    given = given.astype(np.float32, copy=False)
    before = given.copy()
    found = changed(ALL, [[("q", given)]], mode, {})["onnx::MatMul_1"]
    assert not np.shares_memory(found, given) and not np.shares_memory(found, Q.first)
    assert found.flags.c_contiguous and found.flags.owndata
    found += 1
    np.testing.assert_array_equal(given, before)


@pytest.mark.parametrize("mode", ["replace", "delta"])
def test_bfloat16_is_taken_where_a_model_has_float32_of_it(mode: str) -> None:
    found = changed([K], [[("", filled(0.5, ml_dtypes.bfloat16))]], mode, {})["k.weight"]
    np.testing.assert_array_equal(found, filled(0.5 if mode == "replace" else 2.5), strict=True)


# --- deltas ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_a_delta_is_added_to_the_first_weights(dtype: Any) -> None:
    first = np.linspace(-1, 1, 6).reshape(2, 3).astype(dtype)
    delta = np.linspace(0, 0.1, 6).reshape(2, 3).astype(dtype)
    present = {"w": np.zeros_like(first)}  # of an earlier delta, which counts no more
    found = changed([variable("w", first)], [[("w", delta)]], "delta", present)["w"]
    wide = np.float64 if dtype is np.float64 else np.float32
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, (first.astype(wide) + delta.astype(wide)).astype(dtype))


def test_of_several_deltas_the_last_one_counts() -> None:
    groups = [[("q", filled(5))], [("q", filled(0.5))]]
    np.testing.assert_array_equal(changed(ALL, groups, "delta", {})[Q.name], filled(1.5))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32])
def test_a_sum_that_does_not_fit_is_an_infinity(dtype: Any) -> None:
    large = np.array(ml_dtypes.finfo(dtype).max, dtype)
    found = changed([variable("w", large)], [[("w", large)]], "delta", {})["w"]
    assert np.isinf(found) and found.shape == ()


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.bool_])
def test_nothing_is_added_to_whole_numbers(dtype: Any) -> None:
    first = np.ones(4, dtype)
    with pytest.raises(InputError, match=f"'n' is of type {first.dtype}, to which no delta"):
        changed([variable("n", first)], [[("n", first)]], "delta", {})
    assert changed([variable("n", first)], [[("n", first)]], "replace", {}).keys() == {"n"}


def test_what_is_not_finite_is_the_callers_affair() -> None:
    found = changed(ALL, [[("q", filled(np.nan)), ("k.weight", filled(np.inf))]], "delta", {})
    assert np.isnan(found[Q.name]).all() and np.isinf(found["k.weight"]).all()


# --- what does not fit ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ([[("k.weigth", filled(1))]], r"no weight 'k\.weigth' may change, but 'k\.weight'\. The"),
        ([[("zzz", filled(1))]], r"'zzz' may change\. .* that may change are 'onnx::MatMul_1', 'k"),
        ([[("q", filled(1)), ("/enc/attn/q", filled(2))]], "'onnx::MatMul_1' is given twice"),
        ([[("", filled(1)), ("q", filled(2))]], "'onnx::MatMul_1' is given twice"),
        ([[("q", np.ones((3, 2), np.float32))]], r"'q' has shape \[2, 3\], but got \[3, 2\]"),
        ([[("q", np.ones((), np.float32))]], r"'q' has shape \[2, 3\], but got \[\]"),
        ([[("q", filled(1, np.float64))]], r"'q' is of type float32, but got float64; convert it"),
        ([[("", filled(1, np.float16))]], "'onnx::MatMul_1' is of type float32, but got float16"),
        ([[("q", filled(1).astype(">f4"))]], "'q' is of type float32, but got >f4"),
        ([[]], "list 0 is empty"),
        ([[("q", filled(1))], []], "list 1 is empty"),
        (
            [[("", filled(1)), ("", filled(1)), ("", np.ones(4, np.int32)), ("", filled(1))]],
            "the tensor at place 3 has no name, and the list .* ends at place 2",
        ),
    ],
)
def test_what_does_not_fit_is_refused(groups: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        changed(ALL, groups, "replace", {})


def test_all_that_is_wrong_is_told_at_once() -> None:
    groups = [[("zzz", filled(1)), ("q", filled(1, np.int32))], [("q", np.ones(1, np.float32))]]
    with pytest.raises(InputError) as caught:
        changed(ALL, groups, "replace", {})
    text = str(caught.value)
    assert text.count("list 0, ") == 2 and text.count("list 1, ") == 1
    assert "'zzz'" in text and "int32" in text and "[1]" in text


def test_a_long_list_of_problems_is_cut() -> None:
    groups = [[(f"wrong{i}", filled(1)) for i in range(1000)]]
    with pytest.raises(InputError, match="and 990 more") as caught:
        changed(ALL, groups, "replace", {})
    assert len(str(caught.value)) < 2000
