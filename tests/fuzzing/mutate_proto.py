"""Damages protobuf messages by what their fields mean, for any message type: ONNX and MindIR.

Descriptors say which fields there are, so nothing here knows a schema. Besides single values, whole
messages move: from another file of the corpus, or from elsewhere in this one, into any field of
their type. That is how sub-graphs nest, functions appear, and a tensor whose data lie in another
file comes to every place that can hold a tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from fuzzing.mutate_bytes import changed_bytes, varint
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message

from mindspore_lite.mindir import mindir_pb2 as pb

# small ones that mean something (axes, enumerations, dims), and those at which types end
NUMBERS = (
    *(0, 1, 2, 3, 4, 5, 7, 9, 16, 17, 21, 43, 64, 255, 1000, 65536),
    *(10**6, 2**31 - 1, 2**31, 2**32, 2**40, 2**62, 2**63 - 1),
)
FRACTIONS = (0.0, -0.0, 0.5, 1e-45, 1e38, float("inf"), float("-inf"), float("nan"))
TEXTS = ("", "x", "REF::", "Constant", "\0", "shape", "value", "ai.onnx", "com.microsoft", "é" * 40)
# in the folder of the model, out of it, through links, in the working directory; see ground.py
PATHS = (
    *("data", "weights.bin", "split_variables/data_0", "stray", "link", "out/secret", "pipe"),
    *("../secret", "../../etc/passwd", "/etc/passwd", "/dev/zero", "/proc/self/mem", ".", "", "\0"),
)
_DEEPEST = 40  # of messages in messages: protobuf reads no more than 100
_MOST = 20_000  # messages of a tree; grafts must not grow without an end

Spot = tuple[Message, FieldDescriptor, int | None]


def mutated(
    data: bytes, rng: Random, kind: type[Message] = pb.Model, donors: Sequence[bytes] = ()
) -> bytes:
    """The file with some damage, to its bytes or to its fields; donors are files of the kind."""
    if rng.random() < 0.2:
        return changed_bytes(data, rng)
    try:
        model = kind.FromString(data)
    except DecodeError:  # encrypted, or damaged before
        return changed_bytes(data, rng)
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        rng.choice(_CHANGES)(model, rng, donors)
    try:
        return model.SerializeToString()
    except ValueError:  # nested too deeply, or more than two gigabytes
        return changed_bytes(data, rng)


def _parsed(kind: type[Message], data: bytes) -> Message:
    try:
        return kind.FromString(data)
    except DecodeError:  # encrypted
        return kind()


def _spots(message: Message, wanted: Callable[[FieldDescriptor], bool]) -> list[Spot]:
    """Every field that holds something, also inside of messages."""
    found: list[Spot] = []
    for inner in _messages(message):
        for field, value in inner.ListFields():
            if not wanted(field) or _is_map(field):
                continue
            if field.is_repeated:
                found += [(inner, field, index) for index in range(len(value))]
            else:
                found.append((inner, field, None))
    return found


def _messages(root: Message) -> list[Message]:
    """The message and all that are in it, the outer ones first."""
    found, queue = [], [(root, 0)]
    while queue and len(found) < _MOST:
        message, depth = queue.pop()
        found.append(message)
        for field, value in message.ListFields():
            if field.message_type is None or _is_map(field) or depth > _DEEPEST:
                continue
            queue += [(item, depth + 1) for item in (value if field.is_repeated else [value])]
    return found


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)


def _is_text(field: FieldDescriptor) -> bool:
    return bool(field.type == field.TYPE_STRING)


def _is_number(field: FieldDescriptor) -> bool:
    return field.cpp_type not in (field.CPPTYPE_STRING, field.CPPTYPE_MESSAGE)


def _held(spot: Spot) -> Any:
    message, field, index = spot
    value = getattr(message, field.name)
    return value if index is None else value[index]


def _put(spot: Spot, value: Any) -> None:
    """Set a field; one that cannot hold the value gets it as a field that nobody declared."""
    message, field, index = spot
    try:
        if index is None:
            setattr(message, field.name, value)
        else:
            getattr(message, field.name)[index] = value
    except (ValueError, TypeError):
        if isinstance(value, int):  # an enumeration: readers see an unknown field of its number
            message.MergeFromString(varint(field.number << 3) + varint(value & 2**64 - 1))


def _number(model: Message, rng: Random, donors: Sequence[bytes]) -> None:
    """Another number: a dim, an axis, a type, an offset."""
    spots = _spots(model, _is_number)
    if not spots:
        return
    spot = rng.choice(spots)
    if spot[1].cpp_type in (FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE):
        _put(spot, rng.choice(FRACTIONS))
    else:
        _put(spot, rng.choice(NUMBERS) * rng.choice((1, 1, 1, -1)))


def _text(model: Message, rng: Random, donors: Sequence[bytes]) -> None:
    """Another name, often one of the file: values, operators and graphs get mixed up."""
    spots = _spots(model, _is_text)
    if len(spots) > 1:
        other = _held(rng.choice(spots))
        _put(rng.choice(spots), rng.choice((other, other, rng.choice(TEXTS), rng.choice(PATHS))))


def _bytes(model: Message, rng: Random, donors: Sequence[bytes]) -> None:
    """Raw data that are longer, shorter or others; strings of attributes."""
    spots = _spots(model, lambda f: bool(f.type == f.TYPE_BYTES))
    if spots:
        spot = rng.choice(spots)
        held = bytes(_held(spot))
        cut = held[: rng.randrange(len(held) + 1)]
        _put(spot, rng.choice((b"", cut, held + held[:8], changed_bytes(held, rng), b"\xff\xfe")))


def _structure(model: Message, rng: Random, donors: Sequence[bytes]) -> None:
    """One entry of a list is dropped, repeated, moved, or replaced by another of its list."""
    lists = _spots(model, lambda f: bool(f.is_repeated))
    if not lists:
        return
    message, field, index = rng.choice(lists)
    assert index is not None
    entries = getattr(message, field.name)
    other, how = rng.randrange(len(entries)), rng.randrange(4)
    if how == 0:
        del entries[index]
    elif how == 1 and field.message_type is not None:
        entries[index].CopyFrom(entries[other])
    elif how == 1:
        entries[index] = entries[other]
    elif how == 2:
        entries.append(entries[index])
    else:
        kept = list(entries)
        kept.insert(other, kept.pop(index))
        message.ClearField(field.name)
        getattr(message, field.name).extend(kept)


def _cleared(model: Message, rng: Random, donors: Sequence[bytes]) -> None:
    """A field that holds something holds nothing."""
    message = rng.choice(_messages(model))
    fields = [field for field, _ in message.ListFields()]
    if fields:
        message.ClearField(rng.choice(fields).name)


def _dims(model: Message, rng: Random, donors: Sequence[bytes]) -> None:
    """Dims of one tensor: the numbers that sizes are made of."""
    tensors = [m for m in _messages(model) if "dims" in m.DESCRIPTOR.fields_by_name]
    if not tensors:
        return
    dims: Any = getattr(rng.choice(tensors), "dims")  # noqa: B009 - not of every message
    how = rng.randrange(3)
    if how == 0 or not dims:
        dims.append(rng.choice((0, 1, 2, -1, -2, *NUMBERS)))
    elif how == 1:
        del dims[rng.randrange(len(dims))]
    else:
        dims[rng.randrange(len(dims))] = rng.choice((-1, -2, *NUMBERS))


def _graft(model: Message, rng: Random, donors: Sequence[bytes]) -> None:
    """A message of this file or of another comes into a field of its type, wherever that is."""
    place = rng.choice(_messages(model))
    fields = [f for f in place.DESCRIPTOR.fields if f.message_type is not None and not _is_map(f)]
    if not fields:
        return
    field = rng.choice(fields)
    donor = rng.choice((None, *donors))
    root = model if donor is None else _parsed(type(model), donor)
    fitting = [m for m in _messages(root) if m.DESCRIPTOR is field.message_type]
    if not fitting:
        return
    chosen = rng.choice(fitting)
    given = type(chosen)()
    given.CopyFrom(chosen)  # before it changes: the place may lie inside of it
    if given.ByteSize() > 1 << 18:  # a tree that holds itself several times
        return
    if field.is_repeated:
        getattr(place, field.name).add().CopyFrom(given)
    else:
        getattr(place, field.name).CopyFrom(given)


def _elsewhere(model: Message, rng: Random, donors: Sequence[bytes]) -> None:
    """The data of one tensor lie in another file: ONNX lists words, MindIR has a message."""
    tensors = [m for m in _messages(model) if "external_data" in m.DESCRIPTOR.fields_by_name]
    if not tensors:
        return
    tensor: Any = rng.choice(tensors)
    for name in rng.choice(((), ("raw_data",), ("raw_data", "float_data", "int64_data"))):
        tensor.ClearField(name)
    where, start, size = rng.choice(PATHS), rng.choice((0, 0, *NUMBERS)), rng.choice(NUMBERS)
    tensor.ClearField("external_data")
    if tensor.DESCRIPTOR.fields_by_name["external_data"].is_repeated:
        tensor.data_location = 1
        words = {"location": where, "offset": str(start), "length": str(size)}
        for key in rng.sample(sorted(words), rng.choice((1, 2, 3, 3, 3))):
            tensor.external_data.add(key=key, value=words[key])
    else:
        found = tensor.external_data
        found.location, found.offset, found.length = where, start, size


_CHANGES = (
    *(_number, _number, _number, _text, _text, _bytes, _structure, _structure, _cleared),
    *(_dims, _graft, _graft, _elsewhere, _elsewhere),
)
