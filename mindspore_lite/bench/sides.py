"""What `mslite bench` measures: the interface of a side, and mslite's own.

Our side is the public API. `call` waits for an answer; `submit` returns at once, which an open loop
needs. A side that can only wait gets threads for that, as many as it works on at the same time.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import numpy as np

from mindspore_lite.bench.burst import Load
from mindspore_lite.bench.load import OUTSTANDING, Done, Drop, Submit
from mindspore_lite.context import Context
from mindspore_lite.errors import CancelledError, InputError
from mindspore_lite.model import ModelParallelRunner
from mindspore_lite.serving.layout import Layout
from mindspore_lite.tensor import Tensor

Feed = Mapping[str, np.ndarray]
T = TypeVar("T")


@dataclass(frozen=True)
class Desk:
    """A side that is ready for one load."""

    call: Callable[[], list[np.ndarray]]  # one request, answered
    submit: Submit
    drop: Drop = lambda: None


class Side(Protocol):
    """One of those that are compared."""

    @property
    def name(self) -> str:
        """As tables call it."""

    def desk(self, load: Load, feed: Feed) -> AbstractContextManager[Desk]:
        """Get ready for a load of requests that are all alike."""

    def close(self) -> None:
        """Free everything."""


@dataclass(frozen=True)
class Wish:
    """Settings of our side; 0 and "" are automatic, batch 0 joins no requests."""

    target: str = "cpu"
    device: int = 0
    engine: str = ""
    workers: int = 0
    threads: int = 0
    batch: int = 0
    sandbox: bool = False  # compile in a jailed child

    def context(self) -> Context:
        """The same for the public API."""
        made = Context()
        made.target = [self.target]
        made.gpu.device_id = made.ascend.device_id = self.device
        made.cpu.thread_num = self.threads
        made.parallel.workers_num = self.workers
        made.parallel.max_batch_rows = self.batch
        made.parallel.queue_size = OUTSTANDING
        entries = {"common_context": {"engine": self.engine}} if self.engine else {}
        if self.sandbox:
            entries["build"] = {"sandbox": "on"}
        if entries:
            made.parallel.config_info = entries
        return made


class Ours:
    """ModelParallelRunner with the given settings."""

    def __init__(self, model: Path, wish: Wish, name: str = "mslite") -> None:
        """Build; errors are those of build_from_file."""
        self.name = name
        self._runner = ModelParallelRunner()
        self._runner.build_from_file(str(model), wish.context())

    @property
    def inputs(self) -> list[Tensor]:
        """The model's, unfilled."""
        return self._runner.get_inputs()

    @property
    def layout(self) -> Layout:
        """Who runs where."""
        return self._runner.statistics().layout

    def arrays(self, feed: Feed) -> list[np.ndarray]:
        """The arrays of a request, in the order of the inputs."""
        return [feed[tensor.name] for tensor in self.inputs]

    @contextmanager
    def desk(self, load: Load, feed: Feed) -> Iterator[Desk]:
        """The runner serves any load as it is."""
        runner, inputs = self._runner, self.arrays(feed)
        pending: _Pending[list[Tensor]] = _Pending()

        def call() -> list[np.ndarray]:
            return [output.get_data_to_numpy() for output in runner.predict(inputs)]

        def submit(done: Done) -> None:
            pending.add(runner.submit(inputs), done)

        yield Desk(call, submit, pending.drop)

    def close(self) -> None:
        """Take no more requests, and free the model."""
        self._runner.close(timeout_s=1.0)


class OtherFile(Ours):
    """The same runner with another model file, which takes the same requests."""

    def __init__(self, model: Path, wish: Wish, name: str, inputs: list[Tensor]) -> None:
        """Build.

        Raises:
            InputError: Its inputs are others.
        """
        super().__init__(model, wish, name)
        mine = self.inputs
        self._names = [one.name for one in inputs]  # by their places, whatever they are called here
        if {one.name for one in mine} == set(self._names):
            self._names = [one.name for one in mine]
        wanted = {one.name: one for one in inputs}
        same = len(mine) == len(inputs) and all(
            one.dtype == wanted[name].dtype and len(one.shape) == len(wanted[name].shape)
            for one, name in zip(mine, self._names, strict=True)
        )
        if not same:
            self.close()
            raise InputError(
                f"{name} cannot be compared: it has the inputs {_told(mine)}, the model has "
                f"{_told(inputs)}"
            )

    def arrays(self, feed: Feed) -> list[np.ndarray]:
        """The arrays of a request, in the order of this file's inputs."""
        return [feed[name] for name in self._names]

    def outputs(self) -> list[str]:
        """Their names."""
        return [one.name for one in self._runner.get_outputs()]


def _told(inputs: list[Tensor]) -> str:
    return ", ".join(
        f"{one.name} {str(one.dtype).rpartition('.')[2].lower()}{one.shape}" for one in inputs
    )


@contextmanager
def threaded(call: Callable[[], list[np.ndarray]], callers: int) -> Iterator[Desk]:
    """A desk for a side that can only wait; at most so many requests of an open loop run at once.

    The threads of a closed loop are its clients, which call by themselves.
    """
    pool = ThreadPoolExecutor(callers, thread_name_prefix="caller")
    pending: _Pending[list[np.ndarray]] = _Pending()
    try:
        yield Desk(call, lambda done: pending.add(pool.submit(call), done), pending.drop)
    finally:
        pool.shutdown(cancel_futures=True)


class _Pending(Generic[T]):
    """Requests under way; those that have an answer are not held, for it may be large."""

    def __init__(self) -> None:
        self._futures: weakref.WeakSet[Future[T]] = weakref.WeakSet()

    def add(self, future: Future[T], done: Done) -> None:
        self._futures.add(future)
        future.add_done_callback(lambda ended: done(_error(ended)))

    def drop(self) -> None:
        for future in list(self._futures):
            future.cancel()


def _error(ended: Future[T]) -> BaseException | None:
    return CancelledError("given up") if ended.cancelled() else ended.exception()
