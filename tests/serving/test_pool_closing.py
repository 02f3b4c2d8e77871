"""pool.py: closing under load drains, or ends what is there in bounded time."""

from __future__ import annotations

import numpy as np
import pytest
from support.fake_engine import (
    LIMIT_S,
    Bench,
    Client,
    Gate,
    batch_behind,
    closing,
    raising,
    rows,
)

from mindspore_lite.errors import ClosedError, EngineError
from mindspore_lite.serving.pool import GRACE_S

Arrays = list[np.ndarray]


def test_a_close_with_a_limit_ends_what_waits_and_runs() -> None:
    gate = Gate()
    bench = Bench(gate, workers=2)
    with closing(bench, gate):
        here = [bench.predict() for _ in range(2)]  # on the callers' own threads
        gate.entered(2)
        waiting = [bench.predict(timeout_s=1e6) for _ in range(3)]
        bench.queued(3)
        answers = [bench.submit() for _ in range(3)]
        closer = Client(lambda: bench.pool.close(10.0))
        bench.watched(4)
        bench.pass_time(10.0)
        for client in [*here, *waiting]:
            error = client.ended().error
            assert isinstance(error, ClosedError)
            assert "closed, and the request did not end within 10 s" in str(error)
        for answer in answers:
            with pytest.raises(ClosedError):
                answer.wait()
        closer.ended()
        found = bench.statistics()
        assert (found.closed, found.sent, found.running, found.queued) == (8, 8, 0, 0)
        assert not any(thread.is_alive() for thread in bench.threads)
        assert bench.session.closed == 1


def test_a_close_with_a_limit_returns_even_if_the_engine_hangs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    trap = Gate(obeys=False)
    bench = Bench(trap, workers=2)
    with closing(bench, trap):
        hung = bench.submit()
        trap.entered()
        closer = Client(lambda: bench.pool.close(10.0))
        bench.watched(1)
        bench.pass_time(10.0)
        with pytest.raises(ClosedError):
            hung.wait()
        assert closer.is_alive()
        bench.pass_time(GRACE_S)
        closer.ended()
        assert "closed while 1 runs do not stop" in caplog.text
        trap.open()
        for thread in bench.threads:
            thread.join(LIMIT_S)
            assert not thread.is_alive()
        assert hung.times == 1


def test_a_closing_pool_ends_within_its_limit_after_a_late_failure_of_a_batch() -> None:
    """Members of a failed batch are queued again when the other workers' threads have ended."""
    bench, gate, (one, guilty) = batch_behind(raising(ValueError("no")), [1.0, 13.0], workers=2)
    with closing(bench, gate):
        gate.open()
        closer = Client(lambda: bench.pool.close(None))
        closer.ended()
        one.wait()
        with pytest.raises(EngineError):
            guilty.wait()


def test_a_pool_in_a_gathering_closes_at_once() -> None:
    bench = Bench(workers=3, max_rows=8, wait_s=3600.0)
    answers = [bench.submit(rows(1, value)) for value in (1.0, 2.0)]
    Client(lambda: bench.pool.close(None)).ended()
    assert [answer.wait()[0][0, 0] for answer in answers] == [2, 4]
