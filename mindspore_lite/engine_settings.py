"""Which engine runs a model, where, and how exactly: a Context and a configuration go in.

    section            key               values                                    default
    common_context     engine            onnxruntime, openvino, torch, auto        of the target
                       profile           a path: what each operator took, as a     none
                                         Chrome trace, written by Model.close()
    gpu_context        precision_mode    enforce_fp32, preferred_fp16,             context.gpu's
                                         preferred_bf16
    ascend_context     precision_mode    the five of context.ascend                context.ascend's
    cpu_context        precision_mode    as gpu_context; preferred_bf16 with       context.cpu's
                                         engines openvino and torch only
    the three          allow_tf32        true, false                               true
                       tuning            fast, full, off                           fast; cpu: off
                       batch_buckets     numbers of rows, such as 1,2,4,8          see placing

A configuration counts before the Context: it is about one model, a Context may serve many, and
preferred_bf16 can only be said there. Only the section of the target in use is read; other keys in
it are those of the original, and have no effect.
"""

from __future__ import annotations

import os
import warnings
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache

from mindspore_lite.config import Sections
from mindspore_lite.context import Context
from mindspore_lite.core.budget import DEFAULT, Budget, budget_of
from mindspore_lite.engines import ascend, choice
from mindspore_lite.engines.base import Options
from mindspore_lite.engines.choice import Choice
from mindspore_lite.engines.select import AUTO, ENGINES, installed
from mindspore_lite.errors import EngineError, LiteError
from mindspore_lite.graph.source import Given, source_of

TUNINGS = ("fast", "full", "off")
_MOST_ROWS = 65536  # of a bucket; guess: a greater number is a slip of the pen
_MOST_BUCKETS = 64  # each is compiled on its own; guess

_FLOATS = {name: name for name in ("enforce_fp32", "preferred_fp16", "preferred_bf16")}
# force_fp32, allow_fp32_to_fp16, must_keep_origin_dtype; force_fp16, allow_mix_precision: of an
# Ascend compiler. A graph for torch keeps float32 unless it is told to compute in float16.
_ASCEND = {
    "enforce_fp32": "enforce_fp32",
    "preferred_fp32": "enforce_fp32",
    "enforce_origin": "enforce_fp32",
    "enforce_fp16": "preferred_fp16",
    "preferred_optimal": "preferred_fp16",
}
_ASCEND_DEFAULT = "enforce_fp16"  # as the original's compiler has it
_KINDS = {"gpu": "cuda", "ascend": "npu"}


@dataclass(frozen=True)
class EngineSettings:
    """Where and how a model is computed, settled."""

    target: str
    engine: str = ""  # of ENGINES; "" is the one of the target
    kind: str = "cpu"  # as torch names a kind of devices: cpu, cuda, npu
    number: int = 0  # the device of that kind
    precision: str = "enforce_fp32"
    tf32: bool = True
    tuning: str = "fast"
    batches: tuple[int, ...] = ()  # numbers of rows to prepare; (): nobody said
    profile: str = ""  # the absolute path that a trace of what operators take goes to
    budget: Budget = DEFAULT  # of the build
    measured: Choice | None = None  # what engine=auto found; it counts where the user said nothing

    @property
    def on_card(self) -> bool:
        """Whether the model is computed elsewhere than on the CPU."""
        return self.kind != "cpu"

    def applied(self, options: Options, number: int | None = None) -> Options:
        """Options for one session, on the given device or the one of the context."""
        device = f"{self.kind}:{self.number if number is None else number}"
        return replace(
            options,
            precision=self.precision,
            device=device if self.on_card else "cpu",
            tf32=self.tf32,
            tuning=self.tuning,
            batches=self.batches,
            profile=self.profile,
            max_seconds=self.budget.max_seconds,
        )


def engine_settings(context: Context, sections: Sections) -> EngineSettings:
    """What a context and a configuration say together.

    Raises:
        EngineError: A value is none of those that are known.
    """
    target = context.target[0].lower()
    entries = _Entries(f"{target}_context", sections.get(f"{target}_context", {}))
    common = _Entries("common_context", sections.get("common_context", {}))
    engine = common.word("engine", (*ENGINES, AUTO))
    kind = _KINDS.get(target, "cpu")
    precision = _precision(context, target, entries)
    can_bf16 = engine in ("openvino", "torch")
    if target == "cpu" and not can_bf16 and precision == "preferred_bf16":
        raise EngineError(
            "[cpu_context] precision_mode is 'preferred_bf16', which on the CPU takes "
            "[common_context] engine=openvino or torch; set that, or use enforce_fp32 or "
            "preferred_fp16"
        )
    if target == "ascend" and ascend.emulated():  # the CPU stands in, with its own precision
        kind, precision = "cpu", context.cpu.precision_mode
    profile = common.text("profile")
    if profile and (kind != "cpu" or engine not in (None, "onnxruntime")):
        raise EngineError(
            f"[common_context] profile is {profile!r}, but only ONNX Runtime writes one; leave it "
            "out, or run on target 'cpu' without another engine"
        )
    return EngineSettings(
        target=target,
        engine=engine or "",
        kind=kind,
        number=own_device(context),
        precision=precision,
        tf32=entries.word("allow_tf32", ("true", "false")) != "false",
        tuning=entries.word("tuning", TUNINGS) or ("off" if kind == "cpu" else "fast"),
        batches=entries.numbers("batch_buckets"),
        profile=os.path.abspath(profile) if profile else "",
        budget=budget_of(sections),
    )


def settled(settings: EngineSettings, given: Given) -> EngineSettings:
    """The settings with an engine in place of `auto`: what was measured for the model, if any."""
    if settings.engine != AUTO:
        return settings
    found = None
    if settings.target == "cpu":
        with suppress(LiteError, OSError, KeyError):  # the build says what is wrong with the model
            found = choice.recall(source_of(given))
    if found is not None and not installed(found.engine):
        _warn_of_missing(found.engine)
        found = None
    return replace(settings, engine="" if found is None else found.engine, measured=found)


@cache
def _warn_of_missing(engine: str) -> None:
    """Once per process."""
    warnings.warn(
        f"engine=auto: {engine} was measured to be the fastest, but is not installed; taking "
        "onnxruntime",
        RuntimeWarning,
        stacklevel=6,
    )


def own_device(context: Context) -> int:
    """The number of the card that the first target of a context names; 0 on the CPU."""
    owners = {"gpu": context.gpu.device_id, "ascend": context.ascend.device_id}
    return owners.get(context.target[0].lower(), 0)


def _precision(context: Context, target: str, entries: _Entries) -> str:
    known = _ASCEND if target == "ascend" else _FLOATS
    said = {
        "cpu": context.cpu.precision_mode,
        "gpu": context.gpu.precision_mode,
        "ascend": context.ascend.precision_mode or _ASCEND_DEFAULT,
    }
    return known[entries.word("precision_mode", tuple(known)) or said[target]]


@dataclass(frozen=True)
class _Entries:
    """One section, whose values are checked as they are asked for."""

    section: str
    entries: dict[str, str]

    def word(self, key: str, known: tuple[str, ...]) -> str | None:
        """A value that must be one of the known words; None when nothing is said."""
        text = self._text(key)
        if not text:
            return None
        if text.lower() not in known:
            raise self._wrong(key, text, f"one of {', '.join(known)}")
        return text.lower()

    def numbers(self, key: str) -> tuple[int, ...]:
        """Numbers with commas between them, smallest first, each once; () when nothing is said."""
        text = self._text(key)
        if not text:
            return ()
        parts = [part.strip() for part in text.split(",")]
        fit = all(p.isascii() and p.isdecimal() and len(p) <= len(str(_MOST_ROWS)) for p in parts)
        found = sorted({int(part) for part in parts}) if fit else [0]
        if not 1 <= found[0] <= found[-1] <= _MOST_ROWS or len(found) > _MOST_BUCKETS:
            wanted = f"up to {_MOST_BUCKETS} numbers of 1 to {_MOST_ROWS}, such as 1,2,4,8"
            raise self._wrong(key, text, wanted)
        return tuple(found)

    def text(self, key: str) -> str:
        """A value as it is; "" when nothing is said."""
        return self.entries.get(key, "").strip().strip('"')

    def _text(self, key: str) -> str:
        return self.text(key).strip("[]")

    def _wrong(self, key: str, text: str, wanted: str) -> EngineError:
        return EngineError(f"[{self.section}] {key} is {text[:80]!r}, wanted {wanted}")
