"""What building one model may cost, and what is asked of its file: section [build].

    key              default          what it bounds
    max_nodes        100000           nodes after all functions and graphs are inlined
    max_fold_bytes   1G + 4 x weights bytes that computing constants ahead of time may make
    max_seconds      1800             CPU time of translating one model, and time of each native
                                      call that compiles or opens it
    max_run_seconds  max_seconds      time of warming up, and of each trial run of a build; where
                                      context.parallel.timeout_s is less, that, but at least 10
    sandbox          off              on: compile in a child process that can reach nothing else
    require_authenticated  off        on: only models that AES-GCM shows to be unchanged

No honest model comes near the defaults: the largest networks have some ten thousand nodes. What a
hostile file costs at most, as measured with 99,000 nodes in a row, translating included: 15 s of
CPU time and 0.7 GB with ONNX Runtime, 49 s and 1.2 GB with PyTorch. OpenVINO's time grows with the
square of the nodes (20,000: 52 s and 1.1 GB); it is given up after max_seconds. Constants may take
1 GB more.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields

from mindspore_lite.errors import EngineError, ModelFileError

SECTION = "build"
_LEAST_FOLD_BYTES = 1 << 30
_FIRST_RUN_S = 10.0  # guess
_FOLDS_OF_WEIGHTS = 4  # a weight that is cast, transposed and reshaped is made three times


@dataclass(frozen=True)
class Budget:
    """The bounds of one build."""

    max_nodes: int = 100_000
    max_fold_bytes: int = 0  # 0: what fold_limit() makes of the size of the weights
    max_seconds: int = 1800
    sandbox: bool = False
    max_run_seconds: int = 0  # 0: what run_limit_s() makes of the other limits
    require_authenticated: bool = False

    def fold_limit(self, weight_bytes: int) -> int:
        """Bytes that constants of a model with so many bytes of weights may be folded into."""
        return self.max_fold_bytes or _LEAST_FOLD_BYTES + _FOLDS_OF_WEIGHTS * weight_bytes

    def run_limit_s(self, timeout_s: float = 0.0) -> float:
        """Seconds of warming up, or of a trial, where a request may take so many; 0: any."""
        if self.max_run_seconds or not timeout_s:
            return float(self.max_run_seconds or self.max_seconds)
        # memory is taken and kernels are chosen in the first run: it may be much slower
        return min(max(timeout_s, _FIRST_RUN_S), float(self.max_seconds))


DEFAULT = Budget()


class CpuClock:
    """The CPU time that the calling thread spends on one model, to be checked in its loops."""

    def __init__(self, budget: Budget, clock: Callable[[], float] = time.thread_time) -> None:
        self._limit_s, self._clock, self._start_s = budget.max_seconds, clock, clock()

    def check(self) -> None:
        """Give up once the budget is spent.

        Raises:
            ModelFileError: It is.
        """
        if self._clock() - self._start_s > self._limit_s:
            raise ModelFileError(
                f"translating the model took more than {self._limit_s} s of CPU time, which is all "
                f"that [{SECTION}] max_seconds allows; if the file can be trusted, set a larger one"
            )


def budget_of(sections: Mapping[str, Mapping[str, str]]) -> Budget:
    """What a configuration says about builds.

    Raises:
        EngineError: A key of [build] is not known, or its value is none that it can have.
    """
    entries = {key: text.strip() for key, text in sections.get(SECTION, {}).items()}
    known = tuple(field.name for field in fields(Budget))
    for key in entries:
        if key not in known:
            raise EngineError(f"[{SECTION}] has no key {key!r}, wanted one of {', '.join(known)}")
    return Budget(
        _number(entries, "max_nodes", DEFAULT.max_nodes),
        _number(entries, "max_fold_bytes", DEFAULT.max_fold_bytes),
        _number(entries, "max_seconds", DEFAULT.max_seconds),
        _switch(entries, "sandbox"),
        _number(entries, "max_run_seconds", DEFAULT.max_run_seconds),
        _switch(entries, "require_authenticated"),
    )


def _number(entries: Mapping[str, str], key: str, default: int) -> int:
    text = entries.get(key, "")
    if not text:
        return default
    match = re.fullmatch(r"([0-9]{1,18})([KMG]?)", text.upper(), re.ASCII)
    if match is None or not int(match[1]):
        raise EngineError(
            f"[{SECTION}] {key} is {text[:80]!r}, wanted a number of 1 or more, "
            "which may end in K, M or G"
        )
    return int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[match[2]]


def _switch(entries: Mapping[str, str], key: str) -> bool:
    text = entries.get(key, "").lower()
    if text not in ("", "on", "off", "true", "false"):
        raise EngineError(f"[{SECTION}] {key} is {text[:80]!r}, wanted on or off")
    return text in ("on", "true")
