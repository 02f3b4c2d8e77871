"""POST .../infer: an HTTP body becomes an InferRequest, an InferResponse becomes an HTTP body.

Body = JSON of `Inference-Header-Content-Length` bytes, then the blocks of those inputs that carry
`binary_data_size`, in their order; without the header all of it is JSON; with 0 all of it is the
only input. Answers are laid out the same way.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from mindspore_lite.server.core import Core
from mindspore_lite.server.datatypes import DATATYPES
from mindspore_lite.server.http.coding import chosen, deflated, is_coded
from mindspore_lite.server.http.head import Head
from mindspore_lite.server.http.json_body import (
    InputHead,
    OutputHead,
    json_reader,
    number_text,
    read_request,
)
from mindspore_lite.server.http.reply import BINARY, Reply
from mindspore_lite.server.models import ServedModel
from mindspore_lite.server.request import (
    InferInput,
    InferOutput,
    InferRequest,
    InferResponse,
    Read,
    RequestedOutput,
    Write,
    invalid,
    raw_reader,
    unsigned,
)
from mindspore_lite.server.traceparent import TraceParent, read_traceparent

LENGTH, TIMEOUT = b"inference-header-content-length", b"x-request-timeout-ms"
_DIGITS = re.compile(rb"[0-9]{1,18}", re.ASCII)
BINARY_OUTPUT = "binary_data_output"
_REGION = "shared_memory_region"


@dataclass(frozen=True, slots=True)
class InferHead:
    """What the HTTP head of an inference request says.

    Attributes:
        length: Of the JSON in front of the tensors; None if all of the body is JSON.
        timeout_s: Within which the client wants its answer; None is no limit.
        coding: Of the body; b"" if it is not compressed.
        trace_id: For logs.
        parent: The caller's span, for traces.
    """

    length: int | None
    timeout_s: float | None
    coding: bytes
    trace_id: str
    parent: TraceParent | None


def infer_head(head: Head) -> InferHead:
    """Read the headers that count; once, however often the same head comes.

    Raises:
        RequestError: One of them makes no sense.
    """
    found = head.notes
    if not isinstance(found, InferHead):
        coding = head.headers.get(b"content-encoding", b"").lower()
        timeout_ms = _number(head, TIMEOUT)
        found = head.notes = InferHead(
            _number(head, LENGTH),
            timeout_ms / 1e3 if timeout_ms else None,
            coding if is_coded(coding) else b"",
            head.text(b"x-request-id") or "",
            read_traceparent(head.text(b"traceparent"), head.text(b"tracestate")),
        )
    return found


def _number(head: Head, name: bytes) -> int | None:
    value = head.headers.get(name)
    if value is None:
        return None
    if not _DIGITS.fullmatch(value):
        raise invalid(f"the header {name.decode()} must be digits")
    return int(value)


def read_infer(
    core: Core, model: ServedModel, version: str, head: InferHead, body: memoryview
) -> InferRequest:
    """What an inference request asks for.

    Raises:
        RequestError: It is no such request.
    """
    request = InferRequest(model.name, version, trace_id=head.trace_id)
    if head.timeout_s is not None:
        request.deadline_s = request.arrived_s + head.timeout_s
    size = body.nbytes
    length = size if head.length is None else head.length
    if head.length == 0:
        request.inputs, request.binary = [_only_input(model, body)], True
        return request
    if length > size:
        raise invalid(f"the JSON header has {length} bytes, the body only {size}")
    if not length:
        raise invalid("the body is empty; send an inference request")
    asked = read_request(bytes(body[:length]), core.limits)
    if asked.id:
        if len(asked.id.encode()) > core.limits.id_bytes:
            raise invalid(f"the id is longer than the {core.limits.id_bytes} bytes allowed")
        request.id = asked.id
    if asked.parameters is not msgspec.UNSET:
        request.binary = _truth(asked.parameters, BINARY_OUTPUT)
        if len(asked.parameters) > (BINARY_OUTPUT in asked.parameters):
            request.parameters = asked.parameters
    request.inputs = _inputs(core, asked.inputs, body[length:])
    if asked.outputs:
        request.outputs = [_output(core, one) for one in asked.outputs]
    return request


def _inputs(core: Core, heads: list[InputHead], blocks: memoryview) -> list[InferInput]:
    found, at = [], 0
    for one in heads:
        parameters = {} if one.parameters is msgspec.UNSET else one.parameters
        size, has_data = parameters.get("binary_data_size"), one.data is not msgspec.UNSET
        if (size is not None) + has_data + (_REGION in parameters) != 1:
            raise invalid(
                f"input {one.name!r} must have exactly one of data, the parameter "
                "binary_data_size, and the parameter shared_memory_region"
            )
        read: Read
        if size is not None:
            end = at + unsigned("binary_data_size", size)
            if end > blocks.nbytes:
                raise invalid(
                    f"the body ends within input {one.name!r}: {blocks.nbytes - at} bytes are "
                    f"there, binary_data_size is {size}"
                )
            read, at = raw_reader(blocks[at:end]), end
        elif has_data:
            read = json_reader(one.data)
        else:
            read = core.shared().reader(*_region(parameters))
        found.append(InferInput(one.name, one.datatype, tuple(one.shape), read))
    if at != blocks.nbytes:
        raise invalid(f"{blocks.nbytes - at} bytes are left behind the last input's block")
    return found


def _output(core: Core, one: OutputHead) -> RequestedOutput:
    parameters = {} if one.parameters is msgspec.UNSET else one.parameters
    binary = _truth(parameters, "binary_data")
    write: Write | None = None
    if _REGION in parameters:
        if binary:
            raise invalid(f"output {one.name!r} is either binary data or in shared memory")
        write = core.shared().writer(*_region(parameters))
    count = unsigned("classification", parameters.get("classification", 0))
    return RequestedOutput(one.name, binary, count, write)


def _region(parameters: Mapping[str, Any]) -> tuple[str, int, int]:
    name = parameters[_REGION]
    if not isinstance(name, str):
        raise invalid(f"{_REGION} must be a string")
    sizes = ("shared_memory_offset", "shared_memory_byte_size")
    offset, size = (unsigned(key, parameters.get(key, 0)) for key in sizes)
    return name, offset, size


def _truth(parameters: Mapping[str, Any], key: str) -> bool:
    value = parameters.get(key, False)
    if not isinstance(value, bool):
        raise invalid(f"{key} must be true or false")
    return value


def _only_input(model: ServedModel, body: memoryview) -> InferInput:
    """The input of a request that is nothing but its bytes."""
    if len(model.inputs) != 1:
        raise invalid(f"a raw request needs a model of one input, this has {len(model.inputs)}")
    (port,) = model.inputs.values()
    shape = list(port.shape)
    if model.max_batch_size:
        shape[0] = 1
    if min(shape, default=0) < -1 or shape.count(-1) > 1:
        raise invalid(f"the shape {list(port.shape)} cannot be known from bytes alone; send JSON")
    if -1 in shape:
        row = -math.prod(shape) * DATATYPES[port.datatype].item_bytes
        if not row or body.nbytes % row:
            raise invalid(f"input byte size mismatch: {body.nbytes} bytes are no multiple of {row}")
        shape[shape.index(-1)] = body.nbytes // row
    return InferInput(port.name, port.datatype, tuple(shape), raw_reader(body))


def write_infer(response: InferResponse, accepted: bytes | None) -> Reply:
    """The answer; `accepted` is the client's Accept-Encoding."""
    outputs, blocks = [], []
    for one in response.outputs:
        described: dict[str, Any] = {
            "name": one.name,
            "datatype": one.datatype,
            "shape": one.shape,
        }
        if one.binary and not one.written:
            block = one.raw()
            described["parameters"] = {"binary_data_size": block.nbytes}
            if block.nbytes:
                blocks.append(block)
        elif not one.written:
            described["data"] = _values(one)
        outputs.append(described)
    answer: dict[str, Any] = {"id": response.id} if response.id else {}
    answer["model_name"] = response.model_name
    answer["model_version"] = response.model_version
    answer["outputs"] = outputs
    text = msgspec.json.encode(answer)
    reply = Reply(200, [text, *blocks])
    if blocks:
        reply.content_type = BINARY
        reply.headers.append((LENGTH, b"%d" % len(text)))
    # the aio client offers two codings by default, and floats hardly shrink
    if accepted is not None and (coding := chosen(accepted, alone=bool(blocks))):
        reply.parts = [deflated(reply.parts, coding)]
        reply.headers.append((b"content-encoding", coding))
    return reply


def _values(output: InferOutput) -> Any:
    """The values of an output for JSON, flat."""
    if output.texts is not None:
        return [text.decode("utf-8", "replace") for text in output.texts]
    array = output.array
    assert array is not None
    if array.itemsize == 2 and DATATYPES[output.datatype].kind == "float":
        array = array.astype(np.float32)
    return number_text(array)
