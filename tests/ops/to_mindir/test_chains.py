"""Shapes computed from open dims, as exporters write them: the same graph comes back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from support.running import run_graph

from mindspore_lite.graph.from_mindir import from_mindir
from mindspore_lite.graph.to_mindir import to_mindir
from mindspore_lite.mindir.read import read_file
from mindspore_lite.mindir.write import write_file
from mindspore_lite.passes.infer_shapes import infer_shapes

_X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
_ROWS = np.arange(6, dtype=np.int64).reshape(2, 3)
_GRAPHS = {
    "the first size is kept, the rest follows": (
        """(float[N,S,4] x) => (float[A,B] y) {
            s = Shape(x)
            i = Constant<value_int=0>()
            n = Gather(s, i)
            z = Constant<value_ints=[0]>()
            u = Unsqueeze(n, z)
            m = Constant<value_ints=[-1]>()
            t = Concat<axis=0>(u, m)
            y = Reshape(x, t)
        }""",
        [_X],
        ["Shape", "Gather", "Unsqueeze", "Concat", "Reshape"],
    ),
    "zeros for open sizes": (
        """(float[N,S,4] x) => (float[A,B,C,D] y) {
            t = Constant<value_ints=[0,-1,2,2]>()
            y = Reshape(x, t)
        }""",
        [_X],
        ["Reshape"],
    ),
    "a zero beside a computed size": (
        """(float[N,S,4] x) => (float[A,B,C,D] y) {
            s = Shape<start=1, end=2>(x)
            z = Constant<value_ints=[0]>()
            m = Constant<value_ints=[2,-1]>()
            t = Concat<axis=0>(z, s, m)
            y = Reshape(x, t)
        }""",
        [_X],
        ["Shape", "Slice", "Concat", "Reshape"],
    ),
    "to the shape of another tensor": (
        "(float[N,S,4] x, float[1,1,4] w) => (float[A,B,C] y) { s = Shape(x) y = Expand(w, s) }",
        [_X, _X[:1, :1]],
        ["Shape", "Expand"],
    ),
    "ones keep what is there": (
        """(float[N,S,4] x, float[1,1,4] w) => (float[A,B,C] y) {
            s = Shape<start=0, end=2>(x)
            o = Constant<value_ints=[1]>()
            t = Concat<axis=0>(s, o)
            y = Expand(w, t)
        }""",
        [_X, _X[:1, :1]],
        ["Shape", "Slice", "Concat", "Expand"],
    ),
    "repeated as often as there are rows": (
        """(float[N,S,4] x, float[1,1,4] w) => (float[A,B,C] y) {
            s = Shape<start=0, end=2>(x)
            o = Constant<value_ints=[1]>()
            t = Concat<axis=0>(s, o)
            y = Tile(w, t)
        }""",
        [_X, _X[:1, :1]],
        ["Shape", "Slice", "Concat", "Tile"],
    ),
    "the first rows of a table": (
        """(float[N,S,4] x, float[1,9,4] w) => (float[A,B,C] y) {
            s = Shape<start=1, end=2>(x)
            z = Constant<value_ints=[0]>()
            o = Constant<value_ints=[1]>()
            y = Slice(w, z, s, o)
        }""",
        [_X, np.ones((1, 9, 4), np.float32)],
        ["Shape", "Slice", "Slice"],
    ),
    "all but the first rows": (
        """(float[N,S,4] x) => (float[A,B,C] y) {
            s = Shape<start=1, end=2>(x)
            o = Constant<value_ints=[1]>()
            b = Sub(s, o)
            e = Constant<value_ints=[9223372036854775807]>()
            y = Slice(x, b, e, o)
        }""",
        [_X],
        ["Shape", "Slice", "Sub", "Slice"],
    ),
    "positions": (
        """(int64[N,S] x) => (int64[A,B] y) {
            s = Shape<start=1, end=2>(x)
            z = Constant<value_ints=[0]>()
            n = Squeeze(s, z)
            a = Constant<value_int=0>()
            o = Constant<value_int=1>()
            r = Range(a, n, o)
            u = Unsqueeze(r, z)
            y = Add(x, u)
        }""",
        [_ROWS],
        ["Shape", "Slice", "Squeeze", "Range", "Unsqueeze", "Add"],
    ),
    "filled": (
        """(float[N,S,4] x) => (float[A,B,C] y) {
            s = Shape(x)
            f = ConstantOfShape<value=float[1]{2.5}>(s)
            y = Add(x, f)
        }""",
        [_X],
        ["Shape", "ConstantOfShape", "Add"],
    ),
    "distinct values and their places": (
        """(int64[N,S] x) => (int64[K] y, int64[L] z) {
            y, , z = Unique<sorted=0>(x)
        }""",
        [_ROWS % 4],
        ["Reshape", "Unique"],
    ),
    "-1 in a computed shape": (
        """(float[3,4] x, int64[2] t) => (float[A,B] y) {
            m = Constant<value_ints=[-1]>()
            e = Equal(t, m)
            o = Constant<value_ints=[1,1]>()
            w = Where(e, o, t)
            y = Expand(x, w)
        }""",
        [_X[0], np.asarray([-1, 4])],
        ["Equal", "Where", "Expand"],
    ),
}


@pytest.mark.parametrize("name", _GRAPHS)
def test_computed_shapes_come_back_as_they_were(name: str, tmp_path: Path) -> None:
    text, feeds, nodes = _GRAPHS[name]
    header = '<ir_version: 10, opset_import: ["": 21]> chain '
    proto = onnx.parser.parse_model(header + text)
    want = run_graph(ir.serde.deserialize_model(proto), *feeds)
    model = ir.serde.deserialize_model(proto)
    infer_shapes(model)
    written = to_mindir(model)
    assert not written.custom
    (path,) = write_file(written.model, tmp_path / "chain.mindir")
    back = from_mindir(read_file(path))
    assert [node.op_type for node in back.graph] == nodes
    for expected, found in zip(want, run_graph(back, *feeds), strict=True):
        np.testing.assert_array_equal(found, expected)
