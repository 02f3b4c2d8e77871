"""serving/placement.py: which sessions are made for workers, and who shares them."""

from __future__ import annotations

import dataclasses
import warnings
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.mindir_builder import Net, encode
from support.models import DIGITS, dense_net, written
from support.settings import spec_of

import mindspore_lite as mslite
from mindspore_lite.core.cores import Core, Cores
from mindspore_lite.engines.base import Options
from mindspore_lite.errors import ClosedError, EngineError
from mindspore_lite.graph.source import ModelInput
from mindspore_lite.serving import placement
from mindspore_lite.serving.build import Built, build
from mindspore_lite.serving.placement import Placed, place
from mindspore_lite.settings.spec import Spec

X = np.zeros((1, 1, 8, 8), np.float32)


@pytest.fixture
def eight_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine of eight cores, whatever this one has; nothing is bound in these tests."""
    real = placement.cores.usable()
    fake = dataclasses.replace(
        real,
        ids=tuple(range(8)),
        limit=8,
        physical=8,
        nodes=(tuple(range(8)),),
        topology=tuple(Core(number, (number,), 0) for number in range(8)),
    )
    assert isinstance(fake, Cores)
    monkeypatch.setattr(placement.cores, "usable", lambda: fake)


def placed(workers: int = 0, threads: int = 0, path: Path = DIGITS, **cpu: Any) -> Placed:
    context = mslite.Context()
    context.parallel.workers_num = workers
    context.cpu.thread_num = threads
    for name, value in cpu.items():
        setattr(context.cpu, name, value)
    return place(ModelInput("MINDIR", path, beside=None), spec_of(context))


def sessions(found: Placed) -> list[Any]:
    """All different sessions."""
    return list({id(s): s for p in found.places for _, s in p.lanes}.values())


def options(session: Any) -> Options:
    """What a session was made with, as ONNX Runtime was told."""
    native = session._first._native.session.get_session_options()
    return Options(native.intra_op_num_threads, native.inter_op_num_threads)


def close(found: Placed) -> None:
    for session in sessions(found):
        session.close()


@pytest.mark.usefixtures("eight_cores")
def test_workers_of_one_thread_share_one_session() -> None:
    found = placed(workers=8, threads=1)
    (session,) = sessions(found)
    assert len(found.places) == 8
    assert all(p.lanes == ((8, session),) for p in found.places)
    assert [p.index for p in found.places] == list(range(8))
    assert options(session).threads == 1
    close(found)


@pytest.mark.usefixtures("eight_cores")
def test_workers_of_several_threads_have_a_session_each_on_the_same_pages() -> None:
    found = placed(workers=4, threads=2)
    made = sessions(found)
    assert len(made) == 4
    assert all(session.info.mapped for session in made)
    assert {options(session).threads for session in made} == {2}
    first = made[0].run([X])
    for session in made[1:]:
        np.testing.assert_array_equal(session.run([X])[0], first[0])
    close(found)


@pytest.mark.usefixtures("eight_cores")
def test_an_automatic_layout_has_wide_sessions_for_as_many_as_there_is_room_for() -> None:
    found = placed()
    layout = found.layout
    assert (layout.workers, layout.threads, layout.widths) == (8, 1, (8, 4, 2, 1))
    for worker in found.places:
        lanes = [lanes for lanes, _ in worker.lanes]
        widths = [options(session).threads for _, session in worker.lanes]
        assert lanes == [layout.lanes(width) for width in widths]
        assert widths == [w for w in layout.widths if worker.index < layout.lanes(w)]
    assert len(sessions(found)) == 1 + 2 + 4 + 1
    narrow = {id(p.lanes[-1][1]) for p in found.places}
    assert len(narrow) == 1, "all share the session of one thread"
    close(found)


@pytest.mark.usefixtures("eight_cores")
@pytest.mark.parametrize(("workers", "threads"), [(0, 0), (4, 2), (3, 1)])
def test_a_model_that_cannot_be_mapped_is_loaded_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int, threads: int
) -> None:
    """Its weights would be there once per session."""
    monkeypatch.setenv("MSLITE_CACHE", "0")
    path = written(tmp_path / "m.mindir", large_dense())
    found = placed(workers, threads, path)
    (session,) = sessions(found)
    assert not session.info.mapped
    assert len(found.places) == found.layout.workers
    assert found.layout.widths == (found.layout.threads,)
    assert options(session).threads == found.layout.threads
    close(found)


@pytest.mark.usefixtures("eight_cores")
def test_bound_workers_of_several_threads_never_share_a_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its threads would sit on the cores of one of them, so the weights are copied instead."""
    monkeypatch.setenv("MSLITE_CACHE", "0")
    asked: list[Options] = []

    def unbound(given: ModelInput, spec: Spec, options: Options, **more: Any) -> Built:
        asked.append(options)
        unbound_options = dataclasses.replace(options, cores=())  # there may be no 8 here
        return build(given, spec, unbound_options, **more)

    monkeypatch.setattr(placement, "build", unbound)
    path = written(tmp_path / "m.mindir", large_dense())
    with pytest.warns(UserWarning, match="each of 2 bound workers of 2 threads has its own copy"):
        found = placed(2, 2, path, thread_affinity_mode=1)
    assert [options.cores for options in asked] == list(found.layout.cores)
    first, second = sessions(found)
    assert [p.lanes[-1].session for p in found.places] == [first, second]
    close(found)


def large_dense() -> bytes:
    """With weights that are kept outside of the graph."""
    net = Net()
    x = net.input("x", (2, 256))
    weight = net.weight("w", np.ones((256, 256), np.float32))
    return encode(net.model(net.call("MatMulExt", x, weight)))


def test_a_session_of_bound_workers_leaves_the_first_core_to_the_caller() -> None:
    found = placed(1, 1, thread_affinity_mode=1)
    (worker,) = found.places
    assert worker.cores == found.layout.cores[0]
    assert len(worker.cores) == 1
    assert worker.node == found.layout.nodes[0]
    close(found)


def test_a_warning_of_the_layout_is_passed_on() -> None:
    with pytest.warns(UserWarning, match="workers of 1 threads make"):
        close(placed(workers=placement.cores.usable().limit + 1, threads=1))


def test_inter_op_threads_need_as_many_threads() -> None:
    with pytest.raises(EngineError, match="inter_op_parallel_num is 4, wanted at most thread_num"):
        placed(1, 2, inter_op_parallel_num=4)


@pytest.mark.usefixtures("eight_cores")
def test_inter_op_threads_alone_make_threads() -> None:
    found = placed(1, 0, inter_op_parallel_num=2)
    assert found.layout.threads == 2
    assert options(sessions(found)[0]) == Options(2, 2)
    close(found)


def test_a_model_that_fails_to_load_is_tried_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The original tries once per worker."""
    tried = []
    build = placement.build
    monkeypatch.setattr(placement, "build", lambda *a, **k: tried.append(a) or build(*a, **k))
    path = written(tmp_path / "broken.mindir", dense_net()[:-10])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        with pytest.raises(RuntimeError):
            placed(4, 2, path)
    assert len(tried) == 1


# --- weights that may change ----------------------------------------------------------------------


def test_the_sessions_of_a_fixed_model_are_not_made_to_change() -> None:
    found = placed(workers=1, threads=1)
    assert found.changing is None
    close(found)


@pytest.mark.usefixtures("eight_cores")
def test_all_sessions_change_at_once_and_workers_keep_theirs(tmp_path: Path) -> None:
    path = written(tmp_path / "m.mindir", large_dense())
    context = mslite.Context()
    context.parallel.workers_num, context.cpu.thread_num = 3, 2
    found = place(ModelInput("MINDIR", path), spec_of(context, None, "w"))
    made, changing = sessions(found), found.changing
    assert changing is not None
    assert made == changing.sessions
    assert len(made) == 3
    x = np.ones((2, 256), np.float32)
    for factor in (2, 3):
        changing.change({"w": np.full((256, 256), factor, np.float32)})
        for session in (*made, changing.quick):
            assert np.unique(session.run([x])[0]) == 256 * factor
    assert found.built is changing.built
    assert (found.built.version, found.built.options.threads) == (2, 2)
    close(found)
    with pytest.raises(ClosedError):
        changing.quick.run([x])


@pytest.mark.usefixtures("eight_cores")
def test_a_model_with_variable_weights_has_one_wide_session(tmp_path: Path) -> None:
    """Each packs these weights for itself."""
    path = written(tmp_path / "m.mindir", large_dense())
    found = place(ModelInput("MINDIR", path), spec_of(None, None, "w"))
    assert (found.layout.workers, found.layout.widths) == (8, (8, 1))
    assert len(sessions(found)) == 2
    close(found)


@pytest.mark.usefixtures("eight_cores")
def test_a_session_that_fails_to_load_changes_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path / "m.mindir", large_dense())
    context = mslite.Context()
    context.parallel.workers_num, context.cpu.thread_num = 2, 2
    found = place(ModelInput("MINDIR", path), spec_of(context, None, "w"))
    assert found.changing is not None
    update, calls = placement.updated, []

    def fails_late(*args: Any) -> Built:
        calls.append(1)
        if len(calls) == 2:
            raise EngineError("no memory")
        return update(*args)

    monkeypatch.setattr(placement, "updated", fails_late)
    with pytest.raises(EngineError, match="no memory"):
        found.changing.change({"w": np.zeros((256, 256), np.float32)})
    x = np.ones((2, 256), np.float32)
    assert [float(np.unique(s.run([x])[0])[0]) for s in sessions(found)] == [256, 256]
    assert found.built.version == 0
    close(found)


def test_memory_is_given_back_when_the_sessions_before_have_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path / "m.mindir", large_dense())
    context = mslite.Context()
    context.parallel.workers_num, context.cpu.thread_num = 1, 1
    found = place(ModelInput("MINDIR", path), spec_of(context, None, "w"))
    assert found.changing is not None
    before = weakref.ref(found.built.session)
    was_gone = []
    monkeypatch.setattr(placement.machine, "trim_heap", lambda: was_gone.append(before() is None))
    found.changing.change({"w": np.ones((256, 256), np.float32)})
    assert was_gone[-1]
    close(found)
