"""The head of an HTTP request, read so that no two parsers can disagree about it.

httptools (llhttp, strict) reads it. Before that, bytes are refused that some parser takes for a
line's end, and after it, every header that decides where the body ends: a proxy in front of us and
we must never see different requests in the same bytes. The table of refusals is in the tests.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import httptools

from mindspore_lite.server.errors import Kind, RequestError
from mindspore_lite.server.limits import Limits

_BAD = re.compile(
    rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]"  # control characters but tab
    rb"|\r(?!\n)|(?<!\r)\n"  # bare CR or LF
    rb"|\n[ \t]"  # a line folded as in old mail
    rb"|[ \t]:|\n:"  # space before the colon of a header's name, or no name; see _has_bad_colon
)
_LINE_BAD = re.compile(rb"(?<!\r)\n|\r(?![\n])(?!$)|\x00")  # in a head that is not complete yet
_FIRST_LINE = re.compile(rb"[A-Z]{3,16} [\x21-\x7e]+ HTTP/[0-9]\.[0-9]\r\n")
_NUMBER = re.compile(rb"[0-9]{1,19}", re.ASCII)
_ID = re.compile(rb"[\x21-\x7e]{1,128}")  # of a request that is sent back
_HOST = re.compile(rb"(?:\[[0-9A-Fa-f:.]+\]|[^\[\]:@/?#\\, \t]*)(?::[0-9]{0,5})?")
_ONCE = frozenset(
    (b"content-length", b"transfer-encoding", b"host", b"authorization", b"content-encoding",
     b"inference-header-content-length", b"expect", b"origin", b"x-request-timeout-ms")
)  # fmt: skip
_LISTS = frozenset((b"connection", b"accept-encoding"))


@dataclass(slots=True)
class Head:
    """A request without its body.

    Attributes:
        method: In capitals.
        path: As it was sent, without the query.
        authority: The host that the request is for; "" for HTTP/1.0 without one.
        headers: By lower-case name; of those that may be repeated, the last.
        is_old: HTTP/1.0.
        keeps_alive: The client wants to send more.
        length: Of the body; None if it is chunked.
        expects: The client waits for a 100 before it sends the body.
        query: Behind the path, without the question mark.
        request_id: As it is sent back; None for none, or one that is not fit for a header.
        notes: What handlers worked out of the head; repeated heads are read only once.
    """

    method: str
    path: str
    authority: str
    headers: dict[bytes, bytes]
    is_old: bool
    keeps_alive: bool
    length: int | None
    expects: bool
    query: str = ""
    request_id: bytes | None = None
    notes: Any = None

    def text(self, name: bytes) -> str | None:
        """A header as text; None if there is none."""
        value = self.headers.get(name)
        return None if value is None else value.decode("latin-1")


@dataclass(slots=True)
class _Seen:
    """What httptools calls back with."""

    url: bytes = b""
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)

    def on_url(self, url: bytes) -> None:
        """A part of the request target."""
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header."""
        self.headers.append((name.lower(), value))


def bad(text: str) -> RequestError:
    """The error for a head that cannot be trusted; the connection ends with it."""
    return RequestError(Kind.INVALID, f"bad request: {text}")


def check_part(part: bytes) -> None:
    """Refuse the beginning of a head that cannot become a good one.

    Raises:
        RequestError: It cannot.
    """
    if _LINE_BAD.search(part):
        raise bad("lines end with CR LF")


def read_head(raw: bytes, limits: Limits) -> Head:
    """Read a head, with the empty line that ends it.

    Raises:
        RequestError: It is not one that every reader understands alike, or crosses a limit.
    """
    if _BAD.search(raw) and (found := _fault(raw)):
        raise bad(found)
    if not _FIRST_LINE.match(raw):
        raise bad("the first line must be METHOD TARGET HTTP/VERSION")
    if raw.count(b"\r\n") - 2 > limits.headers:
        raise RequestError(
            Kind.HEAD_TOO_LARGE, f"more than {limits.headers} headers; send fewer of them"
        )
    seen = _Seen()
    parser = httptools.HttpRequestParser(seen)
    try:
        parser.feed_data(raw)
    except httptools.HttpParserUpgrade:  # we speak nothing else, and say so by ignoring it
        pass
    except httptools.HttpParserError as exc:
        raise bad(f"the head is not HTTP: {type(exc).__name__}") from None
    version = parser.get_http_version()
    if version not in ("1.1", "1.0"):
        raise RequestError(Kind.HTTP_VERSION, "only HTTP/1.1 and HTTP/1.0 are spoken here")
    return _checked(seen, parser, version == "1.0", limits)


def _fault(raw: bytes) -> str:
    """What is wrong with the bytes of a head; "" if it was a harmless colon in a value."""
    for match in _BAD.finditer(raw):
        found = match[0]
        if found.endswith(b":"):
            start = raw.rfind(b"\n", 0, match.end() - 1) + 1
            if start and b":" not in raw[start : match.end() - 1]:
                return "there is a space before a colon, or no header name"
        elif found[-1:] in b" \t":
            return "a header is folded over two lines"
        elif found in (b"\r", b"\n"):
            return "lines end with CR LF"
        else:
            return "there is a control character in the head"
    return ""


def _checked(seen: _Seen, parser: Any, is_old: bool, limits: Limits) -> Head:
    if len(seen.url) > limits.url_bytes:
        raise RequestError(Kind.URI_TOO_LONG, f"the URL is longer than {limits.url_bytes} bytes")
    headers: dict[bytes, bytes] = {}
    for name, value in seen.headers:
        if name in headers:
            if name in _ONCE:
                raise bad(f"the header {name.decode('latin-1')} is there twice")
            if name in _LISTS:
                value = headers[name] + b", " + value
        headers[name] = value
    path, authority = _target(seen.url, parser)
    host = headers.get(b"host")
    if host is None and not is_old:
        raise bad("HTTP/1.1 needs a Host header")
    if not _HOST.fullmatch(host or b"") or not _HOST.fullmatch(authority.encode("latin-1")):
        raise bad("the Host must be a name or address, and a port if need be")
    return Head(
        parser.get_method().decode("latin-1"),
        path,
        authority or ("" if host is None else host.decode("latin-1")),
        headers,
        is_old,
        _keeps_alive(headers.get(b"connection"), is_old),
        _length(headers, is_old),
        _expects(headers, is_old),
        seen.url.partition(b"?")[2].decode("latin-1"),
        _request_id(headers.get(b"x-request-id")),
    )


def _target(url: bytes, parser: Any) -> tuple[str, str]:
    """The path, and the host if the target names one (absolute form)."""
    if url.startswith(b"/"):
        return url.partition(b"?")[0].decode("latin-1"), ""
    scheme, colon, rest = url.partition(b"://")
    if colon and scheme.lower() in (b"http", b"https"):
        authority, slash, path = rest.partition(b"/")
        if not authority or b"@" in authority or b"?" in authority or b"#" in authority:
            raise bad("the request target names no host")
        return (slash + path).partition(b"?")[0].decode("latin-1") or "/", authority.decode(
            "latin-1"
        )
    if url == b"*" and parser.get_method() == b"OPTIONS":
        return "*", ""
    raise bad("the request target is neither a path nor a URL")


def _keeps_alive(connection: bytes | None, is_old: bool) -> bool:
    if connection is None:
        return not is_old
    words = [word.strip() for word in connection.lower().split(b",")]
    return b"close" not in words and (not is_old or b"keep-alive" in words)


def _length(headers: dict[bytes, bytes], is_old: bool) -> int | None:
    """How long the body is; None if it is chunked."""
    coding, length = headers.get(b"transfer-encoding"), headers.get(b"content-length")
    if coding is not None:
        if length is not None:
            raise bad("Content-Length and Transfer-Encoding exclude each other")
        if is_old or coding.lower() != b"chunked":
            raise bad("Transfer-Encoding must be chunked, of HTTP/1.1")
        return None
    if length is None:
        return 0
    if not _NUMBER.fullmatch(length):
        raise bad("Content-Length must be digits")
    return int(length)


def _request_id(value: bytes | None) -> bytes | None:
    return value if value is not None and _ID.fullmatch(value) else None


def _expects(headers: dict[bytes, bytes], is_old: bool) -> bool:
    expected = headers.get(b"expect")
    if expected is None or is_old:
        return False
    if expected.lower() != b"100-continue":
        raise RequestError(Kind.EXPECTATION, "only Expect: 100-continue is understood")
    return True
