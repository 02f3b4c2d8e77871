from __future__ import annotations

import threading

import numpy as np
import pytest
from support.bench_world import Server, World

from mindspore_lite.bench import load as load_module
from mindspore_lite.bench.burst import Burst, Load
from mindspore_lite.bench.load import Done, closed_loop, drawn, open_loop
from mindspore_lite.errors import QueueFullError


def p99_ms(burst: Burst) -> float:
    return float(np.percentile(burst.latencies_ms, 99))


def test_a_slow_side_shows_its_queue_in_an_open_loop_and_not_to_a_lone_client() -> None:
    world = World()
    server = Server(world, 0.010)
    opened = open_loop(server.submit, 200.0, 0.0, 0.3, clock=world)
    assert p99_ms(opened) > 100  # it can do 100 a second: the last one waits for 30 others
    assert opened.throughput == pytest.approx(100, rel=0.1)
    closed = closed_loop(server.call, 1, 0.0, 0.3, world)
    assert p99_ms(closed) == pytest.approx(10)
    assert closed.throughput == pytest.approx(100)


def test_a_quick_side_answers_an_open_loop_at_once() -> None:
    world = World()
    burst = open_loop(Server(world, 1e-6).submit, 50.0, 0.1, 2.0, clock=world)
    assert p99_ms(burst) < 0.01
    assert burst.throughput == pytest.approx(50)
    assert burst.cpu_s == pytest.approx(1.0, rel=0.1)
    assert (burst.errors, burst.late_ms) == (0, 0.0)


def test_times_are_those_of_a_poisson_process_and_of_the_seed() -> None:
    times = drawn(1000.0, 1.0, 9.0, seed=3)
    gaps = np.diff(times)
    assert [(times < 1).sum(), (times >= 1).sum()] == [1000, 9000]
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.05)  # as of an exponential distribution
    assert times.max() < 10
    np.testing.assert_array_equal(times, drawn(1000.0, 1.0, 9.0, seed=3))
    assert not np.array_equal(times[:100], drawn(1000.0, 1.0, 9.0, seed=4)[:100])


def test_latency_counts_from_the_intended_start_even_when_the_sender_is_late() -> None:
    world = World()

    def blocking(done: Done) -> None:
        world.wait_until(world.now() + 0.050)  # what a sender must never do
        done(None)

    burst = open_loop(blocking, 100.0, 0.0, 1.0, clock=world)
    assert p99_ms(burst) > 1000
    assert burst.late_ms > 1000


def test_requests_that_nobody_answers_are_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_module, "OUTSTANDING", 5)
    world = World()
    sent: list[Done] = []
    burst = open_loop(sent.append, 100.0, 0.0, 1.0, clock=world)
    assert len(sent) == 5
    assert burst.errors == 100
    assert burst.first_error == "not sent: 5 requests had no answer yet"
    assert (burst.answered, burst.throughput) == (0, 0.0)
    sent[0](None)  # an answer that comes too late changes nothing
    assert burst.latencies_ms.size == 0


def test_what_has_no_answer_is_given_up_before_the_next_burst() -> None:
    dropped: list[int] = []

    def drop() -> None:
        dropped.append(1)

    open_loop(lambda done: None, 10.0, 0.0, 1.0, clock=World(), drop=drop)
    assert dropped == [1]
    world = World()
    open_loop(Server(world, 0.001).submit, 10.0, 0.0, 1.0, clock=world, drop=drop)
    assert dropped == [1]


def test_a_request_without_an_answer_is_said_to_have_none() -> None:
    burst = open_loop(lambda done: None, 10.0, 0.0, 1.0, clock=World())
    assert burst.errors == 10
    assert burst.first_error == "no answer 10 s after the end"


def test_a_side_that_refuses_is_counted_with_its_first_words() -> None:
    def full(done: Done) -> None:
        raise RuntimeError("the queue is full")

    burst = open_loop(full, 20.0, 0.0, 1.0, clock=World())
    assert burst.errors == 20
    assert burst.first_error == "the queue is full"
    assert burst.refused == 0


def test_requests_without_room_are_counted_as_refused_in_both_loops() -> None:
    world, numbers = World(), iter(range(10**6))

    def call() -> None:
        world.wait_until(world.now() + 0.01)
        if next(numbers) % 2:
            raise QueueFullError("full")
        raise ValueError("odd")

    burst = closed_loop(call, 1, 0.0, 0.2, world)
    assert burst.refused == pytest.approx(burst.errors / 2, abs=1)

    def submit(done: Done) -> None:
        done(QueueFullError("full") if next(numbers) % 2 else None)

    burst = open_loop(submit, 20.0, 0.0, 1.0, clock=World())
    assert burst.refused == burst.errors == 10


def test_requests_of_the_warm_up_do_not_count() -> None:
    world = World()
    took_s = iter([0.5, 0.5, 0.5])

    def call() -> None:
        world.wait_until(world.now() + next(took_s, 0.01))

    burst = closed_loop(call, 1, 1.5, 0.5, world)
    assert burst.latencies_ms.max() == pytest.approx(10)
    assert burst.answered == len(burst.ends_s) == 50
    assert burst.window_s == pytest.approx(0.5)
    opened = open_loop(Server(world, 0.001).submit, 100.0, 5.0, 1.0, clock=world)
    assert opened.starts_s.min() >= 0
    assert opened.answered == pytest.approx(100, abs=2)


def test_a_closed_window_waits_for_two_answers_of_every_client() -> None:
    world = World()
    burst = closed_loop(Server(world, 5.0).call, 1, 0.0, 0.1, world)
    assert burst.answered == 2
    assert burst.throughput == pytest.approx(0.2)


def test_clients_call_at_the_same_time() -> None:
    together, met = threading.Barrier(4, timeout=120), threading.Event()

    def call() -> None:
        if not met.is_set():
            together.wait()
            met.set()

    burst = closed_loop(call, 4, 0.0, 0.0)
    assert burst.errors == 0
    assert burst.answered >= 8


def test_errors_in_a_closed_loop_are_counted_apart_from_answers() -> None:
    world = World()
    numbers = iter(range(10**6))

    def call() -> None:
        world.wait_until(world.now() + 0.01)
        if next(numbers) % 2:
            raise ValueError("odd")

    burst = closed_loop(call, 1, 0.0, 0.2, world)
    assert burst.errors == pytest.approx(10, abs=1)
    assert burst.answered == pytest.approx(10, abs=1)
    assert burst.first_error == "odd"


def interrupted(answered: int) -> None:
    raise KeyboardInterrupt


def after(count: int) -> load_module.Tick:
    """Ctrl-C when there are more answers than that."""

    def tick(answered: int) -> None:
        if answered > count:
            raise KeyboardInterrupt

    return tick


def test_ctrl_c_leaves_what_was_measured() -> None:
    world = World()
    burst = closed_loop(Server(world, 0.01).call, 1, 0.0, 1e9, world, after(3))
    assert burst.interrupted
    assert burst.latencies_ms.max() == pytest.approx(10)
    world = World()
    burst = open_loop(Server(world, 1e-6).submit, 10.0, 0.0, 5.0, 0, world, after(20))
    assert burst.interrupted
    assert 0 < burst.window_s < 5
    assert burst.errors == 0


def test_ctrl_c_in_the_warm_up_leaves_nothing() -> None:
    world = World()
    burst = closed_loop(Server(world, 0.01).call, 1, 1e9, 1.0, world, interrupted)
    assert (burst.interrupted, burst.window_s, burst.throughput) == (True, 0.0, 0.0)
    burst = open_loop(Server(world, 0.01).submit, 10.0, 9.0, 1.0, 0, world, interrupted)
    assert (burst.interrupted, burst.window_s, burst.answered) == (True, 0.0, 0)


def test_a_call_that_never_returns_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_module, "_STUCK_S", 0.01)
    gate = threading.Event()
    with pytest.raises(load_module.RequestTimeoutError, match="still under way"):
        closed_loop(lambda: gate.wait(120), 1, 0.0, 1.0, tick=interrupted)
    gate.set()


def test_loads_are_named() -> None:
    assert [str(Load(clients=1)), str(Load(clients=4)), str(Load(rate=50.0))] == [
        "1 client",
        "4 clients",
        "50 /s",
    ]
