"""serving/feeds.py: what callers give becomes arrays, what engines give Tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mindspore_lite.core.tensor_info import TensorInfo
from mindspore_lite.errors import InputError, ShapeError
from mindspore_lite.serving import feeds
from mindspore_lite.tensor import DataType, Tensor

F32 = np.dtype(np.float32)
FIXED = TensorInfo("x", F32, (2, 3))
FREE = TensorInfo("y", F32, (-1, 3))
INTS = TensorInfo("ids", np.dtype(np.int64), (4,))
SCALAR = TensorInfo("s", F32, ())
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def one(info: TensorInfo, given: Any) -> np.ndarray:
    (found,) = feeds.arrays([info], [given])
    return found


# --- inputs ---------------------------------------------------------------------------------------


def test_an_array_that_fits_is_handed_on_without_a_copy() -> None:
    assert one(FIXED, X) is X


def test_a_tensor_hands_its_array_on_without_a_copy() -> None:
    assert np.shares_memory(one(FIXED, Tensor(X)), X)


@pytest.mark.parametrize("shape", [(6,), (1, 6, 1), (1, 2, 3), (2, 3, 1)])
def test_another_shape_of_the_same_size_is_taken_as_it_lies(shape: tuple[int, ...]) -> None:
    found = one(FIXED, X.reshape(shape))
    np.testing.assert_array_equal(found, X)
    assert np.shares_memory(found, X)


def test_a_fortran_ordered_array_keeps_its_meaning() -> None:
    found = one(FIXED, np.asfortranarray(X))
    np.testing.assert_array_equal(found, X)
    assert found.flags.c_contiguous


def test_a_slice_is_made_contiguous() -> None:
    wide = np.arange(12, dtype=np.float32).reshape(2, 6)
    found = one(FIXED, wide[:, ::2])
    np.testing.assert_array_equal(found, wide[:, ::2])
    assert found.flags.c_contiguous


def test_a_fortran_ordered_array_of_another_shape_is_read_row_by_row() -> None:
    np.testing.assert_array_equal(one(FIXED, np.asfortranarray(X.reshape(1, 2, 3))), X)


@pytest.mark.parametrize(
    ("wanted", "shape", "words"),
    [
        ((2, 3), (3, 2), r"got shape \[3, 2\], the model wants \[2, 3\]; .*transpose"),
        ((1, 3, 8, 8), (1, 8, 8, 3), r"looks like NHWC, and NCHW is wanted.*\(0, 3, 1, 2\)"),
        ((1, 8, 8, 3), (1, 3, 8, 8), r"looks like NCHW, and NHWC is wanted.*\(0, 2, 3, 1\)"),
        ((1, 3, 8, 8), (8, 8, 3), r"NHWC.*array\[None\]\.transpose\(0, 3, 1, 2\)"),
    ],
)
def test_an_array_of_other_dims_is_never_taken_as_it_lies(
    wanted: tuple[int, ...], shape: tuple[int, ...], words: str
) -> None:
    with pytest.raises(ShapeError, match=words) as caught:
        one(TensorInfo("x", F32, wanted), np.zeros(shape, np.float32))
    assert caught.value.input_name == "x"


def test_a_runner_takes_other_sizes_but_no_other_layout() -> None:
    fixed = TensorInfo("x", F32, (1, 3, 8, 8))
    (found,) = feeds.arrays([fixed], [np.zeros((2, 3, 8, 4), np.float32)], any_size=True)
    assert found.shape == (2, 3, 8, 4)  # not the model's own, though it holds as many
    for info in (fixed, TensorInfo("x", F32, (-1, 3, -1, -1))):
        with pytest.raises(ShapeError, match="looks like NHWC, and NCHW is wanted"):
            feeds.arrays([info], [np.zeros((1, 8, 8, 3), np.float32)], any_size=True)
    with pytest.raises(ShapeError, match="looks like NHWC, and NCHW is wanted"):
        feeds.arrays([fixed], [np.zeros((2, 8, 8, 3), np.float32)], any_size=True)
    (found,) = feeds.arrays([fixed], [np.zeros((4, 3, 8, 8), np.float32)], any_size=True)
    assert found.shape == (4, 3, 8, 8)


@pytest.mark.parametrize("wanted", [(6,), (1, 2, 3), (2, 3)])
def test_a_matrix_of_numpy_is_taken_as_an_array(wanted: tuple[int, ...]) -> None:
    found = one(TensorInfo("x", F32, wanted), X.view(np.matrix))
    assert (type(found), found.shape) == (np.ndarray, wanted)


def test_outputs_that_cannot_be_written_to_are_refused() -> None:
    memory = np.zeros((2, 3), np.float32)
    memory.flags.writeable = False
    with pytest.raises(InputError, match=r"outputs\[0\] lies in memory that is read-only"):
        feeds.checked_outputs([FIXED], [Tensor(memory)])


def test_a_tensor_without_data_stands_for_zeros_where_the_model_says_so() -> None:
    info = TensorInfo("x", F32, (2, 3), zero_filled=True)
    assert not one(info, Tensor(shape=[2, 3], dtype=DataType.FLOAT32)).any()
    assert one(info, Tensor(X)).tolist() == X.tolist()


def test_a_byte_swapped_array_is_turned() -> None:
    found = one(FIXED, X.astype(">f4"))
    np.testing.assert_array_equal(found, X)
    assert found.dtype == F32


def test_a_scalar_input_takes_a_0d_array() -> None:
    assert one(SCALAR, np.array(3, np.float32)).item() == 3


@pytest.mark.parametrize("rows", [1, 2, 7])
def test_a_free_dim_takes_any_size(rows: int) -> None:
    x = np.zeros((rows, 3), np.float32)
    assert one(FREE, x) is x


def test_inputs_may_come_by_name_in_any_order() -> None:
    ids = np.arange(4)
    found = feeds.arrays([FIXED, INTS], {"ids": ids, "x": Tensor(X)})
    np.testing.assert_array_equal(found[0], X)
    assert found[1] is ids


def test_a_tuple_of_inputs_is_as_good_as_a_list() -> None:
    assert feeds.arrays((FIXED,), (X,))[0] is X


def _sized(count: int) -> np.ndarray:
    return np.zeros(count, np.float32)


BAD: list[tuple[Any, type[Exception], list[str]]] = [
    (X, TypeError, ["inputs must be list or tuple", "dict by input name", "write [x]"]),
    ("x", TypeError, ["inputs must be list or tuple"]),
    (None, TypeError, ["inputs must be list or tuple"]),
    (Tensor(X), TypeError, ["inputs must be list or tuple"]),
    ([], InputError, ["model input len:1 not equal input len:0!", "['x']"]),
    ([X, X], InputError, ["model input len:1 not equal input len:2!"]),
    (["input"], TypeError, ["inputs element must be Tensor, of numpy", "str"]),
    ([[X, X]], TypeError, ["inputs element must be Tensor, of numpy", "np.stack()"]),
    ([1.0, 2.0], InputError, ["model input len:1 not equal input len:2!", "write [numbers]"]),
    ([None], TypeError, ["inputs element must be Tensor, of numpy"]),
    ([X.astype(np.float64)], InputError,
     ["data type not equal! Numpy type: float64, Tensor type: float32", "'x'",
      "astype(np.float32)"]),
    ([X.astype(np.float16)], InputError, ["data type not equal!"]),
    ([X.astype(np.int32)], InputError, ["data type not equal!"]),
    ([X.astype(object)], InputError, ["data type not equal!"]),
    ([_sized(5)], InputError, ["data size not equal! Numpy size: 20, Tensor size: 24", "'x'",
                               "got shape [5], the model wants [2, 3]", "resize()"]),
    ([_sized(0)], InputError, ["data size not equal! Numpy size: 0"]),
    ([np.zeros((3, 3), np.float32)], InputError, ["Numpy size: 36, Tensor size: 24"]),
    ([Tensor(shape=[2, 3], dtype=DataType.FLOAT32)], InputError,
     ["input 'x' has no data; fill it with set_data_from_numpy() before predict()"]),
    ({"x": X, "more": X}, InputError, ["missing [], unknown ['more']"]),
    ({}, InputError, ["missing ['x'], unknown []", "the model's inputs are ['x']"]),
    ({0: X}, InputError, ["missing ['x'], unknown [0]"]),
]  # fmt: skip


@pytest.mark.parametrize(("given", "kind", "words"), BAD, ids=[str(w[0]) for _, _, w in BAD])
def test_inputs_that_do_not_fit_are_refused_in_words(
    given: Any, kind: type[Exception], words: list[str]
) -> None:
    with pytest.raises(kind) as caught:
        feeds.arrays([FIXED], given)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("shape", [(3,), (2, 4), (2, 3, 1), (6,), ()])
def test_a_shape_that_does_not_fit_free_dims_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match=r"the model wants \[-1, 3\] where -1 is free"):
        one(FREE, np.zeros(shape, np.float32))


def test_the_count_is_looked_at_before_the_elements() -> None:
    with pytest.raises(InputError, match="model input len:1 not equal input len:2!"):
        feeds.arrays([FIXED], ["no", "tensor"])


# --- outputs --------------------------------------------------------------------------------------


def test_results_become_named_tensors_without_a_copy() -> None:
    (tensor,) = feeds.tensors([FIXED], [X], None)
    assert (tensor.name, tensor.shape, tensor.dtype) == ("x", [2, 3], DataType.FLOAT32)
    assert np.shares_memory(tensor.get_data_to_numpy(), X)


def test_results_are_written_into_the_memory_that_callers_brought() -> None:
    memory = np.zeros((2, 3), np.float32)
    mine = Tensor(memory)
    (returned,) = feeds.tensors([FIXED], [X], [mine])
    assert returned is mine
    np.testing.assert_array_equal(memory, X)


def test_a_tensor_of_another_shape_or_type_takes_the_result_over() -> None:
    for mine in (Tensor(), Tensor(np.zeros(9, np.int32)), Tensor(np.zeros(6, np.float32))):
        feeds.tensors([FIXED], [X], [mine])
        assert (mine.shape, mine.dtype) == ([2, 3], DataType.FLOAT32)
        np.testing.assert_array_equal(mine.get_data_to_numpy(), X)


@pytest.mark.parametrize("make", [list, tuple])
def test_outputs_may_be_a_list_or_a_tuple(make: Callable[[Any], Any]) -> None:
    mine = Tensor()
    assert feeds.checked_outputs([FIXED], make([mine])) == [mine]
    assert feeds.checked_outputs([FIXED], None) is None


@pytest.mark.parametrize(
    ("outputs", "kind", "words"),
    [
        (Tensor(), TypeError, "outputs must be list"),
        ("x", TypeError, "outputs must be list"),
        ([X], TypeError, "outputs element must be Tensor, but got .* at index 0"),
        ([Tensor(), None], TypeError, "outputs element must be Tensor, but got .* at index 1"),
        ([], InputError, r"0 outputs were given, the model has 1: \['x'\]"),
        ([Tensor(), Tensor()], InputError, "2 outputs were given, the model has 1"),
    ],
)
def test_outputs_that_do_not_fit_are_refused(
    outputs: Any, kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        feeds.checked_outputs([FIXED], outputs)


def test_a_bfloat16_input_takes_float32_and_rounds_it() -> None:
    info = TensorInfo("x", np.dtype(ml_dtypes.bfloat16), (2,))
    (found,) = feeds.arrays([info], [np.array([1.001, 2], np.float32)])
    assert (found.dtype, found.tolist()) == (info.dtype, [1.0, 2.0])
    with pytest.raises(InputError, match=r"Numpy type: float64.*astype\(np\.float32\)"):
        feeds.arrays([info], [np.zeros(2)])
