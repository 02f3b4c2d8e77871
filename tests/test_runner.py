"""runner.py: building, inputs and outputs, shapes, closing; every line of the documented API."""

from __future__ import annotations

import copy
import dataclasses
import os
import pickle
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.mindir_builder import Net, encode
from support.models import (
    DIGITS,
    DYN_BATCH,
    MIXED_TYPES,
    MOBILENET,
    REFUSED_OUTPUTS,
    SWIN,
    TWO_IN_TWO_OUT,
    arrays,
    built,
    built_runner,
    dense_net,
    dense_values,
    looping,
    written,
)
from support.running import assert_close, fixture_arrays

import mindspore_lite as mslite
from mindspore_lite.core import cores
from mindspore_lite.errors import ClosedError, EngineError, InputError, LiteError, ShapeError

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def dense_file(tmp_path: Path) -> Path:
    return written(tmp_path / "dense.mindir", dense_net())


@pytest.fixture(params=["quick lane", "one worker"])
def dense(dense_file: Path, request: pytest.FixtureRequest) -> Iterator[mslite.ModelParallelRunner]:
    """A model of fixed sizes, whose runs take microseconds."""
    settings = {} if request.param == "quick lane" else {"workers_num": 1}
    with built_runner(dense_file, **settings) as runner:
        yield runner


@pytest.fixture
def digits() -> Iterator[mslite.ModelParallelRunner]:
    with built_runner(DIGITS, workers_num=1) as runner:
        yield runner


# --- before, while and after building -------------------------------------------------------------


def test_the_class_is_found_where_programs_look_for_it() -> None:
    assert mslite.model.ModelParallelRunner is mslite.ModelParallelRunner
    assert mslite.ModelParallelRunner.__module__ == "mindspore_lite"


def test_an_unbuilt_runner_can_be_shown_and_asked() -> None:
    runner = mslite.ModelParallelRunner()
    assert str(runner) == "model_path: ."
    for ask in (runner.get_inputs, runner.get_outputs):
        with pytest.warns(UserWarning, match=r"is empty: the model is not built; call build"):
            assert len(ask()) == 0
    for call in (
        lambda: runner.predict([X]),
        lambda: runner.submit([X]),
        lambda: runner.warm_up(),
        lambda: runner.statistics(),
    ):
        with pytest.raises(EngineError, match=r"the runner is not built; call build_from_file\(\)"):
            call()
    with pytest.raises(RuntimeError, match="predict failed"):
        runner.predict([X])
    runner.close()


def test_build_checks_its_arguments_in_the_documented_order(tmp_path: Path) -> None:
    runner = mslite.ModelParallelRunner()
    with pytest.raises(TypeError, match="model_path must be str"):
        runner.build_from_file(["test.ms"])  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match=r"model_path does not exist: 'no\.mindir'"):
        runner.build_from_file("no.mindir", mslite.Context().cpu)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="context must be Context"):
        runner.build_from_file(str(DIGITS), mslite.Context().cpu)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("m.mindir", b"nonsense", "cannot be loaded as MindIR"),
        ("m.onnx", b"nonsense", "Error is"),
        ("m.ms", b"edge", "MINDIR_LITE"),
        ("m", dense_net()[:100], "Error is"),
    ],
)
def test_a_build_that_fails_says_why_and_leaves_the_runner_usable(
    tmp_path: Path, dense_file: Path, name: str, data: bytes, words: str
) -> None:
    runner = mslite.ModelParallelRunner()
    prefix = "ModelParallelRunner's build from file failed! Error is "
    with pytest.raises(LiteError) as caught:
        runner.build_from_file(str(written(tmp_path / name, data)))
    assert str(caught.value).startswith(prefix)
    assert words in str(caught.value)
    assert str(runner) == "model_path: ."
    with runner:
        runner.build_from_file(str(dense_file))
        np.testing.assert_array_equal(arrays(runner.predict([X]))[0], dense_values(X))


def test_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"build from file failed! .* is a directory"):
        mslite.ModelParallelRunner().build_from_file(str(tmp_path))


def test_the_type_is_told_by_the_suffix(tmp_path: Path) -> None:
    with built_runner(looping(tmp_path / "loop.onnx"), workers_num=1) as runner:
        x = np.array([3, 4], np.float32)
        np.testing.assert_array_equal(arrays(runner.predict([np.array(5), x]))[0], x)
    with built_runner(written(tmp_path / "dense.bin", dense_net())) as runner:
        np.testing.assert_array_equal(arrays(runner.predict([X]))[0], dense_values(X))


def test_a_second_build_is_refused_and_the_first_model_stays(
    dense: mslite.ModelParallelRunner,
) -> None:
    path = dense.model_path_
    with pytest.raises(EngineError, match=r"is built from .*dense\.mindir' already; make another"):
        dense.build_from_file(str(DIGITS))
    assert str(dense) == f"model_path: {path}."
    np.testing.assert_array_equal(arrays(dense.predict([X]))[0], dense_values(X))


def test_a_closed_runner_can_be_built_again(dense: mslite.ModelParallelRunner) -> None:
    dense.close()
    dense.close()
    with pytest.raises(LiteError):
        dense.build_from_file("no.mindir")
    with pytest.raises(ClosedError, match="predict failed! the runner is closed; build it again"):
        dense.predict([X])
    dense.build_from_file(str(DIGITS))
    assert dense.predict([np.zeros((1, 1, 8, 8), np.float32)])[0].shape == [1, 10]
    assert dense.statistics().sent == 1


def test_a_closed_runner_refuses_every_way_of_asking(dense: mslite.ModelParallelRunner) -> None:
    dense.predict([X])
    dense.close()
    for call in (lambda: dense.predict([X]), lambda: dense.submit([X])):
        with pytest.raises(ClosedError, match="predict failed! the runner is closed"):
            call()
    with pytest.raises(ClosedError, match=r"warm_up failed! .*closed"):
        dense.warm_up()
    found = dense.statistics()
    assert (found.sent, found.done, found.closed) == (3, 1, 2)
    assert dense.get_inputs()[0].shape == [2, 3]


@pytest.mark.parametrize(
    ("timeout_s", "kind"), [("1", TypeError), (-1, ValueError), (float("nan"), ValueError)]
)
def test_close_checks_its_limit(
    dense: mslite.ModelParallelRunner, timeout_s: Any, kind: type[Exception]
) -> None:
    with pytest.raises(kind, match="timeout_s must be"):
        dense.close(timeout_s)
    np.testing.assert_array_equal(arrays(dense.predict([X]))[0], dense_values(X))


@pytest.mark.parametrize("timeout_s", [0, 1, 2.5, None, float("inf"), np.float32(3)])
def test_an_idle_runner_closes_at_once_whatever_the_limit(
    dense_file: Path, timeout_s: float | None
) -> None:
    runner = built_runner(dense_file, workers_num=2 if cores.usable().limit > 1 else 1)
    runner.close(timeout_s)
    runner.close(timeout_s=timeout_s)


def test_a_with_block_closes_even_after_an_error(dense_file: Path) -> None:
    runner = built_runner(dense_file)
    with pytest.raises(ZeroDivisionError), runner:
        _ = 1 / 0
    with pytest.raises(ClosedError):
        runner.predict([X])


def test_a_runner_cannot_be_copied_or_pickled(dense: mslite.ModelParallelRunner) -> None:
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="cannot be pickled; build it in the process"):
            attempt(dense)


def test_the_users_context_is_only_read() -> None:
    context = mslite.Context()
    context.cpu.thread_num = 1
    context.cpu.inter_op_parallel_num = 1
    context.parallel.workers_num = 1
    context.parallel.config_info = {"batching": {"max_batch_rows": "4"}}

    def state() -> Any:
        parts = (context, context.cpu, context.gpu, context.ascend, context.parallel)
        return copy.deepcopy([vars(part) for part in parts[1:]]), dict(
            (k, v) for k, v in vars(context).items() if not k.startswith("_")
        )

    before = state()
    with mslite.ModelParallelRunner() as runner:
        runner.build_from_file(str(DIGITS), context)
        runner.predict([np.zeros((1, 1, 8, 8), np.float32)])
        assert state() == before
        context.parallel.queue_size = 1  # later changes do not reach the runner
        context.cpu.thread_num = 64
        assert runner.statistics().layout.threads == 1


# --- inputs ---------------------------------------------------------------------------------------

GIVEN: dict[str, Callable[[mslite.ModelParallelRunner], Any]] = {
    "a list of arrays": lambda r: [X],
    "a tuple of arrays": lambda r: (X,),
    "tensors without names": lambda r: [mslite.Tensor(X)],
    "a dict of arrays": lambda r: {"x": X},
    "a dict of tensors": lambda r: {"x": mslite.Tensor(X)},
    "an array that is not contiguous": lambda r: [np.asfortranarray(X)],
    "a read-only array": lambda r: [np.frombuffer(X.tobytes(), np.float32).reshape(2, 3)],
    "an array of swapped bytes": lambda r: [X.astype(">f4")],
    "a flat array of the right size": lambda r: [X.reshape(-1)],
    "one axis more": lambda r: [X.reshape(1, 2, 3)],
    "a list of numbers": lambda r: [X.tolist()],
    "the runner's own inputs": lambda r: filled(r.get_inputs()),
}


def filled(inputs: list[mslite.Tensor]) -> list[mslite.Tensor]:
    inputs[0].set_data_from_numpy(X)
    return inputs


@pytest.mark.parametrize("give", GIVEN.values(), ids=GIVEN)
def test_inputs_may_be_given_in_many_ways(
    dense: mslite.ModelParallelRunner, give: Callable[..., Any]
) -> None:
    np.testing.assert_array_equal(arrays(dense.predict(give(dense)))[0], dense_values(X))
    np.testing.assert_array_equal(arrays(dense.submit(give(dense)).result(120))[0], dense_values(X))


def test_a_tensor_made_by_the_user_with_copied_attributes_is_taken(
    dense: mslite.ModelParallelRunner,
) -> None:
    (source,) = dense.get_inputs()
    mine = mslite.Tensor()
    mine.dtype, mine.shape = source.dtype, source.shape
    mine.format, mine.name = source.format, source.name
    mine.set_data_from_numpy(X)
    np.testing.assert_array_equal(arrays(dense.predict([mine]))[0], dense_values(X))


BAD: list[tuple[Any, type[Exception], str]] = [
    (X, TypeError, "inputs must be list"),
    ("x", TypeError, "inputs must be list"),
    (None, TypeError, "inputs must be list"),
    (mslite.Tensor(X), TypeError, "inputs must be list"),
    (["input"], TypeError, "inputs element must be Tensor"),
    ([None], TypeError, "inputs element must be Tensor"),
    ([[1.0]], InputError, "predict failed! data size not equal!"),
    ([X.reshape(3, 2)], ShapeError, "the model cannot take the shapes {'x': [3, 2]}"),
    ([], InputError, "predict failed! model input len:1 not equal input len:0!"),
    ([X, X], InputError, "predict failed! model input len:1 not equal input len:2!"),
    ([mslite.Tensor(), mslite.Tensor()], InputError, "predict failed"),
    ([mslite.Tensor()], InputError, "predict failed! input 'x' has no data"),
    ([X.astype(np.float64)], InputError, "predict failed! data type not equal!"),
    ([mslite.Tensor(X.astype(np.int32))], InputError, "predict failed! data type not equal!"),
    ([np.zeros(5, np.float32)], InputError, "predict failed! data size not equal!"),
    ([np.zeros((1, 4, 3), np.float32)], InputError, "give 2 dims"),
    ([np.zeros((2, 5), np.float32)], ShapeError, "predict failed! the model cannot take"),
    ([np.zeros((0, 3), np.float32)], ShapeError, "every dim must be 1 or more"),
    ({"y": X}, InputError, "missing ['x'], unknown ['y']"),
    ({"x": X, "y": X}, InputError, "unknown ['y']"),
    ({}, InputError, "missing ['x']"),
]


@pytest.mark.parametrize(("given", "kind", "words"), BAD, ids=[f"{n}" for n in range(len(BAD))])
def test_inputs_that_do_not_fit_are_refused_and_the_runner_goes_on(
    dense: mslite.ModelParallelRunner, given: Any, kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind) as caught:
        dense.predict(given)
    assert words in str(caught.value)
    assert str(caught.value).count("predict failed") <= 1
    with pytest.raises(kind) as caught:
        dense.submit(given).result(120)
    assert words in str(caught.value)
    np.testing.assert_array_equal(arrays(dense.predict([X]))[0], dense_values(X))


def test_refused_arguments_are_no_requests(dense: mslite.ModelParallelRunner) -> None:
    with pytest.raises(InputError):
        dense.predict([])
    with pytest.raises(TypeError):
        dense.submit([None])
    assert dense.statistics().sent == 0


def test_every_caller_gets_inputs_of_his_own(dense: mslite.ModelParallelRunner) -> None:
    (mine,), (yours,) = dense.get_inputs(), dense.get_inputs()
    assert mine is not yours
    mine.set_data_from_numpy(X)
    yours.set_data_from_numpy(X * 2)
    np.testing.assert_array_equal(arrays(dense.predict([mine]))[0], dense_values(X))
    np.testing.assert_array_equal(arrays(dense.predict([yours]))[0], dense_values(X * 2))
    assert (mine.name, mine.shape, mine.dtype) == ("x", [2, 3], mslite.DataType.FLOAT32)


# --- outputs --------------------------------------------------------------------------------------


def test_outputs_are_known_before_a_run_as_far_as_they_can_be(
    dense: mslite.ModelParallelRunner, digits: mslite.ModelParallelRunner
) -> None:
    (meta,) = dense.get_outputs()
    (output,) = dense.predict([X])
    assert (output.name, output.shape, output.dtype) == (meta.name, meta.shape, meta.dtype)
    assert digits.get_outputs()[0].shape == [-1, 10]


def test_outputs_that_callers_bring_are_filled_by_submit(dense: mslite.ModelParallelRunner) -> None:
    memory = np.zeros((2, 4), np.float32)
    mine = mslite.Tensor(memory)
    (returned,) = dense.submit([X * 2], outputs=(mine,)).result(120)  # type: ignore[arg-type]
    assert returned is mine
    np.testing.assert_array_equal(memory, dense_values(X * 2))


@pytest.mark.parametrize(("outputs", "kind", "words"), REFUSED_OUTPUTS)
def test_outputs_that_do_not_fit_are_refused_before_they_are_sent(
    dense: mslite.ModelParallelRunner, outputs: Any, kind: type[Exception], words: str
) -> None:
    for call in (dense.predict, dense.submit):
        with pytest.raises(kind, match=words):
            call([X], outputs)
    assert dense.statistics().sent == 0


# --- the same results as Model --------------------------------------------------------------------


@pytest.mark.parametrize("path", [DYN_BATCH, MOBILENET, SWIN, TWO_IN_TWO_OUT, MIXED_TYPES])
@pytest.mark.parametrize("workers", [0, 1])
def test_results_are_those_of_mindspore_and_of_model(path: Path, workers: int) -> None:
    inputs, want = fixture_arrays(path.with_suffix(".npz"))
    with built_runner(path, workers_num=workers) as runner:
        got = arrays(runner.predict(list(inputs)))
        again = arrays(runner.submit(list(inputs)).result(120))
    for a, b, c, reference in zip(
        got, again, arrays(built(path).predict(list(inputs))), want, strict=True
    ):
        assert_close(a, reference)
        assert_close(b, reference)
        assert_close(a, c)


def test_automatic_widths_give_the_same_results() -> None:
    (x,), (want,) = fixture_arrays(MOBILENET.with_suffix(".npz"))
    runner = mslite.ModelParallelRunner()
    with runner:
        runner.build_from_file(str(MOBILENET))
        futures = [runner.submit([x]) for _ in range(6)]
        for outputs in [runner.predict([x]), *(future.result(120) for future in futures)]:
            assert_close(arrays(outputs)[0], want)


def test_a_run_that_fails_inside_the_runtime_says_why(tmp_path: Path) -> None:
    """Row 9 of a table of 3."""
    net = Net()
    rows = net.input("rows", (1,), np.int64)
    y = net.call("Gather", net.weight("w", np.ones((3, 2), np.float32)), rows, net.constant(0))
    path = written(tmp_path / "gather.mindir", encode(net.model(y)))
    for workers in (0, 1):
        with built_runner(path, workers_num=workers) as runner:
            for call in (
                lambda r=runner: r.predict([np.array([9])]),
                lambda r=runner: r.submit([np.array([9])]).result(120),
            ):
                with pytest.raises(EngineError, match=r"predict failed! .*idx=9") as got:
                    call()
                assert got.value.__cause__ is not None
            assert arrays(runner.predict([np.array([2])]))[0].tolist() == [[1, 1]]
            found = runner.statistics()
            assert (found.failed, found.done) == (2, 1)


# --- shapes ---------------------------------------------------------------------------------------


def test_a_model_of_fixed_sizes_takes_others(dense: mslite.ModelParallelRunner) -> None:
    for rows in (1, 2, 5, 3, 2):
        x = np.arange(3 * rows, dtype=np.float32).reshape(rows, 3)
        np.testing.assert_array_equal(arrays(dense.predict([x]))[0], dense_values(x))
    assert dense.get_inputs()[0].shape == [2, 3]
    assert dense.get_outputs()[0].shape == [2, 4]


def test_an_image_model_takes_other_sizes() -> None:
    (x,), (want,) = fixture_arrays(MOBILENET.with_suffix(".npz"))
    with built_runner(MOBILENET, workers_num=1) as runner:
        assert_close(arrays(runner.predict([x]))[0], want)
        three = arrays(runner.predict([np.concatenate([x, x * 0, x])]))[0]
        assert_close(three[:1], want)
        assert_close(three[2:], want)
        wide = np.zeros((1, 3, 96, 96), np.float32)
        reference = built(MOBILENET)
        reference.resize(reference.get_inputs(), [[1, 3, 96, 96]])
        assert_close(arrays(runner.predict([wide]))[0], arrays(reference.predict([wide]))[0])
        assert_close(arrays(runner.predict([x]))[0], want)


def test_sizes_that_layers_fixed_are_refused_and_the_runner_goes_on() -> None:
    (x,), (want,) = fixture_arrays(SWIN.with_suffix(".npz"))
    with built_runner(SWIN, workers_num=1) as runner:
        with pytest.raises(LiteError, match=r"predict failed! "):
            runner.predict([np.zeros((2, 3, 64, 64), np.float32)])
        assert_close(arrays(runner.predict([x]))[0], want)
        assert runner.statistics().failed == 1


def test_two_inputs_change_their_sizes_together() -> None:
    with built_runner(TWO_IN_TWO_OUT, workers_num=1) as runner:
        a, b = np.ones((5, 6), np.float32), np.ones((6, 7), np.float32)
        assert [v.shape for v in arrays(runner.predict([a, b]))] == [(5, 7), (5,)]
        with pytest.raises(LiteError):
            runner.predict([a, np.ones((4, 7), np.float32)])
        assert [v.shape for v in arrays(runner.predict({"b": b, "a": a}))] == [(5, 7), (5,)]


def test_a_file_exchanged_after_the_build_is_not_mixed_with_the_old_one(
    dense: mslite.ModelParallelRunner, dense_file: Path, tmp_path: Path
) -> None:
    os.replace(written(tmp_path / "new", dense_net(factor=2)), dense_file)
    with pytest.raises(LiteError, match=r"predict failed! .* changed since it was built"):
        dense.predict([np.ones((4, 3), np.float32)])
    np.testing.assert_array_equal(arrays(dense.predict([X]))[0], dense_values(X))


@pytest.mark.parametrize("workers", [0, 2])
def test_many_threads_with_mixed_shapes_get_each_their_own(dense_file: Path, workers: int) -> None:
    """Five clients and more, as the original's example has it; no answer is swapped."""
    problems: list[object] = []
    start = threading.Barrier(8)

    def ask(runner: mslite.ModelParallelRunner, number: int) -> None:
        start.wait(120)
        for turn in range(40):
            x = np.full((1 + (number + turn) % 4, 3), 100 * number + turn, np.float32)
            ways: list[Callable[[], list[mslite.Tensor]]] = [
                lambda x=x: runner.predict([x]),
                lambda x=x: runner.submit([x]).result(120),
                lambda x=x: runner.predict([x], timeout_s=120),
            ]
            try:
                (got,) = arrays(ways[turn % 3]())
                if not np.array_equal(got, dense_values(x)):
                    problems.append((number, turn, got))
            except Exception as exc:  # noqa: BLE001 - shown by the assertion below
                problems.append(exc)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a machine of one core warns of two workers
        runner = built_runner(dense_file, workers_num=workers)
    with runner:
        threads = [threading.Thread(target=ask, args=(runner, n)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found = runner.statistics()
    assert problems == []
    assert (found.sent, found.done) == (320, 320)


# --- statistics -----------------------------------------------------------------------------------


def test_statistics_are_a_record_of_one_moment(digits: mslite.ModelParallelRunner) -> None:
    x = np.zeros((3, 1, 8, 8), np.float32)
    digits.predict([x])
    before = digits.statistics()
    digits.submit([x]).result(120)
    after = digits.statistics()
    assert (before.sent, after.sent, after.done) == (1, 2, 2)
    assert after.layout.workers == len(after.workers) == 1
    assert after.workers[0].done == 2
    assert after.run_time.count == 2
    assert after.run_time.p50_ms <= after.run_time.p99_ms <= after.run_time.max_ms
    with pytest.raises(dataclasses.FrozenInstanceError):
        before.sent = 5  # type: ignore[misc]
    assert dataclasses.asdict(after)["done"] == 2
    assert pickle.loads(pickle.dumps(after)) == after


def test_the_warm_up_is_not_counted(digits: mslite.ModelParallelRunner) -> None:
    digits.warm_up()
    assert digits.statistics().sent == 0
