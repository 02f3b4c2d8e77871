"""Measures how far quantisation moved a model's outputs."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
import onnx_ir as ir

from mindspore_lite.conversion.quant_report import TopOne
from mindspore_lite.core import synthetic
from mindspore_lite.core.budget import DEFAULT
from mindspore_lite.core.snapshot import Snapshot
from mindspore_lite.core.tensor_info import TensorInfo
from mindspore_lite.engines.base import ModelSource, Options, Session
from mindspore_lite.engines.select import engine_for
from mindspore_lite.engines.time_limit import run_within
from mindspore_lite.errors import LiteError

MAX_REQUESTS = 32  # of calibration data that are compared; outputs of all are held in memory


@dataclass(frozen=True)
class Difference:
    """Of the worst output; `outputs` has the cosine of each."""

    largest: float = math.nan
    cosine: float = math.nan
    outputs: tuple[tuple[str, float], ...] = ()
    compared_on: str = ""
    top_one: TopOne | None = None


def opened(model: ir.Model) -> Session:
    """A session on all cores; the model stays as it is, and nothing is stored."""
    source = ModelSource(Snapshot(), "", model.clone, storable=False)
    return engine_for("cpu").load(source, Options(threads=len(os.sched_getaffinity(0))))


def compared(
    before: ir.Model,
    after: ir.Model,
    samples: Iterable[list[np.ndarray]] | None,
    what: str = "calibration data",
) -> Difference:
    """Run both models on some samples; None: on made-up inputs, which not every model can take."""
    if samples is not None:
        return _difference(before, after, list(islice(samples, MAX_REQUESTS)), what)
    try:
        made_up = [made_up_inputs(inputs_of(before), seed) for seed in range(2)]
        found = _difference(before, after, made_up, "random inputs")
        return replace(found, top_one=None)  # noise has no class
    except LiteError as exc:
        return Difference(compared_on=f"nothing: the model does not run on random inputs ({exc})")


def inputs_of(model: ir.Model) -> tuple[TensorInfo, ...]:
    """What has to be put into a model; an input with a default need not be."""
    return tuple(
        TensorInfo(
            str(value.name),
            (value.dtype or ir.DataType.FLOAT).numpy(),
            tuple(dim if isinstance(dim, int) else -1 for dim in value.shape or ()),
        )
        for value in model.graph.inputs
        if not value.is_initializer()
    )


def made_up_inputs(inputs: Sequence[TensorInfo], seed: int) -> list[np.ndarray]:
    """Repeatable inputs: normally distributed floats, 0 or 1 for everything else."""
    rng = np.random.default_rng(seed)
    return [
        np.asarray(rng.standard_normal(synthetic.closed(info.shape)), info.dtype)
        if info.dtype.kind == "f"
        else synthetic.array(info.dtype, synthetic.closed(info.shape), seed)
        for info in inputs
    ]


def _difference(
    before: ir.Model, after: ir.Model, samples: Sequence[list[np.ndarray]], what: str
) -> Difference:
    names, wanted = _outputs(before, samples)
    _, found = _outputs(after, samples)
    floats = [at for at, arrays in enumerate(wanted) if arrays[0].dtype.kind == "f"]
    judged = floats or range(len(wanted))  # a label that changed says nothing about how far
    largest = max(_largest(wanted[at], found[at]) for at in judged)
    cosines = tuple((names[at], cosine(wanted[at], found[at])) for at in judged)
    same = next((one for at in floats if (one := top_one(names[at], wanted[at], found[at]))), None)
    return Difference(largest, min(value for _, value in cosines), cosines, what, same)


def top_one(name: str, wanted: Sequence[np.ndarray], found: Sequence[np.ndarray]) -> TopOne | None:
    """How often rows of two or more numbers keep their largest; None where there are no rows."""
    if any(one.ndim != 2 or one.shape[1] < 2 for one in wanted):
        return None
    pairs = list(zip(wanted, found, strict=True))
    if any(want.shape != have.shape for want, have in pairs):
        return None
    agreed = sum(int((want.argmax(1) == have.argmax(1)).sum()) for want, have in pairs)
    return TopOne(name, agreed, sum(len(want) for want, _ in pairs))


def _outputs(
    model: ir.Model, samples: Sequence[list[np.ndarray]]
) -> tuple[list[str], list[list[np.ndarray]]]:
    """Names of the outputs, and for each of them its arrays for all samples."""
    with closing(opened(model)) as session:
        limit_s, what = DEFAULT.run_limit_s(), "comparing the quantised model with its source"
        runs = [run_within(limit_s, what, session, inputs) for inputs in samples]
    return [info.name for info in session.info.outputs], [
        list(arrays) for arrays in zip(*runs, strict=True)
    ]


def _pairs(
    wanted: Sequence[np.ndarray], found: Sequence[np.ndarray]
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Both in float64, without the numbers that were not finite before."""
    for want, have in zip(wanted, found, strict=True):
        wide = want.astype(np.float64).reshape(-1)
        finite = np.isfinite(wide)
        if have.shape != want.shape:  # its shape depends on data: nothing fits any more
            yield wide[finite], np.full(np.count_nonzero(finite), np.inf)
        else:
            yield wide[finite], have.astype(np.float64).reshape(-1)[finite]


def _largest(wanted: Sequence[np.ndarray], found: Sequence[np.ndarray]) -> float:
    scale = gap = 0.0
    for want, have in _pairs(wanted, found):
        scale = max(scale, float(np.abs(want).max(initial=0)))
        gap = max(gap, float(np.abs(want - have).max(initial=0)))
    if not gap:
        return 0.0
    return gap / scale if scale else math.inf


def cosine(wanted: Sequence[np.ndarray], found: Sequence[np.ndarray]) -> float:
    """Of the angle between all numbers of both; 1 where both are nothing but zeros."""
    product = first = second = 0.0
    for want, have in _pairs(wanted, found):
        if not np.isfinite(have).all():
            return math.nan
        product += float(want @ have)
        first += float(want @ want)
        second += float(have @ have)
    if not first and not second:
        return 1.0
    return product / math.sqrt(first * second) if first and second else 0.0
