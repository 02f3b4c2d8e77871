"""dtypes.py: one table, seen from every format."""

from __future__ import annotations

import numpy as np
import pytest

from mindspore_lite.core import dtypes


@pytest.mark.parametrize("row", dtypes.TABLE, ids=lambda row: row.name)
def test_a_row_is_found_by_each_of_its_names(row: dtypes.DType) -> None:
    assert dtypes.BY_NAME[row.name] is row
    assert dtypes.BY_ONNX[row.onnx] is row
    assert dtypes.BY_TYPE_ID[row.type_id] is row


@pytest.mark.parametrize("row", dtypes.TABLE, ids=lambda row: row.name)
def test_a_row_knows_its_numpy_type(row: dtypes.DType) -> None:
    if row.name == "bfloat16":
        pytest.importorskip("ml_dtypes", reason="comes with the onnx packages")
    assert row.numpy.itemsize == row.item_bytes
    assert dtypes.from_numpy(row.numpy) is row


@pytest.mark.parametrize("column", ["name", "type_id", "onnx"])
def test_no_two_rows_share_a_name_or_number(column: str) -> None:
    values = [getattr(row, column) for row in dtypes.TABLE]
    assert len(set(values)) == len(values)


@pytest.mark.parametrize(
    ("number", "name"),
    [(1, "float32"), (6, "int32"), (7, "int64"), (9, "bool"), (11, "float64"), (17, "float64")],
)
def test_the_onnx_numbers_are_those_of_the_format(number: int, name: str) -> None:
    assert dtypes.BY_ONNX[number].name == name


@pytest.mark.parametrize(("number", "name"), [(31, "int32"), (36, "uint32"), (41, "float32")])
def test_a_sizeless_type_id_means_the_usual_width(number: int, name: str) -> None:
    assert dtypes.BY_TYPE_ID[number].name == name


@pytest.mark.parametrize(
    ("dtype", "name"), [(">f4", "float32"), ("longlong", "int64"), ("<u2", "uint16"), ("?", "bool")]
)
def test_byte_order_and_spelling_of_a_numpy_type_do_not_matter(dtype: str, name: str) -> None:
    found = dtypes.from_numpy(np.dtype(dtype))
    assert found is dtypes.BY_NAME[name]


@pytest.mark.parametrize("dtype", ["O", "U4", "S4", "M8[s]", "V8", "longdouble"])
def test_a_numpy_type_without_a_row_gives_none(dtype: str) -> None:
    assert dtypes.from_numpy(np.dtype(dtype)) is None


def test_short_names_are_letters_and_bits() -> None:
    found = [row.short for row in dtypes.TABLE]
    assert found[:2] == ["bool", "i8"]
    assert {"u64", "f16", "bf16", "c128"} <= set(found)
    assert len(set(found)) == len(found)
