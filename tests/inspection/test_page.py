"""inspection/page.py: no text of a model becomes markup, and nothing is fetched."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.mindir_builder import Net, encode, tensor_type
from support.models import MOBILENET, written

from mindspore_lite.inspection.examine import examine
from mindspore_lite.inspection.page import COLOURS, OTHERS, page

HOSTILE = (
    "</script><script>alert(1)</script><!-- <img src=x onerror=alert(2)> & ]]> {{data}} \u2028'\""
)


class Tags(HTMLParser):
    """All tags of a page, and what stands in its scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.inside = tag

    def handle_data(self, data: str) -> None:
        self.texts.setdefault(self.inside, []).append(data)

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""


def page_of(path: Path) -> str:
    found = examine(path)
    return page(found.facts, found.sketches())


def data_of(text: str) -> dict[str, Any]:
    (found,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    made: dict[str, Any] = json.loads(found)
    return made


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A model with markup wherever a file can hold a text."""
    net = Net(HOSTILE)
    x = net.input(HOSTILE, (2, 3), given_name=HOSTILE)
    made = net.call(
        HOSTILE,
        x,
        net.weight(f"w{HOSTILE}", np.ones((2, 3), np.float32)),
        net.constant(HOSTILE),
        type=tensor_type((2, 3)),
        scope=HOSTILE,
        **{HOSTILE: HOSTILE},
    )
    model = net.model(made, user_info={HOSTILE: HOSTILE}, producer=HOSTILE)
    return written(tmp_path / "<b>&amp;.mindir", encode(model))


def test_hostile_texts_are_data_and_nothing_else(hostile: Path) -> None:
    harmless, found = Tags(page_of(MOBILENET)), Tags(page_of(hostile))
    assert [tag for tag, _ in found.tags] == [tag for tag, _ in harmless.tags]
    assert "<b>" not in page_of(hostile)
    box = data_of(page_of(hostile))["graphs"][0]["boxes"][1]
    assert box["op"] == box["label"] == HOSTILE
    assert box["problem"] == HOSTILE


def test_only_the_page_s_own_script_and_style_may_run() -> None:
    found = Tags(page_of(MOBILENET))
    ((_, policy),) = [t for t in found.tags if "http-equiv" in t[1]]
    rules = dict(rule.split(" ", 1) for rule in str(policy["content"]).split("; "))
    assert rules["default-src"] == "'none'"
    for kind, rule in (("script", "script-src"), ("style", "style-src")):
        text = found.texts[kind][-1]
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert rules[rule] == f"'sha256-{digest}'"


def test_nothing_is_loaded_from_anywhere() -> None:
    text = page_of(MOBILENET)
    assert not re.search(
        r"\b(src|href|srcset|action)\s*=", re.sub(r"<script.*", "", text, flags=re.S)
    )
    assert "http" not in text.replace("http-equiv", "")
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(", text)


def test_the_page_holds_the_facts_and_every_box() -> None:
    data = data_of(page_of(MOBILENET))
    assert data["facts"]["can_run"]
    ops = [box["op"] for box in data["graphs"][0]["boxes"]]
    assert ops[0] == "x"
    assert ops[-1] == "output"
    assert "Conv2D" in ops
    assert "Load" not in ops


def luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("colour", [*COLOURS.values(), *OTHERS])
def test_white_text_is_legible_on_every_colour(colour: str) -> None:
    assert 1.05 / (luminance(colour) + 0.05) >= 4.5  # WCAG AA
