"""Models and runners on OpenVINO, which a configuration asks for, or engine=auto recalls."""

from __future__ import annotations

import os
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.models import DIGITS, MINDIR, written
from support.updates import filled, telling_net, told, update, variable, versions

import mindspore_lite as mslite
from mindspore_lite.engines import choice
from mindspore_lite.engines.choice import Choice, Evidence, remember
from mindspore_lite.graph.source import ModelInput, source_of

ROWS = np.random.default_rng(1).random((6, 1, 8, 8), np.float32)


def by(engine: str) -> dict[str, dict[str, str]]:
    return {"common_context": {"engine": engine}}


def context(engine: str, **parallel: Any) -> mslite.Context:
    made = mslite.Context()
    made.parallel.config_info = by(engine)
    for name, value in parallel.items():
        setattr(made.parallel, name, value)
    return made


def built(runner: mslite.ModelParallelRunner) -> Any:
    return runner._usable("")._placed


@pytest.fixture(scope="module")
def wanted() -> np.ndarray:
    with mslite.Model() as model:
        model.build_from_file(str(DIGITS), MINDIR)
        return model.predict([ROWS])[0].get_data_to_numpy()


@pytest.fixture(autouse=True)
def own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSLITE_CACHE_DIR", str(tmp_path / "cache"))


def measured(**numbers: int) -> None:
    source = source_of(ModelInput("MINDIR", DIGITS))
    assert remember(source, Choice("openvino", **numbers), Evidence(1000, 7, 1.5))


def test_a_model_is_resized_and_run(wanted: np.ndarray) -> None:
    with mslite.Model() as model:
        model.build_from_file(str(DIGITS), MINDIR, config_dict=by("openvino"))
        assert model._usable("").built.engine.name == "openvino"
        np.testing.assert_allclose(model.predict([ROWS])[0].get_data_to_numpy(), wanted, atol=1e-5)
        model.resize(model.get_inputs(), [[2, 1, 8, 8]])
        (output,) = model.predict([ROWS[:2]])
        np.testing.assert_allclose(output.get_data_to_numpy(), wanted[:2], atol=1e-5)


@pytest.mark.parametrize("parallel", [{}, {"max_batch_rows": 4}])
def test_all_workers_share_one_compiled_model(parallel: dict[str, int], wanted: np.ndarray) -> None:
    with mslite.ModelParallelRunner() as runner:
        runner.build_from_file(str(DIGITS), context("openvino", workers_num=2, **parallel))
        sessions = {id(lane.session) for place in built(runner).places for lane in place.lanes}
        assert len(sessions) == 1
        cores = len(os.sched_getaffinity(0))
        session = built(runner).built.session
        assert session._native.compiled.get_property("NUM_STREAMS") == min(2, cores)
        with ThreadPoolExecutor(5) as clients:
            found = list(clients.map(lambda row: runner.predict([row[None]], timeout_s=120), ROWS))
        arrays = np.concatenate([one[0].get_data_to_numpy() for one in found])
        np.testing.assert_allclose(arrays, wanted, atol=1e-5)


@pytest.mark.parametrize(
    ("settings", "ahead"), [({}, 1), ({"max_batch_rows": 4}, 0), ({"workers_num": 1}, 0)]
)
def test_a_request_waits_inside_of_openvino_so_that_no_stream_waits_for_us(
    settings: dict[str, int], ahead: int
) -> None:
    with mslite.ModelParallelRunner() as runner:
        runner.build_from_file(str(DIGITS), context("openvino", **{"workers_num": 2, **settings}))
        workers = settings.get("workers_num", 2)
        slots = runner._loaded.pool._scheduler.slots
        assert [slot.place.ahead for slot in slots] == [False] * workers + [True] * ahead
        with ThreadPoolExecutor(5) as clients:
            list(clients.map(lambda row: runner.predict([row[None]], timeout_s=120), ROWS))
        found = runner.statistics()
        assert len(found.workers) == found.layout.workers == workers
        assert sum(worker.done for worker in found.workers) == found.done == len(ROWS)
        assert found.queue_wait.count == found.run_time.count == len(ROWS)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_bound_workers_compute_on_their_cores(wanted: np.ndarray) -> None:
    made = context("openvino", workers_num=2)
    made.cpu.thread_num, made.cpu.thread_affinity_mode = 1, 1
    with mslite.ModelParallelRunner() as runner:
        runner.build_from_file(str(DIGITS), made)
        assert built(runner).built.options.caller_computes
        assert not any(place.ahead for place in built(runner).places)
        with ThreadPoolExecutor(4) as clients:
            found = list(clients.map(lambda row: runner.predict([row[None]]), ROWS))
        arrays = np.concatenate([one[0].get_data_to_numpy() for one in found])
        np.testing.assert_allclose(arrays, wanted, atol=1e-5)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_wide_bound_workers_are_told_that_they_share_nothing() -> None:
    made = context("openvino", workers_num=1)
    made.cpu.thread_num, made.cpu.thread_affinity_mode = 2, 1
    with (
        mslite.ModelParallelRunner() as runner,
        pytest.warns(UserWarning, match="OpenVINO packs the weights for each session"),
    ):
        runner.build_from_file(str(DIGITS), made)


def test_weights_change_for_all_workers(tmp_path: Path) -> None:
    path = written(tmp_path / "telling.mindir", telling_net())
    made = context("openvino", workers_num=2)
    made.parallel.config_info = {**by("openvino"), **variable("a", "b")}
    with mslite.ModelParallelRunner() as runner:
        runner.build_from_file(str(path), made)
        update(runner, versions(2))
        assert told(runner) == told(runner, rows=3) == 2
        update(runner, {"a": filled(3), "b": filled(3)})
        assert told(runner) == 3


# --- auto ---


def test_auto_is_onnx_runtime_where_nothing_was_measured() -> None:
    with mslite.ModelParallelRunner() as runner:
        runner.build_from_file(str(DIGITS), context("auto"))
        assert built(runner).built.engine.name == "onnxruntime"


def test_auto_takes_what_was_measured(wanted: np.ndarray) -> None:
    measured(workers=3, threads=1, max_batch_rows=2)
    with mslite.ModelParallelRunner() as runner, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # three workers on fewer cores
        runner.build_from_file(str(DIGITS), context("auto"))
        assert built(runner).built.engine.name == "openvino"
        layout = runner.statistics().layout
        assert (layout.workers, layout.threads) == (3, 1)
        assert runner._usable("").pool._most_rows == 2
        np.testing.assert_allclose(runner.predict([ROWS])[0].get_data_to_numpy(), wanted, atol=1e-5)
    with mslite.Model() as model:
        model.build_from_file(str(DIGITS), MINDIR, config_dict=by("auto"))
        assert model._usable("").built.engine.name == "openvino"


def test_what_the_user_says_counts_before_what_was_measured() -> None:
    measured(workers=3, threads=1, max_batch_rows=2)
    with mslite.ModelParallelRunner() as runner:
        runner.build_from_file(str(DIGITS), context("auto", workers_num=1, max_batch_rows=4))
        assert built(runner).built.engine.name == "openvino"
        assert runner.statistics().layout.workers == 1
        assert runner._usable("").pool._most_rows == 4


def test_a_measured_engine_that_is_missing_is_warned_of_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    measured()
    monkeypatch.setattr(choice, "installed", lambda engine: False)
    choice._warn_of_missing.cache_clear()
    with pytest.warns(RuntimeWarning, match="openvino was measured .* is not installed") as told:
        for _ in range(2):
            with mslite.Model() as model:
                model.build_from_file(str(DIGITS), MINDIR, config_dict=by("auto"))
                assert model._usable("").built.engine.name == "onnxruntime"
    assert len(told) == 1
    assert told[0].filename == __file__


def test_auto_says_what_is_wrong_with_a_model_as_ever(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"none\.mindir"):
        mslite.Model().build_from_file(
            str(tmp_path / "none.mindir"), MINDIR, config_dict=by("auto")
        )
