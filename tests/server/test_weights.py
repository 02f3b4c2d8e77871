"""weights.py: new weights for a served model, sent over HTTP."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from safetensors.numpy import save
from support.fake_engine import wait_for
from support.onnx_graphs import F32, model, node
from support.repositories import AUTHORISED, answer, change, index, infer, serving, version
from support.served import Reply, Wire, get, post

import mindspore_lite as mslite
from mindspore_lite.server.http import port as http_port
from mindspore_lite.server.server import Server

PATH = "/v2/repository/models/m/weights"


@contextmanager
def changeable(root: Path, **more: Any) -> Iterator[tuple[Server, Wire]]:
    """A model of factor 10 that may change."""
    version(root, "m", 1, 10)
    context = mslite.Context()
    context.parallel.workers_num = context.cpu.thread_num = 1
    context.parallel.config_info = {"ascend_context": {"variable_weights_list": "factor"}}
    with serving(root, context=context, **more) as server, Wire(server.http_port) as wire:
        yield server, wire


def factor(value: float) -> bytes:
    return save({"factor": np.full(1, value, np.float32)})


def sent(wire: Wire, body: bytes, query: str = "", *headers: str, path: str = PATH) -> Reply:
    return wire.ask(post(path + query, body, AUTHORISED, *headers))


def chunked(body: bytes, size: int) -> bytes:
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_weights_are_replaced_and_restored(tmp_path: Path, isolation: str) -> None:
    with changeable(tmp_path, isolation=isolation) as (server, wire):
        assert answer(wire.ask(infer())) == ("1", 10)
        assert sent(wire, factor(11)).json == {"name": "m", "version": "1", "weights_version": 1}
        assert answer(wire.ask(infer())) == ("1", 11)
        path = "/v2/repository/models/m/versions/1/weights"
        assert sent(wire, factor(12), path=path).json["weights_version"] == 2
        assert answer(wire.ask(infer())) == ("1", 12)
        found = wire.ask(get("/v2/models/m")).json
        assert found["properties"] == {"weights_version": "2"}
        reply = wire.ask(get(PATH, AUTHORISED, method="DELETE"))
        assert reply.json == {"name": "m", "version": "1", "weights_version": 3}
        assert answer(wire.ask(infer())) == ("1", 10)
        marks = [mark for mark in server.core.marks.recent() if mark["what"] == "weights"]
        assert [mark["text"] for mark in marks] == ["replaced", "replaced", "restored"]


def test_a_reload_has_the_weights_of_its_file(tmp_path: Path) -> None:
    with changeable(tmp_path) as (_, wire):
        assert sent(wire, factor(11)).status == 200
        version(tmp_path, "m", 1, 20)
        assert change(wire, "m").status == 200
        assert answer(wire.ask(infer())) == ("1", 20)
        assert wire.ask(get("/v2/models/m")).json["properties"] == {"weights_version": "0"}


def test_chunks_of_any_size_go_to_the_file(tmp_path: Path) -> None:
    with changeable(tmp_path) as (_, wire):
        for number, size in enumerate((1, 7, 100, 1000)):
            body = chunked(factor(20 + number), size)
            reply = sent(wire, body, "", "Transfer-Encoding: chunked")
            assert reply.status == 200, reply.body
            assert answer(wire.ask(infer())) == ("1", 20 + number)


def test_a_large_body_is_not_held_in_memory(tmp_path: Path) -> None:
    """It is larger than all bodies together may be."""
    limits = {"flight_bytes": 1000, "body_bytes": 1000, "weights_bytes": 8 << 20}
    big = save({"factor": np.full(1, 3, np.float32), "x": np.zeros(1 << 20, np.float32)})
    with changeable(tmp_path, limits=limits) as (server, wire):
        reply = sent(wire, big)
        assert (reply.status, "'x'" in reply.error) == (400, True)  # it came, and was read
        assert server.core.flight.bytes == 0
        reply = sent(wire, chunked(big, 50_000), "", "Transfer-Encoding: chunked")
        assert (reply.status, "'x'" in reply.error) == (400, True)
        assert answer(wire.ask(infer())) == ("1", 10)


def test_what_is_sent_behind_a_file_is_answered_behind_it(tmp_path: Path) -> None:
    with changeable(tmp_path) as (_, wire):
        wire.send(post(PATH, factor(11), AUTHORISED) + infer())
        assert wire.reply().status == 200
        assert answer(wire.reply()) == ("1", 11)


# --- refusals ---


@pytest.mark.parametrize(
    ("body", "query", "words"),
    [
        (b"", "", "the body is empty"),
        (b"x", "", "it is no .safetensors file"),
        (b"<html>" * 100, "", "it is no .safetensors file"),
        (factor(1)[:-1], "", "it is no .safetensors file"),
        (save({}), "", "holds no tensor"),
        (save({"other": np.zeros(1, np.float32)}), "", "other"),
        (save({"factor": np.zeros(2, np.float32)}), "", "factor"),
        (save({"factor": np.zeros(1, np.int64)}), "", "factor"),
        (factor(1), "?format=lora", "no LoRA"),
        (factor(1), "?format=x", "format must be"),
        (factor(1), "?scale=2", "go with format=lora"),
        (factor(1), "?format=lora&scale=nan", "finite"),
        (factor(1), "?format=lora&scale=", "finite"),
        (factor(1), "?format=lora&part=x", "part must be"),
        (factor(1), "?x=1", "the query may have"),
        (factor(1), "?format=lora&format=lora", "each once"),
        (factor(1), "?x", "the query must be like"),
    ],
)
def test_what_does_not_fit_changes_nothing(
    tmp_path: Path, body: bytes, query: str, words: str
) -> None:
    with changeable(tmp_path) as (server, wire):
        assert sent(wire, factor(11)).status == 200
        reply = sent(wire, body, query)
        assert (reply.status, words in reply.error) == (400, True), reply.error
        assert "/proc" not in reply.error and str(tmp_path) not in reply.error
        with Wire(server.http_port) as other:
            assert answer(other.ask(infer())) == ("1", 11)
            assert index(other) == {("m", "1"): ("READY", "")}


def test_a_file_may_be_expected_and_not_compressed(tmp_path: Path) -> None:
    with changeable(tmp_path) as (_, wire):
        body = factor(11)
        wire.send(post(PATH, b"", AUTHORISED, "Expect: 100-continue", length=len(body)))
        assert wire.reply().status == 100
        assert wire.ask(body).status == 200
        reply = sent(wire, factor(12), "", "Content-Encoding: gzip")
        assert (reply.status, "as it is" in reply.error) == (400, True)
        assert answer(wire.ask(infer())) == ("1", 11)


def test_a_model_whose_weights_may_not_change_says_how_they_may(tmp_path: Path) -> None:
    version(tmp_path, "m", 1, 10)
    with serving(tmp_path) as server, Wire(server.http_port) as wire:
        for reply in (sent(wire, factor(1)), wire.ask(get(PATH, AUTHORISED, method="DELETE"))):
            assert (reply.status, "variable_weights_list" in reply.error) == (400, True)
        assert "properties" not in wire.ask(get("/v2/models/m")).json


def test_it_is_refused_before_it_is_sent(tmp_path: Path) -> None:
    limits = {"weights_bytes": 100}
    with changeable(tmp_path, limits=limits) as (server, _):
        cases = {
            403: (PATH, "", 413),
            404: ("/v2/repository/models/x/weights", AUTHORISED, 0),
            413: (PATH, AUTHORISED, 0),
        }
        for status, (path, token, _) in cases.items():
            with Wire(server.http_port) as wire:
                head = get(path, *filter(None, [token]), "Content-Length: 5000000", method="POST")
                wire.send(head)
                assert wire.reply().status == (401 if status == 403 else status)
        with Wire(server.http_port) as wire:
            wire.send(post(PATH, b"", AUTHORISED, "Transfer-Encoding: chunked"))
            wire.send(b"ffff\r\n")
            assert wire.reply().status == 413
        wait_for(lambda: not any(one.is_uploading for one in _connections(server)))


def test_clients_that_leave_or_dawdle_leave_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    limits = {"body_grace_s": 0.05, "body_rate": 1 << 30}
    with changeable(tmp_path / "models", limits=limits) as (server, _):
        before = _deleted()
        with Wire(server.http_port) as wire:
            wire.send(post(PATH, b"x" * 1000, AUTHORISED, length=5000))
            wait_for(lambda: _deleted() > before)
            reply = wire.reply()
            assert (reply.status, reply.error) == (408, "the body came too slowly")
        wire = Wire(server.http_port)
        wire.send(post(PATH, b"x" * 1000, AUTHORISED, length=5000))
        wire.close()
        wait_for(lambda: _deleted() == before)
        assert list(folder.iterdir()) == []


def test_only_so_many_files_come_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_port, "_MOST_UPLOADS", 1)
    with changeable(tmp_path) as (server, first), Wire(server.http_port) as second:
        first.send(post(PATH, factor(11)[:9], AUTHORISED, length=len(factor(11))))
        wait_for(lambda: any(one.is_uploading for one in _connections(server)))
        reply = second.ask(post(PATH, factor(12), AUTHORISED))
        assert (reply.status, reply.headers["retry-after"]) == (503, "1")
        first.send(factor(11)[9:])
        assert first.reply().json["weights_version"] == 1
        assert second.ask(post(PATH, factor(12), AUTHORISED)).json["weights_version"] == 2


FULL = """
import resource, signal, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from server.test_weights import changeable, factor, sent, answer, infer
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with changeable(Path({root!r})) as (server, wire):
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
    reply = sent(wire, b"x" * 3_000_000)
    print(reply.status, reply.error)
    from support.served import Wire
    with Wire(server.http_port) as wire:
        print(answer(wire.ask(infer())))
        print(sent(wire, factor(11)).status)
"""


def test_a_full_disk_is_said_and_changes_nothing(tmp_path: Path) -> None:
    """The system refuses to write more than 100 kB to a file of this process."""
    code = FULL.format(tests=str(Path(__file__).parents[1]), root=str(tmp_path))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    first, second, third = done.stdout.splitlines()
    assert first.startswith("507 the server has no room on its disk")
    assert (second, third) == ("('1', 10.0)", "200")


# --- LoRA ---


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_a_lora_is_added_with_a_scale(tmp_path: Path, isolation: str) -> None:
    weight = np.arange(6, dtype=np.float32).reshape(3, 2)
    made = model(
        [node("Gemm", ["IN", "fc.weight"], ["OUT"], name="/fc/Gemm", transB=1)],
        [("IN", F32, [1, 2])],
        [("OUT", F32, [1, 3])],
        **{"fc.weight": weight},
    )
    path = tmp_path / "m" / "1" / "model.onnx"
    path.parent.mkdir(parents=True)
    onnx.save(made, path)
    down, up = np.ones((1, 2), np.float32), np.array([[1], [2], [3]], np.float32)
    lora = save({"fc.lora_A.weight": down, "fc.lora_B.weight": up})
    context = mslite.Context()
    context.parallel.config_info = {"ascend_context": {"variable_weights_list": "fc.weight"}}
    more: Mapping[str, Any] = {"context": context, "isolation": isolation}
    with serving(tmp_path, **more) as server, Wire(server.http_port) as wire:
        ones = infer(values=(1.0, 1.0))

        def asked() -> list[float]:
            reply = wire.ask(ones)
            length = int(reply.headers["inference-header-content-length"])
            return np.frombuffer(reply.body[length:], np.float32).tolist()  # type: ignore[no-any-return]

        plain, delta = weight.sum(1), (up @ down).sum(1)
        assert asked() == plain.tolist()
        for scale in (1.0, 0.5, -2.0):
            reply = sent(wire, lora, f"?format=lora&scale={scale:g}")
            assert reply.status == 200, reply.body
            assert asked() == (plain + scale * delta).tolist()
        assert wire.ask(get(PATH, AUTHORISED, method="DELETE")).status == 200
        assert asked() == plain.tolist()


def _connections(server: Server) -> list[Any]:
    return list(server._open["http"].connections)  # type: ignore[attr-defined]


def _deleted() -> int:
    """Open files of this process that have no name any more."""
    found = 0
    for name in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            continue
        found += "(deleted)" in target and "/memfd:" not in target
    return found
