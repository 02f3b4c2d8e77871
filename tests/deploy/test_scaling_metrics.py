"""What the autoscaler and the adapter ask for is in a real exposition."""

from __future__ import annotations

import re

import yaml
from prometheus_client.parser import text_string_to_metric_families
from support.manifests import DEPLOY, KUBERNETES, documents, the
from support.served import FakeService, port_of

from mindspore_lite.server.metrics import metrics_parts
from mindspore_lite.server.models import Models

ADAPTER = yaml.safe_load((DEPLOY / "prometheus/adapter.yml").read_text(encoding="utf-8"))["rules"]
AUTOSCALER = the("HorizontalPodAutoscaler", [one for _, one in documents(KUBERNETES)])["spec"]


def gauges() -> set[str]:
    """The gauges that every model has."""
    models = Models()
    models.load("m", "1", FakeService)
    try:
        with port_of(models) as port:
            text = b"".join(metrics_parts(port.core)).decode()
    finally:
        models.close(0.0)
    return {
        family.name
        for family in text_string_to_metric_families(text)
        if family.type == "gauge" and all("model" in one.labels for one in family.samples)
    }


def test_rules_of_the_adapter_name_gauges_of_models() -> None:
    found = gauges()
    for rule in ADAPTER:
        name, _, matchers = rule["seriesQuery"].partition("{")
        assert name in found
        assert re.findall(r'(\w+)!=""', matchers) == list(rule["resources"]["overrides"])
        assert rule["name"]["as"] == name
        assert "<<.Series>>{<<.LabelMatchers>>}" in rule["metricsQuery"]


def test_the_autoscaler_asks_for_what_the_adapter_offers() -> None:
    offered = {rule["name"]["as"] for rule in ADAPTER}
    asked = [one["pods"]["metric"]["name"] for one in AUTOSCALER["metrics"] if "pods" in one]
    assert asked and set(asked) <= offered
    assert 1 < AUTOSCALER["minReplicas"] < AUTOSCALER["maxReplicas"]
