"""The numbers of a server as people read them: aligned lines, or a table on a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mindspore_lite.cli.inspect import size_text
from mindspore_lite.core.text import harmless

if TYPE_CHECKING:
    from rich.console import Group

_SLOWEST = 5
_FULL = 0.8  # of a queue that is worth a word
_REASONS = {
    "deadline": "deadline passed",
    "error": "run failed",
    "crash": "process died",
    "queue_full": "queue full",
    "timeout": "waited too long",
    "memory": "out of memory",
    "not_ready": "not ready",
}
_COLUMNS = (
    "MODEL", "VERSION", "STATE", "REQ/S", "ERRORS/MIN", "P50", "P99", "QUEUE", "BUSY", "BATCH",
    "WEIGHTS",
)  # fmt: skip
_RIGHT = frozenset(("REQ/S", "ERRORS/MIN", "P50", "P99", "QUEUE", "BUSY", "BATCH"))

Numbers = Mapping[str, Any]


def lines(url: str, found: Numbers) -> list[str]:
    """Everything, for a pipe."""
    rows = [list(_COLUMNS), *(_row(model, found) for model in found["models"])]
    widths = [max(len(row[at]) for row in rows) for at in range(len(_COLUMNS))]
    table = ["  ".join(_aligned(row, widths)).rstrip() for row in rows]
    return [*_head(url, found), "", *table, "", *problems(found), *_slowest(found)]


def screen(url: str, found: Numbers, lost: str = "") -> Group:
    """Everything, for a terminal; `lost` says why these numbers are old."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(expand=False, header_style="dim")
    for name in _COLUMNS:
        table.add_column(name, justify="right" if name in _RIGHT else "left")
    for model in found["models"]:
        style = "" if model["state"] == "READY" else "red"
        table.add_row(*(Text(harmless(cell)) for cell in _row(model, found)), style=style)
    first, *head = _head(url, found)
    parts: list[Any] = [Text(first, style="bold" if found["ready"] else "bold red")]
    if lost:
        parts = [Text(harmless(f"NO CONTACT, these numbers are old: {lost}"), style="bold red")]
    parts += [Text(line, style="dim") for line in head]
    parts.append(table)
    wrong = problems(found)
    parts += [Text(line, style="yellow") for line in wrong]
    if not wrong and not lost:
        parts.append(Text("no failed request in the last minute", style="green"))
    parts += [Text(line) for line in _slowest(found)]
    return Group(*parts)


def problems(found: Numbers) -> list[str]:
    """What is wrong, a sentence each."""
    wrong = []
    if not found["ready"]:
        why = str(found.get("reason") or "a model is not ready").removeprefix("not ready: ")
        wrong.append(f"! not ready: {why}")
    for model in found["models"]:
        name = f"{model['name']} version {model['version']}"
        if model["state"] != "READY":
            why = f": {model['reason']}" if model["reason"] else ""
            wrong.append(f"! {name} is {model['state'].lower()}{why}")
        if stuck := model["slots"].count("stuck"):
            wrong.append(f"! {name} has {stuck} stuck of {len(model['slots'])} slots")
        if model["queue_size"] and model["queued"] >= _FULL * model["queue_size"]:
            full = f"{model['queued']} of {model['queue_size']}"
            wrong.append(f"! the queue of {name} is nearly full: {full}")
        errors = sorted(model["recent"]["errors"].items(), key=lambda one: -int(one[1]))
        if errors:
            kinds = ", ".join(f"{number:,} {_REASONS.get(kind, kind)}" for kind, number in errors)
            total = sum(number for _, number in errors)
            wrong.append(f"! {name}: {total:,} failed in the last minute ({kinds})")
    return [harmless(line) for line in wrong]


def _head(url: str, found: Numbers) -> list[str]:
    memory, connections = found["memory"], found.get("connections", {})
    weights = min(memory["weights_bytes"], memory["shared_bytes"])
    is_ready = "ready" if found["ready"] else "NOT READY"
    counted = ", ".join(f"{number} {kind}" for kind, number in connections.items())
    quota = f", quota {size_text(memory['quota_bytes'])}" if memory["quota_bytes"] else ""
    shared = f"{size_text(weights)} shared weights{quota}"
    return [
        harmless(line)
        for line in (
            f"{url}  {is_ready}  up {_span(found['uptime_s'])}  mslite {found['version']}",
            f"memory {size_text(memory['rss_bytes'])} ({shared})  connections {counted}  "
            f"in flight {size_text(found.get('flight_bytes', 0))}",
        )
    ]


def _row(model: Mapping[str, Any], found: Numbers) -> list[str]:
    recent, slots = model["recent"], model["slots"]
    runs = sum(model["batches"].values())
    rows = sum(int(size) * number for size, number in model["batches"].items())
    errors = sum(recent["errors"].values())
    weights = "as loaded"
    if model["weights_version"]:
        ago = _span(found["time"] - model["weights_updated"])
        weights = f"update {model['weights_version']}, {ago} ago"
    return [
        model["name"],
        model["version"],
        model["state"].lower(),
        f"{recent['rate']:,.1f}",
        f"{errors:,}" if errors else "none",
        _ms(recent["p50_ms"]),
        _ms(recent["p99_ms"]),
        f"{model['queued']}/{model['queue_size']}",
        f"{len(slots) - slots.count('idle')}/{len(slots)}",
        f"{rows / runs:.1f}" if runs else "-",
        weights,
    ]


def _slowest(found: Numbers) -> list[str]:
    slow = sorted(found["slowest"], key=lambda one: -float(one["ms"]))[:_SLOWEST]
    if not slow:
        return []
    texts = ["", "slowest requests:"]
    for one in slow:
        total = sum(one["phases_ms"].values()) or 1.0
        parts = sorted(one["phases_ms"].items(), key=lambda part: -part[1])[:3]
        split = ", ".join(f"{name} {value / total:.0%}" for name, value in parts if value)
        name = f"{one['model']} version {one['version']}"
        texts.append(
            f"  {_ms(one['ms']):>9}  {one['status']}  {name}  {split}  {one['id']}".rstrip()
        )
    return [harmless(line) for line in texts]


def _aligned(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    return [
        cell.rjust(width) if name in _RIGHT else cell.ljust(width)
        for name, cell, width in zip(_COLUMNS, row, widths, strict=True)
    ]


def _ms(value: float | None) -> str:
    if value is None:
        return "-"
    if value >= 1000:
        return f"{value / 1000:.2f} s"
    return (
        f"{value:.0f} ms"
        if value >= 100
        else f"{value:.1f} ms"
        if value >= 10
        else f"{value:.2f} ms"
    )


def _span(seconds: float) -> str:
    whole = max(0, int(seconds))
    days, hours, minutes = whole // 86_400, whole // 3600 % 24, whole // 60 % 60
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {whole % 60} s" if minutes else f"{whole} s"
