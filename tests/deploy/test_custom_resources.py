"""KServe's and the Prometheus Operator's resources under deploy/, against facts about their types.

tests/data/deploy/custom_resources.json has the fields that are theirs. What is a pod or a container
in them is checked against Kubernetes' own schemas.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.manifests import (
    KSERVE,
    KUBERNETES,
    Document,
    built,
    containers,
    documents,
    filled,
    has_kustomize,
    parsed_serve,
    the,
)

from mindspore_lite.version import __version__

jsonschema = pytest.importorskip("jsonschema")
kubernetes_validate = pytest.importorskip("kubernetes_validate")

FACTS = json.loads(
    (Path(__file__).parent.parent / "data/deploy/custom_resources.json").read_text(encoding="utf-8")
)
KINDS = ("ClusterServingRuntime", "InferenceService", "PodMonitor")
FILES = [one for one in documents(KUBERNETES, KSERVE) if one[1]["kind"] in KINDS]
RUNTIME = the("ClusterServingRuntime", [one for _, one in FILES])
SERVICES = [one for _, one in FILES if one["kind"] == "InferenceService"]
PREDICTOR = set(FACTS["InferenceService"]["properties"]["spec"]["properties"]["predictor"]
                ["properties"])  # fmt: skip
MODEL = {"modelFormat", "runtime", "runtimeVersion", "protocolVersion", "storageUri", "storage"}


def check(document: Document) -> None:
    """Raise what does not fit."""
    schema = {**FACTS, "$ref": f"#/{document['kind']}"}
    jsonschema.Draft202012Validator(schema).validate(document)
    if document["kind"] == "InferenceService":
        kubernetes_validate.validate(merged_pod(document, RUNTIME), "1.37", strict=True)


def merged_pod(service: Document, runtime: Document) -> Document:
    """The pod that KServe makes of both; args are appended, and other fields replaced."""
    predictor = service["spec"]["predictor"]
    (base,) = runtime["spec"]["containers"]
    own = {key: value for key, value in predictor["model"].items() if key not in MODEL}
    container = {**base, **own, "args": [*base["args"], *own.get("args", ())]}
    if tag := predictor["model"].get("runtimeVersion"):
        container["image"] = f"{base['image'].partition(':')[0]}:{tag}"
    spec = {key: value for key, value in predictor.items() if key not in PREDICTOR}
    spec |= {"containers": [container], "volumes": runtime["spec"]["volumes"]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": spec}


@pytest.mark.parametrize(("name", "document"), FILES, ids=lambda one: str(one)[:40])
def test_every_resource_has_the_fields_of_its_kind(name: str, document: Document) -> None:
    check(document)


@pytest.mark.skipif(not has_kustomize(), reason="no kubectl with kustomize")
def test_what_kustomize_makes_has_them_too() -> None:
    for folder in (KSERVE / "runtime", KSERVE / "repository", KUBERNETES / "base"):
        found = [one for one in built(folder) if one["kind"] in KINDS]
        assert found
        for document in found:
            check(document)


def test_a_wrong_field_is_found() -> None:
    spec = RUNTIME["spec"]
    formats = [{"name": "onnx", "autoSelect": "yes"}]
    (service, *_) = SERVICES
    predictor = service["spec"]["predictor"]
    for wrong in (
        {**RUNTIME, "spec": {**spec, "supportedModelFormats": formats}},
        {**RUNTIME, "spec": {**spec, "protocolVersions": ["v3"]}},
        {**RUNTIME, "spec": {**spec, "lifecycle": {}}},
        {**RUNTIME, "spec": {**spec, "containers": [{"name": "mslite"}]}},
        {**service, "spec": {"predictor": {**predictor, "replicas": 3}}},
        {**service, "spec": {"predictor": {"model": {**predictor["model"], "storageURI": "x"}}}},
    ):
        with pytest.raises((jsonschema.ValidationError, kubernetes_validate.ValidationError)):
            check(wrong)


def test_the_runtime_keeps_kserves_contract() -> None:
    spec = RUNTIME["spec"]
    assert {one["name"] for one in spec["supportedModelFormats"]} == {"mindspore", "onnx"}
    assert spec["protocolVersions"] == ["v2", "grpc-v2"]
    (container,) = containers([RUNTIME])
    assert container["name"] == "kserve-container"
    ports = {one["name"]: one["containerPort"] for one in container["ports"]}
    assert ports == {"http1": 8080, "h2c": 9000}
    models, options = parsed_serve(filled(container["args"], "some-name"))
    assert (models, options.model_name) == (("/mnt/models",), "some-name")
    annotations = spec["annotations"]
    assert annotations["prometheus.kserve.io/port"] == str(options.http_port)
    assert annotations["prometheus.kserve.io/path"] == "/metrics"


@pytest.mark.parametrize("service", SERVICES, ids=lambda one: one["metadata"]["name"])
def test_examples_use_what_the_runtime_offers(service: Document) -> None:
    predictor = service["spec"]["predictor"]
    model = predictor["model"]
    assert model["runtime"] == RUNTIME["metadata"]["name"]
    formats = {one["name"] for one in RUNTIME["spec"]["supportedModelFormats"]}
    assert model["modelFormat"]["name"] in formats
    assert model["protocolVersion"] in RUNTIME["spec"]["protocolVersions"]
    assert predictor.get("minReplicas", 1) <= predictor.get("maxReplicas", 1)
    (container,) = merged_pod(service, RUNTIME)["spec"]["containers"]
    _, options = parsed_serve(filled(container["args"], service["metadata"]["name"]))
    has_card = "nvidia.com/gpu" in container["resources"]["limits"]
    assert has_card == (options.target == "gpu")
    assert container["image"] == f"mslite:{__version__}{'-gpu' if has_card else ''}"


def test_there_is_an_example_of_each_kind() -> None:
    predictors = [one["spec"]["predictor"] for one in SERVICES]
    assert any(one.get("minReplicas", 1) > 1 for one in predictors)
    assert any("--target=gpu" in one["model"].get("args", ()) for one in predictors)
    assert any(set(one) == {"model"} for one in predictors)
