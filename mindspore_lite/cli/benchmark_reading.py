"""Reads the flags and environment of `benchmark` into a checked record."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from mindspore_lite.cli.benchmark_asked import COSINE_OFF, Asked, Clients, Limits, Place
from mindspore_lite.cli.benchmark_dump import Dump, read_dump
from mindspore_lite.cli.benchmark_flags import (
    DATA_TYPES,
    DEVICES,
    EVENTS,
    IDLE,
    MODEL_TYPES,
    PROVIDERS,
)
from mindspore_lite.cli.key_text import key_text
from mindspore_lite.conversion.job import Reading, hex_key
from mindspore_lite.conversion.shape_text import Sizes, parse_shapes
from mindspore_lite.core import cores
from mindspore_lite.engines.select import usable_targets
from mindspore_lite.errors import SettingsError
from mindspore_lite.settings.formats import model_kind

_MOST = 2**31 - 1  # of a whole number
_MOST_CLIENTS = 1024  # guess: a greater number is a slip of the pen


def _type_of(model: Path) -> str:
    kind = model_kind(model)
    return next(word for word, known in MODEL_TYPES.items() if known.name == kind)


def asked_of(flags: Mapping[str, str], environment: Mapping[str, str]) -> Asked:
    """The record of some flags.

    Raises:
        SettingsError: Everything that is wrong with them, in `problems`.
    """
    reading = _Reading(flags)
    reading.refuse()
    model = Path(flags.get("modelFile", ""))
    clients = reading.clients() if reading.on("enableParallelPredict") else None
    place = reading.place(environment, clients)
    asked = Asked(
        flags=flags,
        model=model,
        model_type=reading.word("modelType", MODEL_TYPES, _type_of(model)),
        files=_files(flags.get("inDataFile", "")),
        shapes=reading.take({}, _shapes, flags),
        by_place="inputShapes" in flags,
        place=place,
        limits=reading.limits(),
        loops=reading.whole("loopCount", 10, least=1, label="LoopCount"),
        warm_ups=reading.whole("warmUpLoopCount", 3, least=0),
        trace=reading.trace(model, place.device),
        key=reading.take(None, _key, flags.get("decryptKey", "")),
        clients=clients,
        dump=reading.dump(environment.get("MINDSPORE_DUMP_CONFIG", "")),
        notes=tuple(reading.notes),
    )
    reading.word("benchmarkDataType", DATA_TYPES, "FLOAT")
    reading.word("perfEvent", EVENTS, "CYCLE")
    if reading.problems:
        raise SettingsError("", reading.problems)
    return asked


class _Reading(Reading):
    """Takes flags one after the other, and remembers what is wrong and what is worth telling."""

    def __init__(self, flags: Mapping[str, str]) -> None:
        super().__init__()
        self._flags = flags
        self.notes = [
            f"{name} has no effect: {why}"
            for name, why in IDLE.items()
            if flags.get(name, "false") != "false"
        ]

    def on(self, name: str) -> bool:
        """A flag that is true or false."""
        return self._flags.get(name) == "true"

    def refuse(self) -> None:
        """Note what is missing, and what would not do what was asked for."""
        flags = self._flags
        if "modelFile" not in flags:
            self.problems.append("modelPath is required: give --modelFile")
        if "inputShape" in flags and "inputShapes" in flags:
            self.problems.append("inputShape and inputShapes exclude each other; give one of them")
        if self.on("enableParallelPredict") and "decryptKey" in flags:
            self.problems.append("enableParallelPredict cannot decrypt; leave one of them out")

    def word(self, name: str, legal: Iterable[str], default: str) -> str:
        """One of some words."""
        text = self._flags.get(name, default)
        if text not in legal:
            self.problems.append(f"{name} must be {'|'.join(legal)}, but got {text!r}")
            return default
        return text

    def whole(
        self, name: str, default: int, *, least: int, most: int = _MOST, label: str = ""
    ) -> int:
        """A whole number."""
        text = self._flags.get(name, str(default))
        if not re.fullmatch(r"[+-]?[0-9]{1,10}", text):
            self.problems.append(f"{name} must be a whole number, but got {text!r}")
            return default
        number = int(text)
        if number < least:
            low = f"greater than {least - 1}" if least > 0 else f"at least {least}"
            self.problems.append(f"{label or name}:{number} must be {low}")
        elif number > most:
            self.problems.append(f"{label or name}:{number} must be at most {most}")
        return number

    def number(self, name: str, default: float) -> float:
        """Any number but nan."""
        text = self._flags.get(name, str(default))
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if math.isnan(number):
            self.problems.append(f"{name} must be a number, but got {text!r}")
        return number

    def dump(self, path: str) -> Dump | None:
        """What to dump, by the file that MINDSPORE_DUMP_CONFIG names."""
        if path and self.on("enableParallelPredict"):
            self.problems.append("MINDSPORE_DUMP_CONFIG is for one client; unset it")
            return None
        return self.take(None, read_dump, path) if path else None

    def clients(self) -> Clients:
        """The clients that use one model at once."""
        return Clients(
            self.whole("parallelNum", 2, least=1, most=_MOST_CLIENTS),
            self.whole("parallelTaskNum", 2, least=-1),
            self.whole("workersNum", 2, least=1),
        )

    def limits(self) -> Limits:
        """What an output may differ by."""
        return Limits(
            self.number("accuracyThreshold", 0.5),
            self.number("cosineDistanceThreshold", COSINE_OFF),
        )

    def place(self, environment: Mapping[str, str], clients: Clients | None) -> Place:
        """Where to compute, and how."""
        device = self.word("device", DEVICES, "CPU")
        if device == "Auto":
            device = {name.lower(): name for name in DEVICES}[usable_targets()[-1]]
        threads = self.whole("numThreads", 2, least=1)
        number = self.whole("deviceId", -1, least=-1)
        if number < 0:
            number = self.take(0, _device_of, device, environment)
        policy = environment.get("ASCEND_BACK_POLICY", "")
        provider = self.word("provider", PROVIDERS, policy if policy in PROVIDERS else "litert")
        without = {"deviceId": device == "CPU", "provider": (device, provider) != ("Ascend", "ge")}
        self.notes += [
            f"{name} has no effect on device {device}"
            for name, so in without.items()
            if so and name in self._flags
        ]
        return Place(
            device=device,
            number=number,
            provider=provider,
            threads=threads,
            inter_op=self.whole("interOpParallelNum", 1, least=1),
            binding=self._binding(threads * (clients.workers if clients else 1)),
            core_list=self.take((), _core_list, self._flags.get("cpuCoreList", "")),
            fp16=self.on("enableFp16"),
        )

    def _binding(self, threads: int) -> int:
        """The mode that was asked for; where nobody asked, none if there are too few cores."""
        mode = self.whole("cpuBindMode", 1, least=0)
        if mode > 2:
            self.problems.append(f"cpuBindMode must be 0|1|2, but got {mode}")
            return 0
        room = len(cores.usable().ids)
        if threads > room and not {"cpuBindMode", "cpuCoreList"} & set(self._flags):
            self.notes.append(f"not bound to cores: {threads} threads, but {room} cores")
            return 0
        return mode

    def trace(self, model: Path, device: str) -> str:
        """Where a profile goes."""
        if not self.on("timeProfiling"):
            return ""
        against = {
            "device": device != "CPU",
            "enableParallelPredict": self.on("enableParallelPredict"),
            "benchmarkDataFile": "benchmarkDataFile" in self._flags,
        }
        self.problems += [
            f"timeProfiling is for measured runs of one client on the CPU; leave it or {name} out"
            for name, is_against in against.items()
            if is_against
        ]
        return self._flags.get("profilingTrace", f"{model.stem}.trace.json")


def _device_of(device: str, environment: Mapping[str, str]) -> int:
    """The number of the card by the environment."""
    if device == "CPU":
        return 0
    name = f"{device.upper()}_DEVICE_ID"
    text = environment.get(name, "") or "0"
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise ValueError(f"{name} is {text!r}, wanted the number of a card")
    return int(text)


def _files(text: str) -> tuple[str, ...]:
    """File names with commas or blanks between them; a single name may hold such."""
    if Path(text).is_file():
        return (text,)
    return tuple(part for part in re.split(r"[,\s]+", text) if part)


def _shapes(flags: Mapping[str, str]) -> Sizes:
    if "inputShape" in flags:
        return parse_shapes(flags["inputShape"], "inputShape")
    if "inputShapes" not in flags:
        return {}
    parts = flags["inputShapes"].split(":")
    return parse_shapes(";".join(f"{at}:{part}" for at, part in enumerate(parts)), "inputShapes")


def _core_list(text: str) -> tuple[int, ...]:
    if text and not re.fullmatch(r"[0-9]{1,6}(,[0-9]{1,6})*", text):
        raise ValueError(f"cpuCoreList must be like 0,1,2, but got {text!r}")
    return tuple(map(int, text.split(","))) if text else ()


def _key(text: str) -> bytes | None:
    return hex_key(key_text(text), "decryptKey") if text else None
