"""passes/fuse_hard_sigmoid.py: forms of HardSwish that exporters write, and what looks so."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from support.onnx_graphs import F32, model, node
from support.running import run_graph

from mindspore_lite.passes.fuse_hard_sigmoid import fuse_hard_sigmoid

NUMBERS = {
    "three": 3.0, "zero": 0.0, "six": 6.0, "sixth": 1 / 6, "one": 1.0,
    "nearly": np.nextafter(np.float32(6), np.float32(7)), "rough": 0.1666,
}  # fmt: skip
CLIP = "a = Add x three; c = Clip a zero six; "
FORMS = {
    "x * clip / 6": CLIP + "m = Mul x c; y = Div m six",
    "clip * x / 6": "a = Add three x; c = Clip a zero six; m = Mul c x; y = Div m six",
    "x * (clip / 6)": CLIP + "d = Div c six; y = Mul x d",
    "x / 6 * clip": CLIP + "d = Div x six; y = Mul d c",
    "clip * (1/6 * x)": CLIP + "d = Mul sixth x; y = Mul c d",
    "x * clip * 1/6": CLIP + "m = Mul x c; y = Mul m sixth",
    "1/6 * (x * clip)": CLIP + "m = Mul x c; y = Mul sixth m",
    "x * (clip * 1/6)": CLIP + "d = Mul c sixth; y = Mul d x",
    "another tensor * clip / 6": CLIP + "m = Mul z c; y = Div m six",
}
OTHERS = {
    "another shift": "a = Add x one; c = Clip a zero six; m = Mul x c; y = Div m six",
    "another lower bound": "a = Add x three; c = Clip a one six; m = Mul x c; y = Div m six",
    "nearly six": "a = Add x three; c = Clip a zero nearly; m = Mul x c; y = Div m six",
    "nearly divided by six": CLIP + "m = Mul x c; y = Div m nearly",
    "a rough sixth": CLIP + "m = Mul x c; y = Mul m rough",
    "six divided": CLIP + "m = Mul x c; y = Div six m",
    "no division": CLIP + "y = Mul x c",
    "no upper bound": "a = Add x three; c = Clip a zero; m = Mul x c; y = Div m six",
    "the clipped squared": CLIP + "m = Mul c c; y = Div m six",
    "a sum that has another use": CLIP + "m = Mul x c; d = Div m six; y = Add d a",
    "a clipped that has another use": CLIP + "m = Mul x c; d = Div m six; y = Add d c",
    "a product that has another use": CLIP + "m = Mul x c; d = Div m six; y = Add d m",
}
EDGES = [-np.inf, np.inf, np.nan, -3, 3, 0, -0.0, np.nextafter(np.float32(-3), np.float32(0)), 1e30]


def net(steps: str, kind: int = F32, ranks: tuple[int, ...] = (0,), **more: Any) -> ir.Model:
    """A model of lines like 'y = Mul a b'; numbers are known by name."""
    nodes = []
    for line in steps.split(";"):
        result, _, op, *inputs = line.split()
        nodes.append(node(op, inputs, [result]))
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind)
    shape = (1,) * ranks[0]
    weights = {name: np.full(shape, number, dtype) for name, number in NUMBERS.items()}
    weights |= {name: weights[name].reshape(()) for name in ("zero", "six", "nearly", "one")}
    ports = [("x", kind, more.get("dims", (2, 64))), ("z", kind, more.get("dims", (2, 64)))]
    made = model(nodes, ports, [(name, kind, None) for name in more.get("outputs", ("y",))],
                 opset=more.get("opset", 21), **weights)  # fmt: skip
    return ir.from_proto(made)


def inputs(spread: float = 3) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    x, z = (spread * rng.standard_normal((2, 2, 64))).astype(np.float32)
    x[0, : len(EDGES)] = EDGES
    return [x, z]


def counts(made: ir.Model) -> Counter[str]:
    return Counter(n.op_type for n in made.graph.all_nodes() if n.op_type != "Constant")


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("opset", [11, 14, 21])
def test_each_form_becomes_a_hard_sigmoid_and_a_product(name: str, opset: int) -> None:
    made = net(FORMS[name], opset=opset)
    (want,) = run_graph(made.clone(), *inputs())
    assert fuse_hard_sigmoid(made) == 1
    assert counts(made) == {"HardSigmoid": 1, "Mul": 1}
    (got,) = run_graph(made, *inputs())
    np.testing.assert_allclose(got, want, rtol=3e-7, atol=1e-6)


@pytest.mark.parametrize("name", OTHERS)
def test_what_only_looks_like_it_stays(name: str) -> None:
    made = net(OTHERS[name])
    before = counts(made)
    assert fuse_hard_sigmoid(made) == 0
    assert counts(made) == before


def test_a_hard_sigmoid_alone_is_one_too() -> None:
    made = net(CLIP + "y = Div c six")
    (want,) = run_graph(made.clone(), *inputs())
    assert fuse_hard_sigmoid(made) == 1
    assert counts(made) == {"HardSigmoid": 1}
    np.testing.assert_allclose(run_graph(made, *inputs())[0], want, atol=1e-6)


@pytest.mark.parametrize("output", ["a", "c", "m"])
def test_outputs_of_the_model_stay(output: str) -> None:
    made = net(FORMS["x * clip / 6"], outputs=("y", output))
    assert fuse_hard_sigmoid(made) == 0


def test_other_types_stay() -> None:
    assert fuse_hard_sigmoid(net(FORMS["x * clip / 6"], onnx.TensorProto.DOUBLE)) == 0


@pytest.mark.parametrize(("dims", "fused"), [((2, 64), 1), ((5,), 1), ((), 0), (None, 0)])
def test_constants_may_not_add_dims(dims: tuple[int, ...] | None, fused: int) -> None:
    assert fuse_hard_sigmoid(net(FORMS["x * clip / 6"], ranks=(1,), dims=dims)) == fused


def test_dims_are_known_from_what_made_a_value() -> None:
    steps = "r = Relu x; w = Mul r sixth; b = Add w one; " + FORMS["x * clip / 6"].replace(
        " x ", " b "
    )
    assert fuse_hard_sigmoid(net(steps, ranks=(1,), dims=None)) == 1


def test_it_differs_by_rounding_alone() -> None:
    made = net(FORMS["x * clip / 6"])
    x = np.linspace(-4, 4, 128, dtype=np.float32).reshape(2, 64)
    exact = x.astype(np.float64) * np.clip(x.astype(np.float64) + 3, 0, 6) / 6
    fuse_hard_sigmoid(made)
    (got,) = run_graph(made, x, x)
    assert np.abs(got - exact).max() <= 2.4e-7
