"""Heads: the table of what is refused, line by line, and a comparison with h11 on random ones."""

from __future__ import annotations

import random

import h11
import pytest

from mindspore_lite.server.errors import RequestError
from mindspore_lite.server.http.head import Head, check_part, read_head
from mindspore_lite.server.limits import Limits

LIMITS = Limits()


def head(*lines: bytes, first: bytes = b"POST /v2 HTTP/1.1", host: bytes = b"Host: a") -> bytes:
    return b"\r\n".join([first, *([host] if host else []), *lines]) + b"\r\n\r\n"


def status(raw: bytes) -> int:
    try:
        read_head(raw, LIMITS)
    except RequestError as exc:
        return exc.kind.status
    return 200


REFUSED = {
    "length and chunked": head(b"Content-Length: 3", b"Transfer-Encoding: chunked"),
    "chunked and length": head(b"Transfer-Encoding: chunked", b"Content-Length: 3"),
    "two lengths": head(b"Content-Length: 3", b"Content-Length: 4"),
    "two equal lengths": head(b"Content-Length: 3", b"Content-Length: 3"),
    "two lengths, other case": head(b"Content-Length: 3", b"CONTENT-LENGTH: 3"),
    "list of lengths": head(b"Content-Length: 3, 3"),
    "signed length": head(b"Content-Length: +3"),
    "negative length": head(b"Content-Length: -3"),
    "hexadecimal length": head(b"Content-Length: 0x3"),
    "underscored length": head(b"Content-Length: 1_0"),
    "fractional length": head(b"Content-Length: 3.0"),
    "empty length": head(b"Content-Length:"),
    "length of words": head(b"Content-Length: three"),
    "spaces in the length": head(b"Content-Length: 3 3"),
    "arabic digits": head("Content-Length: ٣".encode()),
    "huge length": head(b"Content-Length: " + b"9" * 40),
    "two codings": head(b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked"),
    "gzip, chunked": head(b"Transfer-Encoding: gzip, chunked"),
    "chunked, gzip": head(b"Transfer-Encoding: chunked, gzip"),
    "identity": head(b"Transfer-Encoding: identity"),
    "xchunked": head(b"Transfer-Encoding: xchunked"),
    "chunked with a comma": head(b"Transfer-Encoding: chunked,"),
    "quoted chunked": head(b'Transfer-Encoding: "chunked"'),
    "empty coding": head(b"Transfer-Encoding:"),
    "vertical tab": head(b"Transfer-Encoding: \x0bchunked"),
    "chunked in HTTP/1.0": head(b"Transfer-Encoding: chunked", first=b"POST /v2 HTTP/1.0"),
    "folded line": head(b"A: b\r\n c"),
    "folded by a tab": head(b"A: b\r\n\tc"),
    "folded length": head(b"Content-Length:\r\n 3"),
    "bare LF": head(b"A: b\nContent-Length: 3"),
    "bare CR": head(b"A: b\rContent-Length: 3"),
    "CR in a value": head(b"A: b\rc"),
    "CR at the end": head(b"A: b\r"),
    "space before the colon": head(b"Content-Length : 3"),
    "tab before the colon": head(b"Content-Length\t: 3"),
    "space before a name": head(b" Content-Length: 3"),
    "no name": head(b": 3"),
    "no colon": head(b"Content-Length 3"),
    "space in a name": head(b"Content Length: 3"),
    "bracket in a name": head(b"Content[Length]: 3"),
    "NUL in a value": head(b"A: b\0c"),
    "NUL in a name": head(b"A\0: b"),
    "NUL in the target": head(first=b"GET /\0 HTTP/1.1"),
    "DEL": head(b"A: b\x7f"),
    "escape": head(b"A: \x1b[31m"),
    "no host": head(host=b""),
    "two hosts": head(b"Host: b"),
    "two inference lengths": head(
        b"Inference-Header-Content-Length: 1", b"inference-header-content-length: 2"
    ),
    "two tokens": head(b"Authorization: Bearer a", b"Authorization: Bearer b"),
    "space in the target": head(first=b"GET /a b HTTP/1.1"),
    "no target": head(first=b"GET HTTP/1.1"),
    "other version": head(first=b"GET / HTTP/1.2"),
    "HTTP/2": head(first=b"GET / HTTP/2.0"),
    "HTTP/0.9": head(first=b"GET /"),
    "the preface of HTTP/2": b"PRI * HTTP/2.0\r\n\r\n",
    "lower-case version": head(first=b"GET / http/1.1"),
    "lower-case method": head(first=b"get / HTTP/1.1"),
    "another method": head(first=b"GETX / HTTP/1.1"),
    "relative target": head(first=b"GET v2 HTTP/1.1"),
    "authority form": head(first=b"CONNECT a:80 HTTP/1.1"),
    "another scheme": head(first=b"GET ftp://a/v2 HTTP/1.1"),
    "userinfo": head(first=b"GET http://u@a/v2 HTTP/1.1"),
    "no authority": head(first=b"GET http:///v2 HTTP/1.1"),
    "asterisk": head(first=b"GET * HTTP/1.1"),
    "fragment": head(first=b"GET http://a#/v2 HTTP/1.1"),
    "TLS": b"\x16\x03\x01\x02\x00\x01\r\n\r\n",
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_head_that_readers_may_understand_differently_is_refused(name: str) -> None:
    assert 400 <= status(REFUSED[name]) <= 505


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (head(*[b"A%d: b" % i for i in range(100)]), 431),
        (head(first=b"GET /" + b"a" * 9000 + b" HTTP/1.1"), 414),
        (head(b"Expect: 200-maybe"), 417),
    ],
)
def test_limits_of_heads(raw: bytes, code: int) -> None:
    assert status(raw) == code


def test_a_usual_head_is_read() -> None:
    found = read_head(
        head(b"Content-Length: 12", b"Expect: 100-Continue", b"X: a : b:c", b"Y:", b"Z: \xe9"),
        LIMITS,
    )
    assert (found.method, found.path, found.authority) == ("POST", "/v2", "a")
    assert (found.length, found.expects, found.keeps_alive, found.is_old) == (12, True, True, False)
    assert (found.text(b"x"), found.text(b"y"), found.text(b"z")) == ("a : b:c", "", "é")


@pytest.mark.parametrize(
    ("lines", "first", "keeps"),
    [
        ((), b"GET / HTTP/1.1", True),
        ((b"Connection: close",), b"GET / HTTP/1.1", False),
        ((b"Connection: Keep-Alive, Close",), b"GET / HTTP/1.1", False),
        ((), b"GET / HTTP/1.0", False),
        ((b"Connection: keep-alive",), b"GET / HTTP/1.0", True),
        ((b"Connection: Upgrade", b"Upgrade: h2c"), b"GET / HTTP/1.1", True),
    ],
)
def test_keep_alive(lines: tuple[bytes, ...], first: bytes, keeps: bool) -> None:
    assert read_head(head(*lines, first=first), LIMITS).keeps_alive == keeps


def test_absolute_targets_name_the_host() -> None:
    found = read_head(head(first=b"GET http://Other:1/v2?x HTTP/1.1"), LIMITS)
    assert (found.path, found.authority) == ("/v2", "Other:1")
    assert read_head(head(first=b"GET http://b HTTP/1.1"), LIMITS).path == "/"


def test_http_1_0_needs_no_host() -> None:
    assert read_head(head(first=b"GET / HTTP/1.0", host=b""), LIMITS).is_old


@pytest.mark.parametrize("part", [b"GET / HTTP/1.1\n", b"GET /\r \0", b"a\rb"])
def test_a_beginning_that_cannot_become_good_is_refused_at_once(part: bytes) -> None:
    with pytest.raises(RequestError):
        check_part(part)


@pytest.mark.parametrize(
    "part", [b"", b"GET", b"GET / HTTP/1.1\r", b"GET / HTTP/1.1\r\nA: b\r\n\r"]
)
def test_a_good_beginning_passes(part: bytes) -> None:
    check_part(part)


# --- h11 reads the same bytes ---

PIECES = [
    b"Content-Length: 3", b"Content-Length: 03", b"content-length:5", b"Transfer-Encoding: chunked",
    b"Transfer-Encoding: Chunked", b"Transfer-Encoding: gzip", b"Host: a", b"Host: b:80",
    b"Connection: close", b"Connection: keep-alive", b"A: b", b"A : b", b" A: b", b"A:\tb ", b"A:",
    b"\xe9: b", b"A: \xe9", b"A: b\0", b"A: b\rC: d", b"A: b\nC: d", b"Expect: 100-continue",
    b"Content-Length: 3, 3", b"Content-Length: -1", b"X" * 50 + b": y", b"", b":", b"\t",
    b"\x0b: a", b"Connection: close, x",
]  # fmt: skip
FIRST = [
    b"GET / HTTP/1.1", b"POST /v2 HTTP/1.1", b"POST /v2 HTTP/1.0", b"GET  / HTTP/1.1",
    b"GET / HTTP/1.1 ", b"GET / HTTP/1.3", b"GET /\t HTTP/1.1", b"DELETE http://a/v2 HTTP/1.1",
    b"G\0T / HTTP/1.1",
]  # fmt: skip


def by_h11(raw: bytes) -> tuple[str, int | None] | None:
    """What h11 makes of a head: the method, and the length of the body."""
    connection = h11.Connection(h11.SERVER)
    try:
        connection.receive_data(raw)
        event = connection.next_event()
    except h11.RemoteProtocolError:
        return None
    if not isinstance(event, h11.Request):
        return None
    headers = dict(event.headers)
    if headers.get(b"transfer-encoding"):
        return event.method.decode(), None
    return event.method.decode(), int(headers.get(b"content-length", 0))


def mutated(rng: random.Random) -> bytes:
    lines = [rng.choice(FIRST), *rng.choices(PIECES, k=rng.randrange(6))]
    raw = bytearray(b"\r\n".join(lines) + b"\r\n\r\n")
    for _ in range(rng.choice((0, 0, 0, 1, 2))):
        raw[rng.randrange(len(raw))] = rng.choice(b"\r\n\t :\0,;aZ0\x7f\xff")
    return bytes(raw)


@pytest.mark.parametrize("seed", range(20))
def test_what_we_take_h11_understands_alike(seed: int) -> None:
    rng, taken = random.Random(seed), 0
    for _ in range(1000):
        raw = mutated(rng)
        end = raw.find(b"\r\n\r\n")
        if end < 0:
            continue
        raw = raw[: end + 4]
        try:
            found: Head | None = read_head(raw, LIMITS)
        except RequestError:
            found = None
        other = by_h11(raw)
        if found is not None:
            taken += 1
            assert other == (found.method, found.length), raw
    assert taken > 10
