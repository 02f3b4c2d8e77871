"""Describes the machine and the packages of a measurement."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Iterable

from mindspore_lite.bench.result import Machine
from mindspore_lite.core import cores
from mindspore_lite.core.machine import cpu_name
from mindspore_lite.version import __version__


def machine(packages: Iterable[str]) -> Machine:
    """This one, with the versions of our package and of those named that are installed."""
    versions = {"mslite": __version__}
    for name in packages:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return Machine(
        cpu=cpu_name(),
        cores=cores.usable().limit,
        python=platform.python_version(),
        versions=versions,
    )
