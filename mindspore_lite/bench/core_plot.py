"""Draws which workers run on which cores."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from xml.etree.ElementTree import Element

from mindspore_lite.bench.axes import RIGHT, Scale, label, plot
from mindspore_lite.bench.markup import node
from mindspore_lite.bench.number_text import many
from mindspore_lite.bench.view import Entry, View

_LEFT = 116.0  # of the cells
_ROW = 22.0  # height
_MOST_ROWS, _MOST_CELLS, _MOST_NAMED = 24, 64, 8  # more say nothing new


def core_plot(view: View) -> Element | None:
    """Workers as rows, cores as cells; workers that are bound to none share a row."""
    if not view.layout:
        return None
    rows = [list(group) for _, group in groupby(view.layout, _alike)]
    named = [int(core) for place in view.layout for core in place.get("cores") or []]
    cores = max([int(view.machine.get("cores") or 1), *[core + 1 for core in named]])
    x = Scale(0, cores, _LEFT, RIGHT)
    parts = [label("core", 0, 14)]
    whole = [value for value in x.ticks() if value < cores and value == int(value)]
    for core in range(cores) if cores <= _MOST_NAMED else whole:
        parts.append(label(f"{core:.0f}", (x(core) + x(core + 1)) / 2, 14, "middle"))
    for row, places in enumerate(rows[:_MOST_ROWS]):
        parts += _core_row(places, x, 24.0 + row * _ROW)
    end = 24 + min(len(rows), _MOST_ROWS) * _ROW
    if len(rows) > _MOST_ROWS:
        parts.append(label(f"and {len(rows) - _MOST_ROWS} more workers", 0, end + 14))
        end += _ROW
    words = f"{many(len(view.layout), 'worker')} on {many(cores, 'core')}"
    return plot("Workers and cores", words, end + 2, parts)


def _alike(place: Entry) -> tuple[object, object]:
    """The same for neighbours that share a row, which those with cores of their own do not."""
    return place.get("threads"), place.get("worker") if place.get("cores") else None


def _core_row(places: Sequence[Entry], x: Scale, y: float) -> list[Element]:
    first, last, height = places[0], places[-1], _ROW - 5
    one = len(places) == 1
    name = f"worker {first.get('worker')}"
    if not one:
        name = f"workers {first.get('worker')}\N{EN DASH}{last.get('worker')}"
    own = [int(core) for core in first.get("cores") or []]
    kind = "cell" if own else "cell any"
    parts = [node("rect", class_=kind, x=x(0), y=y, width=RIGHT - x(0), height=height)]
    gap = min(2.0, (x(1) - x(0)) / 4)
    for core in range(1, int(x.high) if own and x.high <= _MOST_CELLS else 0):
        parts.append(node("line", class_="gap", x1=x(core), x2=x(core), y1=y, y2=y + height))
    for core in own:
        box = {"x": x(core) + gap / 2, "y": y, "width": x(1) - x(0) - gap, "height": height}
        parts.append(node("rect", class_="taken", **box))
    threads = many(first.get("threads"), "thread")
    if not own:
        words = f"{threads}{'' if one else ' each'}, on any core"
        parts.append(label(words, (x(0) + RIGHT) / 2, y + 13, "middle"))
    parts.append(node("title", f"{name}: {threads}"))
    return [label(name, 0, y + 13), node("g", *parts)]
