"""A ModelInferRequest becomes an InferRequest, an InferResponse becomes the bytes to send.

Tensors stay out of protobuf's hands both ways: they come as views of the received bytes (split.py),
and are joined behind the rest of the answer, which takes one copy.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from mindspore_lite.server.core import Core
from mindspore_lite.server.datatypes import Datatype
from mindspore_lite.server.errors import Answer
from mindspore_lite.server.grpc.inference_pb2 import (
    InferParameter,
    InferTensorContents,
    ModelInferRequest,
    ModelInferResponse,
    ModelStreamInferResponse,
)
from mindspore_lite.server.request import (
    InferInput,
    InferRequest,
    InferResponse,
    Parameter,
    Read,
    RequestedOutput,
    Shape,
    converted,
    invalid,
    unsigned,
)
from mindspore_lite.server.request import raw_reader as read_raw

REGION, OFFSET, SIZE = "shared_memory_region", "shared_memory_offset", "shared_memory_byte_size"
FINAL = "triton_final_response"
_FIELDS = {  # of InferTensorContents, by the type whose values it holds
    "BOOL": "bool_contents", "INT8": "int_contents", "INT16": "int_contents",
    "INT32": "int_contents", "INT64": "int64_contents", "UINT8": "uint_contents",
    "UINT16": "uint_contents", "UINT32": "uint_contents", "UINT64": "uint64_contents",
    "FP32": "fp32_contents", "FP64": "fp64_contents",
}  # fmt: skip
_RAW_TAG, _RESPONSE_TAG = 6 << 3 | 2, 2 << 3 | 2  # raw_output_contents, infer_response
_MOST_DIMS = 64  # of a tensor; NumPy's own limit
_VERSION = re.compile(r"[0-9]{0,18}", re.ASCII)


def checked_version(version: str) -> str:
    """A version as the protocol has it: digits, or nothing.

    Raises:
        RequestError: It is something else.
    """
    if not _VERSION.fullmatch(version):
        raise invalid(f"the version {version[:40]!r} must be a number")
    return version


def read_infer(core: Core, message: ModelInferRequest, raws: Sequence[memoryview]) -> InferRequest:
    """What a client asks for; `raws` are the tensors of the message.

    Raises:
        RequestError: The message contradicts itself.
    """
    if len(message.id.encode()) > core.limits.id_bytes:
        raise invalid(f"the id is longer than the {core.limits.id_bytes} bytes allowed")
    return InferRequest(
        message.model_name,
        message.model_version,
        _inputs(core, message.inputs, raws),
        [_output(core, one) for one in message.outputs],
        message.id,
        _parameters(message.parameters) if message.parameters else {},
    )


def _inputs(core: Core, given: Sequence[Any], raws: Sequence[memoryview]) -> list[InferInput]:
    found, used = [], 0
    for one in given:
        parameters = _parameters(one.parameters) if one.parameters else {}
        has_contents = one.HasField("contents")
        read: Read
        if _has_region(parameters):
            if has_contents:
                raise invalid(f"input {one.name!r} has contents and shared memory; send one")
            read = core.shared().reader(*_region(parameters))
        elif raws:
            if has_contents:
                raise invalid(f"input {one.name!r} has contents next to raw_input_contents")
            if used == len(raws):
                raise invalid(f"raw_input_contents has {used} entries, too few for the inputs")
            read, used = read_raw(raws[used]), used + 1
        elif has_contents:
            read = _contents_reader(one.contents)
        else:
            raise invalid(f"input {one.name!r} has no data; send it in raw_input_contents")
        if len(one.shape) > _MOST_DIMS:  # before millions of them become Python's numbers
            raise invalid(f"input {one.name!r} has {len(one.shape)} dims, at most {_MOST_DIMS} go")
        found.append(InferInput(one.name, one.datatype, tuple(one.shape), read))
    if used < len(raws):
        raise invalid(f"raw_input_contents has {len(raws)} entries, the inputs take {used}")
    return found


def _contents_reader(contents: InferTensorContents) -> Read:
    """Reads an input from the one list of values that its type has."""

    def read(datatype: Datatype, shape: Shape) -> np.ndarray:
        field = _FIELDS.get(datatype.name)
        if field is None:
            raise invalid(f"there are no contents of {datatype.name}; use raw_input_contents")
        wrong = [one.name for one, _ in contents.ListFields() if one.name != field]
        if wrong:
            raise invalid(f"{datatype.name} goes into {field}, got {', '.join(wrong)}")
        values = getattr(contents, field)
        if len(values) != math.prod(shape):
            raise invalid(
                f"got {len(values)} elements, shape {list(shape)} takes {math.prod(shape)}"
            )
        return converted(list(values), datatype).reshape(shape)

    return read


def _output(core: Core, one: Any) -> RequestedOutput:
    parameters = _parameters(one.parameters) if one.parameters else {}
    write = core.shared().writer(*_region(parameters)) if _has_region(parameters) else None
    count = unsigned("classification", parameters.get("classification", 0))
    return RequestedOutput(one.name, True, count, write)


def _has_region(parameters: Mapping[str, Parameter]) -> bool:
    if REGION in parameters:
        return True
    if OFFSET in parameters or SIZE in parameters:
        raise invalid(f"{OFFSET} and {SIZE} need {REGION}")
    return False


def _region(parameters: Mapping[str, Parameter]) -> tuple[str, int, int]:
    name = parameters[REGION]
    if not isinstance(name, str):
        raise invalid(f"{REGION} must be a string")
    return (
        name,
        unsigned(OFFSET, parameters.get(OFFSET, 0)),
        unsigned(SIZE, parameters.get(SIZE, 0)),
    )


def _parameters(given: Mapping[str, InferParameter]) -> dict[str, Parameter]:
    found: dict[str, Parameter] = {}
    for key, one in given.items():
        kind = one.WhichOneof("parameter_choice")
        if kind is None:
            raise invalid(f"parameter {key!r} has no value")
        found[key] = getattr(one, kind)
    return found


def write_infer(response: InferResponse) -> bytes:
    """The answer to ModelInfer."""
    return b"".join(_parts(response, _head(response)))


def write_stream_answer(response: InferResponse) -> bytes:
    """The answer to one request of ModelStreamInfer."""
    head = _head(response)
    head.parameters[FINAL].bool_param = True
    parts = list(_parts(response, head))
    return b"".join([_length(_RESPONSE_TAG, sum(map(len, parts))), *parts])


def write_stream_error(answer: Answer, request_id: str) -> bytes:
    """The same where the request failed."""
    failed = ModelStreamInferResponse(error_message=answer.text)
    failed.infer_response.id = request_id
    return failed.SerializeToString()


def _head(response: InferResponse) -> ModelInferResponse:
    head = ModelInferResponse(
        model_name=response.model_name, model_version=response.model_version, id=response.id
    )
    for one in response.outputs:
        head.outputs.add(name=one.name, datatype=one.datatype, shape=one.shape)
    return head


def _parts(response: InferResponse, head: ModelInferResponse) -> Iterator[bytes | memoryview]:
    """What the answer is made of: an entry for each output, empty for those in shared memory."""
    yield head.SerializeToString()
    for one in response.outputs:
        raw = memoryview(b"") if one.written else one.raw()
        yield _length(_RAW_TAG, raw.nbytes)
        yield raw


def _length(tag: int, count: int) -> bytes:
    """How a field of `count` bytes begins."""
    found = bytearray((tag,))
    while count > 0x7F:
        found.append(count & 0x7F | 0x80)
        count >>= 7
    found.append(count)
    return bytes(found)
