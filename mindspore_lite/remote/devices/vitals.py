"""Whether the process of a device can compute, found out within about a second.

`Vitals.look` is called every LOOK_S by one thread, and never waits. Three things are looked at:

- whether the process is there, and the one that was there before;
- whether the kernel says that it is stopped (SIGSTOP, a debugger): that is certain at once;
- whether it answers. One question is always under way, on a thread of its own. A process that does
  not answer may be slow, because the machine is busy or because it holds its interpreter for long:
  then the kernel shows that it computes, or waits for a processor or a disk. One that does nothing
  of that while a question waits for it is asleep, and hangs.

All of it is counted in looks rather than seconds: where this process gets no time to look, or all
processes are stopped for a while, nothing is held against the worker.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from mindspore_lite.errors import LiteError, RequestTimeoutError
from mindspore_lite.remote.devices.process import WorkerProcess
from mindspore_lite.remote.devices.supervisor import LONGEST_BACK_OFF_S, Life, State, Supervisor

LOOK_S = 0.25  # how often look() is to be called
HANGS_AFTER = 3  # looks at a process that is asleep although it was asked something
SLOW_AFTER = 40  # looks without an answer, whatever the process does
ENDED_AFTER = 40  # looks at a process that is stopped, or hangs
ASK_S = 60.0  # after which another lane is tried; guess
_IDLE_TICKS = 1  # of processor time between two looks: threads that wait for a lock use some

Start = Callable[[Callable[[], None]], None]  # runs something on another thread


class Activity(NamedTuple):
    """What the kernel says of a process."""

    state: str  # a letter, as ps shows it; "" when the process is gone, or nothing is told
    ticks: int = 0  # of processor time so far
    is_runnable: bool = False  # a thread of it runs, or would if it had a processor or its disk


def activity(pid: int, *, threads: bool) -> Activity:
    """What a process does; of its threads only if that is asked for, since it takes longer."""
    found = _stat(Path(f"/proc/{pid}/stat"))
    if found is None:
        return Activity("")
    is_runnable = False
    if threads:
        with suppress(OSError):  # it has ended
            states = [_stat(task / "stat") for task in Path(f"/proc/{pid}/task").iterdir()]
            is_runnable = any(one is not None and one[0] in "RD" for one in states)
    return Activity(*found, is_runnable)


def _stat(path: Path) -> tuple[str, int] | None:
    try:
        fields = path.read_text().rpartition(")")[2].split()  # the name before may hold anything
    except OSError:
        return None
    return fields[0], int(fields[11]) + int(fields[12])


class Vitals:
    """What is known of the process of a supervisor; see the module's text.

    Args:
        supervisor: Keeps the process alive.
        start: Runs a question on another thread.
        look_at: What the kernel says; a test puts its own there.
    """

    def __init__(
        self,
        supervisor: Supervisor,
        start: Start,
        look_at: Callable[..., Activity] = activity,
    ) -> None:
        self._supervisor = supervisor
        self._start = start
        self._look_at = look_at
        life = supervisor.life
        self._process: WorkerProcess | None = None if life is None else life.process
        self._begin()

    def _begin(self) -> None:
        """Know nothing yet of a process."""
        self._is_asking, self._was_answered = False, True
        self._told = ""  # what the process itself complains of
        self._unanswered = self._asleep = self._stopped = self._complained = 0  # looks
        self._ticks = 0

    def look(self) -> str:
        """Why the process cannot compute now; "" if it can."""
        supervisor = self._supervisor
        life = supervisor.life
        if life is None or not life.process.alive:
            return _absent(supervisor.state)
        if life.process is not self._process:
            self._process = life.process
            self._begin()
            return "its process was started again"
        seen = self._look_at(life.process.pid, threads=self._is_asking)
        if seen.state in ("T", "t"):  # "t": a debugger has it, and knows what it does
            self._stopped += seen.state == "T"
            if self._stopped == ENDED_AFTER:
                supervisor.give_up(life, "it was stopped, and not continued")
            return "its process is stopped"
        self._stopped = 0
        if self._is_asking:
            self._wait(life, seen)
        else:
            self._ask(life)
        self._ticks = seen.ticks
        self._complained = self._complained + 1 if self._told else 0
        if self._complained == ENDED_AFTER:
            supervisor.give_up(life, self._told)
        return self._verdict()

    def _verdict(self) -> str:
        if self._asleep >= HANGS_AFTER:
            return "its process does not answer, nor does it compute"
        if self._unanswered >= SLOW_AFTER:
            return f"its process has not answered for {self._unanswered * LOOK_S:.0f} s"
        return self._told

    def _wait(self, life: Life, seen: Activity) -> None:
        """A question is under way."""
        self._unanswered += 1
        is_known = bool(seen.state)  # else nothing may be held against it
        is_idle = is_known and not seen.is_runnable and seen.ticks - self._ticks <= _IDLE_TICKS
        self._asleep = self._asleep + 1 if is_idle else 0
        if self._asleep == ENDED_AFTER:
            self._supervisor.give_up(life, "it did not answer for some time, nor did it compute")

    def _ask(self, life: Life) -> None:
        if self._was_answered:  # else the lane was given up, and the question is asked again
            self._unanswered = self._asleep = 0
        self._is_asking, self._was_answered = True, False
        with suppress(LiteError):  # there is no thread now: that says nothing about the process
            self._start(lambda: self._asked(life))
            return
        self._is_asking, self._was_answered = False, True

    def _asked(self, life: Life) -> None:
        """On a thread of its own: waits for the answer."""
        told, is_late = self._told, False
        try:
            told = life.model.session.info("trouble", life.model.number, timeout_s=ASK_S)
        except RequestTimeoutError:
            is_late = True
        except LiteError:  # it ended, which others notice; or there is no lane
            pass
        if self._process is life.process:
            self._told, self._was_answered, self._is_asking = told, not is_late, False


def _absent(state: State) -> str:
    if state is State.OUT:
        return (
            "its process ended too often, and is started again after "
            f"{LONGEST_BACK_OFF_S:g} s; the log says why"
        )
    return "its process is being started"
