"""Damages bytes without knowing a format: flipped bits, cuts, insertions, lengths at limits."""

from __future__ import annotations

import struct
from random import Random

# where the types of length fields end; small ones make a reader stop early
_LENGTHS = (0, 1, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**63 - 1, 2**63, 2**64 - 1)


def changed_bytes(data: bytes, rng: Random) -> bytes:
    """The bytes with one to sixteen changes; the same generator gives the same result."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        _change(out, rng)
    return bytes(out)


def _change(out: bytearray, rng: Random) -> None:
    at, length = rng.randrange(len(out) + 1), rng.randrange(1, 40)
    how = rng.randrange(8)
    if how == 0 and out:
        out[at % len(out)] ^= 1 << rng.randrange(8)
    elif how == 1 and out:
        out[at % len(out)] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
    elif how == 2:
        del out[at : at + length]
    elif how == 3:
        out[at:at] = rng.randbytes(length)
    elif how == 4:
        out[at:at] = out[at : at + length]
    elif how == 5:
        field = length_field(rng)
        out[at : at + len(field)] = field
    elif how == 6:  # a piece of it takes the place of another
        start = rng.randrange(len(out) + 1)
        out[at : at + length] = out[start : start + length]
    else:
        del out[at:]


def length_field(rng: Random) -> bytes:
    """A length as formats write it: two, four or eight bytes, or a varint of protobuf."""
    value = rng.choice(_LENGTHS)
    kind = rng.choice(("<H", "<I", "<Q", ">I", "varint"))
    if kind == "varint":
        return varint(value)
    return struct.pack(kind, value & (1 << 8 * struct.calcsize(kind)) - 1)


def varint(value: int) -> bytes:
    """A number of 64 bits as protobuf writes it."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])
