"""renewal.py: weights change on all devices or on none, and no request sees some of each."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.fake_engine import wait_for
from support.fake_workers import (
    FakeModel,
    FakeProcess,
    FakeWorkers,
    assert_set,
    began,
    begun,
    each,
    out,
    request,
    run,
    values,
    wait_for_state,
)

from mindspore_lite.errors import (
    ClosedError,
    EngineError,
    InputError,
    ResourceError,
    WorkerDiedError,
)
from mindspore_lite.remote.devices import supervisor as post_module
from mindspore_lite.remote.devices.dispatcher import Dispatcher
from mindspore_lite.remote.devices.supervisor import State

Make = Callable[..., Dispatcher]


def update(dispatcher: Dispatcher, factor: float, name: str = "w") -> None:
    """From then on the models multiply by it."""
    dispatcher.update([[(name, np.array(factor))]])


def models(workers: FakeWorkers, device: int) -> list[FakeModel]:
    """All that the present process of a device has built."""
    return workers.of(device).models


def version(dispatcher: Dispatcher) -> int:
    return dispatcher.weights.now.version


# --- what requests see ----------------------------------------------------------------------------


def test_requests_after_an_update_use_the_new_weights(make: Make, workers: FakeWorkers) -> None:
    dispatcher = make(2)
    assert run(dispatcher, 1, 1) == [2, 2]
    update(dispatcher, 5)
    assert run(dispatcher, 1, 1) == [5, 5]
    assert version(dispatcher) == 1


def test_an_update_without_groups_restores(make: Make) -> None:
    dispatcher = make(2)
    update(dispatcher, 5)
    dispatcher.update([])
    assert run(dispatcher, 1, 1) == [2, 2]
    assert version(dispatcher) == 2


def test_old_models_go_at_once_when_nobody_uses_them(make: Make, workers: FakeWorkers) -> None:
    dispatcher = make(2)
    for factor in range(3, 9):
        update(dispatcher, factor)
    for device in range(2):
        *old, present = models(workers, device)
        assert len(old) == 6
        for model in old:
            assert_set(model.closed)
        assert not present.closed.is_set()
        assert dispatcher.supervisors[device].old == []


def test_a_request_under_way_ends_with_the_weights_that_it_began_with(
    make: Make, workers: FakeWorkers
) -> None:
    """Also the parts that are sent after the update; and another begins with the new ones."""
    dispatcher = make(2)
    workers.holds = True
    result = begun(lambda: run(dispatcher, 1, 1, 1, 1))
    first = [workers.call(device) for device in range(2)]
    update(dispatcher, 5)
    assert [len(models(workers, device)) for device in range(2)] == [2, 2]

    other = begun(lambda: run(dispatcher, 1, 1))
    for device in range(2):
        workers.call(device).answer()
    assert other() == [5, 5]

    for call in first:
        call.answer()
    for device in range(2):
        old = models(workers, device)[0]
        wait_for(lambda old=old: len(old.began) == 2)
        assert not old.closed.is_set()
        old.began[1].answer()
    assert result() == [2, 2, 2, 2]
    for device in range(2):
        assert_set(models(workers, device)[0].closed)


def test_a_part_that_is_lost_is_computed_elsewhere_with_the_same_weights(
    make: Make, workers: FakeWorkers
) -> None:
    dispatcher = make(2, retries=1)
    workers.holds = True
    result = begun(lambda: run(dispatcher, 1, 1))
    mine = [workers.call(device) for device in range(2)]
    update(dispatcher, 5)
    workers.of(0).die()
    old = models(workers, 1)[0]
    mine[1].answer()
    wait_for(lambda: len(old.began) == 2)
    old.began[1].answer()
    assert result() == [2, 2]


@pytest.mark.parametrize("keeps_going", [False, True])
def test_a_request_whose_weights_are_gone_begins_anew(
    make: Make, workers: FakeWorkers, keeps_going: bool
) -> None:
    """One part was computed, the other is lost, and all processes are new ones by then."""
    dispatcher = make(2, retries=1)
    workers.of(1).holds = True
    result = begun(lambda: (each if keeps_going else run)(dispatcher, 1, 1))
    workers.call(1)
    wait_for(lambda: dispatcher.supervisors[0].done == 1)
    update(dispatcher, 5)
    for device in (0, 1):  # the last one has the part that is under way
        before = workers.of(device)
        before.die()
        wait_for(lambda d=device, b=before: workers.of(d) is not b)
        if device == 0:
            wait_for_state(dispatcher, 0, State.READY)
    assert result() == [5, 5]
    assert [supervisor.load for supervisor in dispatcher.supervisors] == [0, 0]
    assert dispatcher.weights.now.users == 0


def test_an_error_is_no_reason_to_compute_a_part_again(make: Make, workers: FakeWorkers) -> None:
    dispatcher = make(2, retries=1)
    workers.holds = True
    result = begun(lambda: each(dispatcher, 1, 1))
    calls = [workers.call(device) for device in range(2)]
    error = InputError("it does not fit")
    calls[0].answer(error)
    wait_for(lambda: calls[0].ends)
    update(dispatcher, 5)
    workers.holds = False
    workers.of(0).die()
    wait_for(lambda: dispatcher.supervisors[0].restarts == 1)
    wait_for_state(dispatcher, 0, State.READY)
    workers.of(1).die()
    assert result() == [error, 5]
    assert [len(began(workers, device)) for device in range(2)] == [1, 0]


def test_whoever_asks_a_device_something_keeps_its_model(make: Make, workers: FakeWorkers) -> None:
    dispatcher = make(1)
    with dispatcher.any_life(request(dispatcher)) as life:
        update(dispatcher, 5)
        model = models(workers, 0)[0]
        assert life.model is model  # type: ignore[comparison-overlap]
        assert dispatcher.supervisors[0].old == [life]
    assert_set(model.closed)


def test_a_request_that_is_kept_does_not_keep_its_weights(make: Make) -> None:
    """As a Future does that somebody holds."""
    dispatcher = make(2)
    array = np.array(5.0)
    dispatcher.update([[("w", array)]])
    kept = request(dispatcher, 1, 1)
    dispatcher.take()
    assert dispatcher.run(kept, values) == [5, 5]
    update(dispatcher, 6)
    known = weakref.ref(array)
    del array
    wait_for(lambda: gc.collect() >= 0 and known() is None)


def test_a_run_that_ends_late_keeps_its_model(
    make: Make, workers: FakeWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was called off, and nobody waits for it any more."""
    monkeypatch.setattr(post_module, "GRACE_S", 0.001)
    dispatcher = make(1)
    model = models(workers, 0)[0]
    model.running = 1
    asked = threading.Semaphore(0)
    monkeypatch.setattr(workers.of(0), "asked", asked.release)
    update(dispatcher, 5)
    for _ in range(3):
        assert asked.acquire(timeout=120)
    assert not model.closed.is_set()
    model.running = 0
    assert_set(model.closed)


def test_a_run_that_cannot_be_stopped_ends_the_process(make: Make, workers: FakeWorkers) -> None:
    dispatcher = make(1)
    first = workers.of(0)
    models(workers, 0)[0].stuck = 1
    update(dispatcher, 5)
    wait_for(lambda: not first.alive)
    assert run(dispatcher, 1) == [5]


# --- all or none ----------------------------------------------------------------------------------


def refuse(error: Exception) -> Callable[[FakeProcess], None]:
    def act(process: FakeProcess) -> None:
        raise error

    return act


@pytest.mark.parametrize(
    ("kind", "said", "text"),
    [
        (InputError, "update weight failed! Error is no such weight", "^no such weight$"),
        (EngineError, "update weight failed! Error is it broke", "^device [01]: it broke$"),
        (ResourceError, "no memory", "^device [01]: no memory$"),
    ],
)
@pytest.mark.parametrize("first", [0, 1])
def test_what_one_device_refuses_changes_nothing_anywhere(
    make: Make, workers: FakeWorkers, kind: type[Exception], said: str, text: str, first: int
) -> None:
    dispatcher = make(2)
    workers.updates.extend([lambda process: None] * first)
    workers.updates.append(refuse(kind(said)))
    with pytest.raises(kind, match=text):
        update(dispatcher, 5)
    assert run(dispatcher, 1, 1) == [2, 2]
    assert version(dispatcher) == 0
    refused = 0
    for device in range(2):
        old, *new = models(workers, device)
        for model in new:
            assert_set(model.closed)
        assert not old.closed.is_set()
        refused += not new
    assert refused == 1


def test_what_was_refused_is_forgotten(make: Make, workers: FakeWorkers) -> None:
    dispatcher = make(1)
    update(dispatcher, 3, "a")
    workers.updates.append(refuse(InputError("no")))
    with pytest.raises(InputError):
        update(dispatcher, 4, "b")
    update(dispatcher, 5, "c")
    first = workers.of(0)
    first.die()
    wait_for(lambda: workers.of(0) is not first)
    wait_for_state(dispatcher, 0, State.READY)
    assert [[name for name, _ in g] for g in models(workers, 0)[-1].updates[-1]] == [["a"], ["c"]]


def test_a_worker_is_told_of_this_update_alone(make: Make, workers: FakeWorkers) -> None:
    """It has the earlier ones; so it counts lists as the caller does, and no file is read again."""
    dispatcher = make(1)
    update(dispatcher, 3, "a")
    update(dispatcher, 4, "b")
    assert models(workers, 0)[-1].updates == [[[("b", 4)]]]
    assert len(workers.processes) == 1


def test_without_a_thread_nothing_changes(
    make: Make, workers: FakeWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    dispatcher = make(1)

    def none(*_: object, **__: object) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(
            "mindspore_lite.remote.devices.weight_rollout.ThreadPoolExecutor.submit", none
        )
        with pytest.raises(ResourceError, match="no thread can be started to update a device"):
            update(dispatcher, 5)
    assert run(dispatcher, 1) == [2]


# --- deaths and restarts --------------------------------------------------------------------------


def die(process: FakeProcess) -> None:
    process.die()


@pytest.mark.parametrize("first", [0, 1])
def test_a_process_that_dies_meanwhile_starts_again_with_the_new_weights(
    make: Make, workers: FakeWorkers, first: int
) -> None:
    dispatcher = make(2)
    workers.updates.extend([lambda process: None] * first)
    workers.updates.append(die)
    update(dispatcher, 5)
    for device in range(2):
        wait_for_state(dispatcher, device, State.READY)
    assert run(dispatcher, 1, 1) == [5, 5]
    assert sum(supervisor.restarts for supervisor in dispatcher.supervisors) == 1
    assert version(dispatcher) == 1


def test_the_only_process_dies_and_is_asked_again(make: Make, workers: FakeWorkers) -> None:
    dispatcher = make(1)
    workers.updates.append(die)
    update(dispatcher, 5)
    assert run(dispatcher, 1) == [5]
    assert dispatcher.supervisors[0].restarts == 1


def test_a_process_that_starts_again_is_told_of_all_updates(
    make: Make, workers: FakeWorkers
) -> None:
    dispatcher = make(1)
    update(dispatcher, 3, "a")
    update(dispatcher, 4, "b")
    first = workers.of(0)
    first.die()
    wait_for(lambda: workers.of(0) is not first)
    wait_for_state(dispatcher, 0, State.READY)
    (groups,) = models(workers, 0)[0].updates
    assert groups == [[("a", 3)], [("b", 4)]]


def test_after_a_restore_it_is_told_of_nothing(make: Make, workers: FakeWorkers) -> None:
    dispatcher = make(1)
    update(dispatcher, 3)
    dispatcher.update([])
    first = workers.of(0)
    first.die()
    wait_for(lambda: workers.of(0) is not first)
    assert run(dispatcher, 1) == [2]
    assert models(workers, 0)[0].updates == []


def test_a_restart_under_way_ends_with_the_new_weights(make: Make, workers: FakeWorkers) -> None:
    """It began with the old ones, and does not keep an update waiting."""
    dispatcher = make(2)
    goes_on = threading.Event()
    workers.builds.append(lambda process: assert_set(goes_on))
    first = workers.of(0)
    first.die()
    wait_for(lambda: workers.of(0) is not first and not workers.builds)
    update(dispatcher, 5)
    assert version(dispatcher) == 1
    assert dispatcher.supervisors[0].state is State.STARTING
    goes_on.set()
    wait_for_state(dispatcher, 0, State.READY)
    assert run(dispatcher, 1, 1) == [5, 5]


def test_a_device_that_gets_ready_during_an_update_takes_part(
    make: Make, workers: FakeWorkers
) -> None:
    dispatcher = make(2)
    first = workers.of(0)
    restarts, updates = threading.Event(), threading.Event()
    workers.builds.append(lambda process: assert_set(restarts))
    first.die()
    wait_for(lambda: workers.of(0) is not first and not workers.builds)
    workers.updates.append(lambda process: assert_set(updates))
    updating = begun(lambda: update(dispatcher, 5))
    wait_for(lambda: not workers.updates)
    restarts.set()
    wait_for_state(dispatcher, 0, State.READY)
    assert version(dispatcher) == 0
    updates.set()
    updating()
    assert run(dispatcher, 1, 1) == [5, 5]
    assert [len(models(workers, device)) for device in range(2)] == [2, 2]


def test_a_device_that_is_out_does_not_keep_the_others_from_it(
    make: Make, workers: FakeWorkers
) -> None:
    dispatcher = make(2)
    out(dispatcher, workers, 0)
    update(dispatcher, 5)
    assert run(dispatcher, 1, 1) == [5, 5]


def test_without_a_device_it_fails(make: Make, workers: FakeWorkers) -> None:
    dispatcher = make(1)
    out(dispatcher, workers, 0)
    with pytest.raises(WorkerDiedError, match="no device is left"):
        update(dispatcher, 5)
    assert version(dispatcher) == 0


def test_it_waits_for_a_device_that_will_be_there(make: Make, workers: FakeWorkers) -> None:
    """Somebody must say whether these weights fit."""
    dispatcher = make(1)
    goes_on = threading.Event()
    workers.builds.append(lambda process: assert_set(goes_on))
    workers.of(0).die()
    wait_for(lambda: not workers.builds)
    updating = begun(lambda: update(dispatcher, 5))
    goes_on.set()
    updating()
    assert run(dispatcher, 1) == [5]


# --- at once --------------------------------------------------------------------------------------


def test_two_updates_come_one_after_the_other(make: Make, workers: FakeWorkers) -> None:
    dispatcher = make(2)
    goes_on = threading.Event()
    workers.updates.extend([lambda process: assert_set(goes_on)] * 2)
    first = begun(lambda: update(dispatcher, 3, "a"))
    wait_for(lambda: not workers.updates)
    second = begun(lambda: update(dispatcher, 5, "b"))
    goes_on.set()
    first()
    second()
    assert version(dispatcher) == 2
    for device in range(2):
        told = [model.updates for model in models(workers, device)]
        assert told == [[], [[[("a", 3)]]], [[[("b", 5)]]]]


def test_a_close_ends_an_update(make: Make, workers: FakeWorkers) -> None:
    dispatcher = make(2)

    def ends(process: FakeProcess) -> None:
        wait_for(lambda: not process.alive)

    workers.updates.extend([ends] * 2)
    updating = begun(lambda: update(dispatcher, 5))
    wait_for(lambda: not workers.updates)
    dispatcher.close(0.0)
    with pytest.raises(ClosedError, match="the runner is closed"):
        updating()
    with pytest.raises(ClosedError):
        update(dispatcher, 5)


def test_requests_and_updates_from_many_threads(make: Make, workers: FakeWorkers) -> None:
    dispatcher = make(3, cores=2)
    over = threading.Event()
    newest = [2]

    def ask() -> int:
        count = 0
        while not over.is_set():
            least = newest[0]
            (found,) = set(run(dispatcher, *[1] * 7))  # one version for all parts
            assert found >= least
            count += 1
        return count

    asking: list[Any] = [begun(ask) for _ in range(8)]
    for factor in range(3, 60):
        update(dispatcher, factor)
        newest[0] = factor
    over.set()
    assert all(result() > 0 for result in asking)
    for device in range(3):
        *old, present = models(workers, device)
        for model in old:
            assert_set(model.closed)
        assert not present.closed.is_set()
