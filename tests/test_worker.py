"""worker.py: mslite.connect, and models that a worker process runs for this one."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from collections.abc import Iterator
from concurrent.futures import CancelledError
from pathlib import Path

import numpy as np
import pytest
from support.fake_engine import LIMIT_S, wait_for
from support.models import ENDLESS, dense_net, dense_values, looping, written
from support.updates import SIDE, telling_net, variable, versions
from support.workers import listening

import mindspore_lite as mslite
from mindspore_lite.errors import (
    ClosedError,
    InputError,
    ModelFileError,
    RequestTimeoutError,
    WorkerDiedError,
)
from mindspore_lite.remote.wire.bodies import MODEL, RUNNER, Build

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[mslite.Worker]:
    path = tmp_path / "worker.sock"
    with listening(path), mslite.connect(path) as found:
        yield found


@pytest.fixture
def dense(tmp_path: Path) -> Path:
    return written(tmp_path / "dense.mindir", dense_net(-1))


def test_a_model_of_a_worker_gives_what_a_model_gives(worker: mslite.Worker, dense: Path) -> None:
    runner = worker.build_from_file(dense)
    (out,) = runner.predict([X])
    np.testing.assert_array_equal(out.get_data_to_numpy(), dense_values(X))
    (tensor,) = runner.get_inputs()
    assert tensor.shape == [-1, 3]
    tensor.shape = [2, 3]
    tensor.set_data_from_numpy(X)
    np.testing.assert_array_equal(runner.predict([tensor])[0].get_data_to_numpy(), dense_values(X))
    assert [meta.shape for meta in runner.get_outputs()] == [[-1, 4]]
    assert runner.statistics()["done"] == 2
    assert runner.get_model_info("weights_version") == "0"


def test_facts_about_the_worker(worker: mslite.Worker) -> None:
    facts = worker.info()
    assert facts["version"] == mslite.__version__
    assert int(facts["pid"]) != os.getpid()
    assert "cpu" in facts["targets"].split(",")


def test_programs_share_a_model_by_its_name(tmp_path: Path, dense: Path) -> None:
    path = tmp_path / "worker.sock"
    with listening(path), mslite.connect(path) as one, mslite.connect(path) as other:
        ours = one.build_from_file(dense, name="dense")
        theirs = other.join("dense")
        ours.predict([X])
        theirs.predict([X])
        assert ours.statistics()["done"] == theirs.statistics()["done"] == 2
        ours.close()
        theirs.predict([X])
        with pytest.raises(ClosedError, match="there is no model 'other'"):
            other.join("other")
        with pytest.raises(InputError, match="belongs to"):
            one.build_from_file(written(tmp_path / "b.mindir", dense_net(-1, 2.0)), name="dense")


def test_answers_come_later_as_well(worker: mslite.Worker, dense: Path) -> None:
    runner = worker.build_from_file(dense)
    futures = [runner.submit([X + n]) for n in range(8)]
    for n, future in enumerate(futures):
        (out,) = future.result(LIMIT_S)
        np.testing.assert_array_equal(out.get_data_to_numpy(), dense_values(X + n))
    (out,) = asyncio.run(runner.predict_async([X]))
    np.testing.assert_array_equal(out.get_data_to_numpy(), dense_values(X))


def test_a_request_is_called_off_and_has_a_time_limit(
    worker: mslite.Worker, tmp_path: Path
) -> None:
    context = mslite.Context()
    context.parallel.workers_num = 1
    runner = worker.build_from_file(looping(tmp_path / "loop.onnx"), context)
    x = np.array([3, 4], np.float32)
    future = runner.submit([ENDLESS, x])
    wait_for(lambda: runner.statistics()["running"] == 1)
    assert future.cancel()
    with pytest.raises(CancelledError):
        future.result(LIMIT_S)
    wait_for(lambda: runner.statistics()["running"] == 0)
    with pytest.raises(RequestTimeoutError, match="predict failed! no answer within"):
        runner.predict([ENDLESS, x], timeout_s=0.05)
    np.testing.assert_array_equal(runner.predict([np.array(3), x])[0].get_data_to_numpy(), x)


def test_weights_change(worker: mslite.Worker, tmp_path: Path) -> None:
    context = mslite.Context()
    context.parallel.config_info = variable(*versions(0))
    path = written(tmp_path / "telling.mindir", telling_net(-1))
    runner = worker.build_from_file(path, context)
    x = np.ones((2, SIDE), np.float32)
    before = runner.predict([x])[0].get_data_to_numpy()
    tensors = []
    for name, array in versions(3).items():
        tensors.append(mslite.Tensor(array))
        tensors[-1].name = name
    runner.update_weights([tensors])
    assert not np.array_equal(runner.predict([x])[0].get_data_to_numpy(), before)
    assert runner.get_model_info("weights_version") == "1"


def test_wrong_arguments_are_told_before_anything_is_sent(
    worker: mslite.Worker, dense: Path
) -> None:
    runner = worker.build_from_file(dense)
    with pytest.raises(TypeError):
        runner.predict("x")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="predict failed!"):
        runner.predict([X, X])
    with pytest.raises(ValueError, match="more than 0 seconds"):
        runner.predict([X], timeout_s=0)
    with pytest.raises(ValueError, match="name must not be empty"):
        worker.join("")
    with pytest.raises(RuntimeError, match="version is '2', but there is no name"):
        worker.build_from_file(dense, version="2")
    with pytest.raises(RuntimeError, match="does not exist"):
        worker.build_from_file(dense.with_name("missing.mindir"))
    assert runner.statistics()["done"] == 0


def test_a_closed_model_says_so(worker: mslite.Worker, dense: Path) -> None:
    runner = worker.build_from_file(dense)
    runner.close()
    runner.close()
    with pytest.raises(ClosedError, match="build or join it again"):
        runner.predict([X])


def test_the_death_of_a_worker_is_an_error(tmp_path: Path, dense: Path) -> None:
    path = tmp_path / "worker.sock"
    with listening(path) as process, mslite.connect(path) as worker:
        runner = worker.build_from_file(dense)
        runner.predict([X])
        process.send_signal(signal.SIGKILL)
        process.wait(LIMIT_S)
        with pytest.raises(WorkerDiedError, match="predict failed!"):
            runner.predict([X])
    with pytest.raises(WorkerDiedError, match="no worker answers"):
        mslite.connect(path)


def test_a_stopped_worker_is_noticed(
    tmp_path: Path, dense: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mindspore_lite.remote.service._LOOK_S", 0.01)
    monkeypatch.setattr("mindspore_lite.remote.service.SILENT_S", 0.05)
    monkeypatch.setattr("mindspore_lite.remote.devices.heartbeat.ASK_S", 0.05)
    path = tmp_path / "worker.sock"
    with listening(path) as process, mslite.connect(path) as worker:
        runner = worker.build_from_file(dense)
        runner.predict([X])
        process.send_signal(signal.SIGSTOP)
        wait_for(lambda: ") T " in Path(f"/proc/{process.pid}/stat").read_text())
        with pytest.raises(WorkerDiedError, match="predict failed!"):
            runner.predict([X])
        process.send_signal(signal.SIGCONT)


def test_a_model_keeps_its_connection(tmp_path: Path, dense: Path) -> None:
    path = tmp_path / "worker.sock"
    with listening(path):
        runner = mslite.connect(path).build_from_file(dense)
        gc.collect()
        np.testing.assert_array_equal(runner.predict([X])[0].get_data_to_numpy(), dense_values(X))
        assert str(runner) == f"model_path: {dense}."


def test_a_cancellation_may_be_repeated_and_the_answer_be_late(
    worker: mslite.Worker, dense: Path
) -> None:
    runner = worker.build_from_file(dense)
    future = runner.submit([X])
    future.result(LIMIT_S)
    assert not future.cancel()
    for _ in range(50):  # before, while and after the answer comes
        future = runner.submit([X])
        assert future.cancel() == future.cancelled()
        assert future.cancel() == future.cancelled()
    assert runner.submit([X]).result(LIMIT_S)  # no thread was lost


def test_a_close_that_is_refused_can_be_said_again(worker: mslite.Worker, dense: Path) -> None:
    runner = worker.build_from_file(dense, name="kept")
    with pytest.raises(ValueError, match="timeout_s"):
        runner.close(-1)
    runner.close()
    with pytest.raises(ClosedError, match="there is no model 'kept'"):
        worker.join("kept")


def test_a_forgotten_model_goes_with_the_next_build(worker: mslite.Worker, dense: Path) -> None:
    worker.build_from_file(dense, name="lost")
    gc.collect()
    worker.build_from_file(dense)
    with pytest.raises(ClosedError, match="there is no model 'lost'"):
        worker.join("lost")


def test_files_of_a_configuration_are_those_of_the_program(
    worker: mslite.Worker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.ini").write_text("[service]\nname=m\n[ascend_context]\nvariable_weights_file=v\n")
    Path("v").write_text("\n".join(versions(0)))
    context = mslite.Context()
    context.parallel.config_path = "x.ini"
    path = written(tmp_path / "telling.mindir", telling_net(-1))
    runner = worker.build_from_file(path, context)
    runner.update_weights([])
    assert worker.join("m").get_model_info("weights_version") == "1"


def test_another_file_of_the_same_path_is_another_model(worker: mslite.Worker, dense: Path) -> None:
    runner = worker.build_from_file(dense, name="m")
    written(dense.with_name("new"), dense_net(-1, 2.0)).rename(dense)
    with pytest.raises(InputError, match="belongs to"):
        worker.build_from_file(dense, name="m")
    runner.close()


@pytest.mark.parametrize("name", ["", "   "])
def test_a_name_that_is_blank_is_none(worker: mslite.Worker, name: str) -> None:
    with pytest.raises(ValueError, match="name must not be empty"):
        worker.join(name)


def test_closing_after_the_worker_is_harmless(tmp_path: Path, dense: Path) -> None:
    path = tmp_path / "worker.sock"
    with listening(path) as process, mslite.connect(path) as worker:
        runner = worker.build_from_file(dense)
        process.kill()
        process.wait(LIMIT_S)
        runner.close()
        worker.close()
        worker.close()


def test_an_answer_is_fetched_however_many_others_are_waited_for(
    worker: mslite.Worker, dense: Path, tmp_path: Path
) -> None:
    """A thread for each of the first 64 would leave none for this one."""
    context = mslite.Context()
    context.parallel.workers_num = 1
    endless = worker.build_from_file(looping(tmp_path / "loop.onnx"), context)
    runner = worker.build_from_file(dense)
    late = [endless.submit([ENDLESS, np.zeros(2, np.float32)]) for _ in range(70)]
    (found,) = runner.submit([X]).result(LIMIT_S)
    np.testing.assert_array_equal(found.get_data_to_numpy(), dense_values(X))
    assert not any(one.done() for one in late)
    assert all(one.cancel() for one in late)


def test_a_submitted_request_has_a_time_limit(worker: mslite.Worker, tmp_path: Path) -> None:
    runner = worker.build_from_file(looping(tmp_path / "loop.onnx"))
    late = runner.submit([ENDLESS, np.zeros(2, np.float32)], timeout_s=0.05)
    assert isinstance(late.exception(LIMIT_S), RequestTimeoutError)


def test_statistics_of_a_closed_model_are_the_last_ones(worker: mslite.Worker, dense: Path) -> None:
    runner = worker.build_from_file(dense)
    runner.predict([X])
    runner.close()
    assert runner.statistics()["done"] == 1


def test_statistics_of_a_connection_that_is_over_say_what_to_do(
    worker: mslite.Worker, dense: Path
) -> None:
    runner = worker.build_from_file(dense)
    worker.close()
    with pytest.raises(
        WorkerDiedError, match=r"^there are no statistics: .*is over; connect and build again$"
    ):
        runner.statistics()


def test_what_went_wrong_is_said_once(worker: mslite.Worker, dense: Path) -> None:
    dense.write_bytes(b"hello")
    with pytest.raises(ModelFileError, match=r"^the worker cannot serve the model: '/.* as MindIR"):
        worker.build_from_file(dense)
    session = worker._connection.session
    for kind in (MODEL, RUNNER):
        with pytest.raises(ModelFileError, match=r"^build_from_file failed, config_path does not"):
            session.build(Build(kind, 0, str(dense), config_path="/no/such/file"))
