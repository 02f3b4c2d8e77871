from __future__ import annotations

import pytest

from mindspore_lite.core.budget import DEFAULT, Budget, CpuClock
from mindspore_lite.errors import ModelFileError


def test_constants_may_grow_with_the_weights_unless_a_number_is_said() -> None:
    assert DEFAULT.fold_limit(0) == 1 << 30
    assert DEFAULT.fold_limit(3 << 30) == 13 << 30
    assert Budget(max_fold_bytes=5).fold_limit(3 << 30) == 5


@pytest.mark.parametrize(
    ("budget", "timeout_s", "limit_s"),
    [
        (Budget(), 0.0, 1800),
        (Budget(), 60.0, 60),
        (Budget(), 0.5, 10),  # a first run may be slower than any request
        (Budget(max_seconds=7), 0.5, 7),
        (Budget(max_run_seconds=3), 0.5, 3),
        (Budget(max_run_seconds=3), 0.0, 3),
    ],
)
def test_a_first_run_has_a_limit(budget: Budget, timeout_s: float, limit_s: float) -> None:
    assert budget.run_limit_s(timeout_s) == limit_s


def test_the_cpu_clock_ends_what_takes_too_long() -> None:
    times = iter([100.0, 105.0, 105.1])
    clock = CpuClock(Budget(max_seconds=5), times.__next__)
    clock.check()
    with pytest.raises(ModelFileError, match=r"more than 5 s of CPU time.*\[build\] max_seconds"):
        clock.check()
