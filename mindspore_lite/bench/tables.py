"""The tables of the report: runs, points of a search, settings and machine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from xml.etree.ElementTree import Element

from mindspore_lite.bench.looks import marker
from mindspore_lite.bench.markup import node
from mindspore_lite.bench.number_text import MISSING, count, digits
from mindspore_lite.bench.pareto import by_throughput
from mindspore_lite.bench.view import Entry, View, latency

_LATENCIES = ("mean", "p50", "p90", "p99", "p99_9", "max")
_RUN_HEADS = (
    "side", "requests/s", *[name.replace("_", ".") + " ms" for name in _LATENCIES],
    "CPU ms/request", "memory MiB", "requests", "errors",
)  # fmt: skip
_POINT_HEADS = ("engine", "workers", "threads", "batch", "clients", "requests/s", "p99 ms", "")
_APART_HEADS = ("file", "largest difference", "cosine", "same top class", "output")
_SETTINGS = {"duration_s": "duration", "warmup_s": "warm-up"}
_MACHINE = {"cpu": "CPU", "cores": "cores", "python": "Python"}
_ZERO = {"workers": "automatic", "threads": "automatic", "batch": "none"}


def run_table(view: View) -> Element:
    """Every run with all its numbers, one group of rows per load."""
    groups = []
    for load in view.loads:
        head = node("th", load.text, scope="rowgroup", colspan=str(len(_RUN_HEADS)))
        rows = [_run_row(run) for run in view.at(load)]
        groups.append(node("tbody", node("tr", head, class_="group"), *rows))
    return _box("All runs", _RUN_HEADS, groups)


def point_table(points: Sequence[Entry]) -> Element:
    """Every setting that a search tried, the one with the highest throughput first."""
    rows = []
    for point in by_throughput(points):
        names = ("workers", "threads", "batch", "clients")
        numbers = [_setting(name, point.get(name)) for name in names]
        numbers += [digits(point.get("throughput")), digits(point.get("p99_ms"))]
        note = "chosen" if point.get("chosen") else "on the front" if point.get("on_front") else ""
        rows.append(_row(str(point.get("engine")), numbers, node("td", note, class_="text")))
    return _box("All settings that were tried", _POINT_HEADS, [node("tbody", *rows)])


def apart_table(view: View) -> Element:
    """How far the outputs of other model files lie from the model's."""
    rows = []
    for one in view.apart:
        alike = one.get("cosine")
        numbers = [digits(one.get("largest")), MISSING if alike is None else f"{alike:.6f}"]
        share = f"{count(one.get('agreed'))} of {count(one.get('rows'))}" if one.get("rows") else ""
        output = node("td", str(one.get("output")), class_="text")
        rows.append(_row(str(one.get("peer")), [*numbers, share], output))
    return _box("Outputs of one request", _APART_HEADS, [node("tbody", *rows)])


def facts(view: View) -> Element:
    """What was measured, how and where, as pairs."""
    model, machine = view.model, view.machine
    pairs = [("model", model.get("file"))]
    for port in model.get("inputs") or []:
        shape = ", ".join("?" if n is None else str(n) for n in port.get("shape") or [])
        pairs.append((f"input {port.get('name')}", f"{port.get('dtype')} [{shape}]"))
    pairs += [
        (_SETTINGS.get(name, name), _setting(name, value))
        for name, value in view.settings.items()
        if value != ""  # target, engine or URL, where there is none
    ]
    pairs += [(text, machine.get(name)) for name, text in _MACHINE.items()]
    pairs += sorted((machine.get("versions") or {}).items())
    cells = [
        (node("dt", name), node("dd", MISSING if value is None else str(value)))
        for name, value in pairs
    ]
    return node("dl", *[node("div", *cell) for cell in cells])


def _setting(name: str, value: object) -> str:
    if value is None or value == 0:
        return _ZERO.get(name, MISSING if value is None else "0")
    return f"{value} s" if name.endswith("_s") else str(value)


def _run_row(run: Entry) -> Element:
    numbers = [digits(run.get("throughput")), *[digits(latency(run, name)) for name in _LATENCIES]]
    numbers += [digits(run.get(name)) for name in ("cpu_ms_per_request", "memory_mib")]
    numbers.append(count(run.get("requests")))
    kind = "bad" if run.get("errors") else "good"
    return _row(run["side"], numbers, node("td", count(run.get("errors")), class_=kind))


def _row(side: str, numbers: Iterable[str], last: Element) -> Element:
    sizes = {"viewBox": "0 0 14 14", "width": "14", "height": "14"}
    sign = node("svg", marker(side, 7, 7), aria_hidden="true", **sizes)
    cells = [node("td", number) for number in numbers]
    return node("tr", node("th", sign, side, scope="row"), *cells, last)


def _box(caption: str, heads: Iterable[str], bodies: Iterable[Element]) -> Element:
    """A table that scrolls inside its box; the box takes the focus, so that keys scroll it too."""
    row = node("tr", *[node("th", head, scope="col") for head in heads])
    table = node("table", node("caption", caption), node("thead", row), *bodies)
    return node("div", table, class_="scroll", tabindex="0", role="region", aria_label=caption)
