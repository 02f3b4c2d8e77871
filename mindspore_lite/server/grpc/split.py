"""Takes the tensors out of a ModelInferRequest without parsing them.

    rest, raws = split(message, most_rest, most_fields)
    request = inference_pb2.ModelInferRequest.FromString(rest)

Each of `raws` is a view of the received bytes, in order: what `raw_input_contents` would hold
after a parse, which copies. Everything else is in `rest`, byte by byte, for protobuf to judge. The
verdict and the content are those of a parse of the whole; what is rare, such as a group, is left to
it.
"""

from __future__ import annotations

from google.protobuf.message import DecodeError

from mindspore_lite.server.errors import Kind, RequestError
from mindspore_lite.server.grpc.inference_pb2 import ModelInferRequest

_RAW = 7 << 3 | 2  # the tag of raw_input_contents
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5  # kinds of fields on the wire
_LONG = 4  # bytes of a length or tag; more are rare: 2^28 is beyond any message that we take


class _OddError(Exception):
    """The message holds what only protobuf shall judge."""


def split(message: bytes, most_rest: int, most_fields: int) -> tuple[bytes, list[memoryview]]:
    """The message without its tensors, and the tensors.

    Args:
        message: A ModelInferRequest as it was received.
        most_rest: Bytes that it may have without its tensors. Protobuf makes up to 40 times as much
            of them.
        most_fields: How many fields it may have at the top.

    Raises:
        RequestError: It has more than that, or is no such message.
    """
    try:
        rest, raws = _split(message, most_fields)
    except (_OddError, IndexError):
        rest, raws = _by_protobuf(message, most_rest)
    if len(rest) > most_rest:
        raise _too_large(len(rest), most_rest)
    return rest, raws


def parsed(rest: bytes) -> ModelInferRequest:
    """The message that `rest` is.

    Raises:
        RequestError: It is none.
    """
    try:
        return ModelInferRequest.FromString(rest)
    except DecodeError as exc:
        raise _malformed() from exc


def _split(message: bytes, most_fields: int) -> tuple[bytes, list[memoryview]]:
    view = memoryview(message)
    raws: list[memoryview] = []
    kept: list[memoryview] = []
    at, start, size, fields = 0, 0, len(message), 0  # from `start` to `at` nothing is a tensor
    while at < size:
        fields += 1
        if fields > most_fields:
            raise RequestError(
                Kind.INVALID, f"the message has more than the {most_fields} fields allowed"
            )
        begin = at
        tag, at = _number(message, at)
        if tag & 7 == _BYTES:
            count, at = _number(message, at)
            end = at + count
            if tag == _RAW:
                if end > size:
                    raise _OddError
                if start < begin:
                    kept.append(view[start:begin])
                raws.append(view[at:end])
                start = end
            at = end
        elif tag & 7 == _VARINT:
            at = _after_varint(message, at)
        elif tag & 7 == _FIXED64:
            at += 8
        elif tag & 7 == _FIXED32:
            at += 4
        else:
            raise _OddError
    if at > size:
        raise _OddError
    if start < size:
        kept.append(view[start:size])
    return b"".join(kept), raws


def _number(message: bytes, at: int) -> tuple[int, int]:
    """A tag or length, and where it ends. IndexError if the message ends before."""
    value = message[at]
    at += 1
    if value < 0x80:
        return value, at
    value &= 0x7F
    for shift in range(7, 7 * _LONG, 7):
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise _OddError


def _after_varint(message: bytes, at: int) -> int:
    for end in range(at, at + 10):
        if message[end] < 0x80:
            return end + 1
    raise _OddError


def _by_protobuf(message: bytes, most_rest: int) -> tuple[bytes, list[memoryview]]:
    """The same by a parse of the whole, if it is small."""
    if len(message) > most_rest:
        raise _malformed()
    request = parsed(message)
    raws = [memoryview(raw) for raw in request.raw_input_contents]
    request.ClearField("raw_input_contents")
    return request.SerializeToString(), raws


def _malformed() -> RequestError:
    return RequestError(Kind.INVALID, "the message is not a ModelInferRequest")


def _too_large(got: int, most: int) -> RequestError:
    return RequestError(
        Kind.TOO_LARGE,
        f"the message has {got} bytes beside raw_input_contents, at most {most} go; send tensors "
        "there rather than in contents",
    )
