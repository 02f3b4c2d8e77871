"""The dashboard over HTTP: its files, the numbers, and the stream."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from support.fake_engine import LIMIT_S, Client
from support.fake_numbers import model, numbers
from support.served import FakeService, HttpPort, Reply, Wire, fake_port, get, port_of

from mindspore_lite.server.access import Gate
from mindspore_lite.server.dashboard.files import FILES
from mindspore_lite.server.http import dashboard
from mindspore_lite.server.limits import Limits
from mindspore_lite.server.models import Models

TOKEN, ADMIN = "client-token-0123456789", "admin-token-0123456789"
EVENTS = "/dashboard/events"


@pytest.fixture
def own() -> Iterator[HttpPort]:
    with fake_port(FakeService()) as found:
        yield found


class Stream(Wire):
    """A client that follows the numbers."""

    def __init__(self, port: HttpPort, path: str = EVENTS, version: str = "1.1") -> None:
        super().__init__(port)
        self.send(get(path).replace(b"HTTP/1.1", f"HTTP/{version}".encode()))
        self.head = self.reply(has_body=False)
        self.first = self.event() if self.head.status == 200 else None

    def event(self) -> tuple[str, Any]:
        """The next one."""
        name, data, end = (self._file.readline().decode() for _ in range(3))
        assert end == "\n"
        return name.removeprefix("event: ").strip(), json.loads(data.removeprefix("data: "))


def policy_of(reply: Reply) -> dict[str, str]:
    rules = reply.headers["content-security-policy"].split("; ")
    return dict(rule.split(" ", 1) for rule in rules)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.path)
def test_files_come_with_a_strict_policy(wire: Wire, file: Any) -> None:
    reply = wire.ask(get(file.path))
    assert (reply.status, reply.headers["content-type"]) == (200, file.content)
    assert reply.body
    policy = policy_of(reply)
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert "unsafe" not in str(policy) and "http" not in str(policy)
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert reply.headers["referrer-policy"] == "no-referrer"


def test_files_say_nothing_about_the_server(models: Models) -> None:
    """With tokens, strangers get the page alone: the bytes that everybody gets."""
    with port_of(models) as open_port, port_of(models, gate=Gate([TOKEN])) as port:
        for file in FILES:
            with Wire(port) as guarded, Wire(open_port) as free:
                assert guarded.ask(get(file.path)).body == free.ask(get(file.path)).body
        for path in ("/dashboard/numbers", EVENTS, "/dashboard/history/id_fp32/3"):
            with Wire(port) as wire:
                assert wire.ask(get(path)).status == 401


@pytest.mark.parametrize(("token", "is_admin"), [(TOKEN, False), (ADMIN, True)])
def test_a_page_learns_what_its_token_allows(models: Models, token: str, is_admin: bool) -> None:
    with port_of(models, gate=Gate([TOKEN], [ADMIN])) as port, Wire(port) as wire:
        reply = wire.ask(get("/dashboard/access", f"Authorization: Bearer {token}"))
        assert reply.json == {"admin": is_admin}


def test_without_an_admin_token_nobody_is_one(wire: Wire) -> None:
    assert wire.ask(get("/dashboard/access")).json == {"admin": False}


def test_a_missing_chart_library_is_said(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dashboard, "content_of", lambda file: None)
    reply = wire.ask(get("/dashboard/uplot.js"))
    assert reply.status == 404
    assert "pip install uplot-python" in reply.error


def test_the_numbers_are_there_at_once(wire: Wire) -> None:
    reply = wire.ask(get("/dashboard/numbers"))
    assert reply.headers["cache-control"] == "no-store"
    assert {one["name"] for one in reply.json["models"]} >= {"id_fp32", "id_batch"}
    assert all("rate" in one["recent"] for one in reply.json["models"])


def test_the_history_of_a_model(own: HttpPort) -> None:
    with Wire(own) as wire:
        assert wire.ask(get("/dashboard/history/fake/1")).json["at"] == []
        own.core.history.add(numbers(model("fake", success=3)), 7.0)
        found = wire.ask(get("/dashboard/history/fake/1")).json
        assert (found["at"], found["columns"]["requests"]) == ([7.0], [3])
        assert wire.ask(get("/dashboard/history/fake/2")).status == 404
        assert wire.ask(get("/dashboard/history/other/1")).status == 404


@pytest.mark.parametrize("version", ["1.1", "1.0"])
def test_a_stream_brings_every_sample(own: HttpPort, version: str) -> None:
    with Stream(own, version=version) as stream:
        assert stream.head.headers["content-type"] == "text/event-stream"
        assert stream.head.headers["connection"] == "close"
        assert "content-length" not in stream.head.headers
        assert stream.first == ("sparks", {"models": []})
        for success in (3, 5):
            own.core.history.add(numbers(model("fake", success=success)), float(success))
            name, value = stream.event()
            assert (name, value["at"]) == ("numbers", float(success))
        assert value["models"][0]["second"]["values"]["requests"] == 2


def test_a_head_of_a_stream_ends(own: HttpPort) -> None:
    with Wire(own) as wire:
        reply = wire.ask(get(EVENTS, method="HEAD"), has_body=False)
        assert (reply.status, reply.headers["content-type"]) == (200, "text/event-stream")
        assert wire.ask(get("/v2/health/live")).status == 200
    assert own.core.history.followers == 0


def test_streams_are_limited() -> None:
    with fake_port(FakeService(), Limits(event_streams=2)) as port:
        with Stream(port) as first, Stream(port):
            with Stream(port) as third:
                assert (third.head.status, third.head.headers["retry-after"]) == (503, "5")
            first.close()
            _wait_followers(port, 1)
            with Stream(port) as fourth:
                assert fourth.head.status == 200
        _wait_followers(port, 0)


def _wait_followers(port: HttpPort, number: int) -> None:
    """A client that hung up is noticed by the loop; asking it something is waiting for that."""
    for _ in range(1000):
        with Wire(port) as wire:
            wire.ask(get("/v2/health/live"))
        if port.core.history.followers == number:
            return
    raise AssertionError(port.core.history.followers)


def test_a_client_that_does_not_read_is_dropped() -> None:
    with fake_port(FakeService(), Limits(stream_bytes=1000)) as port, Stream(port) as stream:
        big = numbers(*(model(f"m{number}") for number in range(1000)))
        for second in range(1000):
            if not port.core.history.followers:
                break
            port.core.history.add(big, float(second))
            with Wire(port) as wire:
                wire.ask(get("/v2/health/live"))
        assert port.core.history.followers == 0
        stream.sock.settimeout(LIMIT_S)
        with pytest.raises((ConnectionResetError, AssertionError, ValueError)):
            while True:
                stream.event()


def test_what_a_stream_s_client_sends_is_dropped(own: HttpPort) -> None:
    with Stream(own) as stream:
        stream.send(get("/v2/health/live") * 10_000)
        own.core.history.add(numbers(model("fake")), 1.0)
        assert stream.event()[0] == "numbers"


def test_a_drain_ends_streams(own: HttpPort) -> None:
    with Stream(own) as stream:
        own.core.is_ending = True
        draining = Client(lambda: own.stop_accepting(1.0))
        assert stream.at_end()
        draining.ended()
        assert own.wait_idle(LIMIT_S)
    assert own.core.history.followers == 0


def test_an_ending_server_opens_no_stream(own: HttpPort) -> None:
    own.core.is_ending = True
    with Stream(own) as stream:
        assert stream.head.status == 503


def test_the_page_names_only_files_that_are_there() -> None:
    html = dashboard.content_of(FILES[0])
    assert html is not None
    named = set(re.findall(r'(?:src|href)="(dashboard/[^"]+)"', html.decode()))
    assert {f"/{name}" for name in named} <= {file.path for file in FILES}
