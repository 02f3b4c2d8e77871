from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.grpc_served import FakeService
from support.served import port_of

from mindspore_lite.bench import compare
from mindspore_lite.cli.demo import DIGITS_MODEL
from mindspore_lite.errors import QueueFullError
from mindspore_lite.server.models import Models
from mindspore_lite.server.server import Server

Run = Callable[..., Any]
SHORT = ("--duration", 0.05, "--warmup", 0)
TOKEN = "a-token-of-the-tests"


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "SETTLE_S", 0.0)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server([DIGITS_MODEL], http_port=0) as found:
        yield found


@pytest.fixture(params=["http", "grpc"])
def url(request: pytest.FixtureRequest, server: Server) -> str:
    return f"{request.param}://127.0.0.1:{getattr(server, f'{request.param}_port')}"


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ([], "there is nothing to measure, wanted a MODEL file or --url URL"),
        (["--url", "localhost"], "wanted http://HOST:PORT or grpc://HOST:PORT"),
        (["--url", "http://h:1", "--tune"], "leave --url out"),
        (
            ["--url", "http://h:1", "--workers", "2", "--target", "gpu"],
            "--workers, --target is for",
        ),
        (["--url", "http://h:1", "--compare", "openvino"], "--compare is for a MODEL"),
        ([DIGITS_MODEL, "--model", "x"], "--model goes with --url"),
        ([DIGITS_MODEL, "--token-file", "x"], "--token-file goes with --url"),
    ],
)
def test_flags_that_do_not_go_together_are_one_line(
    mslite: Run, flags: list[object], words: str
) -> None:
    done = mslite("bench", *flags)
    assert (done.code, done.out) == (2, "")
    assert words in done.err
    assert done.err.count("\n") == 1


def test_every_load_is_a_row_and_everything_is_in_the_files(
    mslite: Run, url: str, tmp_path: Path
) -> None:
    figures, report = tmp_path / "bench.json", tmp_path / "bench.html"
    loads = ("--clients", "1,2", "--rate", 100, "--model", "digits")
    done = mslite("bench", "--url", url, *loads, *SHORT, "--json", figures, "--html", report)
    assert (done.code, done.err) == (0, "")
    assert f"digits of {url}\n" in done.out
    assert "input x is open; taking [1, 1, 8, 8]" in done.out
    side = url[:4]
    assert re.search(rf"{side} +2 clients +\d+\.\d +\d", done.out)
    assert re.search(rf"{side} +100 /s +\d+\.\d +\d", done.out)
    found = json.loads(figures.read_text())
    port = {"name": "x", "dtype": "float32", "shape": [1, 1, 8, 8]}
    assert found["model"] == {"file": "digits", "inputs": [port]}
    assert found["settings"]["url"] == url
    assert [(run["side"], run["errors"], run["refused"]) for run in found["runs"]] == [
        (side, 0, 0)
    ] * 3
    assert f"{side} answers" in report.read_text()


def test_inputs_may_come_from_files(mslite: Run, url: str, tmp_path: Path) -> None:
    figures = tmp_path / "bench.json"
    np.save(tmp_path / "x.npy", np.zeros((3, 1, 8, 8), np.float32))
    np.zeros(64, np.float32).tofile(tmp_path / "x.bin")
    base = ("bench", "--url", url, "--model", "digits", "--clients", 1, *SHORT, "--json", figures)
    for name, shape in (("x.npy", [3, 1, 8, 8]), ("x.bin", [1, 1, 8, 8])):
        assert mslite(*base, "--input", f"x={tmp_path / name}").code == 0
        assert json.loads(figures.read_text())["model"]["inputs"][0]["shape"] == shape


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--model", "other"], "has no model 'other'"),
        (["--shape", "x=1,1,9"], "unexpected shape for input 'x' of model 'digits'"),
        (["--shape", "x=0,1,8,8"], "every dim must be 1 or more"),
        (["--shape", "x=99999999999,1,8,8"], "has no room in memory; give a smaller --shape"),
        (["--shape", "y=1"], "the model has no input ['y']"),
        (["--input", "x=double.npy"], "has float64, input 'x' wants float32"),
        (["--input", "x=few.bin"], "has 3 values, input 'x' of shape [1, 1, 8, 8] wants 64"),
        (["--input", "x=nowhere.npy"], "there is no file"),
        (["--token-file", "nowhere"], "nowhere"),
    ],
)
def test_what_cannot_be_measured_is_one_line_and_exit_code_1(
    mslite: Run,
    url: str,
    flags: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("double.npy", np.zeros((1, 1, 8, 8)))
    np.zeros(3, np.float32).tofile("few.bin")
    named = () if "--model" in flags else ("--model", "digits")
    done = mslite("bench", "--url", url, *named, *flags, *SHORT)
    assert done.code == 1
    assert words in done.err
    assert done.err.count("\n") == 1


def test_a_token_opens_a_server_that_wants_one(mslite: Run, tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text(f"# of the tests\n{TOKEN}\n")
    with Server([DIGITS_MODEL], http_port=0, tokens=[TOKEN]) as server:
        for scheme, port in (("http", server.http_port), ("grpc", server.grpc_port)):
            base = ("bench", "--url", f"{scheme}://127.0.0.1:{port}", "--model", "digits")
            refused = mslite(*base)
            assert refused.code == 1
            assert "wants a token" in refused.err
            assert TOKEN not in refused.err
            done = mslite(*base, "--clients", 1, *SHORT, "--token-file", file)
            assert (done.code, done.err) == (0, "")


def test_requests_for_which_there_is_no_room_are_counted_apart(mslite: Run, tmp_path: Path) -> None:
    calls = iter(range(10**6))

    def every_other(inputs: list[np.ndarray], stop: object) -> list[np.ndarray]:
        if next(calls) % 2:
            raise QueueFullError("1000 requests are waiting")
        return inputs[:1]

    figures = tmp_path / "bench.json"
    models = Models()
    models.load("m", "1", lambda: FakeService(every_other))
    with port_of(models) as port:
        done = mslite(
            *("bench", "--url", f"http://127.0.0.1:{port.number}", "--clients", 1, *SHORT),
            *("--json", figures, "--html", tmp_path / "bench.html"),
        )
    models.close(None)
    assert done.code == 0
    (run,) = json.loads(figures.read_text())["runs"]
    assert run["requests"] and run["refused"] == run["errors"] > 0
    words = rf"http, 1 client: {run['errors']} errors \({run['refused']} of them refused for lack"
    assert re.search(words, done.out)
    assert "of them refused for lack of room" in (tmp_path / "bench.html").read_text()


def test_a_server_that_refuses_all_is_a_failure(mslite: Run) -> None:
    def full(inputs: list[np.ndarray], stop: object) -> list[np.ndarray]:
        raise QueueFullError("1000 requests are waiting")

    models = Models()
    models.load("m", "1", lambda: FakeService(full))
    with port_of(models) as port:
        done = mslite("bench", "--url", f"http://127.0.0.1:{port.number}", "--clients", 1, *SHORT)
    models.close(None)
    assert done.code == 1
    assert "no request was answered" in done.err
    assert "Exceeds maximum queue size" in done.out


def test_a_model_and_a_server_take_turns(mslite: Run, url: str, tmp_path: Path) -> None:
    figures = tmp_path / "bench.json"
    done = mslite(
        *("bench", DIGITS_MODEL, "--url", url, "--clients", 2, *SHORT, "--rounds", 2),
        *("--json", figures, "--html", tmp_path / "bench.html"),
    )
    assert (done.code, done.err) == (0, "")
    side = url[:4]
    assert re.search(rf"mslite and {side}, 2 clients: \d+\.\d\d \(.*\) throughput, ours", done.out)
    found = json.loads(figures.read_text())
    assert [run["side"] for run in found["runs"]] == ["mslite", side]
    assert found["settings"]["url"] == url
    assert found["settings"]["engine"] == "onnxruntime"


def test_another_model_on_the_server_is_not_compared(mslite: Run, tmp_path: Path) -> None:
    models = Models()
    models.load("digits", "1", lambda: FakeService(lambda inputs, stop: inputs[:1]))
    with port_of(models) as port:
        done = mslite("bench", DIGITS_MODEL, "--url", f"http://127.0.0.1:{port.number}", *SHORT)
    models.close(None)
    assert done.code == 1
    assert "unexpected shape for input 'x' of model 'digits': got [1, 1, 8, 8]" in done.err
