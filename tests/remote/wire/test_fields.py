from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindspore_lite.errors import InputError, WireError
from mindspore_lite.remote.wire.fields import (
    MAX_ITEMS,
    MAX_TEXT,
    MAX_US,
    Reader,
    Writer,
    microseconds,
)


def reader(data: bytes) -> Reader:
    return Reader(memoryview(data))


@pytest.mark.parametrize(
    ("kind", "value", "data"),
    [
        ("u8", 255, b"\xff"),
        ("u16", 0x0102, b"\x02\x01"),
        ("u32", 0x01020304, b"\x04\x03\x02\x01"),
        ("u64", 1 << 63, b"\0\0\0\0\0\0\0\x80"),
        ("i32", -2, b"\xfe\xff\xff\xff"),
        ("text", "\u00e4", b"\x02\0\0\0\xc3\xa4"),
        ("path", "\udcff", b"\x01\0\0\0\xff"),
    ],
)
def test_fields_are_little_endian_and_come_back(kind: str, value: object, data: bytes) -> None:
    out = Writer()
    getattr(out, kind)(value)
    assert bytes(out.data) == data
    assert getattr(reader(data), kind)("it") == value


@pytest.mark.parametrize("kind", ["u8", "u16", "u32", "u64", "i32", "text", "path", "time_us"])
def test_a_field_that_is_cut_off_is_an_error(kind: str) -> None:
    with pytest.raises(WireError, match="ends inside its name"):
        getattr(reader(b""), kind)("its name")


def test_dims_are_a_count_and_numbers() -> None:
    out = Writer()
    out.dims((-1, 3))
    assert bytes(out.data) == struct.pack("<Hqq", 2, -1, 3)
    assert reader(out.data).dims("a shape", 2) == (-1, 3)
    with pytest.raises(WireError, match="2 dims, at most 1"):
        reader(out.data).dims("a shape", 1)


def test_a_text_that_is_too_long_is_refused_before_its_bytes_are_there() -> None:
    with pytest.raises(WireError, match=f"{MAX_TEXT + 1} bytes, at most {MAX_TEXT}"):
        reader(struct.pack("<I", MAX_TEXT + 1)).text("a name")


def test_a_text_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(WireError, match="a name is not UTF-8"):
        reader(b"\x01\0\0\0\xff").text("a name")


@pytest.mark.parametrize("value", ["\udcff", "\ud800", "x" * (MAX_TEXT + 1)])
def test_what_cannot_travel_as_text_is_refused_not_changed(value: str) -> None:
    out = Writer()
    with pytest.raises(InputError, match="cannot be sent"):
        out.text(value)
    assert not out.data


def test_words_always_travel() -> None:
    out = Writer()
    out.words("a\ud800b\udcff")
    assert reader(out.data).text("words") == "a\\ud800b\\udcff"
    out = Writer()
    out.words("\u00e4" * MAX_TEXT)
    assert reader(out.data).text("words") == "\u00e4" * (MAX_TEXT // 2)


def test_a_cut_text_ends_with_a_whole_character() -> None:
    out = Writer()
    out.words("x" + "\u00e4" * MAX_TEXT)
    assert reader(out.data).text("words") == "x" + "\u00e4" * (MAX_TEXT // 2 - 1)


def test_a_list_that_is_too_long_is_refused_before_anything_is_read() -> None:
    body = reader(struct.pack("<I", MAX_ITEMS + 1))
    with pytest.raises(WireError, match=f"{MAX_ITEMS + 1} names, at most {MAX_ITEMS}"):
        body.items("names", lambda: pytest.fail("nothing must be read"))


def test_bytes_that_are_left_over_are_an_error() -> None:
    body = reader(b"\0\0\0")
    body.u8("a byte")
    with pytest.raises(WireError, match="INFO has 2 bytes more"):
        body.end("INFO")


@pytest.mark.parametrize(
    ("time_s", "wanted"),
    [
        (None, 0),
        (0.0, 1),
        (-1.0, 1),
        (1e-9, 1),
        (0.25, 250_000),
        (1e300, MAX_US),
        (float("inf"), MAX_US),
    ],
)
def test_times_travel_as_microseconds(time_s: float | None, wanted: int) -> None:
    assert microseconds(time_s) == wanted


def test_a_time_that_no_clock_can_hold_counts_as_a_long_one() -> None:
    assert reader(b"\xff" * 8).time_us("a time") == MAX_US


@given(st.text(), st.binary(), st.lists(st.integers(-(1 << 63), (1 << 63) - 1), max_size=64))
def test_fields_one_after_the_other_come_back(text: str, blob: bytes, dims: list[int]) -> None:
    out = Writer()
    out.words(text)
    out.blob(blob)
    out.dims(tuple(dims))
    body = reader(out.data)
    assert body.text("a text") == text.encode("utf-8", "backslashreplace").decode()
    assert bytes(body.blob("a blob")) == blob
    assert body.dims("dims", 64) == tuple(dims)
    body.end("all")
