from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mindspore_lite.errors import WireError
from mindspore_lite.remote.wire.frames import (
    HEADER_BYTES,
    MAX_BODY,
    Channel,
    Frame,
    Message,
    header,
    parsed_header,
)

Pair = tuple[Channel, socket.socket]


class Pieces:
    """A socket that gives what it has in pieces of the wanted sizes, and then its end."""

    def __init__(self, data: bytes, sizes: Iterator[int]) -> None:
        self._data, self._sizes = data, sizes

    def settimeout(self, timeout_s: float | None) -> None: ...

    def setsockopt(self, level: int, name: int, value: bytes) -> None: ...

    def recv(self, most: int) -> bytes:
        self.most = most
        size = min(next(self._sizes, most), most)
        found, self._data = self._data[:size], self._data[size:]
        return found


@pytest.fixture
def pair() -> Iterator[Pair]:
    """A channel, and the other end of it."""
    ours, theirs = socket.socketpair()
    ours.settimeout(120)
    channel = Channel(theirs, stall_s=30)
    yield channel, ours
    channel.close()
    ours.close()


def received(data: bytes, *sizes: int) -> list[Frame]:
    """All frames of a stream that comes in pieces."""
    channel = Channel(Pieces(data, iter(sizes)))  # type: ignore[arg-type]
    found = []
    while (frame := channel.receive()) is not None:
        found.append(frame)
    return found


def framed(request: int, body: bytes) -> bytes:
    return header(Message.INFO, request, len(body)) + body


def test_frames_go_through_a_socket(pair: Pair) -> None:
    channel, other = pair
    channel.send(Message.PREDICT, 7, b"body")
    assert other.recv(99) == header(Message.PREDICT, 7, 4) + b"body"
    other.sendall(framed(8, b"answer") + framed(9, b""))
    first, second = channel.receive(), channel.receive()
    assert first == Frame(Message.INFO, 8, memoryview(b"answer"))
    assert second == Frame(Message.INFO, 9, memoryview(b""))
    other.close()
    assert channel.receive() is None


def test_a_frame_may_be_split_at_every_byte() -> None:
    data = framed(1, b"abc") + framed(2, b"")
    for at in range(1, len(data)):
        frames = received(data, at)
        assert [(f.request, bytes(f.body)) for f in frames] == [(1, b"abc"), (2, b"")], at
    frames = received(data, *[1] * len(data))
    assert [bytes(f.body) for f in frames] == [b"abc", b""]


@given(
    st.lists(st.binary(max_size=200_000), min_size=1, max_size=4),
    st.lists(st.integers(1, 100_000), max_size=30),
)
@example([bytes(65536 - 24), b"x"], [])  # exactly as much as a channel takes at once
@example([bytes(65536), b"x"], [65536, 24])
def test_frames_of_any_size_in_any_pieces_come_back(bodies: list[bytes], sizes: list[int]) -> None:
    data = b"".join(framed(i, body) for i, body in enumerate(bodies))
    found = received(data, *sizes)
    assert [(f.request, bytes(f.body)) for f in found] == list(enumerate(bodies))


@given(st.binary(max_size=100), st.integers(0, 99), st.binary(max_size=3))
def test_any_bytes_are_frames_or_a_wire_error(body: bytes, at: int, noise: bytes) -> None:
    data = bytearray(framed(5, body) * 2)
    data[at : at + len(noise)] = noise
    try:
        frames = received(bytes(data))
    except WireError:
        return
    assert sum(HEADER_BYTES + len(frame.body) for frame in frames) == len(data)


@given(st.binary(max_size=64))
def test_noise_is_a_wire_error(data: bytes) -> None:
    if data:
        with pytest.raises(WireError):
            received(data)


@pytest.mark.parametrize("cut", [1, HEADER_BYTES - 1, HEADER_BYTES, HEADER_BYTES + 2])
def test_a_connection_that_ends_inside_a_frame_is_an_error(cut: int) -> None:
    with pytest.raises(WireError, match=f"ended inside a frame: {cut} bytes of"):
        received(framed(1, b"abc")[:cut])


@pytest.mark.parametrize("cut", [3, HEADER_BYTES + 1])
def test_half_a_frame_and_silence_time_out(cut: int) -> None:
    ours, theirs = socket.socketpair()
    channel = Channel(theirs, stall_s=0.005)
    ours.sendall(framed(1, b"abc")[:cut])
    with pytest.raises(TimeoutError, match=r"nothing came for 0\.005 s"):
        channel.receive()
    channel.close()
    ours.close()


def test_silence_before_a_frame_may_last(pair: Pair) -> None:
    channel, other = pair
    with pytest.raises(TimeoutError, match=r"nothing came for 0\.001 s"):
        channel.receive(timeout_s=0.001)
    other.sendall(framed(1, b""))  # and afterwards all is as before
    assert channel.receive() == Frame(Message.INFO, 1, memoryview(b""))


def test_who_does_not_read_what_is_sent_is_an_error() -> None:
    ours, theirs = socket.socketpair()
    channel = Channel(theirs, stall_s=0.005)
    with pytest.raises(OSError, match="unavailable"):
        for request in range(10_000):
            channel.send(Message.REPLY, request, bytes(1 << 16))
    channel.close()
    ours.close()


def test_a_body_costs_memory_as_it_comes_not_as_it_is_announced() -> None:
    start = header(Message.PREDICT, 1, MAX_BODY) + bytes(1000)
    pieces = Pieces(start, iter([]))
    channel = Channel(pieces)  # type: ignore[arg-type]
    with pytest.raises(WireError, match="ended inside a frame"):
        channel.receive()
    assert pieces.most <= 1 << 16


def test_the_largest_body_is_taken_and_one_byte_more_is_not_sent(pair: Pair) -> None:
    channel, _ = pair
    assert parsed_header(header(Message.PREDICT, 1, MAX_BODY)) == (Message.PREDICT, 1, MAX_BODY)
    with pytest.raises(WireError, match=f"{MAX_BODY + 1} bytes cannot be sent"):
        channel.send(Message.PREDICT, 1, bytes(MAX_BODY + 1))


def test_times_that_the_kernel_cannot_hold_do_no_harm(pair: Pair) -> None:
    channel, other = pair
    other.sendall(framed(1, b""))
    assert channel.receive(timeout_s=float("inf")) is not None


def test_closing_wakes_who_waits(pair: Pair) -> None:
    channel, other = pair
    channel.close()
    assert other.recv(1) == b""
    channel.close()  # harmless


def test_what_came_while_one_looked_is_received(pair: Pair) -> None:
    channel, other = pair
    channel.look(0)  # nothing came
    other.sendall(framed(1, b"one") + framed(2, b"two"))
    channel.look(30)
    for request, body in ((1, b"one"), (2, b"two")):
        frame = channel.receive(30)
        assert frame is not None
        assert (frame.request, bytes(frame.body)) == (request, body)


def test_the_end_of_a_connection_is_seen_after_a_look_as_well(pair: Pair) -> None:
    channel, other = pair
    other.close()
    channel.look(30)
    assert channel.receive() is None
