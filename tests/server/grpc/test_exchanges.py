"""The worked exchanges of the protocol's fact sheet over gRPC, and what servers differ in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.grpc_served import Caller, request
from support.served import floats

from mindspore_lite.core import dtypes
from mindspore_lite.server.datatypes import DATATYPES
from mindspore_lite.server.grpc import health_pb2
from mindspore_lite.server.grpc.inference_pb2 import (
    ModelConfigRequest,
    ModelConfigResponse,
    ModelInferRequest,
    ModelMetadataRequest,
    ModelMetadataResponse,
    ModelReadyRequest,
    ModelReadyResponse,
    ModelStreamInferResponse,
    ServerLiveResponse,
    ServerMetadataResponse,
    ServerReadyResponse,
)

INVALID, NOT_FOUND = "INVALID_ARGUMENT", "NOT_FOUND"


def contents(
    name: str = "id_fp32", datatype: str = "FP32", shape: tuple[int, ...] = (2,), **values: Any
) -> ModelInferRequest:
    """A request whose values are in lists."""
    message = ModelInferRequest(model_name=name)
    tensor = message.inputs.add(name="IN", datatype=datatype, shape=shape)
    tensor.contents.SetInParent()
    for key, value in values.items():
        getattr(tensor.contents, key).extend(value)
    return message


def with_output(message: ModelInferRequest, name: str = "OUT", **parameters: Any) -> Any:
    output = message.outputs.add(name=name)
    for key, value in parameters.items():
        kind = "string_param" if isinstance(value, str) else "int64_param"
        setattr(output.parameters[key], kind, value)
    return message


def with_parameter(message: ModelInferRequest, key: str, **value: Any) -> ModelInferRequest:
    ((kind, given),) = value.items()
    setattr(message.parameters[key], kind, given)
    return message


def test_perf_analyzer_may_ask_for_an_empty_final_response(caller: Caller) -> None:
    asked = with_parameter(request(), "triton_enable_empty_final_response", bool_param=True)
    assert len(caller.infer(asked).raw_output_contents) == 1


# --- section 12 ---


def test_1_metadata(caller: Caller) -> None:
    def shape(name: str, version: str = "") -> tuple[list[str], list[int]]:
        asked = ModelMetadataRequest(name=name, version=version)
        found = ModelMetadataResponse.FromString(caller.call("ModelMetadata", asked))
        assert (found.inputs[0].name, found.outputs[0].datatype) == ("IN", "FP32")
        return list(found.versions), list(found.inputs[0].shape)

    assert shape("id_fp32") == shape("id_fp32", "3") == (["3"], [-1])
    assert shape("id_batch") == (["1"], [-1, 3])


def test_10_values_in_lists_are_answered_in_bytes(caller: Caller) -> None:
    found = caller.infer(contents(fp32_contents=[1, 2]))
    assert list(found.raw_output_contents) == [floats(1, 2)]
    assert (found.model_name, found.model_version) == ("id_fp32", "3")
    (output,) = found.outputs
    assert (output.name, output.datatype, list(output.shape)) == ("OUT", "FP32", [2])
    assert not output.HasField("contents")


def test_12_a_stream_answers_in_order_and_outlives_errors(caller: Caller) -> None:
    asked = [request(id=str(number)) for number in range(1, 6)]
    asked[1].model_name = "nowhere"
    asked[3] = request("bad", floats(1, 2), (1, 2), "x", id="4")
    call = caller.stream(asked)
    found = [ModelStreamInferResponse.FromString(one) for one in call]
    assert [one.infer_response.id for one in found] == ["1", "2", "3", "4", "5"]
    assert [bool(one.error_message) for one in found] == [False, True, False, True, False]
    assert "unknown model 'nowhere'" in found[1].error_message
    assert found[3].error_message == "the kernel of … failed"
    assert found[0].infer_response.raw_output_contents[0] == floats(1, 2)
    assert found[0].infer_response.parameters["triton_final_response"].bool_param
    assert call.code().name == "OK"


# --- small calls ---


def test_the_server_says_what_it_is(caller: Caller) -> None:
    assert ServerLiveResponse.FromString(caller.call("ServerLive")).live
    assert ServerReadyResponse.FromString(caller.call("ServerReady")).ready
    found = ServerMetadataResponse.FromString(caller.call("ServerMetadata"))
    assert found.name == "mslite"
    assert "binary_tensor_data" in found.extensions
    assert "system_shared_memory" not in found.extensions


def test_a_configuration_leaves_the_batch_out(caller: Caller) -> None:
    asked = ModelConfigRequest(name="id_batch")
    found = ModelConfigResponse.FromString(caller.call("ModelConfig", asked)).config
    assert (found.name, found.max_batch_size, list(found.input[0].dims)) == ("id_batch", 4, [3])
    assert found.output[0].data_type == DATATYPES["FP32"].number


@pytest.mark.parametrize(
    ("name", "version", "ready"),
    [("id_fp32", "", True), ("id_fp32", "3", True), ("id_fp32", "1", False), ("x", "", False)],
)
def test_a_model_is_ready_or_not(caller: Caller, name: str, version: str, ready: bool) -> None:
    asked = ModelReadyRequest(name=name, version=version)
    assert ModelReadyResponse.FromString(caller.call("ModelReady", asked)).ready is ready


@pytest.mark.parametrize("name", ["", "inference.GRPCInferenceService"])
def test_the_health_service_knows_this_server(caller: Caller, name: str) -> None:
    path, asked = "/grpc.health.v1.Health/", health_pb2.HealthCheckRequest(service=name)
    found = health_pb2.HealthCheckResponse.FromString(caller.call(f"{path}Check", asked))
    assert found.status == 1
    watch = caller.channel.unary_stream(f"{path}Watch")(asked.SerializeToString())
    assert health_pb2.HealthCheckResponse.FromString(next(watch)).status == 1
    watch.cancel()


def test_the_health_service_knows_no_other(caller: Caller) -> None:
    asked = health_pb2.HealthCheckRequest(service="x")
    assert caller.code("/grpc.health.v1.Health/Check", asked)[0] == NOT_FOUND
    watch = caller.channel.unary_stream("/grpc.health.v1.Health/Watch")(asked.SerializeToString())
    assert health_pb2.HealthCheckResponse.FromString(next(watch)).status == 3
    watch.cancel()


# --- section 10 and 3.6 ---


@pytest.mark.parametrize(
    ("message", "code", "words"),
    [
        (request("nowhere"), NOT_FOUND, "unknown model 'nowhere'; served are bad, id_batch"),
        (request(""), NOT_FOUND, "unknown model"),
        (request(model_version="1"), NOT_FOUND, "version '1'"),
        (request(model_version="-1"), INVALID, "must be a number"),
        (request(model_version="x"), INVALID, "must be a number"),
        (request("bad", floats(1, 2), (1, 2), "x"), "INTERNAL", "the kernel of … failed"),
        (with_output(request(), "Y"), INVALID, "unexpected inference output"),
        (request(port="X"), INVALID, "unexpected inference input"),
        (request("id_two", port="IN0"), INVALID, "missing"),
        (ModelInferRequest(model_name="id_fp32"), INVALID, "missing"),
        (request(datatype="INT32"), INVALID, "wants FP32"),
        (request(datatype="fp32"), INVALID, "unknown datatype"),
        (request(datatype=""), INVALID, "unknown datatype"),
        (request(shape=(1, 2)), INVALID, "unexpected shape"),
        (request(shape=(-1,)), INVALID, "0 or more"),
        (request(shape=(1,) * 65), INVALID, "has 65 dims, at most 64 go"),
        (request(shape=(3,)), INVALID, "byte size mismatch"),
        (request(shape=(1 << 62,)), INVALID, "byte size mismatch"),
        (request("id_batch", floats(*range(15)), (5, 3)), INVALID, "batch-size must be <= 4"),
        (request("id_batch", b"", (0, 3)), INVALID, "batch-size must be <= 4"),
        (request(id="x" * 2000), INVALID, "the id is longer"),
        (contents(fp64_contents=[1, 2]), INVALID, "FP32 goes into fp32_contents"),
        (contents(fp32_contents=[1, 2, 3]), INVALID, "got 3 elements"),
        (contents(), INVALID, "got 0 elements"),
        (contents(shape=(1 << 62,), fp32_contents=[1]), INVALID, "got 1 elements"),
        (contents(fp32_contents=[1, 2], int_contents=[1]), INVALID, "got int_contents"),
        (contents("id_fp16", "FP16"), INVALID, "no contents of FP16"),
        (contents("id_bf16", "BF16"), INVALID, "no contents of BF16"),
        (contents("id_int8", "INT8", int_contents=[1, 128]), INVALID, "does not fit INT8"),
        (contents("id_uint8", "UINT8", uint_contents=[1, 256]), INVALID, "does not fit UINT8"),
        (with_parameter(request(), "triton_x", bool_param=True), INVALID, "reserved"),
        (with_parameter(request(), "sequence_id", int64_param=3), INVALID, "sequences"),
        (with_parameter(request(), "priority", string_param="1"), INVALID, "priority"),
        (with_parameter(request(), "timeout", double_param=1.0), INVALID, "timeout"),
        (with_parameter(request(), "timeout", int64_param=-1), INVALID, "timeout"),
        (with_output(request(), classification=-1), INVALID, "classification"),
        (with_output(request(), shared_memory_region="r"), "UNIMPLEMENTED", "--allow-client-shm"),
        (with_output(request(), shared_memory_offset=1), INVALID, "need shared_memory_region"),
        (b"\x0a\x05abc", INVALID, "not a ModelInferRequest"),
        (b"\x0a\x02\xff\xfe", INVALID, "not a ModelInferRequest"),
    ],
)
def test_faults_have_the_codes_of_the_sheet(
    caller: Caller, message: Any, code: str, words: str
) -> None:
    got, text = caller.code("ModelInfer", message)
    assert got == code
    assert words in text


def test_tensors_come_in_one_way(caller: Caller) -> None:
    both = contents(fp32_contents=[1, 2])
    both.raw_input_contents.append(floats(1, 2))
    assert "next to raw" in caller.code("ModelInfer", both)[1]
    surplus = request()
    surplus.raw_input_contents.append(b"")
    assert "has 2 entries, the inputs take 1" in caller.code("ModelInfer", surplus)[1]
    none = request()
    del none.raw_input_contents[:]
    assert "has no data" in caller.code("ModelInfer", none)[1]
    few = request("id_two", port="IN0")
    few.inputs.add(name="IN1", datatype="FP32", shape=[2])
    assert caller.code("ModelInfer", few) == (
        INVALID,
        "raw_input_contents has 1 entries, too few for the inputs",
    )


def test_inputs_are_matched_by_name_and_bytes_by_order(caller: Caller) -> None:
    message = request("id_two", floats(1, 2), port="IN1")
    message.inputs.add(name="IN0", datatype="FP32", shape=[1])
    message.raw_input_contents.append(floats(3))
    assert list(caller.infer(message).raw_output_contents) == [floats(3), floats(1, 2)]


def test_outputs_come_as_asked_for_and_once(caller: Caller) -> None:
    message = request("id_two", floats(1, 2), port="IN0")
    message.inputs.add(name="IN1", datatype="FP32", shape=[1])
    message.raw_input_contents.append(floats(3))
    for name in ("OUT1", "OUT0", "OUT1"):
        message.outputs.add(name=name)
    found = caller.infer(message)
    assert [one.name for one in found.outputs] == ["OUT1", "OUT0"]
    assert list(found.raw_output_contents) == [floats(3), floats(1, 2)]


def test_parameters_that_mean_nothing_here_are_passed_over(caller: Caller) -> None:
    message = with_parameter(request(id="7"), "mine", uint64_param=1 << 63)
    with_parameter(message, "binary_data_output", bool_param=False)
    with_parameter(message, "priority", uint64_param=3)
    message.inputs[0].parameters["x"].double_param = 1.5
    assert caller.infer(message).id == "7"
    message.parameters["none"].SetInParent()
    assert "has no value" in caller.code("ModelInfer", message)[1]


def test_tensors_of_no_size(caller: Caller) -> None:
    for message in (request(data=b"", shape=(0,)), contents(shape=(0,))):
        found = caller.infer(message)
        assert (list(found.outputs[0].shape), list(found.raw_output_contents)) == ([0], [b""])


def test_classes_are_answered_as_strings(caller: Caller) -> None:
    message = request("id_batch", floats(1, 3, 2), (1, 3))
    found = caller.infer(with_output(message, classification=2))
    assert (found.outputs[0].datatype, list(found.outputs[0].shape)) == ("BYTES", [1, 2])
    wanted = b"\x0a\0\0\x003.000000:1" + b"\x0a\0\0\x002.000000:2"
    assert found.raw_output_contents[0] == wanted


@pytest.mark.parametrize(
    ("datatype", "field", "values"),
    [
        ("BOOL", "bool_contents", [True, False]),
        ("INT8", "int_contents", [-128, 127]),
        ("INT16", "int_contents", [-(1 << 15), 5]),
        ("INT32", "int_contents", [-(1 << 31), 5]),
        ("INT64", "int64_contents", [2**53 + 1, -(2**63)]),
        ("UINT8", "uint_contents", [0, 255]),
        ("UINT16", "uint_contents", [0, 65_535]),
        ("UINT32", "uint_contents", [0, 2**32 - 1]),
        ("UINT64", "uint64_contents", [0, 2**64 - 1]),
        ("FP32", "fp32_contents", [0.5, float("inf")]),
        ("FP64", "fp64_contents", [0.1, 1e300]),
        ("FP16", "", [0.5, 1.0]),
        ("BF16", "", [0.5, 1.0]),
    ],
)
def test_every_datatype_comes_back(
    caller: Caller, datatype: str, field: str, values: list[Any]
) -> None:
    name = f"id_{datatype.lower()}"
    numpy_name = {"FP16": "float16", "BF16": "bfloat16"}.get(datatype)
    kind = dtypes.BY_NAME[numpy_name].numpy if numpy_name else DATATYPES[datatype].dtype
    raw = np.array(values, np.float32).astype(kind) if numpy_name else np.array(values, kind)
    found = caller.infer(request(name, raw.tobytes(), datatype=datatype))
    assert (found.outputs[0].datatype, found.raw_output_contents[0]) == (datatype, raw.tobytes())
    if field:
        found = caller.infer(contents(name, datatype, **{field: values}))
        assert found.raw_output_contents[0] == raw.tobytes()


def test_methods_that_are_not_offered_say_so(caller: Caller) -> None:
    for name in ("TraceSetting", "LogSettings", "Nope"):
        code, text = caller.code(name)
        assert (code, f"does not offer /inference.GRPCInferenceService/{name}" in text) == (
            "UNIMPLEMENTED",
            True,
        )
    assert caller.code("/x/y")[0] == "UNIMPLEMENTED"
