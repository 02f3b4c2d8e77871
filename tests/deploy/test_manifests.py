"""deploy/kubernetes and deploy/kserve: Kubernetes accepts them, and they fit the server."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.containers import exec_form, only
from support.manifests import (
    DEPLOY,
    KSERVE,
    KUBERNETES,
    Document,
    built,
    containers,
    documents,
    filled,
    has_kustomize,
    kustomizations,
    parsed_serve,
    pod_of,
    the,
)

from mindspore_lite.server.http.endpoints import ROUTES
from mindspore_lite.version import __version__

kubernetes_validate = pytest.importorskip("kubernetes_validate")

VERSIONS = ("1.30", "1.37")  # preStop.sleep is on from 1.30; the newest that is known
CUSTOM = ("ClusterServingRuntime", "InferenceService", "PodMonitor")
FILES = documents(KUBERNETES, KSERVE)
FOLDERS = kustomizations()
wants_kustomize = pytest.mark.skipif(not has_kustomize(), reason="no kubectl with kustomize")


def check(document: Document, version: str) -> None:
    """Raise what Kubernetes would say; unknown fields count."""
    kubernetes_validate.validate(document, version, strict=True)


def as_pod(spec: Document) -> Document:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": spec}


def accepted(document: Document) -> None:
    """The document, and the pod in it, in every version."""
    for version in VERSIONS:
        if document["kind"] not in CUSTOM:
            check(document, version)
        if (spec := pod_of(document)) is not None:
            check(as_pod(spec), version)


@pytest.mark.parametrize(("name", "document"), FILES, ids=lambda one: str(one)[:40])
def test_kubernetes_accepts_every_file(name: str, document: Document) -> None:
    accepted(document)


@wants_kustomize
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda one: str(one.relative_to(DEPLOY)))
def test_kubernetes_accepts_what_kustomize_makes(folder: Path) -> None:
    found = built(folder)
    for document in found:
        accepted(document)
    names = [(one["kind"], one["metadata"]["name"]) for one in found]
    assert len(set(names)) == len(names)


def test_a_field_that_is_not_there_is_found() -> None:
    document = the("PodDisruptionBudget", [one for _, one in FILES])
    wrong = {**document, "spec": {**document["spec"], "maxUnavailble": 1}}
    with pytest.raises(kubernetes_validate.ValidationError):
        check(wrong, VERSIONS[0])


def pods() -> Iterator[Any]:
    """Every pod that any of the files, or Kustomize, asks for."""
    groups = [("files", [one for _, one in FILES])]
    if has_kustomize():
        groups += [(str(folder.relative_to(DEPLOY)), built(folder)) for folder in FOLDERS]
    for name, found in groups:
        for one in found:
            if pod_of(one) is not None:
                yield pytest.param(one, id=f"{name}-{one['metadata']['name']}")


PODS = list(pods())


@pytest.mark.parametrize("document", PODS)
def test_arguments_ports_and_probes_fit_the_server(document: Document) -> None:
    (container,) = containers([document])
    models, options = parsed_serve(filled(container["args"], "digits"))
    assert models == (() if options.demo else ("/mnt/models",))
    assert options.host == "0.0.0.0"
    ports = {one["name"]: one["containerPort"] for one in container["ports"]}
    wanted = [options.http_port, options.grpc_port, options.metrics_port]
    assert list(ports.values()) == [port for port in wanted if port is not None]
    for kind in ("startupProbe", "readinessProbe", "livenessProbe"):
        asked = container[kind]["httpGet"]
        assert ports.get(asked["port"], asked["port"]) == options.http_port
        assert ROUTES.find(asked["path"]) is not None
    assert container["livenessProbe"]["httpGet"]["path"] == "/v2/health/live"
    assert container["readinessProbe"]["httpGet"]["path"] == "/v2/health/ready"


@pytest.mark.parametrize("document", PODS)
def test_a_pod_has_time_to_end(document: Document) -> None:
    (container,) = containers([document])
    _, options = parsed_serve(filled(container["args"], "digits"))
    pod = pod_of(document) or {}
    needed = container["lifecycle"]["preStop"]["sleep"]["seconds"] + options.grace_s
    assert needed < pod.get("terminationGracePeriodSeconds", 30)  # which Kubernetes takes


@pytest.mark.parametrize("document", PODS)
def test_a_pod_has_no_more_rights_than_it_needs(document: Document) -> None:
    (container,) = containers([document])
    pod = pod_of(document) or {}
    merged = {**pod.get("securityContext", {}), **container["securityContext"]}
    assert merged == {
        "runAsNonRoot": True,
        "runAsUser": 65532,
        "runAsGroup": 65532,
        "seccompProfile": {"type": "RuntimeDefault"},
        "allowPrivilegeEscalation": False,
        "privileged": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    mounts = {one["mountPath"]: one["name"] for one in container["volumeMounts"]}
    volumes = {one["name"]: one for one in pod["volumes"]}
    assert set(mounts.values()) == set(volumes)
    for path in ("/cache", "/tmp"):  # what the image writes to
        assert "emptyDir" in volumes[mounts[path]]
    asked, most = container["resources"]["requests"], container["resources"]["limits"]
    assert {"cpu", "memory"} <= set(asked) <= set(most)


@pytest.mark.parametrize("document", PODS)
def test_images_are_those_that_the_script_builds(document: Document) -> None:
    (container,) = containers([document])
    _, options = parsed_serve(filled(container["args"], "digits"))
    suffix = "-gpu" if options.target == "gpu" else ""
    place, slash, image = container["image"].rpartition("/")
    assert place == ("registry.example.com" if slash else "")  # deploy/kubernetes/site
    assert image == f"mslite:{__version__}{suffix}"
    has_card = "nvidia.com/gpu" in container["resources"]["limits"]
    assert has_card == (options.target == "gpu")


def test_the_image_and_the_deployment_use_the_same_ports() -> None:
    deployment = the("Deployment", [one for _, one in FILES])
    (container,) = containers([deployment])
    _, here = parsed_serve(container["args"])
    _, there = parsed_serve(exec_form(only("CMD")))
    for name in ("http_port", "grpc_port", "metrics_port"):
        assert getattr(here, name) == getattr(there, name)


@wants_kustomize
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda one: str(one.relative_to(DEPLOY)))
def test_a_file_on_top_can_name_the_registry(folder: Path, tmp_path: Path) -> None:
    if folder.name == "site":
        pytest.skip("it does so itself")
    shutil.copytree(DEPLOY, tmp_path / "deploy")
    mine = tmp_path / "deploy/mine"
    mine.mkdir()
    below = f"../{folder.relative_to(DEPLOY)}"
    images = [{"name": "mslite", "newName": "registry.example.com/mslite"}]
    text = yaml.safe_dump({"resources": [below], "images": images})
    (mine / "kustomization.yaml").write_text(text, encoding="utf-8")
    before, after = (next(containers(built(one)))["image"] for one in (folder, mine))
    assert after == f"registry.example.com/{before}"


@wants_kustomize
@pytest.mark.parametrize("name", ["base", "demo", "gpu", "site"])
def test_the_parts_of_a_deployment_find_each_other(name: str) -> None:
    found = built(KUBERNETES / name)
    deployment = the("Deployment", found)
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    (container,) = containers([deployment])
    ports = {one["name"] for one in container["ports"]}

    def selected(selector: dict[str, str]) -> bool:
        return bool(selector) and selector.items() <= labels.items()

    assert selected(deployment["spec"]["selector"]["matchLabels"])
    assert selected(the("PodDisruptionBudget", found)["spec"]["selector"]["matchLabels"])
    policy = the("NetworkPolicy", found)["spec"]
    assert selected(policy["podSelector"]["matchLabels"])
    assert {port["port"] for rule in policy["ingress"] for port in rule["ports"]} == ports
    services = [one for one in found if one["kind"] == "Service"]
    assert len(services) == 2
    for service in services:
        assert selected(service["spec"]["selector"])
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports
    target = the("HorizontalPodAutoscaler", found)["spec"]["scaleTargetRef"]
    assert target["name"] == deployment["metadata"]["name"]
    assert "replicas" not in deployment["spec"]  # it is the autoscaler's
    monitors = [one for one in found if one["kind"] == "PodMonitor"]
    assert len(monitors) == (name != "demo")
    for monitor in monitors:
        assert selected(monitor["spec"]["selector"]["matchLabels"])
        (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
        assert endpoint["port"] == "metrics"
        assert ROUTES.find(endpoint["path"]) is not None


def test_every_yaml_file_can_be_read_and_ends_with_a_line() -> None:
    for path in [*DEPLOY.rglob("*.yaml"), *DEPLOY.rglob("*.yml")]:
        text = path.read_text(encoding="utf-8")
        assert list(yaml.safe_load_all(text))
        assert text.endswith("\n") and "\t" not in text
