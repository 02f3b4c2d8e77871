"""synthetic.py: made-up inputs that models can bear."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from mindspore_lite.core import synthetic
from mindspore_lite.errors import ResourceError

TYPES = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128", ml_dtypes.bfloat16),
]


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_every_type_gets_an_array_of_its_own(kind: object) -> None:
    dtype = np.dtype(kind)  # type: ignore[call-overload]
    made = synthetic.array(dtype, (3, 4))
    assert (made.dtype, made.shape) == (dtype, (3, 4))
    assert made.flags.c_contiguous
    values = np.abs(made.astype(np.complex128))
    assert values.min() >= 0
    assert values.max() <= 1


def test_whole_numbers_are_indices_that_any_table_has() -> None:
    made = synthetic.array(np.dtype(np.int64), (100,))
    assert set(made.tolist()) == {0, 1}


def test_values_are_repeatable_and_differ_by_seed() -> None:
    one, same, other = (synthetic.array(np.dtype(np.float32), (9,), seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("shape", [(), (0, 3), (1,)])
def test_odd_shapes_are_made_too(shape: tuple[int, ...]) -> None:
    for kind in ("float32", "int64"):
        assert synthetic.array(np.dtype(kind), shape).shape == shape


def test_open_dims_get_a_size() -> None:
    assert synthetic.closed((-1, 3, -1)) == [1, 3, 1]
    assert synthetic.closed((-1, 3), 16) == [16, 3]
    assert synthetic.closed(()) == []


def test_an_input_that_would_fill_the_machine_is_not_made_up() -> None:
    with pytest.raises(ResourceError, match=r"shape \[2, 1099511627776\] takes 8388608 MiB"):
        synthetic.array(np.dtype(np.float32), (2, 1 << 40))
