"""What `benchmark` was asked to do, as checked values, and the Context for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mindspore_lite.cli.benchmark_dump import Dump
from mindspore_lite.context import Context
from mindspore_lite.conversion.shape_text import Sizes

COSINE_OFF = -1.1  # thresholds from -1 up count


@dataclass(frozen=True)
class Clients:
    """Several clients that use one model at once."""

    count: int
    tasks: int  # of each; -1 has no end
    workers: int


@dataclass(frozen=True)
class Place:
    """Where and how a model is computed."""

    device: str  # CPU, GPU or Ascend
    number: int
    provider: str
    threads: int
    inter_op: int
    binding: int  # of BINDINGS
    core_list: tuple[int, ...]
    fp16: bool


@dataclass(frozen=True)
class Limits:
    """What an output may differ by."""

    percent: float  # mean bias, at most
    cosine: float  # at least; counts from -1 up


@dataclass(frozen=True)
class Asked:
    """What the flags ask for, settled."""

    flags: Mapping[str, str]  # as they were given
    model: Path
    model_type: str  # of MODEL_TYPES
    files: tuple[str, ...]  # of the inputs; (): random ones
    shapes: Sizes  # by name, or by place as "0", "1" and so on
    by_place: bool
    place: Place
    limits: Limits
    loops: int
    warm_ups: int
    trace: str  # where the profile goes; "": nowhere
    key: bytes | None = field(repr=False)
    clients: Clients | None
    dump: Dump | None
    notes: tuple[str, ...]  # what the user should know

    @property
    def reference(self) -> str:
        """The file of expected outputs; "" when times are wanted instead."""
        return self.flags.get("benchmarkDataFile", "")

    @property
    def config(self) -> str:
        """The configuration file, or ""."""
        return self.flags.get("configFile", "")


def context_of(asked: Asked) -> Context:
    """The Context that a user would write for it."""
    context, place = Context(), asked.place
    context.target = [place.device.lower()]
    context.gpu.device_id = context.ascend.device_id = place.number
    if place.device == "Ascend" and place.provider == "ge":
        context.ascend.provider = "ge"
    if place.device == "CPU":
        context.cpu.thread_num = place.threads
        context.cpu.inter_op_parallel_num = place.inter_op
        context.cpu.thread_affinity_mode = place.binding
        context.cpu.thread_affinity_core_list = list(place.core_list)
    if place.fp16:
        context.cpu.precision_mode = context.gpu.precision_mode = "preferred_fp16"
        context.ascend.precision_mode = "enforce_fp16"
    if asked.clients is not None:
        context.parallel.workers_num = asked.clients.workers
        context.parallel.config_path = asked.config
        context.parallel.warm_up = place.device != "CPU"  # cards compile what will be joined
    return context
