"""A client of the Open Inference Protocol's gRPC service.

A request is serialised once, and sent as it is each time. Few channels carry all requests, as the
clients of a program would share them.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Mapping
from typing import Any

import grpc
import numpy as np
from google.protobuf.message import DecodeError

from mindspore_lite.bench.oip import (
    ANSWER_S,
    ASK_S,
    ServedModel,
    ServedTensor,
    Url,
    failure,
    raw_input,
    raw_output,
)
from mindspore_lite.errors import (
    CancelledError,
    EngineError,
    LiteError,
    RequestTimeoutError,
    WireError,
)
from mindspore_lite.server.grpc.inference_pb2 import (
    ModelInferRequest,
    ModelInferResponse,
    ModelMetadataRequest,
    ModelMetadataResponse,
)

_SERVICE = "/inference.GRPCInferenceService"
_CHANNELS = 4  # connections of all callers together; guess
_OPTIONS = [
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    ("grpc.use_local_subchannel_pool", 1),  # else all channels share one connection
    ("grpc.enable_http_proxy", 0),
]
_STATUSES = {  # the codes of gRPC as statuses of HTTP
    grpc.StatusCode.UNAVAILABLE: 503,
    grpc.StatusCode.RESOURCE_EXHAUSTED: 503,
    grpc.StatusCode.INVALID_ARGUMENT: 400,
    grpc.StatusCode.UNAUTHENTICATED: 401,
    grpc.StatusCode.PERMISSION_DENIED: 403,
    grpc.StatusCode.NOT_FOUND: 404,
}
_BROKEN = (  # how grpcio's own words for UNAVAILABLE begin, which no server sent
    "failed to connect", "connections to all backends failing", "socket closed", "recvmsg",
    "connection reset", "broken pipe", "goaway", "dns resolution failed", "stream removed",
    "name resolution failure", "endpoint read failed",
)  # fmt: skip


class GrpcClient:
    """Asks a server over gRPC. Its lock guards the channels."""

    def __init__(self, url: Url, token: str = "") -> None:
        self._url = url
        self._metadata = [("authorization", f"Bearer {token}")] if token else []
        self._lock = threading.Lock()
        self._channels: list[Any] = []
        self._calls: list[Any] = []  # of ModelInfer, one for each channel
        self._next = itertools.count()

    def names(self) -> list[str] | None:
        """The protocol has no way to ask."""
        return None

    def describe(self, model: str) -> ServedModel:
        """What a model takes.

        Raises:
            LiteError: There is no server, or no such model.
        """
        asked = ModelMetadataRequest(name=model).SerializeToString()
        found = ModelMetadataResponse()
        with grpc.insecure_channel(self._url.place, _OPTIONS) as channel:
            call = channel.unary_unary(f"{_SERVICE}/ModelMetadata")
            try:
                found.ParseFromString(call(asked, timeout=ASK_S, metadata=self._metadata))
            except grpc.RpcError as exc:
                if exc.code() is grpc.StatusCode.NOT_FOUND:
                    text = f"{self._url} has no model {model!r}: {exc.details()}"
                    raise EngineError(text) from exc
                raise self._error(exc, ASK_S) from exc
            except DecodeError as exc:
                raise WireError(f"{self._url} sent an answer that cannot be read") from exc
        inputs = (ServedTensor(one.name, one.datatype, tuple(one.shape)) for one in found.inputs)
        return ServedModel(model, tuple(inputs))

    def request(self, model: str, feed: Mapping[str, np.ndarray]) -> bytes:
        """A serialised ModelInferRequest, with raw tensors."""
        message = ModelInferRequest(model_name=model)
        for name, array in feed.items():
            datatype, raw = raw_input(name, array)
            message.inputs.add(name=name, datatype=datatype, shape=array.shape)
            message.raw_input_contents.append(raw)
        return message.SerializeToString()

    def infer(self, request: bytes) -> list[np.ndarray]:
        """The outputs, in the order of the answer.

        Raises:
            LiteError: It has none; QueueFullError if the server has no room for the request.
        """
        call = self._call()
        try:
            answer = call(request, timeout=ANSWER_S, metadata=self._metadata)
            return _outputs(answer)
        except grpc.RpcError as exc:
            raise self._error(exc, ANSWER_S) from exc
        except (ValueError, DecodeError) as exc:
            if "closed channel" in str(exc):  # hung up between two lines
                raise CancelledError("given up") from exc
            raise WireError(f"{self._url} sent an answer that cannot be read: {exc}") from exc

    def hang_up(self) -> None:
        """End what is under way; what is asked later goes over new connections."""
        with self._lock:
            channels, self._channels, self._calls = self._channels, [], []
        for channel in channels:
            channel.close()

    def _call(self) -> Any:
        with self._lock:
            if len(self._calls) < _CHANNELS:
                channel = grpc.insecure_channel(self._url.place, _OPTIONS)
                self._channels.append(channel)
                self._calls.append(channel.unary_unary(f"{_SERVICE}/ModelInfer"))
                return self._calls[-1]
            return self._calls[next(self._next) % _CHANNELS]

    def _error(self, exc: Any, limit_s: float) -> LiteError:
        code, text = exc.code(), exc.details() or ""
        if code is grpc.StatusCode.UNAVAILABLE and text.lower().startswith(_BROKEN):
            if "HTTP/2" in text:
                return WireError(f"{self._url} does not speak gRPC; is this the port of HTTP?")
            return WireError(
                f"there is no server at {self._url} ({text[:200]}); start one, such as "
                "mslite serve MODEL"
            )
        if code is grpc.StatusCode.DEADLINE_EXCEEDED:
            return RequestTimeoutError(f"{self._url} did not answer within {limit_s:g} s")
        if code is grpc.StatusCode.CANCELLED:
            return CancelledError("given up")
        if code in _STATUSES:
            return failure(self._url, _STATUSES[code], text, code.name)
        return EngineError(f"{self._url} answers {code.name}: {text[:500]}")


def _outputs(answer: bytes) -> list[np.ndarray]:
    message = ModelInferResponse.FromString(answer)
    raws = message.raw_output_contents
    if len(raws) != len(message.outputs):
        raise ValueError(f"it has {len(message.outputs)} outputs, and {len(raws)} raw tensors")
    return [
        raw_output(one.datatype, one.shape, raw)
        for one, raw in zip(message.outputs, raws, strict=True)
    ]
