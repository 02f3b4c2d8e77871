"""Splits the bytes of a MindIR file into a small skeleton and the places of its large weights.

protobuf copies every bytes field it parses. Cutting the weights out first keeps them where they
are, in the memory-mapped file, and leaves a skeleton that parses in milliseconds.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from mindspore_lite.core.files import File
from mindspore_lite.errors import ModelFileError

_GRAPH, _PARAMETER, _RAW_DATA = 7, 3, 9  # Model.graph, Graph.parameter, Tensor.raw_data
_EXTERNAL_DATA, _LOCATION = 12, 1  # Tensor.external_data, ExternalData.location
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
# of one message; the largest exports have some ten thousand nodes, weights and notes on values
MAX_FIELDS = 400_000
MAPPED_BYTES = 4096  # a page: smaller weights are cheaper copied than kept as spans

Data = memoryview | File
Span = tuple[int, int]
# (start, end) of a payload -> the new payload; None keeps the old one
Change = Callable[[int, int], bytes | None]


def split_weights(data: memoryview) -> tuple[bytes, dict[int, Span]]:
    """Return the file without big weights, and {parameter number: (start, end)} of those cut."""
    spans: dict[int, Span] = {}
    numbers = itertools.count()  # a graph may come in pieces

    def graph(start: int, end: int) -> bytes:
        return _without_weights(data, start, end, spans, numbers)

    return rewritten(data, 0, len(data), {_GRAPH: graph}), spans


def split_graph_weights(data: memoryview) -> tuple[bytes, dict[int, Span]]:
    """As split_weights, for a file that is a bare Graph: the side files of the oldest releases."""
    spans: dict[int, Span] = {}
    return _without_weights(data, 0, len(data), spans, itertools.count()), spans


def weights_outside(data: Data) -> tuple[set[str], bool]:
    """Names of the files in which weights lie, and whether the graph has any weight at all.

    Found without parsing the file: a start from the compile cache has to know them, too.
    """
    locations: set[str] = set()
    some = False
    for start, end in payloads(data, 0, len(data), _GRAPH):
        for first, last in payloads(data, start, end, _PARAMETER):
            some = True
            for at, stop in payloads(data, first, last, _EXTERNAL_DATA):
                for place in payloads(data, at, stop, _LOCATION):
                    locations.add(str(data[place[0] : place[1]], "utf-8", "replace"))
    return locations, some


def first_field(data: memoryview) -> tuple[int, int]:
    """Number and wire type of the first field: distinguishes ONNX from MindIR."""
    tag, _ = _varint(data, 0, len(data))
    return tag >> 3, tag & 7


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a protobuf message: where its tag begins and where its payload lies."""

    number: int
    is_bytes: bool
    begin: int
    start: int
    end: int


def fields(data: Data, start: int, end: int) -> Iterator[Field]:
    """The fields of one message, with every length checked against what is there."""
    at, count = start, 0
    while at < end:
        begin, count = at, count + 1
        if count > MAX_FIELDS:
            raise ModelFileError(
                f"a message at byte {start} has more than {MAX_FIELDS} fields; no model has as many"
            )
        tag, at = _varint(data, at, end)
        number, wire = tag >> 3, tag & 7
        if not number:  # said at once: a file of zeros has as many such fields as bytes
            raise ModelFileError(f"byte {begin} holds no protobuf field (its number is 0)")
        if wire == _BYTES:
            length, first = _varint(data, at, end)
            at = first + length
        elif wire == _VARINT:
            first, (_, at) = at, _varint(data, at, end)
        elif wire in (_FIXED64, _FIXED32):
            first, at = at, at + (8 if wire == _FIXED64 else 4)
        else:
            raise ModelFileError(f"byte {begin} holds no protobuf field (wire type {wire})")
        if at > end:
            raise ModelFileError(
                f"field {number} at byte {begin} claims {at - first} bytes, only {end - first} "
                "are left; the file is truncated or damaged"
            )
        yield Field(number, wire == _BYTES, begin, first, at)


def payloads(data: Data, start: int, end: int, number: int) -> Iterator[Span]:
    """Where the payloads of all bytes fields `number` of one message lie."""
    return ((f.start, f.end) for f in fields(data, start, end) if f.number == number and f.is_bytes)


def _without_weights(
    data: memoryview, start: int, end: int, spans: dict[int, Span], numbers: Iterator[int]
) -> bytes:
    """One Graph message with its big weights cut out, their places noted in `spans`."""

    def parameter(start: int, end: int) -> bytes:
        index = next(numbers)

        def raw(first: int, last: int) -> bytes | None:
            if last - first < MAPPED_BYTES:
                spans.pop(index, None)  # a field may come twice, and the last one counts
                return None
            spans[index] = (first, last)
            return b""

        return rewritten(data, start, end, {_RAW_DATA: raw})

    return rewritten(data, start, end, {_PARAMETER: parameter})


def rewritten(data: Data, start: int, end: int, changes: Mapping[int, Change]) -> bytes:
    """Copy one message, passing the payloads of bytes fields through the change of their number."""
    parts: list[bytes | memoryview] = []
    kept = start
    for field in fields(data, start, end):
        if field.is_bytes and field.number in changes:
            new = changes[field.number](field.start, field.end)
            if new is not None:
                parts += [
                    data[kept : field.begin],
                    encoded(field.number << 3 | _BYTES),
                    encoded(len(new)),
                    new,
                ]
                kept = field.end
    parts.append(data[kept:end])
    return b"".join(parts)


def _varint(data: Data, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end and shift < 64:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise ModelFileError(f"the number at byte {at} does not end; the file is truncated or damaged")


def encoded(value: int) -> bytes:
    """A number as protobuf writes it."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
