"""Every route x method x spelling x token: what is not in the table is refused."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from support.served import HttpPort, Wire, port_of

from mindspore_lite.server.access import Gate, Need
from mindspore_lite.server.http.endpoints import ROUTES
from mindspore_lite.server.http.routes import Endpoint, Route, Routes
from mindspore_lite.server.models import Models

CLIENT, ADMIN = "client-token-0123456789", "admin-token-0123456789"
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE")
SERVED = (200, 400, 501)  # the last: shared memory is off
TOKENS = {"none": None, "wrong": "x" * 20, "client": CLIENT, "admin": ADMIN}


@pytest.fixture(scope="module")
def guarded(models: Models) -> Iterator[HttpPort]:
    with port_of(models, gate=Gate([CLIENT], [ADMIN])) as found:
        yield found


def real(route: Route) -> str:
    return route.path.replace("{model}", "id_fp32").replace("{version}", "3")


def spellings(path: str) -> dict[str, str]:
    return {
        "slash at the end": f"{path}/",
        "two slashes": f"/{path}",
        "inner slashes": path.replace("/v2", "/v2/", 1),
        "dot": f"/.{path}",
        "dots": f"/x/..{path}",
        "encoded dots": f"/x/%2e%2e{path}",
        "encoded letter": path.replace("/v2", "/%762", 1),
        "encoded slash": path.replace("/v2/", "/v2%2F", 1),
        "capitals": path.upper(),
        "backslash": path.replace("/", "\\"),
        "semicolon": f"{path};a=b",
        "NUL": f"{path}%00",
    }


def sent(path: str, method: str, token: str | None, version: str = "1.1") -> bytes:
    lines = [f"{method} {path} HTTP/{version}", "Host: localhost", "Content-Length: 2"]
    if token:
        lines.append(f"Authorization: Bearer {token}")
    return "\r\n".join([*lines, "", "{}"]).encode()


def is_endless(route: Route) -> bool:
    return any(one.content == "text/event-stream" for one in route.methods.values())


def asked(wire: Wire, path: str, method: str, token: str | None) -> int:
    return wire.ask(sent(path, method, token), has_body=method != "HEAD").status


@pytest.mark.parametrize("route", ROUTES.all, ids=lambda route: route.path)
def test_a_method_needs_its_token(guarded: HttpPort, route: Route) -> None:
    wire = Wire(guarded)
    with ExitStack() as open_ones:
        open_ones.callback(wire.close)
        for method, (name, token) in itertools.product(METHODS, TOKENS.items()):
            endpoint = route.methods.get("GET" if method == "HEAD" else method)
            status = asked(wire, real(route), method, token)
            if is_endless(route):  # nothing can be asked behind it
                wire = open_ones.enter_context(Wire(guarded))
            need = endpoint.need if endpoint is not None else Need.USE
            known = name in ("client", "admin")
            if need is not Need.OPEN and not known:
                assert status == 401, (method, name)
            elif endpoint is None:
                assert status == 405, (method, name)
            elif need is Need.ADMIN and name == "client":
                assert status == 403, (method, name)
            else:
                served = {*SERVED, 503} if need is Need.ADMIN else SERVED
                assert status in served, (method, name)


@pytest.mark.parametrize("route", ROUTES.all, ids=lambda route: route.path)
def test_other_spellings_lead_nowhere(guarded: HttpPort, route: Route) -> None:
    paths = {real(one) for one in ROUTES.all}
    with Wire(guarded) as wire:
        for name, path in spellings(real(route)).items():
            if path in paths or path.startswith("\\"):
                continue
            for method in ("GET", "POST"):
                assert asked(wire, path, method, None) == 401, (name, method)
                assert asked(wire, path, method, CLIENT) in (404, 405), (name, method)


@pytest.mark.parametrize("route", ROUTES.all, ids=lambda route: route.path)
def test_the_form_of_the_request_changes_nothing(guarded: HttpPort, route: Route) -> None:
    """Absolute targets and HTTP/1.0 pass the same gate."""
    method = next(iter(route.methods))
    need = route.methods[method].need
    is_open = need is Need.OPEN
    served = {403} if need is Need.ADMIN else SERVED
    for path, version in ((f"http://localhost{real(route)}", "1.1"), (real(route), "1.0")):
        for token in (None, CLIENT):
            with Wire(guarded) as wire:
                status = wire.ask(sent(path, method, token, version)).status
                assert status == 401 if not (token or is_open) else status in served


@pytest.mark.parametrize(
    "path",
    [
        "/v2/models/..", "/v2/models/%2e%2e", "/v2/models/%2F", "/v2/models/a%2Fb",
        "/v2/models/%5c", "/v2/models/%00", "/v2/models/%0a", "/v2/models/%ff", "/v2/models/",
        "/v2/models/%", "/",
        "/v2/models/id_fp32/versions/%33x", "/v2/models/id_fp32/versions/-1/ready", "*",
        "/v2/models/id_fp32/versions/3/versions/3",
    ],
)  # fmt: skip
def test_odd_paths_are_not_found(wire: Wire, path: str) -> None:
    assert wire.ask(sent(path, "OPTIONS" if path == "*" else "GET", None)).status == 404


def test_names_are_decoded_once(wire: Wire) -> None:
    assert asked(wire, "/v2/models/id%5Ffp32", "HEAD", None) == 200
    assert asked(wire, "/v2/models/id%255Ffp32", "GET", None) == 404


def test_a_wrong_method_says_which_are_right(wire: Wire) -> None:
    reply = wire.ask(sent("/v2/models/id_fp32/infer", "GET", None))
    assert (reply.status, reply.headers["allow"]) == (405, "POST")
    assert wire.ask(sent("/v2", "POST", None)).headers["allow"] == "GET, HEAD"


def test_a_route_is_in_the_table_once() -> None:
    route = Route("/a", {"GET": Endpoint(lambda exchange: None)})
    with pytest.raises(AssertionError, match="twice"):
        Routes([route, route])
