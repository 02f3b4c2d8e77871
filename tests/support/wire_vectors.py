"""Test vectors of the wire protocol: fields with names and values <-> bytes <-> lines of text.

The encoding here is written from docs/wire.md alone and shares no code with the package, so that
each can be held against the other. tests/remote/wire/vectors/README.md tells the format of the
files.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "remote/wire/vectors"
MAGIC = 0x464C534D
MESSAGES = (
    "ERROR", "PREDICT", "REPLY", "BUILD_FINISH", "EXIT", "BUILD", "DESCRIBE", "RESIZE",
    "UPDATE_WEIGHTS", "INFO", "STATISTICS", "CANCEL", "CLOSE", "ALLOCATE", "FREE",
    "DERIVE",
)  # fmt: skip
_NUMBERS = {"u8": "<B", "i8": "<b", "u16": "<H", "u32": "<I", "u64": "<Q", "i32": "<i"}


@dataclass(frozen=True)
class Field:
    """One field; the value is an int, a list of them (dims), or bytes (text, blob, bytes)."""

    kind: str
    name: str
    value: int | list[int] | bytes

    def encoded(self) -> bytes:
        """The bytes of it."""
        if self.kind in _NUMBERS:
            return struct.pack(_NUMBERS[self.kind], self.value)
        if isinstance(self.value, list):
            return struct.pack(f"<H{len(self.value)}q", len(self.value), *self.value)
        assert isinstance(self.value, bytes)
        return (
            self.value if self.kind == "bytes" else struct.pack("<I", len(self.value)) + self.value
        )

    def line(self) -> str:
        """How it stands in a file."""
        if isinstance(self.value, bytes):
            value = escaped(self.value) if self.kind == "text" else self.value.hex()
        elif isinstance(self.value, list):
            value = ",".join(map(str, self.value))
        else:
            value = str(self.value)
        return " ".join([self.encoded().hex(), self.kind, self.name, *([value] if value else [])])


@dataclass(frozen=True)
class Part:
    """What one side sends: a greeting or a frame, and what the other must make of it."""

    side: str
    fields: tuple[Field, ...]
    verdict: str = "good"
    reason: str = ""  # words of our own error message

    def encoded(self) -> bytes:
        """All bytes of it."""
        return b"".join(field.encoded() for field in self.fields)

    def __getitem__(self, name: str) -> int | list[int] | bytes:
        return next(field.value for field in self.fields if field.name == name)

    def text(self, name: str) -> str:
        """The value of a text."""
        value = self[name]
        assert isinstance(value, bytes)
        return value.decode()

    def number(self, name: str) -> int:
        """The value of a number."""
        value = self[name]
        assert isinstance(value, int)
        return value


@dataclass(frozen=True)
class Vector:
    """One file: a sentence about it, and what both sides send, in turn."""

    name: str
    about: str
    parts: tuple[Part, ...]

    def lines(self) -> Iterator[str]:
        """The file."""
        yield f"# {self.about}"
        for part in self.parts:
            yield f"from {part.side}"
            yield from (field.line() for field in part.fields)
            yield f"verdict {part.verdict} {part.reason}".rstrip()


def read(path: Path) -> Vector:
    """A vector from its file; the hex of every line is that of its value."""
    about, parts = "", []
    side, fields = "", []
    for line in path.read_text(encoding="ascii").splitlines():
        first, _, rest = line.partition(" ")
        if first == "#":
            about = rest
        elif first == "from":
            side, fields = rest, []
        elif first == "verdict":
            verdict, _, reason = rest.partition(" ")
            parts.append(Part(side, tuple(fields), verdict, reason))
        else:
            kind, name, *value = rest.split(" ", 2)
            field = Field(kind, name, _value(kind, value[0] if value else ""))
            assert field.encoded().hex() == first, f"{path.name}: {line}"
            fields.append(field)
    return Vector(path.stem, about, tuple(parts))


def frame(message: str | int, request: int, *body: Field, length: int | None = None) -> list[Field]:
    """The header, with the length that the body has, and the body."""
    number = MESSAGES.index(message) if isinstance(message, str) else message
    size = sum(len(field.encoded()) for field in body) if length is None else length
    return [
        Field("u32", "frame.magic", MAGIC),
        Field("u16", "frame.message", number),
        Field("u16", "frame.reserved", 0),
        Field("u64", "frame.request", request),
        Field("u64", "frame.length", size),
        *body,
    ]


def text(name: str, value: str) -> Field:
    """A text field."""
    return Field("text", name, value.encode())


def tensor(
    prefix: str,
    name: str,
    kind: int,
    dims: Sequence[int],
    data: bytes | tuple[int, int, int] | None,
) -> list[Field]:
    """A tensor: without data, with its bytes, or with (block, offset, length) of them."""
    head = [
        text(f"{prefix}.name", name),
        Field("u16", f"{prefix}.type", kind),
        Field("dims", f"{prefix}.dims", list(dims)),
    ]
    if data is None:
        return [*head, Field("u8", f"{prefix}.place", 0)]
    if isinstance(data, bytes):
        return [*head, Field("u8", f"{prefix}.place", 1), Field("blob", f"{prefix}.data", data)]
    return [*head, Field("u8", f"{prefix}.place", 2), *place(prefix, *data)]


def place(prefix: str, block: int, offset: int, size: int) -> list[Field]:
    """Where in which block something is."""
    return [
        Field("u32", f"{prefix}.block", block),
        Field("u64", f"{prefix}.offset", offset),
        Field("u64", f"{prefix}.length", size),
    ]


def escaped(value: bytes) -> str:
    """Printable ASCII as it is; a backslash and all other bytes as \\xNN."""
    return "".join(
        chr(byte) if 32 <= byte < 127 and byte != 92 else f"\\x{byte:02x}" for byte in value
    )


def _value(kind: str, value: str) -> int | list[int] | bytes:
    if kind in _NUMBERS:
        return int(value)
    if kind == "dims":
        return [int(dim) for dim in value.split(",") if dim]
    if kind == "text":
        return value.encode("ascii").decode("unicode_escape").encode("latin-1")
    return bytes.fromhex(value)
