"""What all commands share of talking to people: output, errors, and signs of life on a terminal."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn


def say(text: str = "") -> None:
    """One line on standard output."""
    print(text)  # noqa: T201 - this is where commands print


def fail(text: str, code: int) -> NoReturn:
    """One line on standard error, then the end."""
    print(f"mslite: {text}", file=sys.stderr)  # noqa: T201 - likewise
    raise SystemExit(code)


@contextmanager
def working(text: str) -> Iterator[None]:
    """A spinner on standard error while something takes long; nothing at all in a pipe."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(text):
        yield


@contextmanager
def tidy_end() -> Iterator[None]:
    """Let SIGTERM end the block as Ctrl-C does: half-written files are taken away again."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread hears signals
        return

    def leave(number: int, frame: object) -> NoReturn:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def steps(text: str) -> Iterator[Callable[[str], None]]:
    """A bar on standard error, which is told what is being done; nothing at all in a pipe."""
    if not sys.stderr.isatty():
        yield lambda what: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(text, total=None)  # nobody knows how long a stage will take
        yield lambda what: progress.update(task, description=f"{text}: {what}")


class Bar:
    """What long work of known length says of itself; nothing at all, in a pipe."""

    def at(self, text: str) -> None:
        """What is being done."""

    def step(self) -> None:
        """One of the steps is done."""


@contextmanager
def bar(total: int) -> Iterator[Bar]:
    """A bar of so many steps on standard error; more steps make it longer."""
    if not sys.stderr.isatty():
        yield Bar()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), TimeRemainingColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=total)

        class Shown(Bar):
            def at(self, text: str) -> None:
                progress.update(task, description=text)

            def step(self) -> None:
                now = progress.tasks[0]
                progress.update(task, advance=1, total=max(now.total or 0, now.completed + 1))

        yield Shown()
