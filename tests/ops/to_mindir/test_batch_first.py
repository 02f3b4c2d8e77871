"""LSTMs with the batch before the steps, which ONNX Runtime itself does not run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.onnx_case import OnnxCase
from support.running import run_graph

from mindspore_lite.graph.from_mindir import from_mindir
from mindspore_lite.graph.to_mindir import to_mindir
from mindspore_lite.mindir.read import read_file
from mindspore_lite.mindir.write import write_file

_RNG = np.random.default_rng(13)


def _floats(*shape: int) -> np.ndarray:
    return _RNG.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_the_batch_may_come_first(direction: str, tmp_path: Path) -> None:
    ways = 2 if direction == "bidirectional" else 1
    x, first = _floats(4, 2, 3), [_floats(ways, 2, 5) for _ in range(2)]
    weights = [_floats(ways, 20, 3), _floats(ways, 20, 5), _floats(ways, 40)]
    how: dict[str, Any] = {"hidden_size": 5, "direction": direction}
    usual = OnnxCase("LSTM", [x, *weights, None, *first], how, 3, constants=(1, 2, 3))
    want = run_graph(usual.model(), *usual.feeds().values())

    turned = [np.ascontiguousarray(v.swapaxes(0, 1)) for v in (x, *first)]
    inputs = [turned[0], *weights, None, *turned[1:]]
    case = OnnxCase("LSTM", inputs, {**how, "layout": 1}, 3, constants=(1, 2, 3))
    written = to_mindir(case.model())
    assert not written.custom
    (path,) = write_file(written.model, tmp_path / "case.mindir")
    y, *ends = run_graph(from_mindir(read_file(path)), *case.feeds().values())
    np.testing.assert_allclose(y, want[0].transpose(2, 0, 1, 3), rtol=1e-5, atol=1e-6)
    for end, expected in zip(ends, want[1:], strict=True):
        np.testing.assert_allclose(end, expected.swapaxes(0, 1), rtol=1e-5, atol=1e-6)
