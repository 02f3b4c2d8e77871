"""isolation.py: a served model in a process of its own, which is killed, stopped and restarted."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.devices import has_ended, stop_process, worker_pids
from support.fake_engine import Client, wait_for
from support.grpc_served import Caller, request
from support.models import ENDLESS, looping
from support.served import Reply, Wire, floats, get, identity, post

import mindspore_lite as mslite
from mindspore_lite.errors import LiteError
from mindspore_lite.remote.devices import dispatcher, heartbeat, supervisor
from mindspore_lite.server.isolation import IsolatedService
from mindspore_lite.server.meter import FAILED
from mindspore_lite.server.numbers import numbers
from mindspore_lite.server.process_memory import memory_of
from mindspore_lite.server.server import Server

INFER = "/v2/models/loop/infer"
LONG = 5_000_000  # turns, for seconds
ENDED = "the process of the model ended, and is being started again; send the request again"


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is worth a long wait here."""
    monkeypatch.setattr(supervisor, "FIRST_BACK_OFF_S", 0.01)
    monkeypatch.setattr(supervisor, "LONGEST_BACK_OFF_S", 0.01)
    for module in (supervisor, dispatcher):
        monkeypatch.setattr(module, "ANSWER_S", 1.0)


@contextmanager
def served(folder: Path, **more: Any) -> Iterator[Server]:
    """A model that runs as long as it is told, in a process; and an identity, on threads."""
    models = {"loop": looping(folder / "loop.onnx"), "plain": identity(folder / "plain.onnx")}
    context = mslite.Context()
    context.parallel.workers_num = context.cpu.thread_num = 1
    more = {"isolation": {"loop": "process"}, "http_port": 0, "context": context, **more}
    before = worker_pids()
    with Server(models, **more) as server:
        yield server
    assert worker_pids() == before


def service(server: Server) -> IsolatedService:
    found = server.core.models.find("loop").service
    assert isinstance(found, IsolatedService)
    return found


def pid(server: Server) -> int:
    (found,) = worker_pids()
    return found


def is_replaced(server: Server, killed: int) -> bool:
    """Whether the next process is ready; a death is not seen at once."""
    return worker_pids() not in ([], [killed]) and server.is_ready


def body(turns: int = 1, value: float = 3.0) -> dict[str, Any]:
    n = {"name": "n", "datatype": "INT64", "shape": [], "data": [turns]}
    x = {"name": "x", "datatype": "FP32", "shape": [2], "data": [value, value]}
    return {"inputs": [n, x]}


def is_right(reply: Reply, value: float = 3.0) -> bool:
    return reply.status == 200 and reply.json["outputs"][0]["data"] == [value, value]


def is_computing(server: Server) -> bool:
    """Whether a run has begun in the process; a request that was not sent yet would not be lost."""
    (found,) = service(server)._split.statistics().devices
    return bool(found.runner.get("running"))


def assert_plain_goes_on(server: Server) -> None:
    with Wire(server.http_port) as wire:
        given = {"name": "IN", "datatype": "FP32", "shape": [1], "data": [7]}
        reply = wire.ask(post("/v2/models/plain/infer", {"inputs": [given]}))
        assert reply.json["outputs"][0]["data"] == [7]
        assert wire.ask(get("/v2/models/plain/ready")).status == 200


def test_a_killed_process_fails_what_it_computed_and_is_started_again(tmp_path: Path) -> None:
    with served(tmp_path) as server, Wire(server.http_port) as wire:
        assert is_right(wire.ask(post(INFER, body())))
        killed = pid(server)
        wire.send(post(INFER, body(int(ENDLESS))))
        wait_for(lambda: is_computing(server))
        os.kill(killed, signal.SIGKILL)
        reply = wire.reply()
        assert (reply.status, reply.error, reply.headers["retry-after"]) == (503, ENDED, "1")
        assert is_right(wire.ask(post(INFER, body())))  # it waits for the new process
        assert_plain_goes_on(server)
        wait_for(lambda: server.is_ready)
        assert wire.ask(get("/v2/models/loop/ready")).status == 200
        assert pid(server) != killed
        found = service(server).statistics()
        assert (found.failed, found.done) == (1, 2)


def test_requests_to_a_process_are_counted_and_its_memory_is_known(tmp_path: Path) -> None:
    with served(tmp_path) as server, Wire(server.http_port) as wire:
        for _ in range(3):
            assert is_right(wire.ask(post(INFER, body())))
        wire.send(post(INFER, body(int(ENDLESS))))
        wait_for(lambda: is_computing(server))
        now = service(server).occupancy()
        assert (now.slots, now.running, now.queued) == (("computing",), 1, 0)
        assert service(server).pids == [pid(server)]
        own, both = memory_of(["self"]), numbers(server.core)["memory"]
        assert both["rss_bytes"] > own.rss_bytes + (10 << 20)
        os.kill(pid(server), signal.SIGKILL)
        assert wire.reply().status == 503
        found = server.core.models.find("loop").meter.counts()
        wait_for(lambda: server.is_ready)
        assert service(server).occupancy().slots == ("idle",)
    assert (found.success, found.executions, found.rows) == (3, 3, 3)
    assert dict(zip(FAILED, found.failed, strict=True))["crash"] == 1
    assert found.infer_ns > 0 and found.success_ns >= found.infer_ns + found.queue_ns


def test_a_retried_request_is_answered_by_the_next_process(tmp_path: Path) -> None:
    with served(tmp_path, retry=True) as server, Wire(server.http_port) as wire:
        wire.send(post(INFER, body(LONG)))
        wait_for(lambda: is_computing(server))
        os.kill(pid(server), signal.SIGKILL)
        assert is_right(wire.reply())


@pytest.mark.parametrize(
    ("retry", "turns", "wanted"),
    [(False, int(ENDLESS), ("UNAVAILABLE", ENDED)), (True, LONG, ("OK", ""))],
)
def test_a_kill_as_grpc_sees_it(
    tmp_path: Path, retry: bool, turns: int, wanted: tuple[str, str]
) -> None:
    message = request("loop", np.array(turns).tobytes(), (), "n", "INT64")
    message.inputs.add(name="x", datatype="FP32", shape=[2])
    message.raw_input_contents.append(floats(1, 2))
    with served(tmp_path, retry=retry) as server, Caller(server.grpc_port) as caller:
        client = Client(lambda: caller.code("ModelInfer", message))
        wait_for(lambda: is_computing(server))
        os.kill(pid(server), signal.SIGKILL)
        assert client.ended().result == wanted


@pytest.mark.parametrize("retry", [True, False])
def test_kills_under_load(tmp_path: Path, retry: bool) -> None:
    """With retries no request fails; without, those that do are told when to come back."""
    enough = threading.Event()
    replies: list[tuple[float, Reply]] = []
    answered = [0] * 8

    def load(number: int) -> None:
        with Wire(server.http_port) as wire:
            value = float(number)
            while not enough.is_set():
                value += 16
                replies.append((value, wire.ask(post(INFER, body(1000, value)))))
                answered[number] += 1

    def has_moved(seen: list[int]) -> bool:
        """Whether no client waits for what it asked before: a retry is for one death."""
        return all(now > before + 1 for now, before in zip(answered, seen, strict=True))

    with served(tmp_path, retry=retry) as server:
        clients = [threading.Thread(target=load, args=[number]) for number in range(len(answered))]
        for client in clients:
            client.start()
        for _ in range(3):
            wait_for(lambda seen=list(answered): has_moved(seen))
            killed = pid(server)
            os.kill(killed, signal.SIGKILL)
            assert has_ended(killed)
            assert_plain_goes_on(server)
            wait_for(lambda killed=killed: is_replaced(server, killed))
        enough.set()
        for client in clients:
            client.join()
        with Wire(server.http_port) as wire:
            assert is_right(wire.ask(post(INFER, body())))
    lost = [reply for value, reply in replies if not is_right(reply, value)]
    if retry:
        assert not lost
    assert len(lost) <= 3 * len(clients)
    assert all((r.status, r.error, r.headers["retry-after"]) == (503, ENDED, "1") for r in lost)


def test_a_model_is_not_ready_while_its_process_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        served(tmp_path) as server,
        Wire(server.http_port) as wire,
        Caller(server.grpc_port) as caller,
    ):
        monkeypatch.setattr(supervisor, "FIRST_BACK_OFF_S", 3600.0)
        os.kill(pid(server), signal.SIGKILL)
        wait_for(lambda: not server.is_ready)
        assert wire.ask(get("/v2/health/ready")).status == 503
        reply = wire.ask(get("/v2/models/loop/ready"))
        assert (reply.status, reply.headers["retry-after"]) == (503, "1")
        assert reply.error == "model 'loop' is not ready: its process is being started"
        assert wire.ask(get("/v2/models/loop")).json["versions"] == ["1"]
        assert_plain_goes_on(server)
        late = wire.ask(post(INFER, body(), "x-request-timeout-ms: 50"))
        assert late.status == 504 and "started again" in late.error
        data = caller.infer(request("plain"))
        assert data.raw_output_contents[0] == floats(1, 2)


def test_a_process_that_ends_each_time_is_tried_again_and_again(tmp_path: Path) -> None:
    with served(tmp_path) as server, Wire(server.http_port) as wire:
        for _ in range(supervisor.MOST_DEATHS + 1):
            killed = pid(server)
            os.kill(killed, signal.SIGKILL)
            wait_for(lambda killed=killed: is_replaced(server, killed))
        assert is_right(wire.ask(post(INFER, body())))


def test_a_file_that_was_replaced_is_not_served_by_the_next_process(tmp_path: Path) -> None:
    with served(tmp_path) as server, Wire(server.http_port) as wire:
        served_file, kept = tmp_path / "loop.onnx", tmp_path / "kept.onnx"
        served_file.rename(kept)
        looping(served_file)
        os.kill(pid(server), signal.SIGKILL)
        wait_for(lambda: not server.is_ready)
        reply = wire.ask(post(INFER, body()))
        assert (reply.status, reply.error) == (503, ENDED)
        kept.replace(served_file)
        wait_for(lambda: server.is_ready)
        assert is_right(wire.ask(post(INFER, body())))


def test_a_stopped_process_is_ended_after_a_deadline(tmp_path: Path) -> None:
    with served(tmp_path) as server, Wire(server.http_port) as wire:
        stopped = pid(server)
        stop_process(stopped)
        reply = wire.ask(post(INFER, body(), "x-request-timeout-ms: 100"))
        assert reply.status == 504
        assert has_ended(stopped)
        assert is_right(wire.ask(post(INFER, body())))


@pytest.mark.parametrize("retry", [True, False])
def test_a_stopped_process_is_noticed_without_a_deadline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, retry: bool
) -> None:
    monkeypatch.setattr(supervisor, "EVERY_S", 0.05)
    monkeypatch.setattr(heartbeat, "ASK_S", 0.1)
    with served(tmp_path, retry=retry) as server, Wire(server.http_port) as wire:
        wire.send(post(INFER, body(LONG)))
        wait_for(lambda: is_computing(server))
        stopped = pid(server)
        stop_process(stopped)
        monkeypatch.setattr(supervisor, "SILENT_S", 0.2)
        assert has_ended(stopped)
        monkeypatch.setattr(supervisor, "SILENT_S", 60.0)
        reply = wire.reply()
        assert is_right(reply) if retry else (reply.status, reply.error) == (503, ENDED)


def test_a_client_that_hangs_up_ends_its_run(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        with Wire(server.http_port) as wire:
            wire.send(post(INFER, body(int(ENDLESS))))
            wait_for(lambda: is_computing(server))
        wait_for(lambda: service(server).statistics().cancelled == 1)
        with Wire(server.http_port) as wire:
            assert is_right(wire.ask(post(INFER, body())))


def test_errors_have_the_words_of_threads(tmp_path: Path) -> None:
    wrong = {"inputs": body()["inputs"][1:]}
    found = []
    for isolation in ("thread", "process"):
        folder = tmp_path / isolation
        folder.mkdir()
        with (
            served(folder, isolation={"loop": isolation}) as server,
            Wire(server.http_port) as wire,
        ):
            replies = [wire.ask(post(INFER, given)) for given in (wrong, body(-(2**63)))]
            found.append([(reply.status, reply.body) for reply in replies])
    assert found[0] == found[1]


def test_batches_of_any_size_are_run_whole(tmp_path: Path) -> None:
    rows = identity(tmp_path / "rows.onnx", shape=("n", 3))
    with Server([rows], http_port=0, isolation="process") as server:
        data = np.arange(21, dtype=np.float32)
        given = {"name": "IN", "datatype": "FP32", "shape": [7, 3], "data": data.tolist()}
        with Wire(server.http_port) as wire:
            reply = wire.ask(post("/v2/models/rows/infer", {"inputs": [given]}))
        assert reply.json["outputs"][0] == {**given, "name": "OUT"}
        found = server.core.models.find("rows").service.statistics()
        assert (found.done, found.running, found.queued) == (1, 0, 0)
        assert found.layout.workers >= 1 and len(found.workers) == found.layout.workers


def test_a_model_that_cannot_be_built_fails_the_start(tmp_path: Path) -> None:
    path = tmp_path / "broken.onnx"
    path.write_bytes(b"\x08\x07broken")
    before = worker_pids()
    with pytest.raises(LiteError, match="the server cannot be started"):
        Server([path], http_port=0, isolation="process").start()
    assert worker_pids() == before


@pytest.mark.parametrize("isolation", ["fork", {"loop": "x"}, {"x": "process"}])
def test_a_wrong_isolation_is_refused(tmp_path: Path, isolation: Any) -> None:
    path = looping(tmp_path / "loop.onnx")
    with pytest.raises(ValueError, match="isolation"):
        Server([path], isolation=isolation)
