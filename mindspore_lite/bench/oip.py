"""What `mslite bench --url` knows of a server of the Open Inference Protocol, whichever the port.

url_of("grpc://127.0.0.1:8001")      Url("grpc", "127.0.0.1", 8001)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlsplit

import numpy as np

from mindspore_lite.errors import EngineError, InputError, LiteError, QueueFullError
from mindspore_lite.server.datatypes import DATATYPES, Datatype, of_dtype

ASK_S = 10.0  # for questions that take no model; guess
ANSWER_S = 50.0  # for a request; less than a burst waits for its clients after its end
_MOST_TEXT = 500  # characters of an error that a server sends
_REFUSALS = (429, 503)
_FAULTS = (400, 413, 415, 422)


@dataclass(frozen=True)
class Url:
    """Where a server is."""

    scheme: str  # "http" or "grpc"
    host: str
    port: int

    @property
    def place(self) -> str:
        """`host:port`, with brackets around the address of IPv6."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.place}"


def url_of(text: str) -> Url:
    """Read --url.

    Raises:
        ValueError: It is none of ours.
    """
    wanted = "wanted http://HOST:PORT or grpc://HOST:PORT"
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError as exc:
        raise ValueError(f"--url got {text!r}, {wanted}: {exc}") from None
    known = parts.scheme in ("http", "grpc") and host and port
    rest = parts.path.strip("/") or parts.query or parts.fragment or parts.username
    if not known or rest or not text.isascii() or not text.isprintable() or " " in text:
        where = "; the name of the model goes into --model" if known and rest else ""
        raise ValueError(f"--url got {text!r}, {wanted}{where}")
    return Url(parts.scheme, host or "", port or 0)


@dataclass(frozen=True)
class ServedTensor:
    """An input as the server describes it; -1 is an open dim."""

    name: str
    datatype: str
    shape: tuple[int, ...]

    @property
    def known(self) -> Datatype:
        """The type of its elements.

        Raises:
            InputError: No numbers are of this type.
        """
        if self.datatype not in DATATYPES:
            raise InputError(
                f"input {self.name!r} takes {self.datatype}, mslite bench sends "
                f"{', '.join(DATATYPES)}",
                input_name=self.name,
            )
        return DATATYPES[self.datatype]


@dataclass(frozen=True)
class ServedModel:
    """A model as the server describes it."""

    name: str
    inputs: tuple[ServedTensor, ...]


class Client(Protocol):
    """Asks a server. All threads may use it at the same time."""

    def names(self) -> list[str] | None:
        """Of all models; None where the server does not say."""

    def describe(self, model: str) -> ServedModel:
        """What a model takes."""

    def request(self, model: str, feed: Mapping[str, np.ndarray]) -> bytes:
        """A request, as `infer` sends it."""

    def infer(self, request: bytes) -> list[np.ndarray]:
        """The outputs, in the order of the answer."""

    def hang_up(self) -> None:
        """End what is under way; what is asked later goes over new connections."""


def raw_input(name: str, array: np.ndarray) -> tuple[str, bytes]:
    """The protocol's name of an array's type, and its bytes.

    Raises:
        InputError: The protocol has no such type.
    """
    datatype = of_dtype(array.dtype)
    if datatype is None:
        raise InputError(
            f"input {name!r} is {array.dtype}, the protocol has {', '.join(DATATYPES)}",
            input_name=name,
        )
    return datatype.name, np.ascontiguousarray(array).tobytes()


def raw_output(datatype: str, shape: Sequence[int], raw: bytes | memoryview) -> np.ndarray:
    """An output of an answer; texts stay bytes.

    Raises:
        ValueError: There are too few bytes for the shape, or too many.
    """
    known = DATATYPES.get(datatype)
    if known is None:
        return np.frombuffer(raw, np.uint8)
    return np.frombuffer(raw, known.dtype).reshape(shape)


def failure(url: Url, status: int, text: str, code: str = "") -> LiteError:
    """The error for an answer that is not 200; `code` is gRPC's, for which the status stands."""
    shown = code or status
    said = " ".join(text.split())[:_MOST_TEXT] or "without a word"
    if status in _REFUSALS:
        return QueueFullError(f"{url} refuses the request ({shown}): {said}")
    if status in (401, 403):
        return EngineError(f"{url} wants a token ({shown}), give --token-file FILE: {said}")
    if status in _FAULTS:
        return InputError(f"{url} does not take the request ({shown}): {said}")
    return EngineError(f"{url} answers {shown}: {said}")
