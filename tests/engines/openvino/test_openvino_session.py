"""Sessions of OpenVINO: whose memory is whose, many callers, stopping, closing, forking."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import onnx
import pytest
from support.onnx_graphs import model, node

from mindspore_lite.engines.base import ModelSource, Options, Stop
from mindspore_lite.engines.openvino.engine import OpenVinoEngine
from mindspore_lite.engines.openvino.session import OpenVinoSession
from mindspore_lite.errors import (
    ClosedError,
    InputError,
    LiteError,
    ShapeError,
    StoppedError,
)

ENGINE = OpenVinoEngine()
MakeSource = Callable[[onnx.ModelProto], ModelSource]
FLOAT = onnx.TensorProto.FLOAT
WAYS = pytest.mark.parametrize(
    "options",
    [Options(), Options(threads=2), Options(streams=2), Options(streams=2, caller_computes=True)],
    ids=["one stream", "two threads", "two streams", "in the caller"],
)


class Spy:
    """Stands in front of the infer requests of a session and is told of each run."""

    def __init__(self, session: OpenVinoSession, before_run: Callable[[], None]) -> None:
        inner = session._start

        def start(native: Any, queued: bool) -> None:
            before_run()
            inner(native, queued)

        session._start = start  # type: ignore[method-assign]


def test_inputs_are_not_kept_after_a_run(dense: Any) -> None:
    session = ENGINE.load(dense.source(), Options())
    x = dense.x.copy()
    references = sys.getrefcount(x)
    for _ in range(3):
        session.run([x])
    assert sys.getrefcount(x) == references
    (request,) = session._native.free  # type: ignore[union-attr]
    assert request.native.get_input_tensor(0).data.ctypes.data != x.ctypes.data


@WAYS
def test_many_callers_get_their_own_results(dense: Any, options: Options) -> None:
    session = ENGINE.load(dense.source(), options)

    def one(scale: int) -> bool:
        (y,) = session.run([dense.x * scale], Stop() if scale % 2 else None)
        return np.allclose(y, dense.x * scale @ dense.w + 1, rtol=1e-4)

    with ThreadPoolExecutor(8) as callers:
        assert all(callers.map(one, range(200)))
    assert 1 <= len(session._native.free) <= 8  # type: ignore[union-attr]


def test_two_callers_never_have_the_same_request(dense: Any) -> None:
    session = ENGINE.load(dense.source(), Options(streams=2))
    both = threading.Barrier(2, timeout=120)
    inner = session._start
    seen = []

    def start(native: Any, queued: bool) -> None:
        seen.append(native)
        both.wait()  # two runs are under way
        inner(native, queued)

    session._start = start  # type: ignore[method-assign]
    with ThreadPoolExecutor(2) as callers:
        list(callers.map(lambda _: dense.check(session), range(2)))
    assert seen[0] is not seen[1]


def test_a_run_that_fails_leaves_no_request_behind(dense: Any) -> None:
    session = ENGINE.load(dense.source(), Options())
    with pytest.raises(ShapeError, match=r"cannot take the shapes {'x': \[2, 3\]}") as caught:
        session.run([np.ones((2, 3), np.float32)])
    assert caught.value.__cause__ is not None
    assert "src/" not in str(caught.value)
    assert session._native.free == []  # type: ignore[union-attr]
    dense.check(session)


def test_wrong_inputs_are_told(dense: Any) -> None:
    session = ENGINE.load(dense.source(), Options())
    with pytest.raises(InputError, match=r"given 2 inputs, wanted 1: \['x'\]"):
        session.run([dense.x, dense.x])
    with pytest.raises(LiteError, match=r"cannot take|could not run"):
        session.run([dense.x.astype(np.float64)])


# --- stopping ---


def long_chain(count: int = 200) -> onnx.ModelProto:
    """Many products, one after the other: a run that can be stopped between two of them."""
    nodes = [node("MatMul", [f"v{at}", "w"], [f"v{at + 1}"]) for at in range(count)]
    ends = [("v0", FLOAT, [256, 256])], [(f"v{count}", FLOAT, [256, 256])]
    return model(nodes, *ends, w=np.eye(256, dtype=np.float32))


@pytest.mark.parametrize("streams", [1, 2])
def test_stop_ends_a_run_under_way_and_no_other(streams: int, source_of: MakeSource) -> None:
    session = ENGINE.load(source_of(long_chain()), Options(streams=streams))
    stop, x = Stop(), np.ones((256, 256), np.float32)
    inner = session._start

    def start(native: Any, queued: bool) -> None:
        inner(native, queued)
        stop.fire()  # it has just begun

    session._start = start  # type: ignore[method-assign]
    with pytest.raises(StoppedError) as caught:
        session.run([x], stop)
    assert caught.value.__cause__ is not None
    session._start = inner  # type: ignore[method-assign]
    (y,) = session.run([x], Stop())
    np.testing.assert_array_equal(y, x)


def test_a_late_stop_does_not_end_the_next_run_on_the_same_request(dense: Any) -> None:
    session, stop = ENGINE.load(dense.source(), Options(streams=2)), Stop()
    session.run([dense.x], stop)
    Spy(session, stop.fire)
    (y,) = session.run([dense.x], Stop())
    np.testing.assert_allclose(y, dense.wanted, rtol=1e-5)


def test_an_interrupt_does_not_leave_a_run_on_memory_that_goes(source_of: MakeSource) -> None:
    session = ENGINE.load(source_of(long_chain()), Options(streams=2))
    natives, inner = [], session._start

    def start(native: Any, queued: bool) -> None:
        natives.append(native)
        inner(native, queued)
        raise KeyboardInterrupt

    session._start = start  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        session.run([np.ones((256, 256), np.float32)])
    with pytest.raises(RuntimeError, match="canceled"):
        natives[0].wait_for(0)  # one that goes on would be False


# --- closing and forking ---


def test_close_leaves_a_run_under_way_alone(dense: Any) -> None:
    session = ENGINE.load(dense.source(), Options(streams=2))
    entered, closed = threading.Event(), threading.Event()

    def wait_for_close() -> None:
        entered.set()
        assert closed.wait(120)

    Spy(session, wait_for_close)
    with ThreadPoolExecutor(1) as caller:
        running = caller.submit(session.run, [dense.x])
        assert entered.wait(120)
        session.close()
        session.close()
        gc.collect()
        closed.set()
        np.testing.assert_allclose(running.result()[0], dense.wanted, rtol=1e-5)
    with pytest.raises(ClosedError, match="closed"):
        session.run([dense.x])


FORK = """
import gc, os, sys
import numpy as np, onnx_ir as ir
from pathlib import Path
from mindspore_lite.core.files import open_file
from mindspore_lite.core.snapshot import Snapshot
from mindspore_lite.engines.base import Options, ModelSource
from mindspore_lite.engines.openvino.engine import OpenVinoEngine
from mindspore_lite.errors import EngineError
path = Path(sys.argv[1])
source = ModelSource(Snapshot([open_file(path)]), "", lambda: ir.load(path))
load = lambda: OpenVinoEngine().load(source, Options(streams=2))
x = np.ones((1, 64), np.float32)
session = load()
wanted = session.run([x])[0]
child = os.fork()
if child == 0:
    for attempt in (lambda: session.run([x]), load):
        try:
            attempt()
        except EngineError as exc:
            assert "spawn" in str(exc), exc
        else:
            sys.exit(3)
    session.close()  # none of these may wait for threads that stayed with the parent
    del session
    gc.collect()
    sys.exit(0)
assert np.array_equal(session.run([x])[0], wanted)
print("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_the_child_of_a_fork_is_told(dense: Any) -> None:
    command = [sys.executable, "-c", FORK, str(dense.path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert (done.stdout, done.returncode) == ("child 0\n", 0), done.stderr


def test_a_bound_caller_computes_on_his_core(dense: Any) -> None:
    before = os.sched_getaffinity(0)
    session = ENGINE.load(dense.source(), Options(cores=(max(before),)))
    seen: list[set[int]] = []
    Spy(session, lambda: seen.append(os.sched_getaffinity(0)))
    dense.check(session)
    assert seen == [{max(before)}]
    assert os.sched_getaffinity(0) == before


def test_an_input_that_nobody_uses_is_taken(source_of: MakeSource) -> None:
    made = model(
        [node("Neg", ["x"], ["y"])],
        [("spare", onnx.TensorProto.INT64, [2]), ("x", FLOAT, [2])],
        [("y", FLOAT, [2])],
    )
    session = ENGINE.load(source_of(made), Options())
    assert [(i.name, i.dtype.name, i.shape) for i in session.info.inputs] == [
        ("spare", "int64", (2,)),
        ("x", "float32", (2,)),
    ]
    (y,) = session.run([np.zeros(2, np.int64), np.ones(2, np.float32)])
    np.testing.assert_array_equal(y, [-1, -1])


def test_memory_of_a_request_does_not_grow_with_the_shapes_it_saw(dense: Any) -> None:
    session = ENGINE.load(dense.source(), Options(streams=2))
    for rows in range(1, 40):
        x = np.ones((rows, 64), np.float32)
        (y,) = session.run([x])
        np.testing.assert_allclose(y, x @ dense.w + 1, rtol=1e-5)
    assert len(session._native.free) == 1  # type: ignore[union-attr]


def test_a_loop_is_computed(endless: ModelSource) -> None:
    session = ENGINE.load(endless, Options())
    x = np.ones((1, 64), np.float32)
    (y,) = session.run([np.array(3), x])
    np.testing.assert_allclose(y, x / 8)
