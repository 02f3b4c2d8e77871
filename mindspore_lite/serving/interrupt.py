"""Lets Ctrl-C end a run that the main thread waits for.

Python calls signal handlers on the main thread alone, between two instructions of its own: never
while that thread is inside a native run. So the main thread runs a model itself only where such
runs are known to be short, and otherwise waits, on a lock, for a thread of this module that runs
it. Whatever the program's own handler of SIGINT does then holds: an exception ends the wait and
stops the run; a handler that returns lets the run go on. No handler, mask or wake-up descriptor of
the program is touched. Other threads never see a signal, and run their models themselves.

Who owns what: a Helper serves one run at a time. The main thread pops it from `_IDLE`, and it puts
itself back when the run has ended, however long after the wait for it: a run that does not stop
keeps its helper, and the next one gets another. Runs on the main thread are not nested, except from
signal handlers; no lock is held while one waits, so these work as well. `_IDLE` needs no lock:
append and pop of a list are atomic.
"""

from __future__ import annotations

import logging
import re
import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import perf_counter
from typing import Generic, TypeVar

import numpy as np

from mindspore_lite.core import threads
from mindspore_lite.core.fork import after_fork_in_child
from mindspore_lite.engines.base import Session, Stop
from mindspore_lite.errors import LiteError

T = TypeVar("T")

QUICK_S = 0.02  # a run that takes no longer is over before anybody notices the delay; guess
STOP_S = 0.3  # for a run to end when it is stopped, before its thread is left to itself
LOOK_S = 0.1  # how often a thread that waits looks for signals
_FEW = 8  # elements of an input of integers that may decide sizes, as a shape does
_MANY = 256  # different sizes that are remembered
# in ONNX's encoding field 4 of a node, its operator, is 0x22, the length and the name
_BRANCHES = re.compile(rb"\x22(?:\x04Loop|\x04Scan|\x02If|\x0bSequenceMap)")

_LOG = logging.getLogger(__name__)


def _find_main() -> None:
    global MAIN
    MAIN = threading.main_thread().ident
    _IDLE.clear()  # a child of a fork has none of the threads


MAIN: int | None = None  # what threading.get_ident() returns on the main thread


class Pace:
    """Which runs of a session are short for certain: those of the same sizes that were before.

    Small inputs of integers are compared by value: they may be sizes. A graph with branches or
    loops may take any time whatever its sizes are, so none of its runs is certain.
    """

    def __init__(self, session: Session) -> None:
        self.session = weakref.ref(session)  # it must go when its owner drops it
        self.quick: set[object] = set()  # the keys of runs that are short
        self._numbers = [at for at, i in enumerate(session.info.inputs) if i.dtype.kind in "iu"]
        try:
            self.is_steady = _BRANCHES.search(session.skeleton()) is None
        except LiteError:  # inputs of any rank: there is no graph before they are known
            self.is_steady = False

    def key(self, inputs: Sequence[np.ndarray]) -> object:
        """What decides how long a run takes."""
        shapes = tuple([array.shape for array in inputs])
        if not self._numbers:
            return shapes
        few = [inputs[at] for at in self._numbers if at < len(inputs)]
        return shapes, *(array.tobytes() for array in few if _is_few(array))

    def note(self, key: object, took_s: float) -> None:
        """Remember how long a run took."""
        if took_s > QUICK_S:
            self.quick.discard(key)
        elif self.is_steady and key not in self.quick:
            if len(self.quick) >= _MANY:
                self.quick.clear()
            self.quick.add(key)


def _is_few(array: object) -> bool:
    return isinstance(array, np.ndarray) and array.size <= _FEW  # not a tensor on a card


class MainRuns:
    """Runs sessions for the main thread, one model's after the other."""

    def __init__(self) -> None:
        self._pace: Pace | None = None

    def run(self, session: Session, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The outputs; Ctrl-C ends the wait for them, and the run."""
        pace = self._pace
        if pace is None or pace.session() is not session:
            pace = self._pace = Pace(session)
        key = pace.key(inputs)
        start_s = perf_counter()
        if key in pace.quick:
            outputs = session.run(inputs)
            if perf_counter() - start_s > QUICK_S:
                pace.quick.discard(key)
            return outputs
        outputs = apart(lambda stop: session.run(inputs, stop))
        pace.note(key, perf_counter() - start_s)
        return outputs


def apart(run: Callable[[Stop], T]) -> T:
    """What `run` returns or raises, on another thread; an interrupt of this one stops it."""
    task = _Task(run)
    if not _started(task):
        return run(task.stop)  # no thread can be started: it cannot be interrupted, but it can run
    try:
        wait_for(task.done)
    except BaseException:
        task.stop.fire()
        if not task.done.acquire(timeout=STOP_S):
            _LOG.warning(
                "the run was interrupted but does not stop: the engine cannot be told to inside of "
                "an operator; its thread is left to itself until it ends"
            )
        raise
    if task.error is not None:
        try:
            raise task.error
        finally:
            task.error = None  # it holds this frame: without a circle, the inputs go when it goes
    return task.result[0]


def wait_for(lock: threading.Lock) -> None:
    """Acquire a lock on the main thread, so that no signal waits for longer than LOOK_S.

    One that comes after Python looked for signals, and before it sleeps, does not end the sleep.
    """
    while not lock.acquire(timeout=LOOK_S):
        pass


class _Task(Generic[T]):
    """A run, and what came of it; `done` is held until it has ended."""

    def __init__(self, run: Callable[[Stop], T]) -> None:
        self.run: Callable[[Stop], T] | None = run
        self.stop = Stop()
        self.result: list[T] = []
        self.error: BaseException | None = None
        self.done = threading.Lock()
        self.done.acquire()

    def do(self) -> None:
        """Run it, on a helper's thread."""
        assert self.run is not None
        try:
            self.result.append(self.run(self.stop))
        except BaseException as exc:  # noqa: BLE001 - raised again by the thread that waits
            self.error = exc
        self.run = None  # it refers to the inputs, which are the caller's again


class _Helper:
    """A thread that runs tasks, one at a time."""

    def __init__(self) -> None:
        self._task: _Task | None = None
        self._called = threading.Lock()
        self._called.acquire()
        threads.start(self._serve)

    def begin(self, task: _Task) -> None:
        """Run a task; only of one that was idle."""
        self._task = task
        self._called.release()

    def _serve(self) -> None:
        while True:
            self._called.acquire()
            task, self._task = self._task, None
            assert task is not None
            task.do()
            _IDLE.append(self)  # before `done` is released: the next run finds it
            task.done.release()
            del task


_IDLE: list[_Helper] = []


def _started(task: _Task) -> bool:
    """Give a task to an idle helper, or a new one; False when there is none."""
    helper = None
    with suppress(IndexError):
        helper = _IDLE.pop()
    if helper is None:
        try:
            helper = _Helper()
        except RuntimeError:
            return False
    helper.begin(task)
    return True


_find_main()
after_fork_in_child(_find_main)
