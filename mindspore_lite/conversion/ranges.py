"""Observes the ranges of activations while a model runs on calibration data.

MAX_MIN takes the least and the largest number that was seen. The others go through the data a
second time and count: REMOVAL_OUTLIER leaves out the last hundredth of a percent at the ends, KL
cuts where eight bits lose the least information about how the numbers are distributed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from mindspore_lite.conversion.measure import opened
from mindspore_lite.core.budget import DEFAULT
from mindspore_lite.engines.time_limit import run_within
from mindspore_lite.errors import InputError

BINS = 2048
_OUTSIDE = 0.0001 / 2  # share of the numbers that REMOVAL_OUTLIER leaves out at each end
_FEWEST = 128  # bins that KL keeps at least
_STRIDE = 8  # of the cuts that KL tries; a finer one is lost in the noise of the counts

Range = tuple[float, float]


@dataclass
class _Watched:
    """What was seen of a value so far."""

    low: float = np.inf
    high: float = -np.inf
    counts: np.ndarray = field(default_factory=lambda: np.zeros(BINS, np.int64))

    @property
    def most(self) -> float:
        return max(abs(self.low), abs(self.high))


@dataclass(frozen=True)
class Observed:
    """The range of some values, and the mean of others."""

    ranges: Mapping[str, Range]
    means: Mapping[str, np.ndarray]


def observe(
    model: ir.Model,
    ranged: Sequence[str],
    averaged: Sequence[str],
    samples: Iterable[list[np.ndarray]],
    method: str,
) -> Observed:
    """Run the model on all samples and watch the named values."""
    watched = {name: _Watched() for name in ranged}
    sums: dict[str, np.ndarray] = {}
    count = 0
    for arrays in map(watching(model, [*ranged, *averaged]), samples):
        count += 1
        for name, seen in watched.items():
            _note(seen, name, arrays[name])
        for name in averaged:
            sums[name] = sums.get(name, 0) + arrays[name].astype(np.float64)
    if lacking := [name for name, seen in watched.items() if not seen.low <= seen.high]:
        raise InputError(f"calibration data leave values without a single number: {lacking[:5]}")
    if method != "MAX_MIN":
        for arrays in map(watching(model, ranged), samples):
            for name, array in arrays.items():
                _count(watched[name], array, method)
    ranges = {name: _range(seen, method) for name, seen in watched.items()}
    return Observed(ranges, {name: total / count for name, total in sums.items()})


def watching(
    model: ir.Model, names: Sequence[str]
) -> Callable[[list[np.ndarray]], dict[str, np.ndarray]]:
    """A function that runs the model and returns the named values, inputs of the model included."""
    seen = model.clone()
    values = {value.name: value for value in _values(seen.graph)}
    known = {value.name for value in (*seen.graph.inputs, *seen.graph.outputs)}
    for name in names:
        if name not in known:
            seen.graph.outputs.append(values[name])
    session = opened(seen)

    def run(inputs: list[np.ndarray]) -> dict[str, np.ndarray]:
        found = dict(zip((info.name for info in session.info.inputs), inputs, strict=True))
        outputs = run_within(DEFAULT.run_limit_s(), "a run for calibration", session, inputs)
        found.update(zip((i.name for i in session.info.outputs), outputs, strict=True))
        return {name: found[name] for name in names}

    return run


def _values(graph: ir.Graph) -> Iterator[ir.Value]:
    for node in graph:
        yield from node.outputs


def _note(watched: _Watched, name: str, array: np.ndarray) -> None:
    if not np.isfinite(array).all():
        raise InputError(
            f"calibration data make {name!r} infinite or not a number; leave such data out"
        )
    if array.size:
        watched.low = min(watched.low, float(array.min()))
        watched.high = max(watched.high, float(array.max()))


def _count(watched: _Watched, array: np.ndarray, method: str) -> None:
    if method == "KL":
        # 0 is told exactly whatever the range; half of what comes out of a Relu is 0
        numbers, ends = np.abs(array[array != 0]), (0.0, watched.most)
    else:
        numbers, ends = array, (watched.low, watched.high)
    if ends[0] < ends[1]:
        watched.counts += np.histogram(numbers, BINS, ends)[0]


def _range(watched: _Watched, method: str) -> Range:
    low, high = watched.low, watched.high
    if method == "MAX_MIN" or not watched.counts.any():
        return low, high
    if method == "KL":
        # numbers on one side of 0 have all 255 steps to themselves, on both sides about half
        steps = round(255 * watched.most / max(high - low, watched.most))
        cut = watched.most * kl_bins(watched.counts, max(_FEWEST, steps)) / BINS
        return max(low, -cut), min(high, cut)
    share = np.cumsum(watched.counts) / watched.counts.sum()
    first = int(np.searchsorted(share, _OUTSIDE, "right"))
    last = int(np.searchsorted(share, 1 - _OUTSIDE)) + 1
    width = (high - low) / BINS
    return low + first * width, min(high, low + last * width)


def kl_bins(counts: np.ndarray, steps: int) -> int:
    """How many of the bins to keep so that `steps` steps tell most about all of them.

    For each cut: P is the histogram with what lies beyond put into the last bin; Q is what steps
    can tell, each spread evenly over its bins that are not empty; the cut of least KL(P, Q) wins.
    """
    best, best_loss = len(counts), np.inf
    for kept in (*range(steps, len(counts), _STRIDE), len(counts)):
        inside = counts[:kept].astype(np.float64)
        p = inside.copy()
        p[-1] += counts[kept:].sum()
        edges = np.arange(steps) * kept // steps
        filled = (inside > 0).astype(np.float64)
        per_bin = np.add.reduceat(inside, edges) / np.maximum(np.add.reduceat(filled, edges), 1)
        q = np.repeat(per_bin, np.diff([*edges, kept])) * filled
        both = p > 0
        p, q = p[both] / p.sum(), np.maximum(q[both] / max(q.sum(), 1), 1e-12)
        loss = float((p * np.log(p / q)).sum())
        if loss < best_loss:
            best, best_loss = kept, loss
    return best
