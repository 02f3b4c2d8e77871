"""scripts/sbom.py: what is installed, as CycloneDX."""

from __future__ import annotations

import runpy
from importlib.metadata import Distribution, distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
sbom = runpy.run_path(str(ROOT / "scripts/sbom.py"))["sbom"]


def installed(folder: Path, name: str, *lines: str) -> Distribution:
    """A package of which there is only the metadata."""
    place = folder / f"{name}-1.dist-info"
    place.mkdir()
    head = ["Metadata-Version: 2.4", f"Name: {name}", "Version: 1", *lines]
    (place / "METADATA").write_text("\n".join(head) + "\n", encoding="utf-8")
    return Distribution.at(place)


def test_packages_licences_and_needs(tmp_path: Path) -> None:
    found = sbom("App", [
        installed(tmp_path, "app", "Requires-Dist: Some_Lib>=1; extra == 'x'",
                  "Requires-Dist: gone", "License-Expression: MIT"),
        installed(tmp_path, "some-lib", "Classifier: License :: OSI Approved :: BSD License"),
        installed(tmp_path, "old", "License: Apache 2.0"),
        installed(tmp_path, "bare"),
    ])  # fmt: skip
    assert found["metadata"]["component"]["purl"] == "pkg:pypi/app@1"
    assert found["metadata"]["component"]["licenses"] == [{"expression": "MIT"}]
    names = {one["name"]: one.get("licenses") for one in found["components"]}
    assert names == {
        "bare": None,
        "old": [{"license": {"name": "Apache 2.0"}}],
        "some-lib": [{"license": {"name": "BSD License"}}],
    }
    needs = {one["ref"]: one["dependsOn"] for one in found["dependencies"]}
    assert needs["pkg:pypi/app@1"] == ["pkg:pypi/some-lib@1"]
    assert needs["pkg:pypi/bare@1"] == []


def test_this_environment_is_described_the_same_twice() -> None:
    first, second = (sbom("mslite", list(distributions())) for _ in range(2))
    assert first == second
    names = {one["name"].lower() for one in first["components"]}
    assert {"numpy", "onnxruntime", "grpcio"} <= names
    refs = [one["bom-ref"] for one in first["components"]]
    assert len(set(refs)) == len(refs)


def test_a_package_that_is_not_there_is_an_error() -> None:
    with pytest.raises(SystemExit, match="no package 'nothing'"):
        sbom("nothing", [])
