"""Output, errors and progress on a terminal, shared by all commands."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NoReturn

from mindspore_lite.core.boundary import resource_error
from mindspore_lite.core.text import harmless

_NOBODY_READS = 128 + signal.SIGPIPE  # the code of other programs that a closed pipe ends
_REDRAWN_S = 0.1  # how often a bar is drawn anew, at most


def say(text: str = "") -> None:
    """One line on standard output."""
    with read_by_somebody():
        print(harmless(text))  # noqa: T201 - this is where commands print


def fail(text: str, code: int) -> NoReturn:
    """One line on standard error, then the end."""
    complain(f"mslite: {text}")
    raise SystemExit(code)


def complain(*lines: str) -> None:
    """Lines on standard error."""
    with suppress(BrokenPipeError):
        for line in lines:
            print(harmless(line), file=sys.stderr)  # noqa: T201 - likewise


@contextmanager
def all_written() -> Iterator[None]:
    """Write out everything that was said in the block: what is a buffer's is not yet a pipe's."""
    try:
        yield
    except BaseException:
        with suppress(SystemExit):
            _flush()
        raise
    _flush()


def _flush() -> None:
    if sys.stdout is not None:  # as it is where a program has closed it
        with read_by_somebody():
            sys.stdout.flush()


@contextmanager
def read_by_somebody() -> Iterator[None]:
    """End the command where nobody reads its output any more, as after `mslite ... | head`."""
    try:
        yield
    except BrokenPipeError:
        # the interpreter writes out the rest at its end, and would complain
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
        raise SystemExit(_NOBODY_READS) from None


def run_script(run: Callable[[Sequence[str]], int]) -> NoReturn:
    """A console script with the original's flags: the low byte of the status is the exit code."""
    warnings.showwarning = _show_warning
    try:
        with tidy_end(), all_written():
            status = run(sys.argv[1:])
    except KeyboardInterrupt:
        complain("interrupted")
        raise SystemExit(130) from None
    except Exception as exc:  # noqa: BLE001 - unforeseen, or nobody reads what is printed
        complain(str(resource_error(exc) or f"{type(exc).__name__}: {exc}"))
        status = -1
    raise SystemExit(status & 0xFF)


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    complain(f"WARNING: {message}")


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
    """A bar on standard error, which shows what is being done; nothing at all in a pipe."""
    if not sys.stderr.isatty():
        yield lambda what: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(text, total=None)  # nobody knows how long a stage will take
        yield lambda what: progress.update(task, description=f"{text}: {what}")


@contextmanager
def counted(text: str, total: int) -> Iterator[Callable[[], None]]:
    """A bar on standard error, moved on after each piece of work; nothing at all in a pipe.

    No thread draws it, which would take time from work that is being measured.
    """
    if not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True, auto_refresh=False) as progress:
        task = progress.add_task(text, total=total)
        progress.refresh()
        drawn_s = time.monotonic()

        def done() -> None:
            nonlocal drawn_s
            progress.advance(task)
            if time.monotonic() - drawn_s > _REDRAWN_S:
                progress.refresh()
                drawn_s = time.monotonic()

        yield done


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
