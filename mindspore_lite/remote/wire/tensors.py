"""Tensors on the wire: described in the frame, with their bytes there or in a block.

    text  name
    u16   element type, the number of MindSpore's TypeId (core/dtypes.py)
    u16   number of dims, then as many i64; -1: not known yet; a single -2: nor is their number
    u8    0: no data, a description    1: data in the frame    2: data in a block
    1:    u32 length, then the bytes
    2:    u32 block, u64 offset, u64 length
Elements are little-endian, in C order.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from mindspore_lite.core import dtypes
from mindspore_lite.core.tensor_info import ANY_RANK
from mindspore_lite.errors import InputError, WireError
from mindspore_lite.remote.wire.fields import Reader, Writer
from mindspore_lite.remote.wire.frames import MAX_BODY
from mindspore_lite.remote.wire.memory import Block, aligned

MAX_RANK = 64
ARRAY_RANK = 64 if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else 32  # of NumPy
MAX_NAME = 4096
MAX_TENSOR = 1 << 62  # bytes of one, counting dims of 0 as 1
INLINE_BYTES = 16 << 10  # up to here copying into the frame is cheaper than a block; guess
INLINE_TOTAL = MAX_BODY >> 1  # of all tensors of a message; the rest is for their names and dims
NO_DATA, IN_FRAME, IN_BLOCK = 0, 1, 2

_PLACE = struct.Struct("<BIQQ")
_FRAME = struct.Struct("<BI")
_U32, _U16 = struct.Struct("<I"), struct.Struct("<H")
_LONGEST_HEAD = 8 + MAX_NAME + 8 * MAX_RANK


class Region(NamedTuple):
    """Where in which block some bytes are."""

    block: int
    offset: int
    size: int


class Described(NamedTuple):
    """A tensor as it was read: its data are bytes, a place, or not there."""

    name: str
    dtype: np.dtype
    shape: tuple[int, ...]
    data: memoryview | Region | None


@lru_cache(maxsize=256)
def _head(name: str, dtype: np.dtype, shape: tuple[int, ...]) -> bytes:
    """Name, type and dims. Requests have the same ones again and again."""
    row = dtypes.from_numpy(dtype)
    if row is None or row.numpy != dtype:  # such as big-endian ones
        raise InputError(
            f"tensor {name!r} has elements of type {dtype}, which cannot be sent to another process"
        )
    out = Writer()
    out.text(name, MAX_NAME)
    out.u16(row.type_id)
    out.dims(shape)
    return bytes(out.data)


@lru_cache(maxsize=256)
def _described(head: bytes) -> tuple[str, np.dtype, tuple[int, ...], int]:
    """Name, type, dims and number of bytes (-1: not known) from a head, checked."""
    body = Reader(memoryview(head))
    name = body.text("the name of a tensor")
    number = body.u16("the type of a tensor")
    row = dtypes.BY_TYPE_ID.get(number)
    if row is None:
        raise WireError(f"tensor {name!r} has elements of type {number}, which is unknown")
    shape = body.dims(f"tensor {name!r}", MAX_RANK)
    if len(shape) > ARRAY_RANK:
        raise WireError(f"tensor {name!r} has {len(shape)} dims, NumPy here takes {ARRAY_RANK}")
    least = min(shape, default=0)
    if least < -1 and shape != ANY_RANK:
        raise WireError(f"tensor {name!r} has a dim of {least}, wanted -1 or more")
    if math.prod(max(dim, 1) for dim in shape) * row.item_bytes > MAX_TENSOR:
        raise WireError(f"tensor {name!r} of {row.name} {list(shape)} is larger than any can be")
    return name, row.numpy, shape, math.prod(shape) * row.item_bytes if least >= 0 else -1


def write_tensor(
    out: Writer, name: str, dtype: np.dtype, shape: tuple[int, ...], data: object = None
) -> None:
    """Append a tensor: a description, or with an array's bytes, or with the Region of them."""
    out.data += _head(name, dtype, shape)
    if data is None:
        out.u8(NO_DATA)
    elif isinstance(data, Region):
        out.data += _PLACE.pack(IN_BLOCK, *data)
    else:
        assert isinstance(data, np.ndarray)
        out.data += _FRAME.pack(IN_FRAME, data.nbytes)
        out.data += data.tobytes()


def read_tensor(body: Reader) -> Described:
    """Take a tensor off a message; its sizes agree with each other afterwards."""
    name, dtype, shape, wanted = _described(body.tensor_head(MAX_NAME))
    place = body.u8("the place of a tensor")
    data: memoryview | Region
    if place == NO_DATA:
        return Described(name, dtype, shape, None)
    if place == IN_FRAME:
        data = body.blob(f"the data of tensor {name!r}", MAX_BODY)
        size = len(data)
    elif place == IN_BLOCK:
        data = Region(*body.place())
        size = data.size
    else:
        raise WireError(f"the data of tensor {name!r} are at place {place}, wanted 0, 1 or 2")
    if size != wanted:
        raise WireError(
            f"tensor {name!r} of {dtype.name} {list(shape)} came with {size} bytes of data"
        )
    return Described(name, dtype, shape, data)


def array_of(tensor: Described, blocks: Mapping[int, Block]) -> np.ndarray:
    """The tensor's data as an array: over the block's memory, or a copy of what was in the frame.

    Raises:
        WireError: There is no data, or it names a block or a place that is not there.
    """
    data = tensor.data
    if data is None:
        raise WireError(f"tensor {tensor.name!r} came without data")
    if isinstance(data, Region):
        block = blocks.get(data.block)
        if block is None:
            raise WireError(f"there is no block {data.block}; was it freed?")
        return np.ndarray(tensor.shape, tensor.dtype, block.part(data.offset, data.size))
    # a copy, for what is in a frame may begin at any address
    return np.ndarray(tensor.shape, tensor.dtype, data).copy()


def read_arrays(body: Reader, blocks: Mapping[int, Block], what: str) -> list[np.ndarray]:
    """Take a list of tensors off a message, as arrays.

    Every request goes through here twice, so the usual case, a small tensor in the frame, is read
    without a call per field; anything else, and anything wrong, is left to read_tensor.
    """
    count = body.count(what)
    found = []
    for _ in range(count):
        array = _small_array(body)
        found.append(array_of(read_tensor(body), blocks) if array is None else array)
    return found


def _small_array(body: Reader) -> np.ndarray | None:
    """The next tensor, if it is in the frame and as it should be; else None, and nothing taken."""
    data, at = body.data, body.at
    try:
        end = at + 8 + _U32.unpack_from(data, at)[0]  # of the name, the type and the rank
        end += 8 * _U16.unpack_from(data, end - 2)[0]
        place, size = _FRAME.unpack_from(data, end)
    except struct.error:
        return None
    start = end + _FRAME.size
    if place != IN_FRAME or end - at > _LONGEST_HEAD or size > len(data) - start:
        return None
    _, dtype, shape, wanted = _described(bytes(data[at:end]))
    if size != wanted:
        return None
    body.at = start + size
    # a copy, for what is in a frame may begin at any address
    return np.ndarray(shape, dtype, data, start).copy()


def write_arrays(
    out: Writer,
    names: Sequence[str],
    arrays: Sequence[np.ndarray],
    places: Sequence[Region | None],
) -> None:
    """Append a list of tensors with data; those without a place travel in the frame."""
    out.u32(len(arrays))
    for name, array, place in zip(names, arrays, places, strict=True):
        write_tensor(out, name, array.dtype, array.shape, array if place is None else place)


def laid_out(
    arrays: Sequence[np.ndarray], block: int = 0, inline: int = INLINE_BYTES
) -> tuple[list[Region | None], int]:
    """Where in a block those larger than `inline` bytes go, and how large it must be."""
    places: list[Region | None] = []
    offset = 0
    left = INLINE_TOTAL
    for array in arrays:
        size = array.nbytes
        if size <= inline and size <= left:
            places.append(None)
            left -= size
        else:
            places.append(Region(block, offset, size))
            offset = aligned(offset + size)
    return places, offset


def put(arrays: Sequence[np.ndarray], places: Sequence[Region | None], block: Block) -> None:
    """Copy arrays to their places."""
    for array, place in zip(arrays, places, strict=True):
        if place is not None:
            raw = block.part(place.offset, place.size)
            np.copyto(np.ndarray(array.shape, array.dtype, raw), array)
