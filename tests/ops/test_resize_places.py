"""Which pixel nearest resizing takes: what the translation assumes of ONNX Runtime is true."""

from __future__ import annotations

import numpy as np
import pytest
from support.mindir_builder import Net
from support.running import op_types, run_graph

from mindspore_lite.graph.from_mindir import from_mindir
from mindspore_lite.ops.resize import _onnx_places, mindspore_places

FLAGS = {"asymmetric": (False, False), "align_corners": (True, False), "half_pixel": (False, True)}


def resize(length: int, size: int, how: str, free: bool = False) -> tuple[np.ndarray, list[str]]:
    """The pixels that a translated resize takes, and its ONNX operators."""
    net = Net()
    x = net.input("x", (1, 1, -1 if free else length, 1))
    arguments = [net.constant(a) for a in ((size, 1), *FLAGS[how])]
    graph = from_mindir(net.model(net.call("ResizeNearestNeighborV2", x, *arguments)))
    line = np.arange(length, dtype=np.float32).reshape(1, 1, length, 1)
    return run_graph(graph, line)[0].reshape(-1).astype(np.int64), op_types(graph)


@pytest.mark.parametrize("how", FLAGS)
def test_onnx_runtime_takes_the_pixels_that_the_translation_expects(how: str) -> None:
    for length, size in [(2, 82), (4, 75), (3, 7), (7, 3), (5, 5), (1, 9), (9, 1), (10, 115)]:
        got, ops = resize(length, size, how, free=True)
        assert "Resize" in ops
        np.testing.assert_array_equal(got, _onnx_places(length, size, None, how))


@pytest.mark.parametrize("how", FLAGS)
def test_known_sizes_take_the_pixels_of_mindspore(how: str) -> None:
    for length, size in [(2, 82), (2, 47), (4, 75), (3, 7), (7, 3), (5, 10)]:
        got, _ = resize(length, size, how)
        np.testing.assert_array_equal(got, mindspore_places(length, size, None, how))


def test_a_usual_enlargement_is_one_resize() -> None:
    _, ops = resize(16, 32, "asymmetric")
    assert "Resize" in ops
    assert "Gather" not in ops
