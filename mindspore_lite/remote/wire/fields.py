"""The fields of messages: numbers, texts and lists, little-endian, without padding.

Nothing that comes from the other side is trusted: a length is compared with what is there, and
with its limit, before anything is made of it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, TypeVar

from mindspore_lite.errors import InputError, WireError

T = TypeVar("T")

MAX_TEXT = 1 << 20
MAX_ITEMS = 1 << 16
MAX_US = 10**15  # some 31 years: longer times count as this one, since no clock can hold them all

_U8 = struct.Struct("<B")
_U16 = struct.Struct("<H")
_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")
_I32 = struct.Struct("<i")
_PLACE = struct.Struct("<IQQ")
_RANK = struct.Struct("<2xH")


def microseconds(time_s: float | None) -> int:
    """As times travel: 0 is none, and what is too short to tell is not none."""
    return 0 if time_s is None else max(1, round(min(time_s, MAX_US / 1e6) * 1e6))


class Writer:
    """Appends fields; `data` is what was written so far."""

    __slots__ = ("data",)

    def __init__(self) -> None:
        self.data = bytearray()

    def u8(self, value: int) -> None:
        """One byte."""
        self.data += _U8.pack(value)

    def u16(self, value: int) -> None:
        """Two bytes."""
        self.data += _U16.pack(value)

    def u32(self, value: int) -> None:
        """Four bytes."""
        self.data += _U32.pack(value)

    def u64(self, value: int) -> None:
        """Eight bytes."""
        self.data += _U64.pack(value)

    def i32(self, value: int) -> None:
        """Four bytes, signed."""
        self.data += _I32.pack(value)

    def blob(self, value: bytes | bytearray | memoryview) -> None:
        """A u32 length, then the bytes."""
        self.data += _U32.pack(len(value))
        self.data += value

    def text(self, value: str, most: int = MAX_TEXT) -> None:
        """A u32 length, then UTF-8."""
        try:
            raw = value.encode()
        except UnicodeEncodeError as exc:
            raise InputError(f"{value[:99]!r} cannot be sent: it is not Unicode text") from exc
        if len(raw) > most:
            raise InputError(
                f"{value[:99]!r}... cannot be sent: it has {len(raw)} bytes, at most {most} can"
            )
        self.blob(raw)

    def path(self, value: str) -> None:
        """A text that names a file: its bytes as the file system has them, UTF-8 or not."""
        self.blob(value.encode("utf-8", "surrogateescape"))

    def words(self, value: str) -> None:
        """A text for people, who must get it whatever it is: cut at its end when it is too long."""
        raw = value.encode("utf-8", "backslashreplace")
        if len(raw) > MAX_TEXT:
            raw = raw[:MAX_TEXT].decode("utf-8", "ignore").encode()
        self.blob(raw)

    def dims(self, value: tuple[int, ...]) -> None:
        """A u16 count, then as many i64."""
        self.data += struct.pack(f"<H{len(value)}q", len(value), *value)


class Reader:
    """Takes fields off the front of a message's body."""

    __slots__ = ("at", "data")

    def __init__(self, data: memoryview) -> None:
        self.data = data
        self.at = 0

    def _take(self, size: int, what: str) -> int:
        """Where the next `size` bytes begin."""
        at = self.at
        if size > len(self.data) - at:
            raise WireError(
                f"the message ends inside {what}: wanted {size} bytes at byte {at}, "
                f"there are {len(self.data) - at}"
            )
        self.at = at + size
        return at

    def u8(self, what: str) -> int:
        """One byte; `what` names the field in errors."""
        return self.data[self._take(1, what)]

    def u16(self, what: str) -> int:
        """Two bytes."""
        found: int = _U16.unpack_from(self.data, self._take(2, what))[0]
        return found

    def u32(self, what: str) -> int:
        """Four bytes."""
        found: int = _U32.unpack_from(self.data, self._take(4, what))[0]
        return found

    def u64(self, what: str) -> int:
        """Eight bytes."""
        found: int = _U64.unpack_from(self.data, self._take(8, what))[0]
        return found

    def i32(self, what: str) -> int:
        """Four bytes, signed."""
        found: int = _I32.unpack_from(self.data, self._take(4, what))[0]
        return found

    def time_us(self, what: str) -> int:
        """Eight bytes, microseconds."""
        return min(self.u64(what), MAX_US)

    def blob(self, what: str, most: int = MAX_TEXT) -> memoryview:
        """A u32 length, then the bytes, not copied."""
        size = self.u32(what)
        if size > most:
            raise WireError(f"{what} has {size} bytes, at most {most} are allowed")
        at = self._take(size, what)
        return self.data[at : at + size]

    def text(self, what: str, most: int = MAX_TEXT) -> str:
        """A u32 length, then UTF-8."""
        try:
            return str(self.blob(what, most), "utf-8")
        except UnicodeDecodeError as exc:
            raise WireError(f"{what} is not UTF-8: {exc.reason} at its byte {exc.start}") from exc

    def path(self, what: str) -> str:
        """A text that names a file, of any bytes."""
        return str(self.blob(what), "utf-8", "surrogateescape")

    def dims(self, what: str, most: int) -> tuple[int, ...]:
        """A u16 count, then as many i64."""
        count = self.u16(what)
        if count > most:
            raise WireError(f"{what} has {count} dims, at most {most} are allowed")
        return struct.unpack_from(f"<{count}q", self.data, self._take(8 * count, what))

    def unpacked(self, fields: struct.Struct, what: str) -> tuple[Any, ...]:
        """Several numbers at once."""
        return fields.unpack_from(self.data, self._take(fields.size, what))

    def place(self) -> tuple[int, int, int]:
        """A u32 block, a u64 offset and a u64 length."""
        found: tuple[int, int, int] = _PLACE.unpack_from(self.data, self._take(20, "a place"))
        return found

    def tensor_head(self, most: int) -> bytes:
        """A text, a u16, and dims, all as they lie: what most tensors have in common."""
        start = self.at
        self.blob("the name of a tensor", most)
        (count,) = _RANK.unpack_from(self.data, self._take(4, "the type of a tensor"))
        self._take(8 * count, "the dims of a tensor")
        return bytes(self.data[start : self.at])

    def items(self, what: str, read: Callable[[], T], most: int = MAX_ITEMS) -> list[T]:
        """A u32 count, then as many of what `read` reads."""
        return [read() for _ in range(self.count(what, most))]

    def count(self, what: str, most: int = MAX_ITEMS) -> int:
        """A u32: how many of something follow."""
        count = self.u32(what)
        if count > most:
            raise WireError(f"there are {count} {what}, at most {most} are allowed")
        return count

    def end(self, what: str) -> None:
        """Make sure that nothing is left over."""
        if self.at != len(self.data):
            raise WireError(f"{what} has {len(self.data) - self.at} bytes more than it should")
