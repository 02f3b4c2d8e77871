"""Chooses the engine that serves a target, and imports its runtime."""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
from contextlib import suppress
from types import ModuleType

from mindspore_lite.core.capabilities import ENGINES, Capabilities, named
from mindspore_lite.engines import ascend
from mindspore_lite.engines.base import Engine
from mindspore_lite.errors import EngineError, EngineUnavailableError
from mindspore_lite.settings.table import AUTO as AUTO
from mindspore_lite.settings.table import TARGETS


def engine_for(target: str, engine: str = "", device: int = 0) -> Engine:
    """The engine of a target; its runtime is imported here, not before.

    Args:
        target: "cpu", "gpu" or "ascend".
        engine: One of ENGINES; "" and AUTO are the usual one of the target.
        device: The card, which must be there.

    Raises:
        EngineUnavailableError: A package or a card is missing; the text says what to do.
        EngineError: The target cannot be served by that engine.
    """
    name = target.lower()
    if name not in TARGETS:
        raise ValueError(f"target is {target!r}, wanted 'cpu', 'gpu' or 'ascend'")
    on_card = name == "gpu" or (name == "ascend" and not ascend.emulated())
    wanted = named(engine, on_card)
    if on_card and not wanted.serves_cards:
        raise EngineError(
            f"[common_context] engine is {engine!r}, but target {name!r} is served by engine "
            f"{named('', on_card).name!r} alone; leave the entry out, or use target 'cpu'"
        )
    if name == "ascend":
        ascend.require()
    if on_card:
        _module(wanted, "cards").check(f"{'cuda' if name == 'gpu' else 'npu'}:{device}")
    try:
        _runtime(wanted)
    except (ImportError, OSError) as exc:  # the second: libraries of it are missing
        is_usual = wanted is named("")
        raise EngineUnavailableError(
            f"{f'target {name!r}' if is_usual else f'engine {wanted.name!r}'} needs "
            f"{wanted.title}, which cannot be imported ({exc}): {wanted.install}"
            f"{'' if is_usual else ', or leave [common_context] engine out'}"
        ) from exc
    found: Engine = _module(wanted, "engine").ENGINE()
    return found


def _module(engine: Capabilities, name: str) -> ModuleType:
    """A module of an engine's folder."""
    return importlib.import_module(f"mindspore_lite.engines.{engine.name}.{name}")


def _runtime(engine: Capabilities) -> ModuleType:
    """The package of an engine, imported alone: a fault of ours must not look like its."""
    importlib.import_module(f"mindspore_lite.engines.{engine.name}")  # which may set its variables
    return importlib.import_module(engine.package)


def installed(engine: str) -> bool:
    """Whether the package of an engine is there; it is not loaded."""
    return importlib.util.find_spec(ENGINES[engine].package) is not None


def usable_targets() -> list[str]:
    """The targets for which a model can be built here."""
    found = []
    for target in TARGETS:
        if target == "gpu" and not has_driver():
            continue
        with suppress(EngineUnavailableError):
            engine_for(target)
            found.append(target)
    return found


def has_driver() -> bool:
    """Whether NVIDIA's driver and the engine of cards are here; to ask the latter takes seconds."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return installed(named("", on_card=True).name)


def available() -> list[tuple[str, str | None, str]]:
    """(engine, version or None, what it serves or why it is missing) of every engine."""
    found: list[tuple[str, str | None, str]] = []
    for name, one in ENGINES.items():
        try:
            version = str(_runtime(one).__version__).partition("-")[0]  # not its build's names
        except (ImportError, OSError) as exc:
            serves = "targets gpu and ascend" if one.serves_cards else "target cpu"
            reason = f"{serves}: cannot be imported ({exc}): {one.install}"
            found.append((name, None, reason))
            continue
        serves = "target cpu" if one is named("") else f"target cpu with engine={name}"
        if one.serves_cards:
            serves = f"targets gpu and ascend, {serves.removeprefix('target ')}"
        found.append((name, version, serves))
    return found
