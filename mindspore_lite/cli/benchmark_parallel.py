"""`--enableParallelPredict`: several clients run one model, and their times are measured.

Clients are threads of this process. All of them begin together; a client that fails ends the others
after their run under way, and so does Ctrl-C, which is the regular end of clients without one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait

import numpy as np

from mindspore_lite.cli import benchmark_accuracy as accuracy
from mindspore_lite.cli.benchmark_asked import Asked, Clients, context_of
from mindspore_lite.cli.benchmark_inputs import arrays_for, shapes_for
from mindspore_lite.cli.console import say, working
from mindspore_lite.runner import ModelParallelRunner

_RULE = "=" * 42


def measure_clients(asked: Asked, clients: Clients) -> None:
    """Build a runner, let clients use it, and print what each run and all of them took."""
    expected = accuracy.read_expected(asked.reference) if asked.reference else None
    with ModelParallelRunner() as runner:
        start = time.perf_counter()
        with working(f"building {asked.model.name}"):
            runner.build_from_file(str(asked.model), context_of(asked))
        init_s = time.perf_counter() - start
        tensors = runner.get_inputs()
        inputs = arrays_for(tensors, shapes_for(tensors, asked), asked.files)
        _warm_up(runner, inputs, asked.warm_ups)
        crowd = _Crowd(runner, inputs, clients, expected)
        run_s = crowd.run()
    say(_RULE)
    say(f"parallel predict init time: {init_s * 1e3:.3f} ms")
    say(f"parallel predict all run time: {run_s * 1e3:.3f} ms")
    say(_RULE)
    if crowd.worst:
        accuracy.report(crowd.worst, asked.limits)


def _warm_up(runner: ModelParallelRunner, inputs: list[np.ndarray], count: int) -> None:
    for at in range(count):
        start = time.perf_counter()
        runner.predict(inputs)
        say(f"warm up index: {at} | time: {(time.perf_counter() - start) * 1e3:.3f} ms")
    say("=============== end warm up ===============")


class _Crowd:
    """Threads that each run a model some times. What they have in common is behind one lock."""

    def __init__(
        self,
        runner: ModelParallelRunner,
        inputs: list[np.ndarray],
        clients: Clients,
        expected: dict[str, np.ndarray] | None,
    ) -> None:
        self.worst: Sequence[accuracy.Compared] = ()  # of all runs, the one furthest off
        self._runner, self._inputs, self._clients = runner, inputs, clients
        self._expected = expected
        self._begin = threading.Event()
        self._end = threading.Event()
        self._lock = threading.Lock()

    def run(self) -> float:
        """Let all clients do their tasks, and return the seconds from the first to the last.

        An error of a client is raised when all have ended.
        """
        with ThreadPoolExecutor(self._clients.count, thread_name_prefix="client") as threads:
            done: list[Future[float]] = []
            start = time.perf_counter()
            try:
                for number in range(self._clients.count):
                    done.append(threads.submit(self._client, number))
                start = time.perf_counter()
                self._begin.set()
                wait(done)
            except KeyboardInterrupt:
                if self._clients.tasks >= 0:
                    raise
            finally:
                self._end.set()
                self._begin.set()  # also for those who wait when something went wrong
        return max([start, *(future.result() for future in done)]) - start

    def _client(self, number: int) -> float:
        """Do the tasks of one client; returns when the last was done."""
        try:
            self._begin.wait()
            task = 0
            while task != self._clients.tasks and not self._end.is_set():
                self._task(number, task)
                task += 1
            return time.perf_counter()
        except BaseException:
            self._end.set()  # nobody needs to go on
            raise

    def _task(self, number: int, task: int) -> None:
        start = time.perf_counter()
        outputs = self._runner.predict(self._inputs)
        taken_ms = (time.perf_counter() - start) * 1e3
        compared: list[accuracy.Compared] = []
        if self._expected is not None:
            compared = accuracy.compare(self._expected, outputs, accuracy.CLIENTS)
        with self._lock:
            say(f"parallel index: {number} | task index: {task} | predict time: {taken_ms:.3f} ms")
            if compared and (
                not self.worst or accuracy.mean_bias(compared) > accuracy.mean_bias(self.worst)
            ):
                self.worst = compared
