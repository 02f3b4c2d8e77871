"""The damage that one case does: the mutators with one random generator, or none for a warm-up."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

import onnx
from fuzzing.mutate_bytes import changed_bytes
from fuzzing.mutate_proto import mutated
from fuzzing.mutate_text import changed_json, changed_lines
from support.archives import packed, unpacked

from mindspore_lite.mindir import mindir_pb2

T = TypeVar("T")


class Damage:
    """Changes files; a harmless one leaves them as they are, and chooses the first of anything."""

    def __init__(self, rng: Random, *, harmless: bool = False) -> None:
        self.rng = rng
        self.harmless = harmless

    def choice(self, options: Sequence[T]) -> T:
        """One of them."""
        return options[0] if self.harmless else self.rng.choice(options)

    def chance(self, share: float) -> bool:
        """Whether something that is rare happens."""
        return not self.harmless and self.rng.random() < share

    def bytes(self, data: bytes) -> bytes:
        """Any file."""
        return data if self.harmless else changed_bytes(data, self.rng)

    def mindir(self, data: bytes, donors: Sequence[bytes] = ()) -> bytes:
        """A MindIR file."""
        return data if self.harmless else mutated(data, self.rng, mindir_pb2.Model, donors)

    def onnx(self, data: bytes, donors: Sequence[bytes] = ()) -> bytes:
        """An ONNX file."""
        return data if self.harmless else mutated(data, self.rng, onnx.ModelProto, donors)

    def lines(self, text: str, words: Sequence[str]) -> bytes:
        """A configuration; words are values that mean something in it."""
        return text.encode() if self.harmless else changed_lines(text, words, self.rng)

    def json(self, data: bytes) -> bytes:
        """A JSON text, which stays one."""
        return data if self.harmless else changed_json(data, self.rng)

    def archive(self, data: bytes, change: Callable[[str, bytes], bytes]) -> bytes:
        """A ZIP archive: the content of one member, the list of members, or its bytes."""
        if self.harmless:
            return data
        if self.chance(0.25):
            return self.bytes(data)
        members = unpacked(data)
        for _ in range(self.rng.choice((1, 1, 2, 4))):
            name = self.rng.choice(sorted(members))
            if self.chance(0.8):
                members[name] = change(name, members[name])
            elif self.chance(0.5):
                del members[name]
            else:
                members[self.rng.choice((name + "x", "../" + name, name[1:], ""))] = members[name]
            if not members:
                break
        return packed(members, zipfile.ZIP_DEFLATED if self.chance(0.1) else zipfile.ZIP_STORED)
