"""Files that ask for far more than their size: a build ends soon, with an error of ours.

They are built in processes of their own, which have little CPU time and memory: without the budget
they end by a signal, or not at all.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from support import bombs
from support.mindir_builder import Net

import mindspore_lite as mslite
from mindspore_lite.errors import ModelFileError, RequestTimeoutError
from mindspore_lite.graph.from_mindir import from_mindir
from mindspore_lite.mindir import records as r

ENGINES = ["onnxruntime", "openvino", "torch"]
LIMIT_S = 300.0  # of wall time, on a busy machine
BUILD = """
import json, resource, sys, warnings
warnings.simplefilter("ignore")
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
import numpy as np
import mindspore_lite as mslite
from mindspore_lite.errors import LiteError
engine, what, *paths = sys.argv[1:]
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for path in paths:
    model = mslite.Model()
    try:
        model.build_from_file(
            path, mslite.ModelType.ONNX, config_dict={"common_context": {"engine": engine}}
        )
        x = mslite.Tensor(np.ones((2, 2), np.float32))
        told = "built"
        if what == "run":
            told = str(model.predict([x])[0].get_data_to_numpy()[0, 0])
    except LiteError as exc:
        told = f"refused: {exc}"
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(json.dumps([told, grown >> 10]))
"""
# those that are refused come first: no other has taken memory before
BOMBS = {
    "doubling": partial(bombs.functions, 40, 2),
    "gigabytes": partial(bombs.affine_grid, 20_000),
    "small grid": partial(bombs.affine_grid, 4),
    "chain": partial(bombs.functions, 3000, 1),
}
Built = dict[str, tuple[str, int]]


def _built(engine: str, what: str, paths: list[str], cache: Path) -> list[tuple[str, int]]:
    """What each build came to, in one process, and the MiB that it took till then."""
    pytest.importorskip(engine)
    done = subprocess.run(
        [sys.executable, "-c", BUILD, engine, what, *paths],
        capture_output=True, text=True, timeout=LIMIT_S, check=False,
        env={**os.environ, "MSLITE_CACHE_DIR": str(cache)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return [(told, grown) for told, grown in map(json.loads, done.stdout.splitlines())]


@pytest.fixture(scope="module", params=ENGINES)
def built(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, worker_cache: Path
) -> Built:
    """What each bomb came to on an engine."""
    paths = [bombs.written(tmp_path_factory.mktemp("bomb"), make()) for make in BOMBS.values()]
    return dict(zip(BOMBS, _built(request.param, "run", paths, worker_cache), strict=True))


def test_thousands_of_functions_in_a_chain_are_computed(built: Built) -> None:
    assert built["chain"][0] == "-1.0"


def test_functions_that_double_are_refused_at_once(built: Built) -> None:
    told, grown = built["doubling"]
    assert told.startswith("refused: ")
    assert "more than 100000 nodes once inlined" in told
    assert grown < 300


def test_a_constant_of_gigabytes_is_refused_before_it_is_computed(built: Built) -> None:
    told, grown = built["gigabytes"]
    assert told.startswith("refused: ")
    assert "node 'bomb' (AffineGrid), more than the 1073" in told
    assert "[build] max_fold_bytes" in told
    assert grown < 300


@pytest.fixture(scope="module", params=ENGINES)
def scratch_built(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, worker_cache: Path
) -> Built:
    """What became of constants that take much more memory to compute than they have bytes."""
    made = bombs.scratch()
    paths = [bombs.written(tmp_path_factory.mktemp("bomb"), model) for model in made.values()]
    return dict(zip(made, _built(request.param, "build", paths, worker_cache), strict=True))


@pytest.mark.parametrize("name", bombs.scratch())
def test_constants_that_take_gigabytes_to_compute_are_not_computed_ahead(
    scratch_built: Built, name: str
) -> None:
    told, grown = scratch_built[name]
    # some operators PyTorch has no kernel for
    assert told == "built" or "ahead of time" in told or "(node 'bomb')" in told
    assert grown < 500


def test_a_small_grid_is_computed(built: Built) -> None:
    told, _ = built["small grid"]
    # theta maps (x, y, 1) to (x + y + 1) twice; the places lie around 0
    assert float(told) == pytest.approx(1 + 2 * 4 * 4, rel=1e-4)


def test_graphs_of_mindir_that_call_others_twice_are_refused_at_once() -> None:
    graphs = []
    for i in range(40):
        net = Net(f"g{i}")
        y = net.input("v", (2, 2))
        for _ in range(2):
            y = net.call(r.GraphRef(f"g{i - 1}"), y) if i else net.call("Neg", y)
        graphs.append(net.graph(y))
    main = Net()
    y = main.call(r.GraphRef("g39"), main.input("x", (2, 2)))
    with pytest.raises(ModelFileError, match="more than 100000 nodes once inlined"):
        from_mindir(main.model(y, functions=graphs))


def context(engine: str, **build: str) -> mslite.Context:
    made = mslite.Context()
    made.parallel.workers_num = 1
    made.parallel.config_info = {"common_context": {"engine": engine}, "build": build}
    return made


WARM_UP = r"warming the model up .* did not end within 1 s; .*\[build\] max_seconds and max_run_s"


@pytest.mark.parametrize("engine", ["onnxruntime", "torch"])
def test_a_model_whose_first_run_does_not_end_is_an_error(tmp_path: Path, engine: str) -> None:
    pytest.importorskip(engine)
    runner = mslite.ModelParallelRunner()
    with pytest.raises(RequestTimeoutError, match=WARM_UP):
        runner.build_from_file(
            bombs.written(tmp_path, bombs.endless_loop()), context(engine, max_run_seconds="1")
        )


ENDLESS = """
import sys
import mindspore_lite as mslite
from mindspore_lite.errors import RequestTimeoutError
context = mslite.Context()
context.parallel.workers_num = 1
engine, build = {"engine": "openvino"}, {"max_run_seconds": "1"}
context.parallel.config_info = {"common_context": engine, "build": build}
try:
    mslite.ModelParallelRunner().build_from_file(sys.argv[1], context)
except RequestTimeoutError as exc:
    print(exc)
"""


def test_a_first_run_that_openvino_cannot_stop_is_an_error(tmp_path: Path) -> None:
    """In a process of its own: the run goes on until its process ends, and takes a core."""
    pytest.importorskip("openvino")
    done = subprocess.run(
        [sys.executable, "-c", ENDLESS, bombs.written(tmp_path, bombs.endless_loop())],
        capture_output=True, text=True, timeout=LIMIT_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert re.search(WARM_UP, done.stdout), done.stdout


def test_rows_that_cannot_be_tried_in_time_are_an_error(tmp_path: Path) -> None:
    asked = context("onnxruntime", max_run_seconds="1")
    asked.parallel.max_batch_rows = 4
    runner = mslite.ModelParallelRunner()
    with pytest.raises(RequestTimeoutError, match="trying the model with made-up rows did"):
        runner.build_from_file(bombs.written(tmp_path, bombs.endless_loop("n")), asked)


@pytest.mark.parametrize(
    ("rows", "warm_up", "words"),
    [
        (2, True, "device [01]: warming the model up .* did not end within 1 s"),
        ("n", False, "trying the model with made-up rows did not end within 1 s"),
    ],
)
def test_devices_whose_first_run_does_not_end_are_an_error(
    tmp_path: Path, rows: int | str, warm_up: bool, words: str
) -> None:
    asked = context("onnxruntime", max_run_seconds="1")
    asked.parallel.device_ids = [0, 1]
    asked.parallel.warm_up = warm_up
    runner = mslite.MultiDeviceRunner()
    with pytest.raises(RequestTimeoutError, match=words):
        runner.build_from_file(bombs.written(tmp_path, bombs.endless_loop(rows)), asked)


def test_a_request_that_may_not_take_long_limits_the_first_run_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mindspore_lite.core.budget._FIRST_RUN_S", 0.5)
    asked = context("onnxruntime")
    asked.parallel.timeout_s = 1.0
    runner = mslite.ModelParallelRunner()
    with pytest.raises(RequestTimeoutError, match="did not end within 1 s"):
        runner.build_from_file(bombs.written(tmp_path, bombs.endless_loop()), asked)


def test_a_runner_works_after_a_build_that_did_not_end(tmp_path: Path) -> None:
    runner = mslite.ModelParallelRunner()
    with pytest.raises(RequestTimeoutError):
        runner.build_from_file(
            bombs.written(tmp_path, bombs.endless_loop()),
            context("onnxruntime", max_run_seconds="1"),
        )
    runner.build_from_file(bombs.written(tmp_path, bombs.functions(3, 1)), context("onnxruntime"))
    with runner:
        (found,) = runner.predict([np.ones((2, 2), np.float32)])
    np.testing.assert_array_equal(found.get_data_to_numpy(), -np.ones((2, 2)))


def test_the_bounds_can_be_set(tmp_path: Path) -> None:
    path = bombs.written(tmp_path, bombs.functions(10, 2))
    model: Any = mslite.Model()
    with pytest.raises(ModelFileError, match="more than 100 nodes once inlined"):
        model.build_from_file(
            path, mslite.ModelType.ONNX, config_dict={"build": {"max_nodes": "100"}}
        )
    model.build_from_file(path, mslite.ModelType.ONNX)
    assert onnx.load(path).functions  # the file stays as it is
