"""Writes the report of `mslite bench --html` as one file that needs no network.

The page has no script. The policy in its head lets only its own style apply, and nothing be
fetched; texts of models and errors pass through markup.py, which escapes them.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

from mindspore_lite.bench.core_plot import core_plot
from mindspore_lite.bench.finding import best_run, findings, trouble
from mindspore_lite.bench.latency_plots import distribution, timeline
from mindspore_lite.bench.load_plots import p99_plot, throughput_plot
from mindspore_lite.bench.looks import OURS, legend
from mindspore_lite.bench.markup import node, written
from mindspore_lite.bench.number_text import digits, span
from mindspore_lite.bench.pareto import engines_of, pareto_plot
from mindspore_lite.bench.ratio_plots import ratio_plots
from mindspore_lite.bench.tables import apart_table, facts, point_table, run_table
from mindspore_lite.bench.view import Entry, View, latency, load_of, ours_first

_HERE = Path(__file__).parent


def page(result: Mapping[str, Any]) -> str:
    """The whole report as HTML."""
    view = View(result)
    style = (_HERE / "page.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    parts = {
        "policy": f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; "
        "form-action 'none'",
        "title": written(node("title", f"{view.model.get('file') or 'model'} · mslite bench")),
        "style": style,
        "body": "\n".join(written(section) for section in _sections(view) if section is not None),
    }
    head, *pieces = (_HERE / "page.html").read_text(encoding="utf-8").split("{{")
    for piece in pieces:  # one pass: what is put in is never looked at again
        name, _, rest = piece.partition("}}")
        head += parts[name] + rest
    return head


def _sections(view: View) -> list[Element | None]:
    return [
        _head(view),
        _trouble(view),
        _tune(view.tune) if view.tune else None,
        _section("How far the answers lie apart", apart_table(view)) if view.apart else None,
        _ratios(view),
        *[_against_load(view, kind) for kind in ("clients", "rate")],
        *[_load(load.text, view.at(load)) for load in view.loads],
        _section("All runs", run_table(view)) if view.runs else None,
        _cores(view),
        _section("Settings and machine", node("div", facts(view), class_="panel")),
    ]


def _head(view: View) -> Element:
    first, *others = findings(view)
    name = node("p", f"mslite bench · {view.model.get('file') or 'model'}", class_="eyebrow")
    lead = node("ul", *[node("li", text) for text in others], class_="lead") if others else None
    return node("header", name, node("h1", first), lead, _tiles(best_run(view)))


def _tiles(best: Entry | None) -> Element | None:
    """Our best run at a glance."""
    if best is None:
        return None
    memory, cpu = best.get("memory_mib"), best.get("cpu_ms_per_request")
    shown = [
        ("throughput", f"{digits(best.get('throughput'))} /s", f"most, at {load_of(best).text}"),
        ("p50 latency", span(latency(best, "p50")), f"p99 {span(latency(best, 'p99'))}"),
        ("CPU per request", span(cpu), "of all threads together"),
        ("own memory", f"{digits(memory)} MiB", "that building and serving added"),
    ]
    tiles = [
        node("div", node("dt", name), node("dd", value), node("dd", note, class_="soft"))
        for name, value, note in shown
    ]
    return node("dl", *tiles, class_="tiles")


def _trouble(view: View) -> Element | None:
    items = [node("li", text) for text in trouble(view)]
    if not items:
        return None
    return node("section", node("h2", "Errors"), node("ul", *items), class_="trouble")


def _tune(tune: Entry) -> Element:
    marks = legend(
        engines_of(tune),
        "full: on the front, which no setting beats in both",
        "hollow: beaten by another",
        "in a ring: chosen",
    )
    figures = _figures(("Throughput, requests/s, against p99 latency", pareto_plot(tune)))
    codes = [
        _figure(name, node("pre", node("code", text), tabindex="0"))
        for name, text in (("Python", tune.get("python")), ("INI", tune.get("ini")))
        if text
    ]
    if codes:
        figures.append(node("div", *codes, class_="stack"))
    return _section("Settings that were tried", marks, _grid(figures), _points(tune))


def _points(tune: Entry) -> Element | None:
    points = tune.get("points")
    if not points:
        return None
    summary = node("summary", f"All {len(points)} settings that were tried")
    return node("details", summary, point_table(points))


def _ratios(view: View) -> Element | None:
    of_throughput = ratio_plots([ratio for ratio in view.ratios if ratio.get("of") == "throughput"])
    of_p99 = ratio_plots([ratio for ratio in view.ratios if ratio.get("of") == "p99"])
    figures = _figures(
        *[(f"Throughput: {OURS} / {peer}", picture) for peer, picture in of_throughput],
        *[(f"p99 latency: {peer} / {OURS}", picture) for peer, picture in of_p99],
    )
    marks = legend(
        [], "dot: median of the rounds", "bar: quartiles", f"right of the line: {OURS} is ahead"
    )
    return _section("Compared", marks, _grid(figures)) if figures else None


def _against_load(view: View, kind: str) -> Element | None:
    loads = [load for load in view.loads if load.kind == kind]
    if len(loads) * len(view.sides) < 2:
        return None  # one number, which stands at the top
    notes, against = [], ""
    title = f"At {loads[0].text}"
    if len(loads) > 1 and kind == "clients":
        title, against = "With more clients", ", against clients"
    elif len(loads) > 1:
        title, against = "With more requests", ", against requests/s asked for"
        notes = ["thin: as many as were asked for"]
    figures = _figures(
        (f"Throughput, answers/s{against}", throughput_plot(view, kind)),
        (f"p99 latency{against}", p99_plot(view, kind)),
    )
    return _section(title, legend(view.sides, *notes), _grid(figures)) if figures else None


def _load(load: str, runs: Sequence[Entry]) -> Element | None:
    figures = _figures(
        ("How latencies are spread", distribution(runs, load)),
        ("Latency over time", timeline(runs, load)),
    )
    sides = ours_first(run["side"] for run in runs)
    marks = legend(sides, "spread: sign at p50, bar at p99", "over time: thick p99, thin p50")
    return _section(f"Latency at {load}", marks, _grid(figures)) if figures else None


def _cores(view: View) -> Element | None:
    figures = _figures(("Which worker computes where", core_plot(view)))
    return _section("Workers and cores", _grid(figures)) if figures else None


def _section(title: str, *parts: Element | None) -> Element:
    return node("section", node("h2", title), *parts)


def _grid(figures: Sequence[Element]) -> Element:
    return node("div", *figures, class_="grid")


def _figures(*pictures: tuple[str, Element | None]) -> list[Element]:
    """A figure of each picture that there is, with its caption."""
    return [_figure(caption, picture) for caption, picture in pictures if picture is not None]


def _figure(caption: str, picture: Element) -> Element:
    return node("figure", node("figcaption", caption), picture)
