"""If and Loop become graphs of MindIR, and come back as one ONNX node with the same numbers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from support.running import run_graph

from mindspore_lite.graph.from_mindir import from_mindir
from mindspore_lite.graph.to_mindir import Written, to_mindir
from mindspore_lite.mindir.read import read_file
from mindspore_lite.mindir.write import write_file
from mindspore_lite.passes.infer_shapes import infer_shapes

_X = np.arange(6, dtype=np.float32).reshape(2, 3)


def _both_ways(
    text: str, feeds: Sequence[np.ndarray], nodes: Sequence[str], folder: Path
) -> Written:
    """Run a model as it is and after a way through a file, whose nodes must be these."""
    proto = onnx.parser.parse_model('<ir_version: 10, opset_import: ["": 21]> control ' + text)
    want = run_graph(ir.serde.deserialize_model(proto), *feeds)
    model = ir.serde.deserialize_model(proto)
    infer_shapes(model)
    written = to_mindir(model)
    (path,) = write_file(written.model, folder / "control.mindir")
    back = from_mindir(read_file(path))
    assert [node.op_type for node in back.graph] == list(nodes)
    for expected, found in zip(want, run_graph(back, *feeds), strict=True):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
    return written


_IF = """(float[2,3] x, bool c) => (float[2,3] y, float[2,3] z) {
    y, z = If(c)<
        then_branch = yes () => (float[2,3] a, float[2,3] b) { a = Neg(x) b = Add(x, x) },
        else_branch = no () => (float[2,3] a, float[2,3] b) { a = Relu(x) b = Identity(x) }
    >
}"""


@pytest.mark.parametrize("condition", [True, False])
def test_if_is_a_switch_between_two_graphs(condition: bool, tmp_path: Path) -> None:
    written = _both_ways(_IF, [_X - 2, np.asarray(condition)], ["If"], tmp_path)
    assert not written.custom
    assert written.primitives["Switch"] == 1


_FOR = """(float[2,3] x, int64 n) => (float[2,3] y) {
    y = Loop(n, , x)<body = b (int64 i, bool g, float[2,3] v) => (bool h, float[2,3] w) {
        h = Identity(g) f = Cast<to=1>(i) s = Add(v, f) w = Add(s, x)
    }>
}"""


@pytest.mark.parametrize("rounds", [0, 1, 4])
def test_a_number_of_rounds_is_a_header_and_a_body(rounds: int, tmp_path: Path) -> None:
    written = _both_ways(_FOR, [_X, np.asarray(rounds)], ["Loop"], tmp_path)
    assert not written.custom
    assert len(written.model.functions) == 3


_WHILE = """(float[2,3] x, float most) => (float[2,3] y, float s) {
    c = Constant<value = bool {1}>()
    z = Constant<value_float=0.0>()
    y, s = Loop(, c, x, z)<
        body = b (int64 i, bool g, float[2,3] v, float t) => (bool h, float[2,3] w, float u) {
            w = Add(v, v) u = ReduceSum<keepdims=0>(w) h = Less(u, most)
        }
    >
}"""
_BOTH = """(float[2,3] x, int64[1] n, bool c) => (float[2,3] y) {
    y = Loop(n, c, x)<body = b (int64 i, bool g, float[2,3] v) => (bool h, float[2,3] w) {
        w = Add(v, v) s = ReduceSum<keepdims=0>(w) most = Constant<value_float=50.0>()
        h = Less(s, most)
    }>
}"""


@pytest.mark.parametrize("most", [0, 100])
def test_a_condition_ends_a_loop(most: float, tmp_path: Path) -> None:
    feeds = [_X, np.asarray(most, np.float32)]
    assert not _both_ways(_WHILE, feeds, ["Loop"], tmp_path).custom


@pytest.mark.parametrize(("rounds", "begins"), [(2, True), (9, True), (9, False), (0, True)])
def test_rounds_and_condition_together(rounds: int, begins: bool, tmp_path: Path) -> None:
    feeds = [_X, np.asarray([rounds]), np.asarray(begins)]
    assert not _both_ways(_BOTH, feeds, ["Reshape", "Loop"], tmp_path).custom


_FIXED = """(float[A,3] x) => (float[A,3] y) {
    n = Constant<value_int=5>()
    y = Loop(n, , x)<body = b (int64 i, bool g, float[A,3] v) => (bool h, float[A,3] w) {
        h = Constant<value = bool {1}>() w = Add(v, x)
    }>
}"""
_NESTED = """(float[2,3] x, int64 n) => (float[2,3] y) {
    y = Loop(n, , x)<body = b (int64 i, bool g, float[2,3] v) => (bool h, float[2,3] w) {
        h = Identity(g)
        q = Loop(i, , v)<body = c (int64 j, bool k, float[2,3] a) => (bool l, float[2,3] d) {
            l = Identity(k) d = Add(a, x)
        }>
        one = Constant<value_int=1>()
        late = Greater(i, one)
        w = If(late)<
            then_branch = yes () => (float[2,3] e) { e = Neg(q) },
            else_branch = no () => (float[2,3] f) { f = Add(q, v) }
        >
    }>
}"""


@pytest.mark.parametrize(
    ("text", "feeds"),
    [(_FIXED, [_X]), (_NESTED, [_X, np.asarray(3)])],
    ids=["constant rounds of open sizes", "loops and branches in a loop"],
)
def test_loops_of_other_forms(text: str, feeds: list[np.ndarray], tmp_path: Path) -> None:
    assert not _both_ways(text, feeds, ["Loop"], tmp_path).custom


def test_a_body_may_hold_what_has_no_primitive(tmp_path: Path) -> None:
    text = _FOR.replace("w = Add(s, x)", "b8 = Cast<to=17>(s) c8 = Cast<to=1>(b8) w = Add(c8, x)")
    written = _both_ways(text, [_X, np.asarray(2)], ["Loop"], tmp_path)
    assert {reason.partition(":")[0] for reason in written.custom} == {"Cast"}


_GROWS = """(float[A,3] x, int64 n) => (float[B,3] y) {
    y = Loop(n, , x)<body = b (int64 i, bool g, float[C,3] v) => (bool h, float[D,3] w) {
        h = Identity(g) w = Concat<axis=0>(v, x)
    }>
}"""
_SCANS = """(float[2,3] x, int64 n) => (float[2,3] y, float[K,2,3] all) {
    y, all = Loop(n, , x)<
        body = b (int64 i, bool g, float[2,3] v) => (bool h, float[2,3] w, float[2,3] o) {
            h = Identity(g) w = Add(v, x) o = Neg(w)
        }
    >
}"""


@pytest.mark.parametrize(
    ("text", "reason"),
    [(_GROWS, "a carried value that may grow"), (_SCANS, "a result of every round")],
)
def test_loops_that_travel_as_they_are(text: str, reason: str, tmp_path: Path) -> None:
    written = _both_ways(text, [_X, np.asarray(3)], ["Loop"], tmp_path)
    assert list(written.custom) == [f"Loop: {reason}"]
