"""Whether a server can be relied on: its ports, its models, and the processes of these.

    health = Health()
    health.watch(models)                looks at all models every LOOK_S, on a thread of its own
    pulse = health.pulse("http")        a port that calls pulse.beat() while it gets things done
    health.prompt("grpc", pool.submit)  one whose threads are given the beats to do

A model is ready while nothing is known against it. What is found against it (a worker that is
stuck, a process that is dead, stopped or hangs) makes it unready within about a second; when that
has passed, it is ready again after a probe, which is a run on every worker.

A port that gets nothing done cannot say so itself: its clients wait. So each has a pulse, which the
other ports look at, and so does the thread that looks at the models. Times are those of the
monotonic clock; the time of day may jump.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Protocol, runtime_checkable

from mindspore_lite.core import threads
from mindspore_lite.errors import LiteError
from mindspore_lite.remote.devices.vitals import LOOK_S

_LOG = logging.getLogger(__name__)
STALLED_S = 3.0  # without a beat: the server is not ready
DEAD_S = 10.0  # without a beat: it is not live, and should be started again
_AGAIN_AFTER = 40  # looks until a probe that failed is made once more

Clock = Callable[[], float]
Submit = Callable[[Callable[[], None]], object]


class Pulse:
    """When something was last seen to get something done."""

    __slots__ = ("_clock", "_last_s")

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self.beat()

    def beat(self) -> None:
        """It does."""
        self._last_s = self._clock()

    @property
    def silent_s(self) -> float:
        """For how long it did not."""
        return self._clock() - self._last_s


@runtime_checkable
class Examined(Protocol):
    """A service that can tell what is wrong with it."""

    def examine(self) -> str:
        """Why it cannot compute now, without waiting; "" if it can."""


class Probed(Protocol):
    """A service of a model."""

    def warm_up_shapes(self) -> list[list[int]] | None:
        """The shapes of a smallest request."""

    def warm_up(self, shapes: list[list[int]]) -> object:
        """Run every worker once."""


class ModelHealth:
    """What is known against a model that passed its first probe.

    `reason` may be read by any thread; look() is for one.
    """

    def __init__(self, name: str, service: Probed) -> None:
        self.reason = ""
        self._name = name
        self._service = service
        self._probe: _Probe | None = None  # the last, since something was found
        self._looks = 0  # since it failed

    def look(self) -> None:
        """Find out how the model is, without waiting."""
        found = self._service.examine() if isinstance(self._service, Examined) else ""
        if found:
            self._probe = None
        elif self.reason:
            found = self._probed()
        if found and not self.reason:
            _LOG.warning("model %s is not ready: %s", self._name, found)
        elif self.reason and not found:
            _LOG.warning("model %s is ready again", self._name)
        self.reason = found

    def _probed(self) -> str:
        """Why it does not count as well yet, after something was found."""
        if self._probe is None:
            self._probe, self._looks = _Probe(self._name, self._service), 0
            self._probe.start()
        if self._probe.passed:
            return ""
        if not self._probe.error:
            return "it is being probed again"
        self._looks += 1
        found = self._probe.error
        if self._looks >= _AGAIN_AFTER:
            self._probe = None
        return found


class _Probe:
    """A run on every worker, on a thread of its own."""

    def __init__(self, name: str, service: Probed) -> None:
        self.passed = False
        self.error = ""
        self._name = name
        self._service = service

    def start(self) -> None:
        try:
            threads.start(self._run)
        except RuntimeError as exc:
            self.error = f"no thread can be started for its probe: {exc}"

    def _run(self) -> None:
        try:
            shapes = self._service.warm_up_shapes()  # None: sizes that only callers know
            if shapes is not None:
                self._service.warm_up(shapes)
            self.passed = True
        except LiteError as exc:
            _LOG.warning("model %s failed its probe: %s", self._name, exc)
            self.error = "it failed its probe; the server's log says why"


class _Prompt:
    """Has threads beat a pulse, once at a time: those that are stalled get no more to do."""

    def __init__(self, pulse: Pulse, submit: Submit) -> None:
        self.pulse = pulse
        self._submit = submit
        self._is_due = True

    def look(self) -> None:
        """Have them do it, if they have done the last one."""
        if self._is_due:
            self._is_due = False
            self._submit(self._beat)

    def _beat(self) -> None:
        self.pulse.beat()
        self._is_due = True


class Watched(Protocol):
    """A model that is served."""

    name: str
    version: str

    @property
    def health(self) -> ModelHealth:
        """What is known against it."""


class Health:
    """The pulses of a server, and the thread that looks at its models."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._pulses: dict[Pulse, str] = {}
        self._prompts: dict[str, _Prompt] = {}
        self._is_watching = False
        self.told: Callable[[Watched, str], None] | None = None  # of each change of a model
        self._is_over = threading.Event()

    def pulse(self, name: str) -> Pulse:
        """Expect a beat of this from now on."""
        found = Pulse(self._clock)
        self._pulses = {**self._pulses, found: name}
        return found

    def prompt(self, name: str, submit: Submit) -> None:
        """The same for threads that do what is submitted; without watch() nothing is."""
        if self._is_watching:
            self._prompts = {**self._prompts, name: _Prompt(self.pulse(name), submit)}

    def unprompt(self, name: str) -> None:
        """The threads are to end."""
        found = self._prompts.get(name)
        if found is not None:
            self._prompts = {other: one for other, one in self._prompts.items() if other != name}
            self.forget(found.pulse)

    def forget(self, pulse: Pulse) -> None:
        """It is to end, and does not beat any more."""
        self._pulses = {other: name for other, name in self._pulses.items() if other is not pulse}

    def stalled(self, limit_s: float | None = None) -> list[str]:
        """What has had no beat for so long; None is STALLED_S."""
        limit_s = STALLED_S if limit_s is None else limit_s
        return [name for one, name in self._pulses.items() if one.silent_s > limit_s]

    @property
    def is_live(self) -> bool:
        """Whether the process is of any use, whatever its models do."""
        return not self.stalled(DEAD_S)

    def watch(self, models: Callable[[], Iterable[Watched]]) -> None:
        """Begin to look at models; until stop()."""
        pulse = self.pulse("health")
        self._is_watching = True

        def look() -> None:
            while not self._is_over.wait(LOOK_S):
                pulse.beat()
                looks: list[Callable[[], None]] = [one.look for one in self._prompts.values()]
                looks += [partial(self._look, model) for model in models()]
                for act in looks:
                    try:
                        act()
                    except Exception:  # noqa: BLE001 - the others must be looked at
                        _LOG.exception("the health of a part of the server cannot be told")
            self.forget(pulse)

        threading.Thread(target=look, name="mslite-health", daemon=True).start()

    def _look(self, model: Watched) -> None:
        before = model.health.reason
        model.health.look()
        if self.told is not None and model.health.reason != before:
            self.told(model, model.health.reason)

    def stop(self) -> None:
        """Look no more. Harmless when repeated."""
        self._is_over.set()
