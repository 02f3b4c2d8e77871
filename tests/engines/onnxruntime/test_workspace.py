"""workspace.py: one allocator while anybody uses it; and what ONNX Runtime makes of that."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from engines.conftest import loop_model, model, tensor
from onnx import helper
from support.snapshots import snapshot

from mindspore_lite.engines.base import Group, ModelSource, Options
from mindspore_lite.engines.onnxruntime.engine import OnnxRuntimeEngine
from mindspore_lite.engines.onnxruntime.workspace import Workspace

ENGINE = OnnxRuntimeEngine()
TOGETHER = Options(group=Group(workspace=True))


class Registered:
    """Counts how often an allocator was registered."""

    def __init__(self) -> None:
        self.times = 0
        self.workspace = Workspace(self.register)

    def register(self) -> None:
        self.times += 1


def test_all_who_come_while_it_is_used_get_the_same_allocator() -> None:
    registered = Registered()
    first = registered.workspace.lease()
    second = registered.workspace.lease()
    assert first is second
    assert registered.times == 1


def test_the_last_who_goes_leaves_a_fresh_allocator_behind() -> None:
    registered = Registered()
    leases = [registered.workspace.lease(), registered.workspace.lease()]
    leases.pop()
    assert registered.times == 1
    leases.pop()
    assert registered.times == 2
    assert registered.workspace.lease() is not None


def test_a_lease_that_ends_while_another_is_taken_does_no_harm() -> None:
    """The collector may run in the middle of it, in the same thread."""
    made = []

    def register() -> None:
        made.append(len(made))
        if len(made) == 1:
            workspace._ended()

    workspace = Workspace(register)
    first = workspace.lease()
    assert made == [0, 1]
    assert workspace.lease() is first


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_begins_anew_although_the_lock_is_held() -> None:
    registered = Registered()
    held, done = threading.Event(), threading.Event()
    lease = registered.workspace.lease()

    def hold() -> None:
        with registered.workspace._lock:
            held.set()
            done.wait(120)

    holder = threading.Thread(target=hold)
    holder.start()
    assert held.wait(120)
    child = os.fork()
    if child == 0:
        ended = threading.Event()

        def take() -> None:
            if registered.workspace.lease() is not lease and registered.times >= 2:
                ended.set()

        threading.Thread(target=take, daemon=True).start()
        os._exit(0 if ended.wait(120) else 1)
    done.set()
    holder.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


FORK = """
import os, sys
import numpy as np, onnx_ir as ir
from pathlib import Path
from mindspore_lite.core.files import open_file
from mindspore_lite.core.snapshot import Snapshot
from mindspore_lite.engines.base import Group, Options, ModelSource
from mindspore_lite.engines.onnxruntime.engine import OnnxRuntimeEngine
path = Path(sys.argv[1])
source = ModelSource(Snapshot([open_file(path)]), "", lambda: ir.load(path))
options = Options(group=Group(workspace=True))
load = lambda: OnnxRuntimeEngine().load(source, options)
x = np.ones((1, 64), np.float32)
session = load()
wanted = session.run([x])[0]
child = os.fork()
own = load()
assert np.array_equal(own.run([x])[0], wanted)
own.close()
if child == 0:
    sys.exit(0)
assert np.array_equal(session.run([x])[0], wanted)
print("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_forked_child_may_have_groups_of_its_own(dense: Any) -> None:
    command = [sys.executable, "-c", FORK, str(dense.path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "child 0\n"


MEMORY = """
import gc, sys
import numpy as np, onnx_ir as ir
from pathlib import Path
from mindspore_lite.core.files import open_file
from mindspore_lite.core.snapshot import Snapshot
from mindspore_lite.engines.base import Group, Options, ModelSource
from mindspore_lite.engines.onnxruntime.engine import OnnxRuntimeEngine

def written():
    with open("/proc/self/smaps_rollup") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("Anonymous")) // 1024

paths = [Path(name) for name in sys.argv[2:]]
def source_of(path):
    return ModelSource(Snapshot([open_file(path)]), "", lambda: ir.load(path))

sources = [source_of(path) for path in paths]
options = Options(group=Group(workspace=True) if sys.argv[1] == "together" else None)
sessions = [OnnxRuntimeEngine().load(source, options) for source in sources]
inputs = [np.ones(session.info.inputs[0].shape, np.float32) for session in sessions]
before = written()
for _ in range(3):
    for session, x in zip(sessions, inputs):
        session.run([x])
used = written() - before
sessions.clear()
del session
gc.collect()
print(used, written() - before)
"""


def test_sessions_that_run_in_turn_use_the_same_memory(tmp_path: Path) -> None:
    sizes = [6 << 20, 5 << 20, 4 << 20]  # float32, so 24 MiB and less
    paths = []
    for size in sizes:
        nodes = [
            helper.make_node("Exp", ["x"], ["a"]),
            helper.make_node("Sin", ["a"], ["b"]),
            helper.make_node("Mul", ["a", "b"], ["c"]),
            helper.make_node("ReduceMax", ["c"], ["y"], keepdims=0),
        ]
        path = tmp_path / f"{size}.onnx"
        made = model(nodes, [tensor("x", [size])], [tensor("y", [])])
        path.write_bytes(made.SerializeToString())
        paths.append(str(path))

    def used(how: str) -> list[int]:
        done = subprocess.run(
            [sys.executable, "-c", MEMORY, how, *paths], capture_output=True, text=True, check=True
        )
        return [int(number) for number in done.stdout.split()]

    (apart, _), (together, left) = used("apart"), used("together")
    assert together < 0.7 * apart  # 144 of 306 MiB when it was written
    assert left < 16


def test_many_threads_get_right_results_from_the_same_allocator(tmp_path: Path) -> None:
    path = tmp_path / "loop.onnx"
    path.write_bytes(loop_model().SerializeToString())
    source = ModelSource(snapshot(path), "", lambda: ir.load(path))
    sessions = [ENGINE.load(source, TOGETHER) for _ in range(2)]
    alone = ENGINE.load(source, Options())
    rng = np.random.default_rng(0)
    xs = [rng.random((1, 64), np.float32) for _ in range(16)]
    turns = np.array(20, np.int64)
    wanted = [alone.run([turns, x])[0] for x in xs]
    wrong: list[int] = []

    def work(at: int) -> None:
        for _ in range(50):
            (found,) = sessions[at % 2].run([turns, xs[at]])
            if not np.array_equal(found, wanted[at]):
                wrong.append(at)

    threads = [threading.Thread(target=work, args=(at,)) for at in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize("cached", ["on", "off"])
def test_results_outlive_the_session_and_its_allocator(
    cached: str, dense: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSLITE_CACHE", cached)
    session = ENGINE.load(dense.source(), TOGETHER)
    (found,) = session.run([dense.x])
    session.close()
    dense.check(ENGINE.load(dense.source(), TOGETHER))  # another allocator by now
    np.testing.assert_allclose(found, dense.wanted, rtol=1e-5)


def test_a_model_that_cannot_be_loaded_leaves_the_allocator_to_nobody(tmp_path: Path) -> None:
    from mindspore_lite.engines.onnxruntime import engine

    made = model(
        [helper.make_node("NoSuchOp", ["x"], ["y"])], [tensor("x", [1])], [tensor("y", [1])]
    )
    path = tmp_path / "bad.onnx"
    path.write_bytes(made.SerializeToString())
    with pytest.raises(engine.EngineError) as caught:
        ENGINE.load(ModelSource(snapshot(path), "", lambda: ir.load(path)), TOGETHER)
    del caught  # its traceback holds the frames that hold the lease
    assert engine._workspace._lease() is None
