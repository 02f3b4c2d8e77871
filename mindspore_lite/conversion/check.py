"""Runs a converted model and measures its difference from the source.

Inputs are made up, and the same in every run. ModelSource and result are run by the same engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx_ir as ir

from mindspore_lite.core import cores, synthetic
from mindspore_lite.core.budget import DEFAULT
from mindspore_lite.core.snapshot import Snapshot
from mindspore_lite.core.tensor_info import TensorInfo
from mindspore_lite.engines.base import Options, Session
from mindspore_lite.engines.select import engine_for
from mindspore_lite.engines.time_limit import run_within
from mindspore_lite.errors import EngineError, LiteError
from mindspore_lite.graph.source import ModelInput, ModelSource
from mindspore_lite.mindir.decrypt import Key
from mindspore_lite.serving.build import build
from mindspore_lite.settings.spec import settle


@dataclass(frozen=True)
class Difference:
    """How far the outputs of two models lie apart."""

    relative: float  # the largest difference, as a share of the largest value of that output
    output: str  # where it was found


def run_once(path: Path, key: Key | None) -> tuple[str, ...]:
    """Run a MindIR file on made-up inputs; returns warnings.

    Raises:
        LiteError: It cannot be built or run.
    """
    try:
        built = build(ModelInput("MINDIR", path, key=key), settle())
    except LiteError as exc:
        raise exc.prefixed("the result cannot be built: ") from exc.__cause__
    try:
        is_open = [i.name for i in built.inputs if min(i.shape, default=0) < 0]
        if is_open:  # no size is right for certain
            return (f"infer was left out: the sizes of {', '.join(is_open)} are open",)
        try:
            arrays = [made_up(info) for info in built.inputs]
            run_within(DEFAULT.run_limit_s(), "a run of the result", built.session, arrays)
        except LiteError as exc:
            raise exc.prefixed("the result does not run: ") from exc.__cause__
    finally:
        built.session.close()
    return ()


def difference(source: ir.Model, result: Path, key: Key | None = None) -> Difference:
    """The largest difference between a model and the MindIR file that was made of it.

    Raises:
        LiteError: One of them does not run, or they have different inputs or outputs.
    """
    after = build(ModelInput("MINDIR", result, key=key), settle()).session
    before = _session(source)
    try:
        feeds = {info.name: made_up(info) for info in after.info.inputs}
        wanted = _run(before, feeds, "the source")
        got = _run(after, feeds, "the result")
        if list(wanted) != list(got):
            raise EngineError(f"the source has outputs {list(wanted)}, the result {list(got)}")
        found = [Difference(_apart(wanted[name], got[name], name), name) for name in wanted]
    finally:
        before.close()
        after.close()
    return max(found, key=lambda one: one.relative)


def made_up(info: TensorInfo) -> np.ndarray:
    """An input; a size that is open becomes 1."""
    return synthetic.array(info.dtype, synthetic.closed(info.shape))


def _session(model: ir.Model) -> Session:
    threads = cores.default_threads(cores.usable())
    source = ModelSource(Snapshot(), "", lambda: model, storable=False)
    return engine_for("cpu").load(source, Options(threads))


def _run(session: Session, feeds: dict[str, np.ndarray], who: str) -> dict[str, np.ndarray]:
    names = [info.name for info in session.info.inputs]
    if sorted(names) != sorted(feeds):
        raise EngineError(f"the source has inputs {names}, the result {list(feeds)}")
    try:
        arrays = [feeds[name] for name in names]
        outputs = run_within(DEFAULT.run_limit_s(), f"a run of {who}", session, arrays)
    except LiteError as exc:
        more = "; give sizes to open dims" if _any_open(session.info.inputs) else ""
        raise exc.prefixed(f"{who} does not run on made-up inputs{more}: ") from exc.__cause__
    return {info.name: out for info, out in zip(session.info.outputs, outputs, strict=True)}


def _any_open(infos: Sequence[TensorInfo]) -> bool:
    return any(min(info.shape, default=0) < 0 for info in infos)


def _apart(want: np.ndarray, got: np.ndarray, name: str) -> float:
    if want.shape != got.shape:
        raise EngineError(
            f"output {name!r} has shape {list(want.shape)} in the source, {list(got.shape)} in "
            "the result"
        )
    if want.size == 0 or np.array_equal(want, got):
        return 0.0
    if want.dtype.kind not in "biufcV" or want.dtype.names:
        return 1.0  # texts: no nearer or farther
    kind = np.complex128 if want.dtype.kind == "c" else np.float64
    want, got = want.astype(kind), got.astype(kind)
    same = (want == got) | (np.isnan(want) & np.isnan(got))  # infinities, too
    if same.all():
        return 0.0
    apart = np.abs(want[~same] - got[~same]).max()
    scale = np.abs(want[np.isfinite(want)]).max(initial=0.0)
    return float(apart / scale) if scale and np.isfinite(apart) else float(apart)
