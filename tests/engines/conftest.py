"""What the engine tests share: a cache of their own, and small models written as ONNX files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.snapshots import snapshot

from mindspore_lite.engines.base import ModelSource
from mindspore_lite.engines.cache import store

SIDE = 64  # a 64 x 64 float32 weight is 16 KiB: large enough to be stored outside the graph


@pytest.fixture(autouse=True)
def cache_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where this test's cache will be; nothing is made yet."""
    place = tmp_path / "cache"
    monkeypatch.setenv("MSLITE_CACHE_DIR", str(place))
    for name in ("MSLITE_CACHE", "MSLITE_CACHE_MAX_BYTES", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(store, "_WARNED", set())
    return place


class Dense:
    """y = x @ w + 1 as an ONNX file, a ModelSource for it, and a count of its translations."""

    def __init__(self, path: Path, seed: int = 0) -> None:
        self.path = path
        self.translations = 0
        rng = np.random.default_rng(seed)
        self.w = rng.random((SIDE, SIDE), dtype=np.float32)
        self.x = rng.random((2, SIDE), dtype=np.float32)
        self.wanted = self.x @ self.w + 1
        self.path.write_bytes(dense_model(self.w).SerializeToString())

    def source(self, recipe: str = "") -> ModelSource:
        return ModelSource(snapshot(self.path), recipe, self.translate)

    def translate(self) -> ir.Model:
        self.translations += 1
        return ir.load(self.path)

    def check(self, session: object) -> None:
        (y,) = session.run([self.x])  # type: ignore[attr-defined]
        np.testing.assert_allclose(y, self.wanted, rtol=1e-5)


def tensor(
    name: str, shape: list[object] | None, kind: int = TensorProto.FLOAT
) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def model(nodes, inputs, outputs, weights=()) -> onnx.ModelProto:  # type: ignore[no-untyped-def]
    tensors = [numpy_helper.from_array(array, name) for name, array in dict(weights).items()]
    graph = helper.make_graph(nodes, "graph", inputs, outputs, tensors)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    made.metadata_props.add(key="author", value="tests")
    return made


def dense_model(w: np.ndarray) -> onnx.ModelProto:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["product"]),
        helper.make_node("Add", ["product", "one"], ["y"]),
    ]
    ends = [tensor("x", ["batch", SIDE])], [tensor("y", ["batch", SIDE])]
    return model(nodes, *ends, {"w": w, "one": np.ones(1, np.float32)})


def loop_model() -> onnx.ModelProto:
    """s = x, then n times s = s @ w / 2: as long a run as one likes."""
    body = helper.make_graph(
        [
            helper.make_node("MatMul", ["s", "w"], ["product"]),
            helper.make_node("Mul", ["product", "scale"], ["s_next"]),
            helper.make_node("Identity", ["c"], ["c_next"]),
        ],
        "body",
        [
            tensor("i", [], TensorProto.INT64),
            tensor("c", [], TensorProto.BOOL),
            tensor("s", [1, SIDE]),
        ],
        [tensor("c_next", [], TensorProto.BOOL), tensor("s_next", [1, SIDE])],
        [numpy_helper.from_array(np.full((SIDE * 8, SIDE), 0.5, np.float32)[:1], "scale")],
    )
    nodes = [helper.make_node("Loop", ["n", "", "x"], ["y"], body=body)]
    inputs = [tensor("n", [], TensorProto.INT64), tensor("x", [1, SIDE])]
    return model(nodes, inputs, [tensor("y", [1, SIDE])], {"w": np.eye(SIDE, dtype=np.float32)})


@pytest.fixture
def dense(tmp_path: Path) -> Dense:
    return Dense(tmp_path / "dense.onnx")


@pytest.fixture
def make_dense(tmp_path: Path) -> Callable[[int], Dense]:
    return lambda seed: Dense(tmp_path / f"dense{seed}.onnx", seed)


@pytest.fixture
def source_of(tmp_path: Path) -> Callable[[onnx.ModelProto], ModelSource]:
    """A ModelSource for any ONNX model."""

    def make(made: onnx.ModelProto) -> ModelSource:
        path = tmp_path / "some.onnx"
        path.write_bytes(made.SerializeToString())
        return ModelSource(snapshot(path), "", lambda: ir.load(path))

    return make


@pytest.fixture
def endless(source_of: Callable[[onnx.ModelProto], ModelSource]) -> ModelSource:
    """A model whose first input says how often its loop is run."""
    return source_of(loop_model())
