"""Runs the bodies of control-flow nodes at run time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch

Body = tuple[Callable[..., Any], tuple[Any, ...]]
Declared = tuple[torch.dtype, tuple[int, ...]]  # of a scan output: what it is without any step

_own = threading.local()  # check: what is called before every step of this thread's loops


class Watched:
    """Let a function end the loops of this thread while the block runs, by raising an error."""

    def __init__(self, check: Callable[[], None]) -> None:
        self._check = check

    def __enter__(self) -> None:
        self._before = getattr(_own, "check", None)
        _own.check = self._check

    def __exit__(self, *error: object) -> None:
        _own.check = self._before


def _may_go_on() -> None:
    check = getattr(_own, "check", None)
    if check is not None:
        check()


def run_if(condition: torch.Tensor, then_branch: Body, else_branch: Body) -> Any:
    """Run one of two bodies."""
    module, outside = then_branch if bool(condition) else else_branch
    return module(*outside)


def run_loop(
    trips: torch.Tensor | None,
    condition: torch.Tensor | None,
    carried: Sequence[Any],
    body: Body,
    declared: Sequence[Declared],
) -> tuple[Any, ...]:
    """Run a body so often, as long as its condition holds; the last values, and those of steps."""
    module, outside = body
    most = None if trips is None else int(trips)
    goes_on = torch.tensor(True) if condition is None else condition
    rows: list[Sequence[Any]] = []
    while bool(goes_on) and (most is None or len(rows) < most):
        _may_go_on()
        goes_on, *found = module(torch.tensor(len(rows)), goes_on, *carried, *outside)
        carried, scanned = found[: len(carried)], found[len(carried) :]
        rows.append(scanned)
    columns = zip(*rows, strict=True) if rows else [()] * len(declared)
    stacked = [stack(list(c), d) for c, d in zip(columns, declared, strict=True)]
    return (*carried, *stacked)


def run_scan(
    states: Sequence[Any],
    scanned: Sequence[torch.Tensor],
    body: Body,
    inward: Sequence[tuple[int, int]],
    outward: Sequence[tuple[int, int]],
    declared: Sequence[Declared],
) -> tuple[Any, ...]:
    """Run a body for each place along an axis; (axis, backwards) of each input and output."""
    module, outside = body
    length = scanned[0].shape[inward[0][0]]
    rows: list[Sequence[Any]] = []
    for step in range(length):
        _may_go_on()
        parts = [
            x.select(axis, length - 1 - step if backwards else step)
            for x, (axis, backwards) in zip(scanned, inward, strict=True)
        ]
        found = module(*states, *parts, *outside)
        states, made = found[: len(states)], found[len(states) :]
        rows.append(made)
    columns = zip(*rows, strict=True) if rows else [()] * len(declared)
    stacked = [
        stack(list(c)[::-1] if backwards else list(c), d, axis)
        for c, d, (axis, backwards) in zip(columns, declared, outward, strict=True)
    ]
    return (*states, *stacked)


def run_sequence_map(given: Sequence[Any], body: Body, count: int) -> tuple[list[Any], ...]:
    """Run a body for each item of the sequences; so many sequences of what it makes."""
    module, outside = body
    rows = [
        module(*(one[at] if isinstance(one, list) else one for one in given), *outside)
        for at in range(len(given[0]))
    ]
    return tuple([row[at] for row in rows] for at in range(count))


def stack(rows: list[torch.Tensor], declared: Declared, axis: int = 0) -> torch.Tensor:
    """What the steps made, along a new axis; without steps an empty tensor."""
    if rows:
        return torch.stack(rows, axis)
    dtype, dims = declared
    return torch.zeros((0, *dims), dtype=dtype).movedim(0, axis)
