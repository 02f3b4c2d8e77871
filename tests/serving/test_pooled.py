"""pooled.py: what becomes of sessions when a build fails, and models that are derived."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.fake_workers import begun
from support.models import written
from support.settings import spec_of
from support.updates import SIDE, named, telling_net, variable, versions

import mindspore_lite as mslite
from mindspore_lite.errors import ClosedError, EngineError
from mindspore_lite.graph.source import ModelInput
from mindspore_lite.serving import build as building
from mindspore_lite.serving import placement, pooled
from mindspore_lite.serving.build import Built
from mindspore_lite.serving.call import Call
from mindspore_lite.serving.pooled import PooledService

X = np.ones((3, SIDE), np.float32)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return written(tmp_path / "telling.mindir", telling_net(-1))


def service_of(path: Path, *names: str) -> PooledService:
    config = variable(*names) if names else {}
    return PooledService(ModelInput("MINDIR", path), spec_of(None, config))


def weights(number: int) -> list[list[mslite.Tensor]]:
    return [[named(name, array) for name, array in versions(number).items()]]


def told(service: PooledService) -> float:
    found = {float(value) for value in np.ravel(service.run(Call([X]))[0])}
    (value,) = found
    return value


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Built]:
    """All models that a placement has built."""
    found: list[Built] = []
    build = building.build

    def seen(*args: Any, **more: Any) -> Built:
        found.append(build(*args, **more))
        return found[-1]

    monkeypatch.setattr(placement, "build", seen)
    return found


def assert_closed(built: Built) -> None:
    with pytest.raises(ClosedError):
        built.session.run([X])


def test_a_build_that_fails_at_its_end_closes_the_sessions(
    path: Path, made: list[Built], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(pooled, "Pool", refuse)
    with pytest.raises(RuntimeError, match="new thread"):
        service_of(path)
    assert made
    for built in made:
        assert_closed(built)


def test_a_session_that_cannot_be_built_closes_the_others(
    path: Path, made: list[Built], monkeypatch: pytest.MonkeyPatch
) -> None:
    build = placement.build

    def second_fails(*args: Any, **more: Any) -> Built:
        if made:
            raise EngineError("no memory")
        return build(*args, **more)

    monkeypatch.setattr(placement, "build", second_fails)
    context = mslite.Context()
    context.parallel.workers_num = 2
    context.cpu.thread_num = 2
    with pytest.raises(EngineError, match="no memory"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a machine with few cores
        PooledService(ModelInput("MINDIR", path), spec_of(context))
    (first,) = made
    assert_closed(first)


def test_a_derived_model_has_other_weights_and_leaves_the_first_as_it_is(path: Path) -> None:
    first = service_of(path, "a", "b")
    path.unlink()
    first.update_weights(weights(1))
    second = first.derived(weights(2))
    restored = second.derived([])
    assert [told(one) for one in (first, second, restored)] == [1, 2, 0]
    first.close(0.0)
    assert [told(one) for one in (second, restored)] == [2, 0]
    with pytest.raises(ClosedError, match="was closed"):
        first.derived([])
    second.close(0.0)
    restored.close(0.0)


def test_an_update_of_a_closed_service_is_refused(path: Path) -> None:
    service = service_of(path, "a", "b")
    service.close(0.0)
    with pytest.raises(ClosedError, match="the runner was closed; build it again to use it"):
        service.update_weights(weights(1))
    assert service.weights_version == 0
    assert not service.probe()


def test_a_submitted_call_ends_with_its_outputs_or_is_cancelled(path: Path) -> None:
    service = service_of(path)
    found: list[Any] = []
    cancel = service.submit(Call(service.arrays([X])), found.append)
    service.close(None)
    ((outputs,),) = found
    assert outputs.shape == (len(X), 2 * SIDE)
    assert not cancel()


def test_a_close_beside_updates_leaves_nothing_half_changed(path: Path) -> None:
    service = service_of(path, "a", "b")

    def updates() -> int:
        count = 0
        try:
            while True:
                service.update_weights(weights(count))
                count += 1
        except ClosedError:
            return count

    updating = begun(updates)
    while not service.weights_version:
        pass
    service.close(0.0)
    assert updating() == service.weights_version
