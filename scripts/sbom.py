"""Prints what is installed in this Python environment as an SBOM, in CycloneDX 1.6.

    python scripts/sbom.py mslite > sbom.cdx.json     # the argument is the package it is about

It reads the metadata that pip left, and needs nothing but Python. The same packages give the same
text: it has no date and no number of its own. deploy/Dockerfile puts it into the image.
"""

from __future__ import annotations

import json
import re
import sys
from importlib.metadata import Distribution, distributions
from typing import Any


def sbom(about: str, found: list[Distribution]) -> dict[str, Any]:
    """The document: one component per package, and which package needs which."""
    installed = {_plain(one.metadata["Name"]): one for one in found}
    if _plain(about) not in installed:
        raise SystemExit(f"sbom.py: there is no package {about!r} in {sys.prefix}; install it")
    root = installed[_plain(about)]
    others = [one for name, one in sorted(installed.items()) if one is not root]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {**_component(root), "type": "application"}},
        "components": [_component(one) for one in others],
        "dependencies": [
            {"ref": _purl(one), "dependsOn": _needs(one, installed)} for one in (root, *others)
        ],
    }


def _component(one: Distribution) -> dict[str, Any]:
    found: dict[str, Any] = {
        "type": "library",
        "bom-ref": _purl(one),
        "name": one.metadata["Name"],
        "version": one.version,
        "purl": _purl(one),
    }
    metadata = one.metadata.json
    if expression := metadata.get("license_expression"):
        found["licenses"] = [{"expression": expression}]
    elif name := _license_name(metadata):
        found["licenses"] = [{"license": {"name": name}}]
    return found


def _license_name(metadata: dict[str, Any]) -> str:
    """What older metadata says: classifiers, else the first line of what may be the whole text."""
    prefix = "License :: "
    rows = [row for row in metadata.get("classifier", ()) if row.startswith(prefix)]
    if rows:
        return "; ".join(sorted(row.rpartition(" :: ")[2] for row in rows))
    return next(iter(str(metadata.get("license", "")).strip().splitlines()), "")[:100]


def _needs(one: Distribution, installed: dict[str, Distribution]) -> list[str]:
    """Of what it asks for, what is there; a marker or an extra may leave the rest out."""
    names = {_plain(re.split(r"[^\w.-]", row, maxsplit=1)[0]) for row in one.requires or ()}
    return sorted(_purl(installed[name]) for name in names if name in installed)


def _purl(one: Distribution) -> str:
    return f"pkg:pypi/{_plain(one.metadata['Name'])}@{one.version}"


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        raise SystemExit(__doc__)
    print(json.dumps(sbom(sys.argv[1], list(distributions())), indent=1))
