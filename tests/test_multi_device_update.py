"""multi_device.py: weights change on real processes, while requests run and processes die."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import pytest
from support.devices import (
    context,
    device,
    has_ended,
    on_devices,
    stop_process,
    wait_until_computing,
    wait_until_ready,
)
from support.fake_engine import wait_for
from support.fake_workers import begun
from support.models import ENDLESS, dense_net, dense_values, written
from support.updates import (
    SIDE,
    assert_same_bits,
    changeable,
    named,
    outputs,
    telling_net,
    told,
    update,
    variable,
    versions,
)

import mindspore_lite as mslite
from mindspore_lite.errors import (
    ClosedError,
    EngineError,
    InputError,
    ModelFileError,
    WorkerDiedError,
)
from mindspore_lite.remote.devices import start_watch, supervisor, trial
from mindspore_lite.remote.wire.client import Model

ROWS = 5  # which two devices share as 3 and 2
X = np.ones((ROWS, SIDE), np.float32)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "FIRST_BACK_OFF_S", 0.01)
    monkeypatch.setattr(supervisor, "STOP_S", 0.1)


@pytest.fixture
def telling(tmp_path: Path) -> Path:
    return written(tmp_path / "telling.mindir", telling_net(-1))


def changing(path: Path, *names: str, **more: Any) -> AbstractContextManager[Any]:
    """A runner on two devices whose weights may change."""
    return on_devices(path, config_info=variable(*(names or ("a", "b"))), **more)


@pytest.fixture
def runner(telling: Path) -> Iterator[mslite.MultiDeviceRunner]:
    with changing(telling) as runner:
        yield runner


def version(runner: mslite.MultiDeviceRunner) -> str:
    return runner.get_model_info("weights_version")


def kill(runner: mslite.MultiDeviceRunner, index: int) -> None:
    pid = device(runner, index).pid
    os.kill(pid, signal.SIGKILL)
    assert has_ended(pid)


# --- what requests see ----------------------------------------------------------------------------


def test_an_update_is_seen_by_all_rows_on_all_devices(runner: mslite.MultiDeviceRunner) -> None:
    assert (told(runner, ROWS), version(runner)) == (0, "0")
    update(runner, versions(1))
    assert (told(runner, ROWS), version(runner)) == (1, "1")
    assert [d.done for d in runner.statistics().devices] == [2, 2]
    assert [d.restarts for d in runner.statistics().devices] == [0, 0]


def test_a_weight_that_is_not_given_stays_as_it_is(runner: mslite.MultiDeviceRunner) -> None:
    for name in ("a", "b"):
        update(runner, {name: versions(3)[name]})
    assert (told(runner, ROWS), version(runner)) == (3, "2")


def test_no_weights_restore_those_of_the_file(runner: mslite.MultiDeviceRunner) -> None:
    update(runner, versions(1))
    runner.update_weights([])
    assert (told(runner, ROWS), version(runner)) == (0, "2")


def test_several_lists_and_tensors_without_names(runner: mslite.MultiDeviceRunner) -> None:
    first, last = ([mslite.Tensor(a) for a in versions(n).values()] for n in (1, 2))
    runner.update_weights([first, last[:1], last])
    assert told(runner, ROWS) == 2


def test_what_a_tensor_holds_is_copied(runner: mslite.MultiDeviceRunner) -> None:
    """A process that starts again gets what was given then, not what the caller has now."""
    given = versions(1)
    update(runner, given)
    for array in given.values():
        array[:] = 9
    kill(runner, 0)
    wait_until_ready(runner)
    assert told(runner, ROWS) == 1


def test_deltas_are_added_to_the_weights_of_the_file(tmp_path: Path) -> None:
    path = written(tmp_path / "dense.mindir", dense_net(-1))
    rows = np.arange(12, dtype=np.float32).reshape(4, 3)
    with on_devices(path, config_info=variable("w", variable_weights_mode="delta")) as runner:
        for factor in (2, 4):
            update(runner, {"w": np.full((3, 4), factor, np.float32)})
            np.testing.assert_array_equal(outputs(runner, rows)[0], dense_values(rows, 1 + factor))
        kill(runner, 0)
        wait_until_ready(runner)
        np.testing.assert_array_equal(outputs(runner, rows)[0], dense_values(rows, 5))


def test_large_weights_give_what_a_model_gives(tmp_path: Path) -> None:
    """4 MB, which travel in shared memory."""
    text = """<ir_version: 10, opset_import: ["" : 21]>
        graph (float[N,1024] x) => (float[N,1024] y) { y = MatMul(x, w) }"""
    large = onnx.parser.parse_model(text)
    zeros = np.zeros((1024, 1024), np.float32)
    large.graph.initializer.append(onnx.numpy_helper.from_array(zeros, "w"))
    path = written(tmp_path / "large.onnx", large.SerializeToString())
    random = np.random.default_rng(0)
    x, w = random.random((6, 1024), np.float32), random.random((1024, 1024), np.float32)
    model = changeable(path, "w", kind=mslite.ModelType.ONNX)
    with changing(path, "w") as runner:
        for weights in ({"w": w}, {"w": -w}):
            update(model, weights)
            update(runner, weights)
            # by halves, for an engine may add up in another order for other numbers of rows
            wanted = np.concatenate([outputs(model, half)[0] for half in (x[:3], x[3:])])
            assert_same_bits(outputs(runner, x), [wanted])


def test_every_way_of_asking_uses_the_new_weights(runner: mslite.MultiDeviceRunner) -> None:
    update(runner, versions(1))
    answers = [runner.predict([X]), runner.submit([X]).result()]
    answers += [asyncio.run(runner.predict_async([X])), *runner.predict_parts([[X], [X[:1]], [X]])]
    answers += runner.predict_parts([[X], [X]], return_errors=True)
    assert {float(v) for (t,) in answers for v in np.unique(t.get_data_to_numpy())} == {1}


def test_every_request_beside_updates_sees_one_version_and_none_fails(
    runner: mslite.MultiDeviceRunner,
) -> None:
    over = threading.Event()
    newest = [0]

    def ask(act: Callable[[], list[mslite.Tensor]]) -> int:
        count = 0
        while not over.is_set():
            least = newest[0]
            (found,) = {float(v) for t in act() for v in np.unique(t.get_data_to_numpy())}
            assert least <= found <= newest[0] + 1
            count += 1
        return count

    def parts() -> list[mslite.Tensor]:  # more than fly at once
        return [tensor for (tensor,) in runner.predict_parts([[X]] * 7)]

    ways = [lambda: runner.predict([X]), lambda: runner.submit([X]).result(), parts]
    asking = [begun(lambda way=ways[i % 3]: ask(way)) for i in range(8)]
    for number in range(1, 31):
        before = runner.statistics().done
        update(runner, versions(number))
        newest[0] = number
        wait_for(lambda before=before: runner.statistics().done > before + 3)
    over.set()
    assert all(result() > 0 for result in asking)
    assert runner.statistics().failed == 0


LOOP = """
<ir_version: 10, opset_import: ["" : 21]>
graph (int64 n, float[2] x) => (float[2] y) <float[2] w = {1, 1}, bool yes = {1}> {
    z = Mul(x, w)
    y = Loop(n, yes, z) <body = turn (int64 i, bool c, float[2] s) => (bool go, float[2] t) {
        t = Identity(s)
        go = Identity(c)
    }>
}
"""


def test_an_update_does_not_wait_for_a_request_that_takes_long(tmp_path: Path) -> None:
    """Which goes on, and whose model goes when it has ended."""
    model = onnx.parser.parse_model(LOOP)
    path = written(tmp_path / "loop.onnx", model.SerializeToString())
    one = np.ones(2, np.float32)
    with changing(path, "w") as runner:
        never = runner.submit([ENDLESS, one])
        wait_until_computing(runner, 0)
        for factor in (2, 3):
            update(runner, {"w": np.full(2, factor, np.float32)})
            found = runner.predict_parts([[np.array(1), one]] * 2)
            for (tensor,) in found:
                np.testing.assert_array_equal(tensor.get_data_to_numpy(), [factor, factor])
        assert not never.done()
        supervisors = runner._loaded.dispatcher.supervisors  # type: ignore[union-attr]
        assert [len(p.old) for p in supervisors] == [1, 1]
        assert never.cancel()
        wait_for(lambda: [len(p.old) for p in supervisors] == [0, 0])
        assert runner.is_ready()
        assert [d.restarts for d in runner.statistics().devices] == [0, 0]


MIXING = """
<ir_version: 10, opset_import: ["" : 21]>
graph (float[N,2] x) => (float[N,2] y) <float[1] w = {0}, int64[1] rows = {0}> {
    sum = ReduceSum(x, rows)
    part = Mul(sum, w)
    y = Add(x, part)
}
"""


def test_a_model_that_mixes_rows_with_other_weights_is_tried_again(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(MIXING)
    path = written(tmp_path / "mixing.onnx", model.SerializeToString())
    x = np.arange(8, dtype=np.float32).reshape(4, 2)
    with changing(path, "w") as runner:
        np.testing.assert_array_equal(outputs(runner, x)[0], x)
        update(runner, {"w": np.ones(1, np.float32)})
        with pytest.raises(EngineError, match="the batch cannot be split"):
            runner.predict([x])
        runner.update_weights([])
        np.testing.assert_array_equal(outputs(runner, x)[0], x)


def test_requests_do_not_wait_while_it_is_tried_whether_rows_mix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path / "open.mindir", telling_net(-1))
    with changing(path, "a", "b") as runner:
        tries: list[object] = []
        original = trial.difference
        monkeypatch.setattr(trial, "difference", lambda *a: tries.append(a) or original(*a))
        update(runner, versions(1))
        assert len(tries) == 1
        assert told(runner, 4) == 1
        assert len(tries) == 1


def test_a_death_costs_no_request_that_is_tried_first(
    runner: mslite.MultiDeviceRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first request after an update is: its device dies just before."""
    update(runner, versions(1))
    victims: list[int] = []
    start = Model.start

    def late(self: Model, *arguments: Any) -> Any:
        if not victims:
            victims.append(self.session.pid)
            os.kill(victims[0], signal.SIGKILL)
            assert has_ended(victims[0])
        return start(self, *arguments)

    monkeypatch.setattr(Model, "start", late)
    assert told(runner, ROWS) == 1
    assert len(victims) == 1
    assert runner.statistics().failed == 0


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("weights", "text"),
    [
        (
            {"c": np.zeros((SIDE, SIDE), np.float32)},
            r"^update weight failed! Error is no weight 'c'",
        ),
        (
            {**versions(5), "b": np.zeros(3, np.float32)},
            r"^update weight failed! Error is weight 'b' has shape \[8, 8\], but got \[3\]\.",
        ),
        ({"a": np.zeros((SIDE, SIDE))}, "Error is weight 'a' is of type float32, but got float64"),
    ],
)
def test_what_does_not_fit_changes_nothing(
    runner: mslite.MultiDeviceRunner, weights: dict[str, np.ndarray], text: str
) -> None:
    update(runner, versions(1))
    with pytest.raises(InputError, match=text):
        update(runner, weights)
    assert (told(runner, ROWS), version(runner)) == (1, "1")
    assert runner.is_ready()
    kill(runner, 0)
    wait_until_ready(runner)
    assert told(runner, ROWS) == 1


def test_arguments_are_checked_before_any_process_is_asked(
    runner: mslite.MultiDeviceRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor.Supervisor, "made", None)
    with pytest.raises(TypeError, match="weights must be list"):
        runner.update_weights(None)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="holds no data"):
        runner.update_weights([[runner.get_inputs()[0]]])


def test_without_a_word_about_weights_none_may_change(telling: Path) -> None:
    with on_devices(telling) as runner:
        for weights in ([], [[named("a", versions(1)["a"])]]):
            with pytest.raises(EngineError, match="Error is no weight of this model may change"):
                runner.update_weights(weights)
        assert version(runner) == "0"


def test_before_the_build_and_after_the_close(telling: Path) -> None:
    runner = mslite.MultiDeviceRunner()
    assert version(runner) == ""
    with pytest.raises(EngineError, match="the runner is not built"):
        runner.update_weights([])
    with changing(telling) as runner:
        update(runner, versions(1))
        runner.close()
        with pytest.raises(ClosedError, match="update weight failed! Error is the runner was clos"):
            runner.update_weights([])
        assert version(runner) == "1"


# --- deaths ---------------------------------------------------------------------------------------


@pytest.fixture
def dies(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, int], list[int]]:
    """Has processes killed just before or after they take new weights; returns who was."""

    def arm(when: str, count: int) -> list[int]:
        victims: list[int] = []
        lock = threading.Lock()
        take = Model.derived

        def kill_one(model: Model) -> None:
            with lock:
                if len(victims) < count:
                    victims.append(model.session.pid)
                    os.kill(victims[-1], signal.SIGKILL)

        def taken(self: Model, groups: Any) -> Model:
            if when == "before":
                kill_one(self)
            made = take(self, groups)
            if when == "after":
                kill_one(self)
            return made

        monkeypatch.setattr(Model, "derived", taken)
        return victims

    return arm


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("count", [1, 2])
def test_processes_that_are_killed_during_an_update_have_the_new_weights_afterwards(
    runner: mslite.MultiDeviceRunner,
    dies: Callable[[str, int], list[int]],
    when: str,
    count: int,
) -> None:
    victims = dies(when, count)
    update(runner, versions(1))
    assert len(victims) == count
    assert all(has_ended(pid) for pid in victims)
    assert told(runner, ROWS) == 1
    wait_until_ready(runner)
    assert (told(runner, ROWS), version(runner)) == (1, "1")


def test_requests_beside_updates_and_deaths(telling: Path) -> None:
    """Versions may be skipped over, but never mixed, nor go back."""
    with changing(telling, on_failure="retry") as runner:
        over = threading.Event()
        newest = [0]

        def ask() -> int:
            count = 0
            while not over.is_set():
                least = newest[0]
                assert told(runner, ROWS) >= least
                count += 1
            return count

        asking = [begun(ask) for _ in range(3)]
        for number in range(1, 5):
            victim = device(runner, number % 2).pid
            updating = begun(lambda number=number: update(runner, versions(number)))
            os.kill(victim, signal.SIGKILL)
            updating()
            newest[0] = number
            wait_until_ready(runner)
        over.set()
        assert all(result() > 0 for result in asking)
        assert told(runner, ROWS) == 4


def test_a_process_that_hangs_during_an_update_is_ended(
    runner: mslite.MultiDeviceRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start_watch, "EVERY_S", 0.05)
    monkeypatch.setattr(start_watch, "SILENT_S", 0.5)
    stop_process(device(runner, 0).pid)
    update(runner, versions(1))
    wait_until_ready(runner)
    assert told(runner, ROWS) == 1
    assert device(runner, 0).restarts == 1


def test_a_close_ends_an_update(telling: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with changing(telling) as runner:
        for index in range(2):
            stop_process(device(runner, index).pid)
        began = threading.Event()
        derived = supervisor.Supervisor.derived

        def seen(self: supervisor.Supervisor, *arguments: Any) -> supervisor.Life:
            began.set()
            return derived(self, *arguments)

        monkeypatch.setattr(supervisor.Supervisor, "derived", seen)
        updating = begun(lambda: update(runner, versions(1)))
        assert began.wait(120)
        runner.close(0.0)
        with pytest.raises(ClosedError, match="update weight failed! Error is the runner is clos"):
            updating()


def test_without_a_device_it_fails(telling: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with changing(telling) as runner:
        monkeypatch.setattr("sys.executable", "/bin/false")
        for index in range(2):
            kill(runner, index)
        with pytest.raises(WorkerDiedError, match=r"update weight failed! .*no device is left"):
            update(runner, versions(1))
        assert version(runner) == "0"


# --- files ----------------------------------------------------------------------------------------


def test_the_names_are_read_once_and_from_where_the_program_was(
    telling: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither an update nor a restart needs the files of the configuration any more."""
    (tmp_path / "here").mkdir()
    names = tmp_path / "here/names.txt"
    names.write_text("# both\na\nb,Default/b-Dense\n")
    config = tmp_path / "config.ini"
    config.write_text('[ascend_context]\nvariable_weights_file = "names.txt"\n')
    monkeypatch.chdir(tmp_path / "here")
    with on_devices(telling, config_path=os.path.relpath(config)) as runner:
        names.unlink()
        config.unlink()
        monkeypatch.chdir("/")
        update(runner, versions(1))
        kill(runner, 0)
        wait_until_ready(runner)
        assert told(runner, ROWS) == 1


def test_names_that_mean_nothing_end_the_build(telling: Path) -> None:
    runner = mslite.MultiDeviceRunner()
    settings = context(config_info=variable("a", "c"))
    with pytest.raises(EngineError, match=r"MultiDeviceRunner's build .*device \d: .*'c'"):
        runner.build_from_file(str(telling), settings)


def test_a_file_that_is_not_there_ends_the_build(telling: Path) -> None:
    info = {"ascend_context": {"variable_weights_file": "/no/such/names.txt"}}
    with pytest.raises(ModelFileError, match=r"build .*name list is not exists: '/no/such/names"):
        mslite.MultiDeviceRunner().build_from_file(str(telling), context(config_info=info))


def test_a_model_file_that_was_replaced_is_not_mixed_with_the_old_one(
    telling: Path, tmp_path: Path
) -> None:
    with changing(telling) as runner:
        update(runner, versions(1))
        os.replace(written(tmp_path / "other", telling_net(-1)), telling)
        update(runner, versions(2))
        assert (told(runner, ROWS), version(runner)) == (2, "2")
        kill(runner, 0)
        wait_for(lambda: device(runner, 0).state == "out")
        assert "changed since it was built" in device(runner, 0).error
        assert told(runner, ROWS) == 2


def test_weights_change_when_the_model_file_is_gone(
    runner: mslite.MultiDeviceRunner, telling: Path
) -> None:
    """Every process has what is compiled of it."""
    telling.unlink()
    for number in (1, 2):
        update(runner, versions(number))
        assert told(runner, ROWS) == number
    runner.update_weights([])
    assert (told(runner, ROWS), version(runner)) == (0, "3")
    assert runner.is_ready()
