"""The manifests under deploy/, and what `mslite serve` makes of the arguments in them."""

from __future__ import annotations

import functools
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from mindspore_lite.cli.main import app
from mindspore_lite.cli.serve import Options

ROOT = Path(__file__).parent.parent.parent
DEPLOY = ROOT / "deploy"
KUBERNETES = DEPLOY / "kubernetes"
KSERVE = DEPLOY / "kserve"
Document = dict[str, Any]


def documents(*folders: Path) -> list[tuple[str, Document]]:
    """(file, document) of every manifest in some folders, but for those of Kustomize."""
    found = []
    for path in sorted(path for folder in folders for path in folder.rglob("*.yaml")):
        if path.name != "kustomization.yaml":
            for one in yaml.safe_load_all(path.read_text(encoding="utf-8")):
                found.append((str(path.relative_to(DEPLOY)), one))
    return found


def kustomizations() -> list[Path]:
    """Every folder that Kustomize can build."""
    return sorted(path.parent for path in DEPLOY.rglob("kustomization.yaml"))


@functools.cache
def _built(folder: Path) -> str:
    done = subprocess.run(
        ["kubectl", "kustomize", folder], capture_output=True, text=True, check=False
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def built(folder: Path) -> list[Document]:
    """What Kustomize makes of a folder."""
    return list(yaml.safe_load_all(_built(folder)))


@functools.cache
def has_kustomize() -> bool:
    """Whether there is a kubectl that can build."""
    if shutil.which("kubectl") is None:
        return False
    tried = ["kubectl", "kustomize", "--help"]
    return subprocess.run(tried, capture_output=True, check=False).returncode == 0


def the(kind: str, found: Sequence[Document]) -> Document:
    """The only document of a kind."""
    (one,) = (one for one in found if one["kind"] == kind)
    return one


def pod_of(document: Document) -> Document | None:
    """The pod's spec in a document that has one."""
    if document["kind"] == "Deployment":
        return dict(document["spec"]["template"]["spec"])
    if document["kind"] == "ClusterServingRuntime":
        spec = document["spec"]
        return {"containers": spec["containers"], "volumes": spec["volumes"]}
    return None


def containers(found: Sequence[Document]) -> Iterator[Document]:
    """Every container that runs our image."""
    for one in found:
        for container in (pod_of(one) or {"containers": ()})["containers"]:
            if container["image"].rpartition("/")[2].startswith("mslite:"):
                yield container


def parsed_serve(arguments: Sequence[str]) -> tuple[tuple[str, ...], Options]:
    """What the real command line makes of arguments; an error if it refuses them."""
    command, bound, ignored = app.parse_args(
        list(arguments), exit_on_error=False, print_error=False
    )  # fmt: skip
    assert command.__name__ == "serve" and not ignored
    return bound.args, bound.kwargs.get("options") or Options()


def filled(arguments: Sequence[str], name: str) -> list[str]:
    """Arguments with KServe's placeholders filled in."""
    return [one.replace("{{.Name}}", name) for one in arguments]
