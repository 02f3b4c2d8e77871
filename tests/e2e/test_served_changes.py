"""Reloads, new versions, new weights and the end of a server under load: 2,000 requests each, none
of which fails, and none of which is answered by a mixture."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save
from support.fake_engine import LIMIT_S, wait_for
from support.grpc_served import Caller, request
from support.repositories import (
    AUTHORISED,
    ROW,
    answer,
    change,
    infer,
    pair,
    paired,
    serving,
    version,
)
from support.served import Wire, floats, post

import mindspore_lite as mslite
from mindspore_lite.server.server import Server

REQUESTS = 2000
CLIENTS = 4
ONES = (1.0,) * ROW


class Load:
    """Clients that send requests until there were enough of them; each notes what it is told."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._lock = threading.Lock()
        self.answers: list[tuple[str, float]] = []
        self.errors: list[str] = []
        self.is_enough = threading.Event()
        asks = [self._http, self._http, self._grpc, self._http]
        self._threads = [threading.Thread(target=self._run, args=(ask,)) for ask in asks]
        for thread in self._threads:
            thread.start()

    def seen(self, count: int) -> None:
        """Wait for so many more answers."""
        wanted = len(self.answers) + count
        tick = threading.Event()
        for _ in range(round(LIMIT_S * 1000)):
            if len(self.answers) >= wanted or self.errors:
                return
            tick.wait(0.001)
        raise AssertionError("the answers do not come")

    def ended(self) -> list[tuple[str, float]]:
        """All answers, once there are enough."""
        for thread in self._threads:
            thread.join(LIMIT_S)
        assert self.errors == []
        return self.answers

    def _run(self, ask: Callable[[], Iterator[tuple[str, float]]]) -> None:
        try:
            for found in ask():
                with self._lock:
                    self.answers.append(found)
                if self.is_enough.is_set():
                    return
        except Exception as exc:  # noqa: BLE001 - the test looks at it
            self.errors.append(repr(exc))

    def _http(self) -> Iterator[tuple[str, float]]:
        sent = infer(values=ONES)
        with Wire(self._server.http_port) as wire:
            while True:
                yield answer(wire.ask(sent))

    def _grpc(self) -> Iterator[tuple[str, float]]:
        message = request("m", floats(*ONES), (ROW,))
        with Caller(self._server.grpc_port) as caller:
            while True:
                found = caller.infer(message)
                values = np.frombuffer(found.raw_output_contents[0], np.float32)
                assert (values == values[0]).all()
                yield found.model_version, float(values[0])


@contextmanager
def loaded(server: Server) -> Iterator[tuple[Load, Wire]]:
    load = Load(server)
    try:
        with Wire(server.http_port) as wire:
            yield load, wire
    finally:
        load.is_enough.set()
    load.ended()


def turns(load: Load, count: int = 10) -> Iterator[int]:
    """So many times, with answers in between, until there were REQUESTS of them."""
    for turn in range(count):
        load.seen(REQUESTS // (count + 1))
        yield turn
    load.seen(max(1, REQUESTS - len(load.answers)))


@pytest.fixture
def context() -> mslite.Context:
    found = mslite.Context()
    found.parallel.workers_num, found.cpu.thread_num = 2, 1
    return found


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_a_version_that_is_loaded_again(
    tmp_path: Path, context: mslite.Context, isolation: str
) -> None:
    version(tmp_path, "m", 1, 100)
    more: dict[str, Any] = {"context": context, "isolation": isolation}
    with serving(tmp_path, **more) as server:
        with loaded(server) as (load, wire):
            for turn in turns(load, 10 if isolation == "thread" else 4):
                version(tmp_path, "m", 1, 101 + turn)
                assert change(wire, "m").status == 200
                assert answer(wire.ask(infer())) == ("1", 101 + turn)
        factors = [factor for number, factor in load.answers if number == "1"]
        assert len(factors) == len(load.answers) >= REQUESTS
        assert set(factors) == {100 + turn for turn in range(11 if isolation == "thread" else 5)}
        meter = server.core.models.find("m").meter.counts()
        assert meter.success >= len(factors)  # which goes on counting
        assert sum(meter.failed) == sum(meter.rejected) == 0


def test_a_version_that_takes_the_place_of_another(tmp_path: Path, context: mslite.Context) -> None:
    version(tmp_path, "m", 1, 1)
    with serving(tmp_path, context=context) as server:
        with loaded(server) as (load, wire):
            for turn in turns(load):
                version(tmp_path, "m", turn + 2, turn + 2)
                assert change(wire, "m").status == 200
                assert answer(wire.ask(infer())) == (str(turn + 2), turn + 2)
        assert len(load.answers) >= REQUESTS
        assert {number for number, _ in load.answers} == {str(n) for n in range(1, 12)}
        assert all(number == f"{factor:g}" for number, factor in load.answers)


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_weights_that_change(tmp_path: Path, context: mslite.Context, isolation: str) -> None:
    """Two of them, which only together give a multiple of 1001."""
    paired(tmp_path / "m" / "1" / "model.onnx", 100)
    context.parallel.config_info = {"ascend_context": {"variable_weights_list": "a,b"}}
    more: dict[str, Any] = {"context": context, "isolation": isolation}
    with serving(tmp_path, **more) as server:
        with loaded(server) as (load, wire):
            for turn in turns(load):
                body = save(pair(101 + turn))
                reply = wire.ask(post("/v2/repository/models/m/weights", body, AUTHORISED))
                assert reply.json["weights_version"] == turn + 1
                assert answer(wire.ask(infer())) == ("1", 1001 * (101 + turn))
        assert len(load.answers) >= REQUESTS
        assert {found for _, found in load.answers} == {1001 * (100 + n) for n in range(11)}


def test_a_repository_that_changes_all_the_time(tmp_path: Path, context: mslite.Context) -> None:
    """Files are cut, overwritten in place and replaced while the server looks at them."""
    version(tmp_path, "m", 1, 1)
    whole = (tmp_path / "m/1/model.onnx").read_bytes()
    more: dict[str, Any] = {"control": "poll", "poll_s": 0.001, "context": context}
    with serving(tmp_path, **more) as server:
        with loaded(server) as (load, _):
            for turn in turns(load, 20):
                folder = tmp_path / "m" / str(turn + 2)
                folder.mkdir()
                (folder / "model.onnx").write_bytes(whole[: len(whole) // 2])
                load.seen(10)
                (folder / "model.onnx").write_bytes(b"")
                version(tmp_path, "m", turn + 2, turn + 2)
                (tmp_path / "m" / "notes").write_text(str(turn))
                if turn > 2:
                    shutil.rmtree(tmp_path / "m" / str(turn - 1))
            wait_for(lambda: server.core.models.versions("m") == ["21"])
        assert len(load.answers) >= REQUESTS
        assert all(number == f"{factor:g}" for number, factor in load.answers)


def test_the_end_of_the_server(tmp_path: Path, context: mslite.Context) -> None:
    """Each request that was taken is answered; then connections are closed, and refused."""
    version(tmp_path, "m", 1, 7)
    answers: list[tuple[str, float]] = []
    wrong: list[str] = []

    def client(server: Server) -> None:
        sent = infer(values=ONES)
        try:
            with Wire(server.http_port) as wire:
                while True:
                    reply = wire.ask(sent)
                    answers.append(answer(reply))
                    if reply.headers.get("connection") == "close":
                        return  # the server said so: nothing was sent behind it
        except Exception as exc:  # noqa: BLE001 - the test looks at it
            wrong.append(repr(exc))

    with serving(tmp_path, context=context) as server:
        threads = [threading.Thread(target=client, args=(server,)) for _ in range(CLIENTS)]
        for thread in threads:
            thread.start()
        tick = threading.Event()
        while len(answers) < REQUESTS and not wrong:
            tick.wait(0.001)
        assert server.drain(LIMIT_S)
        for thread in threads:
            thread.join(LIMIT_S)
    assert wrong == [] and len(answers) >= REQUESTS
    assert set(answers) == {("1", 7.0)}
