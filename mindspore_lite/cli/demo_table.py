"""Shows the demo's answers: a live table, plain lines, a comparison, a histogram."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mindspore_lite.serving.layout import Layout

if TYPE_CHECKING:
    from rich.table import Table

_SHOWN_DIGITS = 10
_BINS = 8


@dataclass(frozen=True)
class Answer:
    """What a client got for one request."""

    ms: float
    digits: tuple[int, ...]  # as predicted
    right: int  # how many of them


class Round:
    """All answers of one way to send the requests, by client; each client adds to its own list."""

    def __init__(self, name: str, clients: int, layout: Layout) -> None:
        self.name = name
        self.layout = layout
        self.answers: list[list[Answer]] = [[] for _ in range(clients)]
        self.took_s = 0.0

    def latencies_ms(self) -> np.ndarray:
        """Of all requests."""
        return np.array([answer.ms for one in self.answers for answer in one])


@contextmanager
def shown(results: Round, tasks: int, *, stays: bool = True) -> Iterator[bool]:
    """A table on the terminal that follows the answers; False, and nothing, in a pipe."""
    if not sys.stdout.isatty():
        yield False
        return
    from rich.live import Live

    with Live(
        get_renderable=lambda: table(results, tasks), refresh_per_second=10, transient=not stays
    ):
        yield True


def table(results: Round, tasks: int) -> Table:
    """One row per client: its latest answer, and how many digits were right so far."""
    from rich.table import Table

    found = Table(title=results.name, title_justify="left")
    for column, width in {"client": 6, "task": 8, "ms": 6}.items():
        found.add_column(column, justify="right", min_width=width)  # or the table would jump
    found.add_column("prediction", min_width=2 * _SHOWN_DIGITS + 3)
    found.add_column("right", justify="right", min_width=12)
    for client, answers in enumerate(results.answers):
        row = [str(client), f"{len(answers)} of {tasks}"]
        if not answers:
            found.add_row(*row)
            continue
        last = answers[-1]
        shown_digits = " ".join(map(str, last.digits[:_SHOWN_DIGITS]))
        more = " ..." if len(last.digits) > _SHOWN_DIGITS else ""
        right, all_digits = _right(answers)
        style = "green" if right == all_digits else "red"
        score = f"[{style}]{right} of {all_digits}[/]"
        found.add_row(*row, f"{last.ms:.1f}", f"{shown_digits}{more}", score)
    return found


def client_lines(results: Round) -> list[str]:
    """The same for a pipe: a line per client when all is done."""
    lines = []
    for client, answers in enumerate(results.answers):
        times = [answer.ms for answer in answers]
        right, all_digits = _right(answers)
        lines.append(
            f"client {client}: {len(answers)} requests, {min(times):.1f} to {max(times):.1f} ms, "
            f"mean {np.mean(times):.1f} ms, {right} of {all_digits} digits right"
        )
    return lines


def comparison(at_once: Round, in_turn: Round) -> str:
    """Time, throughput and latency of both, and what is gained by that, whatever it is."""
    lines = [f"{'':7}  {'time':>8}  {'requests/s':>10}  {'digits/s':>8}  {'median':>9}  {'p99':>9}"]
    rates, slowest = [], []
    for one in (at_once, in_turn):
        digits = sum(_right(answers)[1] for answers in one.answers)
        times = one.latencies_ms()
        median, p99 = np.percentile(times, [50, 99])
        rates.append(times.size / one.took_s)
        slowest.append(p99)
        lines.append(
            f"{one.name:7}  {one.took_s:6.2f} s  {rates[-1]:10.1f}  {digits / one.took_s:8.0f}  "
            f"{median:6.1f} ms  {p99:6.1f} ms"
        )
    lines += [f"{one.name}: {_layout_text(one.layout)}" for one in (at_once, in_turn)]
    lines.append(f"gain: {rates[0] / rates[1]:.2f} times the throughput;")
    before = f"within {slowest[0]:.1f} ms instead of {slowest[1]:.1f} ms"
    lines.append(f"      99 of 100 requests are answered {before}")
    return "\n".join(lines)


def histogram(times_ms: np.ndarray, width: int) -> str:
    """How many took how long, as bars; each class is as much wider as the times are longer."""
    edges = np.geomspace(times_ms.min(), times_ms.max(), _BINS + 1)
    inner = np.searchsorted(edges[1:-1], times_ms, side="right")  # no time falls outside
    counts = np.bincount(inner, minlength=_BINS)
    block = "█" if "utf" in (sys.stdout.encoding or "").lower() else "#"
    room = min(50, width - 26)
    lines = []
    for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True):
        bar = block * -(-int(count) * room // int(counts.max()))  # rounded up: one is seen
        lines.append(f"{low:6.1f} to {high:6.1f} ms {count:4} {bar}".rstrip())
    return "\n".join(lines)


def _right(answers: Sequence[Answer]) -> tuple[int, int]:
    """How many digits were right, and how many there were."""
    return sum(a.right for a in answers), sum(len(a.digits) for a in answers)


def _layout_text(layout: Layout) -> str:
    workers = f"{layout.workers} worker{'s' * (layout.workers > 1)}"
    threads = " or ".join(map(str, layout.widths))
    return f"{workers}, {threads} thread{'s' * (layout.widths[0] > 1)} for a request"
