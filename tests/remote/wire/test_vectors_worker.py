"""A worker held against the vectors: requests in, the very bytes of the answers out."""

from __future__ import annotations

import socket

import pytest
from support.wire_peers import Twice, hosted, received
from support.wire_vectors import FOLDER, Part, Vector, read

from mindspore_lite.errors import WireError
from mindspore_lite.remote.wire import faults
from mindspore_lite.remote.wire.bodies import Build
from mindspore_lite.remote.wire.fields import Reader
from mindspore_lite.remote.wire.frames import HEADER_BYTES, Frame, Message, header, parsed_header
from mindspore_lite.remote.wire.handshake import Hello
from mindspore_lite.remote.wire.memory import Block, Made
from mindspore_lite.remote.worker import client_session as client_session_module
from mindspore_lite.remote.worker.client_session import ClientSession
from mindspore_lite.remote.worker.served_model import Running
from mindspore_lite.serving.registry import Registry

VECTORS = {path.stem: read(path) for path in sorted(FOLDER.glob("*.txt"))}
CONVERSATION = [v for name, v in VECTORS.items() if name[:2].isdigit() and "greeting" not in name]
DESCRIPTORS = {3: 9, 4: 10}


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Twice:
    """What every BUILD gives here; the first one has something to note."""
    twice = Twice()

    def built(build: Build, contents: list[bytes], group: object) -> Twice:
        twice.calls.append(("build", build, contents))
        if build.path:
            note = VECTORS["03-build"].parts[1].text("notes.0")
            client_session_module._notes.found.append(note)
        return twice

    monkeypatch.setattr(client_session_module, "built", built)
    made = property(lambda block: Made(block.number, DESCRIPTORS[block.number], block.size))
    monkeypatch.setattr(Block, "made", made)
    return twice


def answered(client_session: ClientSession, part: Part) -> bytes:
    data = part.encoded()
    message, request, _ = parsed_header(data)
    answer, body = client_session.answer(
        Frame(message, request, memoryview(data[HEADER_BYTES:])), Running(request)
    )
    return header(answer, request, len(body)) + body


def test_the_conversation_is_answered_byte_by_byte(model: Twice) -> None:
    client_session = ClientSession(Registry())
    for vector in CONVERSATION:
        asked, told = vector.parts
        assert answered(client_session, asked).hex() == told.encoded().hex(), vector.name
    client_session.close()


def test_the_conversation_is_understood(model: Twice) -> None:
    client_session = ClientSession(Registry())
    asked = {vector.name[3:]: vector.parts[0] for vector in CONVERSATION}
    for part in asked.values():
        answered(client_session, part)
    by_path, by_bytes, small, large, again, *others = model.calls
    resize, update, restore, info, statistics, close, derive = others
    assert derive == update

    _, build, contents = by_path
    assert isinstance(build, Build)
    assert contents == []
    part = asked["build"]
    assert (build.kind, build.model_type) == (part["kind"], part["model_type"])
    assert build.path == part.text("path")
    assert build.settings == {"target": "cpu", "cpu.thread_num": "2"}
    assert build.config == {"ascend_context": {"precision_mode": "enforce_fp32"}}

    _, build, contents = by_bytes
    assert isinstance(build, Build)
    part = asked["build-content"]
    assert (build.kind, build.model_type) == (part["kind"], part["model_type"])
    assert contents == [part["content.0.data"], part["content.1.data"]]
    assert (build.config_path, build.key) == (part.text("config_path"), part["key"])
    assert build.key_mode == part.text("key_mode")

    assert small == ("predict", [asked["predict"]["inputs.0.data"]], 120.0, -3)
    assert large == again == ("predict", [bytes(32768)], None, 0)
    assert resize == ("resize", [(4, 2)])
    part = asked["update-weights"]
    groups = [[("factor", part["groups.0.0.data"])], [("", part["groups.1.0.data"])]]
    assert update == ("update_weights", groups)
    assert restore == ("update_weights", [])
    assert info == ("info", asked["info"].text("key"))
    assert statistics == ("statistics",)
    assert close == ("close", 2.0)
    assert client_session.last_words == asked["exit"].text("words")
    assert client_session._blocks == {}
    client_session.close()


@pytest.mark.parametrize("name", ["01-greeting", "02-greeting-lane"])
def test_clients_are_greeted_byte_by_byte(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, told = VECTORS[name].parts
    token, pid = told["token"], told["pid"]
    monkeypatch.setattr(
        "mindspore_lite.remote.worker.client_session.secrets.token_bytes", lambda size: token
    )
    monkeypatch.setattr("mindspore_lite.remote.worker.server.os.getpid", lambda: pid)
    with hosted(ClientSession(Registry()) if name.startswith("02") else None) as sock:
        sock.sendall(asked.encoded())
        assert received(sock, len(told.encoded())).hex() == told.encoded().hex()


def named(prefix: str) -> list[object]:
    return [pytest.param(v, id=v.name) for v in VECTORS.values() if v.name.startswith(prefix)]


@pytest.mark.parametrize("vector", named("bad-hello"))
def test_a_bad_greeting_is_refused_with_the_reason(vector: Vector) -> None:
    (part,) = vector.parts
    with hosted() as sock:
        sock.sendall(part.encoded())
        answer = received(sock, 1 << 20)  # until it closes
    assert answer[:10] == b"MSLITE\r\n\0\0"
    assert part.reason in answer[40:].decode()


@pytest.mark.parametrize("vector", named("bad-frame"))
def test_after_a_bad_frame_the_connection_is_closed_with_the_reason(vector: Vector) -> None:
    (part,) = vector.parts
    client_session = ClientSession(Registry())
    with hosted(client_session) as sock:
        _greet(sock, client_session)
        sock.sendall(part.encoded())
        sock.shutdown(socket.SHUT_WR)
        answer = received(sock, 1 << 20)  # until it closes
    _assert_wire_error(answer, 0, part.reason)


def test_after_a_bad_body_the_connection_goes_on() -> None:
    client_session = ClientSession(Registry())
    client_session._models[1] = Twice()
    bad = [v.parts[0] for v in VECTORS.values() if v.parts[0].verdict == "error"]
    assert len(bad) > 20
    with hosted(client_session) as sock:
        _greet(sock, client_session)
        for part in bad:
            sock.sendall(part.encoded())
            head = received(sock, HEADER_BYTES)
            body = received(sock, parsed_header(head)[2])
            _assert_wire_error(head + body, part.number("frame.request"), part.reason)


def _greet(sock: socket.socket, client_session: ClientSession) -> None:
    sock.sendall(Hello(token=client_session.token).encoded())
    received(sock, 40 + len("/run/user/1000/twice.sock"))


def _assert_wire_error(answer: bytes, request: int, reason: str) -> None:
    message, found, size = parsed_header(answer)
    assert (message, found, size) == (Message.ERROR, request, len(answer) - HEADER_BYTES)
    error = faults.read_error(Reader(memoryview(answer[HEADER_BYTES:])))
    assert isinstance(error, WireError)
    assert reason in str(error)
