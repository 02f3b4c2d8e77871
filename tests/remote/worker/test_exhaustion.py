"""A worker that runs out of something: a clear error, nothing lost, and later all is well."""

from __future__ import annotations

import itertools
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from support.fake_engine import LIMIT_S, wait_for
from support.models import DIGITS, dense_net, written
from support.workers import child, file_build, process

from mindspore_lite.errors import LiteError, ResourceError, WireError
from mindspore_lite.remote.wire.bodies import MODEL, RUNNER, Build
from mindspore_lite.remote.wire.client import Model, WireSession
from mindspore_lite.serving.call import Call

LARGE = np.zeros((2048, 1, 8, 8), np.float32)  # more than fits into a frame


@contextmanager
def limited(pid: int, what: int, soft: int) -> Iterator[None]:
    """Take something from a process for a while."""
    before = resource.prlimit(pid, what)
    resource.prlimit(pid, what, (soft, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, what, before)


def first_free(pid: int) -> int:
    """The number that the next descriptor of a process will have."""
    used = {int(name) for name in os.listdir(f"/proc/{pid}/fd")}
    return next(number for number in itertools.count() if number not in used)


def works(session: WireSession, model: Model) -> None:
    assert model.predict([LARGE])[0].shape == (2048, 10)
    session.build(file_build(DIGITS)).close()


def test_without_descriptors_lanes_are_refused_and_later_welcome() -> None:
    with child() as (worker, session):
        model = session.build(file_build(DIGITS))
        held = session.lane()
        with limited(worker.pid, resource.RLIMIT_NOFILE, first_free(worker.pid)):
            for _ in range(3):
                with pytest.raises(ResourceError, match="no file descriptor left"):
                    session.lane()
            # what is there goes on working
            held.send_predict(model.number, ["x"], Call([LARGE[:1]]))
            assert held.predicted()[0].shape == (1, 10)
        held.give_back()
        works(session, model)
        session.close()
        assert worker.wait(LIMIT_S) == 0


def test_without_descriptors_there_is_no_memory_to_share_until_there_are_again() -> None:
    with child() as (worker, session):
        model = session.build(file_build(DIGITS))
        refused = pytest.raises(ResourceError, match=r"shared memory cannot be had.*ulimit -n")
        with limited(worker.pid, resource.RLIMIT_NOFILE, first_free(worker.pid)), refused:
            model.predict([LARGE])
        works(session, model)


@pytest.mark.parametrize("kind", [MODEL, RUNNER])
def test_without_descriptors_a_build_fails_and_the_next_one_works(
    kind: int, tmp_path: Path
) -> None:
    with child() as (worker, session):
        works(session, session.build(file_build(DIGITS)))
        path = written(tmp_path / "m.mindir", dense_net())
        session.build(file_build(path, kind=kind)).close()  # a cache that fails is only warned of
        free = first_free(worker.pid)
        for more in range(4):  # it goes a little further each time
            with limited(worker.pid, resource.RLIMIT_NOFILE, free + more):
                try:
                    session.build(file_build(path, kind=kind)).close()
                except LiteError as exc:
                    assert "Too many open files" in str(exc), exc
        files = len(os.listdir(f"/proc/{worker.pid}/fd"))
        for _ in range(3):
            session.build(file_build(path, kind=kind)).close()
        wait_for(lambda: len(os.listdir(f"/proc/{worker.pid}/fd")) <= files)


def test_when_shared_memory_is_full_there_is_a_clear_error_and_later_an_answer() -> None:
    with child() as (worker, session):
        model = session.build(file_build(DIGITS))
        with limited(worker.pid, resource.RLIMIT_FSIZE, 1 << 16):
            with pytest.raises(ResourceError, match=r"shared memory cannot be had.*send smaller"):
                model.predict([LARGE])
            assert model.predict([LARGE[:10]])[0].shape == (10, 10)
        works(session, model)


def test_a_block_that_no_machine_has_is_refused() -> None:
    with child() as (_, session):
        model = session.build(file_build(DIGITS))
        with pytest.raises(ResourceError, match="bytes of memory are free"):
            session.lane()._allocated(1 << 36)
        with pytest.raises(WireError, match="wanted 1 to"):
            session.lane()._allocated(1 << 40)
        works(session, model)


def test_content_that_is_too_large_for_the_machine_is_refused(tmp_path: Path) -> None:
    with child() as (worker, session):
        model = session.build(file_build(DIGITS))
        refused = pytest.raises(ResourceError, match="shared memory cannot be had")
        with limited(worker.pid, resource.RLIMIT_FSIZE, 1 << 20), refused:
            session.build(Build(MODEL, 0), [np.zeros(1 << 22, np.uint8)])
        works(session, model)


@pytest.mark.parametrize("left", range(5))
def test_a_worker_that_cannot_begin_says_why(left: int, tmp_path: Path) -> None:
    code = f"""
import os, resource
from mindspore_lite.cli import main, worker
import mindspore_lite.remote.worker.start
number = os.dup(0)
os.close(number)
resource.setrlimit(resource.RLIMIT_NOFILE, (number + {left},) * 2)
main.main()
"""
    path = tmp_path / "w.sock"
    with process(code, "worker", "--socket", path) as worker:
        _, err = worker.communicate(timeout=LIMIT_S)
        assert worker.returncode == 1
        assert err.startswith("mslite: ")
        assert "Too many open files" in err
        assert err.count("\n") == 1, err
        assert not path.exists()
