"""Formats numbers for people: three significant digits and a suitable unit."""

from __future__ import annotations

import math

MISSING = "\N{EN DASH}"
TIMES = "\N{MULTIPLICATION SIGN}"
_JOINED = "\N{NO-BREAK SPACE}"  # between a number and its unit
_SPANS = ((1e3, "s"), (1.0, "ms"), (1e-3, "µs"), (1e-6, "ns"))  # in ms
_LARGE = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def digits(value: float | None) -> str:
    """12345.6 -> 12,300 and 0.012345 -> 0.0123; None -> a dash."""
    if value is None:
        return MISSING
    rounded = float(f"{value:.3g}")
    if rounded == 0:
        return "0"
    if not 1e-4 <= abs(rounded) < 1e15:
        return f"{value:.2e}"
    places = max(0, 2 - math.floor(math.log10(abs(rounded))))
    return f"{rounded:,.{places}f}"


def factor(value: float | None) -> str:
    """A ratio: two places where it is near 1."""
    return f"{value:.2f}" if value is not None and 0.1 <= value < 100 else digits(value)


def count(value: float | None) -> str:
    """12345 -> 12,345: what was counted keeps all its digits."""
    return MISSING if value is None else f"{value:,.0f}"


def span(ms: float | None) -> str:
    """A time in the unit that suits it: 0.83 -> 830 µs, 1234 -> 1.23 s."""
    if ms is None:
        return MISSING
    size, unit = _unit_of(ms)
    return f"{digits(ms / size)}{_JOINED}{unit}"


def span_tick(ms: float) -> str:
    """A time on an axis, without zeros that say nothing: 1 -> 1 ms."""
    size, unit = _unit_of(ms)
    return f"{tick(ms / size)}{_JOINED}{unit}" if ms else "0"


def tick(value: float) -> str:
    """A number on an axis: 1500 -> 1.5k."""
    for size, letter in _LARGE:
        if abs(value) >= size:
            return f"{_plain(value / size)}{letter}"
    return _plain(value)


def many(number: float | None, one: str) -> str:
    """1 -> 1 worker, 4 -> 4 workers."""
    return f"{count(number)} {one}{'' if number == 1 else 's'}"


def _unit_of(ms: float) -> tuple[float, str]:
    # what rounds to 1000 belongs to the next unit: 0.9999 ms is 1.00 ms, never 1,000 µs
    return next((pair for pair in _SPANS if float(f"{ms:.3g}") >= pair[0]), _SPANS[-1])


def _plain(value: float) -> str:
    return f"{value:.6g}"
