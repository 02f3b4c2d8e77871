"""runner.py: priorities, on a runner of one worker that is kept busy while requests wait."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.fake_engine import LIMIT_S, Client, wait_for
from support.models import ENDLESS, built_runner, looping

import mindspore_lite as mslite

X = np.array([3, 4], np.float32)
QUICK = [np.array(3), X]
NEVER = [ENDLESS, X]
Runner = mslite.ModelParallelRunner


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[Runner]:
    """One worker, and a model that runs as long as one likes."""
    runner = built_runner(looping(tmp_path / "loop.onnx"), workers_num=1)
    try:
        yield runner
    finally:
        runner.close(0)


def order_of(runner: Runner, waiting: list[tuple[str, Callable[[Callable[[], None]], Any]]]) -> str:
    """In which order requests start that wait behind a run: (name, what sends it), in order.

    What sends a request is given what is to be called when it is answered, on the worker's thread
    or by the caller: with one worker, in the order in which they ran.
    """
    started: list[str] = []
    endless = runner.submit(NEVER)
    wait_for(lambda: runner.statistics().running == 1)
    for number, (name, send) in enumerate(waiting):
        send(partial(started.append, name))
        wait_for(lambda number=number: runner.statistics().queued == number + 1)  # type: ignore[misc]
    assert endless.cancel()
    wait_for(lambda: len(started) == len(waiting))
    return "".join(started)


def submitting(runner: Runner, priority: int) -> Callable[[Callable[[], None]], Any]:
    return lambda ended: runner.submit(QUICK, priority=priority).add_done_callback(
        lambda _: ended()
    )


def test_submitted_requests_of_higher_priority_start_first(loop: Runner) -> None:
    names = [("a", 0), ("b", -1), ("c", 100), ("d", 0), ("e", 100), ("f", -100)]
    found = order_of(loop, [(name, submitting(loop, priority)) for name, priority in names])
    assert found == "ceadbf"


def test_a_predict_and_a_coroutine_have_a_priority_too(loop: Runner) -> None:
    """Each is the second to come and the first to go; the other one's callback tells."""

    async def awaited(priority: int) -> None:
        await loop.predict_async(QUICK, priority=priority)

    for wait in (
        lambda: loop.predict(QUICK, priority=50),
        lambda: asyncio.run(awaited(50)),
    ):
        seen: list[Any] = []
        clients: list[Client] = []
        before = loop.statistics().priorities.get(50)

        def high(ended: Callable[[], None], wait: Callable[[], Any] = wait) -> None:
            clients.append(Client(wait))  # noqa: B023 - used before the next turn
            ended()

        def low(ended: Callable[[], None]) -> None:
            def tell(_: Any) -> None:
                seen.append(loop.statistics().priorities[50].done)  # noqa: B023
                ended()

            loop.submit(QUICK).add_done_callback(tell)

        order_of(loop, [("low", low), ("high", high)])
        clients[0].ended()
        assert seen == [(before.done if before else 0) + 1]


def test_statistics_tell_of_each_priority_that_was_used(loop: Runner) -> None:
    assert loop.statistics().priorities == {}
    loop.predict(QUICK)
    assert set(loop.statistics().priorities) == {0}
    loop.submit(QUICK, priority=-7).result(LIMIT_S)
    loop.predict(QUICK, priority=7)
    found = loop.statistics()
    assert list(found.priorities) == [-7, 0, 7]
    for own in found.priorities.values():
        assert (own.sent, own.queued, own.done, own.queue_wait.count) == (1, 0, 1, 1)
    assert set(json.loads(json.dumps(asdict(found)))["priorities"]) == {"-7", "0", "7"}


@pytest.mark.parametrize("value", [101, -101])
def test_a_priority_out_of_bounds_is_refused(loop: Runner, value: int) -> None:
    for send in (loop.predict, loop.submit):
        with pytest.raises(ValueError, match=f"priority must be -100 to 100, but got {value}"):
            send(QUICK, priority=value)
    with pytest.raises(ValueError, match="priority must be -100 to 100"):
        asyncio.run(loop.predict_async(QUICK, priority=value))
    with pytest.raises(TypeError, match="priority must be int"):
        loop.predict(QUICK, priority="high")  # type: ignore[arg-type]
    assert loop.statistics().sent == 0
