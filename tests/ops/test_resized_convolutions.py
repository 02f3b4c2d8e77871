"""Ops whose file fixes sizes that hold for the exported shape alone, run at another one."""

from __future__ import annotations

from typing import Any

import pytest
from ops.windows import conv, conv_transposed
from support.mindir_builder import Net
from support.op_case import numbers
from support.running import assert_close, op_types, run

from mindspore_lite.graph.from_mindir import from_mindir

X, W = numbers(1, 3, 6, 8), numbers(3, 4, 3, 3)


def transposed(mode: str, pads: Any, stride: int, size: tuple[int, int]) -> Net:
    net = Net()
    attributes = {"pad_mode": mode, "pad_list": pads, "stride": (1, 1, stride, stride)}
    x, w = net.input("x", (1, 3, 4, 5)), net.weight("w", W)
    net.call("Conv2DTranspose", x, w, net.constant((1, 4, *size)), **attributes)
    return net


@pytest.mark.parametrize(
    ("mode", "pads", "stride", "exported", "wanted", "begin"),
    [
        ("VALID", (0, 0, 0, 0), 2, (9, 11), (13, 17), 0),
        ("VALID", (0, 0, 0, 0), 4, (16, 20), (24, 32), 0),
        ("PAD", (1, 1, 1, 1), 2, (7, 9), (11, 15), 1),
        ("SAME", (0, 1, 0, 1), 2, (8, 10), (12, 16), 0),
        ("SAME", (1, 1, 1, 1), 1, (4, 5), (6, 8), 1),
        ("SAME", (0, 0, 0, 0), 4, (16, 20), (24, 32), 0),
    ],
)
def test_a_transposed_convolution_grows_with_its_input(
    mode: str, pads: Any, stride: int, exported: Any, wanted: Any, begin: int
) -> None:
    net = transposed(mode, pads, stride, exported)
    model = net.model(net.nodes[-1].name)
    (got,) = run(model, X, input_shapes={"x": X.shape})
    edges = ((begin, 0), (begin, 0))
    assert_close(got, conv_transposed(X, W, (stride, stride), edges, wanted))


def test_the_pads_of_same_are_those_of_the_new_size() -> None:
    net = Net()
    w = numbers(2, 3, 3, 3)
    attributes = {"pad_mode": "same", "pad_list": (0, 1, 0, 1), "stride": (1, 1, 2, 2)}
    made = net.call("Conv2D", net.input("x", (1, 3, 6, 8)), net.weight("w", w), **attributes)
    x = numbers(1, 3, 7, 9)
    (got,) = run(net.model(made), x, input_shapes={"x": x.shape})
    assert_close(got, conv(x, w, (2, 2), "same"))


def test_a_2d_pool_that_was_exported_as_3d_runs_as_2d() -> None:
    net = Net()
    x = net.call("ExpandDims", net.input("x", (1, 3, 6, 8)), net.constant(2))
    attributes = {"ksize": (1, 3, 3), "strides": (1, 2, 2), "pads": (0, 1, 1)}
    pooled = net.call("MaxPool3DWithArgmax", x, **attributes)
    graph = from_mindir(net.model(net.call("TupleGetItem", pooled, net.constant(0))))
    assert op_types(graph) == ["MaxPool", "Unsqueeze"]
    (pool,) = [node for node in graph.graph if node.op_type == "MaxPool"]
    assert len(pool.outputs) == 1  # places nobody wants cost forty times the pooling
