"""The CPU engine: right results, stopping, binding, closing, forking, readable errors."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.snapshots import snapshot

from mindspore_lite.core.budget import Budget
from mindspore_lite.engines.base import ModelSource, Options, Stop
from mindspore_lite.engines.onnxruntime import engine as engine_module
from mindspore_lite.engines.onnxruntime.engine import OnnxRuntimeEngine, OrtSession, readable
from mindspore_lite.errors import (
    ClosedError,
    EngineError,
    InputError,
    LiteError,
    ModelFileError,
    RequestTimeoutError,
    ShapeError,
    StoppedError,
)

ENGINE = OnnxRuntimeEngine()
LIMIT_S = 120.0  # for waits that end at once when all is well
CACHES = pytest.mark.parametrize("cached", ["on", "off"])
MakeSource = Callable[[onnx.ModelProto], ModelSource]


def tensor(
    name: str, shape: list[Any] | None, kind: int = TensorProto.FLOAT
) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def model(nodes: list[Any], inputs: list[Any], outputs: list[Any], **weights: Any) -> Any:
    tensors = [onnx.numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "graph", inputs, outputs, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


class Spy:
    """Stands in front of a native session and is told of each run."""

    def __init__(self, session: OrtSession, before_run: Callable[[], None]) -> None:
        assert session._native is not None
        self._inner = session._native
        self._before_run = before_run
        session._native = session._native._replace(run=self.run)

    def run(self, *args: Any) -> Any:
        self._before_run()
        return self._inner.run(*args)


def in_new_process(code: str, *args: object) -> str:
    command = [sys.executable, "-c", code, *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


# --- what a session is ---


@CACHES
def test_session_describes_itself_and_computes(
    cached: str, dense: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSLITE_CACHE", cached)
    for _ in range(2):
        session = ENGINE.load(dense.source(), Options())
        (x,), (y,) = session.info.inputs, session.info.outputs
        assert (x.name, x.dtype, x.shape) == ("x", np.float32, (-1, 64))
        assert (y.name, y.dtype, y.shape) == ("y", np.float32, (-1, 64))
        assert session.info.metadata == {"author": "tests"}
        dense.check(session)


@CACHES
def test_skeleton_is_the_graph_without_large_weights(
    cached: str, dense: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSLITE_CACHE", cached)
    skeleton = ENGINE.load(dense.source(), Options()).skeleton()
    assert len(skeleton) < 2000
    graph = onnx.shape_inference.infer_shapes(onnx.load_model_from_string(skeleton)).graph
    assert [node.op_type for node in graph.node] == ["MatMul", "Add"]
    assert "product" in [value.name for value in graph.value_info]


@CACHES
def test_weights_read_from_a_file_of_their_own(
    cached: str, tmp_path: Path, dense: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSLITE_CACHE", cached)
    proto = onnx.load(dense.path)
    onnx.save(proto, dense.path, save_as_external_data=True, location="w", size_threshold=0)
    assert (tmp_path / "w").exists()
    dense.check(ENGINE.load(dense.source(), Options()))


@CACHES
@pytest.mark.parametrize("declared", [[], [tensor("spare", [32, 32])]], ids=["plain", "an input"])
def test_a_weight_that_nobody_uses_does_no_harm(
    cached: str, declared: list[Any], source_of: MakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSLITE_CACHE", cached)
    made = model(
        [helper.make_node("Neg", ["x"], ["y"])],
        [tensor("x", [2]), *declared],
        [tensor("y", [2])],
        spare=np.ones((32, 32), np.float32),
    )
    made.ir_version = 3  # where weights are declared as inputs, too
    session = ENGINE.load(source_of(made), Options())
    assert [info.name for info in session.info.inputs] == ["x"]
    np.testing.assert_array_equal(session.run([np.ones(2, np.float32)])[0], [-1, -1])


@CACHES
def test_bfloat16_weights(
    cached: str, source_of: MakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSLITE_CACHE", cached)
    made = model(
        [
            helper.make_node("Cast", ["w"], ["w32"], to=TensorProto.FLOAT),
            helper.make_node("Add", ["x", "w32"], ["y"]),
        ],
        [tensor("x", [1024])],
        [tensor("y", [1024])],
    )
    made.graph.initializer.append(
        helper.make_tensor("w", TensorProto.BFLOAT16, [1024], np.full(1024, 1.5, np.float32))
    )
    (y,) = ENGINE.load(source_of(made), Options()).run([np.ones(1024, np.float32)])
    assert set(y) == {2.5}


def test_scalars_pass_and_strings_are_refused(source_of: MakeSource) -> None:
    turned = model(
        [helper.make_node("Not", ["b"], ["c"])],
        [tensor("b", [], TensorProto.BOOL)],
        [tensor("c", [], TensorProto.BOOL)],
    )
    assert not ENGINE.load(source_of(turned), Options()).run([np.array(True)])[0]
    words = model(
        [helper.make_node("Identity", ["s"], ["t"])],
        [tensor("s", [2], TensorProto.STRING)],
        [tensor("t", [2], TensorProto.STRING)],
    )
    with pytest.raises(EngineError, match="input 's' holds strings"):
        ENGINE.load(source_of(words), Options())


@pytest.mark.filterwarnings("error")  # the cache is not to be blamed
def test_types_numpy_does_not_know_are_refused_at_load(source_of: MakeSource) -> None:
    kind = TensorProto.FLOAT8E4M3FN
    made = model(
        [helper.make_node("Cast", ["x"], ["y"], to=kind)],
        [tensor("x", [4])],
        [tensor("y", [4], kind)],
    )
    with pytest.raises(EngineError, match="output 'y' is a tensor"):
        ENGINE.load(source_of(made), Options())


# --- outputs own their memory ---


def pass_through_models() -> dict[str, Any]:
    ends = [tensor("x", [32, 32])], [tensor("y", [32, 32])]
    w = np.full((32, 32), 3, np.float32)
    branch = [
        helper.make_graph(
            [helper.make_node("Identity", [src], [out])], out, [], [tensor(out, [32, 32])]
        )
        for src, out in (("x", "a"), ("w", "b"))
    ]
    sign = helper.make_node("ReduceMax", ["x"], ["top"], keepdims=0)
    cond = helper.make_node("Cast", ["top"], ["c"], to=TensorProto.BOOL)
    either = helper.make_node("If", ["c"], ["y"], then_branch=branch[0], else_branch=branch[1])
    other = helper.make_node("If", ["c"], ["y"], then_branch=branch[1], else_branch=branch[0])
    reshape = helper.make_node("Reshape", ["x", "shape"], ["y"])
    return {
        "input": model([helper.make_node("Identity", ["x"], ["y"])], *ends),
        "constant": model([helper.make_node("Identity", ["w"], ["y"])], *ends, w=w),
        "reshaped": model([reshape], *ends, shape=np.array([32, 32])),
        "branch input": model([sign, cond, either], *ends, w=w),
        "branch constant": model([sign, cond, other], *ends, w=w),
    }


@CACHES
@pytest.mark.parametrize("kind", list(pass_through_models()))
def test_outputs_alias_neither_inputs_nor_weights(
    cached: str, kind: str, source_of: MakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSLITE_CACHE", cached)
    session = ENGINE.load(source_of(pass_through_models()[kind]), Options())
    x = np.ones((32, 32), np.float32)
    (first,) = session.run([x])
    kept = first.copy()
    assert not np.shares_memory(first, x)
    first[...] = -1  # writable, and nobody else's
    (second,) = session.run([x])
    assert np.array_equal(second, kept)
    assert np.array_equal(x, np.ones((32, 32)))


@CACHES
def test_outputs_stay_after_the_next_run_and_after_close(
    cached: str, dense: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSLITE_CACHE", cached)
    session = ENGINE.load(dense.source(), Options())
    (y,) = session.run([dense.x])
    for scale in range(50):
        session.run([dense.x * scale])
    session.close()
    del session
    gc.collect()
    np.testing.assert_allclose(y, dense.wanted, rtol=1e-5)


# --- threads ---


@pytest.mark.parametrize("options", [Options(), Options(threads=2), Options(2, inter_op_threads=2)])
def test_many_callers_get_their_own_results(dense: Any, options: Options) -> None:
    session = ENGINE.load(dense.source(), options)

    def one(scale: int) -> bool:
        (y,) = session.run([dense.x * scale], Stop() if scale % 2 else None)
        return np.allclose(y, dense.x * scale @ dense.w + 1, rtol=1e-4)

    with ThreadPoolExecutor(8) as callers:
        assert all(callers.map(one, range(200)))


def test_thread_counts_reach_the_runtime(dense: Any) -> None:
    session = ENGINE.load(dense.source(), Options(threads=3, inter_op_threads=2))
    settings = session._native.session.get_session_options()  # type: ignore[attr-defined]
    assert (settings.intra_op_num_threads, settings.inter_op_num_threads) == (3, 2)
    assert settings.execution_mode.name == "ORT_PARALLEL"


# --- binding ---


def thread_masks() -> dict[str, set[int]]:
    masks = {}
    for task in os.listdir("/proc/self/task"):
        try:
            masks[task] = os.sched_getaffinity(int(task))
        except OSError:  # ended meanwhile
            continue
    return masks


def test_caller_is_bound_inside_run_and_restored_after(dense: Any) -> None:
    before = os.sched_getaffinity(0)
    core = max(before)
    session = ENGINE.load(dense.source(), Options(cores=(core,)))
    assert os.sched_getaffinity(0) == before
    seen: list[set[int]] = []
    Spy(session, lambda: seen.append(os.sched_getaffinity(0)))  # type: ignore[arg-type]
    dense.check(session)
    session.run([dense.x], Stop())
    assert seen == [{core}, {core}]
    with pytest.raises(LiteError):
        session.run([np.ones(3, np.float32)])
    assert os.sched_getaffinity(0) == before


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
@pytest.mark.parametrize("flip", [False, True])
def test_threads_of_the_runtime_are_bound_to_the_other_cores(dense: Any, flip: bool) -> None:
    cores = tuple(sorted(os.sched_getaffinity(0), reverse=flip)[:2])
    known = thread_masks().keys()
    session = ENGINE.load(dense.source(), Options(threads=2, cores=cores))
    give_up_s = time.monotonic() + 120
    while time.monotonic() < give_up_s:  # each thread binds itself when it starts
        new = [mask for task, mask in thread_masks().items() if task not in known]
        if new == [{cores[1]}]:
            break
        os.sched_yield()
    assert new == [{cores[1]}]
    dense.check(session)


def test_cores_outside_the_mask_are_refused(dense: Any) -> None:
    allowed = sorted(os.sched_getaffinity(0))
    with pytest.raises(ValueError, match=rf"cores \[4095\] may not.*{allowed[0]}"):
        ENGINE.load(dense.source(), Options(cores=(4095,)))


def test_fewer_cores_than_threads_are_refused(dense: Any) -> None:
    with pytest.raises(ValueError, match=r"1 cores .* wanted one for each of 2 threads"):
        ENGINE.load(dense.source(), Options(threads=2, cores=(0,)))


# --- stopping ---


def test_stop_ends_a_run_under_way_and_no_other(endless: ModelSource) -> None:
    session = ENGINE.load(endless, Options())
    begun = threading.Semaphore(0)
    Spy(session, begun.release)  # type: ignore[arg-type]
    x = np.ones((1, 64), np.float32)
    stops = [Stop() for _ in range(6)]

    def one(number: int) -> str:
        try:
            (y,) = session.run([np.array(10**12 if number % 2 else 3), x], stops[number])
        except StoppedError as exc:
            return "ended" if exc.__cause__ is not None else "no cause"
        return "done" if np.allclose(y, x / 8) else "wrong"

    with ThreadPoolExecutor(6) as callers:
        found = callers.map(one, range(6))
        for _ in range(6):
            assert begun.acquire(timeout=120)
        for stop in stops[1::2]:
            stop.fire()
        assert list(found) == ["done", "ended"] * 3
    assert one(0) == "done"  # and it goes on working, with a Stop that served before


# --- closing and forking ---


@CACHES
def test_close_leaves_a_run_under_way_alone(
    cached: str, dense: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSLITE_CACHE", cached)
    session = ENGINE.load(dense.source(), Options())
    entered, closed = threading.Event(), threading.Event()

    def wait_for_close() -> None:
        entered.set()
        assert closed.wait(120)

    Spy(session, wait_for_close)  # type: ignore[arg-type]
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
from mindspore_lite.engines.base import Options, ModelSource, Stop
from mindspore_lite.engines.onnxruntime.engine import OnnxRuntimeEngine
from mindspore_lite.errors import EngineError
path = Path(sys.argv[1])
source = ModelSource(Snapshot([open_file(path)]), "", lambda: ir.load(path))
load = lambda: OnnxRuntimeEngine().load(source, Options(threads=2))
x = np.ones((1, 64), np.float32)
session = load()
wanted = session.run([x])[0]
child = os.fork()
if child == 0:
    try:
        session.run([x])
    except EngineError as exc:
        assert "build the model in the child" in str(exc) and "spawn" in str(exc), exc
    else:
        sys.exit(3)
    own = load()
    assert np.array_equal(own.run([x])[0], wanted)
    own.close()
    session.close()  # none of these may wait for threads that stayed with the parent
    del session
    gc.collect()
    sys.exit(0)
assert np.array_equal(session.run([x])[0], wanted)
print("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_child_of_a_fork_is_told_and_may_build_its_own(dense: Any) -> None:
    assert in_new_process(FORK, dense.path) == "child 0\n"


# --- errors ---


def test_wrong_inputs_give_readable_errors(dense: Any) -> None:
    session = ENGINE.load(dense.source(), Options())
    with pytest.raises(InputError, match=r"given 2 inputs, wanted 1: \['x'\]"):
        session.run([dense.x, dense.x])
    with pytest.raises(ShapeError, match=r"cannot take the shapes .*: MatMul: Inc") as caught:
        session.run([np.ones((1, 3), np.float32)])
    assert "ONNXRuntimeError" not in str(caught.value)
    assert "ONNXRuntimeError" in str(caught.value.__cause__)
    with pytest.raises(EngineError, match="data type"):
        session.run([dense.x.astype(np.float64)])


@pytest.mark.filterwarnings("error")  # the cache is not to be blamed
@CACHES
def test_bad_graph_gives_a_readable_error(
    cached: str, source_of: MakeSource, cache_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSLITE_CACHE", cached)
    made = model(
        [helper.make_node("NoSuchOp", ["x"], ["y"])], [tensor("x", [1])], [tensor("y", [1])]
    )
    with pytest.raises(EngineError, match=r"could not load the model: .*NoSuchOp"):
        ENGINE.load(source_of(made), Options())
    assert not list(cache_place.glob("build-*"))


def test_errors_of_translation_come_through(dense: Any) -> None:
    def translate() -> Any:
        raise OSError("no such weights")

    with pytest.raises(OSError, match="no such weights"):
        ENGINE.load(ModelSource(snapshot(dense.path), "", translate), Options())


@pytest.mark.parametrize(
    ("raw", "wanted"),
    [
        ("[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Got:\n 5", "Got: 5"),
        (
            "[ONNXRuntimeError] : 1 : FAIL : /onnxruntime_src/a/graph.cc:55 "
            "onnx::GraphProto f(const path&) const [ONNXRuntimeError] : 1 : FAIL : disk",
            "disk",
        ),
        ("", "ValueError"),
    ],
)
def test_noise_is_taken_out_of_messages(raw: str, wanted: str) -> None:
    assert readable(ValueError(raw)) == wanted


# --- starting ---

LIGHT = """
import sys
import numpy as np
from pathlib import Path
from mindspore_lite.core.files import open_file
from mindspore_lite.core.snapshot import Snapshot
from mindspore_lite.engines.base import Options, ModelSource, Stop
from mindspore_lite.engines.onnxruntime.engine import OnnxRuntimeEngine
def translate():
    raise AssertionError("translated again")
source = ModelSource(Snapshot([open_file(Path(sys.argv[1]))]), "", translate)
session = OnnxRuntimeEngine().load(source, Options())
session.run([np.ones((1, 64), np.float32)])
print(sorted({"onnx", "onnx_ir", "google.protobuf"} & sys.modules.keys()))
"""


def test_second_start_needs_no_onnx_package_and_says_nothing(dense: Any) -> None:
    ENGINE.load(dense.source(), Options())
    command = [sys.executable, "-c", LIGHT, str(dense.path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_first_load_says_nothing(dense: Any, capfd: pytest.CaptureFixture[str]) -> None:
    ENGINE.load(dense.source(), Options())
    assert capfd.readouterr() == ("", "")


def test_engine_module_uses_the_real_runtime_and_keeps_it_from_reporting() -> None:
    assert hasattr(engine_module.ort, "InferenceSession")
    assert os.environ["ORT_DISABLE_TELEMETRY"]


# --- the budget of a build ---


@CACHES
def test_a_compilation_that_does_not_come_back_is_given_up(
    cached: str, dense: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSLITE_CACHE", cached)
    gate = threading.Event()
    monkeypatch.setattr(
        engine_module.ort, "InferenceSession", lambda *_, **__: gate.wait(LIMIT_S) and None
    )
    monkeypatch.setattr("mindspore_lite.engines.time_limit.GRACE_S", 0.0)
    words = r"loading the model in ONNX Runtime did not end within 0.01 s"
    try:
        with pytest.raises(RequestTimeoutError, match=words):
            ENGINE.load(dense.source(), Options(max_seconds=0.01))
    finally:
        gate.set()


@CACHES
def test_constants_beyond_the_budget_are_no_business_of_onnx_runtime(
    cached: str, source_of: MakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSLITE_CACHE", cached)
    nodes = [
        helper.make_node("Expand", ["one", "size"], ["k"]),
        helper.make_node("Add", ["x", "k"], ["y"]),
    ]
    weights = {"one": np.ones(1, np.float32), "size": np.asarray([1 << 20])}
    made = model(nodes, [tensor("x", [1])], [tensor("y", [None])], **weights)
    source = source_of(made)
    assert ENGINE.load(source, Options()).run([np.ones(1, np.float32)])[0].size == 1 << 20
    small = replace(source, recipe="small", budget=Budget(max_fold_bytes=1 << 20))
    with pytest.raises(ModelFileError, match=r"4194304 of them in node .*\(Expand\)"):
        ENGINE.load(small, Options())


def test_constants_of_unknown_size_are_computed_ahead_as_far_as_the_budget_goes(
    source_of: MakeSource, cache_place: Path
) -> None:
    """The size of the second is that of a sum that only a convolution knows."""
    nodes = [
        helper.make_node("Conv", ["image", "kernel"], ["c"]),
        helper.make_node("Cast", ["c"], ["n"], to=TensorProto.INT64),
        helper.make_node("Reshape", ["n", "flat"], ["size"]),
        helper.make_node("ConstantOfShape", ["size"], ["k"]),
        helper.make_node("Add", ["x", "k"], ["y"]),
    ]
    weights = {
        "image": np.full((1, 1, 1, 1), 1 << 20, np.float32),
        "kernel": np.ones((1, 1, 1, 1), np.float32),
        "flat": np.asarray([-1]),
    }
    made = model(nodes, [tensor("x", [1])], [tensor("y", [None])], **weights)
    source = replace(source_of(made), budget=Budget(max_fold_bytes=1 << 20))
    session = ENGINE.load(source, Options())
    assert session.run([np.ones(1, np.float32)])[0].size == 1 << 20
    assert sum(file.stat().st_size for file in cache_place.rglob("*") if file.is_file()) < 1 << 20
