"""Draws ratios with their spread; right of 1 mslite is ahead."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree.ElementTree import Element

from mindspore_lite.bench.axes import WIDTH, Scale, along_x, label, logarithmic, plot, spaced
from mindspore_lite.bench.looks import OURS, marker
from mindspore_lite.bench.markup import node
from mindspore_lite.bench.number_text import TIMES, factor, tick
from mindspore_lite.bench.view import Entry, load_of

_ROW = 26.0  # height
_LEFT, _RIGHT = 92.0, WIDTH - 150  # between the loads and the numbers
_NAMES = ("low", "middle", "high")


def ratio_plots(ratios: Sequence[Entry]) -> list[tuple[str, Element]]:
    """One plot per other side, named: dots on bars of their spread, all over the same scale."""
    whole = [r for r in ratios if all((r.get(name) or 0) > 0 for name in _NAMES)]
    values = [ratio[name] for ratio in whole for name in ("low", "high")]
    x = logarithmic([*values, 1.0], _LEFT, _RIGHT, room=1.06)
    peers = dict.fromkeys(str(ratio["peer"]) for ratio in whole)
    return [(peer, _ratio_plot([r for r in whole if r["peer"] == peer], x)) for peer in peers]


def _ratio_plot(ratios: Sequence[Entry], x: Scale) -> Element:
    bottom = _ROW * len(ratios) + 4
    ticks = [value for value in spaced([*x.ticks(), 1.0], x, 34) if value != 1]
    parts = along_x(x, 4, bottom, ticks, tick)
    parts.append(node("line", class_="one", x1=x(1), x2=x(1), y1=4, y2=bottom))
    parts.append(label(f"1 {TIMES}", x(1), bottom + 15, "middle", "strong"))
    for row, ratio in enumerate(ratios):
        parts += _ratio_row(ratio, x, _ROW * (row + 0.5) + 6)
    title = f"{ratios[0].get('of')} of {OURS} and {ratios[0]['peer']}"
    words = "; ".join(f"{load_of(ratio).text}: {_spread(ratio)}" for ratio in ratios)
    return plot(title, words, bottom + 22, parts)


def _ratio_row(ratio: Entry, x: Scale, y: float) -> list[Element]:
    peer, level = str(ratio["peer"]), y - 4
    low, middle, high = (x(ratio[name]) for name in _NAMES)
    bar = node("line", class_="spread", x1=low, x2=max(high, low + 0.1), y1=level, y2=level)
    dot = marker(OURS, middle, level, 4.6)
    words = node("title", f"{load_of(ratio).text} against {peer}: {_spread(ratio)}")
    number = label(factor(ratio["middle"]), WIDTH - 96, y, "end", "strong")
    spread = label(f"{factor(ratio['low'])}\N{EN DASH}{factor(ratio['high'])}", WIDTH, y, "end")
    return [label(load_of(ratio).short, 0, y), node("g", bar, dot, words), number, spread]


def _spread(ratio: Entry) -> str:
    low, middle, high = (factor(ratio[name]) for name in _NAMES)
    return f"{middle} {TIMES} ({low} to {high})"
