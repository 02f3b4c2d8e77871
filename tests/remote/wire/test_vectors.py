"""The vectors are what the script writes, and what each piece of the protocol reads and writes."""

from __future__ import annotations

import struct
from collections.abc import Set

import pytest
from support import wire_bad_cases, wire_cases
from support.wire_vectors import FOLDER, MESSAGES, Part, Vector, read

from mindspore_lite.errors import LiteError, WireError
from mindspore_lite.remote.wire import faults
from mindspore_lite.remote.wire.fields import Reader, Writer
from mindspore_lite.remote.wire.frames import HEADER_BYTES, Message, header, parsed_header
from mindspore_lite.remote.wire.handshake import Hello, Welcome, decoded_hello, decoded_welcome

VECTORS = {path.stem: read(path) for path in sorted(FOLDER.glob("*.txt"))}
PARTS = [(v.name, part) for v in VECTORS.values() for part in v.parts]


def named(prefix: str, but: Set[str] = frozenset()) -> list[object]:
    found = [v for v in VECTORS.values() if v.name.startswith(prefix) and v.name not in but]
    return [pytest.param(vector, id=vector.name) for vector in found]


def test_the_files_are_what_the_script_writes() -> None:
    written = {v.name: list(v.lines()) for v in wire_cases.VECTORS + wire_bad_cases.VECTORS}
    found = {path.stem: path.read_text().splitlines() for path in FOLDER.glob("*.txt")}
    assert found == written, "run scripts/wire_vectors.py, if the protocol was meant to change"


def test_reading_a_file_gives_what_was_written() -> None:
    for vector in wire_cases.VECTORS + wire_bad_cases.VECTORS:
        assert list(VECTORS[vector.name].lines()) == list(vector.lines())


def test_no_two_fields_of_a_message_have_the_same_name() -> None:
    for name, part in PARTS:
        names = [field.name for field in part.fields]
        assert len(set(names)) == len(names), name


def test_there_is_a_good_vector_of_every_message_and_side() -> None:
    good = {
        (part.side, part.number("frame.message"))
        for _, part in PARTS
        if part.verdict == "good" and any(field.name == "frame.message" for field in part.fields)
    }
    answers = {Message.ERROR, Message.REPLY, Message.BUILD_FINISH}
    requests = set(Message) - answers
    assert good == {("client", m) for m in requests} | {("worker", m) for m in answers}
    assert [m.name for m in Message] == list(MESSAGES)


@pytest.mark.parametrize("vector", [*named("01"), *named("02")])
def test_greetings_are_read_and_written(vector: Vector) -> None:
    asked, told = vector.parts
    hello = decoded_hello(asked.encoded())
    values = {name: getattr(hello, name) for name in ("lowest", "highest", "token")}
    assert values == {name: asked[name] for name in values}
    assert Hello(**values).encoded() == asked.encoded()
    welcome = decoded_welcome(*_halves(told))
    facts = {name: getattr(welcome, name) for name in ("version", "code", "token", "pid")}
    assert facts == {name: told[name] for name in facts}
    assert welcome.text == told.text("text")
    assert Welcome(**facts, text=welcome.text).encoded() == told.encoded()


def _halves(part: Part) -> tuple[bytes, bytes]:
    data = part.encoded()
    return data[:40], data[40:]


def test_a_polite_refusal_says_why_and_is_no_breach_of_the_protocol() -> None:
    told = VECTORS["refused-full"].parts[1]
    with pytest.raises(LiteError, match=told.reason) as caught:
        decoded_welcome(*_halves(told))
    assert caught.value.code == told.number("code")


FRAMES = [
    pytest.param(part, id=f"{name}-{part.side}")
    for name, part in PARTS
    if part.verdict in ("good", "error") and any(f.name == "frame.length" for f in part.fields)
]


@pytest.mark.parametrize("part", FRAMES)
def test_headers_are_read_and_written(part: Part) -> None:
    data = part.encoded()
    message, request, size = parsed_header(data)
    names = ("frame.message", "frame.request", "frame.length")
    assert [message, request, size] == [part[name] for name in names]
    assert size == len(data) - HEADER_BYTES
    assert header(message, request, size) == data[:HEADER_BYTES]


@pytest.mark.parametrize("vector", named("error-"))
def test_errors_are_read_and_written(vector: Vector) -> None:
    (part,) = vector.parts
    body = part.encoded()[HEADER_BYTES:]
    error = faults.read_error(Reader(memoryview(body)))
    assert type(error).__name__ == part.text("kind")
    assert str(error) == part.text("message")
    assert "\n".join(getattr(error, "__notes__", [])) == part.text("detail")
    if isinstance(error, LiteError):
        assert error.code == part.number("code")
    out = Writer()
    faults.write_error(out, error)
    assert bytes(out.data) == body


def test_there_is_a_vector_of_every_kind_of_error() -> None:
    assert {v.removeprefix("error-") for v in VECTORS if v.startswith("error-")} == set(
        faults._KINDS
    )


BAD_HELLOS = named("bad-hello", but={"bad-hello-token"})  # the token is for a worker to judge


@pytest.mark.parametrize("vector", BAD_HELLOS)
def test_a_worker_refuses_bad_greetings(vector: Vector) -> None:
    (part,) = vector.parts
    with pytest.raises(WireError, match=part.reason):
        decoded_hello(part.encoded())


@pytest.mark.parametrize("name", ["bad-welcome-magic", "bad-welcome-version"])
def test_a_client_refuses_bad_greetings(name: str) -> None:
    (part,) = VECTORS[name].parts
    with pytest.raises(WireError, match=part.reason):
        decoded_welcome(*_halves(part))


BAD_HEADERS = named("bad-frame", but={"bad-frame-short", "bad-frame-header"})  # those end too soon


@pytest.mark.parametrize("vector", BAD_HEADERS)
def test_bad_headers_are_refused(vector: Vector) -> None:
    (part,) = vector.parts
    with pytest.raises(WireError, match=part.reason):
        parsed_header(part.encoded())


def test_numbers_are_written_as_the_document_says() -> None:
    """What the vectors are made by is itself held against literal bytes, once."""
    data = VECTORS["05-predict"].parts[0].encoded()
    assert data[:24] == bytes.fromhex("4d534c46 0100 0000 0300000000000000 5300000000000000")
    assert data[24:61] == struct.pack("<IQbIQQI", 1, 120_000_000, -3, 0, 0, 0, 1)
    assert data[61:84] == b"\1\0\0\0x" + b"\x2b\0" + b"\2\0" + struct.pack("<qq", 2, 2)[:14]
