"""One case of an entry: made from (entry, seed, number) alone, run under a watch, and judged."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from fuzzing.damage import Damage
from fuzzing.ground import Ground
from fuzzing.trouble import Trouble, of_exception

from mindspore_lite.errors import LiteError

CPU_S = 10.0
MEMORY = 600 << 20  # bytes above what the process had before the case
_PAGE = os.sysconf("SC_PAGE_SIZE")

Act = Callable[[], object]
Make = Callable[[Damage, Path], Act]  # writes the files of a case; what it returns runs the product


@dataclass(frozen=True)
class Entry:
    """A way into the product."""

    name: str
    about: str
    make: Make
    opens_any: bool = False  # whether what it reads may name any file: the user's own settings


@dataclass
class Result:
    """How a case ended."""

    troubles: list[Trouble] = field(default_factory=list)
    cpu_s: float = 0.0
    memory: int = 0
    refused: bool = False  # with an error of ours


def run_case(entry: Entry, seed: int, number: int, ground: Ground) -> Result:
    """Make a case, run it, and judge it. The files of it stay until the next one."""
    ground.clean()
    damage = Damage(Random(f"{entry.name}:{seed}:{number}"))
    return run_act(entry, entry.make(damage, ground.case), ground)


def warm_up(entry: Entry, ground: Ground) -> None:
    """One case without damage, which must be taken; imports are no part of a case's costs."""
    ground.clean()
    act = entry.make(Damage(Random(0), harmless=True), ground.case)
    with _quiet(), ground.entered():
        act()


def run_act(entry: Entry, act: Act, ground: Ground) -> Result:
    """Run what a case does, under the watch."""
    result = Result()
    before = memory_now()
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    start_s = time.process_time()
    with _quiet(), _threads_heard(result), ground.entered() as opened:
        try:
            act()
        except LiteError:
            result.refused = True
        except Exception as exc:  # noqa: BLE001 - that is what we look for
            result.troubles.append(of_exception(exc))
    result.cpu_s = time.process_time() - start_s
    result.memory = _peak() - before
    if not entry.opens_any:
        result.troubles += opened[:1]
    if result.cpu_s > CPU_S:
        result.troubles.append(Trouble("cpu", entry.name, f"{result.cpu_s:.1f} s of CPU time"))
    if result.memory > MEMORY:
        result.troubles.append(Trouble("memory", entry.name, f"{result.memory >> 20} MiB more"))
    return result


def memory_now(pid: int | str = "self") -> int:
    """Bytes that a process has in memory."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE


def _peak() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return memory_now()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without warnings, and without what commands print."""
    with warnings.catch_warnings(), open(os.devnull, "w") as nothing:
        warnings.simplefilter("ignore")
        with contextlib.redirect_stdout(nothing):
            yield


@contextlib.contextmanager
def _threads_heard(result: Result) -> Iterator[None]:
    """An exception that ends a thread is one, too."""

    def hear(args: threading.ExceptHookArgs) -> None:
        if args.exc_value is not None:
            result.troubles.append(of_exception(args.exc_value))

    before, threading.excepthook = threading.excepthook, hear
    try:
        yield
    finally:
        threading.excepthook = before
