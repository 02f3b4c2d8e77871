from __future__ import annotations

import pytest

from mindspore_lite.server.core import Flight
from mindspore_lite.server.errors import Kind, RequestError
from mindspore_lite.server.http.chunked import ChunkedBody
from mindspore_lite.server.limits import Limits

GOOD = b"3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n"


def body(limits: Limits | None = None) -> ChunkedBody:
    return ChunkedBody(limits or Limits(), Flight(1 << 30))


@pytest.mark.parametrize("step", range(1, len(GOOD) + 1))
def test_chunks_are_joined_wherever_they_are_cut(step: int) -> None:
    found, rest = body(), None
    for start in range(0, len(GOOD), step):
        assert rest is None
        rest = found.feed(GOOD[start : start + step])
    assert rest == b""
    assert found.content == b"abc0123456789"


def test_what_lies_behind_is_given_back() -> None:
    assert body().feed(b"0\r\n\r\nGET / HTTP/1.1") == b"GET / HTTP/1.1"


@pytest.mark.parametrize(
    "raw",
    [
        b"x\r\n", b"-1\r\n", b"+1\r\n", b"0x1\r\n", b" 1\r\n", b"1 \r\n", b"\r\n", b"1_0\r\n",
        b"1\n", b"1\rx", b"1;a\nb\r\n", b"1;\0\r\n", b"3\r\nabcd\r\n", b"3\r\nabc\n",
        b"3\r\nabc\rx", b"0\r\nno colon\r\n", b"0\r\n a: b\r\n", b"0\r\na : b\r\n", b"0\r\na: b\n",
        b"1" * 20 + b"\r\n",
        b"1;" + b"x" * 300, b"0\r\n" + b"a" * 20_000,
    ],
)  # fmt: skip
def test_what_is_no_chunk_is_refused(raw: bytes) -> None:
    for step in (1, len(raw)):
        found = body()
        with pytest.raises(RequestError) as info:
            for start in range(0, len(raw), step):
                found.feed(raw[start : start + step])
            found.feed(b"x" * 300)
        assert info.value.kind is Kind.INVALID


def test_a_size_is_refused_before_the_bytes_come() -> None:
    with pytest.raises(RequestError) as info:
        body(Limits(body_bytes=100)).feed(b"65\r\n")
    assert info.value.kind is Kind.TOO_LARGE


def test_the_number_of_chunks_is_bounded() -> None:
    found = body(Limits(chunks=3))
    assert found.feed(b"1\r\na\r\n" * 3) is None
    with pytest.raises(RequestError, match="more than 3 chunks"):
        found.feed(b"1\r\na\r\n")


def test_memory_in_flight_is_counted_before_it_is_taken() -> None:
    flight = Flight(2 << 20)
    found = ChunkedBody(Limits(), flight)
    with pytest.raises(RequestError) as info:
        found.feed(b"300000\r\n")
    assert info.value.kind is Kind.UNAVAILABLE
    flight.give(found.counted)
    assert flight.bytes == 0
