"""Draws throughput and p99 latency against the number of clients or the rate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from mindspore_lite.bench.axes import (
    LEFT,
    RIGHT,
    along_x,
    along_y,
    either,
    from_zero,
    label,
    plot,
    spaced,
    tips,
)
from mindspore_lite.bench.looks import line, look, marker, path
from mindspore_lite.bench.markup import node
from mindspore_lite.bench.number_text import digits, span, span_tick, tick
from mindspore_lite.bench.view import Entry, Load, View, latency, load_of

Lines = dict[str, list[tuple[Load, float]]]  # of a side, what it reached under which load
_TOP, _BOTTOM = 12.0, 196.0
_BAR_ROW = 44.0


@dataclass(frozen=True)
class _Measure:
    """What is plotted, and how its numbers are written."""

    title: str
    value: Callable[[Entry], float | None]
    text: Callable[[float | None], str]
    tick: Callable[[float], str]


_THROUGHPUT = _Measure("Throughput", lambda run: run.get("throughput"), digits, tick)
_P99 = _Measure("p99 latency", lambda run: latency(run, "p99"), span, span_tick)


def throughput_plot(view: View, kind: str) -> Element | None:
    """Answers per second against the loads of a kind, clients or rate."""
    return _against(view, kind, _THROUGHPUT)


def p99_plot(view: View, kind: str) -> Element | None:
    """The p99 latency against the loads of a kind."""
    return _against(view, kind, _P99)


def _against(view: View, kind: str, measure: _Measure) -> Element | None:
    """Lines over several loads, bars under a single one."""
    loads = [load for load in view.loads if load.kind == kind]
    lines: Lines = {}
    for run in sorted(view.runs, key=lambda run: (view.sides.index(run["side"]), load_of(run))):
        value = measure.value(run)
        if load_of(run).kind == kind and value:
            lines.setdefault(run["side"], []).append((load_of(run), value))
    if not lines:
        return None
    words = "; ".join(
        f"{side}: " + ", ".join(f"{measure.text(value)} at {load.text}" for load, value in points)
        for side, points in lines.items()
    )
    if len(loads) == 1:
        values = {side: points[0][1] for side, points in lines.items()}
        height = _BAR_ROW * len(values) + 4
        return plot(f"{measure.title} at {loads[0].text}", words, height, _bars(values, measure))
    return plot(
        f"{measure.title} against {kind}", words, _BOTTOM + 24, _lines(lines, loads, measure)
    )


def _bars(values: dict[str, float], measure: _Measure) -> list[Element]:
    """One bar per side, from zero, its value at its end."""
    most, longest = max(values.values()), RIGHT - 90
    parts = []
    for row, (side, value) in enumerate(values.items()):
        y, width = 16 + row * _BAR_ROW, max(value / most * longest, 0.5)
        box = {"x": 4.0, "y": y + 7, "width": width, "height": 13.0}
        parts += [marker(side, 9, y - 4), label(side, 20, y)]
        parts.append(node("rect", class_=f"{look(side).name} bar", **box))
        parts.append(label(measure.text(value), width + 12, y + 18, kind="strong"))
    return parts


def _lines(lines: Lines, loads: Sequence[Load], measure: _Measure) -> list[Element]:
    numbers = [load.value for load in loads]
    values = [value for points in lines.values() for _, value in points]
    x = either(numbers, LEFT + 8, RIGHT - 8)
    if measure is _P99:
        y, asked = either(values, _BOTTOM, _TOP), False
    else:
        asked = loads[0].kind == "rate"  # in which case that is drawn as well
        y = from_zero(values + numbers * asked, _BOTTOM, _TOP)
    texts = {load.value: load.short.split(" ")[0] for load in loads}
    parts = along_y(y, LEFT, RIGHT, measure.tick)
    parts += along_x(x, _BOTTOM, _BOTTOM + 4, spaced(numbers, x, 44), texts.__getitem__)
    if asked:
        parts.append(node("path", class_="ideal", d=path([(x(v), y(v)) for v in numbers])))
    for side, points in reversed(lines.items()):  # the first side is drawn last, over the others
        places = [(x(load.value), y(value)) for load, value in points]
        if len(places) > 1:
            parts.append(line(side, places))
        parts += [marker(side, *place) for place in places]
    shown = [[load.text, *_reached(lines, load, measure)] for load in loads]
    return parts + tips([x(number) for number in numbers], shown, _TOP, _BOTTOM)


def _reached(lines: Lines, load: Load, measure: _Measure) -> list[str]:
    """What each side reached under a load, in words."""
    return [
        f"{side}: {measure.text(value)}"
        for side, points in lines.items()
        for at, value in points
        if at == load
    ]
