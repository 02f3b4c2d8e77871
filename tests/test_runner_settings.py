"""runner.py and placement.py: workers, batching, warm-up, configuration, as a Context asks."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.fake_engine import LIMIT_S
from support.mindir_builder import Net, encode
from support.models import (
    DIGITS,
    DYN_BATCH,
    MOBILENET,
    built,
    built_runner,
    dense_net,
    written,
)
from support.running import assert_close, fixture_arrays

import mindspore_lite as mslite
from mindspore_lite.core import cores, synthetic
from mindspore_lite.errors import EngineError, LiteError

IDS = sorted(os.sched_getaffinity(0))
DIGIT = np.random.default_rng(5).random((1, 1, 8, 8), np.float32)


def digits_context(**parallel: Any) -> mslite.Context:
    context = mslite.Context()
    for name, value in parallel.items():
        setattr(context.parallel, name, value)
    return context


def build(context: mslite.Context, path: Path = DIGITS) -> mslite.ModelParallelRunner:
    runner = mslite.ModelParallelRunner()
    runner.build_from_file(str(path), context)
    return runner


def results(runner: mslite.ModelParallelRunner, x: np.ndarray) -> np.ndarray:
    return runner.predict([x])[0].get_data_to_numpy()


# --- what context.parallel takes ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "default", "good", "bad", "words"),
    [
        ("queue_size", 1000, np.int32(5), "5", "queue_size must be int"),
        ("queue_size", 1000, 1, 0, "queue_size must be a positive int"),
        ("timeout_s", 0.0, 2, "2", "timeout_s must be int or float"),
        ("timeout_s", 0.0, 0, -1, "timeout_s must be 0 or more"),
        ("timeout_s", 0.0, float("inf"), float("nan"), "timeout_s must be 0 or more"),
        ("max_batch_rows", 0, 8, 1.5, "max_batch_rows must be int"),
        ("max_batch_rows", 0, 0, -8, "max_batch_rows must be a non-negative int"),
        ("max_batch_wait_us", 0, 200, True, "max_batch_wait_us must be int"),
        ("max_batch_wait_us", 0, 0, -1, "max_batch_wait_us must be a non-negative int"),
        ("warm_up", True, False, 1, "warm_up must be bool"),
    ],
)
def test_settings_of_ones_own_are_checked_when_they_are_set(
    name: str, default: Any, good: Any, bad: Any, words: str
) -> None:
    parallel = mslite.Context().parallel
    assert getattr(parallel, name) == default
    setattr(parallel, name, good)
    assert getattr(parallel, name) == good
    with pytest.raises((TypeError, ValueError), match=words):
        setattr(parallel, name, bad)
    assert getattr(parallel, name) == good


# --- batching -------------------------------------------------------------------------------------


@pytest.mark.parametrize("wait_us", [0, 10_000_000])
def test_batches_give_what_single_requests_give(wait_us: int) -> None:
    rng = np.random.default_rng(1)
    given = [rng.random((n, 1, 8, 8), np.float32) for n in (1, 2, 1, 3, 1, 8, 20, 1, 4)]
    model = built(DIGITS)
    with built_runner(DIGITS, workers_num=1, max_batch_rows=8, max_batch_wait_us=wait_us) as runner:
        futures = [runner.submit([x]) for x in given]
        runner.close()  # which ends the waiting
        for x, future in zip(given, futures, strict=True):
            got = future.result(LIMIT_S)[0].get_data_to_numpy()
            want = model.predict([x])[0].get_data_to_numpy()
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)
        found = runner.statistics()
    assert sum(rows * runs for rows, runs in found.batches.items()) == 41
    assert max(found.batches) <= 8
    assert found.done == len(given)


def test_a_full_batch_leaves_before_its_time() -> None:
    settings = {"workers_num": 1, "max_batch_rows": 4, "max_batch_wait_us": 600_000_000}
    with built_runner(DIGITS, **settings) as runner:
        futures = [runner.submit([DIGIT]) for _ in range(4)]
        want = built(DIGITS).predict([DIGIT])[0].get_data_to_numpy()
        for future in futures:
            got = future.result(LIMIT_S)[0].get_data_to_numpy()
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)
        assert runner.statistics().batches == {4: 1}


def test_outputs_that_callers_bring_are_filled_from_a_batch() -> None:
    settings = {"workers_num": 1, "max_batch_rows": 2, "max_batch_wait_us": 600_000_000}
    mine = [np.zeros((1, 10), np.float32) for _ in range(2)]
    with built_runner(DIGITS, **settings) as runner:
        futures = [runner.submit([DIGIT * n], [mslite.Tensor(m)]) for n, m in enumerate(mine)]
        for future, memory in zip(futures, mine, strict=True):
            np.testing.assert_array_equal(future.result(LIMIT_S)[0].get_data_to_numpy(), memory)
    np.testing.assert_allclose([m.sum() for m in mine], 1, rtol=1e-5)
    assert not np.array_equal(*mine)


@pytest.mark.parametrize("rows", [0, 1, 9])
def test_requests_of_any_rows_pass_with_batching_on(rows: int) -> None:
    with built_runner(DIGITS, workers_num=1, max_batch_rows=4) as runner:
        x = np.zeros((rows, 1, 8, 8), np.float32)
        assert results(runner, x).shape == (rows, 10)
        assert runner.submit([x]).result(LIMIT_S)[0].shape == [rows, 10]


def softmax_over(axis: int, rows: int = -1) -> bytes:
    net = Net()
    x = net.input("x", (rows, 3))
    return encode(net.model(net.call("Softmax", x, net.constant((axis,)))))


def summed_away() -> bytes:
    net = Net()
    x = net.input("x", (-1, 3))
    axes, keep, skip = net.constant((0,)), net.constant(False), net.constant(False)
    return encode(net.model(net.call("ReduceSum", x, axes, keep, skip)))


REFUSED: dict[str, tuple[Callable[[], bytes], str]] = {
    "a fixed batch": (dense_net, r"input 'x' has shape \[2, 3\], wanted an open batch axis"),
    "outputs without the axis": (summed_away, r"output '.*' has shape \[3\]"),
    "rows that depend on each other": (
        lambda: softmax_over(0),
        "of a row depends on the other rows of its batch",
    ),
}


@pytest.mark.parametrize(("make", "words"), REFUSED.values(), ids=REFUSED)
def test_batching_is_refused_with_the_reason(
    tmp_path: Path, make: Callable[[], bytes], words: str
) -> None:
    path = written(tmp_path / "m.mindir", make())
    with pytest.raises(EngineError, match=words) as caught:
        build(digits_context(max_batch_rows=4), path)
    assert "build from file failed! Error is batching (max_batch_rows) is not" in str(caught.value)
    with build(digits_context(), path) as runner:
        assert runner.get_inputs()[0].name == "x"


@pytest.mark.parametrize("make", [lambda: softmax_over(1), lambda: dense_net(rows=-1)])
def test_batching_is_accepted_where_rows_are_independent(
    tmp_path: Path, make: Callable[[], bytes]
) -> None:
    path = written(tmp_path / "m.mindir", make())
    with build(digits_context(max_batch_rows=4, workers_num=1), path) as runner:
        x = np.arange(12, dtype=np.float32).reshape(4, 3)
        alone = np.concatenate([results(runner, row[None]) for row in x])
        np.testing.assert_allclose(results(runner, x), alone, rtol=1e-5)


# --- configuration --------------------------------------------------------------------------------


def batching_of(runner: mslite.ModelParallelRunner) -> Any:
    assert runner._loaded is not None
    return runner._loaded.pool._scheduler.batching


@pytest.mark.filterwarnings("ignore:[0-9]+ workers of")
def test_workers_and_threads_may_come_from_a_configuration(tmp_path: Path) -> None:
    file = tmp_path / "runner.cfg"
    file.write_text("[parallel]\nworkers_num=3\nthread_num = 1\n")
    context = digits_context(config_path=str(file))
    with build(context) as runner:
        plan = runner.statistics().layout
        assert (plan.workers, plan.threads) == (3, 1)
    assert context.cpu.thread_num == 0  # a context is only read
    context.parallel.workers_num = 2  # which counts before the file
    words = rf"context.parallel.workers_num is 2 and \[parallel\] .*{file.name}\) is 3; the first"
    with pytest.warns(UserWarning, match=words) as seen, build(context) as runner:
        assert runner.statistics().layout.workers == 2
    assert seen[0].filename == __file__


def test_the_section_sets_the_queue_and_the_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    monkeypatch.setattr(synthetic, "array", lambda *a: made.append(a))
    info = {"parallel": {"queue_size": "3", "warm_up": "false"}}
    with build(digits_context(config_info=info)) as runner:
        assert runner._usable("").pool._scheduler.queue_size == 3
    assert made == []


@pytest.mark.parametrize("text", ["many", "-1", "1.5"])
def test_a_number_of_workers_that_makes_no_sense_is_refused(text: str) -> None:
    context = digits_context(config_info={"parallel": {"workers_num": text}})
    with pytest.raises(EngineError, match=r"\[parallel\] workers_num is .*wanted a number that"):
        build(context)


def test_a_timeout_of_the_section_counts_where_the_context_has_none() -> None:
    info = {"parallel": {"timeout_s": "2.5"}}
    for settings, want in (({}, None), ({"config_info": info}, 2.5)):
        with build(digits_context(**settings)) as runner:
            assert runner._usable("").timeout_s == want
    both = digits_context(config_info=info, timeout_s=7.0)
    with pytest.warns(UserWarning, match="timeout_s is 7.0 and"), build(both) as runner:
        assert runner._usable("").timeout_s == 7


@pytest.mark.parametrize("text", ["soon", "-1", "", "nan"])
def test_a_timeout_of_the_section_that_is_no_time_is_refused(text: str) -> None:
    context = digits_context(config_info={"parallel": {"timeout_s": text}})
    with pytest.raises(
        EngineError, match=r"\[parallel\] timeout_s is .*wanted a number of seconds"
    ):
        build(context)


def test_batching_may_come_from_config_info_a_file_or_the_context(tmp_path: Path) -> None:
    file = tmp_path / "runner.cfg"
    file.write_text("[batching]\nmax_batch_rows = 2\nmax_batch_wait_us=30\n")
    info = {"batching": {"max_batch_rows": " 3 "}}
    cases = [
        ({}, None),
        ({"config_path": str(file)}, (2, 30_000)),
        ({"config_info": info}, (3, 0)),
        ({"config_path": str(file), "config_info": info}, (3, 30_000)),
        ({"config_path": str(file), "config_info": info, "max_batch_rows": 5}, (5, 30_000)),
        ({"config_info": {"batching": {"max_batch_rows": "0"}}}, None),
        ({"config_info": {"batching": {"max_batch_wait_us": "9"}}}, None),
        ({"config_info": {"weight": {"weight_path": "x"}}}, None),
    ]
    for settings, want in cases:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*max_batch_rows is 5 and .* is 3; the first")
            runner = build(digits_context(**settings))
        with runner:
            found = batching_of(runner)
            assert (found and (found.max_rows, found.wait_ns)) == want, settings
            assert results(runner, DIGIT).shape == (1, 10)


@pytest.mark.parametrize("text", ["-1", "many", "", "1.5", "0x10", "1 2"])
@pytest.mark.parametrize("key", ["max_batch_rows", "max_batch_wait_us"])
def test_numbers_of_a_section_that_make_no_sense_are_refused(key: str, text: str) -> None:
    context = digits_context(config_info={"batching": {key: text}})
    with pytest.raises(EngineError, match=rf"\[batching\] {key} is .*wanted a number that is 0"):
        build(context)


def test_an_unknown_key_of_the_section_is_an_error_that_names_the_nearest() -> None:
    context = digits_context(config_info={"batching": {"max_rows": "4"}})
    words = r"\[batching\] has no key 'max_rows', .*did you mean 'max_batch_rows'\?"
    with pytest.raises(EngineError, match=words):
        build(context)


def test_a_configuration_file_that_went_or_is_no_text_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path / "runner.cfg", b"[batching]\n")
    context = digits_context(config_path=str(file))
    file.write_bytes(b"\xff\xfe\x00")
    words = r"^build_from_file failed, load configuration failed! .*not UTF-8"
    with pytest.raises(LiteError, match=words):
        build(context)
    file.unlink()
    with pytest.raises(LiteError, match="config_path does not exist"):
        build(context)


def test_device_ids_on_the_cpu_are_warned_about() -> None:
    with pytest.warns(UserWarning, match=r"device_ids \[0, 1\] have no effect on .*'cpu'") as seen:
        build(digits_context(device_ids=[0, 1])).close()
    assert seen[0].filename == __file__


def test_targets_beside_the_first_are_warned_about_once() -> None:
    context = mslite.Context()
    context.target = ["cpu", "gpu"]
    with pytest.warns(UserWarning, match="the first target decides") as seen:
        build(context).close()
    assert [w.filename for w in seen] == [__file__]


# --- warming up -----------------------------------------------------------------------------------


def test_a_build_warms_up_unless_it_is_told_not_to(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    array = synthetic.array
    monkeypatch.setattr(synthetic, "array", lambda *a: made.append(a[1]) or array(*a))
    build(digits_context(warm_up=False)).close()
    assert made == []
    build(digits_context()).close()
    assert made == [[1, 1, 8, 8]]


def test_a_warm_up_that_fails_is_a_warning_and_requests_work(tmp_path: Path) -> None:
    net = Net()
    rows = net.input("rows", (1,), np.int64)
    y = net.call("Gather", net.weight("w", np.ones((1, 2), np.float32)), rows, net.constant(0))
    path = written(tmp_path / "gather.mindir", encode(net.model(y)))
    with pytest.warns(UserWarning, match=r"could not be warmed up on made-up inputs: .*idx=1") as w:
        runner = build(digits_context(), path)
    assert w[0].filename == __file__
    with runner:
        assert runner.predict([np.array([0])])[0].get_data_to_numpy().tolist() == [[1, 1]]
        with pytest.raises(EngineError, match=r"warm_up failed! .*idx=1"):
            runner.warm_up()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        build(digits_context(warm_up=False), path).close()


def test_warm_up_takes_the_shapes_of_a_request() -> None:
    with built_runner(DIGITS, workers_num=1) as runner:
        runner.warm_up()
        runner.warm_up([[7, 1, 8, 8]])
        runner.warm_up(((7, 1, 8, 8),))
        runner.warm_up({"x": [np.int64(2), 1, 8, 8]})
        assert runner.statistics().sent == 0


BAD_SHAPES: list[tuple[Any, type[Exception], str]] = [
    ("1,1,8,8", TypeError, "shapes must be list, tuple or dict"),
    (5, TypeError, "shapes must be list, tuple or dict"),
    ([5], TypeError, "shapes element must be list or tuple of int"),
    ([["1"]], TypeError, "shapes element element must be int"),
    ([], ValueError, "0 shapes were given for 1 inputs"),
    ([[1, 1, 8, 8]] * 2, ValueError, "2 shapes were given for 1 inputs"),
    ([[-1, 1, 8, 8]], ValueError, "hold a negative size"),
    ({"y": [1, 1, 8, 8]}, ValueError, "the model's inputs are ['x']"),
    ([[1, 1, 8]], LiteError, "warm_up failed! "),
    ([[1, 2, 8, 8]], LiteError, "warm_up failed! "),
]


@pytest.mark.parametrize(
    ("shapes", "kind", "words"), BAD_SHAPES, ids=[str(s[0]) for s in BAD_SHAPES]
)
def test_shapes_that_do_not_fit_are_refused(shapes: Any, kind: type[Exception], words: str) -> None:
    with built_runner(DIGITS, workers_num=1) as runner:
        with pytest.raises(kind) as caught:
            runner.warm_up(shapes)
        assert words in str(caught.value)
        assert results(runner, DIGIT).shape == (1, 10)


def test_a_model_of_open_sizes_asks_for_shapes(tmp_path: Path) -> None:
    net = Net()
    path = written(
        tmp_path / "m.mindir", encode(net.model(net.call("ReLU", net.input("x", (-1, -1)))))
    )
    with build(digits_context(), path) as runner:
        with pytest.raises(ValueError, match=r"warm_up needs the shapes .*\{'x': \[-1, -1\]\}"):
            runner.warm_up()
        runner.warm_up([[2, 5]])
        assert results(runner, np.ones((3, 4), np.float32)).shape == (3, 4)


# --- workers, threads and cores -------------------------------------------------------------------


def layout_of(workers: int = 0, threads: int = 0, **cpu: Any) -> Any:
    context = digits_context(workers_num=workers)
    context.cpu.thread_num = threads
    for name, value in cpu.items():
        setattr(context.cpu, name, value)
    with build(context) as runner:
        assert results(runner, DIGIT).shape == (1, 10)
        return runner.statistics().layout


def test_nothing_asked_for_uses_the_cores_once() -> None:
    found = layout_of()
    assert found.workers * found.threads <= cores.usable().limit
    assert found.warning == ""


def test_more_workers_than_cores_are_made_with_a_warning() -> None:
    many = cores.usable().limit + 3
    with pytest.warns(UserWarning, match=f"{many} workers of 1 threads make {many}") as seen:
        found = layout_of(many, 1)
    assert (found.workers, found.threads) == (many, 1)
    assert seen[0].filename == __file__


@pytest.mark.skipif(len(IDS) < 2, reason="needs two cores")
def test_requests_run_on_the_cores_they_are_bound_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """On every path: from predict, from submit, with a deadline; the caller is left alone."""
    from mindspore_lite.engines.sessions.any_shape import AnyShapeSession

    seen: list[set[int]] = []
    run = AnyShapeSession.run

    def watched(*args: Any) -> Any:
        seen.append(os.sched_getaffinity(0))
        return run(*args)

    before = os.sched_getaffinity(0)
    context = digits_context(workers_num=2)
    context.cpu.thread_num = 1
    context.cpu.thread_affinity_mode = 1
    with build(context) as runner:
        found = runner.statistics()
        bound = [{core} for (core,) in found.layout.cores]
        assert [set(worker.cores) for worker in found.workers] == bound
        assert bound[0] != bound[1]
        monkeypatch.setattr(AnyShapeSession, "run", watched)
        runner.predict([DIGIT])
        runner.predict([DIGIT], timeout_s=LIMIT_S)
        runner.submit([DIGIT]).result(LIMIT_S)
        runner.warm_up()
    assert len(seen) == 5
    assert all(cores in bound for cores in seen)
    assert os.sched_getaffinity(0) == before


def test_a_core_list_is_dealt_to_the_workers() -> None:
    found = layout_of(1, 1, thread_affinity_core_list=[IDS[-1]])
    assert found.cores == ((IDS[-1],),)
    found = layout_of(thread_affinity_core_list=IDS)
    assert found.cores == tuple((core,) for core in IDS)


@pytest.mark.parametrize(
    ("cpu", "words"),
    [
        ({"thread_affinity_mode": 2}, "thread affinity mode is 2, but concurrent inference"),
        ({"thread_affinity_core_list": [99999]}, "99999"),
        ({"thread_affinity_core_list": [IDS[0]], "thread_num": 2}, "wanted a multiple of 2"),
        ({"inter_op_parallel_num": 3, "thread_num": 2}, "inter_op_parallel_num is 3"),
    ],
)
def test_wishes_that_cannot_be_met_are_refused(cpu: dict[str, Any], words: str) -> None:
    with pytest.raises(EngineError) as caught:
        layout_of(**({"threads": cpu.pop("thread_num")} if "thread_num" in cpu else {}), **cpu)
    assert "build from file failed! Error is " in str(caught.value)
    assert words in str(caught.value)


def test_too_many_workers_are_refused() -> None:
    with pytest.raises(EngineError, match="1000000 workers were asked for, wanted 1 to"):
        layout_of(1_000_000)


def test_the_callers_thread_keeps_its_cores_after_a_build() -> None:
    before = os.sched_getaffinity(0)
    layout_of(1, 1, thread_affinity_mode=1)
    assert os.sched_getaffinity(0) == before


def test_inter_op_threads_give_the_same_results() -> None:
    want = built(MOBILENET).predict([np.ones((1, 3, 64, 64), np.float32)])[0].get_data_to_numpy()
    context = digits_context(workers_num=1)
    context.cpu.thread_num = 2
    context.cpu.inter_op_parallel_num = 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        runner = build(context, MOBILENET)
    with runner:
        got = results(runner, np.ones((1, 3, 64, 64), np.float32))
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)


def test_a_model_of_any_rank_takes_requests_of_several_ranks() -> None:
    path = DYN_BATCH.with_name("dyn_rank.mindir")
    inputs, (want, *_) = fixture_arrays(path.with_suffix(".npz"))
    with build(digits_context(workers_num=1), path) as runner:
        got = runner.predict(list(inputs))[0].get_data_to_numpy()
        assert_close(got, want)
        assert_close(runner.submit(list(inputs)).result(LIMIT_S)[0].get_data_to_numpy(), want)
        with pytest.raises(ValueError, match="warm_up needs the shapes"):
            runner.warm_up()


@pytest.mark.parametrize("kind", [mslite.ModelParallelRunner, mslite.MultiDeviceRunner])
def test_a_name_is_for_models_of_a_worker(kind: Any, tmp_path: Path) -> None:
    context = mslite.Context()
    context.parallel.config_info = {"service": {"name": "digits"}}
    with kind() as runner, pytest.raises(RuntimeError, match="only models of a worker are shared"):
        runner.build_from_file(str(written(tmp_path / "m.mindir", dense_net())), context)
