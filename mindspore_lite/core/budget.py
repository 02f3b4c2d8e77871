"""What building one model may cost, and what is asked of its file: section [build].

settings/table.py lists its keys. No honest model comes near the defaults: the largest networks have
some ten thousand nodes. What a hostile file costs at most, as measured with 99,000 nodes in a row,
translating included: 15 s of CPU time and 0.7 GB with ONNX Runtime, 49 s and 1.2 GB with PyTorch.
OpenVINO's time grows with the square of the nodes (20,000: 52 s and 1.1 GB); it is given up after
max_seconds. Constants may take 1 GB more.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from mindspore_lite.errors import ModelFileError

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
