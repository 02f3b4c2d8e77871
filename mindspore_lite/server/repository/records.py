"""What is known of a model before it is loaded: its versions on disk, and how to serve it.

A ServeConfig says in our terms what config.pbtxt (pbtxt.py) or model.ini (model_ini.py) says. The
defaults are those of a model that has neither.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mindspore_lite.core.tensor_info import ANY_RANK


@dataclass(frozen=True)
class VersionPolicy:
    """Which versions of a model are served: the newest ones, all, or some by their numbers."""

    latest: int = 0  # so many of the newest
    all: bool = False
    specific: tuple[str, ...] = ()

    def of(self, versions: Mapping[str, object]) -> list[str]:
        """Those of the versions that count, the newest last."""
        rising = sorted(versions, key=int)
        if self.all:
            return rising
        if self.specific:
            return [version for version in rising if version in self.specific]
        return rising[-self.latest :] if self.latest else []


NEWEST = VersionPolicy(latest=1)


@dataclass(frozen=True)
class Declared:
    """An input or output as a configuration declares it; a dim of -1 is any size.

    Attributes:
        name: Of the tensor.
        datatype: The protocol's name of its type; "" says nothing of it.
        dims: Without the batch where the model has a max_batch_size; None says nothing of them.
        layout: What Triton calls its format, such as FORMAT_NCHW; clients read it.
        label_file: Of an output: where its labels are from.
    """

    name: str
    datatype: str = ""
    dims: tuple[int, ...] | None = None
    layout: str = ""
    label_file: str = ""


@dataclass(frozen=True)
class WarmUpInput:
    """What one input of a warm-up holds: zeros, made-up values, or the bytes of a file."""

    datatype: str
    dims: tuple[int, ...]  # without the batch where there is one
    kind: str  # "zero_data", "random_data" or "input_data_file"
    data: bytes = field(default=b"", repr=False)  # of the file
    file: str = ""  # its name


@dataclass(frozen=True)
class WarmUp:
    """A request that every worker computes before the model is ready."""

    name: str
    inputs: Mapping[str, WarmUpInput]
    batch_size: int = 0  # 0: the model has no batch
    count: int = 1


@dataclass(frozen=True)
class ServeConfig:
    """How to serve a model, beyond what the server was told.

    Attributes:
        max_batch_size: If it is not 0, the first dim of every input and output is the batch, and a
            request has 1 to so many rows.
        labels: Of classes, by output.
        policy: Which versions are served.
        settings: Sections and keys of settings/, on top of the server's own configuration.
        context: Fields of the Context by their names in settings/text.py, such as `target`.
        warm_ups: What to compute before the model is ready.
        isolation: "thread", "process", or "" for the server's own choice.
        share: Of the cores, against other models.
        cache_bytes: Of the response cache; 0 is off.
        evictable: Whether it may be unloaded while nobody uses it.
        inputs: What the model must take.
        outputs: What it must give.
        parameters: As they stand in the file, for the model configuration.
        file: The name of the model file in a version's folder; "" is the usual one.
        name: Which the file gives the model; "" if it does not.
        source: The name of the file that all this is from; "" without one.
        ignored: Keys of that file that have no meaning here.
    """

    max_batch_size: int = 0
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    policy: VersionPolicy = NEWEST
    settings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    context: Mapping[str, str] = field(default_factory=dict)
    warm_ups: tuple[WarmUp, ...] = ()
    isolation: str = ""
    share: float = 1.0
    cache_bytes: int = 0
    evictable: bool = False
    inputs: tuple[Declared, ...] = ()
    outputs: tuple[Declared, ...] = ()
    parameters: Mapping[str, str] = field(default_factory=dict)
    file: str = ""
    name: str = ""
    source: str = ""
    ignored: tuple[str, ...] = ()

    def shape_of(self, tensor: str, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape that clients see of a tensor: with the sizes that are declared for open ones.

        Whoever started the model has checked that both go together (apply.py).
        """
        for said in (*self.inputs, *self.outputs):
            if said.name == tensor and said.dims is not None:
                batch = (-1,) if shape == ANY_RANK else shape[:1]
                return (*batch, *said.dims) if self.max_batch_size else said.dims
        return shape


PLAIN = ServeConfig()  # of a model without a file that says more


@dataclass(frozen=True)
class ModelEntry:
    """A model as it lies on disk.

    Attributes:
        name: Under which it is served.
        versions: The main model file of each, by its number as text.
        config: How to serve it.
        fault: Why it cannot be served; "" if it can. Other models can.
        stamp: Changes when anything of it changes on disk.
    """

    name: str
    versions: Mapping[str, Path] = field(default_factory=dict)
    config: ServeConfig = PLAIN
    fault: str = ""
    stamp: object = None


def chosen(entry: ModelEntry) -> list[str]:
    """The versions of a model that its policy asks for and that are there, the newest last."""
    return [] if entry.fault else entry.config.policy.of(entry.versions)
