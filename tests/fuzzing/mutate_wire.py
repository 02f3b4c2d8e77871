"""Damages messages of the wire protocol: single fields, with the length put right, or any bytes."""

from __future__ import annotations

import struct
from dataclasses import replace
from random import Random

from fuzzing.mutate_bytes import changed_bytes
from support.wire_vectors import Field, Part

HEADER_BYTES = 24
_BITS = {"u8": 8, "u16": 16, "u32": 32, "u64": 64, "i8": 8, "i32": 32}
_NUMBERS = (0, 1, 2, 3, 9, 43, 64, 65536, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**63, 2**64 - 1)
_DIMS = (0, 1, 2, 3, -1, -2, 2**31, 2**40, 2**62, -(2**63))
_TEXTS = (b"", b"x", b"w", b"version", b"\0", b"\xff\xfe", b"../x", b"@x", b"y" * 5000)


def changed_part(part: Part, rng: Random) -> bytes:
    """A frame or a greeting with some damage."""
    if rng.random() < 0.2:
        return changed_bytes(part.encoded(), rng)
    fields = list(part.fields)
    for _ in range(rng.choice((0, 1, 1, 2, 4))):
        at, how = rng.randrange(len(fields)), rng.randrange(8)
        if how == 0 and len(fields) > 1:
            del fields[at]
        elif how == 1:
            fields.insert(at, rng.choice(fields))
        else:
            fields[at] = _changed(fields[at], rng)
    data = b"".join(field.encoded() for field in fields)
    is_frame = any(field.name == "frame.length" for field in part.fields)
    return with_length(data) if is_frame and rng.random() < 0.9 else data


def with_length(data: bytes) -> bytes:
    """A frame whose header says how long its body is."""
    size = len(data) - HEADER_BYTES
    return data if size < 0 else data[:16] + struct.pack("<Q", size) + data[HEADER_BYTES:]


def with_request(data: bytes, number: int) -> bytes:
    """A frame that belongs to a request."""
    return data[:8] + struct.pack("<Q", number) + data[16:] if len(data) >= HEADER_BYTES else data


def _changed(field: Field, rng: Random) -> Field:
    if field.kind in _BITS:
        bits = _BITS[field.kind]
        value = rng.choice(_NUMBERS) & (1 << bits) - 1
        if field.kind.startswith("i"):
            value -= 1 << (bits - 1)
        return replace(field, value=value)
    if isinstance(field.value, list):
        dims = [rng.choice((dim, *_DIMS)) for dim in field.value]
        return replace(field, value=dims + [1] * rng.choice((0, 0, 0, 1, 70)))
    assert isinstance(field.value, bytes)
    return replace(field, value=rng.choice((*_TEXTS, changed_bytes(field.value, rng))))
