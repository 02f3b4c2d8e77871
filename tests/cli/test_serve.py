"""`mslite serve` as a process, used by curl and by Triton's clients."""

from __future__ import annotations

import asyncio
import gzip
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.http as triton
import tritonclient.http.aio as triton_aio
from support.devices import has_ended, worker_pids
from support.fake_engine import wait_for
from support.repositories import ADMIN, AUTHORISED, answer, infer, scaled
from support.repositories import version as put_version
from support.served import Wire, get, post

from mindspore_lite.cli.demo import DIGITS_MODEL, samples

LIMIT_S = 120
NEEDS_CURL = pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl here")
OUTPUT = "Default/Softmax-op0"


@contextmanager
def served(*arguments: str, word: str = "ready") -> Iterator[tuple[subprocess.Popen[str], int]]:
    command = [sys.executable, "-m", "mindspore_lite", "serve", *arguments, "--http-port", "0"]
    pipe = subprocess.PIPE
    child = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True)
    try:
        assert child.stdout is not None
        line = child.stdout.readline()
        assert line.startswith(f"{word}: "), child.communicate(timeout=LIMIT_S)
        yield child, int(line.rpartition(":")[2])
    finally:
        if child.poll() is None:
            child.kill()
        child.communicate(timeout=LIMIT_S)


@pytest.fixture(scope="module")
def demo() -> Iterator[int]:
    with served("--demo") as (_, port):
        yield port


def right(answer: np.ndarray | None) -> bool:
    assert answer is not None
    return bool((answer.argmax(1) == samples()[1][: len(answer)]).all())


def tensor(rows: int = 4, **more: Any) -> list[triton.InferInput]:
    images = samples()[0][:rows]
    found = triton.InferInput("x", list(images.shape), "FP32")
    found.set_data_from_numpy(images, **more)
    return [found]


# --- Triton's clients ---


def test_the_http_client_of_triton(demo: int) -> None:
    with triton.InferenceServerClient(f"127.0.0.1:{demo}") as client:
        assert client.is_server_live() and client.is_server_ready()
        assert client.is_model_ready("digits") and client.is_model_ready("digits", "1")
        assert not client.is_model_ready("x")
        assert client.get_server_metadata()["name"] == "mslite"
        assert client.get_model_metadata("digits")["outputs"][0]["name"] == OUTPUT
        assert right(client.infer("digits", tensor()).as_numpy(OUTPUT))
        assert right(client.infer("digits", tensor(binary_data=False)).as_numpy(OUTPUT))
        result = client.infer("digits", tensor(), request_id="7", priority=1, timeout=60_000_000)
        assert result.get_response()["id"] == "7"
        for binary in (True, False):
            wanted = [triton.InferRequestedOutput(OUTPUT, binary_data=binary)]
            assert right(client.infer("digits", tensor(), outputs=wanted).as_numpy(OUTPUT))
            classes = [triton.InferRequestedOutput(OUTPUT, binary_data=binary, class_count=3)]
            found = client.infer("digits", tensor(1), outputs=classes).as_numpy(OUTPUT)
            assert found is not None and found.shape == (3,)
        for coding in ("gzip", "deflate"):
            result = client.infer(
                "digits",
                tensor(),
                request_compression_algorithm=coding,
                response_compression_algorithm=coding,
            )
            assert right(result.as_numpy(OUTPUT))
        pending = [client.async_infer("digits", tensor(n + 1)) for n in range(4)]
        assert all(right(one.get_result().as_numpy(OUTPUT)) for one in pending)
        with pytest.raises(triton.InferenceServerException, match="unknown model 'x'") as info:
            client.infer("x", tensor())
        assert info.value.status() == "404"
        with pytest.raises(triton.InferenceServerException, match="unexpected shape"):
            wrong = triton.InferInput("x", [2, 32], "FP32")
            wrong.set_data_from_numpy(np.zeros((2, 32), np.float32))
            client.infer("digits", [wrong])


def test_the_asynchronous_client_of_triton(demo: int) -> None:
    async def use() -> None:
        async with triton_aio.InferenceServerClient(f"127.0.0.1:{demo}") as client:
            assert await client.is_server_live() and await client.is_server_ready()
            assert await client.is_model_ready("digits")
            assert (await client.get_server_metadata())["name"] == "mslite"
            assert (await client.get_model_metadata("digits"))["name"] == "digits"
            answers = await asyncio.gather(
                *(client.infer("digits", tensor(n % 8 + 1)) for n in range(32))
            )
            assert all(right(answer.as_numpy(OUTPUT)) for answer in answers)
            with pytest.raises(triton.InferenceServerException, match="unknown model"):
                await client.infer("x", tensor())

    asyncio.run(use())


# --- curl ---


def curl(port: int, path: str, *arguments: str, data: bytes | None = None) -> bytes:
    command = ["curl", "-sS", "--fail-with-body", *arguments, f"http://127.0.0.1:{port}{path}"]
    return subprocess.run(command, input=data, capture_output=True, check=True).stdout


def asked(rows: int = 1) -> bytes:
    images = samples()[0][:rows]
    values = {"name": "x", "datatype": "FP32", "shape": images.shape, "data": images.tolist()}
    return json.dumps({"inputs": [values]}).encode()


@NEEDS_CURL
@pytest.mark.parametrize(
    "flags",
    [
        [],
        ["-H", "Transfer-Encoding: chunked"],
        ["-H", "Expect: 100-continue"],
        ["--http1.0"],
        ["--compressed"],
        ["-H", "Content-Type: application/json"],
    ],
)
def test_curl_sends_json(demo: int, flags: list[str]) -> None:
    answer = curl(demo, "/v2/models/digits/infer", "-d", "@-", *flags, data=asked())
    assert right(np.array(json.loads(answer)["outputs"][0]["data"]).reshape(-1, 10))


@NEEDS_CURL
def test_curl_sends_more_than_a_megabyte_and_expects(demo: int) -> None:
    data = asked(len(samples()[0]))
    data += b" " * (1_200_000 - len(data))
    answer = curl(demo, "/v2/models/digits/infer", "--data-binary", "@-", data=data)
    assert json.loads(answer)["outputs"][0]["shape"] == [len(samples()[0]), 10]


@NEEDS_CURL
def test_curl_sends_bytes_and_gzip(demo: int) -> None:
    raw = samples()[0][:2].tobytes()
    length = ["-H", "Inference-Header-Content-Length: 0"]
    path = "/v2/models/digits/infer"
    plain = curl(demo, path, "--data-binary", "@-", *length, data=raw)
    packed = [*length, "-H", "Content-Encoding: gzip"]
    assert curl(demo, path, "--data-binary", "@-", *packed, data=gzip.compress(raw)) == plain
    assert right(np.frombuffer(plain[-80:], np.float32).reshape(2, 10))


# --- the process ---


def test_sigterm_drains_and_ends_well() -> None:
    with served("--demo", "--access-log", "--grace-s", "60") as (child, port):
        answered: list[int] = []
        begun = threading.Barrier(5)  # all are connected, and have had an answer

        def load() -> None:
            with Wire(port) as wire:
                for number in itertools.count():
                    try:
                        reply = wire.ask(post("/v2/models/digits/infer", asked()))
                    except (ConnectionError, EOFError):
                        return  # for a second nothing was sent; what was taken is in the log
                    answered.append(reply.status)
                    if reply.headers.get("connection") == "close":
                        return
                    if number == 0:
                        begun.wait(LIMIT_S)

        clients = [threading.Thread(target=load) for _ in range(4)]
        for client in clients:
            client.start()
        begun.wait(LIMIT_S)
        child.send_signal(signal.SIGTERM)
        for client in clients:
            client.join(LIMIT_S)
        assert child.wait(LIMIT_S) == 0
        assert set(answered) == {200}
        assert child.stderr is not None
        lines = [json.loads(line) for line in child.stderr.read().splitlines()]
        assert len(lines) == len(answered)


def accepts(port: int) -> bool:
    try:
        Wire(port).close()
    except OSError:
        return False
    return True


def test_a_second_signal_ends_at_once() -> None:
    flags = ("--demo", "--grace-s", "600", "--limit", "body_grace_s=600")
    with served(*flags) as (child, port), Wire(port) as wire:
        wire.send(post("/v2/models/digits/infer", b"x", length=1000))  # it never comes to an end
        child.send_signal(signal.SIGTERM)
        wait_for(lambda: not accepts(port))
        child.send_signal(signal.SIGINT)
        assert child.wait(LIMIT_S) == 1


def test_sigterm_ends_a_server_that_is_still_loading() -> None:
    program = (
        "import mindspore_lite.server.loading as m, threading\n"
        "from mindspore_lite.cli.serve import Options, serve\n"
        "m.Loading.start = lambda *_: (print('loading', flush=True), threading.Event().wait())\n"
        "serve(options=Options(demo=True, http_port=0, grpc=False))\n"
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None and child.stdout.readline() == "loading\n"
            child.send_signal(signal.SIGTERM)
            assert child.wait(LIMIT_S) == 0
        finally:
            child.kill()


def test_sigterm_during_a_load_that_a_client_asked_for(tmp_path: Path) -> None:
    """The load hangs: whoever asked for it is told, and the server ends well."""
    program = (
        "import mindspore_lite.server.loading as m, threading\n"
        "from pathlib import Path\n"
        "from mindspore_lite.cli.serve import Options, serve\n"
        "m.Loading.start = lambda *_: (print('loading', flush=True), threading.Event().wait())\n"
        f"tokens = Path({str(tmp_path)!r}) / 'tokens'\n"
        "options = Options(http_port=0, grpc=False, control='explicit', admin_token_file=tokens)\n"
        f"serve({str(tmp_path)!r}, options=options)\n"
    )
    (tmp_path / "tokens").write_text(ADMIN)
    put_version(tmp_path, "m", 1, 10)
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            port = int(child.stdout.readline().rpartition(":")[2])
            with Wire(port) as wire, Wire(port) as other:
                wire.send(post("/v2/repository/models/m/load", b"", AUTHORISED))
                assert child.stdout.readline() == "loading\n"
                assert other.ask(get("/v2/health/ready")).status == 200  # a load holds up nobody
                child.send_signal(signal.SIGTERM)
                assert wire.reply().status == 503
            assert child.wait(LIMIT_S) == 0
        finally:
            child.kill()


def test_models_are_built_in_a_jail_unless_that_is_switched_off(tmp_path: Path) -> None:
    """A model whose weights may change cannot be, and is refused for that reason."""
    path = scaled(tmp_path / "m.onnx", 10)
    config = tmp_path / "config.ini"
    config.write_text("[ascend_context]\nvariable_weights_list=factor\n")
    command = [sys.executable, "-m", "mindspore_lite", "serve", str(path), "--http-port", "0"]
    command += ["--config", str(config)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "mslite serve --no-sandbox" in done.stderr
    with (
        served(str(path), "--config", str(config), "--no-sandbox") as (_, port),
        Wire(port) as wire,
    ):
        assert wire.ask(get("/v2/health/ready")).status == 200


def test_a_folder_is_followed(tmp_path: Path) -> None:
    put_version(tmp_path, "m", 1, 10)
    with served(str(tmp_path), "--poll-s", "0.01") as (_, port), Wire(port) as wire:
        assert answer(wire.ask(infer())) == ("1", 10)
        put_version(tmp_path, "m", 2, 20)
        wait_for(lambda: answer(wire.ask(infer())) == ("2", 20))


def test_explicit_control_without_an_administrator_is_said(tmp_path: Path) -> None:
    put_version(tmp_path, "m", 1, 10)
    with served(str(tmp_path), "--control", "explicit", "--load-model", "m") as (child, port):
        with Wire(port) as wire:
            assert answer(wire.ask(infer())) == ("1", 10)
        child.send_signal(signal.SIGTERM)
        assert "--admin-token-file" in child.communicate(timeout=LIMIT_S)[1]
        assert child.returncode == 0


def test_triton_loads_and_unloads(tmp_path: Path) -> None:
    put_version(tmp_path, "m", 1, 10)
    (tmp_path / "tokens").write_text(ADMIN)
    flags = ("--control", "explicit", "--admin-token-file", str(tmp_path / "tokens"))
    headers = {"Authorization": f"Bearer {ADMIN}"}
    with (
        served(str(tmp_path), *flags) as (_, port),
        triton.InferenceServerClient(f"127.0.0.1:{port}") as client,
    ):
        assert client.get_model_repository_index() == [{"name": "m"}]
        client.load_model("m", headers=headers)
        assert client.is_model_ready("m")
        (row,) = client.get_model_repository_index()
        assert row == {"name": "m", "version": "1", "state": "READY"}
        with pytest.raises(triton.InferenceServerException, match="cannot be sent"):
            client.load_model("m", headers=headers, config="{}", files={"file:1/x": b"x"})
        client.unload_model("m", headers=headers)
        wait_for(lambda: client.get_model_repository_index()[0].get("reason") == "unloaded")
        assert not client.is_model_ready("m")


def test_a_server_with_a_model_that_failed_does_not_say_that_it_is_ready(tmp_path: Path) -> None:
    shutil.copy(DIGITS_MODEL, tmp_path / "digits.mindir")
    (tmp_path / "broken.onnx").write_bytes(b"no model")
    with (
        served(str(tmp_path), "--no-grpc", word="not ready") as (_, port),
        triton.InferenceServerClient(f"127.0.0.1:{port}") as client,
    ):
        assert not client.is_server_ready()
        assert right(client.infer("digits", tensor()).as_numpy(OUTPUT))


def test_names_are_made_of_files_as_in_python() -> None:
    from mindspore_lite.cli.serve import _given

    assert _given(("a/my net.v1.onnx", "b=c.onnx")) == [("", "a/my net.v1.onnx"), ("b", "c.onnx")]


def test_tokens_and_limits_and_names(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("0123456789abcdef\n")
    model = Path(__file__).parents[2] / "mindspore_lite/cli/data/digits.mindir"
    flags = ["--token-file", str(tokens), "--limit", "body_bytes=100", "--sandbox"]
    with served(f"other={model}", *flags) as (_, port), Wire(port) as wire:
        assert wire.ask(get("/v2/models")).status == 401
        token = "Authorization: Bearer 0123456789abcdef"
        assert wire.ask(get("/v2/models", token)).json == {"models": ["other"]}
        assert wire.ask(post("/v2/models/other/infer", b"x" * 101, token)).status == 413


def test_a_repository(tmp_path: Path) -> None:
    for version in ("1", "2"):
        (tmp_path / "digits" / version).mkdir(parents=True)
        shutil.copy(DIGITS_MODEL, tmp_path / "digits" / version / "model.mindir")
    (tmp_path / "digits/config.pbtxt").write_text("max_batch_size: 4 version_policy { all { } }")
    with (
        served(str(tmp_path)) as (_, port),
        triton.InferenceServerClient(f"127.0.0.1:{port}") as client,
    ):
        assert client.get_model_metadata("digits")["versions"] == ["1", "2"]
        assert client.get_model_config("digits")["max_batch_size"] == 4
        assert right(client.infer("digits", tensor(), model_version="1").as_numpy(OUTPUT))


def test_a_server_whose_model_failed_does_not_say_that_it_is_ready(tmp_path: Path) -> None:
    shutil.copy(DIGITS_MODEL, tmp_path / "digits.mindir")
    (tmp_path / "bad.onnx").write_text("no model")
    command = [sys.executable, "-m", "mindspore_lite", "serve", str(tmp_path), "--http-port=0"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as child:
        try:
            assert child.stdout is not None
            line = child.stdout.readline()
            assert line.startswith("not ready: grpc://")
            with Wire(int(line.rpartition(":")[2])) as wire:
                assert wire.ask(get("/v2/health/ready")).status == 503
                assert wire.ask(get("/v2/models/digits/ready")).status == 200
        finally:
            child.kill()


@pytest.mark.parametrize("layout", ["model.mindir", "1/model.mindir", "digits/1/model.mindir"])
def test_the_mount_of_kserve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str) -> None:
    (tmp_path / layout).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(DIGITS_MODEL, tmp_path / layout)
    with served(str(tmp_path), "--model-name", "mine") as (_, port), Wire(port) as wire:
        assert wire.ask(get("/v2/models")).json == {"models": ["mine"]}
    monkeypatch.setenv("INFERENCE_SERVICE_NAME", "svc")
    usual = "digits" if layout.startswith("digits") else "svc"
    with served(str(tmp_path)) as (_, port), Wire(port) as wire:
        assert wire.ask(get("/v2/models")).json == {"models": [usual]}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_processes_of_models_end_with_the_server(number: int) -> None:
    flags = ("--demo", "--isolation", "thread", "--isolation", "digits=process", "--retry")
    with served(*flags) as (child, port):
        (worker,) = worker_pids(child.pid)
        with Wire(port) as wire:
            for kills in (1, 0):
                reply = wire.ask(post("/v2/models/digits/infer", asked()))
                assert right(np.array(reply.json["outputs"][0]["data"]).reshape(-1, 10))
                if kills:
                    os.kill(worker, signal.SIGKILL)
                    assert has_ended(worker)
        (again,) = worker_pids(child.pid)
        assert again != worker
        child.send_signal(number)
        assert has_ended(again)
        assert child.wait(LIMIT_S) == (0 if number == signal.SIGTERM else -number)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ([], 2, "wants models, or --demo"),
        (["nowhere.onnx"], 1, "there is no model to serve at 'nowhere.onnx'; there is no"),
        (["--demo", "--tls-cert", "nope.pem"], 1, "tls_cert: cannot read 'nope.pem': No such file"),
        (["--demo", "--cache", "digits=much"], 2, "wanted NAME=BYTES"),
        (["--demo", "--cache", "x=1M"], 1, "cache names ['x'], but the models are ['digits']"),
        (["--demo", "--limit", "x=1"], 2, "no limit 'x'"),
        (["--demo", "--limit", "chunks=many"], 2, "wanted a number"),
        (["--demo", "--http-port", "-1"], 1, "non-negative"),
        (["--demo", "--host", "256.0.0.1"], 1, "the host '256.0.0.1' is not known"),
        (["--demo", "--token-file", os.devnull], 1, "wanted a plain file"),
        (["a=x", "a=y"], 2, "two models"),
        (["a.onnx", "b.onnx", "--model-name", "x"], 2, "--model-name is for one model, got 2"),
        (["--demo", "--isolation", "fork"], 1, "thread"),
        (["--demo", "--isolation", "x=process"], 1, "the models are ['digits']"),
        (["--demo", "--grace-s", "-1"], 1, "grace_s must be 0 or more"),
        (["--demo", "--share", "digits=much"], 2, "wanted a number"),
        (["--demo", "--share", "2"], 1, "but the models are ['digits']"),
        (["--demo", "--share", "digits=0"], 1, "must be 0.001 to 1000"),
        (["--demo", "--share", "digits=nan"], 1, "must be 0.001 to 1000"),
    ],
)
def test_wrong_usage_is_said_in_one_line(arguments: list[str], code: int, words: str) -> None:
    command = [sys.executable, "-m", "mindspore_lite", "serve", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == code, done.stderr
    assert words in done.stderr and "Traceback" not in done.stderr
    assert done.stdout == ""


def test_an_address_of_the_network_says_what_that_means() -> None:
    with served("--demo", "--host", "0.0.0.0") as (child, port):
        with Wire(port) as wire:
            reply = wire.ask(b"GET /v2 HTTP/1.1\r\nHost: any.example\r\n\r\n")
            assert reply.status == 200
        child.send_signal(signal.SIGTERM)
        assert child.stderr is not None
        assert "open to the network" in child.stderr.read()
