"""An inference request and its answer as plain records, for HTTP and gRPC alike.

How a protocol uses it:

    request = InferRequest(model_name, version, inputs=[InferInput(name, "FP32", shape, read), ...])
    job = prepare(model, request)             checked against the model; arrays, deadline, priority
    outputs = model.service.run(job.call)     on a loop: submit_or_run(job.call, ended)
    response = job.response(outputs)          an InferResponse: outputs in the order to send them

`call.known` may be set before the run, to learn what cancels it. `model` is from models.usable().

`read` makes the array of an input. It is called when name, type and shape are known to fit the
model, so that nothing is decoded in vain: `raw_reader(buffer)` for bytes, `values_reader(list)` for
numbers; JSON has its own. Every fault of a client is a RequestError of kind INVALID.
Sizes are computed in Python's integers, which do not overflow.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from mindspore_lite.core.tensor_info import ANY_RANK
from mindspore_lite.errors import ClosedError
from mindspore_lite.server.classification import classes, joined
from mindspore_lite.server.datatypes import BYTES, DATATYPES, Datatype
from mindspore_lite.server.errors import Kind, RequestError
from mindspore_lite.server.models import Port, ServedModel
from mindspore_lite.serving.call import HIGHEST, USUAL, Call

if TYPE_CHECKING:
    from mindspore_lite.server.core import Core
    from mindspore_lite.server.meter import RequestTimes

Shape = tuple[int, ...]
Read = Callable[[Datatype, Shape], np.ndarray]
Parameter = str | int | float | bool
Write = Callable[["InferOutput"], None]

_MOST_DIMS = 64  # of a tensor; NumPy's own limit
_MOST_BYTES = 2**63 - 1  # of an array; of one without elements, as if dims of 0 were 1
_MOST_TIMEOUT_US = 10**15  # 30 years; no clock counts much further
_RESERVED = "triton_"
_EMPTY_FINAL = "triton_enable_empty_final_response"  # perf_analyzer sends it; changes nothing here
_HALF_BYTES = 2  # of FP16 and BF16


@dataclass(slots=True)
class InferInput:
    """One input as a client sends it; see the module's text for `read`."""

    name: str
    datatype: str
    shape: Shape
    read: Read


@dataclass(slots=True)
class RequestedOutput:
    """One output that a client asks for.

    Attributes:
        name: Of an output of the model.
        binary: Over HTTP: as bytes behind the JSON. gRPC always answers in bytes.
        classification: So many best classes instead of the values; 0 is off.
        write: Where the output goes instead of into the answer, such as shared memory.
    """

    name: str
    binary: bool = False
    classification: int = 0
    write: Write | None = None


@dataclass(slots=True)
class InferRequest:
    """What a client wants computed.

    Attributes:
        model_name: Of the model.
        model_version: "" is the newest.
        inputs: In any order; they are found by name.
        outputs: Which to answer, in this order; none are all, in the model's order.
        id: Is answered as it came; "" is none.
        parameters: As the client sent them; `priority` and `timeout` count.
        binary: How outputs are answered that `outputs` does not list.
        deadline_s: By time.monotonic(), from headers; None is none.
        arrived_s: By time.monotonic(): from when on `timeout` counts.
        trace_id: For logs.
    """

    model_name: str
    model_version: str = ""
    inputs: Sequence[InferInput] = ()
    outputs: Sequence[RequestedOutput] = ()
    id: str = ""
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    binary: bool = False
    deadline_s: float | None = None
    arrived_s: float = field(default_factory=time.monotonic)
    trace_id: str = ""


@dataclass(slots=True)
class InferOutput:
    """One output of an answer. Strings (BYTES) are in `texts`, everything else is in `array`."""

    name: str
    datatype: str
    shape: Shape
    array: np.ndarray | None
    texts: list[bytes] | None = None
    binary: bool = False
    written: bool = False  # elsewhere: neither values nor bytes go into the answer

    def raw(self) -> memoryview:
        """Its bytes as the protocol lays them out; a view of the array where there is one."""
        if self.texts is not None:
            return memoryview(joined(self.texts))
        assert self.array is not None
        # types such as bfloat16 have no buffer of their own
        return np.ascontiguousarray(self.array).reshape(-1).view(np.uint8).data


@dataclass(slots=True)
class InferResponse:
    """The answer to a request."""

    model_name: str
    model_version: str
    id: str
    outputs: list[InferOutput]


@dataclass(slots=True)
class Job:
    """A request that fits its model: the call to run, and how to answer it."""

    model: ServedModel
    request: InferRequest
    call: Call
    wanted: Sequence[RequestedOutput]

    def response(self, outputs: Sequence[np.ndarray]) -> InferResponse:
        """The answer, from what the service computed."""
        model = self.model
        if not self.wanted:
            found = [
                InferOutput(
                    port.name, port.datatype, array.shape, array, binary=self.request.binary
                )
                for port, array in zip(model.outputs.values(), outputs, strict=True)
            ]
        else:
            by_name = dict(zip(model.outputs, outputs, strict=True))
            found = [_output(model, one, by_name[one.name]) for one in self.wanted]
        version = self.call.version or model.version
        return InferResponse(model.name, version, self.request.id, found)


def prepare(model: ServedModel, request: InferRequest) -> Job:
    """Check a request against its model, and make the call of it.

    Raises:
        RequestError: The request does not fit, or its time is up already.
    """
    if request.parameters:
        _check_parameters(request.parameters)
    inputs = _arrays(model, request.inputs)
    call = Call(inputs, _timeout_s(request), _priority(request.parameters))
    call.trace_id, call.version = request.trace_id, request.model_version
    return Job(model, request, call, _wanted(model, request.outputs))


def moved(core: Core, job: Job, closed: ClosedError, times: RequestTimes) -> Job:
    """The same request for the service that took the place of its own, which has closed.

    A service that is replaced finishes what it took; this is for what came a moment too late.

    Raises:
        RequestError: The model is served no more, or the server is ending.
        ClosedError: Nothing took its place.
    """
    model = core.usable(job.request.model_name, job.request.model_version)
    if model is job.model:
        raise closed
    times.model = model
    return prepare(model, job.request)


def invalid(text: str) -> RequestError:
    """The error for a fault of the client."""
    return RequestError(Kind.INVALID, text)


def raw_reader(buffer: Any) -> Read:
    """Reads an input from bytes in the protocol's layout, without a copy if they are aligned."""

    def read(datatype: Datatype, shape: Shape) -> np.ndarray:
        expected, got = math.prod(shape) * datatype.item_bytes, memoryview(buffer).nbytes
        if got != expected:
            raise invalid(
                f"input byte size mismatch: got {got} bytes, shape {list(shape)} of "
                f"{datatype.name} takes {expected}"
            )
        array = np.frombuffer(buffer, datatype.dtype).reshape(shape)
        if datatype.kind == "bool":
            return _truths(array)
        return array if array.flags.aligned else array.copy()

    return read


def values_reader(values: Sequence[Any]) -> Read:
    """Reads an input from numbers that are known to be of the right kind, in row-major order."""

    def read(datatype: Datatype, shape: Shape) -> np.ndarray:
        if len(values) != math.prod(shape):
            raise invalid(
                f"got {len(values)} elements, shape {list(shape)} takes {math.prod(shape)}"
            )
        return converted(values, datatype).reshape(shape)

    return read


def converted(values: Sequence[Any], datatype: Datatype) -> np.ndarray:
    """Numbers as an array of a type; integers that the type cannot hold are refused."""
    try:
        if datatype.kind == "float":
            halved = datatype.item_bytes == _HALF_BYTES  # NumPy makes no bfloat16 of a list
            with np.errstate(over="ignore"):  # 1e40 is infinity as FP32, as in Triton
                array = np.array(values, np.float32 if halved else datatype.dtype)
                return array.astype(datatype.dtype, copy=False)
        wide = np.uint64 if datatype.name == "UINT64" else np.int64
        array = np.array(values, wide)
    except OverflowError as exc:
        raise invalid(f"a number does not fit {datatype.name}") from exc
    except (ValueError, TypeError) as exc:  # lists of several lengths
        raise invalid("data is nested raggedly") from exc
    if wide is datatype.dtype.type or not array.size:
        return array.astype(datatype.dtype, copy=False)
    least, most = 0, 1
    if datatype.kind == "int":
        least, most = np.iinfo(datatype.dtype).min, np.iinfo(datatype.dtype).max
    if array.min() < least or array.max() > most:
        raise invalid(f"a number does not fit {datatype.name}: {least} to {most}")
    return array.astype(datatype.dtype)


# --- inputs ---


def _arrays(model: ServedModel, inputs: Sequence[InferInput]) -> list[np.ndarray]:
    """One array per input of the model, in its order."""
    ports = model.inputs
    if len(inputs) == 1 and len(ports) == 1:  # most requests
        (one,) = inputs
        port = ports.get(one.name)
        if port is not None:
            return [_array(model, port, one)]
    given: dict[str, InferInput] = {}
    for one in inputs:
        if one.name in given:
            raise invalid(f"input {one.name!r} is given twice")
        if one.name not in ports:
            raise invalid(
                f"unexpected inference input {one.name!r} for model {model.name!r}; it takes "
                f"{list(ports)}"
            )
        given[one.name] = one
    missing = [name for name in ports if name not in given]
    if missing:
        raise invalid(f"inputs {missing} of model {model.name!r} are missing")
    if model.max_batch_size:
        batches = {one.shape[:1] for one in inputs}
        if len(batches) > 1:
            raise invalid(f"the inputs differ in batch size: {sorted(batches)}")
    return [_array(model, port, given[name]) for name, port in ports.items()]


def _array(model: ServedModel, port: Port, one: InferInput) -> np.ndarray:
    if one.datatype != port.datatype:
        if one.datatype not in DATATYPES and one.datatype != BYTES:
            raise invalid(
                f"unknown datatype {one.datatype!r} of input {one.name!r}; known are "
                f"{', '.join(DATATYPES)}"
            )
        raise invalid(
            f"input {one.name!r} has datatype {one.datatype}, model {model.name!r} wants "
            f"{port.datatype}"
        )
    _check_shape(model, port, one.shape)
    return one.read(DATATYPES[port.datatype], one.shape)


def _check_shape(model: ServedModel, port: Port, shape: Shape) -> None:
    if min(shape, default=0) < 0 or len(shape) > _MOST_DIMS:
        raise invalid(f"input {port.name!r} has shape {list(shape)}; dims are 0 or more")
    wanted = port.shape
    if shape != wanted and wanted != ANY_RANK and not fits(wanted, shape):
        raise invalid(
            f"unexpected shape for input {port.name!r} of model {model.name!r}: got {list(shape)}, "
            f"wanted {list(wanted)}, where -1 is any size"
        )
    item_bytes = DATATYPES[port.datatype].item_bytes
    if 0 in shape and math.prod(dim or 1 for dim in shape) * item_bytes > _MOST_BYTES:
        raise invalid(f"input {port.name!r} has shape {list(shape)}, which is too large")
    if model.max_batch_size and not 1 <= shape[0] <= model.max_batch_size:
        raise invalid(
            f"batch-size must be <= {model.max_batch_size} and at least 1 for model "
            f"{model.name!r}, input {port.name!r} has {shape[0]}"
        )


def fits(wanted: Shape, shape: Shape) -> bool:
    """Whether a shape is one that is wanted, where -1 is any size."""
    return len(shape) == len(wanted) and all(
        want in (-1, have) for want, have in zip(wanted, shape, strict=True)
    )


def _truths(array: np.ndarray) -> np.ndarray:
    """Bytes as truth values; others than 0 and 1 would be undefined behaviour in an engine."""
    if array.view(np.uint8).max(initial=0) > 1:
        raise invalid("a BOOL must be a byte 0 or 1")
    return array


# --- parameters ---


def _check_parameters(parameters: Mapping[str, Parameter]) -> None:
    for key, value in parameters.items():
        if not isinstance(value, str | int | float | bool):
            raise invalid(f"parameter {key!r} must be a string, number or truth value")
        if key.startswith(_RESERVED) and key != _EMPTY_FINAL:
            raise invalid(f"parameter {key!r} is reserved")
    if any(parameters.get(key) for key in ("sequence_id", "sequence_start", "sequence_end")):
        raise invalid("sequences are not supported: models here keep no state between requests")


def unsigned(where: str, value: object) -> int:
    """An integer of 0 or more that a client gave; a truth value is none."""
    if type(value) is not int or value < 0:
        raise invalid(f"{where} must be an integer of 0 or more")
    return value


def _priority(parameters: Mapping[str, Parameter]) -> int:
    """The call's priority: the protocol's 1 is the highest, 0 and what is beyond are usual."""
    if "priority" not in parameters:
        return USUAL
    level = unsigned("parameter 'priority'", parameters["priority"])
    return HIGHEST + 1 - level if 1 <= level <= HIGHEST else USUAL


def _timeout_s(request: InferRequest) -> float | None:
    """The time that is left: the smallest of all limits that the client gave."""
    due_s = math.inf if request.deadline_s is None else request.deadline_s
    if "timeout" in request.parameters:
        timeout_us = unsigned("parameter 'timeout'", request.parameters["timeout"])
        if timeout_us:
            due_s = min(due_s, request.arrived_s + min(timeout_us, _MOST_TIMEOUT_US) / 1e6)
    if due_s == math.inf:
        return None
    left_s = due_s - time.monotonic()
    if left_s <= 0:
        raise RequestError(Kind.DEADLINE, "Request timeout expired before the run could begin")
    return left_s


# --- outputs ---


def _wanted(model: ServedModel, outputs: Sequence[RequestedOutput]) -> Sequence[RequestedOutput]:
    """What is asked for, each once."""
    if not outputs:
        return ()
    found: dict[str, RequestedOutput] = {}
    for one in outputs:
        if one.name not in model.outputs:
            raise invalid(
                f"unexpected inference output {one.name!r} for model {model.name!r}; it has "
                f"{list(model.outputs)}"
            )
        if one.classification and one.write is not None:
            raise invalid(f"output {one.name!r}: classification does not go to shared memory")
        found.setdefault(one.name, one)
    return list(found.values())


def _output(model: ServedModel, wanted: RequestedOutput, array: np.ndarray) -> InferOutput:
    port = model.outputs[wanted.name]
    if wanted.classification:
        shape, texts = classes(
            array, wanted.classification, port.labels, batched=bool(model.max_batch_size)
        )
        return InferOutput(port.name, BYTES, shape, None, texts, wanted.binary)
    output = InferOutput(port.name, port.datatype, array.shape, array, binary=wanted.binary)
    if wanted.write is not None:
        wanted.write(output)
        output.written = True
    return output
