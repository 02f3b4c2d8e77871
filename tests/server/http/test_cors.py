"""What browsers are told about pages of other origins, as a browser asks it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.served import HttpPort, Reply, Wire, get, port_of, post

from mindspore_lite.server.access import Gate
from mindspore_lite.server.models import Models

PAGE, OTHER = "http://page.example", "http://other.example"
TOKEN = "client-token-0123456789"
INFER = "/v2/models/id_fp32/infer"
BODY = {"inputs": [{"name": "IN", "datatype": "FP32", "shape": [1], "data": [1]}]}


@pytest.fixture
def page_port(models: Models) -> Iterator[HttpPort]:
    with port_of(models, gate=Gate([TOKEN]), origins=[PAGE]) as found:
        yield found


def preflight(path: str, origin: str, *more: str, method: str = "POST") -> bytes:
    asked = [f"Origin: {origin}", f"Access-Control-Request-Method: {method}", *more]
    return get(path, *asked, method="OPTIONS")


def said(reply: Reply) -> set[str]:
    return {name for name in reply.headers if name.startswith("access-control")}


def test_a_preflight_of_an_allowed_page_is_answered_without_a_token(page_port: HttpPort) -> None:
    wanted = "Access-Control-Request-Headers: authorization,inference-header-content-length"
    with Wire(page_port) as wire:
        reply = wire.ask(preflight(INFER, PAGE, wanted))
        assert (reply.status, reply.body) == (200, b"")
        assert reply.headers["access-control-allow-origin"] == PAGE
        assert reply.headers["vary"] == "origin"
        assert "POST" in reply.headers["access-control-allow-methods"]
        allowed = reply.headers["access-control-allow-headers"].split(", ")
        assert {"authorization", "content-type", "inference-header-content-length"} <= set(allowed)
        assert "access-control-allow-private-network" not in reply.headers
        assert "access-control-allow-credentials" not in reply.headers
        lan = wire.ask(preflight(INFER, PAGE, "Access-Control-Request-Private-Network: true"))
        assert lan.headers["access-control-allow-private-network"] == "true"


def test_a_preflight_tells_nothing_about_paths(page_port: HttpPort) -> None:
    with Wire(page_port) as wire:
        replies = [wire.ask(preflight(path, PAGE)) for path in (INFER, "/v2", "/nowhere")]
    assert len({tuple(sorted(said(reply))) for reply in replies}) == 1
    assert {reply.status for reply in replies} == {200}


def test_pages_that_are_not_allowed_are_told_nothing(page_port: HttpPort, models: Models) -> None:
    with Wire(page_port) as wire:
        reply = wire.ask(preflight(INFER, OTHER))
        assert (reply.status, said(reply)) == (403, set())
    with port_of(models) as closed, Wire(closed) as wire:  # nobody is, unless it is asked for
        assert wire.ask(preflight(INFER, PAGE)).status == 403
        own = wire.ask(preflight(INFER, "http://localhost"))  # a page of our own needs none
        assert (own.status, said(own)) == (405, set())


def test_an_options_request_that_is_no_preflight_is_refused(page_port: HttpPort) -> None:
    token = f"Authorization: Bearer {TOKEN}"
    with Wire(page_port) as wire:
        plain = get(INFER, f"Origin: {PAGE}", method="OPTIONS")
        assert wire.ask(plain).status == 401
        assert wire.ask(get(INFER, token, method="OPTIONS")).status == 405
        with_method = get(INFER, token, "Access-Control-Request-Method: POST", method="OPTIONS")
        assert wire.ask(with_method).status == 405
        body = preflight(INFER, PAGE, "Content-Length: 5") + b"12345"
        assert wire.ask(body).status == 413


def test_answers_can_be_read_by_the_page_and_errors_too(page_port: HttpPort) -> None:
    token = f"Authorization: Bearer {TOKEN}"
    with Wire(page_port) as wire:
        for _ in range(2):  # the second head is known already
            reply = wire.ask(post(INFER, BODY, token, f"Origin: {PAGE}"))
            assert reply.status == 200
            assert reply.headers["access-control-allow-origin"] == PAGE
            assert (
                "inference-header-content-length" in reply.headers["access-control-expose-headers"]
            )
        failed = wire.ask(post(INFER, BODY, f"Origin: {PAGE}"))
        assert (failed.status, failed.headers["access-control-allow-origin"]) == (401, PAGE)
        assert said(wire.ask(post(INFER, BODY, token))) == set()


def test_any_page_may_be_allowed(models: Models) -> None:
    with port_of(models, origins=["*"]) as port, Wire(port) as wire:
        assert wire.ask(preflight(INFER, OTHER)).headers["access-control-allow-origin"] == OTHER
