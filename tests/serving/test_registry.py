"""serving/registry.py: who starts a service, who joins it, and when it ends."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from support.fake_engine import LIMIT_S, Client, wait_for

from mindspore_lite.errors import (
    CancelledError,
    ClosedError,
    EngineError,
    InputError,
    RequestTimeoutError,
)
from mindspore_lite.serving.registry import Registry


class Fake:
    """Counts how often it is closed."""

    def __init__(self) -> None:
        self.closed: list[float | None] = []

    def close(self, drain_s: float | None) -> None:
        self.closed.append(drain_s)


def never() -> Fake:
    raise AssertionError("it was started already")


def test_the_second_one_joins_what_the_first_has_started() -> None:
    registry = Registry[Fake]()
    first = registry.join("m", "", "file", Fake)
    second = registry.join("m", "", "file", never)
    assert first.service is second.service
    assert (first.name, first.version) == ("m", "1")
    assert registry.services() == {("m", "1"): first.service}


def test_the_last_one_closes_it() -> None:
    registry = Registry[Fake]()
    first, second = (registry.join("m", "", "file", Fake) for _ in range(2))
    first.release(1.0)
    first.release(2.0)  # harmless
    assert first.service.closed == []
    second.release(3.0)
    assert first.service.closed == [3.0]
    assert registry.services() == {}
    assert registry.join("m", "", "file", Fake).service is not first.service


def test_what_nobody_started_cannot_be_joined() -> None:
    registry = Registry[Fake]()
    with pytest.raises(ClosedError, match="there is no model 'm'; there are: none"):
        registry.join("m")
    registry.join("other", "3", "file", Fake)
    with pytest.raises(ClosedError, match="no model 'm' version 2; there are: 'other' version 3"):
        registry.join("m", "2")
    assert registry.join("other").version == "3"  # which was started for somebody else


def test_one_name_stands_for_one_origin() -> None:
    registry = Registry[Fake]()
    registry.join("m", "", "a.mindir", Fake)
    with pytest.raises(InputError, match=r"belongs to a\.mindir, and b\.mindir was asked for"):
        registry.join("m", "", "b.mindir", Fake)
    assert registry.join("m", "2", "b.mindir", Fake).version == "2"


def test_without_a_version_the_newest_is_meant() -> None:
    registry = Registry[Fake]()
    made = {version: registry.join("m", version, version, Fake) for version in ("9", "10", "beta")}
    assert registry.join("m").service is made["10"].service
    made["10"].release()
    assert registry.join("m").service is not made["beta"].service


class Slow:
    """Starts that wait until the test lets them."""

    def __init__(self, then: Callable[[], Fake]) -> None:
        self.begun, self.goes_on = threading.Event(), threading.Event()
        self._then = then

    def __call__(self) -> Fake:
        self.begun.set()
        assert self.goes_on.wait(LIMIT_S)
        return self._then()


def holders(registry: Registry[Fake]) -> int:
    return sum(entry.holders for entry in registry._entries.values())


def test_who_asks_while_it_starts_waits_for_it() -> None:
    registry, slow = Registry[Fake](), Slow(Fake)
    starter = Client(lambda: registry.join("m", "", "file", slow))
    assert slow.begun.wait(LIMIT_S)
    waiting = [Client(lambda: registry.join("m", "", "file", never)) for _ in range(3)]
    wait_for(lambda: holders(registry) == 4)
    slow.goes_on.set()
    leases = [client.ended().result for client in (starter, *waiting)]
    assert len({id(lease.service) for lease in leases}) == 1
    leases[0].release()  # the one that started it may be the first to leave
    assert leases[0].service.closed == []
    for lease in leases:
        lease.release()
    assert len(leases[0].service.closed) == 1


def test_after_a_start_that_failed_the_next_one_tries() -> None:
    registry = Registry[Fake]()

    def failing() -> Fake:
        raise EngineError("no memory")

    slow = Slow(failing)
    starter = Client(lambda: registry.join("m", "", "file", slow))
    assert slow.begun.wait(LIMIT_S)
    waiting = Client(lambda: registry.join("m", "", "file", Fake))
    wait_for(lambda: holders(registry) == 2)
    slow.goes_on.set()
    assert isinstance(starter.ended().error, EngineError)
    lease = waiting.ended().result
    assert registry.services() == {("m", "1"): lease.service}
    lease.release()
    assert registry.services() == {}


def test_who_waits_for_a_start_may_leave() -> None:
    registry, slow = Registry[Fake](), Slow(Fake)
    starter = Client(lambda: registry.join("m", "", "file", slow))
    assert slow.begun.wait(LIMIT_S)
    with pytest.raises(RequestTimeoutError, match=r"'m' version 1 is being built for another"):
        registry.join("m", "", "file", never, limit_s=0.0)
    cancels: list[Callable[[], object]] = []
    waiting = Client(lambda: registry.join("m", "", "file", never, known=cancels.append))
    wait_for(lambda: holders(registry) == 2 and bool(cancels))
    cancels[0]()
    assert isinstance(waiting.ended().error, CancelledError)
    assert holders(registry) == 1
    slow.goes_on.set()
    lease = starter.ended().result
    lease.release()
    assert len(lease.service.closed) == 1
