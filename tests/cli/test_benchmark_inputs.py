"""benchmark_inputs.py: values by type, the same ones each time; files of just the right size."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from mindspore_lite.cli.benchmark_inputs import arrays_for, random
from mindspore_lite.errors import InputError
from mindspore_lite.tensor import DataType, Tensor


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [
        (np.float16, 0.1, 1.0),
        (ml_dtypes.bfloat16, 0.1, 1.0),
        (np.float32, 0.1, 1.0),
        (np.float64, 0.1, 1.0),
        (np.int8, -127, 127),
        (np.uint8, 0, 254),
        (np.int16, 0, 1),
        (np.int32, 0, 1),
        (np.int64, 0, 1),
        (np.bool_, 0, 1),
    ],
)
def test_values_fill_the_range_of_their_type(dtype: type, low: float, high: float) -> None:
    found = random(np.dtype(dtype), [100, 100], np.random.default_rng(0))
    assert (found.dtype, found.shape) == (dtype, (100, 100))
    values = found.astype(np.float64)
    room = 0.01 * (high - low)
    assert low - room <= values.min() <= low + room
    assert high - room <= values.max() <= high + room


def test_other_types_are_bytes_in_a_row() -> None:
    found = random(np.dtype(np.uint16), [2, 200], np.random.default_rng(0))
    assert found.tobytes() == bytes(i % 256 for i in range(800))


def test_values_are_the_same_each_time_and_differ_between_inputs() -> None:
    tensors = [Tensor(shape=[64], dtype=DataType.FLOAT32) for _ in range(2)]
    first, second = (arrays_for(tensors, [[64], [64]], ()) for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    assert not np.array_equal(*first)


def test_a_file_without_an_end_is_not_read_to_it() -> None:
    tensor = Tensor(shape=[4], dtype=DataType.INT32)
    with pytest.raises(InputError, match="required: 16, in fact: 17"):
        arrays_for([tensor], [[4]], ["/dev/zero"])
