"""Vectors of what is wrong: greetings to refuse, frames that end a connection, bad bodies.

The reason of each is a piece of our own error message, so that it is refused for what is wrong.
"""

from __future__ import annotations

from dataclasses import replace

from support.wire_cases import (
    FLOAT32,
    TOKEN,
    X,
    hello_fields,
    predict_fields,
    welcome_fields,
)
from support.wire_vectors import Field, Part, Vector, frame, tensor, text

_EMPTY = Field("u32", "inputs", 0)
_INPUT = tensor("inputs.0", "x", FLOAT32, [2, 2], X)


def _vector(
    name: str, about: str, side: str, fields: list[Field], verdict: str, why: str
) -> Vector:
    return Vector(f"bad-{name}", about, (Part(side, tuple(fields), verdict, why),))


def _changed(fields: list[Field], name: str, **values: object) -> list[Field]:
    """The same fields but for one."""
    return [replace(f, **values) if f.name == name else f for f in fields]


def greetings() -> list[Vector]:
    """What a worker refuses, then what a client does."""
    rows = [
        ("hello-magic", "Another protocol.", hello_fields(magic=b"GET / HT"), "wanted b'MSLITE"),
        ("hello-version", "Versions 3 to 4.", hello_fields(lowest=3, highest=4), "versions 3 to 4"),
        ("hello-version-1", "Version 1.", hello_fields(lowest=1, highest=1), "versions 1 to 1"),
        ("hello-order", "Versions 2 to 1.", hello_fields(lowest=2, highest=1), "versions 2 to 1"),
        ("hello-reserved", "Bytes that are 0.", hello_fields(reserved=1), "0x00000001, wanted 0"),
        (
            "hello-token",
            "A session that is not there.",
            hello_fields(token=TOKEN),
            "no such session",
        ),
    ]
    found = [_vector(n, about, "client", fields, "refuse", why) for n, about, fields, why in rows]
    good = welcome_fields(2, 0, TOKEN, "/run/x.sock")
    answers = [
        (
            "welcome-magic", "Another protocol.",
            _changed(good, "magic", value=b"SSH-2.0-"), "no worker",
        ),
        (
            "welcome-version", "A version that was not offered.",
            _changed(good, "version", value=1), "version 1",
        ),
        (
            "welcome-text", "A text of 4097 bytes is announced.",
            [*good[:-1], Field("u32", "text", 4097)], "4097 bytes",
        ),
    ]  # fmt: skip
    return found + [
        _vector(n, about, "worker", fields, "refuse", why) for n, about, fields, why in answers
    ]


def frames() -> list[Vector]:
    """Headers that leave no way to go on."""
    good = frame("DESCRIBE", 1, Field("u32", "model", 1))
    rows = [
        ("frame-magic", "No frame.", _changed(good, "frame.magic", value=0x46464952), "0x46464952"),
        ("frame-message", "A message that is not there.", frame(65535, 1), "no message 65535"),
        ("frame-reserved", "Not 0.", _changed(good, "frame.reserved", value=1), "0x0001"),
        (
            "frame-length-huge", "A body of 2^63 bytes.",
            frame("PREDICT", 1, length=1 << 63), "9223372036854775808 bytes",
        ),
        (
            "frame-length-over", "A body of one byte more than allowed.",
            frame("PREDICT", 1, length=(16 << 20) + 1), "16777217 bytes",
        ),
        (
            "frame-short", "The connection ends before the body does.",
            frame("DESCRIBE", 1, Field("u32", "model", 1), length=8), "ended inside a frame",
        ),
        ("frame-header", "The connection ends in the header.", good[:3], "ended inside a frame"),
    ]  # fmt: skip
    return [_vector(n, about, "client", fields, "close", why) for n, about, fields, why in rows]


def tensors() -> list[Vector]:
    """PREDICT with one bad input."""
    many = [1] * 65
    rows = [
        ("rank", "65 dims.", tensor("inputs.0", "x", FLOAT32, many, b"\0\0\0\0"), "at most 64"),
        ("type", "An unknown type.", _changed(_INPUT, "inputs.0.type", value=46), "type 46"),
        ("dim", "A dim of -3.", tensor("inputs.0", "x", FLOAT32, [-3, 2], X), "a dim of -3"),
        ("open", "An open shape.", tensor("inputs.0", "x", FLOAT32, [-1, 2], X), "16 bytes"),
        ("size", "15 bytes of 16.", tensor("inputs.0", "x", FLOAT32, [2, 2], X[:15]), "15 bytes"),
        (
            "size-block", "17 bytes in a block, 16 wanted.",
            tensor("inputs.0", "x", FLOAT32, [2, 2], (1, 0, 17)), "17 bytes",
        ),
        (
            "huge", "Dims whose product does not fit in 64 bits.",
            tensor("inputs.0", "x", FLOAT32, [0, 1 << 40, 1 << 40], b""), "larger than any",
        ),
        ("place", "Data at place 3.", _changed(_INPUT[:4], "inputs.0.place", value=3), "place 3"),
        ("none", "No data.", tensor("inputs.0", "x", FLOAT32, [2, 2], None), "without data"),
        (
            "block", "A block that is not there.",
            tensor("inputs.0", "x", FLOAT32, [2, 2], (9, 0, 16)), "no block 9",
        ),
        (
            "name", "A name of 4097 bytes is announced.",
            [Field("u32", "inputs.0.name", 4097)], "at most 4096",
        ),
        (
            "name-utf8", "A name that is not UTF-8.",
            _changed(_INPUT, "inputs.0.name", value=b"\xff\xfe"), "not UTF-8",
        ),
        (
            "data-short", "Data of 17 bytes are announced, 16 are there.",
            [*_INPUT[:4], Field("u32", "inputs.0.data", 17), Field("bytes", "rest", X)],
            "wanted 17 bytes",
        ),
    ]  # fmt: skip
    return [
        _vector(
            f"tensor-{name}",
            f"PREDICT: {about}",
            "client",
            frame("PREDICT", 1, *predict_fields((0, 0, 0), 0, *fields)),
            "error",
            why,
        )
        for name, about, fields, why in rows
    ]


def bodies() -> list[Vector]:
    """Other bodies that make no sense; the connection goes on."""
    room = predict_fields((9, 0, 64), 0, *_INPUT)
    model = Field("u32", "model", 1)
    build = [Field("u8", "kind", 0), Field("u32", "model_type", 0), text("path", "")]
    rest = [Field("u32", "settings", 0), text("config_path", ""), Field("u32", "config", 0)]
    more = Field("bytes", "more", b"\0")
    urgent = predict_fields((0, 0, 0), 0, *_INPUT, priority=101)
    rows = [
        ("priority", "A priority of 101.", frame("PREDICT", 1, *urgent), "priority is 101"),
        ("reply", "A client sends REPLY.", frame("REPLY", 1), "does not take REPLY"),
        ("empty", "DESCRIBE of nothing.", frame("DESCRIBE", 1), "ends inside the model"),
        ("trailing", "A byte too many.", frame("DESCRIBE", 1, model, more), "1 bytes more"),
        ("room", "Room in a block that is not there.", frame("PREDICT", 1, *room), "no block 9"),
        (
            "inputs", "65537 inputs.",
            frame("PREDICT", 1, *predict_fields((0, 0, 0), 0)[:-1], Field("u32", "inputs", 65537)),
            "65537 inputs",
        ),
        (
            "content", "Three contents.",
            frame("BUILD", 1, *build, Field("u32", "content", 3)), "at most 2",
        ),
        (
            "text", "A text of 2^20 + 1 bytes is announced.",
            frame("BUILD", 1, *build[:2], Field("u32", "path", (1 << 20) + 1)), "at most 1048576",
        ),
        (
            "key", "A key of 1025 bytes is announced.",
            frame(
                "BUILD", 1, *build, Field("u32", "content", 0), *rest, Field("u32", "key", 1025)
            ),
            "at most 1024",
        ),
        (
            "block-none", "A block of no bytes.",
            frame("ALLOCATE", 1, Field("u64", "size", 0)), "wanted 1",
        ),
        (
            "free", "A block that is not there.",
            frame("FREE", 1, Field("u32", "blocks", 1), Field("u32", "blocks.0", 9)),
            "no blocks [9]",
        ),
        (
            "shape", "RESIZE to 65 dims.",
            frame("RESIZE", 1, model, Field("u32", "shapes", 1), Field("dims", "a", [1] * 65)),
            "at most 64",
        ),
    ]  # fmt: skip
    return [_vector(n, about, "client", fields, "error", why) for n, about, fields, why in rows]


def answers() -> list[Vector]:
    """What a client must not believe, as the answer to the PREDICT of 05-predict, request 3."""
    outputs = [Field("u32", "blocks", 0), Field("u32", "outputs", 1)]
    rows = [
        ("answer-request", "The answer to another request.", frame("REPLY", 4), "request 4 came"),
        ("answer-message", "A request as an answer.", frame("PREDICT", 3), "PREDICT came"),
        ("answer-empty", "Not even a list of blocks.", frame("REPLY", 3), "ends inside blocks"),
        (
            "answer-block", "An output in a block that nobody told of.",
            frame("REPLY", 3, *outputs, *tensor("outputs.0", "y", FLOAT32, [2, 2], (5, 0, 16))),
            "no block 5",
        ),
        (
            "answer-data", "An output without data.",
            frame("REPLY", 3, *outputs, *tensor("outputs.0", "y", FLOAT32, [2, 2], None)),
            "without data",
        ),
    ]  # fmt: skip
    return [_vector(n, about, "worker", fields, "close", why) for n, about, fields, why in rows]


VECTORS = [*greetings(), *frames(), *tensors(), *bodies(), *answers()]
