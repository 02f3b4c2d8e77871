"""checks.py: what passes, what it becomes, and the words of each refusal."""

from __future__ import annotations

import mmap
from array import array
from collections import deque
from typing import Any

import numpy as np
import pytest

from mindspore_lite.core import checks


def refusal(call: Any, *args: Any) -> str:
    with pytest.raises((TypeError, ValueError)) as caught:
        call(*args)
    return f"{caught.type.__name__}: {caught.value}"


def test_an_instance_is_handed_back_itself() -> None:
    value: dict[str, int] = {}
    assert checks.instance("x", value, dict) is value


def test_a_wrong_instance_is_named_with_both_classes() -> None:
    want = "TypeError: config must be dict, but got <class 'int'>."
    assert refusal(checks.instance, "config", 1, dict) == want


def test_the_wanted_class_may_go_by_another_name() -> None:
    want = "TypeError: a must be numpy.ndarray, but got <class 'int'>."
    assert refusal(checks.instance, "a", 1, np.ndarray, "numpy.ndarray") == want


@pytest.mark.parametrize(
    "value", [5, np.int8(5), np.uint64(5), np.array(5)], ids=["int", "int8", "uint64", "0-d"]
)
def test_any_integer_becomes_an_int(value: Any) -> None:
    found = checks.integer("n", value)
    assert found == 5
    assert type(found) is int


@pytest.mark.parametrize(
    "value", [True, np.True_, 1.0, "1", None, np.float32(1), np.array([1])], ids=repr
)
def test_what_is_no_integer_is_refused(value: Any) -> None:
    wanted = f"TypeError: n must be int, but got {type(value)}."
    assert refusal(checks.integer, "n", value) == wanted


def test_a_non_negative_int_may_be_zero_but_not_less() -> None:
    assert checks.non_negative("n", np.int64(0)) == 0
    assert refusal(checks.non_negative, "n", -1) == (
        "ValueError: n must be a non-negative int, but got -1."
    )
    assert refusal(checks.non_negative, "n", "1").startswith("TypeError: n must be int")


def test_one_of_lists_what_is_legal() -> None:
    check = checks.one_of("a", "b")
    assert check("mode", "b") == "b"
    assert refusal(check, "mode", "c") == "ValueError: mode must be in [a, b], but got c."
    assert refusal(check, "mode", 1) == "TypeError: mode must be str, but got <class 'int'>."


@pytest.mark.parametrize("value", [[1, 2], (1, 2), range(1, 3), deque([1, 2]), array("i", [1, 2])])
def test_any_sequence_of_ints_becomes_a_list(value: Any) -> None:
    assert checks.integers("s", value) == [1, 2]
    assert checks.sequence("s", value) is value


@pytest.mark.parametrize(
    "value", ["ab", b"ab", bytearray(b"ab"), memoryview(b"ab"), {1: 2}, {1}, 3, None, iter([1])]
)
def test_texts_bytes_and_unordered_things_are_no_sequences(value: Any) -> None:
    want = f"TypeError: s must be list, but got {type(value)}."
    assert refusal(checks.sequence, "s", value) == want
    assert refusal(checks.integers, "s", value) == want
    assert refusal(checks.instances, "s", value, int) == want


def test_an_array_counts_as_integers_only() -> None:
    found = checks.integers("s", np.array([1, 2], np.int16))
    assert found == [1, 2]
    assert {type(number) for number in found} == {int}
    assert refusal(checks.sequence, "s", np.array([1, 2])).startswith("TypeError: s must be list")


@pytest.mark.parametrize("value", [np.array(1), np.ones((2, 2), int)], ids=["0-d", "2-d"])
def test_an_array_without_exactly_one_axis_is_no_sequence(value: Any) -> None:
    assert refusal(checks.integers, "s", value).startswith("TypeError: s must be list, but got")


@pytest.mark.parametrize("bad", ["1", True, 1.5, [1], np.float64(1)])
def test_a_bad_element_is_named_with_its_index(bad: Any) -> None:
    want = f"TypeError: s element must be int, but got {type(bad)} at index 1."
    assert refusal(checks.integers, "s", [0, bad]) == want


def test_an_array_of_floats_is_refused_at_its_first_element() -> None:
    want = "TypeError: s element must be int, but got <class 'numpy.float64'> at index 0."
    assert refusal(checks.integers, "s", np.array([1.0])) == want


def test_instances_come_back_as_a_new_list() -> None:
    value = ["a", "b"]
    found = checks.instances("t", value, str)
    assert found == value
    assert found is not value
    want = "TypeError: t element must be str, but got <class 'int'> at index 1."
    assert refusal(checks.instances, "t", ("a", 1), str) == want


def test_the_container_may_go_by_another_name() -> None:
    want = "TypeError: shape must be list or tuple, but got <class 'int'>."
    assert refusal(checks.integers, "shape", 224, "list or tuple") == want


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_the_content_of_a_file_comes_as_bytes(kind: Any) -> None:
    assert checks.content("c", kind(b"abc")) == b"abc"


def test_bytes_are_kept_and_what_can_change_is_copied() -> None:
    fixed, changing = b"abc", bytearray(b"abc")
    assert checks.content("c", fixed) is fixed
    found = checks.content("c", changing)
    changing[0] = 0
    assert found == b"abc"


def test_a_map_may_be_closed_after_it_was_copied() -> None:
    with mmap.mmap(-1, 3) as room:
        room[:] = b"abc"
        found = checks.content("c", room)
    assert found == b"abc"


@pytest.mark.parametrize("value", ["abc", None, 5, [1, 2], np.zeros(3, np.uint8)])
def test_what_is_no_content_is_refused(value: Any) -> None:
    with pytest.raises(TypeError, match=r"c must be bytes, but got <class"):
        checks.content("c", value)
