"""Remembers the engine and settings measured to be best for a model, for engine=auto.

    <cache>/choices/<key>.json    a Choice and the Evidence for it; the key is of the model's
                                  content and of the machine

`mslite bench --tune` measures and calls `remember`; a build with engine=auto calls `recall`. A note
that is damaged, was not made here, or rests on too few requests, counts as none. Notes hold no code
and no weights: a wrong one can at worst make a model slower.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from functools import cache as once
from pathlib import Path
from typing import Any, TypeVar

from mindspore_lite.core.capabilities import ENGINES, named
from mindspore_lite.core.json_text import read_json
from mindspore_lite.core.machine import cpu_name
from mindspore_lite.engines import short_floats
from mindspore_lite.engines.base import ModelSource
from mindspore_lite.engines.cache import digest
from mindspore_lite.engines.cache import store as cache
from mindspore_lite.engines.select import AUTO, installed
from mindspore_lite.errors import LiteError
from mindspore_lite.graph.source import ModelInput, source_of
from mindspore_lite.settings.spec import Spec

T = TypeVar("T")

_FOLDER = "choices"
_MOST_NOTES = 1000  # the oldest go beyond; guess, some 100 bytes each
LEAST_REQUESTS, LEAST_ROUNDS = 100, 5  # without a hundred requests there is no p99; guess
_MOST = 65536  # of any number in a note; guess: a greater one is damage


@dataclass(frozen=True)
class Choice:
    """An engine of the CPU, and how a ModelParallelRunner uses it; 0 is automatic, or off."""

    engine: str
    workers: int = 0
    threads: int = 0
    max_batch_rows: int = 0
    max_batch_wait_us: int = 0


@dataclass(frozen=True)
class Evidence:
    """What a choice rests on: how often it was measured, and how sure its gain is."""

    requests: int
    rounds: int  # in turn with the automatic settings
    gain: float | None  # at least, with 95 % confidence; None: it is the automatic settings


def why_too_little(evidence: Evidence) -> str:
    """Why nothing should be remembered; "" where it may be."""
    if evidence.requests < LEAST_REQUESTS or evidence.rounds < LEAST_ROUNDS:
        return (
            f"{evidence.requests} requests in {evidence.rounds} rounds say too little, wanted "
            f"{LEAST_REQUESTS} in {LEAST_ROUNDS} or more"
        )
    if evidence.gain is not None and not evidence.gain > 1:
        return f"it may be no better than the automatic settings (gain {evidence.gain:.2f})"
    return ""


def remember(source: ModelSource, choice: Choice, evidence: Evidence) -> bool:
    """Keep a choice for a model on this machine, in place of the one before.

    Args:
        source: The model, as `source_of(ModelInput(...))` makes it.
        choice: What was measured to be best.
        evidence: What that rests on.

    Returns:
        Whether it is kept. False: the cache is off or unusable, or the model is in memory and
        encrypted, and so has nothing to be known by.

    Raises:
        ValueError: The choice names no engine of the CPU, or a number that cannot be; or the
            evidence is too little.
    """
    if reason := why_too_little(evidence):
        raise ValueError(reason)
    if _checked(asdict(choice)) != choice:
        raise ValueError(
            f"{choice} is no choice, wanted an engine of {tuple(ENGINES)} and numbers from 0"
        )
    store = cache.usable()
    key = None if store is None else _key(source, store)
    if store is None or key is None:
        return False
    folder = store.place / _FOLDER
    part = folder / f"{key}.{secrets.token_hex(4)}.part"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        part.write_text(json.dumps({"choice": asdict(choice), "evidence": asdict(evidence)}))
        os.replace(part, folder / f"{key}.json")
        _forget_old(folder)
    except OSError:
        with suppress(OSError):
            part.unlink()
        return False
    return True


def recall(source: ModelSource) -> Choice | None:
    """What was remembered for a model on this machine; None when nothing, or nothing sound."""
    store = cache.usable(quietly=True)
    key = None if store is None else _key(source, store)
    if store is None or key is None:
        return None
    try:
        return _trusted(read_json((store.place / _FOLDER / f"{key}.json").read_bytes()))
    except (OSError, ValueError):
        return None


def settled(spec: Spec, given: ModelInput) -> Spec:
    """The spec with an engine that fits: what was measured for `auto`, what computes in 16 bits.

    Settling it once more changes nothing.
    """
    return short_floats.fitted(_measured(spec, given))


def made_by(spec: Spec, given: ModelInput, make: Callable[[Spec], T]) -> tuple[Spec, T]:
    """The settled spec, and what `make` makes of it.

    An engine that was picked for its 16 bits may lack an operator of the model, or compute it more
    slowly: then the usual one computes it, in float32, with a warning.
    """
    found = settled(spec, given)
    if not short_floats.is_picked(found):
        return found, make(found)
    try:
        return found, make(found)
    except LiteError as exc:
        plain = replace(found, engine="", precision=short_floats.PLAIN)
        made = make(plain)  # a fault of the model or of other settings is raised again
        warnings.warn(
            f"[cpu_context] precision_mode is {spec.precision!r}, but {found.engine}, which "
            f"computes in 16 bits, is not for the model; {named('').name} computes it in float32. "
            f"Leave precision_mode out to go without this attempt. The error was: {exc}",
            UserWarning,
            stacklevel=5,
        )
        return plain, made


def _measured(spec: Spec, given: ModelInput) -> Spec:
    """The spec with an engine in place of `auto`: what was measured for the model, if any.

    Measured numbers count where the user said nothing of workers, threads and cores, or of batches.
    """
    if spec.engine != AUTO:
        return spec
    found = None
    if spec.target == "cpu":
        with suppress(LiteError, OSError, KeyError):  # the build says what is wrong with the model
            found = recall(source_of(given))
    if found is not None and not installed(found.engine):
        _warn_of_missing(found.engine)
        found = None
    if found is None:
        return replace(spec, engine="")
    values: dict[str, Any] = {"common_context.engine": found.engine}
    sizes = (spec.workers_num, spec.thread_num, spec.inter_op_parallel_num, spec.is_bound)
    if not any(sizes):
        values |= {"parallel.workers_num": found.workers, "cpu.thread_num": found.threads}
    if not (spec.max_batch_rows or spec.max_batch_wait_us):
        names = ("max_batch_rows", "max_batch_wait_us")
        values |= {f"parallel.{name}": getattr(found, name) for name in names}
    return spec.with_measured(values)


@once
def _warn_of_missing(engine: str) -> None:
    """Once per process."""
    warnings.warn(
        f"engine=auto: {engine} was measured to be the fastest, but is not installed; taking "
        f"{named('').name}",
        RuntimeWarning,
        stacklevel=8,
    )


def _trusted(note: Any) -> Choice | None:
    """The choice of a note that rests on enough; earlier editions kept notes without evidence."""
    if not isinstance(note, dict) or note.keys() != {"choice", "evidence"}:
        return None
    found = note["evidence"]
    if not isinstance(found, dict) or found.keys() != {one.name for one in fields(Evidence)}:
        return None
    numbers = [found["requests"], found["rounds"], found["gain"] or 0.0]
    if not all(type(number) in (int, float) for number in numbers):
        return None
    return None if why_too_little(Evidence(**found)) else _checked(note["choice"])


def _checked(found: Any) -> Choice | None:
    """A note as a Choice, if it is one."""
    names = {field.name for field in fields(Choice)}
    if (
        not isinstance(found, dict)
        or found.keys() != names
        or found["engine"] not in tuple(ENGINES)
    ):
        return None
    numbers = [found[name] for name in names - {"engine"}]
    if not all(type(number) is int and 0 <= number <= _MOST for number in numbers):
        return None
    return Choice(**found)


def _key(source: ModelSource, store: cache.Cache) -> str | None:
    """The name of a model's note; None where nothing distinguishes the model."""
    content = digest.read(source.snapshot, store.seen)
    if not content.sha256 and not source.digests:
        return None
    parts = [*source.digests, *content.sha256, _machine()]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _machine(proc_root: Path = Path("/proc")) -> str:
    """The kind of CPU, and how many cores of it this process may use."""
    return f"{cpu_name(proc_root)}, {len(os.sched_getaffinity(0))} cores"


def _forget_old(folder: Path) -> None:
    notes = sorted(os.scandir(folder), key=lambda e: e.stat(follow_symlinks=False).st_mtime)
    for note in notes[: max(0, len(notes) - _MOST_NOTES)]:
        os.unlink(note.path)
