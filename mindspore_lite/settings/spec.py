"""Spec: everything that decides how a model is served, settled once, with where it came from.

One rule says what counts: a configuration (the dict before the file) before the Context before what
was measured before the default, because a configuration is about one model and a Context may serve
many. Rows of the table with `context_first` have the Context before the configuration, as programs
rely on. Where both say different things, a warning says which counts.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from mindspore_lite.context import Context
from mindspore_lite.core.budget import Budget
from mindspore_lite.core.capabilities import ENGINES, named, those_that
from mindspore_lite.errors import EngineError
from mindspore_lite.settings.environment import emulated
from mindspore_lite.settings.kinds import cleaned
from mindspore_lite.settings.names import canonical, without_effect
from mindspore_lite.settings.read import Layer
from mindspore_lite.settings.table import AUTO, KEYS, Key
from mindspore_lite.settings.weights import WeightSettings, weight_settings

DEFAULT, CONTEXT, ENVIRONMENT, MEASURED = "default", "context", "environment", "measured"

# A graph for torch keeps float32 unless it is told to compute in float16. The names on the left are
# those of an Ascend compiler: force_fp32, allow_fp32_to_fp16, must_keep_origin_dtype; force_fp16,
# allow_mix_precision.
_ASCEND = {
    "enforce_fp32": "enforce_fp32",
    "preferred_fp32": "enforce_fp32",
    "enforce_origin": "enforce_fp32",
    "enforce_fp16": "preferred_fp16",
    "preferred_optimal": "preferred_fp16",
}
_DEVICES = {"gpu": "cuda", "ascend": "npu"}


@dataclass(frozen=True)
class Settled:
    """One setting: its value, and where it came from."""

    key: Key
    value: Any
    source: str = DEFAULT
    section: str = ""  # of the configuration, where it came from one


@dataclass(frozen=True)
class Spec:
    """How a model is served. Numbers that are 0 are automatic, or off."""

    targets: tuple[str, ...]
    engine: str  # a name of core/capabilities.py; "" is the one of the target
    device_kind: str  # as torch names it: cpu, cuda, npu
    device_id: int
    device_ids: tuple[int, ...]
    precision: str
    allow_tf32: bool
    tuning: str
    batch_buckets: tuple[int, ...]
    profile: str  # an absolute path
    bfloat16: str  # float32: computed in that; strict: rounded after each operator
    workers_num: int
    thread_num: int
    inter_op_parallel_num: int
    thread_affinity_mode: int
    thread_affinity_core_list: tuple[int, ...]
    queue_size: int
    timeout_s: float
    max_batch_rows: int
    max_batch_wait_us: int
    warm_up: bool
    input_shape: str  # what [ascend_context] says of the inputs, to be checked
    dynamic_dims: str
    mindir_path: Path | None  # beside which file the weights lie
    name: str  # by which the clients of a worker share the model
    version: str
    budget: Budget
    weights: WeightSettings
    settled: Mapping[str, Settled] = field(compare=False, repr=False)  # by Key.id
    without_effect: tuple[str, ...] = field(compare=False, repr=False)

    @property
    def target(self) -> str:
        """The target that decides."""
        return self.targets[0]

    @property
    def on_card(self) -> bool:
        """Whether the model is computed elsewhere than on the CPU."""
        return self.device_kind != "cpu"

    @property
    def is_bound(self) -> bool:
        """Whether threads keep to cores."""
        return bool(self.thread_affinity_mode or self.thread_affinity_core_list)

    @property
    def has_chosen_workers(self) -> bool:
        """Whether the user said how many; what was measured is not said."""
        return bool(self.workers_num and self.settled["parallel.workers_num"].source != MEASURED)

    def with_measured(self, values: Mapping[str, Any]) -> Spec:
        """The same with measured values of settings, by their ids."""
        found = {
            id: replace(self.settled[id], value=v, source=MEASURED) for id, v in values.items()
        }
        fields = {self.settled[id].key.name: value for id, value in values.items()}
        return replace(self, settled={**self.settled, **found}, **fields)


def settle(
    context: Context | None = None, layers: Sequence[Layer] = (), *, stacklevel: int = 2
) -> Spec:
    """What a context and configurations say together, the first configuration counting first.

    Warnings are of the caller; `stacklevel` is that of warnings.warn, for callers further up.

    Raises:
        EngineError: A name in a configuration is a slip of the pen, or a value makes no sense.
        ModelFileError: A file of names of weights cannot be read.
    """
    context = Context() if context is None else context
    target = context.target[0].lower()
    unread = without_effect(layers)
    layers = [replace(layer, sections=_renamed(layer)) for layer in layers]
    found = {}
    for key in KEYS:
        if key.target not in ("", target):
            continue
        said, asked = _from_layers(key, layers), _from_context(key, context)
        first, second = (asked, said) if key.context_first else (said, asked)
        is_open = key.context_first and second and not second.value  # 0 leaves it to the other
        if first and second and first.value != second.value and not is_open:
            warnings.warn(_conflict(first, second), UserWarning, stacklevel=stacklevel)
        found[key.id] = first or second or Settled(key, key.default)
    if target == "ascend" and emulated():  # the CPU stands in, with its own precision
        found |= _of_emulation(found, context)
    return _spec(context, found, unread, next((layer.path for layer in layers if layer.path), ""))


def _renamed(layer: Layer) -> dict[str, dict[str, str]]:
    return {canonical(name): entries for name, entries in layer.sections.items()}


def _from_layers(key: Key, layers: Sequence[Layer]) -> Settled | None:
    """What the first configuration that names a setting says; None where none does."""
    for layer in layers:
        for section in key.sections:
            text = layer.sections.get(section, {}).get(key.name)
            if text is None or (key.kind.takes_nothing and not cleaned(text)):
                continue
            try:
                value = key.kind.read(cleaned(text))
            except (ValueError, KeyError):
                shown, wanted = cleaned(text)[:80], key.kind.wanted
                raise EngineError(f"[{section}] {key.name} is {shown!r}, wanted {wanted}") from None
            return Settled(key, value, layer.source, section)
    return None


def _from_context(key: Key, context: Context) -> Settled | None:
    """What the Context says; None where nobody set it, or left it automatic."""
    part, _, name = key.context.rpartition(".")
    if not name:
        return None
    owner = getattr(context, part) if part else context
    value = getattr(owner, name)
    if name not in vars(owner) or (key.context_first and not value):
        return None
    return Settled(key, value, CONTEXT)


def _conflict(first: Settled, second: Settled) -> str:
    def where(said: Settled) -> str:
        if not said.section:
            return f"context.{said.key.context}"
        return f"[{said.section}] {said.key.name} ({said.source})"

    return (
        f"{where(first)} is {first.value!r} and {where(second)} is {second.value!r}; the first "
        "counts, leave one of them out"
    )


def _of_emulation(found: Mapping[str, Settled], context: Context) -> dict[str, Settled]:
    precision, tuning = found["ascend.precision_mode"], found["ascend_context.tuning"]
    cpu = context.cpu.precision_mode
    changed = {"ascend.precision_mode": replace(precision, value=cpu, source=ENVIRONMENT)}
    if tuning.source == DEFAULT:
        changed["ascend_context.tuning"] = replace(tuning, value="off", source=ENVIRONMENT)
    return changed


def _spec(
    context: Context, found: Mapping[str, Settled], unread: tuple[str, ...], config_path: str
) -> Spec:
    values = {one.key.name: one.value for one in found.values()}
    values = {name: tuple(v) if isinstance(v, list) else v for name, v in values.items()}
    target = context.target[0].lower()
    is_emulated = any(one.source == ENVIRONMENT for one in found.values())
    kind = "cpu" if is_emulated else _DEVICES.get(target, "cpu")
    precision = values["precision_mode"]
    settled: dict[str, Any] = {
        "targets": tuple(one.lower() for one in context.target),
        "device_kind": kind,
        "device_id": 0,
        "input_shape": "",
        "dynamic_dims": "",
        "precision": _ASCEND[precision] if kind == "npu" else precision,
        **{one.name: values[one.name] for one in fields(Spec) if one.name in values},
        "profile": os.path.abspath(values["profile"]) if values["profile"] else "",
        "mindir_path": Path(values["mindir_path"]).absolute() if values["mindir_path"] else None,
        "budget": Budget(**{one.name: values[one.name] for one in fields(Budget)}),
        "weights": weight_settings(values.__getitem__, config_path),
    }
    spec = Spec(**settled, settled=found, without_effect=unread)
    _check(spec)
    return spec


def _check(spec: Spec) -> None:
    """Refuse settings that do not go together."""
    engine, precision = named(spec.engine), spec.precision
    is_named = spec.engine not in ("", AUTO)  # else engines/short_floats.py looks for one
    if spec.target == "cpu" and is_named and precision not in engine.cpu_precisions:
        able = those_that(lambda one: precision in one.cpu_precisions)
        raise EngineError(
            f"[cpu_context] precision_mode is {precision!r}, which on the CPU takes "
            f"[common_context] engine={able}; set that, or use "
            f"{' or '.join(engine.cpu_precisions)}"
        )
    if spec.profile and (spec.on_card or not engine.profiles):
        said = spec.settled["common_context.profile"].value
        able = " and ".join(one.title for one in ENGINES.values() if one.profiles)
        raise EngineError(
            f"[common_context] profile is {said!r}, but only {able} writes one; leave it "
            "out, or run on target 'cpu' without another engine"
        )
