"""Models that have a name, which the clients of a worker share.

    [service]
    name=digits      clients that give the same name share one model, with its workers and weights
    version=2        which of several; without it the newest, or "1" where there is none yet

The first client that asks starts the model; further ones join it, with the same file and the same
settings, or with neither. It ends with the last of them.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mindspore_lite.errors import EngineError, InputError, ModelFileError
from mindspore_lite.remote.wire.bodies import Build, Description
from mindspore_lite.remote.worker.groups import others
from mindspore_lite.remote.worker.served_model import Hosted, Running
from mindspore_lite.serving.call import Call
from mindspore_lite.serving.registry import Lease
from mindspore_lite.settings.read import read_layers
from mindspore_lite.settings.spec import settle
from mindspore_lite.settings.text import from_map
from mindspore_lite.tensor import Tensor

SECTION, NAME, VERSION = "service", "name", "version"
_MOST_CHARACTERS = 256  # of a name; guess


@dataclass(frozen=True)
class Origin:
    """What a model is started from. Clients that share one must ask for the same."""

    build: Build  # without the name
    digests: tuple[str, ...]  # of a model in memory
    stamp: tuple[int, ...] = ()  # of a file: another one may have its path by now

    @classmethod
    def of(cls, build: Build, contents: Sequence[bytes]) -> Origin:
        """What a client asks for; where its bytes lie does not count."""
        digests = tuple(hashlib.sha256(content).hexdigest() for content in contents)
        config = {section: pairs for section, pairs in build.config.items() if section != SECTION}
        return cls(replace(build, content=[], config=config), digests, _stamp(build.path))

    def __str__(self) -> str:
        where = "a model in memory"
        if self.build.path:
            where = f"{self.build.path!r}, which is missing now,"
            if self.stamp:
                where = f"{self.build.path!r}, file {self.stamp[1]} of {self.stamp[2]} bytes,"
        return f"{where} with settings {self.build.settings | _flat(self.build)}"


class Shared(Hosted):
    """One client's share of a model that has a name."""

    def __init__(self, lease: Lease[Hosted]) -> None:
        self._lease = lease
        self.output_names = lease.service.output_names

    def description(self) -> Description:
        """Its inputs and outputs."""
        return self._lease.service.description()

    def predict(self, call: Call, running: Running) -> list[np.ndarray]:
        """Run it once."""
        return self._lease.service.predict(call, running)

    def resize(self, shapes: list[tuple[int, ...]]) -> Description:
        """Not for one client alone."""
        raise EngineError(
            f"model {self._lease.name!r} is shared by its name, so that one client cannot resize "
            "it; build it without a name, or as a ModelParallelRunner, which takes any size"
        )

    def info(self, key: str) -> str:
        """One fact."""
        return self._lease.service.info(key)

    def statistics(self) -> str:
        """What was done so far, for all clients."""
        return self._lease.service.statistics()

    def update_weights(self, weights: list[list[Tensor]]) -> None:
        """Exchange weights, for all clients."""
        self._lease.service.update_weights(weights)

    def derived(self, weights: list[list[Tensor]]) -> Hosted:
        """Of this client alone: it has no name."""
        return self._lease.service.derived(weights)

    def close(self, drain_s: float | None) -> None:
        """Give up this client's share; the last one closes the model."""
        self._lease.release(drain_s)


def _stamp(path: str) -> tuple[int, ...]:
    """What tells a file from another of the same path; () where there is none."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def named(build: Build) -> tuple[str, str, float]:
    """Name and version that a client gives a model, "" for none, and how long its build may take.

    Raises:
        InputError: They cannot be a name.
    """
    try:
        layers = read_layers("build_from_file", build.config_path, build.config)
    except ModelFileError:  # the build says what is wrong with it
        return "", "", 0.0
    spec = settle(from_map(others(build.settings)), layers)
    name, version = spec.name.strip(), spec.version.strip()
    for key, text in ((NAME, name), (VERSION, version)):
        if len(text) > _MOST_CHARACTERS or not text.isprintable():
            raise InputError(
                f"[{SECTION}] {key} is {text[:40]!r}, wanted up to {_MOST_CHARACTERS} printable "
                "characters"
            )
    if version and not name:
        raise InputError(f"[{SECTION}] {VERSION} is {version!r}, but there is no {NAME}; add one")
    return name, version, spec.budget.max_seconds


def _flat(build: Build) -> dict[str, str]:
    return {
        f"[{section}] {key}": value
        for section, pairs in build.config.items()
        for key, value in pairs.items()
    }
