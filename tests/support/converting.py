"""Runs an ONNX model as it is, and after a conversion: what comes out should be the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
from support.random_onnx import Made, session
from support.running import QUIET

import mindspore_lite as mslite
from mindspore_lite.conversion.convert import Report, convert
from mindspore_lite.conversion.job import Job

Arrays = dict[str, np.ndarray]
ONE_THREAD = mslite.Context()
ONE_THREAD.cpu.thread_num = 1
ROUNDING, COARSE = 2e-4, 2e-2  # of float32 and float16; what is cast from float16 keeps its error


class NotRun(Exception):
    """ONNX Runtime itself does not run the model."""


def check(made: Made, folder: Path, **settings: Any) -> None:
    """Convert a model and compare; where its dims are open, with other sizes as well.

    Raises:
        NotRun: Nothing can be asked of the conversion.
        AssertionError: The results differ.
    """
    want = directly(made, made.feeds)
    converted(made, folder, **settings)
    assert_same(through(folder / "net.mindir", made.feeds), want)
    if not made.larger:
        return
    try:
        larger = directly(made, made.larger)
    except NotRun:
        return
    if all(np.isfinite(a).all() for a in larger.values()):
        assert_same(through(folder / "net.mindir", made.larger), larger)


def directly(made: Made, feeds: Arrays) -> Arrays:
    """What ONNX Runtime computes, by name, node by node; it must take the model optimised too."""
    try:
        ort.InferenceSession(made.model.SerializeToString(), QUIET, ["CPUExecutionProvider"])
        run = session(made.model)
        return dict(zip([o.name for o in run.get_outputs()], run.run(None, feeds), strict=True))
    except Exception as exc:  # ONNX Runtime raises anything
        raise NotRun(str(exc)) from exc


def converted(made: Made, folder: Path, **settings: Any) -> Report:
    """A conversion by all the steps that users see."""
    source = folder / "net.onnx"
    source.write_bytes(made.model.SerializeToString())
    return convert(Job(model=source, output=folder / "net.mindir", **settings))


def through(path: Path, feeds: Arrays) -> Arrays:
    """What a converted file computes, by name."""
    with mslite.Model() as model:
        model.build_from_file(str(path), mslite.ModelType.MINDIR, ONE_THREAD)
        inputs = model.get_inputs()
        assert [t.name for t in inputs] == list(feeds)
        shapes = [list(array.shape) for array in feeds.values()]
        if shapes != [t.shape for t in inputs]:
            model.resize(inputs, shapes)
        return {t.name: t.get_data_to_numpy() for t in model.predict(list(feeds.values()))}


def assert_same(got: Arrays, want: Arrays) -> None:
    """Names, types, shapes and numbers; floats within rounding."""
    assert list(got) == list(want)
    loose = COARSE if any(a.dtype == np.float16 for a in want.values()) else ROUNDING
    for name, wanted in want.items():
        found = got[name]
        assert found.dtype == wanted.dtype, f"{name}: {found.dtype}, wanted {wanted.dtype}"
        assert found.shape == wanted.shape, f"{name}: {found.shape}, wanted {wanted.shape}"
        limit = loose if wanted.dtype.kind == "f" else 0
        wide = wanted.astype(np.float64)
        largest = np.abs(wide[np.isfinite(wide)]).max(initial=1)
        np.testing.assert_allclose(
            found.astype(np.float64), wide, rtol=limit, atol=limit * largest, err_msg=name
        )
