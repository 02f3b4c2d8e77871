from __future__ import annotations

import io
import json
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.fake_numbers import model, numbers
from support.served import FakeService, Wire, fake_port, post

from mindspore_lite.cli import status as status_module
from mindspore_lite.cli.demo import DIGITS_MODEL
from mindspore_lite.cli.status_text import lines, problems, screen
from mindspore_lite.errors import WireError
from mindspore_lite.server.dashboard.history import History
from mindspore_lite.server.server import Server

Run = Callable[..., Any]
TOKEN = "a-token-of-the-tests"
DIGIT = {"name": "x", "shape": [1, 1, 8, 8], "datatype": "FP32", "data": [0.5] * 64}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server([DIGITS_MODEL], http_port=0, tokens=[TOKEN]) as found:
        yield found


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "tokens"
    path.write_text(TOKEN)
    return path


def shown(*models: dict[str, Any], **more: Any) -> dict[str, Any]:
    return History().described(numbers(*models, **more))


def test_a_pipe_gets_one_look_in_aligned_columns(
    mslite: Run, server: Server, token_file: Path
) -> None:
    with Wire(server.http_port) as wire:
        body = {"inputs": [DIGIT]}
        wire.ask(post("/v2/models/digits/infer", body, f"Authorization: Bearer {TOKEN}"))
    url = f"http://127.0.0.1:{server.http_port}"
    done = mslite("status", url, "--token-file", token_file)
    assert (done.code, done.err) == (0, "")
    head, memory, _, names, row, *_ = done.out.splitlines()
    assert re.fullmatch(rf"{url}  ready  up \d+ s  mslite \S+", head)
    assert re.match(r"memory [\d.]+ [MG]iB \([\d.]+ \w+ shared weights\)  connections \d", memory)
    assert names.split()[:4] == ["MODEL", "VERSION", "STATE", "REQ/S"]
    assert row.split()[:3] == ["digits", "1", "ready"]
    assert row.index("ready") == names.index("STATE")
    assert "slowest requests:\n" in done.out


def test_json_is_what_the_server_counts(mslite: Run, server: Server, token_file: Path) -> None:
    done = mslite("status", f"localhost:{server.http_port}", "--token-file", token_file, "--json")
    found = json.loads(done.out)
    assert (done.code, found["ready"], found["models"][0]["name"]) == (0, True, "digits")
    assert {"rate", "errors", "p50_ms", "p99_ms"} <= found["models"][0]["recent"].keys()


def test_a_server_that_is_not_ready_is_exit_code_1(mslite: Run) -> None:
    service = FakeService()
    with fake_port(service) as port:
        service.is_up = False
        done = mslite("status", f"127.0.0.1:{port.number}")
    assert done.code == 1
    assert "NOT READY" in done.out and "! not ready: " in done.out


def test_watching_a_pipe_prints_again_and_again(
    mslite: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = []

    def wait(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(status_module.time, "sleep", wait)
    with fake_port(FakeService()) as port:
        url = f"127.0.0.1:{port.number}"
        done = mslite("status", url, "--watch", "--every-s", 5, "--json")
    assert done.code == 130
    assert [json.loads(line)["ready"] for line in done.out.splitlines()] == [True] * 3
    assert looks == [5.0] * 3


def test_a_terminal_is_kept_up_to_date(mslite: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also while the server cannot be reached, and afterwards."""
    service, looks = FakeService(), []
    with fake_port(service) as port:
        asked = status_module.StatusClient.numbers

        def numbers_of(client: Any) -> Any:
            if len(looks) == 2:
                raise WireError("it is gone")
            return asked(client)

        def wait(seconds: float) -> None:
            looks.append(seconds)
            service.is_up = False
            if len(looks) == 4:
                raise KeyboardInterrupt

        monkeypatch.setattr(status_module.StatusClient, "numbers", numbers_of)
        monkeypatch.setattr(status_module.time, "sleep", wait)
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        for name, value in {"COLUMNS": "150", "LINES": "40", "TERM": "xterm"}.items():
            monkeypatch.setenv(name, value)
        done = mslite("status", f"127.0.0.1:{port.number}")
    assert done.code == 130
    shows = re.findall(r"  ready  up|NOT READY|NO CONTACT", done.out)
    assert shows == ["  ready  up", "NOT READY", "NO CONTACT", "NOT READY"]


def test_a_server_with_tls(mslite: Run, tmp_path: Path) -> None:
    certificate, key = tmp_path / "own.pem", tmp_path / "own.key"
    command = [
        "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
        "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
        "-keyout", str(key), "-out", str(certificate),
    ]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    tls = {"tls_cert": certificate, "tls_key": key}
    with Server([DIGITS_MODEL], http_port=0, grpc=False, **tls) as server:
        url = f"https://localhost:{server.http_port}"
        assert mslite("status", url, "--ca-file", certificate).code == 0
        done = mslite("status", url)
        assert done.code == 1
        assert "give --ca-file FILE" in done.err
        assert mslite("status", f"http://localhost:{server.http_port}").code == 1


@pytest.mark.parametrize(
    "url",
    ["", "ftp://h:1", "http://", "http://h:99999", "http://a@h:1", "http://h:1/?x", "http://ä:1"],
)
def test_an_address_that_makes_no_sense_is_one_line(mslite: Run, url: str) -> None:
    done = mslite("status", url)
    assert done.code == 1
    assert "wanted an address such as http://localhost:8000" in done.err
    assert done.err.count("\n") == 1


def test_the_port_of_grpc_is_named(mslite: Run, server: Server) -> None:
    done = mslite("status", "grpc://localhost:8001")
    assert "on the port of HTTP" in done.err
    done = mslite("status", f"127.0.0.1:{server.grpc_port}")
    assert done.code == 1
    assert "is this the port of gRPC?" in done.err


def test_a_missing_token_is_named(mslite: Run, server: Server) -> None:
    done = mslite("status", f"127.0.0.1:{server.http_port}")
    assert done.code == 1
    assert "wants a token, give --token-file FILE" in done.err


def test_nobody_there_is_one_line(mslite: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    done = mslite("status", f"127.0.0.1:{port}")
    assert done.code == 1
    assert f"there is no server at http://127.0.0.1:{port}" in done.err
    assert done.err.count("\n") == 1


@contextmanager
def answering(*answers: bytes) -> Iterator[int]:
    """A server that gives these answers, each on a connection of its own."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            for answer in answers:
                client, _ = listening.accept()
                with client:
                    client.recv(65_536)
                    client.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listening.getsockname()[1]
        thread.join(30)


def answer(body: object, status: int = 200) -> bytes:
    data = json.dumps(body).encode()
    return b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%b" % (status, len(data), data)


@pytest.mark.parametrize("first", [answer({"error": "no"}, 404), answer([]), answer({"models": 1})])
def test_another_server_is_named(mslite: Run, first: bytes) -> None:
    with answering(first, answer({"name": "triton\x1b[2J", "version": "2.60"})) as port:
        done = mslite("status", f"127.0.0.1:{port}")
    assert done.code == 1
    assert "is no mslite server that has numbers; it is triton" in done.err
    assert "\x1b" not in done.err


def test_a_redirect_is_not_followed(mslite: Run, token_file: Path) -> None:
    moved = b"HTTP/1.1 302 X\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 0\r\n\r\n"
    with answering(moved) as port:
        done = mslite("status", f"127.0.0.1:{port}", "--token-file", token_file)
    assert "answers 302" in done.err


def test_what_is_wrong_is_said() -> None:
    found = shown(
        model(slots=["stuck", "idle"], queued=60),
        model("b", state="UNAVAILABLE", reason="it failed its probe"),
        ready=False,
        reason="not ready: b version 1",
    )
    found["models"][0]["recent"]["errors"] = {"deadline": 3, "queue_full": 1200}
    assert problems(found) == [
        "! not ready: b version 1",
        "! digits version 1 has 1 stuck of 2 slots",
        "! the queue of digits version 1 is nearly full: 60 of 64",
        "! digits version 1: 1,203 failed in the last minute (1,200 queue full, 3 deadline passed)",
        "! b version 1 is unavailable: it failed its probe",
    ]


def test_what_clients_sent_cannot_rule_the_terminal() -> None:
    slow = {
        "time": 1.0, "model": "digits", "version": "1", "id": "\x1b]0;x\x07[red]", "ms": 12.0,
        "status": 504, "phases_ms": {"queue": 9.0, "run": 3.0},
    }  # fmt: skip
    text = "\n".join(lines("http://h:1", shown(model(), slowest=[slow])))
    assert "\x1b" not in text
    assert r"12.0 ms  504  digits version 1  queue 75%, run 25%  \x1b]0;x\x07[red]" in text


def test_a_terminal_gets_a_table() -> None:
    from rich.console import Console

    console = Console(width=150, record=True, file=io.StringIO())
    batches = {"1": 1, "4": 3}
    found = shown(
        model("[bold]net", batches=batches, weights_version=2, weights_updated=1_789_999_900.0)
    )
    console.print(screen("http://h:1", found, "gone"))
    text = console.export_text()
    assert "[bold]net" in text
    assert "update 2, 1 min 40 s ago" in text
    assert "NO CONTACT, these numbers are old: gone" in text
    assert re.search(r"1/2 +│ +3\.2 ", text)
