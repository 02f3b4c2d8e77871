"""weights/sharing/exchange.py: what is said between processes, and what is no such thing."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mindspore_lite.weights.records import Identity
from mindspore_lite.weights.sharing import exchange
from mindspore_lite.weights.sharing.exchange import Answer, BadFrameError, Question

QUESTION = Question(7, "ascend:2", Identity("digest", {"engine": "1", "präzision": "hoch"}))
ANSWER = Answer("/cache/\udcff/key", ("model.onnx", "weights.bin"))


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with one, other:
        yield one, other


def test_messages_come_back_as_they_were() -> None:
    assert exchange.decoded_question(exchange.encoded_question(QUESTION)) == QUESTION
    assert exchange.decoded_answer(exchange.encoded_answer(ANSWER)) == ANSWER
    more = Answer("/cache/key", ("model.onnx",), has_extra=True)
    assert exchange.decoded_answer(exchange.encoded_answer(more)) == more
    refusal = Answer(refusal="model", text="why")
    assert exchange.decoded_answer(exchange.encoded_answer(refusal)) == refusal


def changed(frame: bytes, **entries: Any) -> bytes:
    return json.dumps({**json.loads(frame), **entries}).encode()


ASKED, ANSWERED = exchange.encoded_question(QUESTION), exchange.encoded_answer(ANSWER)


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (b"", "no JSON"),
        (b"\x80\x04K\x01.", "no JSON"),
        (b"[" * 20_000, "no JSON"),
        (b"[]", "no JSON object"),
        (b" " * 40_000, "more than 32768 bytes"),
        (changed(ASKED, protocol=2), "another version than 1"),
        (changed(ASKED, number="7"), "no question"),
        (changed(ASKED, identity=[]), "no question"),
        (changed(ASKED, identity={"model": "m"}), "no question"),
        (changed(ASKED, identity={"model": 1, "settings": {}}), "its model is no text"),
        (changed(ASKED, identity={"model": "m", "settings": {"a": 1}}), "its a is no text"),
        (changed(ASKED, device=None), "its device is no text"),
    ],
)
def test_what_is_no_question_is_told(frame: bytes, words: str) -> None:
    with pytest.raises(BadFrameError, match=words):
        exchange.decoded_question(frame)


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (b"null", "no JSON object"),
        (changed(ANSWERED, folder="relative"), "names no folder"),
        (changed(ANSWERED, folder=1), "its folder is no text"),
        (changed(ANSWERED, names="ab"), "no answer"),
        (changed(ANSWERED, names=["../model.onnx"]), "no answer"),
        (changed(ANSWERED, names=[".."]), "no answer"),
        (changed(ANSWERED, refusal=0), "its refusal is no text"),
    ],
)
def test_what_is_no_answer_is_told(frame: bytes, words: str) -> None:
    with pytest.raises(BadFrameError, match=words):
        exchange.decoded_answer(frame)


ODD = [
    None,
    True,
    1,
    -1.5,
    1e400,
    "",
    "x",
    [],
    ["a"],
    [["a"]],
    [None],
    {},
    {"model": "m"},
    {"a": []},
]


@pytest.mark.parametrize("value", ODD, ids=repr)
def test_any_other_value_makes_a_bad_frame_or_another_message(value: Any) -> None:
    for frame, decoded in [
        (ASKED, exchange.decoded_question),
        (ANSWERED, exchange.decoded_answer),
    ]:
        for key in json.loads(frame):
            try:
                found = decoded(changed(frame, **{key: value}))
            except BadFrameError:
                continue
            assert isinstance(found, Question | Answer)


def test_descriptors_travel_with_a_frame_and_are_not_inherited(
    pair: tuple[socket.socket, socket.socket], tmp_path: Path
) -> None:
    file = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    exchange.send(pair[0], b"frame", [file])
    frame, (received,) = exchange.receive(pair[1])
    try:
        assert frame == b"frame"
        assert os.path.sameopenfile(received, file)
        assert not os.get_inheritable(received)
    finally:
        os.close(received)
        os.close(file)


def test_a_frame_without_descriptors_and_the_end(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    exchange.send(pair[0], b"frame")
    assert exchange.receive(pair[1]) == (b"frame", [])
    pair[0].close()
    assert exchange.receive(pair[1]) == (b"", [])


def test_a_frame_that_is_too_long_is_not_sent(pair: tuple[socket.socket, socket.socket]) -> None:
    with pytest.raises(BadFrameError, match="at most"):
        exchange.send(pair[0], bytes(exchange.MAX_BYTES + 1))


def test_the_kernel_says_who_is_there(pair: tuple[socket.socket, socket.socket]) -> None:
    assert exchange.peer_of(pair[0]) == exchange.Peer(os.getpid(), os.geteuid())


def test_bytes_in_memory_come_back_and_nobody_can_change_them() -> None:
    descriptor = exchange.written(b"some bytes")
    try:
        assert exchange.read(descriptor) == b"some bytes"
        with pytest.raises(PermissionError):
            os.pwrite(descriptor, b"x", 0)
        with pytest.raises(PermissionError):
            os.ftruncate(descriptor, 3)
    finally:
        os.close(descriptor)
