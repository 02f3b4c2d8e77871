"""The tables that `mslite bench` prints."""

from __future__ import annotations

from collections.abc import Sequence

from mindspore_lite.bench.burst import Load
from mindspore_lite.bench.result import Apart, Point, Ratio, Run, Tune
from mindspore_lite.cli.console import say
from mindspore_lite.cli.inspect import printable

_SHOWN = 12  # points of a search


def show_runs(runs: Sequence[Run]) -> None:
    """One row for each side and load; latencies are in milliseconds."""
    head = ["side", "load", "per s", "mean ms", "p50", "p90", "p99", "p99.9"]
    rows = [[*head, "CPU ms", "own MiB", "errors"]]
    for run in runs:
        latency = run.latency_ms
        times = [latency.mean, latency.p50, latency.p90, latency.p99, latency.p99_9]
        rows.append(
            [
                run.side,
                str(Load(run.clients, run.rate)),
                f"{run.throughput:.1f}",
                *(f"{ms:.2f}" for ms in times),
                f"{run.cpu_ms_per_request:.2f}",
                f"{run.memory_mib:.1f}",
                str(run.errors),
            ]
        )
    _show(rows, texts=2)
    for run in runs:
        if run.errors:
            say(
                f"{run.side}, {Load(run.clients, run.rate)}: {run.errors} errors{_refused(run)}, "
                f"the first: {printable(run.first_error)}"
            )


def _refused(run: Run) -> str:
    return f" ({run.refused} of them refused for lack of room)" if run.refused else ""


def show_ratios(ratios: Sequence[Ratio]) -> None:
    """How much better we are than each peer: more than 1 is better."""
    for ratio in ratios:
        what = "throughput, ours / theirs" if ratio.of == "throughput" else "p99, theirs / ours"
        say(
            f"mslite and {ratio.peer}, {Load(ratio.clients, ratio.rate)}: {ratio.middle:.2f} "
            f"({ratio.low:.2f} to {ratio.high:.2f}) {what}"
        )


def show_apart(found: Sequence[Apart], given: bool) -> None:
    """How far the answers of other files lie from the model's."""
    for one in found:
        say(
            f"{printable(one.peer)}, output {printable(one.output)}: largest difference "
            f"{one.largest:.2g} of the largest value, cosine {one.cosine:.6f}{_top(one)}"
        )
    if found and not given:
        say("these are of one random request; --input NAME=FILE gives one that means something")


def _top(one: Apart) -> str:
    if not one.rows:
        return ""
    return f", the same top class in {one.agreed} of {one.rows} row{'s'[: one.rows > 1]}"


def show_tune(tune: Tune) -> None:
    """The points, best first, and the settings of the chosen one."""
    points = sorted(tune.points, key=lambda p: (not p.chosen, -p.throughput))
    rows = [["", "engine", "workers", "threads", "batch", "clients", "per s", "p99 ms", "front"]]
    for point in points[:_SHOWN]:
        rows.append(
            [
                "best" if point.chosen else _missed(point, tune.p99_limit_ms),
                point.engine,
                str(point.workers or "auto"),
                str(point.threads or "auto"),
                str(point.batch or "-"),
                str(point.clients),
                f"{point.throughput:.1f}",
                f"{point.p99_ms:.2f}",
                "yes" if point.on_front else "",
            ]
        )
    _show(rows, texts=2)
    if len(points) > _SHOWN:
        say(f"  and {len(points) - _SHOWN} more; --json and --html have all")
    if tune.python:
        say(f"\nin Python:\n\n{_indented(tune.python)}")
        say(f"as a file for context.parallel.config_path:\n\n{_indented(tune.ini)}")


def _missed(point: Point, limit_ms: float | None) -> str:
    return "too slow" if limit_ms is not None and point.p99_ms > limit_ms else ""


def _indented(text: str) -> str:
    return "".join(f"  {line}".rstrip() + "\n" for line in text.splitlines())


def _show(rows: Sequence[Sequence[str]], texts: int) -> None:
    """Columns as wide as they need; the first few are texts, the others stand to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            cell.ljust(width) if at < texts else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        say(f"  {'  '.join(cells)}".rstrip())
