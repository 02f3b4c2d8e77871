"""tensor.py: how data goes in and out: what is shared, what is copied, what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindspore_lite.errors import InputError, ShapeError
from mindspore_lite.tensor import DataType, Tensor, ms_to_numpy_data_type_map


@pytest.mark.parametrize("shape", [(2, 3), (6,), (), (0, 4), (1, 2, 1, 3)])
def test_a_plain_array_is_shared_and_never_copied(shape: tuple[int, ...]) -> None:
    array = np.zeros(shape, np.float32)
    made = Tensor(array)
    was_set = Tensor(shape=shape, dtype=DataType.FLOAT32)
    was_set.set_data_from_numpy(array)
    array[...] = 7
    for tensor in (made, was_set):
        data = tensor.get_data_to_numpy()
        assert data.__array_interface__["data"] == array.__array_interface__["data"]
        assert data.shape == shape
        assert (data == 7).all()


ODD_ARRAYS = {
    "F order": np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3)),
    "swapped bytes": np.arange(6, dtype=">f4").reshape(2, 3),
    "strided": np.repeat(np.arange(6, dtype=np.float32), 2).reshape(2, 6)[:, ::2],
    "reversed": np.arange(6, dtype=np.float32)[::-1].copy().reshape(2, 3)[::-1, ::-1],
    "transposed": np.array([[0, 3], [1, 4], [2, 5]], np.float32).T,
    "broadcast": np.broadcast_to(np.arange(3, dtype=np.float32), (2, 3)),
}


@pytest.mark.parametrize("array", ODD_ARRAYS.values(), ids=ODD_ARRAYS)
def test_any_other_array_is_copied_to_c_order_and_native_bytes(array: Any) -> None:
    was_set = Tensor(shape=[2, 3], dtype=DataType.FLOAT32)
    was_set.set_data_from_numpy(array)
    for tensor in (Tensor(array), was_set):
        data = tensor._filled()
        assert data is not None
        assert data.tolist() == array.tolist()
        assert data.dtype == np.dtype("=f4") and data.dtype.isnative
        assert data.flags.c_contiguous
        assert not np.shares_memory(data, array)
        assert tensor.dtype is DataType.FLOAT32


def test_an_empty_f_ordered_and_a_scalar_swapped_array_keep_their_shape() -> None:
    assert Tensor(np.array(3, ">i2")).shape == []
    assert Tensor(np.array(3, ">i2")).get_data_to_numpy() == 3
    assert Tensor(np.zeros((0, 3), ">f8", order="F")).shape == [0, 3]


def test_another_spelling_of_an_integer_type_is_the_same_type() -> None:
    tensor = Tensor(np.arange(3, dtype=np.longlong))
    assert tensor.dtype is DataType.INT64
    tensor.set_data_from_numpy(np.arange(3, dtype=np.int64))
    assert tensor.get_data_to_numpy().tolist() == [0, 1, 2]


def test_a_subclass_of_array_becomes_a_plain_array() -> None:
    class Odd(np.ndarray[Any, Any]):
        pass

    array = np.ones(2).view(Odd)
    data = Tensor(array).get_data_to_numpy()
    assert type(data) is np.ndarray
    assert np.shares_memory(data, array)


def test_a_flat_array_takes_the_shape_of_the_tensor() -> None:
    tensor = Tensor(shape=[2, 3], dtype=DataType.FLOAT32)
    tensor.set_data_from_numpy(np.arange(6, dtype=np.float32))
    assert tensor.get_data_to_numpy().tolist() == [[0, 1, 2], [3, 4, 5]]
    assert tensor.shape == [2, 3]


@pytest.mark.parametrize(
    ("array", "kind", "words"),
    [
        (1, TypeError, "numpy_obj must be numpy.ndarray, but got <class 'int'>."),
        ([1.0], TypeError, "numpy_obj must be numpy.ndarray,"),
        (np.array("a"), TypeError, "Unsupported numpy dtype value"),
        (np.array(1, object), TypeError, "Unsupported numpy dtype value"),
        (
            np.array(1, ">i4"),
            InputError,
            "data type not equal! Numpy type: int32, Tensor type: float32",
        ),
        (
            np.ones((2, 3), np.float32),
            InputError,
            "data size not equal! Numpy size: 24, Tensor size: 4",
        ),
        (np.ones(0, np.float32), InputError, "data size not equal! Numpy size: 0, Tensor size: 4"),
        (np.ones(3, np.int32), InputError, "data type not equal"),
    ],
)
def test_data_that_does_not_fit_is_refused(array: Any, kind: type[Exception], words: str) -> None:
    tensor = Tensor()
    with pytest.raises(kind) as caught:
        tensor.set_data_from_numpy(array)
    assert words in str(caught.value)
    assert tensor._filled() is None


@pytest.mark.parametrize("array", [np.ones(4, np.float32), np.ones(0, np.float32)])
def test_a_tensor_with_an_unknown_dim_takes_no_data(array: Any) -> None:
    tensor = Tensor()
    tensor.shape = [-1, 2]
    with pytest.raises(RuntimeError, match=r"data size not equal! .*resize"):
        tensor.set_data_from_numpy(array)


def test_a_tensor_with_an_unknown_dim_has_no_data() -> None:
    tensor = Tensor()
    tensor.name, tensor.shape = "x", [2, -1]
    with pytest.raises(ShapeError, match=r"'x' has shape \[2, -1\].*call Model.resize\(\) first"):
        tensor.get_data_to_numpy()


@pytest.mark.parametrize("member", [DataType.UNKNOWN, DataType.INVALID])
def test_a_tensor_without_an_element_type_has_no_data(member: DataType) -> None:
    tensor = Tensor()
    tensor.dtype = member
    assert tensor.data_size == 0
    with pytest.raises(RuntimeError, match=f"has {member}; set its dtype first"):
        tensor.get_data_to_numpy()
    with pytest.raises(TypeError, match="Unsupported numpy dtype value"):
        tensor.set_data_from_numpy(np.zeros((), "V0"))


@pytest.mark.parametrize("shape", [[0], [2, 0, 3]])
def test_a_shape_of_no_elements_gives_an_empty_array_of_its_type(shape: list[int]) -> None:
    data = Tensor(shape=shape, dtype=DataType.INT8).get_data_to_numpy()
    assert list(data.shape) == shape
    assert data.dtype == np.int8


def test_data_that_was_never_set_is_zeros_that_may_be_written() -> None:
    tensor = Tensor(shape=[2, 2], dtype=DataType.FLOAT32)
    data = tensor.get_data_to_numpy()
    assert data.tolist() == [[0, 0], [0, 0]]
    data[0, 1] = 5
    kept = tensor._filled()
    assert kept is not None
    assert kept.tolist() == [[0, 5], [0, 0]]


def test_changing_an_array_object_in_place_does_not_reach_the_tensor() -> None:
    array = np.zeros((2, 3), np.float32)
    made = Tensor(array)
    was_set = Tensor(shape=[2, 3], dtype=DataType.FLOAT32)
    was_set.set_data_from_numpy(array)
    array.flags.writeable = False  # stands for all that can be changed: flags, shape, dtype
    for tensor in (made, was_set):
        tensor.get_data_to_numpy().flags.writeable = False
        kept = tensor._filled()
        assert kept is not None
        assert kept.flags.writeable


def test_a_read_only_array_stays_read_only() -> None:
    array = np.zeros(2)
    array.flags.writeable = False
    assert not Tensor(array).get_data_to_numpy().flags.writeable


@given(
    shape=st.lists(st.integers(0, 4), max_size=4),
    member=st.sampled_from([*ms_to_numpy_data_type_map]),
    swap=st.booleans(),
    order=st.sampled_from("CF"),
)
def test_any_array_comes_back_equal(
    shape: list[int], member: DataType, swap: bool, order: Any
) -> None:
    dtype = np.dtype(ms_to_numpy_data_type_map[member])
    values = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    array = np.array(values, dtype.newbyteorder() if swap else dtype, order=order)
    tensor = Tensor(shape=shape, dtype=member)
    tensor.set_data_from_numpy(array)
    for found in (Tensor(array), tensor):
        assert found.get_data_to_numpy().tolist() == values.tolist()
        assert found.shape == shape
        assert found.dtype is member
        assert found.data_size == array.nbytes


# --- as NumPy sees a tensor -----------------------------------------------------------------------


def test_numpy_takes_a_tensor_as_an_array_without_a_copy() -> None:
    tensor = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
    for found in (np.asarray(tensor), np.asarray(tensor, copy=False), np.asarray(tensor, "f4")):
        assert (found.shape, found.dtype) == ((2, 3), np.float32)
        assert np.shares_memory(found, tensor.get_data_to_numpy())
    assert np.asarray(tensor, np.float64).tolist() == [[0, 1, 2], [3, 4, 5]]
    for copied in (np.array(tensor), np.array(tensor, copy=True), np.asarray(tensor, np.int64)):
        assert not np.shares_memory(copied, tensor.get_data_to_numpy())
    assert np.stack([tensor, tensor]).shape == (2, 2, 3)
    assert float(np.mean(tensor)) == 2.5  # type: ignore[call-overload]


def test_numpy_is_refused_a_view_that_cannot_be() -> None:
    with pytest.raises(ValueError, match="cannot become a host array of float64 without a copy"):
        np.asarray(Tensor(np.zeros(3, np.float32)), np.float64, copy=False)


def test_an_array_of_a_tensor_outlives_it() -> None:
    tensor = Tensor(shape=[3], dtype=DataType.INT32)
    view = np.asarray(tensor)
    tensor.dtype = DataType.FLOAT32  # which drops the data
    del tensor
    view[0] = 5
    assert view.tolist() == [5, 0, 0]


def test_an_array_of_a_tensor_without_a_size_is_an_error() -> None:
    tensor = Tensor._unfilled("x", (-1, 3), np.dtype(np.float32))
    with pytest.raises(ShapeError, match="no data yet"):
        np.asarray(tensor)
    with pytest.raises(TypeError, match=r"shape \[-1, 3\] has no len"):
        len(tensor)


def test_length_and_rows_are_those_of_an_array() -> None:
    tensor = Tensor(np.arange(6).reshape(2, 3))
    assert len(tensor) == 2
    assert [row.tolist() for row in tensor] == [[0, 1, 2], [3, 4, 5]]
    scalar = Tensor(np.array(3, np.float32))
    with pytest.raises(TypeError, match=r"a tensor of shape \[\] has no len\(\)"):
        len(scalar)
    with pytest.raises(TypeError, match="it is a single number"):
        iter(scalar)


@pytest.mark.parametrize("array", [np.zeros(0, np.float32), np.zeros(()), np.zeros((2, 2))])
def test_a_tensor_is_true_as_any_object_is(array: Any) -> None:
    assert Tensor(array)


def test_the_representation_has_shape_type_and_device() -> None:
    tensor = Tensor(np.zeros((2, 3), np.float32))
    tensor.name = "prob"
    assert repr(tensor) == (
        "Tensor('prob', shape=[2, 3], dtype=DataType.FLOAT32, device='None:-1')"
    )


# --- scalars --------------------------------------------------------------------------------------


def test_a_scalar_may_be_given_its_own_shape() -> None:
    tensor = Tensor()
    tensor.shape = []
    tensor.shape = tensor.shape
    assert (tensor.shape, tensor.element_num) == ([], 1)
    tensor.set_data_from_numpy(np.array(3, np.float32))
    tensor.shape = []
    assert tensor.get_data_to_numpy().tolist() == 3
    tensor.shape = [1, 1]
    assert tensor.get_data_to_numpy().tolist() == [[3]]
    tensor.shape = ()
    assert tensor.get_data_to_numpy().tolist() == 3


# --- layouts --------------------------------------------------------------------------------------


def test_an_array_of_as_many_dims_must_have_the_tensors_shape() -> None:
    tensor = Tensor(shape=[1, 3, 4, 4], dtype=DataType.FLOAT32)
    with pytest.raises(ShapeError, match=r"data shape not equal!.*NHWC, and NCHW is wanted"):
        tensor.set_data_from_numpy(np.zeros((1, 4, 4, 3), np.float32))
    for shape in ((48,), (3, 4, 4), (1, 3, 4, 4)):
        tensor.set_data_from_numpy(np.ones(shape, np.float32))
        assert tensor.get_data_to_numpy().shape == (1, 3, 4, 4)
