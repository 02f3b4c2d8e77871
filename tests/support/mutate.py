"""Damages MindIR and ONNX files at random: their bytes, or the fields of the message they hold.

The same random generator gives the same file again, so a finding is a seed and a file name.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message

from mindspore_lite.mindir import mindir_pb2 as pb

# small ones that mean something (axes, enumerations, dims), and those at which types end
NUMBERS = (
    *(0, 1, 2, 3, 4, 5, 7, 9, 16, 43, 64, 1000),
    *(10**6, 2**31 - 1, 2**31, 2**40, 2**62, 2**63 - 1),
)
TEXTS = ("", "x", "REF::", "Constant", "../../etc/passwd", "/etc/passwd", "\0", "shape", "value")


def mutated(data: bytes, rng: Random, kind: type[Message] = pb.Model) -> bytes:
    """The file with some damage, of one kind or the other."""
    if rng.random() < 0.4:
        return changed_bytes(data, rng)
    try:
        model = kind.FromString(data)
    except DecodeError:  # encrypted, or damaged before
        return changed_bytes(data, rng)
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        rng.choice(_CHANGES)(model, rng)
    return model.SerializeToString()


def changed_bytes(data: bytes, rng: Random) -> bytes:
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        at, length = rng.randrange(len(out) + 1), rng.randrange(1, 40)
        how = rng.randrange(6)
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
        else:
            del out[at:]
    return bytes(out)


Spot = tuple[Message, FieldDescriptor, int | None]


def _spots(message: Message, wanted: Callable[[FieldDescriptor], bool]) -> list[Spot]:
    """Every field that holds something, also inside of messages."""
    found: list[Spot] = []
    for field, value in message.ListFields():
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            continue
        if field.is_repeated:
            entries: list[tuple[int | None, Any]] = list(enumerate(value))
        else:
            entries = [(None, value)]
        for index, entry in entries:
            if wanted(field):
                found.append((message, field, index))
            if isinstance(entry, Message):
                found += _spots(entry, wanted)
    return found


def _put(spot: Spot, value: Any) -> None:
    message, field, index = spot
    try:
        if index is None:
            setattr(message, field.name, value)
        else:
            getattr(message, field.name)[index] = value
    except (ValueError, TypeError):
        pass  # an enumeration, or a type that does not hold it


def _number(model: Message, rng: Random) -> None:
    """Another number: a dim, an axis, a type, an offset."""
    spots = _spots(model, lambda f: f.cpp_type not in (f.CPPTYPE_STRING, f.CPPTYPE_MESSAGE))
    if spots:
        _put(rng.choice(spots), rng.choice(NUMBERS) * rng.choice((1, 1, 1, -1)))


def _text(model: Message, rng: Random) -> None:
    """Another name, often one of the file: values, operators and graphs get mixed up."""
    spots = _spots(model, lambda f: f.type == f.TYPE_STRING)
    if len(spots) > 1:
        message, field, index = rng.choice(spots)
        held = getattr(message, field.name)
        other = held if index is None else held[index]
        _put(rng.choice(spots), rng.choice((other, other, other, rng.choice(TEXTS))))


def _structure(model: Message, rng: Random) -> None:
    """One entry of a list is dropped, repeated, moved, or replaced by another of its kind."""
    lists = [s for s in _spots(model, lambda f: bool(f.is_repeated)) if s[2] is not None]
    if not lists:
        return
    message, field, index = rng.choice(lists)
    entries = getattr(message, field.name)
    assert index is not None
    other, how = rng.randrange(len(entries)), rng.randrange(4)
    if how == 0:
        del entries[index]
    elif how == 1 and isinstance(entries[index], Message):
        entries[index].CopyFrom(entries[other])
    elif how == 1:
        entries[index] = entries[other]
    elif how == 2:
        entries.append(entries[index])
    else:
        kept = list(entries)
        del entries[:]
        kept.insert(other, kept.pop(index))
        entries.extend(kept)


def _dims(model: Message, rng: Random) -> None:
    """Dims of one tensor or type: the numbers that sizes are made of."""
    tensors = _spots(
        model, lambda f: f.name in ("tensor", "tensors", "parameter", "initializer", "t")
    )
    if not tensors:
        return
    message, field, index = rng.choice(tensors)
    held = getattr(message, field.name)
    tensor = held if index is None else held[index]
    how = rng.randrange(3)
    if how == 0:
        tensor.dims.append(rng.choice((0, 1, 2, -1, -2, *NUMBERS)))
    elif how == 1 and tensor.dims:
        del tensor.dims[rng.randrange(len(tensor.dims))]
    elif tensor.dims:
        tensor.dims[rng.randrange(len(tensor.dims))] = rng.choice((-1, -2, *NUMBERS))


_CHANGES = (_number, _number, _number, _text, _structure, _structure, _dims)
