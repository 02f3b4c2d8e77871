"""Scales and axes of plots.

A plot is WIDTH units wide and is scaled as a whole; page.css makes its letters larger where it is
shown small, so margins leave room for that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from xml.etree.ElementTree import Element

from mindspore_lite.bench.markup import node

WIDTH = 440.0
LEFT, RIGHT = 62.0, 430.0  # of what is drawn between the axes
_TEXT_LINE = 16.0
_LETTER = 9.0  # width of a letter where letters are largest, generously
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True)
class Scale:
    """From a value between `low` and `high` to a place between `start` and `end`."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False  # low and high then are positive

    def __call__(self, value: float) -> float:
        """The place of a value; one outside lies on the border."""
        value = min(max(value, self.low), self.high)
        if self.log:
            part = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            part = (value - self.low) / (self.high - self.low)
        return self.start + part * (self.end - self.start)

    def ticks(self, most: int = 6) -> list[float]:
        """A few round values, from low to high; by factors no more than `most`."""
        if self.log and self.high / self.low > 4:
            return _decades(self.low, self.high, most)
        return _round_values(self.low, self.high)


def from_zero(values: Sequence[float], start: float, end: float) -> Scale:
    """A linear scale from 0 to a round value that none exceeds."""
    most = max([value for value in values if value > 0], default=1.0)
    step = _step(most)
    return Scale(0.0, step * math.ceil(most / step - 1e-9), start, end)


def logarithmic(values: Sequence[float], start: float, end: float, room: float = 1.0) -> Scale:
    """A scale by factors around all positive values; `room` is a factor left free on both sides."""
    found = [value for value in values if value > 0] or [1.0]
    low, high = min(found) / room, max(found) * room
    if high / low < 1.02:  # one value, or as good as one
        low, high = low / 1.5, high * 1.5
    return Scale(low, high, start, end, log=True)


def either(values: Sequence[float], start: float, end: float) -> Scale:
    """From zero where that shows all values, by factors where it would press some together."""
    found = [value for value in values if value > 0]
    if found and max(found) / min(found) > 12:  # guess: the least is a small step above 0 then
        return logarithmic(found, start, end, room=1.15)
    return from_zero(values, start, end)


def along_x(
    scale: Scale, top: float, bottom: float, values: Sequence[float], text: Callable[[float], str]
) -> list[Element]:
    """Upright lines with their values below."""
    made = []
    for value in values:
        x = scale(value)
        made.append(node("line", class_="grid", x1=x, x2=x, y1=top, y2=bottom))
        words = text(value)
        fits = x + len(words) * _LETTER / 2 < WIDTH
        place, anchor = (x, "middle") if fits else (WIDTH, "end")
        made.append(label(words, place, bottom + 15, anchor))
    return made


def along_y(scale: Scale, left: float, right: float, text: Callable[[float], str]) -> list[Element]:
    """Level lines with their values on the left."""
    made = []
    for value in scale.ticks():
        y = scale(value)
        made.append(node("line", class_="grid", x1=left, x2=right, y1=y, y2=y))
        made.append(label(text(value), left - 6, y + 4, "end"))
    return made


def label(text: str, x: float, y: float, anchor: str = "start", kind: str = "soft") -> Element:
    """A text in a plot."""
    return node("text", text, class_=kind, x=x, y=y, text_anchor=anchor)


def spaced(values: Sequence[float], scale: Scale, least: float) -> list[float]:
    """Those values that are shown without touching each other, the last one for certain."""
    kept: list[float] = []
    for value in sorted(set(values), reverse=True):
        if not kept or abs(scale(value) - scale(kept[-1])) >= least:
            kept.append(value)
    return kept[::-1]


def plot(title: str, description: str, height: float, parts: Sequence[Element]) -> Element:
    """A whole drawing, with a description for screen readers."""
    words = node("title", title), node("desc", description)
    box = f"0 0 {WIDTH:.0f} {height:.0f}"
    return node("svg", *words, *parts, class_="plot", role="img", viewBox=box)


def tips(
    places: Sequence[float], texts: Sequence[Sequence[str]], top: float, bottom: float
) -> list[Element]:
    """One stripe per place, from left to right, which shows its texts under the pointer."""
    borders = [LEFT, *[(one + next_) / 2 for one, next_ in pairwise(places)], RIGHT]
    made = []
    for x, rows, (start, end) in zip(places, texts, pairwise(borders), strict=True):
        aside, anchor = (7, "start") if x < (LEFT + RIGHT) / 2 else (-7, "end")
        levels = [top + 12 + row * _TEXT_LINE for row in range(len(rows))]
        shown = [node("line", x1=x, x2=x, y1=top, y2=bottom)]
        shown += [label(row, x + aside, y, anchor) for row, y in zip(rows, levels, strict=True)]
        box = {"x": start, "y": top, "width": max(end - start, 0.1), "height": bottom - top}
        zone = node("rect", class_="zone", **box)
        made.append(node("g", zone, node("g", *shown, class_="shown"), class_="tip"))
    return made


def _step(most: float) -> float:
    """A round step that goes into `most` no more than five times."""
    power = 10.0 ** math.floor(math.log10(most / 5))
    return next((power * step for step in _STEPS if most / (power * step) <= 5), power * 10)


def _round_values(low: float, high: float) -> list[float]:
    step = _step(high - low)
    first = math.ceil(low / step - 1e-9)
    found = [step * (first + i) for i in range(7)]
    return [value for value in found if value <= high * (1 + 1e-9)]


def _decades(low: float, high: float, most: int) -> list[float]:
    """1, 2, 5, 10 ... or 1, 3, 10 ... or powers of ten, whichever are few enough."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for leads, stride in [((1, 2, 5), 1), ((1, 3), 1), *[((1,), n) for n in range(1, 40)]]:
        found = [lead * 10.0**power for power in range(first, last + 1, stride) for lead in leads]
        inside = [value for value in found if low <= value <= high]
        if len(inside) <= most:
            return inside
    return []
