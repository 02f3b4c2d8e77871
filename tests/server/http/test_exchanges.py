"""The worked exchanges of the protocol's fact sheet, byte for byte, and what servers differ in."""

from __future__ import annotations

import gzip
import json
import zlib
from typing import Any

import pytest
from support.served import Reply, Wire, floats, get, post

LENGTH = "inference-header-content-length"
FP32 = "/v2/models/id_fp32/infer"
BATCH = "/v2/models/id_batch/infer"
HEAD = (
    b'{"inputs":[{"name":"IN","datatype":"FP32","shape":[2],"parameters":{"binary_data_size":8}}],'
    b'"parameters":{"binary_data_output":true}}'
)
ANSWER = (
    b'{"model_name":"id_fp32","model_version":"3","outputs":[{"name":"OUT","datatype":"FP32",'
    b'"shape":[2],"parameters":{"binary_data_size":8}}]}'
)


def one(data: Any = (1, 2), shape: Any = (2,), name: str = "IN", datatype: str = "FP32") -> Any:
    return {"name": name, "datatype": datatype, "shape": shape, "data": data}


def binary(head: bytes, *blocks: bytes, path: str = FP32, more: tuple[str, ...] = ()) -> bytes:
    return post(path, head + b"".join(blocks), f"{LENGTH}: {len(head)}", *more)


# --- section 12 ---


def test_1_metadata(wire: Wire) -> None:
    reply = wire.ask(get("/v2/models/id_fp32"))
    assert reply.json == {
        "name": "id_fp32",
        "versions": ["3"],
        "platform": "mslite_mindir",
        "inputs": [{"name": "IN", "datatype": "FP32", "shape": [-1]}],
        "outputs": [{"name": "OUT", "datatype": "FP32", "shape": [-1]}],
    }
    assert wire.ask(get("/v2/models/id_batch/versions/1")).json["inputs"][0]["shape"] == [-1, 3]


def test_2_json(wire: Wire) -> None:
    body = b'{"id":"7","inputs":[{"name":"IN","datatype":"FP32","shape":[2],"data":[1,2]}]}'
    reply = wire.ask(post(FP32, body))
    assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
    assert reply.body == (
        b'{"id":"7","model_name":"id_fp32","model_version":"3","outputs":[{"name":"OUT",'
        b'"datatype":"FP32","shape":[2],"data":[1.0,2.0]}]}'
    )


def test_3_binary_both_ways(wire: Wire) -> None:
    reply = wire.ask(binary(HEAD, floats(1, 2)))
    assert reply.headers["content-type"] == "application/octet-stream"
    assert (reply.headers[LENGTH], reply.headers["content-length"]) == ("137", "145")
    assert reply.body == ANSWER + bytes.fromhex("0000803f 00000040")


def test_4_outputs_that_are_listed_come_as_json(wire: Wire) -> None:
    head = HEAD[:-1] + b',"outputs":[{"name":"OUT"}]}'
    reply = wire.ask(binary(head, floats(1, 2)))
    assert LENGTH not in reply.headers
    assert reply.json["outputs"][0]["data"] == [1.0, 2.0]


def test_5_raw(wire: Wire) -> None:
    reply = wire.ask(post(FP32, floats(1, 2), f"{LENGTH}: 0"))
    assert reply.body == ANSWER + floats(1, 2)
    reply = wire.ask(post(BATCH, floats(1, 2, 3), f"{LENGTH}: 0"))
    assert json.loads(reply.body[: int(reply.headers[LENGTH])])["outputs"][0]["shape"] == [1, 3]
    assert wire.ask(post(FP32, b"12345", f"{LENGTH}: 0")).status == 400
    assert wire.ask(post("/v2/models/id_two/infer", b"1234", f"{LENGTH}: 0")).status == 400


def test_6_zero_size(wire: Wire) -> None:
    head = HEAD.replace(b'"shape":[2]', b'"shape":[0]').replace(b":8}", b":0}")
    reply = wire.ask(binary(head))
    assert reply.headers["content-type"] == "application/json" and LENGTH not in reply.headers
    wanted = '{"name":"OUT","datatype":"FP32","shape":[0],"parameters":{"binary_data_size":0}}'
    assert wanted.encode() in reply.body
    assert wire.ask(post(FP32, {"inputs": [one([], [0])]})).json["outputs"][0]["data"] == []


def test_7_classification(wire: Wire) -> None:
    body = {
        "inputs": [one([[1, 3, 2], [4, 6, 5]], [2, 3])],
        "outputs": [{"name": "OUT", "parameters": {"classification": 2}}],
    }
    (output,) = wire.ask(post(BATCH, body)).json["outputs"]
    assert (output["datatype"], output["shape"]) == ("BYTES", [2, 2])
    assert output["data"] == ["3.000000:1", "2.000000:2", "6.000000:1", "5.000000:2"]
    body["inputs"] = [one([1, 2])]
    body["outputs"] = [{"name": "OUT", "parameters": {"classification": 1, "binary_data": True}}]
    reply = wire.ask(post(FP32, body))
    assert reply.body.endswith(bytes.fromhex("0a000000") + b"2.000000:1")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (BATCH, {"inputs": [one([0] * 15, [5, 3])]}),
        (BATCH, {"inputs": [one([0] * 3, [3])]}),
        (BATCH, {"inputs": [one([], [0, 3])]}),
    ],
)
def test_9_batches(wire: Wire, path: str, body: Any) -> None:
    assert wire.ask(post(path, body)).status == 400


def test_9_versions(wire: Wire) -> None:
    body = {"inputs": [one()]}
    assert wire.ask(post("/v2/models/id_fp32/versions/1/infer", body)).status == 404
    assert wire.ask(post("/v2/models/id_fp32/versions/3/infer", body)).status == 200


@pytest.mark.parametrize(
    ("coding", "undo"), [("gzip", gzip.decompress), ("deflate", zlib.decompress)]
)
def test_15_compression(wire: Wire, coding: str, undo: Any) -> None:
    reply = wire.ask(binary(HEAD, floats(1, 2), more=(f"Accept-Encoding: {coding}",)))
    assert (reply.headers["content-encoding"], reply.headers[LENGTH]) == (coding, "137")
    assert undo(reply.body) == ANSWER + floats(1, 2)
    for request in (
        get("/v2", f"Accept-Encoding: {coding}"),
        get("/x", f"Accept-Encoding: {coding}"),
    ):
        assert "content-encoding" not in wire.ask(request).headers


def test_15_the_default_of_the_aio_client_does_not_compress_tensors(wire: Wire) -> None:
    reply = wire.ask(binary(HEAD, floats(1, 2), more=("Accept-Encoding: gzip, deflate",)))
    assert "content-encoding" not in reply.headers


# --- section 10: what servers differ in ---

GOOD = {"inputs": [one()]}


def without(key: str) -> Any:
    return {"inputs": [{k: v for k, v in one().items() if k != key}]}


@pytest.mark.parametrize(
    "body",
    [
        {"inputs": [one()], "outputs": [{"name": "Y"}]},
        {"inputs": [one(name="Y")]},
        {"inputs": [one(), one(name="Y")]},
        {"inputs": [one(), one()]},
        {"inputs": []},
        {},
        without("shape"),
        without("name"),
        without("datatype"),
        without("data"),
        [],
        b"{",
        b"",
        b"null",
        b'{"inputs": [' + b"[" * 40 + b"]" * 40 + b"]}",
        {"inputs": [one(shape=[1, 2])]},
        {"inputs": [one(shape=[3])]},
        {"inputs": [one(datatype="FP64")]},
        {"inputs": [one(datatype="FLOAT")]},
        {"inputs": [one(datatype="fp32")]},
        {"inputs": [one(shape=[-1])]},
        {"inputs": [one(shape=[2.0])]},
        {"inputs": [one(shape=[2.5])]},
        {"inputs": [one(shape=["2"])]},
        {"inputs": [one(shape=[2**40, 2**40])]},
        {"inputs": [one(shape=[2**70])]},
        {"inputs": [one(shape=2)]},
        {"inputs": [one([1, None])]},
        {"inputs": [one([1, "1"])]},
        {"inputs": [one([1, True])]},
        {"inputs": [one([[1], [2]])]},
        {"inputs": [one(1)]},
        {"inputs": [one({"a": 1})]},
        {"id": 7, "inputs": [one()]},
        {"id": "x" * 1025, "inputs": [one()]},
        {"inputs": [one()], "parameters": {"a": None}},
        {"inputs": [one()], "parameters": {"a": [1]}},
        {"inputs": [one()], "parameters": {"a": {}}},
        {"inputs": [one()], "parameters": {"binary_data_output": 1}},
        {"inputs": [one()], "outputs": None},
        {"inputs": [{**one(), "parameters": {"binary_data_size": 8}}]},
        {"inputs": [one()], "outputs": [{"name": "OUT", "parameters": {"classification": -1}}]},
        {"inputs": [one()], "parameters": {"sequence_id": 1}},
        {"inputs": [one()], "parameters": {"triton_x": 1}},
        {"inputs": [one()], "parameters": {"timeout": "1"}},
    ],
)
def test_a_request_that_is_wrong_is_a_400_and_the_next_is_served(wire: Wire, body: Any) -> None:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    reply = wire.ask(post(FP32, data))
    assert reply.status == 400, reply
    assert reply.error and reply.headers["content-type"] == "application/json"
    assert wire.ask(post(FP32, GOOD)).status == 200


@pytest.mark.parametrize(
    ("head", "blocks", "length"),
    [
        (HEAD, floats(1), None),
        (HEAD, floats(1, 2, 3), None),
        (HEAD.replace(b":8}", b":4}"), floats(1), None),
        (HEAD.replace(b":8}", b":-8}"), floats(1, 2), None),
        (HEAD.replace(b":8}", b":8.0}"), floats(1, 2), None),
        (HEAD.replace(b":8}", b":true}"), floats(1, 2), None),
        (HEAD, floats(1, 2), str(len(HEAD) + 9)),
        (HEAD, floats(1, 2), "+5"),
        (HEAD, floats(1, 2), "5 5"),
        (HEAD, floats(1, 2), "x"),
        (HEAD, floats(1, 2), "9" * 30),
    ],
)
def test_binary_data_that_does_not_fit_is_a_400(
    wire: Wire, head: bytes, blocks: bytes, length: str | None
) -> None:
    found = str(len(head)) if length is None else length
    reply = wire.ask(post(FP32, head + blocks, f"{LENGTH}: {found}"))
    assert reply.status == 400 and reply.error
    assert wire.ask(post(FP32, GOOD)).status == 200


@pytest.mark.parametrize(
    "body",
    [
        {**GOOD, "model_name": "x", "unknown": [1, {}]},
        {**GOOD, "outputs": []},
        {**GOOD, "id": ""},
        {**GOOD, "parameters": {"mine": 1, "headers": "x"}},
        {**GOOD, "outputs": [{"name": "OUT"}, {"name": "OUT"}]},
        {"inputs": [{**one(), "parameters": {"mine": True}, "more": None}]},
    ],
)
def test_what_means_nothing_is_ignored(wire: Wire, body: Any) -> None:
    reply = wire.ask(post(FP32, body))
    assert reply.json == {
        "model_name": "id_fp32",
        "model_version": "3",
        "outputs": [{"name": "OUT", "datatype": "FP32", "shape": [2], "data": [1.0, 2.0]}],
    }


def asked(wire: Wire, model: str, datatype: str, data: str) -> Reply:
    count = data.count(",") + 1
    body = f'{{"inputs":[{{"name":"IN","datatype":"{datatype}","shape":[{count}],"data":{data}}}]}}'
    return wire.ask(post(f"/v2/models/{model}/infer", body.encode()))


@pytest.mark.parametrize(
    ("model", "datatype", "data", "answer"),
    [
        ("id_fp32", "FP32", "[NaN,Infinity,-Infinity]", "[NaN,Infinity,-Infinity]"),
        ("id_fp32", "FP32", "[1e40]", "[Infinity]"),
        ("id_fp64", "FP64", "[0.1,1e300]", "[0.1,1e300]"),
        ("id_fp16", "FP16", "[0.5,65504]", "[0.5,65504.0]"),
        ("id_bool", "BOOL", "[true,0,1]", "[true,false,true]"),
        ("id_int64", "INT64", f"[{2**53 + 1},{-(2**63)}]", f"[{2**53 + 1},{-(2**63)}]"),
        ("id_uint64", "UINT64", f"[{2**64 - 1}]", f"[{2**64 - 1}]"),
        ("id_uint8", "UINT8", "[0,255]", "[0,255]"),
    ],
)
def test_values_survive(wire: Wire, model: str, datatype: str, data: str, answer: str) -> None:
    reply = asked(wire, model, datatype, data)
    assert reply.status == 200, reply
    assert reply.body.endswith(f'"data":{answer}}}]}}'.encode())


@pytest.mark.parametrize(
    ("model", "datatype", "data"),
    [
        ("id_uint8", "UINT8", "[300]"),
        ("id_uint8", "UINT8", "[-1]"),
        ("id_uint8", "UINT8", "[1.0]"),
        ("id_uint8", "UINT8", "[true]"),
        ("id_int8", "INT8", "[128]"),
        ("id_int64", "INT64", f"[{2**63}]"),
        ("id_int64", "INT64", "[1.5]"),
        ("id_int64", "INT64", "[NaN]"),
        ("id_uint64", "UINT64", "[-1]"),
        ("id_uint64", "UINT64", f"[{2**64}]"),
        ("id_bool", "BOOL", "[2]"),
        ("id_bool", "BOOL", "[1.0]"),
        ("id_fp32", "FP32", '["NaN"]'),
        ("id_fp32", "FP32", "[nan]"),
    ],
)
def test_values_that_do_not_fit_are_a_400(wire: Wire, model: str, datatype: str, data: str) -> None:
    assert asked(wire, model, datatype, data).status == 400


def test_json_and_binary_inputs_may_be_mixed(wire: Wire) -> None:
    head = json.dumps(
        {
            "inputs": [
                one([5, 6], name="IN1"),
                {
                    "name": "IN0",
                    "datatype": "FP32",
                    "shape": [2],
                    "parameters": {"binary_data_size": 8},
                },
            ],
            "outputs": [{"name": "OUT1", "parameters": {"binary_data": True}}, {"name": "OUT0"}],
        }
    ).encode()
    reply = wire.ask(binary(head, floats(1, 2), path="/v2/models/id_two/infer"))
    length = int(reply.headers[LENGTH])
    outputs = json.loads(reply.body[:length])["outputs"]
    assert [output["name"] for output in outputs] == ["OUT1", "OUT0"]  # as asked
    assert outputs[1]["data"] == [1.0, 2.0]
    assert reply.body[length:] == floats(5, 6)


def test_a_large_json_tensor_is_read(wire: Wire) -> None:
    values = [i / 8 for i in range(20_000)]
    reply = wire.ask(post(FP32, {"inputs": [one(values, [len(values)])]}))
    assert reply.json["outputs"][0]["data"] == values


@pytest.mark.parametrize("coding", ["gzip", "deflate", "GZIP"])
def test_requests_may_be_compressed(wire: Wire, coding: str) -> None:
    pack = gzip.compress if coding.lower() == "gzip" else zlib.compress
    body = pack(HEAD + floats(1, 2))
    more = (f"Content-Encoding: {coding}", f"{LENGTH}: {len(HEAD)}")
    assert wire.ask(post(FP32, body, *more)).body == ANSWER + floats(1, 2)
    for broken in (body[:-3], body + b"x", b"x" * 20, zlib.compress(HEAD)[2:-4]):
        assert wire.ask(post(FP32, broken, *more)).status == 400
    assert wire.ask(post(FP32, HEAD, "Content-Encoding: identity")).status == 400


def test_unknown_codings_are_refused(wire: Wire) -> None:
    reply = wire.ask(post(FP32, b"x", "Content-Encoding: br"))
    assert (reply.status, reply.headers["accept-encoding"]) == (415, "gzip, deflate")


@pytest.mark.parametrize(
    ("path", "status", "body"),
    [
        ("/v2/health/live", 200, {"live": True}),
        ("/v2/health/ready", 200, {"ready": True, "live": True}),
        ("/v2/models/id_fp32/ready", 200, {"name": "id_fp32", "ready": True}),
        ("/v2/models/id_fp32/versions/3/ready", 200, {"name": "id_fp32", "ready": True}),
        ("/v2/models/x/ready", 404, None),
        ("/v2/models/x", 404, None),
        ("/v2/models/id_fp32/versions/1", 404, None),
        ("/v2/models/id_fp32/versions/0", 404, None),
        ("/v2/models/id_fp32/versions/abc", 404, None),
        ("/v2/health/live?k=v&x", 200, {"live": True}),
    ],
)
def test_questions(wire: Wire, path: str, status: int, body: Any) -> None:
    reply = wire.ask(get(path))
    assert reply.status == status
    assert reply.error if body is None else reply.json == body
