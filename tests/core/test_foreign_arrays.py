"""core/foreign_arrays.py: arrays of other libraries, lists and pictures as inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from PIL import Image

from mindspore_lite.core.tensor_info import TensorInfo
from mindspore_lite.errors import InputError, ShapeError
from mindspore_lite.serving import feeds
from mindspore_lite.tensor import DataType, Tensor

torch = pytest.importorskip("torch", exc_type=ImportError)

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def info(dtype: Any = np.float32, shape: tuple[int, ...] = (2, 3)) -> TensorInfo:
    return TensorInfo("x", np.dtype(dtype), shape)


def one(wanted: TensorInfo, given: Any) -> np.ndarray:
    (found,) = feeds.arrays([wanted], [given])
    return found


class Frame:
    """As a DataFrame of pandas looks to NumPy."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self.array


Frame.__module__ = "pandas.core.frame"


def test_a_torch_tensor_is_taken_without_a_copy() -> None:
    tensor = torch.from_numpy(X.copy())
    found = one(info(), tensor)
    np.testing.assert_array_equal(found, X)
    tensor[0, 0] = 9
    assert found[0, 0] == 9


@pytest.mark.parametrize(
    "tensor",
    [
        torch.from_numpy(X).clone().requires_grad_(),
        torch.nn.Parameter(torch.from_numpy(X.copy())),
        torch.from_numpy(np.asfortranarray(X)),
    ],
)
def test_gradients_and_strides_do_not_matter(tensor: Any) -> None:
    np.testing.assert_array_equal(one(info(), tensor), X)


def test_a_sign_that_torch_only_notes_is_not_lost() -> None:
    noted = torch.complex(torch.zeros(2, 3), torch.from_numpy(X)).conj().imag
    np.testing.assert_array_equal(one(info(), noted), -X)
    np.testing.assert_array_equal(Tensor(noted).get_data_to_numpy(), -X)
    np.testing.assert_array_equal(Tensor.from_dlpack(noted).get_data_to_numpy(), -X)


def test_a_torch_tensor_without_numbers_is_refused() -> None:
    with pytest.raises(InputError, match="a torch Tensor holds no numbers that can be read"):
        one(info(), torch.empty(2, 3, device="meta"))


def test_a_torch_tensor_of_another_type_is_told_how_to_convert_it() -> None:
    with pytest.raises(InputError, match=r"a torch Tensor of float64 .*\.to\(torch\.float32\)"):
        one(info(), torch.zeros(2, 3, dtype=torch.float64))


def test_a_torch_tensor_in_another_layout_is_refused() -> None:
    with pytest.raises(ShapeError, match="looks like NHWC"):
        one(info(shape=(1, 3, 8, 8)), torch.zeros(1, 8, 8, 3))


def test_a_tensor_is_made_of_and_filled_with_a_torch_tensor() -> None:
    assert Tensor(torch.from_numpy(X)).shape == [2, 3]
    tensor = Tensor(shape=[2, 3], dtype=DataType.FLOAT32)
    tensor.set_data_from_numpy(torch.from_numpy(X))  # type: ignore[arg-type]
    np.testing.assert_array_equal(tensor.get_data_to_numpy(), X)


@pytest.mark.parametrize(
    ("dtype", "given", "want"),
    [
        (np.float32, X.tolist(), X),
        (np.float32, [[0, 1, 2], [3, 4, 5]], X),
        (np.int64, [[0, 1, 2], [3, 4, 5]], X),
        (np.uint8, ((0, 1, 2), (3, 4, 5)), X),
        (np.bool_, [[False, True, False], [True, True, True]], X % 2 + X // 3 > 0),
    ],
)
def test_lists_of_numbers_are_taken(dtype: Any, given: Any, want: np.ndarray) -> None:
    found = one(info(dtype), given)
    assert found.dtype == dtype
    assert found.tolist() == want.tolist()


def test_a_number_is_taken_for_a_scalar() -> None:
    assert one(info(shape=()), 0.5).tolist() == 0.5
    assert one(info(np.int64, ()), np.int32(7)).tolist() == 7


@pytest.mark.parametrize(
    ("dtype", "given", "words"),
    [
        (
            np.int64,
            [[0.5, 1, 2], [3, 4, 5]],
            r"data type not equal!.*np\.array\(numbers, np\.int64",
        ),
        (np.float32, [[True] * 3] * 2, "data type not equal!"),
        (np.float32, [[1, 2, 3], [4, 5]], "lists of different lengths"),
        (np.uint8, [[0, 1, 2], [3, 4, 256]], "numbers that uint8 cannot hold"),
        (np.uint8, [[0, 1, 2], [3, 4, -1]], "numbers that uint8 cannot hold"),
        (np.float16, [[0, 1, 2], [3, 4, 1e9]], "numbers that float16 cannot hold"),
        (np.float16, [[0, 1, 2], [3, 4, 70000]], "numbers that float16 cannot hold"),
        (np.float32, [[1, 2, 3]], "data size not equal!"),
    ],
)
def test_lists_that_do_not_fit_are_refused(dtype: Any, given: Any, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        one(info(dtype), given)
    assert caught.value.input_name == "x"


@pytest.mark.parametrize("given", ["abc", [["a"] * 3] * 2, [None], object()])
def test_what_holds_no_numbers_is_a_type_error(given: Any) -> None:
    with pytest.raises(TypeError, match="inputs element must be Tensor, of numpy"):
        one(info(), given)


def test_a_frame_of_the_right_type_is_taken() -> None:
    np.testing.assert_array_equal(one(info(), Frame(X)), X)


@pytest.mark.parametrize("array", [X.astype(np.float64), X.astype(object)])
def test_a_frame_of_another_type_names_the_conversion(array: np.ndarray) -> None:
    with pytest.raises(InputError, match=r"a pandas Frame of .*to_numpy\(\)\.astype\(np\.float32"):
        one(info(), Frame(array))


def test_a_picture_is_taken_where_the_model_takes_its_pixels() -> None:
    picture = Image.new("RGB", (5, 4), (1, 2, 3))
    found = one(info(np.uint8, (1, 4, 5, 3)), picture)
    assert found[0, 0, 0].tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("wanted", "mode"),
    [
        (info(np.float32, (1, 3, 4, 5)), "RGB"),
        (info(np.uint8, (1, 3, 4, 5)), "RGB"),
        (info(np.uint8, (1, 1, 4, 5)), "P"),  # whose pixels are numbers of colours
    ],
)
def test_other_pictures_name_the_conversion(wanted: TensorInfo, mode: str) -> None:
    with pytest.raises(InputError, match=r"a PIL Image.*transpose\(2, 0, 1\)\[None\]"):
        one(wanted, Image.new(mode, (5, 4)))


def test_a_masked_array_is_refused() -> None:
    with pytest.raises(InputError, match=r"give array\.filled\(value\)"):
        one(info(), np.ma.masked_equal(X, 3))


@pytest.mark.parametrize("given", [[1.0, 2.0], Image.new("L", (2, 2)), Frame(X)])
def test_a_tensor_of_something_else_names_the_conversion(given: Any) -> None:
    with pytest.raises(TypeError, match=r"numpy ndarray, but got .*>\. .*np\."):
        Tensor(given)
