"""stop.py: a run is ended from another thread, whoever comes first."""

from __future__ import annotations

from mindspore_lite.core.stop import Stop


class Handle:
    def __init__(self) -> None:
        self.ended = 0

    def end(self) -> None:
        self.ended += 1


def test_firing_ends_a_run_under_way() -> None:
    stop = Stop()
    handle = stop.handle(Handle, Handle.end)
    assert (stop.fired, handle.ended) == (False, 0)
    stop.fire()
    assert stop.fired
    assert handle.ended == 1


def test_firing_before_the_run_ends_it_when_it_begins() -> None:
    stop = Stop()
    stop.fire()
    assert stop.handle(Handle, Handle.end).ended == 1


def test_a_handle_is_made_once_for_many_runs() -> None:
    stop, made = Stop(), []

    def make() -> Handle:
        made.append(Handle())
        return made[-1]

    assert stop.handle(make, Handle.end) is stop.handle(make, Handle.end)
    assert len(made) == 1


def test_firing_while_the_handle_is_made_is_not_missed() -> None:
    stop = Stop()

    def make() -> Handle:
        stop.fire()  # as another thread might, at the very moment
        return Handle()

    assert stop.handle(make, Handle.end).ended >= 1


def test_firing_twice_is_harmless() -> None:
    stop = Stop()
    handle = stop.handle(Handle, Handle.end)
    stop.fire()
    stop.fire()
    assert handle.ended >= 1
