"""Draws how latencies are distributed, and how they developed over time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from xml.etree.ElementTree import Element

from mindspore_lite.bench.axes import (
    LEFT,
    RIGHT,
    WIDTH,
    Scale,
    along_x,
    along_y,
    either,
    label,
    logarithmic,
    plot,
    spaced,
    tips,
)
from mindspore_lite.bench.looks import OURS, line, look, marker, path
from mindspore_lite.bench.markup import node
from mindspore_lite.bench.number_text import span, span_tick, tick
from mindspore_lite.bench.view import Entry, latency

_ASIDE = 74.0  # free next to the values, for the texts of p50 and p99
_STRIP = 21.0  # height of a side's row of percentiles
_HILL = (10.0, 150.0)  # top and bottom of the histograms
_PERCENTILES = ("p50", "p90", "p99", "p99_9")


def distribution(runs: Sequence[Entry], load: str) -> Element | None:
    """Histograms over each other, and below them the percentiles of each side."""
    hills = [(run, list(_bins(run))) for run in runs]
    shown = [(run, bins) for run, bins in hills if bins and latency(run, "p50")]
    if not shown:
        return None
    values = [edge for _, bins in shown for low, high, _ in bins for edge in (low, high)]
    values += [
        value for run, _ in shown for name in ("p50", "p99") if (value := latency(run, name))
    ]
    x = logarithmic(values, _ASIDE, WIDTH - _ASIDE)
    top, bottom = _HILL
    highest = max(height for _, bins in shown for *_, height in bins)
    y = Scale(0.0, highest, bottom, top)
    foot = bottom + _STRIP * len(shown) + 6
    parts = along_x(x, top, foot, spaced(x.ticks(5), x, 57), span_tick)
    parts.append(node("line", class_="axis", x1=4, x2=RIGHT + 8, y1=bottom, y2=bottom))
    for run, bins in reversed(shown):  # the first side is drawn last, over the others
        parts += _hill(run["side"], bins, x, y)
    for row, (run, _) in enumerate(shown):
        parts += _strip(run, x, bottom + _STRIP * (row + 0.5) + 4)
    words = "; ".join(_in_words(run) for run, _ in shown)
    return plot(f"Spread of latencies at {load}", words, foot + 22, parts)


def timeline(runs: Sequence[Entry], load: str) -> Element | None:
    """The p99 of each side from moment to moment as a line, its p50 as a thin one."""
    series = [(run["side"], _moments(run)) for run in runs]
    series = [(side, moments) for side, moments in series if moments]
    if not series:
        return None
    top, bottom = _HILL[0], _HILL[1] + _STRIP * len(series) + 4  # as high as its neighbour
    seconds = [moment["at_s"] for _, moments in series for moment in moments]
    x = Scale(min(0.0, min(seconds)), max(max(seconds), 1e-3), LEFT, RIGHT)
    names = ("p50_ms", "p99_ms")
    y = either([m[name] for _, moments in series for m in moments for name in names], bottom, top)
    parts = along_y(y, LEFT, RIGHT, span_tick)
    parts += along_x(x, bottom, bottom + 4, x.ticks(), lambda value: f"{tick(value)} s")
    for side, moments in reversed(series):
        p50, p99 = ([(x(m["at_s"]), y(m[name])) for m in moments] for name in names)
        if len(moments) == 1:
            parts += [marker(side, *p50[0], kind="hollow"), marker(side, *p99[0])]
            continue
        parts += [line(side, p50, "line thin"), line(side, p99)]
    parts += _time_tips(series, x, top, bottom)
    words = "; ".join(f"{side}: p99 from {_range(moments)}" for side, moments in series)
    return plot(f"Latency over time at {load}", words, bottom + 24, parts)


def _bins(run: Entry) -> Iterator[tuple[float, float, float]]:
    """(from, to, height) of each bin that is not empty; areas over a log axis are shares.

    Heights are per factor, not per bin, so that histograms with unlike edges can be compared.
    """
    histogram = run.get("histogram") or {}
    counts = [count or 0 for count in histogram.get("counts") or []]
    edges = [edge or 0.0 for edge in histogram.get("edges_ms") or []]
    for (low, high), count in zip(pairwise(edges), counts, strict=False):
        if count > 0 and high > 0:
            low = low if low > 0 else high / 2  # what is below all edges has no width to show
            if high / low > 1 + 1e-9:
                yield low, high, count / sum(counts) / math.log(high / low)


def _hill(
    side: str, bins: Sequence[tuple[float, float, float]], x: Scale, y: Scale
) -> list[Element]:
    points = [(x(bins[0][0]), y(0))]
    for low, high, height in bins:
        if x(low) - points[-1][0] > 0.1:  # empty bins between
            points += [(points[-1][0], y(0)), (x(low), y(0))]
        points += [(x(low), y(height)), (x(high), y(height))]
    points.append((points[-1][0], y(0)))
    if side != OURS:  # areas over each other would mix their colours
        return [line(side, points)]
    area = node("path", class_=f"{look(side).name} area", d=path(points, closed=True))
    return [area, line(side, points)]


def _strip(run: Entry, x: Scale, y: float) -> list[Element]:
    """A line from p50 to p99 with both values next to it."""
    side, p50, p99 = run["side"], latency(run, "p50"), latency(run, "p99")
    if p50 is None or p99 is None:
        return []
    start, end = x(p50), x(p99)
    name = look(side).name
    parts = [
        node("line", class_=f"{name} line", x1=start, x2=max(end, start + 0.1), y1=y, y2=y),
        node("line", class_=f"{name} line stop", x1=end, x2=end, y1=y - 6, y2=y + 6),
        marker(side, start, y, 4.2),
        label(span(p50), start - 8, y + 4, "end", f"{name} value"),
        label(span(p99), end + 7, y + 4, "start", f"{name} value"),
    ]
    return [node("g", *parts, node("title", _in_words(run)))]


def _in_words(run: Entry) -> str:
    texts = [f"{name.replace('_', '.')} {span(latency(run, name))}" for name in _PERCENTILES]
    return f"{run['side']}: {', '.join(texts)}"


def _moments(run: Entry) -> list[Entry]:
    names = ("at_s", "p50_ms", "p99_ms")
    found = [m for m in run.get("timeline") or [] if all(m.get(name) is not None for name in names)]
    found = [m for m in found if m["p50_ms"] > 0 and m["p99_ms"] > 0]
    return sorted(found, key=lambda m: float(m["at_s"]))


def _time_tips(
    series: Sequence[tuple[str, Sequence[Entry]]], x: Scale, top: float, bottom: float
) -> list[Element]:
    """Where the first side has a moment: what each side did then."""
    places, texts = [], []
    reach = 2 * (x.high - x.low) / len(series[0][1])
    for moment in series[0][1]:
        at = moment["at_s"]
        rows = [f"{tick(at)} s: p50, p99"]
        for side, moments in series:
            near = min(moments, key=lambda m: abs(float(m["at_s"]) - at))
            if abs(near["at_s"] - at) <= reach:
                rows.append(f"{side}: {span(near['p50_ms'])}, {span(near['p99_ms'])}")
        places.append(x(at))
        texts.append(rows)
    return tips(places, texts, top, bottom)


def _range(moments: Sequence[Entry]) -> str:
    values = [float(moment["p99_ms"]) for moment in moments]
    return f"{span(min(values))} to {span(max(values))}"
