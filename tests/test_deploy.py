"""deploy/: the Grafana board and the alerts name only metrics and labels that a server has."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families
from support.served import FakeService, Wire, get, port_of

from mindspore_lite.server.metrics import metrics_parts
from mindspore_lite.server.models import Models

DEPLOY = Path(__file__).parent.parent / "deploy"
BOARD = json.loads((DEPLOY / "grafana/mslite.json").read_text(encoding="utf-8"))
ALERTS = yaml.safe_load((DEPLOY / "prometheus/alerts.yml").read_text(encoding="utf-8"))
ADDED = {"instance", "job"}  # by Prometheus itself
WORDS = {
    "and", "avg", "by", "clamp_min", "deriv", "group_left", "histogram_quantile", "ignoring",
    "increase", "label_values", "max", "min", "on", "or", "rate", "sum", "unless", "without",
}  # fmt: skip
SELECTOR = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)\s*(?:\{([^}]*)\})?")
MATCHER = re.compile(r'(\w+)\s*(?:=~|!~|!=|=)\s*"([^"]*)"')
GROUPING = re.compile(r"\b(?:by|without|on|ignoring)\s*\(([^)]*)\)")
RANGE = re.compile(r"\[[^\]]*\]")

Labels = dict[str, dict[str, set[str]]]  # of each metric, with their values


@pytest.fixture(scope="module")
def exposed() -> Labels:
    """Every sample of a server that has served something, with its labels and their values."""
    models = Models()
    models.load("m", "1", FakeService)
    try:
        with port_of(models) as port, Wire(port) as wire:
            wire.ask(get("/none"))
            text = b"".join(metrics_parts(port.core)).decode()
    finally:
        models.close(0.0)
    found: Labels = {"up": {}}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            name = sample.name
            if name.startswith("nv_"):  # prometheus_client adds the ending
                name = name.removesuffix("_total")
            labels = found.setdefault(name, {})
            for key, value in sample.labels.items():
                labels.setdefault(key, set()).add(value)
    return found


def problems(query: str, exposed: Labels) -> Iterator[str]:
    """What a query names that is not there."""
    known: set[str] = set(ADDED)
    rest = GROUPING.sub(" ", RANGE.sub(" ", query))
    for name, matchers in SELECTOR.findall(rest):
        if name in WORDS or re.fullmatch(r"e\d+", name):
            continue
        if name not in exposed:
            yield f"{name} is no metric"
            continue
        labels = exposed[name]
        known |= set(labels)
        for label, value in MATCHER.findall(matchers):
            if label not in labels and label not in ADDED:
                yield f"{name} has no label {label}"
            is_fixed = not value.startswith("$") and label not in (*ADDED, "status")
            if is_fixed and not any(re.fullmatch(value, one) for one in labels.get(label, ())):
                yield f"{name} never has {label}={value}"
    for group in GROUPING.findall(query):
        for label in filter(None, re.split(r"[\s,]+", group)):
            if label not in known:
                yield f"no metric of the query has the label {label}"


def targets(panels: Any) -> Iterator[tuple[str, str, str]]:
    """Title, query and legend of every panel."""
    for panel in panels:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"], target["legendFormat"]
        yield from targets(panel.get("panels", ()))


def test_every_panel_of_the_board_has_a_query_that_works(exposed: Labels) -> None:
    found = list(targets(BOARD["panels"]))
    assert len(found) > 20
    for title, query, legend in found:
        assert list(problems(query, exposed)) == [], title
        grouped = {label.strip() for group in GROUPING.findall(query) for label in group.split(",")}
        assert set(re.findall(r"\{\{(\w+)\}\}", legend)) <= grouped, title


def test_the_variables_of_the_board_work(exposed: Labels) -> None:
    names = {one["name"] for one in BOARD["templating"]["list"]}
    for one in BOARD["templating"]["list"]:
        if one["type"] == "query":
            found = re.fullmatch(r"label_values\((.+), (\w+)\)", one["definition"])
            assert found is not None
            assert list(problems(found[1], exposed)) == []
            metric = re.split(r"[{]", found[1])[0]
            assert found[2] in {*exposed[metric], *ADDED}
    used = set(re.findall(r"\$(\w+)", json.dumps(BOARD["panels"])))
    assert used - {name for name in used if name.startswith("__")} <= names


def test_panels_have_ids_of_their_own_and_lie_side_by_side() -> None:
    ids = [panel["id"] for panel in BOARD["panels"]]
    assert len(set(ids)) == len(ids)
    cells: set[tuple[int, int]] = set()
    for panel in BOARD["panels"]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        covered = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not covered & cells, panel["title"]
        cells |= covered


def rules() -> list[dict[str, Any]]:
    return [rule for group in ALERTS["groups"] for rule in group["rules"]]


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_every_alert_has_a_query_that_works(exposed: Labels, rule: dict[str, Any]) -> None:
    assert list(problems(rule["expr"], exposed)) == []
    assert rule["labels"]["severity"] in ("page", "ticket")
    groups = GROUPING.findall(rule["expr"])
    grouped = {label.strip() for group in groups for label in group.split(",")}
    (metric, *_) = (name for name, _ in SELECTOR.findall(rule["expr"]) if name in exposed)
    told = set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]))
    assert told <= (grouped or {*exposed[metric], *ADDED})


def test_a_name_that_is_not_there_is_found(exposed: Labels) -> None:
    for query, words in (
        ("rate(mslite_nothing[5m])", "is no metric"),
        ('mslite_slots{stat="idle"}', "has no label stat"),
        ('mslite_slots{state="busy"}', "never has state=busy"),
        ("sum by (nowhere) (mslite_slots)", "has the label nowhere"),
    ):
        assert words in " ".join(problems(query, exposed))
