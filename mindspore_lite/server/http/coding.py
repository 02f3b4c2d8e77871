"""Content codings: gzip and deflate (a zlib stream) of requests and answers, with caps."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

from mindspore_lite.server.errors import Kind, RequestError
from mindspore_lite.server.http.chunked import too_large
from mindspore_lite.server.limits import MIB, Limits

_WINDOWS = {b"gzip": 31, b"deflate": 15}  # zlib's numbers for the two formats
_SLICE = 1 << 16  # bytes that zlib is given at once: it copies what it does not use
_PIECE = 1 << 18  # bytes that are inflated before the caps are looked at again
_LEVEL = 1  # of answers: tensors hardly shrink, and the client waits


def is_coded(coding: bytes | None) -> bool:
    """Whether a request's body is compressed.

    Raises:
        RequestError: In a way that we do not know.
    """
    if coding is None or coding in (b"", b"identity"):
        return False
    if coding not in _WINDOWS:
        raise RequestError(Kind.ENCODING, "Content-Encoding must be gzip or deflate")
    return True


def inflated(body: Any, coding: bytes, limits: Limits) -> bytearray:
    """The body that was compressed.

    Raises:
        RequestError: It is broken, or inflates to more than allowed.
    """
    found, data = bytearray(), memoryview(body)
    most = min(limits.body_bytes, MIB + data.nbytes * limits.inflate_ratio)
    reader = zlib.decompressobj(_WINDOWS[coding])
    try:
        for start in range(0, data.nbytes, _SLICE):
            if reader.eof:
                raise zlib.error  # something behind the end
            piece = reader.decompress(data[start : start + _SLICE], _PIECE)
            while piece:
                found += piece
                if len(found) > most:
                    raise too_large(most)
                piece = reader.decompress(reader.unconsumed_tail, _PIECE)
    except zlib.error:
        raise RequestError(Kind.INVALID, f"the body is no {coding.decode()} stream") from None
    if not reader.eof or reader.unused_data:
        raise RequestError(
            Kind.INVALID, f"the {coding.decode()} stream of the body is cut off, or goes on behind"
        )
    return found


def chosen(accepted: bytes | None, *, alone: bool) -> bytes:
    """The coding for an answer, b"" for none; with `alone` only if the client names no other."""
    if not accepted:
        return b""
    wanted: list[tuple[float, bytes]] = []
    names = 0
    for part in accepted.lower().split(b","):
        name, _, weight = part.partition(b";")
        name, weight = name.strip(), weight.strip()
        if not name or name == b"identity":
            continue
        names += 1
        try:
            quality = float(weight[2:]) if weight.startswith(b"q=") else 1.0
        except ValueError:
            continue
        if name in _WINDOWS and quality > 0:
            wanted.append((quality, name))
    if not wanted or (alone and names > 1):
        return b""
    return max(wanted, key=lambda one: one[0])[1]  # the first of equals


def deflated(parts: Sequence[Any], coding: bytes) -> bytes:
    """Parts of a body, compressed as one."""
    writer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _WINDOWS[coding])
    return b"".join([*(writer.compress(part) for part in parts), writer.flush()])
