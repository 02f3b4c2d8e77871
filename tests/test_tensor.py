"""tensor.py: what a tensor is made from, what it says of itself, and what it refuses."""

from __future__ import annotations

import copy
import doctest
import pickle
import weakref
from typing import Any

import numpy as np
import pytest

from mindspore_lite.core import dtypes
from mindspore_lite.errors import EngineUnavailableError, InputError
from mindspore_lite.tensor import (
    DataType,
    Format,
    Tensor,
    TensorMeta,
    ms_to_numpy_data_type_map,
    numpy_data_type_map,
)

NAMED = [member for member in DataType if member.name.lower() in dtypes.BY_NAME]


def filled(shape: tuple[int, ...] = (2, 3), dtype: Any = np.float32) -> Tensor:
    return Tensor(np.arange(np.prod(shape)).reshape(shape).astype(dtype))


@pytest.mark.parametrize(
    "thing",
    [DataType, Format, TensorMeta, Tensor, Tensor.set_data_from_numpy, Tensor.get_data_to_numpy],
)
def test_the_example_in_the_docstring_runs(thing: Any) -> None:
    names = {"np": np, "Tensor": Tensor, "DataType": DataType}
    (example,) = doctest.DocTestFinder(recurse=False).find(thing, "it", False, globs=names)
    assert example.examples
    assert doctest.DocTestRunner().run(example).failed == 0


def test_data_types_have_the_numbers_of_the_format() -> None:
    assert {member.name: member.value for member in NAMED} == {
        row.name.upper(): row.type_id
        for row in dtypes.TABLE
        if row.name not in ("complex64", "complex128")
    }
    assert (DataType.UNKNOWN.value, DataType.INVALID.value) == (0, 2147483647)
    assert len(DataType) == len(NAMED) + 2
    assert (DataType.BOOL.value, DataType.FLOAT32.value, DataType.INT64.value) == (30, 43, 35)


def test_formats_have_the_documented_numbers() -> None:
    names = (
        "NCHW NHWC NHWC4 HWKC HWCK KCHW CKHW KHWC CHWK HW HW4 NC NC4 NC4HW4 - NCDHW NWC NCW NDHWC "
        "NC8HW8"
    )
    want = {name: number for number, name in enumerate(names.split()) if name != "-"}
    assert {member.name: member.value for member in Format} == {"DEFAULT": -1, **want}


def test_the_numpy_maps_are_one_to_one() -> None:
    assert numpy_data_type_map[np.bool_] is DataType.BOOL
    assert ms_to_numpy_data_type_map[DataType.FLOAT16] is np.float16
    assert set(ms_to_numpy_data_type_map) == set(NAMED)
    assert {v: k for k, v in ms_to_numpy_data_type_map.items()} == numpy_data_type_map


def test_a_meta_record_has_defaults_and_takes_new_values() -> None:
    meta = TensorMeta()
    assert str(meta) == (
        "name: ,\ndtype: DataType.UNKNOWN,\nshape: [],\nformat: Format.DEFAULT,\n"
        "element_num: 0,\ndata_size: 0."
    )
    meta.shape.append(1)
    meta.name = "out"
    assert (TensorMeta().shape, str(meta).split(",")[0]) == ([], "name: out")


def test_the_default_tensor_is_a_float_scalar() -> None:
    tensor = Tensor()
    assert str(tensor) == (
        "name: ,\ndtype: DataType.FLOAT32,\nshape: [],\nformat: Format.NCHW,\n"
        "element_num: 1,\ndata_size: 4.\ndevice: None:-1."
    )
    assert tensor._filled() is None
    assert tensor.get_data_to_numpy().shape == ()


@pytest.mark.parametrize("member", NAMED)
def test_a_buffer_is_made_of_shape_and_dtype(member: DataType) -> None:
    tensor = Tensor(shape=[2, 3], dtype=member)
    item = np.dtype(ms_to_numpy_data_type_map[member]).itemsize
    assert (tensor.dtype, tensor.shape, tensor.format) == (member, [2, 3], Format.NCHW)
    assert (tensor.element_num, tensor.data_size) == (6, 6 * item)
    assert tensor._filled() is None


@pytest.mark.parametrize("shape", [[2, 3], (2, 3), (np.int32(2), 3), np.array([2, 3])])
def test_any_sequence_of_ints_is_a_shape(shape: Any) -> None:
    tensor = Tensor(shape=shape, dtype=DataType.INT8)
    assert tensor.shape == [2, 3]
    assert {type(dim) for dim in tensor.shape} == {int}
    tensor.shape = shape
    assert tensor.shape == [2, 3]


@pytest.mark.parametrize(
    ("arguments", "missing"),
    [
        ({"shape": [2]}, "lacks dtype;"),
        ({"dtype": DataType.INT8}, "lacks shape;"),
        ({"device": "ascend:0"}, "lacks shape and dtype;"),
        ({"device": "ascend:0", "shape": []}, "lacks dtype;"),
    ],
)
def test_half_a_description_is_refused_with_what_is_missing(arguments: Any, missing: str) -> None:
    with pytest.raises(ValueError, match=missing):
        Tensor(**arguments)


@pytest.mark.parametrize("shape", [[-1], [2, -3], [0, -1]])
def test_a_negative_dim_cannot_be_constructed_but_can_be_set(shape: list[int]) -> None:
    with pytest.raises(ValueError, match="negative dim"):
        Tensor(shape=shape, dtype=DataType.FLOAT32)
    tensor = Tensor()
    tensor.shape = shape
    assert (tensor.shape, tensor.element_num, tensor.data_size) == (shape, 0, 0)


@pytest.mark.parametrize("shape", [[2**31, 2**31], [2**70], [0, 2**62], [-(2**70)]])
def test_a_shape_that_no_memory_could_hold_is_refused(shape: list[int]) -> None:
    with pytest.raises(ValueError, match="more elements than fit"):
        Tensor(shape=shape, dtype=DataType.FLOAT32)
    with pytest.raises(ValueError, match="more elements than fit"):
        Tensor().shape = shape


BAD_ARGUMENTS = [
    ({"shape": 224}, "shape must be list or tuple, but got <class 'int'>."),
    ({"shape": "224"}, "shape must be list or tuple"),
    ({"shape": ["224"]}, "shape element must be int, but got <class 'str'> at index 0."),
    ({"shape": [2, True]}, "shape element must be int, but got <class 'bool'> at index 1."),
    ({"shape": [2], "dtype": 1}, "dtype must be DataType, but got <class 'int'>."),
    ({"device": 1}, "device must be str, but got <class 'int'>."),
    ({"device": "ascend:0:1"}, "device must be 'ascend:index'"),
    ({"device": "cuda:0"}, "now only support ascend device and gpu, but got 'cuda:0'"),
    ({"device": "gpu:0:1"}, "device must be 'ascend:index' or 'gpu:index'"),
    ({"device": "gpu:-1"}, "device id should >= 0"),
    ({"device": ""}, "now only support ascend device"),
    ({"device": "ascend:"}, "device id should >= 0"),
    ({"device": "ascend:-1"}, "device id should >= 0"),
    ({"device": "ascend:x"}, "device id should >= 0"),
    ({"device": "ascend:²"}, "device id should >= 0"),
    ({"tensor": [1.0]}, "tensor must be MindSpore Lite's Tensor._tensor or numpy ndarray"),
    ({"tensor": np.float32(1)}, "tensor must be MindSpore Lite's Tensor._tensor or numpy"),
    ({"tensor": np.array(["a"])}, "Unsupported numpy dtype value"),
    ({"tensor": np.array([None])}, "Unsupported numpy dtype value"),
    ({"tensor": np.zeros(2, np.complex64)}, "Unsupported numpy dtype value"),
    ({"tensor": np.zeros(2, "V0")}, "Unsupported numpy dtype value"),
    ({"tensor": np.zeros(2, [("a", "i4")])}, "Unsupported numpy dtype value"),
    ({"tensor": np.zeros(2), "shape": [3]}, "user set shape is not equal numpy shape"),
    ({"tensor": np.zeros(2), "shape": [1, 2]}, "user set shape is not equal numpy shape"),
    ({"tensor": np.zeros(2), "dtype": DataType.INT8}, "user set dtype is not equal numpy dtype"),
    ({"tensor": Tensor(), "shape": [1]}, "user set shape is not equal numpy shape"),
    ({"tensor": Tensor(), "dtype": DataType.INT8}, "user set dtype is not equal tensor dtype"),
]


@pytest.mark.parametrize(
    ("arguments", "words"), BAD_ARGUMENTS, ids=[row[1] for row in BAD_ARGUMENTS]
)
def test_a_bad_argument_is_a_type_error(arguments: Any, words: str) -> None:
    with pytest.raises(TypeError) as caught:
        Tensor(**arguments)
    assert words in str(caught.value)


@pytest.mark.parametrize("source", ["shape and dtype", "array", "tensor"])
@pytest.mark.parametrize("device", ["ascend:0", "ascend:2147483647", "ascend", "Ascend:1"])
def test_a_device_tensor_is_refused_without_the_hardware(device: str, source: str) -> None:
    sources: dict[str, dict[str, Any]] = {
        "shape and dtype": {"shape": [2], "dtype": DataType.INT8},
        "array": {"tensor": np.zeros(2)},
        "tensor": {"tensor": Tensor()},
    }
    where = device.lower() if ":" in device else f"{device}:0"
    with pytest.raises(EngineUnavailableError, match=f"device '{where}' needs Ascend hardware"):
        Tensor(**sources[source], device=device)


@pytest.mark.parametrize("index", ["2147483648", "9" * 5000])
def test_a_device_index_has_an_upper_bound(index: str) -> None:
    with pytest.raises(ValueError, match="device id should be at most 2147483647"):
        Tensor(shape=[2], dtype=DataType.INT8, device=f"ascend:{index}")


def test_what_is_said_of_the_source_may_be_true() -> None:
    array = np.zeros((2, 3), np.int16)
    tensor = Tensor(array, shape=(2, 3), dtype=DataType.INT16)
    assert Tensor(tensor, [2, 3], DataType.INT16).shape == [2, 3]


def test_a_tensor_of_a_tensor_is_a_copy_with_name_and_format() -> None:
    source = filled()
    source.name, source.format = "x", Format.NHWC
    twin = Tensor(source)
    source.get_data_to_numpy()[0, 0] = 99
    source.name = "y"
    assert (twin.name, twin.format, twin.shape, twin.dtype) == (
        "x",
        Format.NHWC,
        [2, 3],
        DataType.FLOAT32,
    )
    assert twin.get_data_to_numpy().ravel().tolist() == [0, 1, 2, 3, 4, 5]


def test_a_tensor_of_an_unfilled_tensor_is_unfilled() -> None:
    assert Tensor(tensor=Tensor())._filled() is None


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("name", 1, "name must be str, but got <class 'int'>."),
        ("dtype", 1, "dtype must be DataType, but got <class 'int'>."),
        ("dtype", None, "dtype must be DataType"),
        ("shape", 224, "shape must be list or tuple"),
        ("shape", ["224", "224"], "shape element must be int, but got <class 'str'> at index 0."),
        ("format", 1, "format must be Format, but got <class 'int'>."),
    ],
)
def test_a_property_refuses_the_wrong_type(name: str, value: Any, words: str) -> None:
    tensor = Tensor()
    with pytest.raises(TypeError) as caught:
        setattr(tensor, name, value)
    assert words in str(caught.value)
    assert str(tensor) == str(Tensor())


@pytest.mark.parametrize("name", ["element_num", "data_size", "device"])
def test_what_follows_from_the_rest_cannot_be_set(name: str) -> None:
    with pytest.raises(AttributeError):
        setattr(Tensor(), name, 1)


@pytest.mark.parametrize("member", DataType)
def test_every_data_type_reads_back(member: DataType) -> None:
    tensor = Tensor()
    tensor.dtype = member
    assert tensor.dtype is member


def test_name_and_format_read_back() -> None:
    tensor = Tensor()
    tensor.name, tensor.format = "tensor", Format.NHWC4
    assert (tensor.name, tensor.format) == ("tensor", Format.NHWC4)


@pytest.mark.parametrize("order", [("dtype", "shape"), ("shape", "dtype")])
@pytest.mark.parametrize(
    ("member", "size"),
    [
        (DataType.FLOAT32, 1024),
        (DataType.BOOL, 256),
        (DataType.INT32, 1024),
        (DataType.INT64, 2048),
        (DataType.FLOAT16, 512),
    ],
)
def test_shape_and_dtype_may_be_set_in_any_order(
    order: tuple[str, str], member: DataType, size: int
) -> None:
    tensor = Tensor()
    for name in order:
        setattr(tensor, name, {"dtype": member, "shape": [16, 16]}[name])
    assert (tensor.shape, tensor.element_num, tensor.data_size) == ([16, 16], 256, size)
    data = np.ones((16, 16), ms_to_numpy_data_type_map[member])
    tensor.set_data_from_numpy(data)
    assert (tensor.get_data_to_numpy() == data).all()


def test_changing_the_list_that_was_read_does_not_change_the_shape() -> None:
    tensor = filled()
    tensor.shape.append(7)
    assert tensor.shape == [2, 3]


def test_a_shape_of_as_many_elements_keeps_the_data() -> None:
    tensor = filled((2, 3))
    tensor.shape = [3, 2]
    assert tensor.get_data_to_numpy().tolist() == [[0, 1], [2, 3], [4, 5]]


@pytest.mark.parametrize("shape", [[4, 2], [], [-2, -3], [-1, 6], [0]])
def test_any_other_shape_drops_the_data(shape: list[int]) -> None:
    tensor = filled((2, 3))
    tensor.shape = shape
    assert tensor._filled() is None
    assert tensor.shape == shape


def test_empty_data_does_not_take_an_unknown_shape() -> None:
    tensor = Tensor(np.zeros((0, 2)))
    tensor.shape = [-1, 2]
    assert tensor._filled() is None
    tensor = Tensor(np.zeros((0, 2)))
    tensor.shape = [5, 0]
    kept = tensor._filled()
    assert kept is not None
    assert kept.shape == (5, 0)


def test_another_dtype_drops_the_data_and_the_same_keeps_it() -> None:
    tensor = filled()
    tensor.dtype = DataType.FLOAT32
    assert tensor._filled() is not None
    tensor.dtype = DataType.INT32
    assert tensor._filled() is None
    assert tensor.get_data_to_numpy().dtype == np.int32


def test_format_is_kept_when_data_is_set() -> None:
    tensor = filled()
    tensor.name, tensor.format = "x", Format.NHWC
    tensor.set_data_from_numpy(np.zeros((2, 3), np.float32))
    assert (tensor.name, tensor.format) == ("x", Format.NHWC)


def test_a_wrapped_array_describes_itself() -> None:
    array = np.zeros((2, 3), np.int16)
    tensor = Tensor._wrap("out", array)
    assert str(tensor) == (
        "name: out,\ndtype: DataType.INT16,\nshape: [2, 3],\nformat: Format.NCHW,\n"
        "element_num: 6,\ndata_size: 12.\ndevice: None:-1."
    )
    assert tensor._filled() is array


def test_a_type_without_a_public_name_reads_none_and_still_takes_its_data() -> None:
    tensor = Tensor._unfilled("x", (2,), np.dtype(np.complex64))
    assert (tensor.dtype, tensor.data_size, tensor._filled()) == (None, 16, None)
    tensor.set_data_from_numpy(np.array([1j, 2], np.complex64))
    assert tensor.get_data_to_numpy().tolist() == [1j, 2]


def test_bfloat16_is_not_taken_for_float16() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="comes with the onnx packages")
    tensor = Tensor._unfilled("x", (2,), np.dtype(ml_dtypes.bfloat16))
    tensor.set_data_from_numpy(np.ones(2, ml_dtypes.bfloat16))
    found = tensor.dtype, tensor.get_data_to_numpy().dtype
    assert found == (DataType.BFLOAT16, ml_dtypes.bfloat16)


def test_a_bfloat16_tensor_takes_float32_and_rounds_it() -> None:
    tensor = Tensor(shape=[2], dtype=DataType.BFLOAT16)
    tensor.set_data_from_numpy(np.array([1.001, 3], np.float32))
    assert tensor.get_data_to_numpy().tolist() == [1.0, 3.0]
    with pytest.raises(InputError, match="data type not equal! Numpy type: float16"):
        tensor.set_data_from_numpy(np.ones(2, np.float16))


def test_an_unfilled_tensor_keeps_what_it_was_told() -> None:
    tensor = Tensor._unfilled("x", (-1, 3), np.dtype("int32"))
    assert (tensor.name, tensor.shape, tensor.dtype) == ("x", [-1, 3], DataType.INT32)
    assert tensor.format is Format.NCHW


def test_a_resize_drops_the_data_only_if_the_shape_changed() -> None:
    tensor = filled((2, 3))
    tensor._reshape([2, 3])
    assert tensor._filled() is not None
    tensor._reshape([3, 2])
    assert (tensor._filled(), tensor.shape) == (None, [3, 2])


def test_a_stray_attribute_is_refused() -> None:
    with pytest.raises(AttributeError):
        Tensor().extra = 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t))])
def test_a_tensor_can_be_copied_and_pickled(duplicate: Any) -> None:
    tensor = filled()
    tensor.name, tensor.format = "x", Format.NHWC
    again = duplicate(tensor)
    assert str(again) == str(tensor)
    assert again.get_data_to_numpy().tolist() == tensor.get_data_to_numpy().tolist()
    assert not np.shares_memory(again.get_data_to_numpy(), tensor.get_data_to_numpy())


def test_a_tensor_can_be_referred_to_weakly() -> None:
    tensor = Tensor()
    assert weakref.ref(tensor)() is tensor


def test_a_description_says_where_the_data_is() -> None:
    meta = TensorMeta(name="prob")
    with pytest.raises(AttributeError, match=r"get_outputs\(\) describes .* predict\(\) returns"):
        meta.get_data_to_numpy()
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        meta.nothing  # noqa: B018
    assert copy.deepcopy(meta) == pickle.loads(pickle.dumps(meta)) == meta
