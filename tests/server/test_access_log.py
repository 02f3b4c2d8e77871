"""access_log.py: one line of JSON for each request, over HTTP and gRPC, with its times."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from support.fake_engine import wait_for
from support.grpc_served import SERVICE, Caller, fails, grpc_port, request
from support.served import FakeService, Wire, floats, get, port_of, post

from mindspore_lite.server.access import Gate
from mindspore_lite.server.access_log import _address
from mindspore_lite.server.meter import PHASES
from mindspore_lite.server.models import Models

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"
BODY = {"id": "7", "inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}]}
TOKEN = "0123456789abcdef"


class Lines(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[dict[str, Any]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.found.append(json.loads(record.getMessage()))


@pytest.fixture
def lines() -> Iterator[Lines]:
    log, handler = logging.getLogger("mindspore_lite.server.access"), Lines()
    log.addHandler(handler)
    before, log.level = log.level, logging.INFO
    yield handler
    log.removeHandler(handler)
    log.level = before


@pytest.fixture
def models() -> Iterator[Models]:
    found = Models()
    found.load("m", "1", FakeService)
    found.load("bad", "1", lambda: FakeService(fails))
    yield found
    found.close(0.0)


def message(name: str = "m", **more: Any) -> Any:
    return request(name, floats(1, 2), (1, 2), "x", **more)


def test_a_request_is_logged_with_its_model_and_phases(models: Models, lines: Lines) -> None:
    with port_of(models, logs=True) as port, Wire(port) as wire:
        reply = wire.ask(
            post("/v2/models/m/infer", BODY, "x-request-id: a-1", f"traceparent: {PARENT}")
        )
        wait_for(lambda: len(lines.found) == 1)
    (line,) = lines.found
    assert reply.headers["x-request-id"] == "a-1"
    assert (line["method"], line["path"], line["status"]) == ("POST", "/v2/models/m/infer", 200)
    assert (line["model"], line["version"], line["id"], line["trace"]) == ("m", "1", "a-1", TRACE)
    assert line["bytes_out"] == len(reply.body)
    assert list(line["phases_ms"]) == list(PHASES)
    assert sum(line["phases_ms"].values()) == pytest.approx(line["ms"], abs=0.01)


def test_without_a_header_the_request_has_its_own_id(models: Models, lines: Lines) -> None:
    with port_of(models, logs=True) as port, Wire(port) as wire:
        reply = wire.ask(post("/v2/models/m/infer", BODY))
        wait_for(lambda: len(lines.found) == 1)
    assert lines.found[0]["id"] == "7"
    assert "x-request-id" not in reply.headers  # only what came is sent back


def test_other_requests_have_no_model(models: Models, lines: Lines) -> None:
    with port_of(models, logs=True) as port, Wire(port) as wire:
        wire.ask(get("/v2"))
        wire.ask(get("/none"))
        wait_for(lambda: len(lines.found) == 2)
    assert [line["status"] for line in lines.found] == [200, 404]
    assert not any("model" in line or "phases_ms" in line for line in lines.found)


def test_what_failed_says_why(models: Models, lines: Lines) -> None:
    with port_of(models, logs=True) as port, Wire(port) as wire:
        wire.ask(post("/v2/models/bad/infer", BODY))
        wire.ask(post("/v2/models/m/infer", {"inputs": []}))
        wait_for(lambda: len(lines.found) == 2)
    assert [line["reason"] for line in lines.found] == ["error", "invalid"]


def test_calls_of_grpc_are_logged(models: Models, lines: Lines) -> None:
    with grpc_port(models, logs=True) as port, Caller(port) as caller:
        caller.infer(message(), metadata=(("x-request-id", "b-2"), ("traceparent", PARENT)))
        wait_for(lambda: len(lines.found) == 1)
        caller.code("ModelInfer", message("bad"))
        wait_for(lambda: len(lines.found) == 2)
        caller.call("ServerLive")
        wait_for(lambda: len(lines.found) == 3)
        caller.code("Nope")
        wait_for(lambda: len(lines.found) == 4)
    infer, bad, live, nope = lines.found
    assert (infer["method"], infer["path"]) == ("GRPC", f"{SERVICE}ModelInfer")
    assert (infer["status"], infer["id"], infer["trace"]) == (200, "b-2", TRACE)
    assert infer["client"] == "127.0.0.1" and infer["bytes_in"] and infer["bytes_out"]
    assert list(infer["phases_ms"]) == list(PHASES)
    assert sum(infer["phases_ms"].values()) == pytest.approx(infer["ms"], abs=0.01)
    assert (bad["status"], bad["reason"]) == (500, "error")
    assert live["path"] == f"{SERVICE}ServerLive" and "model" not in live
    assert (nope["status"], nope["path"]) == (501, f"{SERVICE}Nope")


def test_each_request_of_a_stream_is_logged(models: Models, lines: Lines) -> None:
    with grpc_port(models, logs=True) as port, Caller(port) as caller:
        sent = [message(id="1"), message("bad", id="2"), message("none", id="3")]
        assert len(list(caller.stream(sent))) == 3
        wait_for(lambda: len(lines.found) == 3)
    assert [line["status"] for line in lines.found] == [200, 500, 404]
    assert [line.get("model") for line in lines.found] == ["m", "bad", None]
    assert lines.found[0]["path"] == f"{SERVICE}ModelStreamInfer"


def test_a_refused_call_is_logged_and_counted(models: Models, lines: Lines) -> None:
    with grpc_port(models, logs=True, gate=Gate([TOKEN])) as port, Caller(port) as caller:
        assert caller.code("ModelInfer", message())[0] == "UNAUTHENTICATED"
        wait_for(lambda: len(lines.found) == 1)
        assert port._core.observer.refused.counts() == {401: 1}
    assert lines.found[0]["status"] == 401


@pytest.mark.parametrize(
    ("given", "back"), [("b-2", "b-2"), ("x" * 128, "x" * 128), ("x" * 129, None), ("a b", None)]
)
def test_grpc_sends_an_id_back_that_is_fit_for_a_header(
    models: Models, given: str, back: str | None
) -> None:
    with grpc_port(models) as port, Caller(port) as caller:
        call = caller.channel.unary_unary(f"{SERVICE}ModelInfer")
        _, done = call.with_call(
            message().SerializeToString(), metadata=(("x-request-id", given),), timeout=60
        )
        assert dict(done.trailing_metadata()).get("x-request-id") == back
        with pytest.raises(grpc.RpcError) as failed:
            call(
                message("bad").SerializeToString(), metadata=(("x-request-id", given),), timeout=60
            )
        assert dict(failed.value.trailing_metadata()).get("x-request-id") == back


@pytest.mark.parametrize(
    ("peer", "address"),
    [
        ("ipv4:127.0.0.1:5000", "127.0.0.1"),
        ("ipv6:[::1]:5000", "::1"),
        ("ipv6:%5B::1%5D:5000", "::1"),
        ("unix:", ""),
        ("", ""),
    ],
)
def test_the_address_of_a_client_is_read(peer: str, address: str) -> None:
    assert _address(peer) == address


def test_an_id_cannot_end_a_line_or_steer_a_terminal(
    models: Models, lines: Lines, caplog: pytest.LogCaptureFixture
) -> None:
    sent = "a\u0085{}\u2028\x9b31m\x7f\n\x1b"
    with port_of(models, logs=True) as port, Wire(port) as wire:
        assert wire.ask(post("/v2/models/m/infer", {**BODY, "id": sent})).status == 200
    wait_for(lambda: len(lines.found) == 1)
    assert lines.found[0]["id"] == sent
    (text,) = [one.getMessage() for one in caplog.records if one.name.endswith(".access")]
    assert text.isascii() and text.isprintable()
