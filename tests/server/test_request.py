from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support.served import floats, identities

from mindspore_lite.server.datatypes import DATATYPES
from mindspore_lite.server.errors import Kind, RequestError
from mindspore_lite.server.models import Models, Port, ServedModel
from mindspore_lite.server.request import (
    InferInput,
    InferRequest,
    RequestedOutput,
    prepare,
    raw_reader,
    values_reader,
)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Models]:
    found = identities(tmp_path_factory.mktemp("models"))
    yield found
    found.close(None)


def one(shape: tuple[int, ...] = (2,), name: str = "IN", datatype: str = "FP32") -> InferInput:
    return InferInput(name, datatype, shape, raw_reader(floats(*range(1, 1 + int(np.prod(shape))))))


def asked(*inputs: InferInput, **more: Any) -> InferRequest:
    return InferRequest("id_fp32", inputs=inputs, **more)


def answer(models: Models, request: InferRequest) -> list[Any]:
    job = prepare(models.usable(request.model_name), request)
    return job.response(job.model.service.run(job.call)).outputs


def test_bytes_become_the_answer(models: Models) -> None:
    (output,) = answer(models, asked(one()))
    assert (output.name, output.datatype, output.shape) == ("OUT", "FP32", (2,))
    assert bytes(output.raw()) == floats(1, 2)


def test_bytes_are_read_without_a_copy_where_they_are_aligned() -> None:
    memory = np.zeros(17, np.uint8)
    assert np.shares_memory(raw_reader(memory[:16].data)(DATATYPES["FP32"], (4,)), memory)
    moved = raw_reader(memory[1:17].data)(DATATYPES["FP32"], (4,))
    assert moved.flags.aligned


def test_an_answer_of_chosen_outputs_names_each_once(models: Models) -> None:
    wanted = [RequestedOutput("OUT"), RequestedOutput("OUT", classification=1)]
    (output,) = answer(models, asked(one(), outputs=wanted))
    assert output.datatype == "FP32"


def test_classes_are_answered_as_texts(models: Models) -> None:
    rows = InferInput("IN", "FP32", (2, 3), raw_reader(floats(1, 3, 2, 4, 6, 5)))
    request = InferRequest(
        "id_batch", inputs=[rows], outputs=[RequestedOutput("OUT", classification=2)]
    )
    (output,) = answer(models, request)
    assert (output.datatype, output.shape) == ("BYTES", (2, 2))
    assert output.texts == [b"3.000000:1", b"2.000000:2", b"6.000000:1", b"5.000000:2"]


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (asked(one(name="X")), "unexpected inference input 'X'"),
        (asked(one(), one()), "given twice"),
        (asked(), "missing"),
        (asked(one(datatype="fp32")), "unknown datatype 'fp32'"),
        (asked(one(datatype="FP64")), "wants FP32"),
        (asked(one(datatype="BYTES")), "wants FP32"),
        (asked(one(shape=(1, 2))), "unexpected shape for input 'IN'"),
        (asked(InferInput("IN", "FP32", (-1,), raw_reader(b""))), "0 or more"),
        (asked(InferInput("IN", "FP32", (2,), raw_reader(b"12345"))), "byte size mismatch"),
        (asked(InferInput("IN", "FP32", (1 << 62,), raw_reader(b"1234"))), "byte size mismatch"),
        (asked(InferInput("IN", "FP32", (3,), values_reader([1.0]))), "got 1 elements"),
        (asked(one(), outputs=[RequestedOutput("Y")]), "unexpected inference output 'Y'"),
        (asked(one(), parameters={"triton_x": 1}), "reserved"),
        (asked(one(), parameters={"sequence_id": 7}), "sequences"),
        (asked(one(), parameters={"priority": -1}), "priority"),
        (asked(one(), parameters={"timeout": True}), "timeout"),
        (asked(one(), parameters={"timeout": 1.5}), "timeout"),
    ],
)
def test_a_request_that_does_not_fit_is_refused(
    models: Models, request_: InferRequest, words: str
) -> None:
    with pytest.raises(RequestError, match=words) as info:
        prepare(models.usable("id_fp32"), request_)
    assert info.value.kind is Kind.INVALID


@pytest.mark.parametrize("dims", [(0, 2**63 - 1), (2**62, 0), (0, 2**61)])
def test_no_elements_in_too_large_a_shape_are_refused(dims: tuple[int, ...]) -> None:
    ports = {"IN": Port("IN", "FP32", (-1, -1))}
    model = ServedModel("m", "1", None, ports, ports)  # type: ignore[arg-type]
    with pytest.raises(RequestError, match="too large"):
        prepare(model, asked(InferInput("IN", "FP32", dims, raw_reader(b""))))


def test_the_batch_is_bounded(models: Models) -> None:
    for rows in (0, 5):
        data = raw_reader(floats(*range(3 * rows)))
        request = InferRequest("id_batch", inputs=[InferInput("IN", "FP32", (rows, 3), data)])
        with pytest.raises(RequestError, match="batch-size must be <= 4"):
            prepare(models.usable("id_batch"), request)


@pytest.mark.parametrize(("level", "priority"), [(0, 0), (1, 100), (100, 1), (101, 0)])
def test_the_smallest_number_is_the_highest_priority(
    models: Models, level: int, priority: int
) -> None:
    job = prepare(models.usable("id_fp32"), asked(one(), parameters={"priority": level}))
    assert job.call.priority == priority


def test_the_smallest_time_limit_counts(models: Models) -> None:
    now = time.monotonic()
    model = models.usable("id_fp32")
    request = asked(one(), parameters={"timeout": 60_000_000}, deadline_s=now + 600)
    assert (prepare(model, request).call.timeout_s or 0) < 61
    request = asked(one(), parameters={"timeout": 600_000_000}, deadline_s=now + 60)
    assert (prepare(model, request).call.timeout_s or 0) < 61
    assert prepare(model, asked(one())).call.timeout_s is None
    request = asked(one(), parameters={"timeout": 10**400})
    assert (prepare(model, request).call.timeout_s or 0) > 1e8
    with pytest.raises(RequestError, match="expired") as info:
        prepare(model, asked(one(), deadline_s=now - 1))
    assert info.value.kind is Kind.DEADLINE


@pytest.mark.parametrize(
    ("datatype", "values", "fits"),
    [
        ("UINT8", [0, 255], True),
        ("UINT8", [256], False),
        ("INT8", [-129], False),
        ("INT64", [2**53 + 1, -(2**63)], True),
        ("INT64", [2**63], False),
        ("UINT64", [2**64 - 1], True),
        ("UINT64", [2**64], False),
        ("FP16", [0.5], True),
        ("BF16", [1.5], True),
        ("FP32", [1e40], True),
    ],
)
def test_numbers_must_fit_their_type(datatype: str, values: list[Any], fits: bool) -> None:
    read = values_reader(values)
    if fits:
        array = read(DATATYPES[datatype], (len(values),))
        assert array.dtype == DATATYPES[datatype].dtype
        if datatype != "FP32":
            assert [int(v) if isinstance(v, np.integer) else float(v) for v in array] == values
    else:
        with pytest.raises(RequestError, match="does not fit"):
            read(DATATYPES[datatype], (len(values),))


def test_bytes_that_are_no_truth_values_are_refused() -> None:
    assert raw_reader(b"\0\1")(DATATYPES["BOOL"], (2,)).tolist() == [False, True]
    with pytest.raises(RequestError, match="BOOL"):
        raw_reader(b"\2")(DATATYPES["BOOL"], (1,))


def test_a_version_or_model_that_is_not_there_is_not_found(models: Models) -> None:
    for name, version in [("x", ""), ("id_fp32", "1"), ("id_fp32", "03")]:
        with pytest.raises(RequestError, match="unknown model") as info:
            models.find(name, version)
        assert info.value.kind is Kind.NOT_FOUND
    assert models.find("id_fp32").version == models.find("id_fp32", "3").version == "3"


def test_metadata_is_that_of_the_protocol(models: Models) -> None:
    model = models.find("id_batch")
    assert model.metadata(models.versions("id_batch")) == {
        "name": "id_batch",
        "versions": ["1"],
        "platform": "mslite_mindir",
        "inputs": [{"name": "IN", "datatype": "FP32", "shape": [-1, 3]}],
        "outputs": [{"name": "OUT", "datatype": "FP32", "shape": [-1, 3]}],
    }


@pytest.mark.parametrize("name", ["", "stats", ".x", "a/b", "a b", "é", "x" * 129, "..", "a\n"])
def test_names_that_urls_cannot_hold_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="cannot be served"):
        Models().load(name, "1", lambda: pytest.fail("started"))


@pytest.mark.parametrize("version", ["", "0", "01", "-1", "1.0", "a", "9" * 30])
def test_versions_are_numbers(version: str) -> None:
    with pytest.raises(ValueError, match="must be a number"):
        Models().load("m", version, lambda: pytest.fail("started"))


def test_a_model_that_failed_its_probe_is_not_ready(models: Models) -> None:
    service = models.find("id_fp32").service
    port = Port("x", "FP32", (1,))
    broken = ServedModel("m", "1", service, {"x": port}, {"x": port}, state="UNAVAILABLE")
    assert not broken.is_ready
