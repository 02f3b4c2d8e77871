"""bench/page.py: every part of a result is on the page, no text becomes markup, all numbers are."""

from __future__ import annotations

import base64
import copy
import hashlib
import itertools
import math
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import pytest
from support.bench_results import PEERS, result, run

from mindspore_lite.bench.page import page

HOSTILE = (
    "</title></style><script>alert(1)</script><img src=x onerror=y> & ]]> {{body}} '\" \udc80\x00"
)
VOID = {"meta", "br"}


class Tags(HTMLParser):
    """All tags of a page in order, and a complaint when one is not closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def plots(text: str) -> dict[str, ElementTree.Element]:
    """The drawings of a page by title, read as XML."""
    found = [ElementTree.fromstring(svg) for svg in re.findall(r"<svg .*?</svg>", text, re.S)]
    whole = [svg for svg in found if svg.get("class") == "plot"]
    return {svg.findtext("title", ""): svg for svg in whole}


def words(text: str) -> str:
    """What a reader sees, without markup."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", text.partition("</style>")[2]))


def strings(value: Any, name: str = "") -> Any:
    """The same result with hostile text for every text that does not decide what is drawn."""
    if isinstance(value, dict):
        return {key: strings(part, key) for key, part in value.items()}
    if isinstance(value, list):
        return [strings(part, name) for part in value]
    return HOSTILE if isinstance(value, str) and name != "of" else value


def failed(side: str, clients: int) -> dict[str, Any]:
    """A run without any answer, as the bench writes it."""
    made = run(side, clients)
    made["latency_ms"] = dict.fromkeys(made["latency_ms"], 0.0)
    made["histogram"] = {"edges_ms": [], "counts": []}
    return made | {
        "throughput": 0.0, "requests": 0, "errors": 7, "first_error": "EngineError: broken",
        "cpu_ms_per_request": 0.0, "timeline": [],
    }  # fmt: skip


def odd_results() -> Iterator[tuple[str, dict[str, Any]]]:
    yield "nothing", {}
    yield "empty parts", {key: type(value)() for key, value in result().items() if value}
    yield "one run", result((4,), (), (), tune=False)
    yield "one rate", result((), (50.0,), ("torch",), tune=False)
    yield "many", result(tuple(range(1, 20)), (0.5, 1e6), PEERS)
    yield "all failed", result((4,), (), (), tune=False) | {"runs": [failed("mslite", 4)]}
    single = result((1,), (), (), tune=False)
    single["runs"][0]["timeline"] = single["runs"][0]["timeline"][:1]
    single["runs"][0]["histogram"] = {"edges_ms": [2.0, 2.0001], "counts": [5]}
    yield "one moment, one bin", single
    for worst in (math.nan, math.inf, -math.inf, 0.0, -1.0, 1e300, 5e-324, None):
        spoilt = result((1, 4), (100.0,), ("onnxruntime",))
        for number, entry in enumerate(spoilt["runs"]):
            entry["throughput"] = worst
            entry["latency_ms"] = dict.fromkeys(entry["latency_ms"], worst)
            entry["timeline"][number] = dict.fromkeys(entry["timeline"][number], worst)
            entry["histogram"]["edges_ms"][number] = worst
            entry["histogram"]["counts"][-1] = worst
        spoilt["ratios"][0] |= {"low": worst, "high": worst}
        spoilt["tune"]["points"][0] |= {"p99_ms": worst, "throughput": worst}
        spoilt["tune"]["p99_limit_ms"] = worst
        yield f"{worst} everywhere", spoilt
    wide = result((1, 4), (), ("onnxruntime",), tune=False)
    wide["runs"][0]["latency_ms"] |= {"p50": 1e-9, "p99": 1e12}
    wide["runs"][0]["throughput"] = 1e14
    yield "enormous range", wide


ODD = dict(odd_results())


def test_a_full_result_has_all_plots() -> None:
    found = plots(page(result()))
    loads = ["1 client", "4 clients", "16 clients", "100 requests/s", "400 requests/s"]
    wanted = {f"Spread of latencies at {load}" for load in loads}
    wanted |= {f"Latency over time at {load}" for load in loads}
    wanted |= {f"{of} of mslite and {peer}" for of in ("throughput", "p99") for peer in PEERS}
    wanted |= {f"Throughput against {kind}" for kind in ("clients", "rate")}
    wanted |= {f"p99 latency against {kind}" for kind in ("clients", "rate")}
    wanted |= {"Throughput against p99 latency", "Workers and cores"}
    assert wanted <= set(found)
    assert all(svg.findtext("desc") and svg.get("role") == "img" for svg in found.values())


def test_missing_parts_are_left_out() -> None:
    bare = result((1, 4), (), (), tune=False) | {"layout": []}
    for entry in bare["runs"]:
        entry["timeline"] = []
    text = page(bare)
    assert set(plots(text)) == {
        "Throughput against clients", "p99 latency against clients",
        "Spread of latencies at 1 client", "Spread of latencies at 4 clients",
    }  # fmt: skip
    for gone in ("Compared", "Settings that were tried", "Workers and cores", "Errors"):
        assert f"<h2>{gone}</h2>" not in text


@pytest.mark.parametrize("name", ODD)
def test_odd_results_make_sound_pages(name: str) -> None:
    before = copy.deepcopy(ODD[name])
    text = page(ODD[name])
    assert str(ODD[name]) == str(before)  # as text, in which NaN equals itself
    Tags(text)
    for svg in plots(text).values():
        for part in svg.iter():
            for key, value in part.items():
                if key not in ("class", "role"):
                    assert not re.search("nan|inf|None|e[+-]", value), (key, value)
                if key in ("width", "height", "r"):
                    assert float(value) >= 0
    assert not re.search(r"\b(nan|inf|None)\b", words(text))


def test_hostile_texts_are_text_and_nothing_else() -> None:
    spoilt = strings(result())
    spoilt["machine"]["versions"][HOSTILE] = HOSTILE
    for entry in spoilt["runs"]:
        entry["errors"] = 1
    text = page(spoilt)
    assert text.count("<script") == text.count("<img") == text.count("onerror=y>") == 0
    assert set(Tags(text).tags) == set(Tags(page(result())).tags)
    assert "{{body}}" in text
    plots(text)
    text.encode("utf-8")


def test_nothing_is_fetched_and_only_the_own_style_applies() -> None:
    text = page(result())
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.S)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'sha256-{digest}'" in text
    assert not re.search(r"https?:|url\(|@import", text)
    names = {name for name, _ in Tags(text).attributes}
    assert names.isdisjoint({"src", "href", "style"})  # the policy would refuse a style as well


def test_all_runs_and_settings_are_told() -> None:
    text = words(page(result()))
    for told in (
        "1,600",
        "p99.9 ms",
        "float32 [1, 1, 8, 8]",
        "AMD EPYC",
        "warm-up 1.0 s",
        "2026.4.0",
    ):
        assert told in text
    assert "workers automatic" in text and "batch none" in text


def test_the_winner_is_given_as_python_and_ini() -> None:
    text = page(result())
    assert re.findall(r"<pre[^>]*><code>(.*?)</code>", text, re.S) == [
        result()["tune"]["python"],
        result()["tune"]["ini"],
    ]
    assert "<summary>All 18 settings that were tried</summary>" in text


def test_errors_are_told_with_the_first_of_each_run() -> None:
    text = words(page(result() | {"runs": [run("mslite", 1), failed("torch", 4)]}))
    assert "torch at 4 clients: 7 requests failed. The first error: EngineError: broken" in text


def test_unbound_workers_share_a_row_and_bound_ones_have_cells() -> None:
    bound = plots(page(result()))["Workers and cores"]
    assert len([part for part in bound.iter() if part.get("class") == "taken"]) == 4
    free = [{"worker": i, "threads": 2, "cores": []} for i in range(40)]
    picture = plots(page(result() | {"layout": free}))["Workers and cores"]
    told = [part.text for part in picture.iter("text")]
    assert "workers 0\N{EN DASH}39" in told and "2 threads each, on any core" in told


def test_sides_differ_in_dash_and_marker_too() -> None:
    lines = plots(page(result()))["Throughput against clients"].iter("path")
    dashes = [part.get("stroke-dasharray") for part in lines if "line" in part.get("class", "")]
    assert len(dashes) == len(set(dashes)) == 4


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_texts_and_lines_stand_out_in_light_dark_and_print() -> None:
    style = page({}).partition("<style>")[2]
    themes = re.findall(r":root \{(.*?)\}", style, re.S)
    assert len(themes) == 3
    for theme in themes:
        colours = dict(re.findall(r"--([\w-]+): (#\w{6})", theme))
        pairs = itertools.product(("text", "soft", "bad", *"abcde"), ("back", "panel", "bad-back"))
        for name, back in pairs:
            low, high = sorted((luminance(colours[name]), luminance(colours[back])))
            if back != "bad-back" or name in ("text", "bad"):
                assert (high + 0.05) / (low + 0.05) >= 4.5, (name, back, colours[name])
