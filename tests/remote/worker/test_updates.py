"""Weights that change in a worker: for all lanes at once, wholly or not at all, leaving nothing."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.fake_engine import LIMIT_S, Client, wait_for
from support.models import written
from support.updates import SIDE, telling_net, variable, versions
from support.workers import HostHere, child, connected, host_here, listening, process

from mindspore_lite.errors import EngineError, InputError, LiteError
from mindspore_lite.remote.wire.bodies import MODEL, RUNNER, Build
from mindspore_lite.remote.wire.client import Model, WireSession
from mindspore_lite.serving import single

ROWS = np.ones((2, SIDE), np.float32)
KINDS = pytest.mark.parametrize("kind", [MODEL, RUNNER])


@pytest.fixture
def telling(tmp_path: Path) -> Path:
    return written(tmp_path / "telling.mindir", telling_net(-1))


def build_of(path: Path, kind: int, *names: str) -> Build:
    settings = {"cpu.thread_num": "1", "parallel.workers_num": "2"}
    config = variable(*names) if names else {}
    return Build(kind, 0, str(path), settings=settings, config=config)


def update(model: Model, number: int) -> None:
    model.update_weights([list(versions(number).items())])


def told(model: Model) -> float:
    """The one version of both weights."""
    (version,) = np.unique(model.predict([ROWS])[0])
    return float(version)


@KINDS
def test_weights_change_and_are_counted(kind: int, telling: Path) -> None:
    with host_here() as here:
        model = here.session().build(build_of(telling, kind, "a", "b"))
        assert (told(model), model.info("weights_version")) == (0, "0")
        update(model, 3)
        assert (told(model), model.info("weights_version")) == (3, "1")
        model.update_weights([])
        assert (told(model), model.info("weights_version")) == (0, "2")


@KINDS
def test_what_is_wrong_is_told_in_the_worker_s_words_and_changes_nothing(
    kind: int, telling: Path
) -> None:
    with host_here() as here:
        session = here.session()
        model = session.build(build_of(telling, kind, "a", "b"))
        wrong = {**versions(3), "b": np.zeros(5, np.float32)}
        text = r"^update weight failed! Error is weight 'b' has shape \[8, 8\], but got \[5\]\."
        with pytest.raises(InputError, match=text):
            model.update_weights([list(wrong.items())])
        with pytest.raises(InputError, match="list 0 is empty"):
            model.update_weights([[]])
        assert (told(model), model.info("weights_version")) == (0, "0")
        fixed = session.build(build_of(telling, kind))
        with pytest.raises(EngineError, match="no weight of this model may change"):
            fixed.update_weights([])


@KINDS
def test_requests_on_other_lanes_see_one_version_each(kind: int, telling: Path) -> None:
    over = threading.Event()
    newest = [0]
    with child() as (_, session):
        model = session.build(build_of(telling, kind, "a", "b"))

        def ask() -> int:
            count = 0
            while not over.is_set():
                least = newest[0]
                assert least <= told(model) <= newest[0] + 1
                count += 1
            return count

        asking = [Client(ask) for _ in range(3)]
        for number in range(1, 20):
            update(model, number)
            newest[0] = number
        over.set()
        for client in asking:
            assert client.ended().error is None, client.error


def test_the_lines_of_a_file_may_be_given_instead_of_it(telling: Path) -> None:
    config = {"ascend_context": {"variable_weights_lines": "a\nother,Default/b-Dense"}}
    with host_here() as here:
        model = here.session().build(Build(MODEL, 0, str(telling), config=config))
        a, b = versions(2).values()
        model.update_weights([[("other", b), ("a", a)]])
        assert told(model) == 2


# --- clients that go ------------------------------------------------------------------------------


class Slow:
    """Holds the making of new weights up, in a worker inside of this process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.began, self.may_end = threading.Event(), threading.Event()
        real = single.updated

        def updated(*arguments: Any) -> Any:
            self.began.set()
            assert self.may_end.wait(LIMIT_S)
            return real(*arguments)

        monkeypatch.setattr(single, "updated", updated)


def begin(here: HostHere, telling: Path, slow: Slow) -> tuple[WireSession, Model, Client]:
    """An update that is under way, and its model."""
    session = here.session()
    model = session.build(build_of(telling, MODEL, "a", "b"))
    updating = Client(lambda: update(model, 1))
    assert slow.began.wait(LIMIT_S)
    return session, model, updating


def test_a_lane_that_is_left_in_the_middle_leaves_the_model_as_it_was_or_changed(
    telling: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with host_here() as here:
        slow = Slow(monkeypatch)
        session, model, updating = begin(here, telling, slow)
        (busy,) = session._lanes
        busy.interrupt()
        assert isinstance(updating.ended().error, LiteError)
        assert (told(model), model.info("weights_version")) == (0, "0")
        slow.may_end.set()
        wait_for(lambda: model.info("weights_version") == "1")
        assert told(model) == 1
        update(model, 2)
        assert told(model) == 2
        wait_for(lambda: not here.client_session(session)._blocks)


def test_a_client_that_leaves_in_the_middle_leaves_nothing(
    telling: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with host_here() as here:
        slow = Slow(monkeypatch)
        session, _, updating = begin(here, telling, slow)
        client_session = here.client_session(session)
        session.close()
        assert isinstance(updating.ended().error, LiteError)
        slow.may_end.set()
        here.idle()
        assert (client_session._blocks, client_session._models) == ({}, {})


KILLED = """
import sys
import numpy as np
from mindspore_lite.remote.wire.bodies import MODEL, Build
from mindspore_lite.remote.wire.client import WireSession
session = WireSession.connect(sys.argv[1])
config = {"ascend_context": {"variable_weights_list": "a,b"}}
model = session.build(Build(MODEL, 0, sys.argv[2], config=config))
print("built", flush=True)
while True:
    model.update_weights([[(name, np.ones((8, 8), np.float32)) for name in "ab"]])
"""


def test_a_client_that_is_killed_while_it_updates_disturbs_no_other(
    telling: Path, tmp_path: Path
) -> None:
    path = tmp_path / "w.sock"
    with listening(path, "--stay"), connected(path) as session:
        model = session.build(build_of(telling, MODEL, "a", "b"))
        update(model, 4)
        with process(KILLED, path, telling) as client:
            assert client.stdout is not None
            assert client.stdout.readline() == "built\n"
            client.kill()
        assert told(model) == 4
        update(model, 5)
        assert told(model) == 5
