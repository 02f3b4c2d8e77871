from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindspore_lite.errors import ResourceError, WireError
from mindspore_lite.remote.wire.handshake import (
    VERSION,
    Hello,
    Welcome,
    check_peer,
    decoded_hello,
    decoded_welcome,
    greet,
    read_hello,
)

TOKEN = bytes(range(16))
Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    ours, theirs = socket.socketpair()
    for sock in (ours, theirs):
        sock.settimeout(120)
    with ours, theirs:
        yield ours, theirs


@pytest.mark.parametrize("address", ["/tmp/x.sock", "@00042", "/tmp/\udcff.sock", ""])
def test_both_sides_greet_each_other(pair: Pair, address: str) -> None:
    client, worker = pair
    worker.sendall(Welcome(VERSION, 0, TOKEN, 42, address).encoded())
    welcome = greet(client, TOKEN)
    assert welcome == Welcome(VERSION, 0, TOKEN, 42, address)
    assert read_hello(worker) == Hello(VERSION, VERSION, TOKEN)


def test_a_greeting_may_come_byte_by_byte(pair: Pair) -> None:
    client, worker = pair
    for byte in Welcome(VERSION, 0, TOKEN, 42, "@1").encoded():
        worker.sendall(bytes([byte]))
    assert greet(client).text == "@1"


def test_a_connection_that_ends_in_the_greeting_is_an_error(pair: Pair) -> None:
    client, worker = pair
    client.sendall(Hello().encoded()[:31])
    client.shutdown(socket.SHUT_WR)
    with pytest.raises(ConnectionError, match="after 31 bytes"):
        read_hello(worker)


def test_a_client_that_speaks_more_versions_than_ours_is_welcome() -> None:
    data = Hello(lowest=0, highest=9).encoded()
    assert decoded_hello(data) == Hello(0, 9)


@pytest.mark.parametrize(
    ("code", "kind"),
    [(ResourceError.code, ResourceError), (WireError.code, WireError), (5, WireError)],
)
def test_a_refusal_tells_its_reason_by_its_code(pair: Pair, code: int, kind: type) -> None:
    client, worker = pair
    worker.sendall(Welcome(0, code, bytes(16), 42, "too many").encoded())
    with pytest.raises(kind, match="refused the connection: too many"):
        greet(client)


@given(st.binary(min_size=32, max_size=32))
def test_any_bytes_are_a_hello_or_a_wire_error(data: bytes) -> None:
    for start in (b"", b"MSLITE\r\n", b"MSLITE\r\n\1\0\1\0\0\0\0\0"):
        mixed = start + data[len(start) :]
        try:
            hello = decoded_hello(mixed)
        except WireError:
            continue
        assert hello.encoded() == mixed


@given(st.binary(min_size=40, max_size=40), st.binary(max_size=20))
def test_any_bytes_are_a_welcome_or_an_error(data: bytes, text: bytes) -> None:
    for start in (b"", b"MSLITE\r\n", b"MSLITE\r\n\1\0\0\0"):
        try:
            welcome = decoded_welcome(start + data[len(start) :], text)
        except (WireError, ResourceError):
            continue
        assert welcome.version == VERSION


def test_a_peer_of_the_same_user_is_known_by_its_process(pair: Pair) -> None:
    assert check_peer(pair[0]) == os.getpid()


def test_a_peer_of_another_user_is_refused(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    other = os.geteuid() + 1
    monkeypatch.setattr("mindspore_lite.remote.wire.handshake.os.geteuid", lambda: other)
    with pytest.raises(WireError, match=f"is user {other - 1}, wanted {other}"):
        check_peer(pair[0])
    with pytest.raises(WireError, match="serves only the user"):
        greet(pair[0])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a process of another user")
def test_a_process_of_another_user_is_refused() -> None:
    nobody = 65534
    code = """
import os, socket, sys
os.setuid(int(sys.argv[2]))
sock = socket.socket(socket.AF_UNIX)
sock.connect("\\0" + sys.argv[1])
sys.stdin.read()
"""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.settimeout(120)
        listener.bind("")
        listener.listen()
        name = listener.getsockname()[1:].decode()
        command = [sys.executable, "-c", code, name, str(nobody)]
        with subprocess.Popen(command, stdin=subprocess.PIPE) as child:
            sock, _ = listener.accept()
            with sock, pytest.raises(WireError, match=f"is user {nobody}, wanted 0"):
                check_peer(sock)
            child.communicate()
