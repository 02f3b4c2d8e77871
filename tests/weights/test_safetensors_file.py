"""weights/safetensors_file.py: files of tensors, mapped, as untrusted input."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path
from random import Random
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from fuzzing.mutate_bytes import changed_bytes
from hypothesis import given
from hypothesis import strategies as st

from mindspore_lite.errors import LiteError, ModelFileError
from mindspore_lite.weights.safetensors_file import read_safetensors

TYPES = [
    np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64,
    np.float16, ml_dtypes.bfloat16, np.float32, np.float64,
]  # fmt: skip


def file_of(head: dict[str, Any] | bytes, data: bytes = b"", pad: int = 8) -> bytes:
    """The bytes of a file, whose header is padded to a multiple of some bytes."""
    text = head if isinstance(head, bytes) else json.dumps(head).encode()
    text += b" " * (-len(text) % pad)
    return struct.pack("<Q", len(text)) + text + data


def entry(kind: str, shape: list[int], start: int, end: int) -> dict[str, Any]:
    return {"dtype": kind, "shape": shape, "data_offsets": [start, end]}


def written(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "x.safetensors"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("dtype", TYPES)
def test_every_type_of_a_tensor_is_read(tmp_path: Path, dtype: Any) -> None:
    from safetensors.numpy import save_file

    wanted = np.arange(6).reshape(2, 3).astype(dtype)
    save_file({"w": wanted}, tmp_path / "x.safetensors")
    ((name, array),) = read_safetensors(tmp_path / "x.safetensors")
    assert (name, array.dtype, array.shape) == ("w", wanted.dtype, (2, 3))
    np.testing.assert_array_equal(array, wanted)


def test_tensors_come_in_the_order_of_the_file(tmp_path: Path) -> None:
    head = {
        "__metadata__": {"format": "np"},
        "z": entry("F32", [2], 6, 14),
        "a": entry("BF16", [3], 0, 6),
        "m": entry("F32", [0, 4], 14, 14),
        "s": entry("I64", [], 14, 22),
    }
    data = np.array([1, 2, 3], ml_dtypes.bfloat16).tobytes() + struct.pack("<ffq", 4, 5, 6)
    found = dict(read_safetensors(written(tmp_path, file_of(head, data))))
    assert list(found)[:2] == ["a", "z"]
    assert {name: array.tolist() for name, array in found.items()} == {
        "a": [1, 2, 3],
        "z": [4, 5],
        "m": [],
        "s": 6,
    }
    assert found["m"].shape == (0, 4)


def test_tensors_are_mapped_and_writing_leaves_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, file_of({"w": entry("F32", [2], 0, 8)}, struct.pack("<ff", 1, 2)))
    before = path.read_bytes()
    ((_, array),) = read_safetensors(path)
    assert not array.flags.owndata
    array[0] = 9
    assert array.tolist() == [9, 2]
    assert path.read_bytes() == before


@pytest.mark.parametrize("pad", [1, 2, 3])
def test_a_tensor_that_lies_anyhow_is_aligned(tmp_path: Path, pad: int) -> None:
    head = file_of(json.dumps({"w": entry("F32", [2], 0, 8)}).encode() + b" " * pad, pad=1)
    ((_, array),) = read_safetensors(written(tmp_path, head + struct.pack("<ff", 1, 2)))
    assert array.flags.aligned and array.tolist() == [1, 2]


def test_any_byte_but_zero_is_true(tmp_path: Path) -> None:
    path = written(tmp_path, file_of({"w": entry("BOOL", [3], 0, 3)}, b"\0\1\7"))
    ((_, array),) = read_safetensors(path)
    assert array.view(np.uint8).tolist() == [0, 1, 1]


@pytest.mark.parametrize(("kind", "size"), [("F8_E4M3", 1), ("F8_E5M2", 1), ("C64", 8)])
def test_a_type_that_no_tensor_has_is_refused(tmp_path: Path, kind: str, size: int) -> None:
    path = written(tmp_path, file_of({"w": entry(kind, [2], 0, 2 * size)}, bytes(2 * size)))
    with pytest.raises(ModelFileError, match=f"tensor 'w' is of type {kind}, wanted one of BOOL"):
        list(read_safetensors(path))


BAD = {
    "empty": b"",
    "no header": b"\0" * 7,
    "a header longer than the file": struct.pack("<Q", 100) + b"{}",
    "a header longer than any": struct.pack("<Q", 2**63) + b"{}",
    "no JSON": file_of(b"nonsense"),
    "no UTF-8": file_of(b'{"\xff": 1}'),
    "brackets": file_of(b"[" * 100_000),
    "a list": file_of(b"[]"),
    "an unknown type": file_of({"w": entry("F3", [1], 0, 4)}, bytes(4)),
    "less than the file holds": file_of({"w": entry("F32", [1], 0, 4)}, bytes(8)),
    "more than the file holds": file_of({"w": entry("F32", [2], 0, 8)}, bytes(4)),
    "a shape of another size": file_of({"w": entry("F32", [3], 0, 4)}, bytes(4)),
    "a shape beyond all numbers": file_of({"w": entry("F32", [2**62, 2**62], 0, 4)}, bytes(4)),
    "a negative dim": file_of({"w": entry("F32", [-1], 0, 4)}, bytes(4)),
    "tensors that overlap": file_of(
        {"a": entry("F32", [1], 0, 4), "b": entry("F32", [1], 0, 4)}, bytes(4)
    ),
    "a gap": file_of({"a": entry("F32", [1], 0, 4), "b": entry("F32", [1], 8, 12)}, bytes(12)),
    "more dims than NumPy has": file_of({"w": entry("F32", [1] * 100, 0, 4)}, bytes(4)),
    "no elements of too many": file_of({"w": entry("F32", [0, 2**40, 2**40], 0, 0)}),
}


@pytest.mark.parametrize("data", BAD.values(), ids=BAD.keys())
def test_a_bad_file_is_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(ModelFileError):
        list(read_safetensors(written(tmp_path, data)))


def test_a_pipe_and_a_folder_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.safetensors")
    for path in (tmp_path / "pipe.safetensors", tmp_path, tmp_path / "missing.safetensors"):
        with pytest.raises(ModelFileError, match="cannot read"):
            list(read_safetensors(path))


def test_arrays_stay_when_the_file_is_cut_off(tmp_path: Path) -> None:
    path = written(tmp_path, file_of({"w": entry("F32", [2048], 0, 8192)}, b"\1" * 8192))
    ((_, array),) = read_safetensors(path)
    os.truncate(path, 0)  # the pages of a mapping would be gone, and the process with them
    assert array.tobytes() == b"\1" * 8192


WHOLE = file_of(
    {
        "a": entry("F32", [2, 2], 0, 16),
        "b": entry("BF16", [3], 16, 22),
        "c": entry("BOOL", [2], 22, 24),
    },
    bytes(range(24)),
)


@given(seed=st.integers(0, 2**32))
def test_a_damaged_file_is_an_error_at_worst(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "damaged.safetensors"
    path.write_bytes(changed_bytes(WHOLE, Random(seed)))
    try:
        for _, array in read_safetensors(path):
            assert array.nbytes <= len(WHOLE) + 40
            array.sum()
    except LiteError:
        pass
