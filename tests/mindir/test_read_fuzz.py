"""Random and damaged files: reading and translating ends in an error of ours, or in a graph."""

from __future__ import annotations

import contextlib
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.mutate import mutated
from support.running import DATA

from mindspore_lite.errors import LiteError, ModelFileError
from mindspore_lite.graph.from_mindir import from_mindir
from mindspore_lite.mindir.read import read

NAMES = ("io_nested_tuple", "inplace_chain", "mint_reduce", "call_lazy_inline_tuple")
FILES = {name: (DATA / "nets" / f"{name}.mindir").read_bytes() for name in NAMES}
FUZZ = settings(max_examples=150, deadline=None, derandomize=True)


def attempt(data: bytes) -> None:
    try:
        model = read(memoryview(data))
    except ModelFileError:
        return
    with contextlib.suppress(LiteError):
        from_mindir(model)


@FUZZ
@given(st.binary(max_size=400))
def test_random_bytes_end_in_our_error(data: bytes) -> None:
    attempt(data)


@FUZZ
@given(st.binary(max_size=200))
def test_random_bytes_inside_a_graph_end_in_our_error(payload: bytes) -> None:
    length = bytes([len(payload) & 0x7F | 0x80, len(payload) >> 7])
    attempt(b"\x3a" + length + payload)


@pytest.mark.parametrize("name", NAMES)
@FUZZ
@given(changes=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), min_size=1, max_size=6))
def test_changed_bytes_end_in_our_error_or_a_model(
    name: str, changes: list[tuple[float, int]]
) -> None:
    data = bytearray(FILES[name])
    for place, byte in changes:
        data[int(place * (len(data) - 1))] = byte
    attempt(bytes(data))


@pytest.mark.parametrize("name", NAMES)
@FUZZ
@given(start=st.floats(0, 1), length=st.integers(1, 60), insert=st.binary(max_size=30))
def test_cut_and_inserted_bytes_end_in_our_error_or_a_model(
    name: str, start: float, length: int, insert: bytes
) -> None:
    data = FILES[name]
    at = int(start * len(data))
    attempt(data[:at] + insert + data[at + length :])


@pytest.mark.parametrize("seed", range(20))
def test_files_with_damaged_fields_end_in_our_error_or_a_model(seed: int) -> None:
    """A little of what scripts/fuzz does for as long as one likes."""
    rng = Random(seed)
    corpus = sorted(DATA.glob("*/*.mindir"))
    for _ in range(15):
        attempt(mutated(rng.choice(corpus).read_bytes(), rng))


@pytest.mark.parametrize("name", NAMES)
def test_a_file_cut_off_anywhere_is_refused(name: str) -> None:
    """Of a whole file every field is needed up to the end of the graph."""
    data = FILES[name]
    refused = 0
    for length in range(0, len(data), 7):
        try:
            read(memoryview(data[:length]))
        except ModelFileError as exc:
            assert str(exc)
            refused += 1
    assert refused > 0.9 * len(data) / 7
