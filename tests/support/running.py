"""Runs records and graphs in ONNX Runtime, without cache and public API."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import onnxruntime as ort

from mindspore_lite.engines.onnxruntime.engine import fit
from mindspore_lite.engines.sessions import io_types
from mindspore_lite.graph.from_mindir import from_mindir
from mindspore_lite.mindir.records import Model

DATA = Path(__file__).parent.parent / "data"

QUIET = ort.SessionOptions()
QUIET.log_severity_level = 4
QUIET.intra_op_num_threads = 1
QUIET.inter_op_num_threads = 1


def run(model: Model, *inputs: np.ndarray, **options: Any) -> list[np.ndarray]:
    """Translate records and compute."""
    return run_graph(from_mindir(model, **options), *inputs)


def run_graph(graph: ir.Model, *inputs: np.ndarray) -> list[np.ndarray]:
    """Compute with an onnx-ir model."""
    fit(graph)
    data = ir.to_proto(graph).SerializeToString()
    session = ort.InferenceSession(data, QUIET, providers=["CPUExecutionProvider"])
    names = [i.name for i in session.get_inputs()]
    feed = dict(zip(names, inputs, strict=True))
    for name, kind in io_types.declared(graph.metadata_props, "inputs").items():
        feed[name] = io_types.inward(feed[name], kind)
    found: list[np.ndarray] = session.run(None, feed)
    outward = io_types.declared(graph.metadata_props, "outputs")
    outputs = zip(session.get_outputs(), found, strict=True)
    return [io_types.outward(a, outward[o.name]) if o.name in outward else a for o, a in outputs]


def op_types(graph: ir.Model) -> list[str]:
    """The ONNX operators of the main graph, in order."""
    return [node.op_type for node in graph.graph]


def assert_close(got: np.ndarray, want: Any, what: str = "", loose: float = 1.0) -> None:
    """Shape and type alike; numbers within the tolerance of the project, integers exactly.

    1e-4 of the largest output for float32 and float64, 1e-2 for float16 and bfloat16.
    """
    want = np.asarray(want)
    coarse = got.dtype.name in ("float16", "bfloat16")
    assert got.shape == want.shape, f"{what}: shape {got.shape}, wanted {want.shape}"
    assert got.dtype == want.dtype, f"{what}: type {got.dtype}, wanted {want.dtype}"
    if got.dtype.kind == "c":
        for part, wanted in ((got.real, want.real), (got.imag, want.imag)):
            scale = np.abs(want).max(initial=0) / max(np.abs(wanted).max(initial=0), 1e-30)
            assert_close(part, wanted, what, loose * max(scale, 1))
        return
    if got.dtype.kind != "f" and not coarse:
        np.testing.assert_array_equal(got, want, what)
        return
    wide, wanted = got.astype(np.float64), want.astype(np.float64)
    np.testing.assert_array_equal(np.isfinite(wide), np.isfinite(wanted), what)
    largest = np.abs(wanted[np.isfinite(wanted)]).max(initial=0)
    limit = loose * (1e-2 if coarse else 1e-4)
    np.testing.assert_allclose(wide, wanted, rtol=0, atol=limit * max(largest, 1e-30), err_msg=what)


def fixture_arrays(npz: Path) -> tuple[Sequence[np.ndarray], Sequence[np.ndarray]]:
    """Inputs and MindSpore's outputs of a fixture, in order."""
    with np.load(npz) as found:
        names = sorted(found.files, key=lambda n: int("".join(c for c in n if c.isdigit())))
        inputs = [found[n] for n in names if n.startswith("i")]
        outputs = [found[n] for n in names if n.startswith("o")]
    return inputs, outputs
