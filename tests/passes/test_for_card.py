"""passes/for_card.py: whole models as the torch engine lowers them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest
from support.onnx_graphs import F32, assert_same, feeds_for, model, node, ops
from support.running import DATA, assert_close, fixture_arrays
from support.torch_nodes import run_graph

from mindspore_lite.graph.from_mindir import from_mindir
from mindspore_lite.mindir.read import read_file
from mindspore_lite.passes.for_card import prepare

RANDOM = np.random.default_rng(8)


def f32(*shape: int) -> np.ndarray:
    return RANDOM.normal(size=shape).astype(np.float32)


def mindir(path: Path) -> ir.Model:
    made = from_mindir(read_file(path))
    prepare(made)
    return made


def block() -> object:
    """Conv, BatchNormalization, Dropout and a Gelu spelt out."""
    nodes = [
        node("Conv", ["x", "w"], ["a"]),
        node("BatchNormalization", ["a", "scale", "shift", "mean", "var"], ["b"]),
        node("Dropout", ["b"], ["c"]),
        node("Div", ["c", "root"], ["u"]),
        node("Erf", ["u"], ["e"]),
        node("Add", ["e", "one"], ["s"]),
        node("Mul", ["c", "s"], ["p"]),
        node("Mul", ["p", "half"], ["y"]),
    ]
    weights = {"w": f32(6, 4, 3, 3), "scale": f32(6), "shift": f32(6), "mean": f32(6),
               "var": np.abs(f32(6)) + 1, "root": np.float32(2**0.5), "one": np.float32(1),
               "half": np.float32(0.5)}  # fmt: skip
    return model(nodes, [("x", F32, ("n", 4, 5, 5))], ["y"], **weights)


def test_a_block_shrinks_to_its_layers() -> None:
    old = block()
    new = ir.from_proto(old)
    prepare(new)
    assert ops(new) == ["Conv", "Gelu"]
    assert sorted(new.graph.initializers) == ["shift", "w"]
    assert_same(new, old, feeds_for(old))


@pytest.mark.parametrize("kept", ["w", "mean"])
def test_weights_that_may_change_are_not_computed_with(kept: str) -> None:
    old = block()
    new = ir.from_proto(old)
    before = new.graph.initializers[kept].const_value
    prepare(new, [kept])
    assert ops(new) == ["Conv", "BatchNormalization", "Gelu"]
    assert new.graph.initializers[kept].const_value is before
    assert [value.name for value in new.graph.inputs] == ["x"]
    assert_same(new, old, feeds_for(old))


def test_a_weight_that_is_used_no_more_but_may_change_stays() -> None:
    old = model([node("Neg", ["x"], ["y"])], [("x", F32, (2,))], ["y"], w=f32(2), v=f32(2))
    new = ir.from_proto(old)
    prepare(new, ["w"])
    assert list(new.graph.initializers) == ["w"]


def test_a_second_time_there_is_nothing_to_do(case_path: Callable[[str], Path]) -> None:
    new = mindir(case_path("attention/language"))
    before = [(n.op_type, n.domain) for n in new.graph]
    prepare(new)
    assert [(n.op_type, n.domain) for n in new.graph] == before


def test_no_normalisation_of_a_batch_is_left_in_a_network() -> None:
    new = mindir(DATA / "models" / "mobilenet_v3_mini.mindir")
    assert "BatchNormalization" not in ops(new)
    assert all(len(n.inputs) == 3 for n in new.graph if n.op_type == "Conv")


FUSED = {
    "block": {"ScaledDotProductAttention": 1, "RMSNormalization": 2},
    "language_open_batch": {"ScaledDotProductAttention": 1, "RMSNormalization": 2},
    "decoder_layer": {"ScaledDotProductAttention": 2, "LayerNormalization": 3},
    "encoder_norm_first": {"ScaledDotProductAttention": 1, "LayerNormalization": 2},
    "multihead": {"Softmax": 1, "Linear": 4},  # it returns the weights of attention
}


@pytest.mark.parametrize("name", FUSED)
def test_attention_of_mindspore_is_fused_and_means_the_same(
    name: str, case_path: Callable[[str], Path]
) -> None:
    path = case_path(f"attention/{name}")
    new = mindir(path)
    found = Counter(n.op_type for n in new.graph)
    assert {op: found[op] for op in FUSED[name]} == FUSED[name]
    inputs, want = fixture_arrays(path.with_suffix(".npz"))
    for got, array in zip(run_graph(new, inputs), want, strict=True):
        assert_close(got, array, name)
