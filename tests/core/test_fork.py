"""fork.py: hooks run in their order, and a forked child finds locks free."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.models import built
from support.running import DATA

import mindspore_lite
from mindspore_lite.core import fork
from mindspore_lite.core.fork import ForkLock

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
X = np.ones(3, np.float32)


def in_child(lock: ForkLock, doing: Callable[[], Any]) -> int:
    """The exit code of a child that does something, forked while another thread holds the lock."""
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            done.wait(120)

    holder = threading.Thread(target=hold)
    holder.start()
    assert held.wait(120)
    child = os.fork()
    if child == 0:  # the parent's test run must not go on in here
        ended = threading.Event()

        def run() -> None:
            doing()
            ended.set()

        threading.Thread(target=run, daemon=True).start()
        os._exit(0 if ended.wait(120) else 1)
    done.set()
    holder.join()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_it_keeps_others_out() -> None:
    lock, inside, most = ForkLock(), [], []

    def enter() -> None:
        for _ in range(1000):
            with lock:
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=enter) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(most) == {1}
    assert len(most) == 4000


def test_a_child_finds_it_free_and_the_parent_as_it_was() -> None:
    lock = ForkLock()

    def enter_twice() -> None:
        for _ in range(2):
            with lock:
                pass

    assert in_child(lock, enter_twice) == 0
    enter_twice()


def test_a_model_of_any_rank_that_was_compiling_at_a_fork_is_an_error_in_the_child() -> None:
    """Not a wait for the thread of the parent that compiles."""
    with built(DATA / "nets/dyn_rank.mindir") as model:
        model.predict([X])

        def use() -> None:
            with pytest.raises(RuntimeError, match="made before this process was forked"):
                model.predict([X])
            model.close()

        assert model._service is not None
        assert in_child(model._service.built.session._lock, use) == 0  # type: ignore[attr-defined]
        model.predict([X])


def test_hooks_run_in_their_order_though_one_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []

    def fail() -> None:
        called.append("fails")
        raise ValueError("a hook that fails")

    monkeypatch.setattr(fork, "_HOOKS", [])
    for hook in (lambda: called.append("first"), fail, lambda: called.append("last")):
        fork.after_fork_in_child(hook)
    with pytest.raises(ValueError, match="a hook that fails"):
        fork._run_hooks()
    assert called == ["first", "fails", "last"]


def test_one_module_alone_registers_with_python() -> None:
    package = Path(mindspore_lite.__file__).parent
    found = [path for path in package.rglob("*.py") if "register_at_fork" in path.read_text()]
    assert [str(path.relative_to(package)) for path in found] == ["core/fork.py"]
