"""Binds the calling thread to cores for the length of a block."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from mindspore_lite.errors import EngineError


def check(cores: tuple[int, ...], threads: int) -> None:
    """Refuse cores that this process may not use, or fewer of them than threads."""
    if not cores:
        return
    if len(cores) < threads:
        raise ValueError(
            f"{len(cores)} cores {list(cores)} were given to bind to, "
            f"wanted one for each of {threads} threads"
        )
    allowed = os.sched_getaffinity(0)
    outside = sorted(set(cores) - allowed)
    if outside:
        raise ValueError(
            f"cores {outside} may not be used by this process, wanted some of {sorted(allowed)}"
        )


@contextmanager
def bound(cores: tuple[int, ...]) -> Iterator[None]:
    """Bind the calling thread to cores, and put it back however the block ends; () does nothing."""
    if not cores:
        yield
        return
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, cores)
    except OSError as exc:  # they were ours when the session was made
        raise EngineError(
            f"cores {list(cores)} may no longer be used by this process, wanted some of "
            f"{sorted(before)}; build the model again"
        ) from exc
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
