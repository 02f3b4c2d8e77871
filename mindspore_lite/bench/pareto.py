"""Draws the points of a search: throughput against p99 latency, with the chosen one."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree.ElementTree import Element

from mindspore_lite.bench.axes import (
    LEFT,
    RIGHT,
    Scale,
    along_x,
    along_y,
    from_zero,
    label,
    logarithmic,
    plot,
    spaced,
)
from mindspore_lite.bench.finding import setting
from mindspore_lite.bench.looks import marker, path
from mindspore_lite.bench.markup import node
from mindspore_lite.bench.number_text import digits, many, span, span_tick, tick
from mindspore_lite.bench.view import Entry

_TOP, _BOTTOM = 26.0, 236.0


def pareto_plot(tune: Entry) -> Element | None:
    """Each point with the sign of its engine: full on the front, in a ring when chosen."""
    points = [p for p in tune.get("points") or [] if p.get("p99_ms") and p.get("throughput")]
    if not points:
        return None
    limit = tune.get("p99_limit_ms")
    around = [limit] if limit else []
    x = logarithmic([*[p["p99_ms"] for p in points], *around], LEFT + 8, RIGHT, room=1.12)
    y = from_zero([p["throughput"] for p in points], _BOTTOM, _TOP)
    parts = along_y(y, LEFT, RIGHT, tick) + along_x(
        x, _TOP, _BOTTOM, spaced(x.ticks(6), x, 50), span_tick
    )
    if limit:
        parts += _limit(limit, x)
    front = sorted((x(p["p99_ms"]), y(p["throughput"])) for p in points if p.get("on_front"))
    if len(front) > 1:
        parts.append(node("path", class_="front", d=path(front)))
    for point in sorted(points, key=_weight):
        parts.append(_mark(point, x, y))
    chosen = [point for point in points if point.get("chosen")]
    words = f"{len(points)} settings were tried; " + "; ".join(_in_words(p) for p in chosen)
    return plot("Throughput against p99 latency", words, _BOTTOM + 24, parts)


def engines_of(tune: Entry) -> list[str]:
    """The engines of the points, each once."""
    return list(dict.fromkeys(str(p.get("engine")) for p in tune.get("points") or []))


def by_throughput(points: Sequence[Entry]) -> list[Entry]:
    """The points, best first."""
    return sorted(points, key=lambda point: -(point.get("throughput") or 0.0))


def _limit(limit: float, x: Scale) -> list[Element]:
    place = x(limit)
    beyond = node(
        "rect", class_="beyond", x=place, y=_TOP, width=max(RIGHT - place, 0), height=_BOTTOM - _TOP
    )
    edge = node("line", class_="limit", x1=place, x2=place, y1=_TOP - 6, y2=_BOTTOM)
    anchor = "start" if place < (LEFT + RIGHT) / 2 else "end"
    return [
        beyond,
        edge,
        label(f"limit {span_tick(limit)}", place, _TOP - 12, anchor, "limit-text"),
    ]


def _mark(point: Entry, x: Scale, y: Scale) -> Element:
    across, up = x(point["p99_ms"]), y(point["throughput"])
    kind = "mark" if point.get("on_front") else "hollow"
    parts = [
        marker(str(point.get("engine")), across, up, 4.0, kind),
        node("title", _in_words(point)),
    ]
    if point.get("chosen"):
        parts.insert(0, node("circle", class_="ring", cx=across, cy=up, r=9.5))
        on_left = across < (LEFT + RIGHT) / 2
        sideways = (across + 14, "start") if on_left else (across - 14, "end")
        parts.append(label("chosen", sideways[0], up + 4, sideways[1], "strong halo"))
    return node("g", *parts)


def _weight(point: Entry) -> int:
    """Later is drawn over earlier."""
    return 2 * bool(point.get("chosen")) + bool(point.get("on_front"))


def _in_words(point: Entry) -> str:
    clients, p99 = many(point.get("clients"), "client"), span(point["p99_ms"])
    return f"{setting(point)}: {digits(point['throughput'])} requests/s of {clients}, p99 {p99}"
