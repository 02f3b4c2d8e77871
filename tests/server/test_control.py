"""control.py: models that come, change and go while requests run."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from support.fake_engine import LIMIT_S, Client, wait_for
from support.fake_engine import Gate as RunGate
from support.grpc_served import Caller, request
from support.repositories import (
    AUTHORISED,
    answer,
    change,
    failing,
    index,
    infer,
    scaled,
    serving,
    version,
)
from support.served import FakeService, Wire, floats, get, post

import mindspore_lite as mslite
from mindspore_lite.errors import ClosedError, EngineError, ModelFileError
from mindspore_lite.server import control as module
from mindspore_lite.server.control import EXPLICIT, POLL, Control
from mindspore_lite.server.errors import RequestError
from mindspore_lite.server.grpc.inference_pb2 import ModelStreamInferResponse
from mindspore_lite.server.models import ModelOptions, Models, Status
from mindspore_lite.server.repository.records import ModelEntry
from mindspore_lite.serving.call import Call

READY = ("READY", "")
GONE = ("UNAVAILABLE", "unloaded")


def test_a_model_is_loaded_changed_and_unloaded(tmp_path: Path) -> None:
    version(tmp_path, "m", 1, 10)
    version(tmp_path, "other", 1, 5)
    with serving(tmp_path, load_models=["other"]) as server, Wire(server.http_port) as wire:
        assert index(wire) == {("m", ""): ("", ""), ("other", "1"): READY}
        assert server.is_ready and wire.ask(infer()).status == 404
        assert change(wire, "m").status == 200
        assert answer(wire.ask(infer())) == ("1", 10)
        version(tmp_path, "m", 1, 11)  # another file under the same number
        version(tmp_path, "m", 2, 20)
        assert answer(wire.ask(infer())) == ("1", 10)
        assert change(wire, "m").status == 200
        assert answer(wire.ask(infer())) == ("2", 20)
        assert wire.ask(infer(number="1")).status == 404  # the policy is the newest one
        wait_for(lambda: index(wire)["m", "1"] == GONE)
        assert change(wire, "m", "unload", {"parameters": {"unload_dependents": False}}).body == b""
        wait_for(lambda: index(wire)["m", "2"] == GONE)
        reply = wire.ask(infer())
        assert (reply.status, "no available versions" in reply.error) == (404, True)
        assert server.is_ready and answer(wire.ask(infer("other"))) == ("1", 5)
        assert change(wire, "m", "unload").status == change(wire, "x", "unload").status == 200
        assert change(wire, "m").status == 200 and answer(wire.ask(infer())) == ("2", 20)
        rows = wire.ask(post("/v2/repository/index", {"ready": True})).json
        assert [(row["name"], row["version"]) for row in rows] == [("m", "2"), ("other", "1")]


def test_a_reload_replaces_the_same_version(tmp_path: Path) -> None:
    version(tmp_path, "m", 1, 10)
    with serving(tmp_path) as server, Wire(server.http_port) as wire:
        first = server.core.models.find("m")
        assert change(wire, "m").status == 200
        assert server.core.models.find("m") is first  # nothing has changed
        version(tmp_path, "m", 1, 11)
        assert change(wire, "m").status == 200
        assert answer(wire.ask(infer())) == ("1", 11)
        wait_for(lambda: first.state == "UNAVAILABLE")
        assert index(wire) == {("m", "1"): READY}


@pytest.mark.parametrize("number", [1, 2])
def test_a_load_that_fails_leaves_the_old_one_serving(tmp_path: Path, number: int) -> None:
    version(tmp_path, "m", 1, 10)
    with serving(tmp_path) as server, Wire(server.http_port) as wire:
        broken = tmp_path / "m" / str(number) / "model.onnx"
        broken.parent.mkdir(exist_ok=True)
        broken.write_bytes(b"\x08\x07broken")
        reply = change(wire, "m")
        assert reply.status == 500 and str(tmp_path) not in reply.error
        assert answer(wire.ask(infer())) == ("1", 10)
        state, reason = index(wire)["m", str(number)]
        assert state == ("READY" if number == 1 else "UNAVAILABLE")
        assert reason and str(tmp_path) not in reason
        assert server.is_ready  # it does its work
        if number == 2:
            reply = wire.ask(infer(number="2"))
            assert reply.status == 503 and "not ready" in reply.error
        version(tmp_path, "m", number, 12)
        assert change(wire, "m").status == 200
        assert answer(wire.ask(infer())) == (str(number), 12)
        assert index(wire)["m", str(number)] == READY


@pytest.mark.filterwarnings("ignore:the model could not be warmed up")
@pytest.mark.parametrize("number", ["1", "2"])
def test_a_version_that_fails_its_probe_is_not_served(tmp_path: Path, number: str) -> None:
    version(tmp_path, "m", 1, 10)
    with serving(tmp_path) as server, Wire(server.http_port) as wire:
        failing(tmp_path / "m" / number / "model.onnx")
        reply = change(wire, "m")
        assert (reply.status, "it failed its probe" in reply.error) == (500, True)
        assert answer(wire.ask(infer())) == ("1", 10)
        state, reason = index(wire)["m", number]
        assert state == ("READY" if number == "1" else "UNAVAILABLE")
        assert "it failed its probe" in reason
        assert server.is_ready


@pytest.mark.filterwarnings("ignore:the model could not be warmed up")
def test_a_server_without_a_version_that_works_is_not_ready(tmp_path: Path) -> None:
    version(tmp_path, "good", 1, 10)
    failing(tmp_path / "m" / "1" / "model.onnx")
    with serving(tmp_path) as server, Wire(server.http_port) as wire:
        assert not server.is_ready
        assert wire.ask(get("/v2/health/ready")).status == 503
        assert wire.ask(infer("good")).status == 200
        assert change(wire, "m", "unload").status == 200  # what is not wanted need not work
        assert server.is_ready


def test_a_fault_of_the_configuration_leaves_the_old_one_serving(tmp_path: Path) -> None:
    version(tmp_path, "m", 1, 10)
    with serving(tmp_path) as server, Wire(server.http_port) as wire:
        (tmp_path / "m" / "1" / "other.onnx").write_bytes(b"x")
        (tmp_path / "m" / "1" / "model.onnx").rename(tmp_path / "m" / "1" / "third.onnx")
        reply = change(wire, "m")
        assert reply.status == 400 and "failed to load 'm'" in reply.error
        assert answer(wire.ask(infer())) == ("1", 10)
        assert index(wire)["m", "1"][0] == "READY" and index(wire)["m", "1"][1]
        (tmp_path / "m" / "1" / "other.onnx").unlink()
        (tmp_path / "m" / "1" / "third.onnx").rename(tmp_path / "m" / "1" / "model.onnx")
        assert change(wire, "m").status == 200
        assert index(wire) == {("m", "1"): READY}
        assert change(wire, "x").status == 404


# --- who may ask for what ---


@pytest.mark.parametrize("mode", ["none", "poll"])
def test_other_modes_load_nothing_when_asked(tmp_path: Path, mode: str) -> None:
    version(tmp_path, "m", 1, 10)
    with serving(tmp_path, control=mode) as server, Wire(server.http_port) as wire:
        assert index(wire) == {("m", "1"): READY}
        for what in ("load", "unload"):
            reply = change(wire, "m", what)
            assert (reply.status, "--control explicit" in reply.error) == (503, True)


def test_loads_need_the_administrator(tmp_path: Path) -> None:
    version(tmp_path, "m", 1, 10)
    path = "/v2/repository/models/m/load"
    with serving(tmp_path, admin_tokens=[]) as server, Wire(server.http_port) as wire:
        reply = wire.ask(post(path, b""))
        assert (reply.status, "--admin-token-file" in reply.error) == (403, True)
        assert index(wire) == {("m", "1"): READY}
    tokens = {"tokens": ["a client's own secret".replace(" ", "-")]}
    with serving(tmp_path, **tokens) as server, Wire(server.http_port) as wire:
        assert wire.ask(post(path, b"")).status == 401
        client = f"Authorization: Bearer {tokens['tokens'][0]}"
        assert wire.ask(post(path, b"", client)).status == 403
        assert wire.ask(post("/v2/repository/index", b"")).status == 401
        assert wire.ask(post("/v2/repository/index", b"", client)).status == 200
        assert wire.ask(post(path, b"", AUTHORISED)).status == 200


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"parameters": {"file:1/model.onnx": "AAAA"}}, "files cannot be sent"),
        ({"parameters": {"config": 7}}, "must be a string"),
        ({"parameters": {"x": "y"}}, "unknown parameter 'x'"),
        ({"parameters": []}, "the body must be like"),
        ([], "the body must be like"),
        (b"{", "the body must be like"),
        (b"\xff", "the body must be like"),
    ],
)
def test_parameters_of_a_load_are_checked(tmp_path: Path, body: object, words: str) -> None:
    version(tmp_path, "m", 1, 10)
    with serving(tmp_path) as server, Wire(server.http_port) as wire:
        reply = change(wire, "m", "load", body)
        assert (reply.status, words in reply.error) == (400, True), reply.error


def test_a_load_may_bring_a_configuration(tmp_path: Path) -> None:
    version(tmp_path, "m", 1, 10)
    version(tmp_path, "m", 2, 20)
    with serving(tmp_path) as server, Wire(server.http_port) as wire:
        both = {"max_batch_size": 4, "version_policy": {"all": {}}}
        assert change(wire, "m", "load", {"parameters": {"config": json.dumps(both)}}).status == 200
        assert answer(wire.ask(infer(number="1"))) == ("1", 10)
        assert wire.ask(infer(values=(1.0,) * 5)).status == 400  # more rows than a batch has
        for wrong in ("{", '{"x": 1}', '{"name": "other"}', '{"sequence_batching": {}}', "[]", ""):
            reply = change(wire, "m", "load", {"parameters": {"config": wrong}})
            assert (reply.status, "parameter 'config'" in reply.error) == (400, True), wrong
        assert wire.ask(infer(number="1")).status == 200
        assert change(wire, "m").status == 200  # that of the folder again
        assert wire.ask(infer(number="1")).status == 404
        assert wire.ask(infer(values=(1.0,) * 5)).status == 200


def test_a_configuration_does_not_choose_between_two_models_of_one_name(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        version(tmp_path / folder, "m", 1, 10)
    version(tmp_path / "a", "other", 1, 10)
    scaled(tmp_path / "a" / "other.onnx", 10)
    folders = [tmp_path / "a", tmp_path / "b"]
    with serving(folders, load_models=[]) as server, Wire(server.http_port) as wire:  # type: ignore[arg-type]
        for name in ("m", "other"):
            reply = change(wire, name, body={"parameters": {"config": "{}"}})
            assert (reply.status, "two models" in reply.error) == (400, True)
            assert wire.ask(infer(name)).status in (404, 503)


def test_bodies_of_the_index(tmp_path: Path) -> None:
    version(tmp_path, "m", 1, 10)
    with serving(tmp_path) as server, Wire(server.http_port) as wire:
        for body in (b"", b"{}", b"null", b'{"ready": false, "x": 1}'):
            assert len(wire.ask(post("/v2/repository/index", body)).json) == 1
        for body in (b'{"ready": 1}', b"[]", b"x"):
            assert wire.ask(post("/v2/repository/index", body)).status == 400
        assert wire.ask(get("/v2/repository/index")).status == 405
        assert wire.ask(post("/v2/repository/other/index", b"")).status == 501
        other = "/v2/repository/other/models/m/load"
        assert wire.ask(post(other, b"", AUTHORISED)).status == 501
        assert "model_repository" in wire.ask(get("/v2")).json["extensions"]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"control": "always"}, "control"),
        ({"control": "none", "poll_s": 5.0}, "poll_s"),
        ({"poll_s": -1.0}, "poll_s"),
    ],
)
def test_arguments_are_checked(tmp_path: Path, more: dict[str, object], words: str) -> None:
    version(tmp_path, "m", 1, 10)
    with pytest.raises(ValueError, match=words):
        mslite.Server(tmp_path, http_port=0, **more)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="load_models"):
        mslite.Server(tmp_path, http_port=0, load_models=["m"])


def test_a_model_of_the_start_that_is_not_there_is_a_fault(tmp_path: Path) -> None:
    version(tmp_path, "m", 1, 10)
    with serving(tmp_path, load_models=["x"]) as server, Wire(server.http_port) as wire:
        assert not server.is_ready
        assert "no such model" in index(wire)["x", ""][1]


# --- the loader ---


class Fakes:
    """Stands in for Loading: models of the test's own making, and a repository in memory."""

    def __init__(self) -> None:
        self.models = Models()
        self.entries: dict[str, ModelEntry] = {}
        self.starts: dict[str, Callable[[], FakeService]] = {}
        self.started: list[tuple[str, str]] = []
        self.marks: list[tuple[str, ...]] = []

    def put(self, name: str, stamp: object = 1, *versions: str) -> None:
        files = {version: Path(f"{name}/{version}/x") for version in versions or ("1",)}
        self.entries[name] = ModelEntry(name, files, stamp=stamp)

    def start(self, entry: ModelEntry, version: str) -> FakeService:
        self.started.append((entry.name, version))
        return self.starts.get(entry.name, FakeService)()

    def options(self, entry: ModelEntry, version: str) -> ModelOptions:
        return ModelOptions()

    def control(self, mode: str = EXPLICIT) -> Control:
        def mark(*texts: str) -> None:
            self.marks.append(texts)

        read: Callable[[], dict[str, ModelEntry]] = lambda: dict(self.entries)  # noqa: E731
        return Control(self.models, self, read, mode=mode, poll_s=3600, mark=mark)  # type: ignore[arg-type]


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Fakes]:
    monkeypatch.setattr(module, "_stamp", lambda entry, version: entry.stamp)
    found = Fakes()
    yield found
    found.models.close(0.0)


def test_loads_of_a_model_come_one_after_the_other(fakes: Fakes) -> None:
    fakes.put("m")
    control, gate, inside = fakes.control(), threading.Event(), []

    def start() -> FakeService:
        inside.append(threading.get_ident())
        assert gate.wait(LIMIT_S)
        return FakeService()

    fakes.starts["m"] = start
    first, second, gone = control.load("m"), control.load("m"), control.unload("m")
    wait_for(lambda: bool(inside))
    with pytest.raises(RequestError, match="is being loaded"):
        fakes.models.find("m")
    assert not first.done() and fakes.models.are_ready()  # nothing that serves is missing
    gate.set()
    for future in (first, second, gone):
        future.result(LIMIT_S)
    assert len(inside) == 1  # for the second there was nothing to do
    wait_for(lambda: fakes.models.status("m", "1") == Status("m", "1", "UNAVAILABLE", "unloaded"))
    assert [one[2] for one in fakes.marks] == ["load", "unload"]
    control.close()


def test_too_many_loads_are_refused(fakes: Fakes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_WAITING", 2)
    fakes.put("m")
    control, gate, inside = fakes.control(), threading.Event(), threading.Event()

    def start() -> FakeService:
        inside.set()
        assert gate.wait(LIMIT_S)
        return FakeService()

    fakes.starts["m"] = start
    control.load("m")
    assert inside.wait(LIMIT_S)
    waiting = [control.load("m"), control.load("m")]
    with pytest.raises(RequestError, match="are waiting already"):
        control.load("m")
    gate.set()
    for future in waiting:
        future.result(LIMIT_S)
    control.close()


def test_the_end_does_not_wait_for_a_load_that_hangs(fakes: Fakes) -> None:
    fakes.put("m")
    control, gate, inside = fakes.control(), threading.Event(), threading.Event()
    made = FakeService()

    def start() -> FakeService:
        inside.set()
        assert gate.wait(LIMIT_S)
        return made

    fakes.starts["m"] = start
    loading, waiting = control.load("m"), control.load("m")
    assert inside.wait(LIMIT_S)
    control.close()
    for future in (loading, waiting):
        with pytest.raises(ClosedError, match="ending"):
            future.result(LIMIT_S)
    with pytest.raises(ClosedError, match="ending"):
        control.load("m")
    fakes.models.close(0.0)
    assert control.is_busy
    gate.set()
    wait_for(lambda: not control.is_busy)
    assert made.session.closed == 1  # what came too late is not left behind
    assert fakes.models.all() == []


def test_a_load_that_fails_by_a_bug_ends_nothing(fakes: Fakes) -> None:
    fakes.put("m")
    fakes.put("other")
    fakes.starts["m"] = lambda: 1 / 0  # type: ignore[assignment,return-value]
    control = fakes.control()
    with pytest.raises(ZeroDivisionError):
        control.load("m").result(LIMIT_S)
    control.load("other").result(LIMIT_S)
    assert fakes.models.names() == ["other"]
    control.close()


# --- polling ---


def polled(control: Control) -> None:
    control.change(control._poll).result(LIMIT_S)


def test_a_change_counts_when_it_looks_the_same_twice(fakes: Fakes) -> None:
    fakes.put("m", 1)
    control = fakes.control(POLL)
    control.start()
    assert fakes.started == [("m", "1")]
    for stamp in (2, 3):  # a file that is being written
        fakes.put("m", stamp)
        polled(control)
    assert len(fakes.started) == 1
    polled(control)
    polled(control)
    assert len(fakes.started) == 2
    fakes.put("new", 1)
    polled(control)
    assert "new" not in fakes.models.names()
    polled(control)
    assert "new" in fakes.models.names()
    del fakes.entries["m"]
    polled(control)
    assert "m" in fakes.models.names()
    polled(control)
    assert fakes.models.names() == ["new"]
    control.close()


def test_the_index_forgets_what_is_neither_there_nor_served(fakes: Fakes) -> None:
    fakes.put("m", 1, "1")
    control = fakes.control(POLL)
    control.start()
    for number in range(2, 9):
        fakes.put("m", number, str(number))
        polled(control)
        polled(control)
        wait_for(lambda: all(one.state != "UNLOADING" for one in fakes.models.index()))
    polled(control)
    assert [one.version for one in fakes.models.index()] == ["8"]
    control.close()


def test_a_file_that_fails_is_not_tried_until_it_changes(fakes: Fakes) -> None:
    fakes.put("m", 1)
    control = fakes.control(POLL)
    control.start()
    fakes.starts["m"] = _broken
    fakes.put("m", 2)
    for _ in range(4):
        polled(control)
    assert len(fakes.started) == 2
    status = fakes.models.status("m", "1")
    assert status == Status("m", "1", "READY", "it is broken")
    assert fakes.marks[-1] == ("m", "1", "reload_failed", "it is broken")
    del fakes.starts["m"]
    fakes.put("m", 1)  # as it was
    for _ in range(2):
        polled(control)
    assert fakes.models.status("m", "1") == Status("m", "1", "READY")
    assert len(fakes.started) == 2
    control.close()


def test_a_repository_that_cannot_be_read_changes_nothing(
    fakes: Fakes, caplog: pytest.LogCaptureFixture
) -> None:
    fakes.put("m", 1)
    control = fakes.control(POLL)
    control.start()

    def unreadable() -> dict[str, ModelEntry]:
        raise ModelFileError("the disk is gone")

    control._read = unreadable
    for _ in range(3):
        polled(control)
    assert fakes.models.names() == ["m"]
    assert caplog.text.count("the disk is gone") == 1
    control.close()


def test_a_look_at_files_that_fails_by_a_bug_is_not_the_last(tmp_path: Path) -> None:
    version(tmp_path, "m", 1, 10)
    more = {"control": "poll", "poll_s": 0.01}
    with serving(tmp_path, **more) as server, Wire(server.http_port) as wire:
        control = server.core.controlled()
        read, failed = control._read, threading.Event()

        def broken() -> dict[str, ModelEntry]:
            control._read = read
            failed.set()
            raise ZeroDivisionError

        control._read = broken
        assert failed.wait(LIMIT_S)
        version(tmp_path, "m", 2, 20)
        wait_for(lambda: answer(wire.ask(infer())) == ("2", 20))


def test_another_model_beside_the_only_one_changes_nothing_while_it_is_there(
    tmp_path: Path,
) -> None:
    version(tmp_path, "m", 1, 10)
    with serving([("net", tmp_path)]) as server, Wire(server.http_port) as wire:  # type: ignore[arg-type]
        version(tmp_path, "other", 1, 5)
        reply = change(wire, "net")
        assert (reply.status, "'net' is for one model" in reply.error) == (500, True)
        shutil.rmtree(tmp_path / "other")
        version(tmp_path, "m", 2, 20)
        assert change(wire, "net").status == 200
        assert answer(wire.ask(infer("net"))) == ("2", 20)


def test_files_are_looked_at_by_themselves(tmp_path: Path) -> None:
    version(tmp_path, "m", 1, 10)
    more = {"control": "poll", "poll_s": 0.01}
    with serving(tmp_path, **more) as server, Wire(server.http_port) as wire:
        version(tmp_path, "m", 2, 20)
        wait_for(lambda: answer(wire.ask(infer())) == ("2", 20))
        scaled(tmp_path / "plain.onnx", 3)
        wait_for(lambda: wire.ask(infer("plain")).status == 200)
        (tmp_path / "plain.onnx").unlink()
        wait_for(lambda: wire.ask(infer("plain")).status == 404)


def test_a_plain_file_is_followed_too(tmp_path: Path) -> None:
    path = scaled(tmp_path / "m.onnx", 10)
    more = {"control": "poll", "poll_s": 0.01}
    with serving(path, **more) as server, Wire(server.http_port) as wire:
        scaled(path, 11)
        wait_for(lambda: answer(wire.ask(infer())) == ("1", 11))
        path.unlink()
        wait_for(lambda: "not there any more" in index(wire)["m", "1"][1])
        assert answer(wire.ask(infer())) == ("1", 11)


def _broken() -> FakeService:
    raise EngineError("it is broken")


# --- requests under way ---


def test_requests_finish_where_they_began(fakes: Fakes) -> None:
    gate = RunGate()
    fakes.starts["m"] = lambda: FakeService(gate)
    fakes.put("m", 1)
    control = fakes.control()
    control.load("m").result(LIMIT_S)
    old = fakes.models.find("m")
    under_way = Client(lambda: old.service.run(Call([np.ones((1, 2), np.float32)])))
    gate.entered()
    fakes.starts["m"] = FakeService
    fakes.put("m", 2)
    control.load("m").result(LIMIT_S)  # which does not wait for the old one
    assert fakes.models.find("m") is not old and old.state == "UNLOADING"
    assert fakes.models.status("m", "1") == Status("m", "1", "READY")
    gate.open()
    assert under_way.ended().result[0].tolist() == [[2, 2]]
    wait_for(lambda: old.state == "UNAVAILABLE")
    control.close()


def test_a_request_that_comes_too_late_for_a_service_goes_to_the_next(tmp_path: Path) -> None:
    """It found the old one, and a reload closes that before the request gets there."""
    version(tmp_path, "m", 1, 10)
    with serving(tmp_path) as server, Wire(server.http_port) as wire:
        models = server.core.models
        old = models.find("m")
        version(tmp_path, "m", 1, 11)
        assert change(wire, "m").status == 200
        wait_for(lambda: old.state == "UNAVAILABLE")
        new, find = models.find("m"), models.find
        late = iter([old])
        models.find = lambda *_: next(late, new)  # type: ignore[method-assign]
        assert answer(wire.ask(infer())) == ("1", 11)
        late = iter([old])
        with Caller(server.grpc_port) as caller:
            found = caller.infer(request("m", floats(1), (1,)))
            assert found.raw_output_contents[0] == floats(11)
            late = iter([old])
            (streamed,) = caller.stream([request("m", floats(1), (1,))])
            found = ModelStreamInferResponse.FromString(streamed).infer_response
            assert found.raw_output_contents[0] == floats(11)
        models.find = lambda *_: old  # type: ignore[method-assign]
        assert wire.ask(infer()).status == 503  # nothing took its place
        models.find = find  # type: ignore[method-assign]
