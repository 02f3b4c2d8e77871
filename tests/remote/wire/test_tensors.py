from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from mindspore_lite.core import dtypes
from mindspore_lite.core.tensor_info import ANY_RANK
from mindspore_lite.errors import InputError, WireError
from mindspore_lite.remote.wire import tensors
from mindspore_lite.remote.wire.fields import Reader, Writer
from mindspore_lite.remote.wire.frames import MAX_BODY
from mindspore_lite.remote.wire.memory import Block
from mindspore_lite.remote.wire.tensors import (
    ARRAY_RANK,
    INLINE_BYTES,
    INLINE_TOTAL,
    MAX_NAME,
    Described,
    Region,
    array_of,
    laid_out,
    put,
    read_tensor,
    write_arrays,
    write_tensor,
)

TYPES = [pytest.param(row.numpy, id=row.name) for row in dtypes.TABLE]


def sent(array: np.ndarray) -> np.ndarray:
    """Through a frame and back."""
    out = Writer()
    write_tensor(out, "x", array.dtype, array.shape, array)
    body = Reader(memoryview(out.data))
    found = array_of(read_tensor(body), {})
    body.end("a tensor")
    return found


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(), (3,), (0,), (2, 0, 3), (1,) * ARRAY_RANK])
def test_every_type_comes_back_from_a_frame(dtype: np.dtype, shape: tuple[int, ...]) -> None:
    array = np.ones(shape, dtype)
    found = sent(array)
    assert (found.dtype, found.shape) == (dtype, shape)
    assert found.tobytes() == array.tobytes()
    assert found.flags.writeable
    assert found.flags.owndata


@pytest.mark.parametrize("dtype", TYPES)
def test_every_type_comes_back_from_a_block(dtype: np.dtype) -> None:
    block = Block.make(5, 1000)
    arrays = [np.ones((2, 3), dtype), np.zeros(0, dtype), np.array(1, dtype)]
    places, size = laid_out(arrays, block=5, inline=-1)
    assert [place and place.offset % 64 for place in places] == [0, 0, 0]
    put(arrays, places, block)
    out = Writer()
    write_arrays(out, ["a", "b", "c"], arrays, places)
    body = Reader(memoryview(out.data))
    found = body.items("tensors", lambda: array_of(read_tensor(body), {5: block}))
    assert size <= 1000
    for array, back in zip(arrays, found, strict=True):
        assert (back.dtype, back.shape) == (array.dtype, array.shape)
        assert back.tobytes() == array.tobytes()
    block.close()


def test_an_array_over_a_block_is_no_copy() -> None:
    block = Block.make(5, 64)
    tensor = Described("x", np.dtype(np.int32), (2,), Region(5, 0, 8))
    array_of(tensor, {5: block})[1] = 7
    assert bytes(block.view[4:8]) == b"\7\0\0\0"
    block.close()


@given(
    hnp.arrays(
        st.sampled_from([row.numpy for row in dtypes.TABLE if row.name != "bfloat16"]),
        hnp.array_shapes(min_dims=0, max_dims=5, min_side=0),
    )
)
def test_any_array_comes_back(array: np.ndarray) -> None:
    assert sent(array).tobytes() == array.tobytes()
    assert sent(array.T).tobytes() == array.T.tobytes()  # one that is not contiguous


@pytest.mark.parametrize("shape", [(-1, 3), ANY_RANK, (), (0, -1)])
def test_a_description_comes_back(shape: tuple[int, ...]) -> None:
    out = Writer()
    write_tensor(out, "y", np.dtype(ml_dtypes.bfloat16), shape)
    found = read_tensor(Reader(memoryview(out.data)))
    assert found == Described("y", np.dtype(ml_dtypes.bfloat16), shape, None)


@pytest.mark.parametrize("dtype", [">f4", "U3", "M8[s]", object, "V8"])
def test_types_that_the_wire_has_not_are_refused(dtype: object) -> None:
    array = np.zeros(2, dtype)  # type: ignore[call-overload]
    with pytest.raises(InputError, match="cannot be sent to another process"):
        write_tensor(Writer(), "x", array.dtype, array.shape, array)


def test_a_name_that_is_too_long_is_refused_where_it_is_written() -> None:
    with pytest.raises(InputError, match=f"{MAX_NAME + 1} bytes, at most {MAX_NAME}"):
        write_tensor(Writer(), "x" * (MAX_NAME + 1), np.dtype(np.int8), ())
    write_tensor(Writer(), "x" * MAX_NAME, np.dtype(np.int8), ())


@pytest.mark.parametrize("shape", [(0, 1 << 62), (1 << 40, 1 << 40, 0), (1 << 62, -1)])
def test_shapes_that_no_array_can_have_are_refused(shape: tuple[int, ...]) -> None:
    out = Writer()
    write_tensor(out, "x", np.dtype(np.float32), shape)
    with pytest.raises(WireError, match="larger than any can be"):
        read_tensor(Reader(memoryview(out.data)))


def test_small_arrays_travel_in_the_frame() -> None:
    arrays = [np.zeros(size, np.uint8) for size in (INLINE_BYTES, INLINE_BYTES + 1, 100_000, 0)]
    places, size = laid_out(arrays, block=2)
    first = Region(2, 0, INLINE_BYTES + 1)
    second = Region(2, INLINE_BYTES + 64, 100_000)
    assert places == [None, first, second, None]
    assert size == INLINE_BYTES + 64 + 100_032


def test_many_small_arrays_do_not_outgrow_a_frame() -> None:
    count = 2 * MAX_BODY // INLINE_BYTES
    arrays = [np.zeros(INLINE_BYTES, np.uint8)] * count
    places, size = laid_out(arrays)
    inline = places.count(None)
    assert inline * INLINE_BYTES == INLINE_TOTAL
    assert size == (count - inline) * INLINE_BYTES


@given(st.binary(max_size=80))
def test_any_bytes_are_a_tensor_or_a_wire_error(data: bytes) -> None:
    for start in (b"", b"\1\0\0\0x", b"\1\0\0\0x\x2b\0", b"\0\0\0\0\x2b\0\1\0"):
        try:
            tensor = read_tensor(Reader(memoryview(start + data)))
            array_of(tensor, {})
        except WireError:
            pass


def test_more_dims_than_arrays_can_have_are_a_wire_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensors, "ARRAY_RANK", 3)  # as an older NumPy has fewer
    out = Writer()
    tensors.write_tensor(out, "four", np.dtype(np.int8), (1, 1, 1, 1))
    with pytest.raises(WireError, match="'four' has 4 dims, NumPy here takes 3"):
        read_tensor(Reader(memoryview(out.data)))
