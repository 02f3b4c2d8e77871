"""Models and clients that come and go leave a worker as it was: what benchmarks/devices.py counts,
with fewer cycles."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from support.fake_engine import wait_for
from support.mindir_builder import Net, encode
from support.models import ENDLESS, dense_net, looping, written
from support.updates import variable
from support.workers import ROOT, X, child, connected, file_build, listening

from mindspore_lite.errors import InputError, LiteError
from mindspore_lite.remote.wire.bodies import MODEL, RUNNER
from mindspore_lite.remote.wire.client import Model, WireSession
from mindspore_lite.serving.call import Call

CYCLES = 30
LARGE = np.ones((1 << 14, 3), np.float32)  # 192 KiB, which take a block of shared memory
MOST_KIB = 4096  # more own memory than before; a model that stays open is some 340 KiB

Assert = Callable[[int, Callable[[], object]], None]


@pytest.fixture
def does_not_grow(monkeypatch: pytest.MonkeyPatch) -> Assert:
    """Asserts that a process has no more of anything after some cycles than before."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    growth: ModuleType = importlib.import_module("growth")

    def check(pid: int, cycle: Callable[[], object]) -> None:
        ((before, after),) = growth.grown([pid], cycle, CYCLES)
        before["own KiB"] += MOST_KIB

        def grows() -> list[str]:
            after.update(growth.holdings(pid))
            return [name for name in after if after[name] > before[name]]

        # a lane that was left ends when its run does, which may take a moment
        try:
            wait_for(lambda: not grows())
        except AssertionError:
            raise AssertionError(f"{grows()}: {before} -> {after}") from None

    return check


@pytest.fixture
def dense(tmp_path: Path) -> Path:
    return written(tmp_path / "dense.mindir", dense_net(-1))


def use(session: WireSession, path: Path, kind: int) -> None:
    model = session.build(file_build(path, kind=kind))
    model.predict([LARGE])
    model.close()


@pytest.mark.parametrize("kind", [MODEL, RUNNER])
def test_models_that_are_built_and_closed_leave_nothing(
    kind: int, dense: Path, does_not_grow: Assert
) -> None:
    with child() as (worker, session):
        does_not_grow(worker.pid, partial(use, session, dense, kind))


@pytest.mark.parametrize("kind", [MODEL, RUNNER])
def test_updates_leave_nothing(kind: int, tmp_path: Path, does_not_grow: Assert) -> None:
    net = Net()
    weight = np.ones((128, 128), np.float32)  # 64 KiB, which take a block of shared memory
    product = net.call("MatMulExt", net.input("x", (-1, 128)), net.weight("w", weight))
    path = written(tmp_path / "square.mindir", encode(net.model(product)))

    def change(model: Model) -> None:
        model.update_weights([[("w", weight)]])
        with pytest.raises(InputError):
            model.update_weights([[("w", weight), ("v", weight)]])
        model.update_weights([])

    with child() as (worker, session):
        build = replace(file_build(path, kind=kind), config=variable("w"))
        does_not_grow(worker.pid, partial(change, session.build(build)))


def fail(session: WireSession, dense: Path, loop: Path) -> None:
    """Much that can go wrong with a request, once."""
    model = session.build(file_build(dense))
    with pytest.raises(LiteError):
        model.predict([np.ones((2, 7), np.float32)])
    model.start(Call([LARGE])).abandon()
    with pytest.raises(LiteError):
        session.build(file_build(loop))  # which is no MindIR
    endless = session.build(file_build(loop, 3))
    with pytest.raises(LiteError):
        endless.predict([ENDLESS, X], timeout_s=0.001)
    endless.start(Call([ENDLESS, X])).abandon()
    endless.close()
    model.close()


def test_requests_that_fail_leave_nothing(
    dense: Path, tmp_path: Path, does_not_grow: Assert
) -> None:
    with child() as (worker, session):
        loop = looping(tmp_path / "loop.onnx")
        does_not_grow(worker.pid, partial(fail, session, dense, loop))


def test_clients_that_come_and_go_leave_nothing(
    dense: Path, tmp_path: Path, does_not_grow: Assert
) -> None:
    path = tmp_path / "w.sock"

    def come_and_go() -> None:
        with connected(path) as session:
            session.build(file_build(dense)).predict([LARGE])  # and all that is left to the worker

    with listening(path, "--stay") as worker:
        does_not_grow(worker.pid, come_and_go)
