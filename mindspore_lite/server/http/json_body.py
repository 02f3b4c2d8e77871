"""JSON of requests: heads by msgspec, tensors by msgspec with the type that the input names.

msgspec has no NaN and Infinity, which Triton's clients send as bare words: a text that it refuses
is read once more by Python's own reader, which has them. Integers stay integers on both ways.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any

import msgspec
import numpy as np

from mindspore_lite.core.json_text import read_json
from mindspore_lite.server.datatypes import Datatype
from mindspore_lite.server.errors import Kind, RequestError
from mindspore_lite.server.limits import Limits
from mindspore_lite.server.request import Read, Shape, converted, invalid

_NO_NUMBER = re.compile(rb"(?<![\w.])-?(?:NaN|Infinity)\b")
_NESTED = re.compile(rb"\s*\[\s*\[")
_UNSET = msgspec.UNSET
_MOST_DIM = 2**63 - 1  # as in gRPC
_PIECE = 32 * 1024  # bytes of numbers that are read at once, 0.2 ms; guess
_PIECE_VALUES = 2048  # that are written at once


class InputHead(msgspec.Struct):
    """An input as it stands in the JSON; unknown fields are ignored."""

    name: str
    shape: list[Annotated[int, msgspec.Meta(ge=0, le=_MOST_DIM)]]
    datatype: str
    parameters: dict[str, Any] | msgspec.UnsetType = _UNSET
    data: msgspec.Raw | msgspec.UnsetType = _UNSET


class OutputHead(msgspec.Struct):
    """An output that is asked for."""

    name: str
    parameters: dict[str, Any] | msgspec.UnsetType = _UNSET


class RequestHead(msgspec.Struct):
    """The JSON of an inference request; unknown fields are ignored, as the kserve client needs."""

    inputs: list[InputHead]
    id: str = ""
    parameters: dict[str, Any] | msgspec.UnsetType = _UNSET
    outputs: list[OutputHead] = []


class _PlainInput(InputHead):
    """The same, read by Python."""

    data: Any = _UNSET


class _PlainRequest(RequestHead):
    inputs: list[_PlainInput]  # type: ignore[assignment]


_HEAD = msgspec.json.Decoder(RequestHead)


def read_request(text: Any, limits: Limits) -> RequestHead:
    """The head of a request, its tensors still as text.

    Raises:
        RequestError: It is too long, too deep, or no request.
    """
    if len(text) > limits.json_bytes:
        raise RequestError(
            Kind.TOO_LARGE,
            f"the JSON is longer than the {limits.json_bytes} bytes allowed; send tensors as "
            "binary data",
        )
    if text[:1] not in (b"{", b" ", b"\n", b"\t", b"\r"):
        raise invalid("the body is no JSON object")
    check_depth(text, limits.json_depth)
    try:
        return _HEAD.decode(text)
    except msgspec.ValidationError as exc:
        raise invalid(_words(exc)) from None
    except msgspec.DecodeError as exc:
        if not _NO_NUMBER.search(text):
            raise invalid(f"the JSON is malformed: {exc}") from None
    except (RecursionError, UnicodeDecodeError):
        raise invalid("the JSON is malformed") from None
    try:
        found = msgspec.convert(read_json(bytes(text)), _PlainRequest)
        found.id.encode()  # Python's reader takes half a character, which cannot be sent back
        return found
    except msgspec.ValidationError as exc:
        raise invalid(_words(exc)) from None
    except ValueError:
        raise invalid("the JSON is malformed") from None


def check_depth(text: Any, most: int) -> None:
    """Refuse what is nested deeper than allowed.

    Raises:
        RequestError: It is.
    """
    opened = text.count(b"[") + text.count(b"{")
    if opened <= most:
        return
    # without escapes, every second quotation mark ends a string, which may hold brackets, too
    plain = bytes(text).replace(b"\\\\", b"").replace(b'\\"', b"")
    found = np.frombuffer(plain, np.uint8)
    is_outside = np.cumsum(found == 0x22, dtype=np.uint8) & 1 == 0
    steps = np.zeros(len(found), np.int8)
    steps[((found == 0x5B) | (found == 0x7B)) & is_outside] = 1
    steps[((found == 0x5D) | (found == 0x7D)) & is_outside] = -1
    if int(np.cumsum(steps, dtype=np.int32).max(initial=0)) > most:
        raise invalid(f"the JSON is nested deeper than the {most} levels allowed")


def json_reader(data: Any) -> Read:
    """Reads an input from the `data` of its JSON, flat or nested exactly as its shape."""

    def read(datatype: Datatype, shape: Shape) -> np.ndarray:
        depth = len(shape) if len(shape) > 1 and _is_nested(data) else 1
        try:
            if depth == 1 and isinstance(data, msgspec.Raw) and len(memoryview(data)) > _PIECE:
                return _in_pieces(bytes(data), datatype, shape)
            values = _decoder(datatype.kind, depth)(data)
        except msgspec.ValidationError as exc:
            raise invalid(f"data of {datatype.name}: {_words(exc)}") from None
        except (msgspec.DecodeError, OverflowError, RecursionError):
            raise invalid(f"data of {datatype.name}: no list of such values") from None
        if depth > 1:
            return _nested(values, datatype, shape)
        if len(values) != math.prod(shape):
            raise invalid(
                f"got {len(values)} elements, shape {list(shape)} takes {math.prod(shape)}"
            )
        return converted(values, datatype).reshape(shape)

    return read


def _in_pieces(text: bytes, datatype: Datatype, shape: Shape) -> np.ndarray:
    """Numbers of a long flat list, read piece by piece: other threads may run in between.

    To cut at any comma is safe: the text is JSON, and pieces of what is no number are refused.
    """
    decode, found, count = _decoder(datatype.kind, 1), [], math.prod(shape)
    start, end = text.index(b"[") + 1, text.rindex(b"]")
    while start < end:
        comma = text.find(b",", start + _PIECE, end)
        stop = end if comma < 0 else comma
        values = decode(msgspec.Raw(b"[%b]" % text[start:stop]))
        count -= len(values)
        found.append(converted(values, datatype))
        start = stop + 1
        time.sleep(0)  # gives the interpreter's lock away
    if count:
        raise invalid(
            f"got {math.prod(shape) - count} elements, shape {list(shape)} takes {math.prod(shape)}"
        )
    return np.concatenate(found).reshape(shape)


def number_text(array: np.ndarray) -> msgspec.Raw:
    """A flat array as the text of a JSON list, made piece by piece like the above."""
    flat, texts = array.reshape(-1), []
    for start in range(0, flat.size, _PIECE_VALUES):
        piece = flat[start : start + _PIECE_VALUES]
        values = piece.tolist()
        if piece.dtype.kind == "f" and not np.isfinite(piece).all():
            # bare NaN and Infinity, as Triton writes them; msgspec would write null
            text = json.dumps(values, separators=(",", ":")).encode()
        else:
            text = msgspec.json.encode(values)
        texts.append(text[1:-1])
        if len(texts) > 1:
            time.sleep(0)
    return msgspec.Raw(b"[%b]" % b",".join(texts))


def _nested(values: list[Any], datatype: Datatype, shape: Shape) -> np.ndarray:
    """Lists in lists, which must have exactly this shape."""
    array = converted(values, datatype)
    if array.shape != shape:
        raise invalid(f"data is nested as {list(array.shape)}, the shape is {list(shape)}")
    return array


def _is_nested(data: Any) -> bool:
    if isinstance(data, msgspec.Raw):
        return _NESTED.match(bytes(memoryview(data)[:64])) is not None
    return isinstance(data, list) and bool(data) and isinstance(data[0], list)


@cache
def _decoder(kind: str, depth: int) -> Callable[[Any], Any]:
    """What reads values of a kind, in so many lists, from text or from Python objects."""
    element: Any = {"bool": bool | int, "int": int, "float": float}[kind]
    for _ in range(depth):
        element = list[element]
    decode = msgspec.json.Decoder(element).decode

    def read(data: Any) -> Any:
        if isinstance(data, msgspec.Raw):
            return decode(data)
        return msgspec.convert(data, element)

    return read


def _words(exc: msgspec.ValidationError) -> str:
    """What msgspec says, which begins with a capital and ends with the place."""
    return str(exc).replace("$", "the request", 1) if " - at " in str(exc) else str(exc)
