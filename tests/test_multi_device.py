"""multi_device.py: one batch over several devices gives what one device gives."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Iterator
from concurrent.futures import CancelledError as FutureCancelledError
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx.parser
import pytest
from support.devices import device, is_idle, on_devices, unsplit, wait_until_computing
from support.fake_engine import LIMIT_S, growing, wait_for
from support.fake_workers import begun
from support.models import (
    DIGITS,
    DYN_BATCH,
    ENDLESS,
    MIXED_TYPES,
    REFUSED_OUTPUTS,
    TWO_IN_TWO_OUT,
    arrays,
    built,
    dense_net,
    dense_values,
    looping,
    written,
)
from support.running import DATA, assert_close

import mindspore_lite as mslite
from mindspore_lite.errors import (
    EngineError,
    InputError,
    LiteError,
    QueueFullError,
    RequestTimeoutError,
)

X = np.array([3, 4], np.float32)
QUICK, NEVER = [np.array(3), X], [ENDLESS, X]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, worker_cache: Path) -> Iterator[Path]:
    """A directory for models, and the tests' own cache for runners that several tests share."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MSLITE_CACHE_DIR", str(worker_cache))
        yield tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def digits(place: Path) -> Iterator[mslite.MultiDeviceRunner]:
    with on_devices(DIGITS) as runner:
        yield runner


@pytest.fixture(scope="module")
def dense(place: Path) -> Iterator[mslite.MultiDeviceRunner]:
    """Of any number of rows."""
    with on_devices(written(place / "dense.mindir", dense_net(-1))) as runner:
        yield runner


@pytest.fixture(scope="module")
def loop(place: Path) -> Iterator[mslite.MultiDeviceRunner]:
    with on_devices(looping(place / "loop.onnx"), queue_size=3) as runner:
        yield runner


MANY_TYPES = """
<ir_version: 10, opset_import: ["" : 21]>
graph (float[N,3] x, bfloat16[N] b, bool[N,2] f, int8[N] i, double[N,1] d, float[] t)
    => (float[N,3] y, bfloat16[N] c, bool[N,2] g, int8[N] j, double[N,1] e, float[3] k, float[] u)
    <float[3] w = {1, 2, 3}>
{
    y = Add(x, t)
    c = Identity(b)
    g = Not(f)
    j = Neg(i)
    e = Abs(d)
    k = Identity(w)
    u = Mul(t, t)
}
"""


def onnx_file(path: Path, text: str) -> Path:
    return written(path, onnx.parser.parse_model(text).SerializeToString())


@pytest.fixture(scope="module")
def many_types(place: Path) -> Iterator[mslite.MultiDeviceRunner]:
    with on_devices(onnx_file(place / "types.onnx", MANY_TYPES)) as runner:
        yield runner


def of_many_types(rows: int) -> list[np.ndarray]:
    random = np.random.default_rng(rows)
    return [
        random.normal(size=(rows, 3)).astype(np.float32),
        random.normal(size=rows).astype(ml_dtypes.bfloat16),
        random.integers(0, 2, (rows, 2)).astype(bool),
        random.integers(-100, 100, rows).astype(np.int8),
        random.normal(size=(rows, 1)),
        np.array(50.0, np.float32),
    ]


def images(rows: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random((rows, 1, 8, 8), np.float32)


# --- answers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [0, 1, 2, 3, 5, 64])
def test_digits_of_any_number_of_rows(digits: mslite.MultiDeviceRunner, rows: int) -> None:
    x = images(rows)
    (got,) = arrays(digits.predict([x]))
    assert_close(got, unsplit(DIGITS, x)[0])


@pytest.mark.parametrize("name", ["bert", "lstm", "resnet"])
def test_networks_with_an_open_batch(name: str) -> None:
    path = DATA / f"onnx_nets/{name}.onnx"
    random = np.random.default_rng(0)
    with on_devices(path) as runner:
        inputs = [
            random.integers(0, 2, (5, *info.shape[1:])).astype(np.int64)
            if info.dtype == mslite.DataType.INT64
            else random.random((5, *info.shape[1:]), np.float32)
            for info in runner.get_inputs()
        ]
        got = arrays(runner.predict(inputs))
        assert [d.done for d in runner.statistics().devices] == [1, 1]
    for mine, wanted in zip(got, unsplit(path, *inputs), strict=True):
        assert_close(mine, wanted)


def test_large_tensors_and_sizes_that_grow_and_shrink() -> None:
    """Above what travels in a frame: 600 KB per row, through shared memory that is used again."""
    random = np.random.default_rng(0)
    images = random.random((7, 3, 224, 224), np.float32)
    with on_devices(DYN_BATCH) as runner:
        whole = unsplit(DYN_BATCH, images)[0]
        for rows in (1, 2, 7, 3, 1, 7):
            assert_close(arrays(runner.predict([images[:rows]]))[0], whole[:rows])


@pytest.mark.parametrize("rows", [1, 2, 3, 2000, 5])
def test_every_type_scalars_and_outputs_without_the_batch(
    many_types: mslite.MultiDeviceRunner, rows: int
) -> None:
    given = of_many_types(rows)
    x, b, f, i, d, t = given
    got = arrays(many_types.predict(given))
    wanted = [x + t, b, ~f, -i, np.abs(d), np.array([1, 2, 3], np.float32), t * t]
    for mine, one in zip(got, wanted, strict=True):
        assert (mine.dtype, mine.shape) == (one.dtype, one.shape)
        np.testing.assert_array_equal(mine, one)


@pytest.mark.parametrize("batches", [1, 2, 5])
def test_a_fixed_batch_is_split_into_parts_of_its_size(batches: int) -> None:
    random = np.random.default_rng(0)
    i = random.integers(-9, 9, (2 * batches, 3)).astype(np.int32)
    b = random.integers(0, 2, (2 * batches, 3)).astype(bool)
    h = random.random((2 * batches, 3)).astype(np.float16)
    with on_devices(MIXED_TYPES) as runner:
        got = arrays(runner.predict([i, b, h]))
        assert sum(d.done for d in runner.statistics().devices) == batches
    model = built(MIXED_TYPES)
    parts = [
        arrays(model.predict([a[at : at + 2] for a in (i, b, h)])) for at in range(0, len(i), 2)
    ]
    for mine, wanted in zip(got, zip(*parts, strict=True), strict=True):
        np.testing.assert_array_equal(mine, np.concatenate(wanted))


def test_an_input_of_the_models_own_size_is_sent_whole() -> None:
    a, b = np.ones((6, 3), np.float32), np.arange(12, dtype=np.float32).reshape(3, 4)
    with on_devices(TWO_IN_TWO_OUT) as runner:
        product, _ = arrays(runner.predict([a, b]))
    np.testing.assert_array_equal(product, a @ b)


def test_rows_that_depend_on_each_other_are_not_split(tmp_path: Path) -> None:
    text = """
    <ir_version: 10, opset_import: ["" : 21]>
    graph (float[N,3] x) => (float[N,3] y) { y = Softmax<axis = 0>(x) }
    """
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    with on_devices(onnx_file(tmp_path / "m.onnx", text)) as runner:
        with pytest.raises(EngineError, match=r"predict failed! the batch cannot be split: .*'y'"):
            runner.predict([x])
        (one,) = arrays(runner.predict([x[:1]]))
        np.testing.assert_array_equal(one, np.ones((1, 3), np.float32))
        first, second = runner.predict_parts([[x[:2]], [x[2:]]])
        assert first[0].shape == second[0].shape == [2, 3]


def test_a_table_of_any_length_beside_the_rows_is_sent_whole_when_scatter_says_so(
    tmp_path: Path,
) -> None:
    text = """
    <ir_version: 10, opset_import: ["" : 21]>
    graph (float[N,3] x, float[T,3] k) => (float[N,3] y) {
        turned = Transpose(k)
        near = MatMul(x, turned)
        weights = Softmax(near)
        y = MatMul(weights, k)
    }
    """
    path = onnx_file(tmp_path / "m.onnx", text)
    random = np.random.default_rng(0)
    x, k = random.random((4, 3), np.float32), random.random((4, 3), np.float32)
    (wanted,) = arrays(built(path, mslite.ModelType.ONNX).predict([x, k]))
    with on_devices(path) as runner:
        for _ in range(2):  # tried, and remembered
            (got,) = arrays(runner.predict([x, k], scatter={"k": False}))
            np.testing.assert_allclose(got, wanted, rtol=1e-6)
        with pytest.raises(EngineError, match="the batch cannot be split"):
            runner.predict([x, k])
        assert [d.done for d in runner.statistics().devices] == [2, 2]


def test_scatter_says_what_carries_the_batch(dense: mslite.MultiDeviceRunner) -> None:
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    before = [d.done for d in dense.statistics().devices]
    (got,) = arrays(dense.predict([x], scatter={"x": False}))
    np.testing.assert_array_equal(got, dense_values(x))
    after = [d.done for d in dense.statistics().devices]
    assert sorted(b - a for a, b in zip(before, after, strict=True)) == [0, 1]
    with pytest.raises(ValueError, match="scatter names"):
        dense.predict([x], scatter={"z": True})


def test_outputs_stay_as_they_are(many_types: mslite.MultiDeviceRunner) -> None:
    """They own their memory: a later request over the same lanes must not change them."""
    sizes = [40_000, 1, 40_000, 2, 3]
    first = [many_types.predict(of_many_types(rows)) for rows in sizes]
    before = [[a.copy() for a in arrays(found)] for found in first]
    for rows in (40_000, 3, 1):
        many_types.predict([np.zeros_like(a) for a in of_many_types(rows)])
    for found, kept in zip(first, before, strict=True):
        for mine, wanted in zip(arrays(found), kept, strict=True):
            np.testing.assert_array_equal(mine, wanted)


def test_tensors_in_and_tensors_out(digits: mslite.MultiDeviceRunner) -> None:
    x = images(6)
    (tensor,) = digits.get_inputs()
    tensor.shape = list(x.shape)
    tensor.set_data_from_numpy(x)
    out = mslite.Tensor(shape=[6, 10], dtype=mslite.DataType.FLOAT32)
    (mine,) = digits.predict([tensor], [out])
    assert mine is out
    np.testing.assert_array_equal(out.get_data_to_numpy(), arrays(digits.predict({"x": x}))[0])


@pytest.mark.parametrize(("outputs", "error", "text"), REFUSED_OUTPUTS)
def test_outputs_that_do_not_fit_are_refused(
    dense: mslite.MultiDeviceRunner, outputs: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        dense.predict([np.zeros((2, 3), np.float32)], outputs)


@pytest.mark.parametrize(
    ("inputs", "error", "text"),
    [
        ("x", TypeError, "inputs must be list or tuple"),
        ([], InputError, "predict failed! model input len:1 not equal input len:0"),
        ([np.zeros((2, 3))], InputError, "data type not equal"),
        ([np.zeros(3, np.float32)], InputError, "give 2 dims"),
        ([np.zeros((4, 7), np.float32)], LiteError, "predict failed! "),
    ],
)
def test_inputs_that_do_not_fit_are_refused(
    dense: mslite.MultiDeviceRunner, inputs: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        dense.predict(inputs)


def test_sixteen_threads_get_their_own_answers(digits: mslite.MultiDeviceRunner) -> None:
    given = [images(1 + seed * 7 % 23, seed) for seed in range(16)]
    wanted = [unsplit(DIGITS, x)[0] for x in given]

    def ask(number: int) -> None:
        for turn in range(6):
            at = (number + turn) % 16
            assert_close(arrays(digits.predict([given[at]]))[0], wanted[at])

    for result in [begun(lambda number=number: ask(number)) for number in range(16)]:
        result()


# --- parts ----------------------------------------------------------------------------------------


def test_parts_are_computed_each_on_its_device(dense: mslite.MultiDeviceRunner) -> None:
    given = [np.full((rows, 3), rows, np.float32) for rows in (1, 4, 2)]
    found = dense.predict_parts([[x] for x in given])
    for outputs, x in zip(found, given, strict=True):
        np.testing.assert_array_equal(arrays(outputs)[0], dense_values(x))
    assert dense.predict_parts([]) == []


def test_errors_of_parts_can_be_had_as_results(dense: mslite.MultiDeviceRunner) -> None:
    good, bad = np.ones((2, 3), np.float32), np.ones((2, 7), np.float32)
    first, second, third = dense.predict_parts([[good], [bad], [good]], return_errors=True)
    assert isinstance(second, LiteError)
    for outputs in (first, third):
        np.testing.assert_array_equal(arrays(outputs)[0], dense_values(good))
    with pytest.raises(LiteError, match="predict failed! "):
        dense.predict_parts([[good], [bad]])
    assert dense.is_ready()


def test_parts_must_be_a_list_of_inputs(dense: mslite.MultiDeviceRunner) -> None:
    with pytest.raises(TypeError, match="parts must be list or tuple of inputs"):
        dense.predict_parts("ab")  # type: ignore[arg-type]


# --- waiting --------------------------------------------------------------------------------------


def test_futures_are_answered(digits: mslite.MultiDeviceRunner) -> None:
    given = [images(rows, rows) for rows in (1, 5, 3)]
    futures = [digits.submit([x]) for x in given]
    for future, x in zip(futures, given, strict=True):
        assert_close(arrays(future.result(LIMIT_S))[0], unsplit(DIGITS, x)[0])


def test_coroutines_are_answered(digits: mslite.MultiDeviceRunner) -> None:
    async def ask() -> list[list[mslite.Tensor]]:
        return await asyncio.gather(*(digits.predict_async([images(rows)]) for rows in (1, 2, 3)))

    assert [found[0].shape for found in asyncio.run(ask())] == [[1, 10], [2, 10], [3, 10]]


def test_an_error_in_a_future_is_that_of_predict(dense: mslite.MultiDeviceRunner) -> None:
    error = dense.submit([np.zeros((2, 7), np.float32)]).exception(LIMIT_S)
    assert isinstance(error, LiteError)
    assert str(error).startswith("predict failed! ")


def test_a_future_can_be_cancelled_while_it_runs(loop: mslite.MultiDeviceRunner) -> None:
    future = loop.submit(NEVER)
    wait_until_computing(loop, 0)
    assert future.cancel() and future.cancel()
    assert future.cancelled()
    with pytest.raises(FutureCancelledError):
        future.result(LIMIT_S)
    wait_for(lambda: is_idle(loop))
    assert device(loop, 0).restarts == 0
    np.testing.assert_array_equal(arrays(loop.predict(QUICK))[0], X)


def test_a_coroutine_can_be_cancelled_while_it_runs(loop: mslite.MultiDeviceRunner) -> None:
    async def ask() -> None:
        task = asyncio.ensure_future(loop.predict_async(NEVER))
        while not loop.statistics().running:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    before = loop.statistics().cancelled
    asyncio.run(ask())
    wait_for(lambda: loop.statistics().cancelled == before + 1)


def test_a_future_that_is_done_cannot_be_cancelled(loop: mslite.MultiDeviceRunner) -> None:
    future = loop.submit(QUICK)
    future.result(LIMIT_S)
    assert not future.cancel()


def test_no_more_futures_than_the_queue_allows(loop: mslite.MultiDeviceRunner) -> None:
    before = loop.statistics().sent
    futures = [loop.submit(NEVER) for _ in range(3)]
    with pytest.raises(QueueFullError, match="predict failed! 3 requests are under way"):
        loop.submit(QUICK)
    assert loop.statistics().sent == before + 3
    for future in futures:
        assert future.cancel()
    loop.submit(QUICK).result(LIMIT_S)


def test_a_run_that_takes_too_long_is_ended_at_its_deadline(
    loop: mslite.MultiDeviceRunner,
) -> None:
    with pytest.raises(RequestTimeoutError, match=r"predict failed! no answer within"):
        loop.predict(NEVER, timeout_s=0.05)
    for timeout_s in growing(1.0):
        quick, never = loop.predict_parts([QUICK, NEVER], timeout_s=timeout_s, return_errors=True)
        if not isinstance(quick, RequestTimeoutError):
            break
    np.testing.assert_array_equal(arrays(quick)[0], X)
    assert isinstance(never, RequestTimeoutError)
    wait_for(lambda: is_idle(loop))
    assert [d.restarts for d in loop.statistics().devices] == [0, 0]


@pytest.mark.parametrize(("timeout_s", "error"), [(0, ValueError), ("1", TypeError)])
def test_a_deadline_must_be_a_time(
    loop: mslite.MultiDeviceRunner, timeout_s: Any, error: type[Exception]
) -> None:
    with pytest.raises(error, match="timeout_s"):
        loop.predict(QUICK, timeout_s=timeout_s)
    for far_s in (1e9, 1e300, float("inf")):
        (first, _) = loop.predict_parts([QUICK, QUICK], timeout_s=far_s)
        assert first[0].shape == [2]


def test_the_contexts_deadline_counts_where_none_is_given(tmp_path: Path) -> None:
    with on_devices(looping(tmp_path / "loop.onnx"), [0], timeout_s=0.05) as runner:
        text = "^predict failed! no answer within timeout_s=0.05: device 0: "
        with pytest.raises(RequestTimeoutError, match=text):
            runner.predict(NEVER)
        assert runner.predict(QUICK, timeout_s=LIMIT_S)[0].shape == [2]


@pytest.mark.parametrize("how", ["done", "cancelled", "timed out"])
def test_a_future_and_its_results_go_with_the_last_reference(
    loop: mslite.MultiDeviceRunner, how: str
) -> None:
    """Without the garbage collector, which does not know how large the arrays are."""
    given = QUICK if how == "done" else NEVER
    gc.collect()
    gc.disable()
    try:
        future = loop.submit(given, timeout_s=0.01 if how == "timed out" else None)
        if how == "cancelled":
            future.cancel()
        wait_for(future.done)
        gone = weakref.ref(future)
        del future
        wait_for(lambda: gone() is None)
    finally:
        gc.enable()


def test_every_way_to_run_has_a_priority_that_reaches_the_devices(
    dense: mslite.MultiDeviceRunner,
) -> None:
    given = [np.ones((4, 3), np.float32)]
    dense.predict(given, priority=1)
    dense.predict_parts([given, given], priority=2)
    dense.submit(given, priority=3).result(LIMIT_S)
    asyncio.run(dense.predict_async(given, priority=-4))
    for found in dense.statistics().devices:
        done = {name: own["done"] for name, own in found.runner["priorities"].items()}
        assert done.items() >= {"1": 1, "2": 1, "3": 1, "-4": 1}.items()


@pytest.mark.parametrize("value", [101, -101])
def test_a_priority_out_of_bounds_is_refused(dense: mslite.MultiDeviceRunner, value: int) -> None:
    given = [np.ones((4, 3), np.float32)]
    words = f"priority must be -100 to 100, but got {value}"
    with pytest.raises(ValueError, match=words):
        dense.predict(given, priority=value)
    with pytest.raises(ValueError, match=words):
        dense.predict_parts([given], priority=value)
    with pytest.raises(ValueError, match=words):
        dense.submit(given, priority=value)
