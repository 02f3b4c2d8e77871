"""Networks that keep parameters from one run to the next, through the public API.

tests/data/state.zip: MindSpore ran each several times in a row; scripts/fixtures/state.py made it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from support.archives import cases_of
from support.mindir_builder import Net, encode, tensor_type
from support.models import MINDIR
from support.running import assert_close
from support.updates import changeable, named, outputs, update

import mindspore_lite as mslite
from mindspore_lite.converter import Converter
from mindspore_lite.errors import LiteError

CasePath = Callable[[str], Path]
ENGINES = ("onnxruntime", "openvino", "torch")
pytestmark = pytest.mark.filterwarnings("ignore:.*runs step by step")


def built(path: Path | bytes, engine: str = "onnxruntime", **more: str) -> mslite.Model:
    context = mslite.Context()
    context.cpu.thread_num = 1
    config = {"common_context": {"engine": engine}, **({"build": more} if more else {})}
    model = mslite.Model()
    if isinstance(path, bytes):
        model.build_from_buffer(path, MINDIR, context, config_dict=config)
    else:
        model.build_from_file(str(path), MINDIR, context, config_dict=config)
    return model


def adding(start: np.ndarray, shape: tuple[int, ...] = (3,)) -> bytes:
    """A network that returns the sum of its inputs so far, in the type of `start`."""
    net = Net()
    x, u = net.input("x", shape, start.dtype), net.monad()
    total = net.weight("total", start)
    net.call("AssignAdd", total, x, u)
    kind = tensor_type(start.shape, start.dtype)
    return encode(net.model(net.call("Load", total, u, type=kind)))


ONE = np.ones(3, np.float32)


@pytest.fixture
def counter(case_path: CasePath) -> Path:
    return case_path("state/counter")


def count(model: mslite.Model) -> int:
    """Run it once; the number of runs so far, as it says."""
    _, found = outputs(model, np.ones(2, np.float32))
    return int(found)


# --- what is carried ------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", cases_of("state"))
def test_runs_in_a_row_give_what_mindspore_gave(
    case: str, engine: str, case_path: CasePath
) -> None:
    path = case_path(case)
    with np.load(path.with_suffix(".npz")) as found, built(path, engine) as model:
        for run in ("", "run1_", "run2_", "run3_"):
            for at, got in enumerate(outputs(model, found[f"{run}i0"])):
                assert_close(got, found[f"{run}o{at}"], f"{run}o{at}")


def test_callers_see_the_inputs_and_outputs_of_the_network_alone(counter: Path) -> None:
    with built(counter) as model:
        assert [tensor.name for tensor in model.get_inputs()] == ["x"]
        assert len(model.get_outputs()) == 2
        assert model.get_model_info("input_shape") == "x:[2]"


@pytest.mark.parametrize("engine", ENGINES)
def test_what_a_caller_does_to_an_output_does_not_reach_the_state(engine: str) -> None:
    with built(adding(np.zeros(3, np.float32)), engine) as model:
        (total,) = outputs(model, ONE)
        if total.flags.writeable:
            total[:] = 100
        np.testing.assert_array_equal(outputs(model, ONE)[0], [2, 2, 2])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.filterwarnings("ignore:computed with less precision")  # float64 on OpenVINO
@pytest.mark.parametrize("dtype", ["int8", "int64", "float16", "float64", "uint8"])
def test_a_state_has_the_type_of_its_parameter(engine: str, dtype: str) -> None:
    with built(adding(np.full(3, 5, dtype)), engine) as model:
        for wanted in (6, 7, 8):
            (got,) = outputs(model, np.ones(3, dtype))
            np.testing.assert_array_equal(got, np.full(3, wanted, dtype), strict=True)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_state_of_bfloat16_is_rounded_between_runs(engine: str) -> None:
    bfloat16 = mslite.Tensor(shape=[1], dtype=mslite.DataType.BFLOAT16).get_data_to_numpy().dtype
    with built(adding(np.full(3, 256, bfloat16)), engine) as model:
        for _ in range(3):  # 257 is none of its numbers: the sum stays where it is
            (got,) = outputs(model, np.ones(3, bfloat16))
        np.testing.assert_array_equal(got, np.full(3, 256, bfloat16), strict=True)


def test_a_state_of_complex_numbers_is_kept() -> None:
    net = Net()
    x, u = net.input("x", (2,), np.complex64), net.monad()
    total = net.weight("total", np.array([1, 2j], np.complex64))
    net.call("Assign", total, net.call("Mul", net.call("Load", total, u), x), u)
    kind = tensor_type((2,), np.complex64)
    with built(encode(net.model(net.call("Load", total, u, type=kind)))) as model:
        given = np.array([1j, 2], np.complex64)
        np.testing.assert_allclose(outputs(model, given)[0], [1j, 4j])
        np.testing.assert_allclose(outputs(model, given)[0], [-1, 8j])


def test_a_model_without_a_cache_and_one_from_the_cache_keep_it(
    counter: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSLITE_CACHE_DIR", str(tmp_path / "cache"))
    for _ in range(2):
        with built(counter) as model:
            assert [count(model), count(model)] == [6, 7]
    monkeypatch.setenv("MSLITE_CACHE", "off")
    with built(counter) as model:
        assert [count(model), count(model)] == [6, 7]


def test_a_model_that_a_jailed_child_compiled_keeps_it(counter: Path) -> None:
    with built(counter, sandbox="on") as model:
        assert [count(model), count(model)] == [6, 7]


def test_inputs_of_any_rank_go_with_a_state() -> None:
    net = Net()
    x, u = net.input("x", None), net.monad()
    runs = net.weight("runs", np.float32(0))
    net.call("AssignAdd", runs, net.constant(1.0), u)
    with built(encode(net.model(net.call("Add", x, net.call("Load", runs, u))))) as model:
        assert outputs(model, np.zeros((2, 2), np.float32))[0][0, 0] == 1
        assert outputs(model, np.zeros((3,), np.float32))[0][0] == 2


# --- where it ends --------------------------------------------------------------------------------


def test_each_model_has_a_state_of_its_own(counter: Path) -> None:
    with built(counter) as one, built(counter) as other:
        assert [count(one), count(one), count(other)] == [6, 7, 6]


def test_close_and_another_build_begin_with_the_file(counter: Path) -> None:
    model = built(counter)
    assert [count(model), count(model)] == [6, 7]
    model.close()
    model.build_from_file(str(counter), MINDIR)
    assert count(model) == 6
    model.close()


@pytest.mark.parametrize("size", [2, 4])  # the size that it has already, and another one
def test_resize_begins_with_the_file(counter: Path, size: int) -> None:
    with built(counter) as model:
        assert [count(model), count(model)] == [6, 7]
        model.resize(model.get_inputs(), [[size]])
        _, found = outputs(model, np.ones(size, np.float32))
        assert int(found) == 6


def test_a_resize_that_is_refused_leaves_the_state(counter: Path) -> None:
    with built(counter) as model:
        assert count(model) == 6
        with pytest.raises(RuntimeError, match="resize failed"):
            model.resize(model.get_inputs(), [[2, 2, 2]])
        assert count(model) == 7


def test_a_run_that_is_refused_leaves_the_state(counter: Path) -> None:
    with built(counter) as model:
        assert count(model) == 6
        with pytest.raises(RuntimeError, match="predict failed"):
            model.predict([np.ones(3, np.float32)])
        assert count(model) == 7


# --- threads --------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_runs_of_several_threads_come_one_after_the_other(engine: str, counter: Path) -> None:
    with built(counter, engine) as model, ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: count(model), range(40)))
    assert sorted(found) == list(range(6, 46))


def test_updates_and_runs_at_once_lose_no_run(counter: Path) -> None:
    with changeable(counter, "count") as model:
        done = threading.Event()
        seen: list[int] = []

        def run() -> None:
            while not done.is_set():
                seen.append(count(model))

        with ThreadPoolExecutor(2) as threads:
            running = [threads.submit(run) for _ in range(2)]
            for start in (1, 2, 3):  # so many apart that no run counts up to the next
                update(model, {"count": np.asarray(start * 10**8, np.int32)})
            done.set()
            for one in running:
                one.result()
        assert len(seen) == len(set(seen))
        for start in {n // 10**8 for n in seen}:
            some = sorted(n % 10**8 for n in seen if n // 10**8 == start)
            assert some == list(range(some[0], some[0] + len(some)))
            assert some[0] == (1 if start else 6)


# --- weights --------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_an_update_of_a_parameter_replaces_its_state(engine: str, case_path: CasePath) -> None:
    path = case_path("state/averages")
    context = mslite.Context()
    context.cpu.thread_num = 1
    settings = {
        "common_context": {"engine": engine},
        "ascend_context": {"variable_weights_list": "slow"},
    }
    with mslite.Model() as model:
        model.build_from_file(str(path), MINDIR, context, config_dict=settings)
        x = np.array([4, 8, 12], np.float32)
        np.testing.assert_allclose(outputs(model, x)[0], [1, 1, 1])  # fast: 0 -> 3, 6, 9
        update(model, {"slow": np.array([10, 20, 30], np.float32)})
        np.testing.assert_allclose(outputs(model, x)[0], [10, 20, 30])  # fast went on
        np.testing.assert_allclose(outputs(model, x)[0], [6.5, 13, 19.5])
        model.update_weights([])
        np.testing.assert_allclose(outputs(model, x)[0], [1, 1, 1])


def test_an_update_that_is_refused_leaves_the_state(counter: Path) -> None:
    with changeable(counter, "count") as model:
        assert count(model) == 6
        with pytest.raises(RuntimeError, match="shape"):
            model.update_weights([[named("count", np.zeros(7, np.int32))]])
        assert count(model) == 7


def test_the_value_of_an_update_counts_again_after_a_resize(counter: Path) -> None:
    with changeable(counter, "count") as model:
        update(model, {"count": np.asarray(50, np.int32)})
        assert [count(model), count(model)] == [51, 52]
        model.resize(model.get_inputs(), [[2]])
        assert count(model) == 51


def test_models_of_a_group_share_weights_and_not_their_state(counter: Path) -> None:
    group = mslite.ModelGroup(mslite.ModelGroupFlag.SHARE_WEIGHT)
    models = [mslite.Model(), mslite.Model()]
    group.add_model(models)
    for model in models:
        model.build_from_file(str(counter), MINDIR)
    assert [count(models[0]), count(models[0]), count(models[1])] == [6, 7, 6]


# --- where nothing can carry it -------------------------------------------------------------------


def test_a_runner_refuses_with_the_reason(counter: Path) -> None:
    with pytest.raises(RuntimeError, match=r"keeps its parameters \['count'\].*would disagree"):
        mslite.ModelParallelRunner().build_from_file(str(counter))


def test_a_runner_on_several_devices_refuses_with_the_reason(counter: Path) -> None:
    context = mslite.Context()
    context.target = ["cpu"]
    with pytest.raises(RuntimeError, match="would disagree"):
        mslite.MultiDeviceRunner().build_from_file(str(counter), context)


def test_the_converter_refuses_with_the_reason(counter: Path, tmp_path: Path) -> None:
    with pytest.raises((RuntimeError, LiteError), match="changes its parameter 'count'"):
        Converter().convert(mslite.FmkType.MINDIR, str(counter), str(tmp_path / "out"))
    assert list(tmp_path.iterdir()) == []
