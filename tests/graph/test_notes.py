"""Notes are JSON that may be missing, damaged or forged."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mindspore_lite.errors import ModelFileError
from mindspore_lite.graph.notes import Notes, read_notes, type_text, value_of, write_notes

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["writer", "dims", "types", "values", "border", "x"]), inner
        )
    ),
)


def test_notes_come_back() -> None:
    dims, types, values = {"x": ["batch", 3, None]}, {"s": "abc"}, {"main:a:1": [None, "batch"]}
    notes = Notes("mslite 1", dims, types, values, '{"inputs": {}}')
    assert read_notes(write_notes(notes)) == notes


@pytest.mark.parametrize("text", [None, 3, "", "[]", "null", "{", '{"writer": 1}'])
def test_notes_that_make_no_sense_say_nothing(text: Any) -> None:
    assert read_notes(text) == Notes()


@settings(deadline=None)
@given(_JSON)
def test_no_json_makes_reading_fail(held: Any) -> None:
    import json

    assert isinstance(read_notes(json.dumps(held)), Notes)


@pytest.mark.parametrize(
    "kind",
    [
        ir.TensorType(ir.DataType.STRING),
        ir.SequenceType(ir.TensorType(ir.DataType.FLOAT)),
        ir.OptionalType(ir.TensorType(ir.DataType.INT64)),
    ],
    ids=str,
)
def test_a_type_comes_back(kind: Any) -> None:
    found = value_of("x", type_text(ir.Value(name="x", type=kind)))
    assert (found.name, found.type) == ("x", kind)


@pytest.mark.parametrize("text", ["?", "AAAA", "/////w=="])
def test_a_type_that_makes_no_sense_is_an_error_of_the_file(text: str) -> None:
    with pytest.raises(ModelFileError, match="input 'x' makes no sense"):
        value_of("x", text)
