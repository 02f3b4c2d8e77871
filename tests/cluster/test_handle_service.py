from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import numpy as np
import pytest

from mindspore_lite.cli.demo import DIGITS_MODEL
from mindspore_lite.cluster.handle_service import HandleService
from mindspore_lite.cluster.replica import Answer, Description, Place, Replica
from mindspore_lite.errors import InputError, QueueFullError, RequestTimeoutError, WorkerDiedError
from mindspore_lite.serving.call import Call

pytest.importorskip("ray", reason="the extra ray is not installed")
from ray.exceptions import ActorDiedError
from ray.serve.exceptions import BackPressureError

GOOD = Answer("7", [np.ones(1, np.float32)])


class Response:
    """A DeploymentResponse that is there already; None never comes."""

    def __init__(self, found: Any) -> None:
        self._future: Future[Any] = Future()
        self.was_cancelled = False
        if isinstance(found, type) and issubclass(found, BaseException):
            self._future.set_exception(found.__new__(found))
        elif found is not None:
            self._future.set_result(found)

    def result(self, timeout_s: float | None) -> Any:
        return self._future.result(timeout_s)

    def __await__(self) -> Any:
        return asyncio.wrap_future(self._future).__await__()

    def cancel(self) -> None:
        self.was_cancelled = True


class Handle:
    """Answers one call after the other with what it was given."""

    def __init__(self, *found: Any) -> None:
        self.sent: list[Response] = []
        self._found = iter(found)

    def options(self, method_name: str) -> Handle:
        return self

    def remote(self, *arguments: Any) -> Response:
        self.sent.append(Response(next(self._found)))
        return self.sent[-1]


@pytest.fixture(scope="module")
def told() -> Iterator[Description]:
    replica = Replica(Place((("", str(DIGITS_MODEL)),), {"parallel.workers_num": "1"}), "digits")
    replica.switch({})
    yield replica.describe()
    replica.close()


def call(timeout_s: float | None = None) -> Call:
    return Call([np.zeros((1, 1, 8, 8), np.float32)], timeout_s)


def on_loop(service: HandleService, one: Call) -> Any:
    """What `ended` is called with."""

    async def run() -> Any:
        done = asyncio.get_running_loop().create_future()
        service.submit_or_run(one, done.set_result)
        return await done

    return asyncio.run(run())


def test_the_answer_says_which_version_computed_it(told: Description) -> None:
    one = call()
    assert HandleService(Handle(GOOD), told).run(one) is GOOD.outputs
    assert one.version == "7"


def test_a_lost_request_is_sent_once_more(told: Description) -> None:
    service = HandleService(Handle(ActorDiedError, GOOD, ActorDiedError, GOOD), told)
    assert service.run(call()) is GOOD.outputs
    assert on_loop(service, call()) is GOOD.outputs
    assert (service.statistics().sent, service.statistics().done) == (2, 2)


def test_a_request_that_is_lost_twice_is_an_error(told: Description) -> None:
    handle = Handle(*[ActorDiedError] * 4)
    service = HandleService(handle, told)
    with pytest.raises(WorkerDiedError):
        service.run(call())
    assert isinstance(on_loop(service, call()), WorkerDiedError)
    assert len(handle.sent) == 4
    assert service.statistics().failed == 2


def test_without_retry_a_lost_request_is_an_error_at_once(told: Description) -> None:
    handle = Handle(ActorDiedError, GOOD)
    with pytest.raises(WorkerDiedError):
        HandleService(handle, told, retry=False).run(call())
    assert len(handle.sent) == 1


def test_a_full_queue_is_said_in_our_words(told: Description) -> None:
    with pytest.raises(QueueFullError, match="send it later"):
        HandleService(Handle(BackPressureError), told).run(call())


def test_a_replica_that_never_answers_is_a_timeout(told: Description) -> None:
    handle = Handle(None)
    service = HandleService(handle, told)
    with pytest.raises(RequestTimeoutError):
        service.run(call(0.001))
    assert handle.sent[0].was_cancelled
    assert service.statistics().timed_out == 1


def test_an_error_of_the_replica_stays_as_it_is(told: Description) -> None:
    error = InputError("the shape is wrong")
    service = HandleService(Handle(error, error), told)
    with pytest.raises(InputError, match="the shape is wrong"):
        service.run(call())
    assert on_loop(service, call()) is error


def test_a_caller_that_is_gone_cancels_its_request(told: Description) -> None:
    handle = Handle(None)
    service = HandleService(handle, told)

    async def run() -> None:
        cancel = service.submit_or_run(call(), pytest.fail)
        while not handle.sent:
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert cancel()
        while not handle.sent[0].was_cancelled:
            await asyncio.sleep(0)

    asyncio.run(run())
    assert service.statistics().cancelled == 1
