"""The table of routes: which path and method does what, and what a caller needs for it.

A path is compared segment by segment, after it was decoded once; nothing is normalised, so that
another spelling is another path, and leads nowhere. Every route x method is in the table, or is
refused. The OpenAPI document is made from the same table (openapi.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from mindspore_lite.server.access import Need
from mindspore_lite.server.core import Core
from mindspore_lite.server.errors import Kind, RequestError
from mindspore_lite.server.http.exchange import Exchange
from mindspore_lite.server.http.head import Head
from mindspore_lite.server.http.reply import Reply

Handler = Callable[[Exchange], Reply | None]

_BAD_SEGMENT = re.compile(r"[\x00-\x1f\x7f/\\]|^\.{0,2}$")
_VERSION = re.compile(r"[0-9]{1,18}", re.ASCII)
SMALL_BODY = 64 * 1024  # where a body means nothing it is ignored, up to this; guess
_KNOWN_PATHS = 1024  # that are remembered


@dataclass(frozen=True, eq=False)
class Endpoint:
    """What one method of one path does.

    Attributes:
        handler: Answers it; None as its result means that the answer comes later.
        need: What a caller must show.
        summary: For the OpenAPI document.
        takes: The name of the schema of its body; "" if it has none.
        may_be_empty: Whether the body may be left out.
        gives: The name of the schema of its answer.
        fails: With which statuses it may fail, beyond those of every endpoint.
        content: The type of its answer, if that is not JSON.
        most_body: Bytes that a body may have; None is the server's limit.
        query: What may stand behind the path, with the kinds of values.
        sink: Its body goes to a file; this says how many bytes it may have, or refuses it.
    """

    handler: Handler
    need: Need = Need.USE
    summary: str = ""
    takes: str = ""
    may_be_empty: bool = False
    gives: str = ""
    fails: tuple[int, ...] = ()
    content: str = ""
    most_body: int | None = SMALL_BODY
    query: Mapping[str, Any] = field(default_factory=dict)
    sink: Callable[[Core, Head, Mapping[str, str]], int] | None = None


@dataclass(frozen=True, eq=False)
class Route:
    """A path, with {names} for segments that may be anything, and its methods."""

    path: str
    methods: Mapping[str, Endpoint]

    @property
    def allow(self) -> bytes:
        """What the header Allow says."""
        names = [*self.methods, *(["HEAD"] if "GET" in self.methods else [])]
        return ", ".join(sorted(names)).encode()


class WrongMethodError(RequestError):
    """The path is known, the method is not one of its own."""

    def __init__(self, allow: bytes) -> None:
        super().__init__(Kind.WRONG_METHOD, "Method Not Allowed")
        self.allow = allow


@dataclass
class _Node:
    route: Route | None = None
    fixed: dict[str, _Node] = field(default_factory=dict)
    named: tuple[str, _Node] | None = None


class Routes:
    """Finds the route of a path."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self.all = tuple(routes)
        self._root = _Node()
        self._known: dict[str, tuple[Route, dict[str, str]]] = {}
        for route in self.all:
            self._add(route)

    def find(self, path: str) -> tuple[Route, dict[str, str]] | None:
        """The route of a path as it was sent, and the values of its names; None without one."""
        known = self._known.get(path)
        if known is not None:
            return known
        values: dict[str, str] = {}
        node: _Node | None = self._root
        for segment in path.split("/")[1:]:
            assert node is not None
            node = self._child(node, segment, values)
            if node is None:
                return None
        if node is None or node.route is None or not path.startswith("/"):
            return None
        if len(self._known) >= _KNOWN_PATHS:
            self._known.clear()
        self._known[path] = node.route, values
        return node.route, values

    def _child(self, node: _Node, segment: str, values: dict[str, str]) -> _Node | None:
        fixed = node.fixed.get(segment)
        if fixed is not None or node.named is None:
            return fixed
        name, child = node.named
        try:
            value = unquote(segment, errors="strict") if "%" in segment else segment
        except UnicodeDecodeError:
            return None
        if _BAD_SEGMENT.search(value) or (name == "version" and not _VERSION.fullmatch(value)):
            return None
        values[name] = value
        return child

    def _add(self, route: Route) -> None:
        node = self._root
        for segment in route.path.split("/")[1:]:
            if segment.startswith("{"):
                if node.named is None:
                    node.named = (segment[1:-1], _Node())
                assert node.named[0] == segment[1:-1], f"two names for one segment of {route.path}"
                node = node.named[1]
            else:
                node = node.fixed.setdefault(segment, _Node())
        assert node.route is None, f"{route.path} is there twice"
        node.route = route


def endpoint_of(route: Route, method: str) -> Endpoint:
    """What a method of a route does; HEAD is a GET whose body is not sent.

    Raises:
        WrongMethodError: There is no such method.
    """
    found = route.methods.get("GET" if method == "HEAD" else method)
    if found is None:
        raise WrongMethodError(route.allow)
    return found


def not_found() -> RequestError:
    """The error for a path that leads nowhere."""
    return RequestError(Kind.NOT_FOUND, "Not Found")


def versioned(path: str, methods: Mapping[str, Any]) -> list[Route]:
    """A route below /v2/models/{model}, with and without a version in the path."""
    return [
        Route(f"/v2/models/{{model}}{path}", methods),
        Route(f"/v2/models/{{model}}/versions/{{version}}{path}", methods),
    ]
