"""Brings new weights to all devices, and tells each request which weights it uses.

Nobody waits for an update. Every worker derives another model with the new weights, next to the one
in use, from what is compiled of it; when all have, requests begin with these models. Those under
way end with the weights that they began with, all their parts and retries, and the old models go
when the last of them has ended. A process that ends meanwhile starts again with the weights that
count then.

`now`, and how many requests use which weights, are read and changed under the dispatcher's lock.
`_updating` is taken before that lock, and held for a whole update: updates come one after another.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from mindspore_lite.errors import (
    CancelledError,
    ClosedError,
    LiteError,
    ResourceError,
    WorkerDiedError,
)
from mindspore_lite.remote.devices.request import SplitRequest
from mindspore_lite.remote.devices.start_watch import start_watched
from mindspore_lite.remote.devices.supervisor import REAP_S, Life, Supervisor, told
from mindspore_lite.remote.devices.weights import Group, Weights
from mindspore_lite.weights.all_or_none import all_or_none

# of a worker that nobody asked to close a model or to cancel: it was told to end, by SIGTERM or by
# the end of its session, and says so while it still can
LEAVING = (WorkerDiedError, ClosedError, CancelledError)

Lives = list[tuple[Supervisor, Life]]
Look = Callable[[Life], object]
Done = Callable[[tuple[Supervisor, Life]], None]


class WeightRollout:
    """The weights that requests begin with, and how they change.

    Args:
        supervisors: All devices, not started yet.
        changed: The dispatcher's lock.
        lives: With it held, returns the devices that are ready; none, if some will be; or raises.
    """

    def __init__(
        self,
        supervisors: Sequence[Supervisor],
        changed: threading.Condition,
        lives: Callable[[], Lives],
    ) -> None:
        self.now = Weights()
        for supervisor in supervisors:
            supervisor.wanted = self.now
        self._supervisors = supervisors
        self._changed = changed
        self._lives = lives
        self._updating = threading.Lock()  # one after the other

    def of(self, request: SplitRequest) -> Weights:
        """What a request began with, or begins with now. With the lock held."""
        if request.weights is None:
            request.weights = self.now
            self.now.users += 1
        return request.weights

    def let_go(self, weights: Weights) -> None:
        """A request no longer uses these weights. With the lock held."""
        weights.users -= 1
        self._dismiss(weights)

    def update(self, groups: Sequence[Group], look: Look) -> None:
        """Change weights on all devices, or on none; see Dispatcher.update."""
        with self._updating:
            wanted = self.now.after(groups)
            made: dict[Supervisor, Life] = {}
            with all_or_none(_retire) as done:
                while lacking := self._flip(wanted, made):
                    _make(lacking, groups, wanted, made, done)
                    _show(made, look)

    def _flip(self, wanted: Weights, made: dict[Supervisor, Life]) -> Lives:
        """Have requests begin with other weights, if all devices that are ready have them.

        Else nothing is changed; returns those that do not have them.
        """
        with self._changed:
            while not (lives := self._lives()):
                self._changed.wait()
            lacking = [
                (supervisor, life)
                for supervisor, life in lives
                if not supervisor.has(made.get(supervisor))
            ]
            if lacking:
                return lacking
            for supervisor in self._supervisors:
                supervisor.wanted = wanted
            for supervisor, _ in lives:
                supervisor.exchange(made[supervisor])
            before, self.now = self.now, wanted
            self._dismiss(before)
            return []

    def _dismiss(self, weights: Weights) -> None:
        """Release weights that no request uses or will use."""
        if weights is not self.now and not weights.users:
            for supervisor in self._supervisors:
                supervisor.dismiss(weights)


def _retire(built: tuple[Supervisor, Life]) -> None:
    supervisor, life = built
    supervisor.retire(life)


def _make(
    lacking: Lives,
    groups: Sequence[Group],
    wanted: Weights,
    made: dict[Supervisor, Life],
    done: Done,
) -> None:
    """Derive the model with other weights in processes, all at once; `made` gets what was made.

    `done` is called with it, too. A process that ends meanwhile has none, and its end has been seen
    when this returns.

    Raises:
        Exception: What the first device says that refuses them.
    """

    def make(supervisor: Supervisor, life: Life) -> None:
        try:
            made[supervisor] = supervisor.derived(life, groups, wanted)
            done((supervisor, made[supervisor]))
        except LEAVING:
            life.process.died(REAP_S)
            supervisor.await_end(life)
        except LiteError as exc:
            raise told(exc, supervisor.place.device) from exc.__cause__

    try:
        with ThreadPoolExecutor(len(lacking), thread_name_prefix="mslite-update") as threads:
            tasks = [threads.submit(make, supervisor, life) for supervisor, life in lacking]
    except RuntimeError as exc:
        raise ResourceError(f"no thread can be started to update a device: {exc}") from exc
    for task in tasks:
        task.result()


def _show(made: dict[Supervisor, Life], look: Look) -> None:
    """Call `look` with a model that has the new weights, before requests use it."""
    for life in list(made.values())[:1]:
        with (
            suppress(LiteError),
            start_watched(life.process),
        ):  # it may have died: that is seen elsewhere
            look(life)
