"""Runs an ONNX model as it is, and after a conversion: what comes out should be the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from support.random_onnx import Made, session

import mindspore_lite as mslite
from mindspore_lite.conversion.convert import Report, convert
from mindspore_lite.conversion.job import Job

ONE_THREAD = mslite.Context()
ONE_THREAD.cpu.thread_num = 1
LOOSE = {"float16": 2e-2, "float32": 2e-4, "float64": 2e-4}


def directly(made: Made, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What ONNX Runtime computes, by name."""
    run = session(made.model)
    return dict(zip([o.name for o in run.get_outputs()], run.run(None, feeds), strict=True))


def through(path: Path, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What a converted file computes, by name."""
    with mslite.Model() as model:
        model.build_from_file(str(path), mslite.ModelType.MINDIR, ONE_THREAD)
        return predicted(model, feeds)


def predicted(model: mslite.Model, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    inputs = model.get_inputs()
    assert [t.name for t in inputs] == list(feeds), f"inputs {[t.name for t in inputs]}"
    shapes = [list(feeds[t.name].shape) for t in inputs]
    if shapes != [t.shape for t in inputs]:
        model.resize(inputs, shapes)
        inputs = model.get_inputs()
    outputs = model.predict(list(feeds.values()))
    return {t.name: t.get_data_to_numpy() for t in outputs}


def converted(made: Made, folder: Path, **settings: Any) -> Report:
    """A conversion by all the steps that users see."""
    source = folder / "net.onnx"
    source.write_bytes(made.model.SerializeToString())
    return convert(Job(model=source, output=folder / "net.mindir", **settings))


def assert_same(got: dict[str, np.ndarray], want: dict[str, np.ndarray]) -> None:
    """Names, types, shapes and numbers; floats within rounding."""
    assert list(got) == list(want), f"outputs {list(got)}, wanted {list(want)}"
    for name, wanted in want.items():
        found = got[name]
        assert found.dtype == wanted.dtype, f"{name}: {found.dtype}, wanted {wanted.dtype}"
        assert found.shape == wanted.shape, f"{name}: {found.shape}, wanted {wanted.shape}"
        loose = LOOSE.get(wanted.dtype.name, 0)
        largest = np.abs(wanted[np.isfinite(wanted)].astype(float)).max(initial=0) if loose else 0
        np.testing.assert_allclose(
            found.astype(float),
            wanted.astype(float),
            rtol=loose,
            atol=loose * max(largest, 1),
            err_msg=name,
        )
